"""Completely positive matrices: nonnegative factors of exp(X), and the recursion by under-approximation."""
