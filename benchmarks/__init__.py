"""Benchmarks: datasets make data, solvers give answers, the objective alone scores them."""
