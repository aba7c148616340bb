"""Bounds on the Kullback-Leibler divergence of all nonnegative factorisations of a rank (docs/mathematics.md).

The best X has the margins of the data, ``X1 = r = A1`` and ``X'1 = c = A'1``, for scaling its rows and columns so never raises
the divergence; rows and columns without entries are left out. Let S be the sum of A. Then with u and v, the unit vectors
``sqrt(r / S)`` and ``sqrt(c / S)``,

    D_r^-1/2 X D_c^-1/2  =  u v' + T,     T of rank at most k - 1 and norm at most 1, orthogonal to u and v,

since the left side is nonnegative and u, v its Perron vectors. Four bounds follow.

*Independence.* Of rank one T is 0: the best model is ``rc' / S``, and its divergence is the bound.

*Ky Fan.* For any ``y >= 0``, from ``a log(a/x) - a + x >= a log y + x - yx`` in every entry and ``G_ij = u_i v_j y_ij``,

    KL  >=  sum A log y + S - S u'Gv - S sum_{i < k} sigma_i((I - uu') G (I - vv')).

*Subspace.* Row i of A over r_i differs from that of X by d, whose entries sum to 0, and ``x_ij <= r_i s_j`` with ``sum s <= k``:
``KL >= sum r_i 3/2 d_ij^2 / (m_j + 2 s_j)``, where m is the largest row in every column. By Cauchy's inequality this is at least
``3/2 R^2 / (sum m + 2k)``, if R is less than the distances of the columns of ``B = (I - uu') D_r^-1/2 A`` from every subspace of
k - 1 dimensions, summed; and for any Y with columns no longer than 1

    R  =  <Y, B> - sum_{i < k} lambda_i((BY' + YB') / 2)_+    is.

*Pinsker.* ``KL >= ||D_r^-1/2 (A - X)||^2``, which the bounds for squared error bound. The last two hold for A' as well.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from cvxnmf.certificates.data import witness_arrays
from cvxnmf.certificates.losses import log
from cvxnmf.certificates.rounding import UNIT, UNITS_PER_TERM, Bound, largest_eigenvalues, row_sums, singular_value_bounds
from cvxnmf.certificates.squared_error import dual_bound
from cvxnmf.certificates.statement import Array, CertificateError, Witness

#: Roots of shares of sums, and their products with a number, are off by at most so many units; so are two projections, beside
#: the sums in them.
SHARE_UNITS, PROJECTION_UNITS = 64, 512


class Margins(NamedTuple):
    """Margins for bounds on the KL divergence: rows and columns that carry data, their sums within `UNITS_PER_TERM` units."""

    kept: Any
    A: Array
    rows: Array
    columns: Array
    total: float

    @property
    def shares(self) -> tuple[Array, Array]:
        """Roots u and v of the margins' shares, unit vectors of the divergence bounds, entries within `SHARE_UNITS` units."""
        return np.sqrt(self.rows / self.total), np.sqrt(self.columns / self.total)


def margins(A: Array) -> Margins:
    """The margins (row and column sums) of nonnegative data for a bound on the KL divergence."""
    rows, columns = row_sums(A)[0], row_sums(A.T)[0]
    kept = np.ix_(rows > 0, columns > 0)
    rows, columns = rows[rows > 0], columns[columns > 0]
    return Margins(kept, np.ascontiguousarray(A[kept]), rows, columns, float(rows.sum()))


def orient_data(A: Array, witness: Witness) -> Array:
    """The data of a divergence bound, or their transpose if the witness is about it."""
    return A.T if "transposed" in witness else A


def matching_witness(witness: Witness, name: str, shape: tuple[int, ...]) -> Array:
    """An array of the witness of a divergence bound, which must have a given shape."""
    (array,) = witness_arrays(witness, name)
    if array.shape != shape:
        raise CertificateError(f"The witness of shape {array.shape} does not match data of shape {shape}.")
    return array


def ky_fan_bound(part: Array, k: int, witness: Witness, symmetric: bool = False) -> Bound:
    """The Ky Fan bound on the KL divergence from the witness y."""
    return singular_bound(part, matching_witness(witness, "y", part.shape), k, symmetric)


def singular_bound(A: Array, y: Array, k: int, symmetric: bool = False) -> Bound:
    """The Ky Fan bound on the KL divergence from y; entries of A may be off by a few units."""
    data = margins(A)
    A, y = data.A, np.ascontiguousarray(y[data.kept])
    if not (y.min() >= 0 and y[A > 0].min() > 0):
        raise CertificateError("The witness must not be negative, and positive where the data are.")
    u, v = data.shares
    G = u[:, None] * y * v
    norm, mass = float(np.linalg.norm(G)), float(u @ G @ v)
    G -= np.outer(u, u @ G)
    G -= np.outer(G @ v, v)
    error = 2 * (sum(A.shape) + PROJECTION_UNITS) * UNIT * norm
    leading, log_y = _leading_sum(G, k - 1, symmetric, error), log(y)
    return ky_fan_total(float(np.sum(A * log_y)), float(np.sum(A * np.abs(log_y))), data.total, mass, leading, A.shape)


