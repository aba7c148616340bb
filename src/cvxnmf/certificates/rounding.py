"""What makes proofs safe: sums with their rounding errors, and criteria for matrices that survive rounding.

Positive semidefiniteness rests on Rump's criterion: if the floating-point Cholesky factorisation of ``M - c I`` runs
through, with c a bound on its backward error, then M is positive semidefinite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg as sl

from cvxnmf.certificates.statement import Array, CertificateError, Proof

UNIT = float(np.finfo(np.float64).eps)  # twice the unit roundoff: every error bound below is generous
#: Elementary functions and pairwise sums are off by at most this many units per term.
UNITS_PER_TERM = 64
#: Entries of a row chunk of a matrix that is at hand, if it is large and if it is small.
CHUNK_ENTRIES, LEAST_CHUNK_ENTRIES = 1 << 14, 1 << 12
#: Rows and columns of a tile that is compared with its mirror image.
TILE = 256


def row_slices(n_rows: int, n_columns: int, entries: int | None = None) -> Iterator[slice]:
    """Slices of consecutive rows with about so many entries, at least one row; by default of about an eighth of the matrix."""
    if entries is None:
        entries = min(CHUNK_ENTRIES, max(LEAST_CHUNK_ENTRIES, n_rows * n_columns // 8))
    height = max(1, entries // max(1, n_columns))
    return (slice(first, min(first + height, n_rows)) for first in range(0, n_rows, height))


def is_mirrored(M: Array) -> bool:
    """Whether a square matrix equals its transpose to the last bit; in tiles, which is several times faster."""
    starts = range(0, len(M), TILE)
    return all(
        np.array_equal(M[i : i + TILE, j : j + TILE], M[j : j + TILE, i : i + TILE].T) for i in starts for j in starts if j >= i
    )


def is_finite(values: Array) -> bool:
    """Whether no entry of an array that a proof rests on is infinite or NaN."""
    return bool(np.isfinite(values.min(initial=0.0)) and np.isfinite(values.max(initial=0.0)))


def row_sums(M: Array) -> tuple[Array, Array]:
    """Sums of the rows of a nonnegative matrix, and bounds on their errors.

    Along contiguous rows numpy sums pairwise: an error of at most 18 + log2(n) roundoffs, well below 32 units.
    """
    sums = np.concatenate([np.ascontiguousarray(M[rows]).sum(axis=1) for rows in row_slices(*M.shape)])
    return sums, 32 * UNIT * sums


class Bound(NamedTuple):
    """A bound before rounding is taken off: `rounding` bounds what rounding may have added to the total.

    The proof stands if the bound is stated higher by half of the rounding, and by `spare`, the half of other allowances.
    """

    total: float
    rounding: float
    spare: float = 0.0

    def proof(self, scale: float) -> Proof:
        """The proof of a bound, without what rounding may have added."""
        return safe_proof(self.total, self.rounding, scale, spare=self.spare)


# Errors are allowed for in units of UNIT, which is twice the unit roundoff they are made of. So half of the allowance would do,
# and a bound is proved even if it is stated higher by the other half.
def safe_proof(
    total: float, rounding: float, scale: float, *, shifted: float = 0.0, spare: float = 0.0, rigorous: bool = True
) -> Proof:
    """The bound ``total - rounding - shifted`` as a proof safe against rounding, never below 0; an error if it is no number.

    `rounding` bounds the rounding in the total, in units of UNIT; `shifted` what putting the dual point right may have cost;
    `spare` is what may be stated beyond half of the rounding.
    """
    least = total - (rounding + shifted)
    if not abs(least) < math.inf:
        raise CertificateError("The bound is not a finite number.")
    bound = max(0.0, least)
    return Proof(bound, rigorous, scale, max(0.0, least + 0.5 * rounding + spare) - bound)


def is_psd(M: Array, size: Array, slack: float = 0.0, kernel_of_ones: bool = False) -> bool:
    """Whether a symmetric M is positive semidefinite, whatever rounding did to it; M is overwritten.

    M is scaled to unit diagonal by powers of two. `size` bounds, for each row, the sum of absolute values that rounding acted on,
    and `slack` a further error in every entry. With `kernel_of_ones` the rows of M sum to zero in exact arithmetic: the direction
    1 is lifted out of the way.
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
        for rows in row_slices(n, n):  # which saves a second matrix
            M[rows] += np.outer(lifted * z[rows], z)
    formed = 8 * UNIT * float((scaling**2 * size).max())  # norm of a nonnegative matrix, weighted row sums
    summed = 2 * (n + 16) * UNIT * float((scaling**2 * size).max()) + float((scaling**2).max()) * slack * n
    return _cholesky_runs(M, formed + summed, lifted)


def is_contraction(Y: Array, limit: float, error: float) -> bool:
    """Whether the spectral norm of Y, which is overwritten, is at most `limit`, with Y off by `error` at most in norm."""
    room = limit - error
    if not room > 0:
        return False
    Y /= room
    energy = float(np.vdot(Y, Y))
    if not energy < math.inf:
        return False
    Y = Y if Y.shape[0] >= Y.shape[1] else Y.T
    M = Y.T @ Y
    np.negative(M, out=M)
    M.flat[:: len(M) + 1] += 1.0
    return _cholesky_runs(M, 2 * (len(Y) + 16) * UNIT * (energy + 1.0))


def _cholesky_runs(M: Array, error: float, lifted: float = 0.0) -> bool:
    """Rump's criterion: Cholesky runs on M, known up to `error` in norm, in spite of rounding; M is overwritten."""
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


def singular_value_bounds(G: Array, count: int, terms: int, norm: float) -> Array:
    """Upper bounds on the largest singular values of Y, whose entries are exact, from ``G = Y'Y``, in decreasing order.

    Entries of G are sums of so many `terms`, in any order; `norm` is that of Y. Half of what is allowed for rounding would do.
    """
    squares = largest_eigenvalues(G, count) + 2 * (terms + 16) * UNIT * norm**2
    return np.asarray(np.sqrt(squares) + 2 * UNIT * norm)
