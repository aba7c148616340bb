"""Statements about clusters of a graph: no partition of its nodes has a higher quality.

The qualities are those of `pair_objectives`, sums of whole numbers L over pairs of nodes in one cluster. The theorems that bound
the sum over all partitions are in `label_cuts`, `label_semidefinite`, `label_routing` and `label_currents`. Here their witnesses
are read, and what they prove becomes a bound on the quality: lowered to the next sum that a partition can have, and rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from cvxnmf.certificates.data import witness_array, witness_arrays
from cvxnmf.certificates.label_currents import Currents, bound_by_currents
from cvxnmf.certificates.label_cuts import Branch, Cuts, bound_by_cases, check_cuts
from cvxnmf.certificates.label_routing import Routing, bound_by_routing
from cvxnmf.certificates.label_semidefinite import bound_by_semidefinite
from cvxnmf.certificates.pair_objectives import OBJECTIVES, Integers, PairBound, PairObjective, pair_objective
from cvxnmf.certificates.statement import CertificateError, Kind, Proof, Statement, Witness, is_count, is_weight

#: Whole numbers in a witness stay below this: floating-point numbers hold them exactly.
LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True, eq=False)
class LabelStatement(Statement):
    """A bound on the quality of partitions; larger is better.

    Attributes
    ----------
    objective : str
        "modularity", "cpm", "performance" or "correlation"; see `pair_objectives`.
    resolution : float
        Of modularity and the constant Potts model, read as the decimal number it is written as.
    n_clusters : int, optional
        The bound holds for partitions into at most this many clusters.
    """

    form: ClassVar[str] = "labels"
    scope: ClassVar[str] = "labels"
    sense: ClassVar[str] = "max"

    objective: str
    resolution: float
    n_clusters: int | None = None

    def is_understood(self) -> bool:
        """Whether every term of a label statement has a type and a value that the proofs know."""
        counted = self.n_clusters is None or is_count(self.n_clusters)
        return isinstance(self.objective, str) and self.objective in OBJECTIVES and is_weight(self.resolution) and counted

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of label bounds that can be proved."""
        return KINDS

    def scale(self, A: Any) -> float:
        """Size of the data of a label statement, as its quality counts weights."""
        return self.objective_of(A).magnitude()

    def objective_of(self, A: Any) -> PairObjective:
        """The quality of partitions that a label statement is about, on these data."""
        return pair_objective(A, self.objective, self.resolution)


def round_up(exact: Fraction) -> float:
    """The least floating-point number that is not below an exact label bound."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _prove_by(bound: Callable[[PairObjective, Witness, int | None], PairBound]) -> Any:
    """The prover of a kind of label bound, given its bound on the sum over pairs for at most so many clusters."""

    def prove(A: Any, statement: LabelStatement, witness: Witness) -> Proof:
        objective, k = statement.objective_of(A), statement.n_clusters
        if k is not None and k > objective.n:
            raise CertificateError("The certificate is about more clusters than there are nodes.")
        value = objective.value(labels_of(witness, objective.n, k))
        total, spare = bound(objective, witness, k)
        highest, least = (objective.quality(objective.highest_attainable(some)) for some in (total, total - spare))
        if objective.exact and highest < value:
            raise CertificateError("The labels of the certificate are better than its bound allows.")
        at_value = objective.exact and highest == value
        stated = float(value) if at_value else max(round_up(highest), float(value))
        return Proof(stated, True, objective.magnitude(), math.nextafter(float(highest - least), 0.0), float(value))

    return prove


def labels_of(witness: Witness, n: int, n_clusters: int | None) -> Integers:
    """The labels that a label certificate is about, numbered from 0."""
    labels = _whole(witness, "labels")
    if labels.shape != (n,):
        raise CertificateError("The labels of the certificate are of another number of nodes.")
    names, numbers = np.unique(labels, return_inverse=True)
    if n_clusters is not None and len(names) > n_clusters:
        raise CertificateError("The labels of the certificate have more clusters than it states.")
    return numbers.astype(np.int64)


def _whole(witness: Witness, name: str) -> Integers:
    """An array of whole numbers from the witness of a label bound, which files hold as floating-point ones."""
    array = witness_array(witness, name)
    if np.any((array % 1 != 0) | (np.abs(array) >= LARGEST_WHOLE)):
        raise CertificateError(f"The witness must hold whole numbers ({name}).")
    return np.asarray(array, dtype=np.int64)


def _grain(witness: Witness) -> int:
    """The grain of a label bound: into how many parts a unit of pair weight is divided."""
    grain = _whole(witness, "grain")
    if grain.shape != () or not grain >= 1:
        raise CertificateError("The grain of the certificate must be a whole number of at least 1.")
    return int(grain)


def _cuts(witness: Witness, objective: PairObjective, grain: int, cases: int) -> Cuts:
    arrays = [_whole(witness, f"cut_{name}") for name in Cuts._fields]
    if any(array.ndim != 1 for array in arrays):
        raise CertificateError("The cuts of the certificate have wrong shapes.")
    cuts = Cuts(*arrays)
    check_cuts(cuts, objective, grain, cases)
    return cuts


def _by_cuts(objective: PairObjective, witness: Witness, k: int | None) -> PairBound:
    table, grain = _whole(witness, "branches"), _grain(witness)
    if table.ndim != 2 or table.shape[1] != 4:
        raise CertificateError("The cases of the certificate have wrong shapes.")
    cuts = _cuts(witness, objective, grain, len(table) + 1)
    return PairBound(bound_by_cases(objective, cuts, [Branch(*row) for row in table.tolist()], grain, k))


def _by_semidefinite(objective: PairObjective, witness: Witness, k: int | None) -> PairBound:
    grain = _grain(witness)
    cuts = _cuts(witness, objective, grain, 1)
    return PairBound(bound_by_semidefinite(objective, cuts, _whole(witness, "y"), _whole(witness, "N"), grain, k))


def _by_routing(objective: PairObjective, witness: Witness, k: int | None) -> PairBound:
    lengths, share = witness_array(witness, "lengths"), witness_array(witness, "share")
    if lengths.ndim != 3 or share.shape != ():
        raise CertificateError("The routing of the certificate has wrong shapes.")
    return bound_by_routing(objective, Routing(_whole(witness, "turns"), lengths, float(share)))


def _by_currents(objective: PairObjective, witness: Witness, k: int | None) -> PairBound:
    regions = _whole(witness, "regions")
    if np.any((regions < 0) | (regions >= objective.n)):
        raise CertificateError("The currents of the certificate name regions that do not exist.")
    return bound_by_currents(objective, Currents(regions, *witness_arrays(witness, "conductances", "flows", "own")))


SEMIDEFINITE = "a positive semidefinite matrix and inequalities that all partitions satisfy"
KINDS = {
    "cuts": Kind("inequalities that all partitions satisfy, with multipliers", _prove_by(_by_cuts)),
    "semidefinite": Kind(SEMIDEFINITE, _prove_by(_by_semidefinite)),
    "routing": Kind("demands routed along the edges", _prove_by(_by_routing)),
    "currents": Kind("demands sent as currents through regions of the graph", _prove_by(_by_currents)),
}
