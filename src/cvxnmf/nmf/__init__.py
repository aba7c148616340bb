"""Rank-k nonnegative factorisation: data, losses, updates, descent, initialisation, bounds, factorize."""
