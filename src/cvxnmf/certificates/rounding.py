"""What every proof needs: checked data, sums with their rounding errors, and two criteria that survive rounding.

Positive semidefiniteness rests on Rump's criterion: if the floating-point Cholesky factorisation of ``M - c I`` runs
through, with c a bound on its backward error, then M is positive semidefinite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]

UNIT = float(np.finfo(np.float64).eps)  # twice the unit roundoff: every error bound below is generous
#: Elementary functions and pairwise sums are off by at most this many units per term.
UNITS_PER_TERM = 64
#: A trace, and the entries of a metric and their inverses, may not exceed this: no product below overflows.
LARGEST = 1e120
#: Entries that are worked on at a time.
BLOCK_ENTRIES = 1 << 16
#: Rows and columns of a tile that is compared with its mirror image.
TILE = 256


class CertificateError(ValueError):
    """A certificate does not prove what it states."""


class Proof(NamedTuple):
    """A bound recomputed by the check, and the size of the data."""

    bound: float
    rigorous: bool
    scale: float


def data_matrix(A: Any) -> Array:
    """The data as a dense matrix of finite nonnegative numbers."""
    try:
        raw = A.toarray() if sp.issparse(A) else np.asarray(A)
        real = raw.dtype.kind in "fiubO" and not isinstance(A, np.ma.MaskedArray)
        dense = np.asarray(raw, dtype=np.float64) if real else np.full((1, 1), np.nan)
    except (TypeError, ValueError, OverflowError):
        dense = np.full((1, 1), np.nan)
    if dense.ndim != 2 or not dense.size or not (is_finite(dense) and dense.min() >= 0):
        raise CertificateError("The data must be a matrix of finite nonnegative numbers.")
    return dense


def square_matrix(A: Any) -> Array:
    """The data as a symmetric matrix."""
    dense = data_matrix(A)
    if dense.shape[0] != dense.shape[1]:
        raise CertificateError("The data must be a square matrix of finite nonnegative numbers.")
    return dense if is_mirrored(dense) else (dense + dense.T) / 2


def is_mirrored(M: Array) -> bool:
    """Whether a square matrix equals its transpose to the last bit; in tiles, which is several times faster."""
    starts = range(0, len(M), TILE)
    return all(
        np.array_equal(M[i : i + TILE, j : j + TILE], M[j : j + TILE, i : i + TILE].T) for i in starts for j in starts if j >= i
    )


def witness_arrays(witness: Mapping[str, Array], *names: str) -> list[Array]:
    """The named arrays of a witness as finite float64 numbers."""
    try:
        arrays = [np.asarray(witness[name]) for name in names]
    except (KeyError, TypeError, ValueError):
        raise CertificateError(f"The certificate lacks its witness ({', '.join(names)}).") from None
    if any(array.dtype.kind != "f" for array in arrays):
        raise CertificateError("The witness must hold arrays of real numbers.")
    with np.errstate(all="ignore"):
        numbers = [array.astype(np.float64, copy=False) for array in arrays]
    if not all(is_finite(array) for array in numbers):
        raise CertificateError("The witness is not finite.")
    return numbers


def of_moderate_size(A: Array, loss: str) -> None:
    """Refuse data so small or large that products of them would vanish or overflow unnoticed."""
    largest, limit = float(np.nanmax(A, initial=0.0)), 1e100 if loss == "kl" else 1e50
    if not 1 / limit <= largest <= limit:
        raise CertificateError(f"The largest entry of the data is {largest:g}, where no bound is safe against rounding.")


def is_finite(values: Array) -> bool:
    """Whether no entry is infinite or NaN."""
    return bool(np.isfinite(values.min(initial=0.0)) and np.isfinite(values.max(initial=0.0)))


def row_sums(M: Array) -> tuple[Array, Array]:
    """Sums of the rows of a nonnegative matrix, and bounds on their errors.

    Along contiguous rows numpy sums pairwise: an error of at most 18 + log2(n) roundoffs, well below 32 units.
    """
    sums = np.ascontiguousarray(M).sum(axis=1)
    return sums, 32 * UNIT * sums


def safe_bound(total: float, lost: float) -> float:
    """``total - lost``, never below 0, or an error if that is not a number."""
    if not abs(total - lost) < math.inf:
        raise CertificateError("The bound is not a finite number.")
    return max(0.0, total - lost)


def is_psd(M: Array, size: Array, slack: float = 0.0, kernel_of_ones: bool = False) -> bool:
    """Whether M is positive semidefinite, whatever rounding did to it; M is overwritten.

    M is scaled to unit diagonal by powers of two.

    Parameters
    ----------
    M : ndarray of shape (n, n)
        Symmetric.
    size : ndarray of shape (n,)
        For each row a bound on the sum of absolute values that rounding acted on.
    slack : float
        Bound on a further error in every entry.
    kernel_of_ones : bool
        The rows of M sum to zero in exact arithmetic: the direction 1 is lifted out of the way.
    """
    n = len(M)
    if n == 1 and kernel_of_ones:
        return True  # a 1-by-1 matrix with row sum zero is zero
    diagonal = np.diag(M).copy()
    if not diagonal.min() > 0:
        return False
    scaling = np.exp2(-np.round(0.5 * np.log2(diagonal)))
    M *= scaling[:, None]
    M *= scaling[None, :]
    lifted = 0.0
    if kernel_of_ones:
        z = 1.0 / scaling
        z /= np.linalg.norm(z)
        lifted = float(np.trace(M)) / n
        height = max(1, BLOCK_ENTRIES // n)
        for first in range(0, n, height):  # in blocks, which saves a second matrix
            M[first : first + height] += np.outer(lifted * z[first : first + height], z)
    formed = 8 * UNIT * float((scaling**2 * size).max())  # norm of a nonnegative matrix, weighted row sums
    summed = 2 * (n + 16) * UNIT * float((scaling**2 * size).max()) + float((scaling**2).max()) * slack * n
    return _cholesky_runs(M, formed + summed, lifted)


def is_contraction(Y: Array, limit: float, error: float) -> bool:
    """Whether the spectral norm of Y is at most `limit`, with Y off by at most `error` in the Frobenius norm."""
    room = limit - error
    if not room > 0:
        return False
    Y = (Y if Y.shape[0] >= Y.shape[1] else Y.T) / room
    energy = float(np.vdot(Y, Y))
    if not energy < math.inf:
        return False
    M = -(Y.T @ Y)
    M.flat[:: len(M) + 1] += 1.0
    return _cholesky_runs(M, 2 * (len(Y) + 16) * UNIT * (energy + 1.0))


def _cholesky_runs(M: Array, error: float, lifted: float = 0.0) -> bool:
    """Rump's criterion for M known up to `error` in norm; M is overwritten."""
    n = len(M)
    backward = 4 * (n + 16) * UNIT * (float(np.trace(M)) + lifted)
    M.flat[:: n + 1] -= error + backward
    if not is_finite(M):
        return False
    try:
        factor = sl.cholesky(M.T, overwrite_a=True, check_finite=False)
    except sl.LinAlgError:
        return False
    return bool(np.all(np.diag(factor) > 0))


