"""Bounds for all nonnegative factorisations of a rank, whoever computed them (docs/mathematics.md).

No ``X = UV'`` with nonnegative U and V of k columns has a loss on the observed entries of A below the bound. The theorems are
those of `squared_error`, and of `leading` by iterations; of `divergence` for KL, and of `streamed_divergence` and
`sparse_divergence` for large data; and of `rectangles` for both losses where entries are missing. The tables at the end say which
is for which loss. Other theorems than that of rectangles need data without missing entries: they bound a fully observed part of
the rows and columns that the witness names, whose loss is no larger than that of all observed entries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.data import observed_matrix, witness_arrays
from cvxnmf.certificates.divergence import independence_bound, ky_fan_bound, pinsker_bound, subspace_bound
from cvxnmf.certificates.leading import prove_lanczos
from cvxnmf.certificates.losses import FACTOR_LOSSES, KL, LOSSES, SQUARED_ERROR, is_unbounded_loss, require_moderate_size
from cvxnmf.certificates.rectangles import prove_rectangles
from cvxnmf.certificates.rounding import UNIT, UNITS_PER_TERM, Bound, is_finite
from cvxnmf.certificates.row_chunks import is_read_in_chunks, summarise
from cvxnmf.certificates.sparse_divergence import prove_sparse_ky_fan
from cvxnmf.certificates.squared_error import dual_bound, gram_energy
from cvxnmf.certificates.statement import ZERO, Array, CertificateError, Kind, Proof, Statement, Witness, is_count
from cvxnmf.certificates.streamed_divergence import prove_streamed_ky_fan


@dataclass(frozen=True, eq=False)
class RankStatement(Statement):
    """Minimise the loss of ``UV'`` over the observed entries of A; U, V nonnegative with so many columns.

    The loss is "mse", "kl" or another beta divergence, for which nothing is proved. `symmetric`: V = U. With scaling "degree",
    for symmetric factors and squared error, the loss is ``sum (A - UU')_ij^2 / (d_i d_j)`` with the row sums d.
    """

    loss: str
    n_components: int
    symmetric: bool
    scaling: str | None = None

    form = "rank"
    scope = "rank-k"

    def is_understood(self) -> bool:
        """Whether loss and scaling of a rank statement are known and go together, and the number of columns is one."""
        known = self.loss in FACTOR_LOSSES or (self.is_unbounded and not self.symmetric)
        if not (known and is_count(self.n_components) and isinstance(self.symmetric, bool)):
            return False
        return self.scaling is None or (self.scaling == "degree" and self.symmetric and self.has_squared_error)

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of rank bounds known for the loss; of other beta divergences only that they cannot be negative."""
        return KINDS.get(self.loss, ZERO)

    def explain(self, kind: str) -> str:
        """What a rank bound of this kind rests on, or why none better than 0 is known."""
        if kind != "zero":
            return super().explain(kind)
        if self.kinds == ZERO:
            return "no bound for this loss is known but that it cannot be negative"
        return "nothing better than 0 was sought or found; verify looks for more, unless the rank reaches a side of the data"

    @property
    def has_squared_error(self) -> bool:
        """Whether the loss of a rank statement is squared error."""
        return self.loss in LOSSES and LOSSES[self.loss] is SQUARED_ERROR

    @property
    def is_unbounded(self) -> bool:
        """Whether the loss of a rank statement is of factors only: data have no scale, and 0 is proved unless it has `KINDS`."""
        return is_unbounded_loss(self.loss)

    @property
    def is_plain(self) -> bool:
        """Whether a rank statement is about factors U and V of the data as they are, neither symmetric nor scaled."""
        return not (self.symmetric or self.scaling)

    def scale(self, A: Any) -> float:
        """Scale of a rank statement: the sum of observed entries, or squares; their number where nothing but 0 is proved."""
        if self.is_unbounded:
            return float(np.prod(A.shape))
        loss = LOSSES[self.loss]
        if is_read_in_chunks(A) and self.is_plain:
            return summarise(A, loss).total
        data = self.data(A)
        return float(np.nansum(loss.magnitudes(data.data if sp.issparse(data) else data)))

    @property
    def has_scale(self) -> bool:
        """Whether the scale of a rank statement has the units of the value, which a number of entries has not."""
        return not self.is_unbounded

    def data(self, A: Any) -> Any:
        """The data of a rank statement as float64, NaN where entries are missing, or sparse; scaled as the statement says."""
        data = observed_matrix(A, self.symmetric)
        return data if self.scaling is None else _degree_scaled(data)

    def scaling_error(self, A: Any) -> float:
        """Bound on the relative error of every entry that a rank statement scales by degrees."""
        return 0.0 if self.scaling is None else (A.shape[0] + 16) * UNIT


def _degree_scaled(A: Any) -> Any:
    """Data scaled by degrees for a rank bound: ``A_ij / sqrt(d_i d_j)``, d the row sums; rows without entries stay.

    Each entry is off by the roundings of a row sum, a root, a quotient and two products, which `scaling_error` allows for.
    """
    require_moderate_size(A.data if sp.issparse(A) else A, KL)
    sums = np.asarray(A.sum(axis=1)).ravel()
    if not (is_finite(sums) and sums.max(initial=0.0) > 0):
        raise CertificateError("The row sums of the data must be finite, with some of them positive.")
    inverse = 1.0 / np.sqrt(np.where(sums > 0, sums, 1.0))
    if sp.issparse(A):
        return sp.csr_array(sp.diags_array(inverse) @ A @ sp.diags_array(inverse))
    return A * inverse[:, None] * inverse[None, :]


def _observed_part(data: Any, witness: Witness, symmetric: bool) -> Array:
    """The rows and columns that the witness of a rank bound names, all of them if it names none; none may be missing."""
    dense = np.asarray(data.toarray() if sp.issparse(data) else data)
    if "rows" in witness:
        rows, columns = (part > 0 for part in witness_arrays(witness, "rows", "columns"))
        if rows.shape != dense.shape[:1] or columns.shape != dense.shape[1:] or not (rows.any() and columns.any()):
            raise CertificateError("The rows and columns of the witness do not match the data.")
        if symmetric and not np.array_equal(rows, columns):
            raise CertificateError("The rows and columns of the witness must agree for a symmetric bound.")
        dense = dense[np.ix_(rows, columns)]
    if not is_finite(dense):
        raise CertificateError("The data have missing entries where the witness needs them.")
    return dense


def prove_dual(A: Any, statement: RankStatement, witness: Witness) -> Proof:
    """The rank bound on squared error from the dual point N of the witness."""
    data = statement.data(A)
    part = _observed_part(data, witness, statement.symmetric)
    N = witness_arrays(witness, "N")[0] if "N" in witness else None
    bound = dual_bound(part, N, statement.n_components, statement.symmetric, statement.scaling_error(data))
    return bound.proof(statement.scale(A))


def prove_tail(A: Any, statement: RankStatement, witness: Witness) -> Proof:
    """The rank bound by the tail of the singular values of the data; of files and dask arrays in row chunks."""
    if is_read_in_chunks(A) and "rows" not in witness and statement.is_plain:
        return chunked_tail(A, statement)
    return prove_dual(A, statement, {name: witness[name] for name in witness if name != "N"})


def chunked_tail(A: Any, statement: RankStatement) -> Proof:
    """The rank bound by the tail of the singular values in bounded memory, from the smaller Gram matrix over row chunks."""
    summary = summarise(A, SQUARED_ERROR, gram=True)
    if not summary.complete:
        raise CertificateError("The data have missing entries where the witness needs them.")
    assert summary.gram is not None
    return gram_tail(summary.gram, summary.total, summary.largest, max(A.shape), statement)


def gram_tail(G: Array, energy: float, largest: float, count: int, statement: RankStatement) -> Proof:
    """The rank bound by the tail of the singular values, from G, the smaller of ``A'A`` and ``AA'``, and ``energy = ||A||²``.

    Entries of G are sums of `count` products in any order, with `count` the larger side of A; the energy was summed pairwise in
    row chunks and exactly over them. `largest` is the largest entry of A.
    """
    if not (statement.has_squared_error and statement.is_plain):
        raise CertificateError("A bound of this kind is known for the squared error of factors U and V only.")
    require_moderate_size(np.array([largest]), SQUARED_ERROR)
    taken, spare = gram_energy(G, count, float(np.sqrt(energy)), statement.n_components)
    return Bound(energy - taken, UNITS_PER_TERM * UNIT * (energy + taken), spare).proof(energy)


def of_divergence(bound: Callable[[Array, int, Witness], Bound]) -> Callable[[Any, RankStatement, Witness], Proof]:
    """The prover of a rank bound on the divergence of a fully observed part of the data."""

    def prove(A: Any, statement: RankStatement, witness: Witness) -> Proof:
        part = _observed_part(statement.data(A), witness, statement.symmetric)
        require_moderate_size(part, KL)
        return bound(part, statement.n_components, witness).proof(statement.scale(A))

    return prove


def prove_ky_fan(A: Any, statement: RankStatement, witness: Witness) -> Proof:
    """The Ky Fan rank bound of the witness y: a matrix, given on the entries of sparse data, or computed from them by a rule."""
    if "directions" in witness:
        return prove_streamed_ky_fan(A, statement, witness)
    sparse = "y" in witness and np.ndim(witness["y"]) == 1
    dense = functools.partial(ky_fan_bound, symmetric=statement.symmetric)
    return (prove_sparse_ky_fan if sparse else of_divergence(dense))(A, statement, witness)


RECTANGLES = {"rectangles": Kind("fully observed rectangles that overlap with weights", prove_rectangles)}
SQUARED_ERROR_KINDS = (
    ZERO
    | {
        "dual": Kind("a dual point", prove_dual),
        "tail": Kind("the singular values that no matrix of this rank can have", prove_tail),
        "lanczos": Kind("singular values found by iterations from random vectors", prove_lanczos),
    }
    | RECTANGLES
)
KL_KINDS = (
    ZERO
    | {
        "independence": Kind("the best model of rank one is the product of the margins", of_divergence(independence_bound)),
        "ky-fan": Kind("the largest singular values of a dual point beside the margins", prove_ky_fan),
        "subspace": Kind("distances of the columns from every subspace of this rank", of_divergence(subspace_bound)),
        "pinsker": Kind("Pinsker's inequality and singular values", of_divergence(pinsker_bound)),
    }
    | RECTANGLES
)
#: The kinds of bounds by loss; of other losses only that they cannot be negative.
KINDS: dict[str, dict[str, Kind]] = {"mse": SQUARED_ERROR_KINDS, "kl": KL_KINDS}
