"""What a bound for all factorisations of a rank is sought for, and what was found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf import certificates
from cvxnmf.certificates import RankStatement, WeightedRankStatement
from cvxnmf.linalg.arrays import FloatArray


class Limits(NamedTuple):
    """Sizes up to which a bound may form dense matrices, and decompose them."""

    #: Rows or columns, whichever are fewer, of sparse data whose singular values are all computed if an effort is asked for.
    dense_side: int = 3000
    #: Entries of data for which a dual matrix is sought.
    dense_size: int = 40_000_000
    #: Entries of sparse data that are filled without being asked.
    unasked_size: int = 300_000
    #: Flops that may be spent on a dual matrix without being asked, and the most and fewest decompositions these buy.
    unasked_work: float = 5e10
    most_unasked: int = 150
    fewest_unasked: int = 10

    def may_fill(self, A: Any, effort: int | None) -> bool:
        """Whether sparse data may be made dense for a bound."""
        size = float(np.prod(A.shape, dtype=float))
        asked = bool(effort) and min(A.shape) <= self.dense_side and size <= self.dense_size
        return asked or size <= self.unasked_size

    def decompositions(self, shape: tuple[int, int], effort: int | None) -> int:
        """How many decompositions a bound may take: the effort, or what pays where none is asked for."""
        if np.prod(shape, dtype=float) > self.dense_size:
            return 0
        if effort is not None:
            return effort
        short, long = sorted(shape)
        bought = int(self.unasked_work / (2.0 * long * short**2 + 10.0 * short**3))
        return min(bought, self.most_unasked) if bought >= self.fewest_unasked else 0


DEFAULT_LIMITS = Limits()


class Part(NamedTuple):
    """The fully observed part of the data that a bound is computed on."""

    A: FloatArray
    witness: dict[str, FloatArray]


class Found(NamedTuple):
    """A bound that was found, its kind, witness and proof."""

    kind: str
    witness: dict[str, FloatArray]
    proof: certificates.Proof


class Goal(NamedTuple):
    """What a bound is sought for: data in memory, the statement, the value to be certified, and the effort."""

    A: Any
    statement: RankStatement
    value: float
    effort: int | None
    limits: Limits

    @property
    def scaled_data(self) -> Any:
        """The data of the goal in the scaling of the statement that its bound is about."""
        return self.A if self.statement.scaling is None else degree_scaled(self.A)[0]

    @property
    def may_fill(self) -> bool:
        """Whether a bound may form dense arrays of the size of the goal's data."""
        return not sp.issparse(self.A) or self.limits.may_fill(self.A, self.effort)

    def is_full_rank(self, A: Any) -> bool:
        """Whether the rank of the goal reaches a side of the data, so that any matrix has this rank and no bound is above 0."""
        return self.statement.n_components >= min(A.shape) and not self.statement.symmetric

    def prove_bound(self, kind: str, witness: dict[str, FloatArray]) -> list[Found]:
        """The bound that a witness proves for the goal, or nothing, as for an observed part that is all zero."""
        return prove_witness(self.A, self.statement, kind, witness)


class WeightedGoal(NamedTuple):
    """What a bound is sought for in a loss with weights, of every row, as a column, or of every entry."""

    A: Any
    statement: WeightedRankStatement
    value: float
    effort: int | None
    limits: Limits
    weights: FloatArray

    def prove_bound(self, kind: str, witness: dict[str, FloatArray]) -> list[Found]:
        """The bound that a witness with the weights proves for the weighted goal, or nothing."""
        return prove_witness(self.A, self.statement, kind, witness | {"W": self.weights})


def prove_witness(A: Any, statement: certificates.Statement, kind: str, witness: dict[str, FloatArray]) -> list[Found]:
    """The bound that a witness proves for a statement about the data, in a list, empty if the check refuses."""
    try:
        return [Found(kind, witness, statement.prove(A, kind, witness))]
    except certificates.CertificateError:
        return []


def degree_scaled(A: Any) -> tuple[Any, FloatArray]:
    """The data scaled by degrees for a bound, ``A_ij / sqrt(d_i d_j)``, and the roots of d, 1 for nodes without entries."""
    degrees = np.asarray(A.sum(axis=1)).ravel()
    roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))
    inverse = sp.diags_array(1.0 / roots)
    return sp.csr_array(inverse @ A @ inverse), roots


def observed_part(A: Any, symmetric: bool) -> Part | None:
    """The part of the data a bound is about: all, or without missing entries, rows and columns with most of them dropped."""
    dense = np.asarray(A.toarray() if sp.issparse(A) else A)
    missing = np.isnan(dense)
    if not missing.any():
        return Part((dense + dense.T) / 2 if symmetric else dense, {})
    if symmetric:
        missing = missing | missing.T
    rows, columns = np.ones(dense.shape[0], dtype=bool), np.ones(dense.shape[1], dtype=bool)
    while (left := missing[np.ix_(rows, columns)]).any():
        by_row, by_column = left.mean(axis=1), left.mean(axis=0)
        if symmetric or by_row.max() >= by_column.max():
            rows[np.flatnonzero(rows)[int(np.argmax(by_row))]] = False
        else:
            columns[np.flatnonzero(columns)[int(np.argmax(by_column))]] = False
        if symmetric:
            columns = rows
        if not (rows.any() and columns.any()):
            return None
    part = dense[np.ix_(rows, columns)]
    witness = {"rows": rows.astype(np.float64), "columns": columns.astype(np.float64)}
    return Part((part + part.T) / 2 if symmetric else part, witness)
