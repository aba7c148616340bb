"""Numerical kernels that know no model: eigenvalues, sparse products, threads, the exponential."""
