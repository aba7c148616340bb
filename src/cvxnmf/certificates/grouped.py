"""Bounds for a graph whose nodes share positions in groups: those of its sums over pairs of groups, and a constant.

With positions that are the same within groups, effects ``v`` and their sums ``T_g = sum exp(v_i)``, the least of

    KL(A, E) = KL(sums of A, T_g T_h exp(w_g . w_h)) + constant,
    constant = sum A log A - sum S log S - 2 sum d log d + 2 sum D log D,

over effects with the same T has ``exp(v_i) = T_g d_i / D_g``; S are the sums of A over pairs of groups, d the degrees of nodes
and D those of groups. A bound for the sums, plus the constant, is one for all such models of the graph. The squared metric of a
group is the sum of those of its nodes, so that the penalty is the same.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.data import sparse_data, witness_arrays
from cvxnmf.certificates.losses import KL, LOSSES, log
from cvxnmf.certificates.rounding import UNIT, UNITS_PER_TERM, safe_bound
from cvxnmf.certificates.statement import Array, CertificateError, Proof, Witness, is_count
from cvxnmf.certificates.symmetric import SymmetricStatement

#: Whole numbers up to this one are exact, and so are their sums.
LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True, eq=False)
class GroupedStatement(SymmetricStatement):
    """The symmetric problem restricted to positions that nodes share in groups, for KL on the conditional cone.

    Attributes
    ----------
    groups : int
        Number of groups; the witness holds the group of each node.
    """

    groups: int

    def is_understood(self) -> bool:
        """Whether the terms are those for which sums over groups are known."""
        if not (super().is_understood() and is_count(self.groups)):
            return False
        if LOSSES[self.loss] is not KL or not self.conditional or not self.fits_diagonal or self.metric != "degree":
            raise CertificateError("Groups of nodes are known for KL on the conditional cone in the degree metric only.")
        return True

    def explain(self, kind: str) -> str:
        """What a bound of this kind rests on, and what it is restricted to."""
        return f"{super().explain(kind)}, for positions that nodes share in {self.groups:,} groups"

    def prove(self, A: Any, kind: str, witness: Witness) -> Proof:
        """The bound of the sums of the data over groups, and the constant that makes it one of the data."""
        with np.errstate(all="ignore"):
            sums = _summed(A, self.groups, witness)
        terms = {field.name: getattr(self, field.name) for field in dataclasses.fields(SymmetricStatement)}
        proof = SymmetricStatement(**terms | {"metric": "own"}).prove(sums.A, kind, sums.witness)
        bound = safe_bound(proof.bound + sums.constant, sums.lost)
        return Proof(bound, proof.rigorous and sums.exact, proof.scale)


class _Sums(NamedTuple):
    """The problem of the sums.

    Attributes
    ----------
    A : csr_array
        Sums of the data over pairs of groups.
    witness : mapping
        Of the problem of the sums.
    constant, lost : float
        What its values are below those of the graph, and a bound on the rounding in that.
    exact : bool
        Whether no sum was rounded.
    """

    A: Any
    witness: Witness
    constant: float
    lost: float
    exact: bool


def _summed(A: Any, count: int, witness: Witness) -> _Sums:
    """Sum data over the groups of the witness."""
    data = sparse_data(A)
    n = data.shape[0]
    groups, metric = witness_arrays(witness, "groups", "metric")
    if not (groups.shape == (n,) and np.array_equal(np.unique(groups), np.arange(count))):
        raise CertificateError("The groups of the witness do not match the data.")
    numbers = groups.astype(np.intp)
    degrees = np.asarray(data.sum(axis=1)).ravel()
    totals, squares = np.bincount(numbers, degrees), np.bincount(numbers, _squared_metric(degrees))
    if metric.shape != (count,) or not np.allclose(metric**2, squares, rtol=1e-12, atol=0.0):
        raise CertificateError("The metric of the witness is not that of the groups.")
    member = sp.csr_array((np.ones(n), numbers, np.arange(n + 1)), shape=(n, count))
    sums = sp.csr_array(member.T @ (data @ member))
    sums = sp.csr_array((sums + sums.T) / 2)
    parts: tuple[tuple[Any, float], ...] = ((data.data, 1.0), (sums.data, -1.0), (degrees, -2.0), (totals, 2.0))
    constant = float(sum(sign * np.sum(x * log(x)) for x, sign in parts))
    exact = bool(np.all(data.data == np.floor(data.data)) and float(degrees.sum()) < LARGEST_WHOLE)
    units = UNITS_PER_TERM if exact else UNITS_PER_TERM + n
    lost = units * UNIT * float(sum(abs(sign) * np.sum(np.abs(x * log(x)) + x) for x, sign in parts))
    inner = {name: array for name, array in witness.items() if name != "groups"}
    return _Sums(sums, inner, constant, lost, exact)


def _squared_metric(degrees: Array) -> Array:
    raised = degrees + degrees.sum() / len(degrees)
    return np.asarray(raised / np.sqrt(raised.sum()))