def ky_fan_total(logs: float, size: float, total: float, mass: float, leading: float, shape: tuple[int, ...]) -> Bound:
    """Ky Fan bound ``sum A log y + S - S u'Gv - S leading``; `size` sums the absolute values behind the first sum."""
    size += total * (2.0 + leading)
    rounding = UNITS_PER_TERM * UNIT * size + (sum(shape) + PROJECTION_UNITS) * UNIT * total * mass
    return Bound(logs + total * (1.0 - mass - leading), rounding)


def _leading_sum(M: Array, count: int, symmetric: bool, error: float) -> float:
    """An upper bound on the `count` largest singular values, or positive eigenvalues, summed; M is off by `error` in norm."""
    count = min(count, *M.shape)
    if count == 0:
        return 0.0
    if symmetric:
        values = largest_eigenvalues((M + M.T) / 2, count)
    else:
        thin = M if M.shape[0] >= M.shape[1] else M.T
        values = singular_value_bounds(thin.T @ thin, count, len(thin), float(np.linalg.norm(M)))
    return sum_with_error(values, error)


def sum_with_error(values: Array, error: float) -> float:
    """An upper bound on the sum of singular values, or other numbers, that may be larger by `error` each."""
    return float(np.sum(values + error)) * (1 + UNITS_PER_TERM * UNIT)


def subspace_bound(part: Array, k: int, witness: Witness) -> Bound:
    """The subspace bound on the KL divergence from the witness Y; one of the transpose's shape ("transposed") bounds that."""
    part = orient_data(part, witness)
    Y, data = matching_witness(witness, "Y", part.shape), margins(part)
    A, Y = data.A, np.ascontiguousarray(Y[data.kept])
    m, n = A.shape
    if not float(np.sum(Y * Y, axis=0).max()) <= 1.0 - (m + 16) * UNIT:
        raise CertificateError("The columns of the witness must not be longer than 1.")
    roots, u = np.sqrt(data.rows), data.shares[0]
    B = A / roots[:, None]
    norm = float(np.linalg.norm(B))
    B -= np.outer(u, u @ B)
    error = 2 * (m + PROJECTION_UNITS) * UNIT * norm  # of B in norm; no column of Y is longer than 1
    inner, outer = float(np.sum(Y * B)), _symmetric_sum(B, Y, k - 1)
    reach = np.sqrt(n) * (error + (m + n + PROJECTION_UNITS) * UNIT * norm)  # ||Y|| <= sqrt n
    R = max(0.0, inner - outer - k * reach)
    largest = float(np.sum((A / data.rows[:, None]).max(axis=0)))
    bound = 1.5 * R * R / (largest + 2 * k)
    return Bound(bound, (UNITS_PER_TERM + n) * UNIT * bound)


def _symmetric_sum(B: Array, Y: Array, count: int) -> float:
    """An upper bound on the summed largest eigenvalues of ``(BY' + YB') / 2``, if positive, but for rounding in the product."""
    m, n = B.shape
    count = min(count, m)
    if count == 0:
        return 0.0
    if m <= 2 * n:
        M = B @ Y.T
        return float(np.sum(largest_eigenvalues((M + M.T) / 2, count)))
    Q, R = np.linalg.qr(np.hstack([B, Y]))  # of tall data: the same eigenvalues, beside zeros
    half = R[:, :n] @ R[:, n:].T
    width, size = 2 * n, float(np.linalg.norm(B)) * float(np.linalg.norm(Y))
    missed = float(np.linalg.norm(np.hstack([B, Y]) - Q @ R)) + 4 * (width + 16) * UNIT * float(np.linalg.norm(R))
    skew = float(np.linalg.norm(Q.T @ Q - np.eye(width))) + 4 * (m + 16) * UNIT * width
    reach = missed * (float(np.linalg.norm(R)) + missed) * (1 + skew) + 4 * (width + 16) * UNIT * size
    if not skew < 0.5:
        raise CertificateError("The eigenvalues of the witness could not be computed.")
    return float(np.sum(largest_eigenvalues((half + half.T) / 2, count) * (1 + skew) + reach))


def independence_bound(A: Array, k: int, witness: Witness) -> Bound:
    """The independence bound, KL divergence of rank one: ``sum A log A - sum r log r - sum c log c + S log S``."""
    if k != 1:
        raise CertificateError("A bound of this kind is known for KL of rank one only.")
    rows, columns, total = A.sum(axis=1), A.sum(axis=0), float(A.sum())
    if not 0 < total < math.inf:
        raise CertificateError("The bound is not a finite number.")
    entropies = [(A, 1.0), (rows, -1.0), (columns, -1.0), (np.array([total]), 1.0)]
    bound = sum(sign * float(np.sum(x * log(x))) for x, sign in entropies)
    size = sum(float(np.sum(x * (np.abs(log(x)) + 1.0))) for x, _ in entropies)
    return Bound(bound, (UNITS_PER_TERM + sum(A.shape)) * UNIT * size)


def pinsker_bound(part: Array, k: int, witness: Witness) -> Bound:
    """Pinsker's bound on the KL divergence, from the singular values of ``D_r^-1/2 A``, or of the witness N added to it."""
    data = margins(orient_data(part, witness))
    N = matching_witness(witness, "N", orient_data(part, witness).shape)[data.kept] if "N" in witness else None
    return dual_bound(data.A / np.sqrt(data.rows)[:, None], N, k, False, SHARE_UNITS * UNIT)