def largest_eigenvalues(M: Array, count: int) -> Array:
    """Upper bounds on the positive parts of the largest eigenvalues of a symmetric M, in decreasing order.

    A computed decomposition ``M = V D V' + E`` with almost orthonormal V: Weyl's and Ostrowski's inequalities bound what E and
    V may change.
    """
    n = len(M)
    if not is_finite(M):
        raise CertificateError("The witness is too large.")
    try:
        values, V = sl.eigh(M, driver="evd", check_finite=False)
    except sl.LinAlgError:
        raise CertificateError("The eigenvalues of the witness could not be computed.") from None
    size = float(np.abs(values) @ np.sum(V * V, axis=0))  # bounds the norm of |V||D||V'|
    error = float(np.linalg.norm(M - (V * values) @ V.T)) + 4 * (n + 16) * UNIT * size
    skew = float(np.linalg.norm(V.T @ V - np.eye(n))) + 4 * (n + 16) * UNIT * n
    if not (math.isfinite(error) and skew < 0.5):
        raise CertificateError("The eigenvalues of the witness could not be computed.")
    return np.asarray(np.maximum(values[::-1][:count], 0.0) * (1.0 + skew) + error)


def domain_edge(loss: str, A: Array) -> Array:
    """The edge f of the dual domain, rounded: ``w >= -f``, f = A for KL and ``A∘A/2`` for squared error.

    Where ``Z - f`` is computed as 0, W is read as exactly 0, elsewhere as ``Z`` less the exact edge: both lie in the
    domain, and within the rounding that is allowed for below.
    """
    return A if loss == "kl" else 0.5 * A * A


def conjugate_terms(loss: str, A: Array, Z: Array) -> tuple[Array, Array, Array]:
    """``-phi*(w)`` entrywise for ``w = Z - f``, the size of what was summed in it, and the derivative of phi*."""
    W = Z - domain_edge(loss, A)
    Z = np.maximum(Z, 0.0)
    if loss == "kl":
        log_A, log_Z = log(A), log(Z)
        return A * log_A - A + Z - Z * log_Z, np.abs(A * log_A) + A + Z + np.abs(Z * log_Z), log_Z
    u = 0.5 * (A + np.sqrt(2.0 * Z))  # Z < 0 only under the constraint X >= log(A/2), where u stays A/2
    log_u = np.where((Z == 0) & (A > 0), log(A) - math.log(2.0), log(u))  # A/2 may underflow
    terms = (u - A) ** 2 - W * log_u
    return terms, (np.abs(W) + A * A) * (np.abs(log_u) + 1.0) + (u - A) ** 2, log_u


def log(values: Array) -> Array:
    """Logarithm with log 0 read as 0, for products ``0 log 0``."""
    return np.asarray(np.log(np.where(values > 0, values, 1.0)))
