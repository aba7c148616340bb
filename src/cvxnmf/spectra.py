"""The one place that calls eigensolvers, and the spectrum of noise.

Drivers by measurement (2 cores): ``evd`` is the fastest full solver; a range-restricted driver wins
when at most a tenth of the pairs is wanted; small thin products are faster on one BLAS thread.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg as sl
from scipy.optimize import brentq
from threadpoolctl import ThreadpoolController

from cvxnmf.results import FloatArray

#: Below this size two BLAS threads stall each other more than they help.
SINGLE_THREAD_BELOW = 600
#: Up to this share of the pairs a range-restricted driver beats a full decomposition.
PARTIAL_SHARE = 0.1


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def single_thread(n: int = 0) -> AbstractContextManager[Any]:
    """Run BLAS on one thread inside the context, unless `n` is large enough for two to pay."""
    if n >= SINGLE_THREAD_BELOW:
        return nullcontext()
    limit: AbstractContextManager[Any] = _threads().limit(limits=1, user_api="blas")
    return limit


def add_outer(M: FloatArray, x: FloatArray, y: FloatArray) -> None:
    """Add ``x y'`` to M in place, without forming it."""
    sl.blas.dger(1.0, y, x, a=M.T, overwrite_a=True)  # transposed, a C array is what BLAS wants


def eigenpairs_above(B: FloatArray, threshold: float, expected: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues above `threshold` in decreasing order, with their vectors.

    Parameters
    ----------
    B : ndarray of shape (n, n)
        Symmetric; overwritten.
    threshold : float
        Pairs at or below it are left out.
    expected : int, optional
        How many pairs to expect; few expected pairs are computed by a restricted driver, which is
        only trusted if it also finds one pair below the threshold.
    """
    n = len(B)
    wanted = n if expected is None else expected + 2 + n // 50  # some more pairs cost next to nothing
    if n > 200 and wanted <= PARTIAL_SHARE * n:
        values, vectors = sl.eigh(B, subset_by_index=[n - wanted, n - 1], check_finite=False)
        if values[0] > threshold:
            return eigenpairs_above(B, threshold)
    else:
        values, vectors = sl.eigh(B.T, driver="evd", overwrite_a=True, check_finite=False)
    keep = int(np.searchsorted(-values[::-1], -threshold, side="left"))
    return values[::-1][:keep], vectors[:, ::-1][:, :keep]


def smallest_eigenvalue(B: FloatArray, metric: FloatArray | None = None) -> float:
    """Smallest eigenvalue of B, or of the pencil (B, metric) with a positive definite metric; both are overwritten."""
    metric = None if metric is None else metric.T  # transposed, a C array is what LAPACK wants: no copy
    options = {"eigvals_only": True, "subset_by_index": [0, 0], "overwrite_a": True, "overwrite_b": True}
    values = sl.eigh(B.T, metric, check_finite=False, **options)
    return float(values[0])


def noise_edge(variance: FloatArray) -> float:
    """Largest eigenvalue that pure noise can show (docs/mathematics.md).

    For a symmetric random matrix whose entries have variance close to ``a_i a_j`` the spectrum ends at
    the minimum over ``t > max a`` of ``t sqrt(sum_j a_j / (t - a_j))``, found as the root of the derivative.

    Parameters
    ----------
    variance : ndarray of shape (n,)
        Row sums ``r`` of the matrix of entry variances; ``a = r / sqrt(sum r)``.
    """
    total = float(variance.sum())
    if total == 0:
        return 0.0
    a = variance / np.sqrt(total)
    top = float(a.max())

    def slope(t: float) -> float:
        q = a / (t - a)
        return float(np.sum(q * q) - np.sum(q))

    high = 2.0 * top
    while slope(high) > 0:
        high *= 2.0
    t = brentq(slope, top * (1.0 + 1e-12), high, xtol=1e-13 * top)
    return float(t * np.sqrt(np.sum(a / (t - a))))


def dispersion(B: FloatArray, variance_sum: float, unit_edge: float) -> float:
    """Noise variance per unit of model variance, from the energy outside the signal.

    The eigenvalues of the standardised residual `B` above ``unit_edge * sqrt(phi)`` are signal; phi is
    the energy of the rest over the model's `variance_sum`, iterated down to its fixed point.
    """
    values = sl.eigh(B, eigvals_only=True, driver="evd", check_finite=False)
    energy = float(np.sum(values * values))
    phi = energy / variance_sum
    while True:
        signal = values[values > unit_edge * np.sqrt(phi)]
        smaller = max(0.0, energy - float(np.sum(signal * signal))) / variance_sum
        if not smaller < phi:
            return phi
        phi = smaller
