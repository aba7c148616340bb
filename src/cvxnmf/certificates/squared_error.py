"""Bounds on the squared error of all nonnegative factorisations of a rank, for a matrix without missing entries.

For any N >= 0, every X >= 0 of rank at most k has

    ||A - X||^2  >=  ||A||^2 - 2 <A + N, X> + ||X||^2  >=  ||A||^2 - sum_{i <= k} sigma_i(A + N)^2,

with the positive eigenvalues in place of the singular values if ``X = UU'``: for ``<N, X> >= 0``, and among all X of rank k the
best approximation of M has the largest ``2 <M, X> - ||X||^2``. N = 0 gives the tail of the singular values of A.
"""

from __future__ import annotations

import numpy as np

from cvxnmf.certificates.losses import SQUARED_ERROR, require_moderate_size
from cvxnmf.certificates.rounding import UNIT, UNITS_PER_TERM, Bound, largest_eigenvalues, singular_value_bounds
from cvxnmf.certificates.statement import Array, CertificateError


def dual_bound(A: Array, N: Array | None, k: int, symmetric: bool, error: float = 0.0) -> Bound:
    """The bound on squared error from N, or from the singular values of A alone; entries of A are off by the share `error`."""
    N = np.zeros_like(A) if N is None else N
    if N.shape != A.shape or not N.min() >= 0:
        raise CertificateError(f"The witness of shape {N.shape} does not match data of shape {A.shape}, or is negative.")
    if symmetric and not np.array_equal(N, N.T):
        raise CertificateError("The witness is not symmetric.")
    require_moderate_size(A, SQUARED_ERROR)
    norm = float(np.square(np.ascontiguousarray(A)).sum())  # summed pairwise
    taken, spare = _leading_energy(A + N, k, symmetric, error * np.sqrt(norm))
    return Bound(norm - taken, UNITS_PER_TERM * UNIT * (norm + taken) + 4 * error * norm, spare)


# Both energies hold an allowance for rounding, in units of twice the roundoff, in each of the k values; half of it is to spare:
# (terms + 16) UNIT norm^2 in a square, and no less than (n + 16) UNIT norm in an eigenvalue v, worth v times that in its square.
def gram_energy(G: Array, terms: int, norm: float, k: int, error: float = 0.0) -> tuple[float, float]:
    """Upper bound on the k largest ``sigma_i(Y)²``, summed, and what it can spare, from ``G = Y'Y``; Y is off by `error` in norm.

    Entries of G are sums of so many `terms`.
    """
    values = singular_value_bounds(G, k, terms, norm) + 2 * error
    return float(np.sum(values * values)) * (1 + 8 * UNIT * len(values)), len(values) * (terms + 16) * UNIT * norm**2


def _leading_energy(Y: Array, k: int, symmetric: bool, error: float) -> tuple[float, float]:
    """An upper bound on ``sum_{i <= k} sigma_i(Y)^2``, and what it can spare; Y is off by `error` in norm."""
    norm = float(np.linalg.norm(Y))
    if symmetric:
        values = largest_eigenvalues(Y, k) + 2 * UNIT * norm + 2 * error  # Y was rounded
        return float(np.sum(values * values)) * (1 + 8 * UNIT * len(Y)), (len(Y) + 16) * UNIT * norm * float(values.sum())
    thin = Y if Y.shape[0] >= Y.shape[1] else Y.T
    return gram_energy(thin.T @ thin, len(thin), norm, k, error)
