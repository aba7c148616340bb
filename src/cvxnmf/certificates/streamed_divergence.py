"""The Ky Fan bound of `divergence` in two passes over row chunks: y is computed from the data by a rule that the witness gives.

The best y of a row depends on the other rows through a few directions D of the columns and a centre g alone: with ``q = v y`` and
the row's shares p, it is the q of largest ``sum p log q - v q - |D'(q - g)|^2 / 2``. Any y proves a bound, so that it need not be
found exactly: a fixed number of proximal steps is taken. Of rank one there are no directions, and the bound is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.certificates.data import witness_arrays
from cvxnmf.certificates.divergence import PROJECTION_UNITS, ky_fan_total, sum_with_error
from cvxnmf.certificates.losses import KL, log, require_moderate_size
from cvxnmf.certificates.rounding import UNIT, Bound, is_finite, row_slices, row_sums, singular_value_bounds
from cvxnmf.certificates.row_chunks import CHUNK_ENTRIES, is_read_in_chunks, row_chunks
from cvxnmf.certificates.statement import Array, CertificateError, Proof, Witness

if TYPE_CHECKING:
    from cvxnmf.certificates.rank import RankStatement

#: Proximal steps towards the y of a row.
STEPS = 40


class Rule(NamedTuple):
    """Rule by which streamed rows get their y: roots v of the shares of columns, the centre g, and directions D."""

    v: Array
    centre: Array
    directions: Array

    def point(self, A: Array, rows: Array) -> Array:
        """The y of streamed rows with these sums, by the rule; positive where A is."""
        p, v, D = A / rows[:, None], self.v, self.directions
        stiffness = float(np.linalg.norm(D, 2)) ** 2
        q = 0.5 * (p / v + v) if stiffness > 0 else p / v
        for _ in range(STEPS if stiffness > 0 else 0):
            b = 0.5 * (q - (v + ((q - self.centre) @ D) @ D.T) / stiffness)
            root = np.sqrt(b * b + p / stiffness)
            q = np.where(b > 0, b + root, p / stiffness / np.maximum(root - b, np.finfo(np.float64).tiny))
        y = q / v
        return np.where((A > 0) & ~(y > 0), 1.0, y)


class Sums(NamedTuple):
    """Streamed sums for the Ky Fan bound: ``sum A log y``, the absolute ones, and ``G'G``, ``G'u`` with ``G = uv' y``."""

    logs: float
    size: float
    gram: Array
    along: Array


def prove_streamed_ky_fan(A: Any, statement: RankStatement, witness: Witness) -> Proof:
    """The Ky Fan bound on the divergence, streamed in two passes, from the rule that the witness gives."""
    if not statement.is_plain:
        raise CertificateError("A bound of this kind is known for the KL of factors U and V only.")
    data = A if is_read_in_chunks(A) else statement.data(A)
    centre, directions = witness_arrays(witness, "centre", "directions")
    if centre.shape != data.shape[1:] or directions.ndim != 2 or len(directions) != data.shape[1] or 0 in directions.shape:
        raise CertificateError("The witness does not match the columns of the data.")
    columns = _column_sums(data)
    kept, total = columns > 0, math.fsum(columns)
    rule = Rule(np.sqrt(columns[kept] / total), centre[kept], directions[kept])
    sums = _sums(data, kept, total, rule)
    return _bound(sums, rule.v, total, data.shape, statement.n_components).proof(statement.scale(A))


def _column_sums(data: Any) -> Array:
    """Streamed sums of columns within a few units: pairwise in row chunks, exactly over them."""
    parts, largest = [], 0.0
    for part in _dense_rows(data):
        if not is_finite(part):
            raise CertificateError("The data have missing entries where the witness needs them.")
        parts.append(row_sums(part.T)[0])
        largest = max(largest, float(part.max(initial=0.0)))
    require_moderate_size(np.array([largest]), KL)
    return np.array([math.fsum(column) for column in zip(*parts, strict=True)])


def _dense_rows(data: Any) -> Iterator[Array]:
    """Some dense rows of streamed data at a time."""
    for chunk in row_chunks(data):
        for rows in row_slices(chunk.shape[0], chunk.shape[1], CHUNK_ENTRIES):
            yield np.asarray(chunk[rows].toarray() if sp.issparse(chunk) else chunk[rows])


def _sums(data: Any, kept: NDArray[np.bool_], total: float, rule: Rule) -> Sums:
    """Sums of the second pass over streamed rows, for the Ky Fan bound."""
    n = len(rule.v)
    logs, sizes, gram, along = [], [], np.zeros((n, n)), np.zeros(n)
    for part in _dense_rows(data):
        A = np.ascontiguousarray(part[:, kept])
        rows = row_sums(A)[0]
        A, rows = A[rows > 0], rows[rows > 0]
        y, u = rule.point(A, rows), np.sqrt(rows / total)
        if not (is_finite(y) and y.min(initial=0.0) >= 0):
            raise CertificateError("The witness must not be negative, and positive where the data are.")
        G = u[:, None] * y * rule.v
        gram += G.T @ G
        along += G.T @ u
        log_y = log(y)
        logs.append(float(np.sum(A * log_y)))
        sizes.append(float(np.sum(A * np.abs(log_y))))
    return Sums(math.fsum(logs), math.fsum(sizes), gram, along)


def _bound(sums: Sums, v: Array, total: float, shape: tuple[int, int], k: int) -> Bound:
    """Streamed Ky Fan bound ``sum A log y + S - S u'Gv - S sum_{i < k} sigma_i((I - uu') G (I - vv'))``.

    Entries of ``G'G`` and ``G'u`` are sums of as many terms as there are rows, in any order, and taking off u and v leaves sums
    of as many as there are columns: twice all these terms allow for both.
    """
    energy = float(np.trace(sums.gram)) * (1 + 2 * sum(shape) * UNIT)
    norm, mass = math.sqrt(max(energy, 0.0)), float(sums.along @ v)
    count, leading = min(k - 1, len(v)), 0.0
    if count > 0:
        M = sums.gram - np.outer(sums.along, sums.along)
        M -= np.outer(v, v @ M)
        M -= np.outer(M @ v, v)
        values = singular_value_bounds((M + M.T) / 2, count, 2 * (sum(shape) + PROJECTION_UNITS), norm)
        leading = sum_with_error(values, 2 * (sum(shape) + PROJECTION_UNITS) * UNIT * norm)
    return ky_fan_total(sums.logs, sums.size, total, mass, leading, shape)
