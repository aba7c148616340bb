"""Bounds for a graph whose nodes share positions in groups: those of its sums over pairs of groups, and a constant.

With positions that are the same within groups, effects ``v`` and their sums ``T_g = sum exp(v_i)``, the least of

    KL(A, E) = KL(sums of A, T_g T_h exp(w_g . w_h)) + constant,
    constant = sum A log A - sum S log S - 2 sum d log d + 2 sum D log D,

over effects with the same T has ``exp(v_i) = T_g d_i / D_g``; S are the sums of A over pairs of groups, d the degrees of nodes
and D those of groups. A bound for the sums, plus the constant, is one for all such models of the graph. The squared metric of a
group is the sum of those of its nodes, so that the penalty is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.certificates.data import sparse_graph, witness_arrays
from cvxnmf.certificates.losses import KL, LOSSES, log, require_moderate_size
from cvxnmf.certificates.rounding import UNIT, UNITS_PER_TERM, safe_proof
from cvxnmf.certificates.row_pieces import GroupSums, is_in_pieces, sum_pieces
from cvxnmf.certificates.statement import Array, CertificateError, Proof, Witness, is_count
from cvxnmf.certificates.symmetric import SymmetricStatement

#: Whole numbers up to this one are exact, and so are their sums.
LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True, eq=False)
class GroupedStatement(SymmetricStatement):
    """The symmetric problem restricted to positions that nodes share in so many groups, for KL on the conditional cone.

    The witness holds the group of each node.
    """

    groups: int = field(kw_only=True)

    def is_understood(self) -> bool:
        """Whether the terms of a grouped statement are those for which sums over groups are known."""
        if not (super().is_understood() and is_count(self.groups)):
            return False
        if LOSSES[self.loss] is not KL or not self.has_free_effects or not self.fits_diagonal or self.metric != "degree":
            raise CertificateError("Groups of nodes are known for KL on the conditional cone in the degree metric only.")
        return True

    def explain(self, kind: str) -> str:
        """What a bound of this kind rests on, and that it is restricted to positions which nodes share in groups."""
        return f"{super().explain(kind)}, for positions that nodes share in {self.groups:,} groups"

    def prove(self, A: Any, kind: str, witness: Witness) -> Proof:
        """Prove a grouped bound: that of the sums of the data over groups, and the constant that makes it one of the data."""
        with np.errstate(all="ignore"):
            return self._prove(sum_over_groups(A, self.groups, witness), kind)

    def prove_sums(self, found: GroupSums, kind: str, witness: Witness) -> Proof:
        """A grouped bound from sums that somebody has made of the data: a certificate is made from it, never checked by it."""
        with np.errstate(all="ignore"):
            return self._prove(_problem(found, _group_numbers(witness, self.groups), self.groups, witness), kind)

    def _prove(self, sums: _Sums, kind: str) -> Proof:
        restricted = SymmetricStatement(self.loss, self.cone, self.diagonal, self.trace, "own")
        proof = restricted.prove(sums.A, kind, sums.witness)
        rigorous = proof.rigorous and sums.exact
        return safe_proof(proof.bound + sums.constant, sums.rounding, proof.scale, spare=proof.spare, rigorous=rigorous)


class _Sums(NamedTuple):
    """The problem of the sums of the data over pairs of groups, with its metric recomputed in its witness.

    Its values are below those of the graph by `constant`, with `rounding` in it at most; `exact` if no sum was rounded.
    """

    A: Any
    witness: Witness
    constant: float
    rounding: float
    exact: bool


def sum_over_groups(A: Any, count: int, witness: Witness) -> _Sums:
    """Sum the data, a graph, over the groups of nodes that the witness names."""
    numbers = _group_numbers(witness, count)
    return _problem(graph_sums(A, numbers, count), numbers, count, witness)


def _group_numbers(witness: Witness, count: int) -> NDArray[np.intp]:
    """The group of each node that carries data, if none of so many groups is empty."""
    (groups,) = witness_arrays(witness, "groups")
    if groups.ndim != 1 or not np.array_equal(np.unique(groups), np.arange(count)):
        raise CertificateError("The groups of the witness do not match the data.")
    return groups.astype(np.intp)


def _problem(found: GroupSums, groups: NDArray[np.intp], count: int, witness: Witness) -> _Sums:
    """The problem that sums over pairs of groups state, with its metric recomputed, constant and rounding."""
    require_moderate_size(np.array([found.largest]), KL)
    found.pairs.sort_indices()  # sums are then taken in one order, however the data came
    (stated,), degrees = witness_arrays(witness, "metric"), found.degrees
    totals = np.bincount(groups, degrees)
    metric = _group_metric(totals, np.bincount(groups), float(degrees.sum()))
    if stated.shape != (count,) or not np.allclose(stated, metric, rtol=1e-12, atol=0.0):
        raise CertificateError("The metric of the witness is not that of the groups.")
    parts: tuple[tuple[Any, float], ...] = ((found.pairs.data, -1.0), (degrees, -2.0), (totals, 2.0))
    constant = float(sum((sign * np.sum(x * log(x)) for x, sign in parts), found.logs))
    exact = bool(found.whole and float(degrees.sum()) < LARGEST_WHOLE)
    units = UNITS_PER_TERM if exact else UNITS_PER_TERM + len(degrees)
    rounding = units * UNIT * float(sum((abs(sign) * np.sum(np.abs(x * log(x)) + x) for x, sign in parts), found.size))
    return _Sums(found.pairs, dict(witness) | {"metric": metric}, constant, rounding, exact)


def graph_sums(A: Any, groups: NDArray[np.intp], count: int) -> GroupSums:
    """Sums of the data, a graph in memory or in row pieces, over pairs of groups of the nodes that carry any."""
    if is_in_pieces(A):
        return sum_pieces(A, groups, count)
    data = sparse_graph(A)
    n, entries = data.shape[0], data.data
    if len(groups) != n:
        raise CertificateError("The groups of the witness do not match the data.")
    member = sp.csr_array((np.ones(n), groups, np.arange(n + 1)), shape=(n, count))
    sums = sp.csr_array(member.T @ (data @ member))
    sums, logs = sp.csr_array((sums + sums.T) / 2), entries * log(entries)
    whole = bool(np.all(entries == np.floor(entries)))
    degrees = np.asarray(data.sum(axis=1)).ravel()
    return GroupSums(sums, degrees, float(np.sum(logs)), float(np.sum(np.abs(logs) + entries)), float(entries.max()), whole)


def _group_metric(totals: Any, sizes: Any, total: float) -> Array:
    """The metric of groups of nodes, by few roundings from their degrees and sizes.

    The squared degree metric is ``(d_i + mean d) / sqrt(2 sum d)``, and that of a group the sum of its nodes'.
    """
    return np.asarray(np.sqrt((totals + sizes * (total / sizes.sum())) / np.sqrt(2.0 * total)))
