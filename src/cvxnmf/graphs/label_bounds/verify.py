"""How good a partition of a graph is, whoever found it: its quality, and a bound that no partition exceeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cvxnmf import validation
from cvxnmf.certificates import Certificate, CertificateError, LabelStatement
from cvxnmf.certificates.pair_objectives import OBJECTIVES, PairObjective
from cvxnmf.graphs.adapters import announced_graph
from cvxnmf.graphs.label_bounds.branching import ProvedByCuts, Search
from cvxnmf.graphs.label_bounds.budget import Budget, LabelWitness
from cvxnmf.graphs.label_bounds.currents import CurrentBound
from cvxnmf.graphs.label_bounds.given_labels import read_labels
from cvxnmf.graphs.label_bounds.packing import CyclePacking
from cvxnmf.graphs.label_bounds.routing import Router
from cvxnmf.graphs.label_bounds.semidefinite import DoublyNonnegativeBound
from cvxnmf.graphs.label_bounds.separation import cuts_witness, no_cuts
from cvxnmf.graphs.multilevel import Labels, best_labels, improved_labels, labels_after_dissolving
from cvxnmf.nmf.progress import shown
from cvxnmf.results import Iterate
from cvxnmf.results.status import keep_best
from cvxnmf.typing import GraphLike, LabelsLike

#: Up to so many nodes the linear program, and the semidefinite one, are tried.
LINEAR, SEMIDEFINITE = 700, 2000
#: Units of work for an effort of 1, about a millisecond each, and the shares of them that the linear program may take: at first,
#: and in addition once its bound is close. What is left goes to the next bound.
UNITS, LINEAR_SHARE, LINEAR_RESERVE = 90_000.0, 0.15, 0.45
#: The linear program is left after so many units for cuts without slack at the best partition, which may take a share of all.
#: It is taken up again if their bound is this close, as a share of the best quality, or the graph has no more than so many nodes.
LINEAR_FIRST, COMPLEMENTARY_SHARE, NEAR, SMALL = 1000.0, 0.9, 0.01, 40
#: Ascents from partitions that were partly dissolved before cuts are weighed, at most; the share of work that they may take, and
#: nodes in one of them that count as a unit.
DISSOLVED, DISSOLVED_SHARE, NODES_PER_UNIT = 500, 0.1, 250.0
#: A graph with at most so many edges per node is routed before it is split.
SPARSE = 3.0
#: Up to so much work for a tree from every node (nodes times edges), partitions are looked for and demands routed anywhere.
WHOLE = 1e8


def verify_labels(
    graph: GraphLike,
    labels: LabelsLike,
    objective: str = "modularity",
    resolution: float = 1.0,
    n_clusters: int | None = None,
    effort: float = 1.0,
    *,
    weight: str | None = "weight",
    callback: Callable[[Iterate], Any] | None = None,
    verbose: int = 0,
) -> Certificate:
    """Prove how far a partition of a graph can be from the best one, whoever found it.

    Parameters
    ----------
    graph : networkx or igraph graph, scipy.sparse matrix, array-like, list of tuples, or data frame
        As :func:`partition` takes it. For ``objective="correlation"`` weights may be negative.
    labels : array-like of shape (n,), dict, list of sets of nodes, Partition, or a clustering of igraph or leidenalg
        The cluster of each node, under any names: in the order of the nodes, or by the node's name.
    objective : str
        What is to be large, always over ordered pairs of nodes in one cluster, a node with itself included:
        "modularity", ``sum (A_ij - resolution d_i d_j / 2m) / 2m``; "cpm", the constant Potts model ``sum (A_ij - resolution)``;
        "performance", the share of pairs a partition gets right, see :func:`performance`; "correlation", ``sum A_ij`` of signed
        agreements.
    resolution : float
        Of modularity and the constant Potts model, read as the decimal number it is written as.
    n_clusters : int, optional
        Bound partitions into at most this many clusters only, which gives a lower bound.
    effort : float
        How much work all bounds together may spend, counted and not timed: 1 is a minute or two where the bound does not close
        before. A step that has begun is finished.
    weight : str or None
        Edge attribute with the weights, where there is one; None counts every edge as 1.
    callback : callable, optional
        Called with an :class:`Iterate` whenever the bound was computed: value, and the best bound so far.
    verbose : int
        Whether to show progress, see :func:`factorize`.

    Returns
    -------
    Certificate
        Of scope "labels": ``bound >= value``, larger is better. No partition of the nodes has a quality above the bound. Where
        data are whole numbers the proof is exact, and a gap of 0 means that the partition is optimal.

    Raises
    ------
    Interrupted
        On Ctrl-C; a KeyboardInterrupt whose `solution` is the certificate with the best bound so far.

    Examples
    --------
    >>> import networkx as nx, cvxnmf
    >>> graph = nx.barbell_graph(5, 0)
    >>> certificate = cvxnmf.verify_labels(graph, [0] * 5 + [1] * 5)
    >>> certificate.relative_gap
    0.0
    """
    name = validation.choice("objective", objective, OBJECTIVES)
    validation.number("effort", effort, minimum=0.0)
    nodes, A, *_ = announced_graph(graph, weight, name, signed=name == "correlation")
    statement = label_statement(name, resolution, n_clusters, len(nodes))
    given = read_labels(labels, nodes, statement.n_clusters)
    with shown(verbose, "verify_labels", None, callback) as told:
        return prove_labels(A, given, statement, effort, told).certificate


def label_statement(objective: str, resolution: Any, n_clusters: Any, n: int) -> LabelStatement:
    """The statement about labels that is to be verified, refused where its terms are wrong."""
    validation.number("resolution", resolution, minimum=0.0)
    if objective not in ("modularity", "cpm") and resolution != 1.0:
        validation.refuse(f"The objective {objective!r} has no resolution; leave it out.")
    most = None if n_clusters is None else min(validation.integer("n_clusters", n_clusters, minimum=1), n)
    try:
        return LabelStatement(objective, float(resolution), most)
    except CertificateError:
        validation.refuse(f"resolution must be a number of at least 0 and of moderate size, not {resolution!r}.")


class ProvedLabels(NamedTuple):
    """Verified labels: a certificate, the best partition met on the way, and the linear program if it proved the bound."""

    certificate: Certificate
    better: Labels
    search: Search | None


class LabelBounds:
    """The best label bound so far on the quality of all partitions, and its witness.

    Parameters
    ----------
    A : sparse array of shape (n, n)
        Symmetric.
    labels : ndarray of int, shape (n,)
        The partition that the certificate is about.
    statement : LabelStatement
        What is to be proved.
    effort : float
        Multiple of the usual work.
    callback : callable, optional
        Told of every bound.
    """

    def __init__(self, A: Any, labels: Labels, statement: LabelStatement, effort: float, callback: Any) -> None:
        self.A, self.labels, self.statement, self.effort, self.callback = A, labels, statement, effort, callback
        self.objective: PairObjective = statement.objective_of(A)
        self.value = float(self.objective.value(labels))
        self.started, self.count, self.stage, self.lowest = time.perf_counter(), 0, "", np.inf
        self.found = self._certificate("cuts", cuts_witness(no_cuts()))
        self.better = labels
        self.budgets: list[Budget] = []
        self.search: Search | None = None
        self.witnesses_at_work: Callable[[], list[LabelWitness]] = list

    def _certificate(self, kind: str, witness: dict[str, Any]) -> Certificate:
        """The certificate of a label bound's witness, which the trusted kernel checks."""
        held = {name: _as_float(array) for name, array in witness.items()} | {"labels": self.labels.astype(np.float64)}
        return Certificate.of_proof(self.value, kind, self.statement.prove(self.A, kind, held), self.statement, held)

    def take(self) -> Certificate:
        """Take over what the label bound at work has proved, if it is lower."""
        for kind, witness in self.witnesses_at_work():
            certificate = self._certificate(kind, witness)
            if certificate.bound < self.found.bound:
                self.found = certificate
        return self.found

    def change_labels(self) -> None:
        """Let the label certificate be about the best partition met so far."""
        self.labels, self.value = self.better, float(self.best_value)
        self.found = self._certificate(self.found.kind, dict(self.found.witness))

    def report(self, total: float) -> None:
        """Report a label bound on the sum over pairs."""
        if self.callback is not None and np.isfinite(total):
            self.count += 1
            self.lowest = min(self.lowest, float(self.objective.quality(Fraction(total))), self.found.bound)
            seconds = time.perf_counter() - self.started
            self.callback(Iterate(self.count, seconds, self.value, max(self.lowest, self.value), 0, self.stage))

    def budget(self, share: float, reserve: float = 0.0) -> Budget:
        """A share of the work of label bounds, and one in reserve, as far as the bounds before have left it."""
        everything = self.effort * UNITS
        left = max(0.0, everything - self.spent)
        units = min(share * everything, left)
        self.budgets.append(Budget(units, self.report, min(reserve * everything, left - units)))
        return self.budgets[-1]

    @property
    def spent(self) -> float:
        """Units of work that all label bounds so far have cost."""
        return sum(budget.spent for budget in self.budgets)

    @property
    def best_value(self) -> Fraction:
        """The quality of the best partition met so far while labels are verified."""
        return self.objective.value(self.better)

    @property
    def closed(self) -> bool:
        """Whether the best partition met so far is proved optimal, but for rounding where data are not whole numbers."""
        tolerance = 1e-12 if self.objective.exact else 1e-9
        return self.found.bound <= float(self.best_value) + tolerance * self.objective.magnitude()

    def target(self) -> float:
        """The target of label bounds: the sum over pairs at which no partition beats the best one met so far."""
        best = (self.best_value * Fraction(self.objective.unit) - Fraction(self.objective.offset)) * Fraction(
            self.objective.scale
        )
        return float(best) + 0.9 * self.objective.step()

    def run(self) -> None:
        """Run the label bounds that the size of the graph suggests, one after the other until one closes."""
        n, edges = self.objective.n, int(np.count_nonzero(self.objective.rows < self.objective.columns))
        in_reach = float(n) * edges <= WHOLE
        found = best_labels(self.objective, (self.labels,), self.statement.n_clusters) if in_reach else self.labels
        self.better = max(self.labels, found, key=self.objective.value)
        if n <= LINEAR:
            self.by_cuts()
        if not self.closed and n > SEMIDEFINITE:
            if self.objective.beta:
                self.by_currents()
            else:
                self.by_packing()
        if not self.closed and in_reach and (n > SEMIDEFINITE or (edges <= SPARSE * n and n > LINEAR)):
            self.by_routing()
        if not self.closed and n <= SEMIDEFINITE:
            self.by_semidefinite()

    def by_cuts(self) -> None:
        """Label bound by a linear program with cuts, cuts and a matrix without slack at the best partition, and branching."""
        self.stage = "linear program"
        first = self.budget(min(LINEAR_SHARE, LINEAR_FIRST / max(self.effort * UNITS, 1.0)))
        search = self.search = Search(self.objective, self.better, self.statement.n_clusters, first)
        self.witnesses_at_work = lambda: [search.so_far().witness()]
        self._take_cuts(search.run())
        if not self.closed:
            self.by_complementary()
        if not self.closed and (self.objective.n <= SMALL or self._is_near()):
            self.stage, search.budget = "branching", self.budget(LINEAR_SHARE, LINEAR_RESERVE)
            self._take_cuts(search.run())

    def by_complementary(self) -> None:
        """Label bound by cuts and a semidefinite matrix without slack at the best partition."""
        self.stage, budget = "complementary cuts", self.budget(COMPLEMENTARY_SHARE)
        search = self.search = self.search or Search(self.objective, self.better, self.statement.n_clusters, Budget(0.0))
        self._dissolve(budget)
        self.witnesses_at_work = lambda: self._splitting(Budget(0.0)).witnesses()
        self.better = search.weigh_complementary_cuts(self.better, budget)
        self.take()

    def _dissolve(self, budget: Budget) -> None:
        """Look for a better partition around the best one, by letting nodes leave it, without which nothing proves it."""
        units = self.objective.n / NODES_PER_UNIT
        tries = int(min(DISSOLVED, DISSOLVED_SHARE * budget.left / units))
        found = labels_after_dissolving(self.objective, self.better, self.statement.n_clusters, tries)
        self.better = max(self.better, found, key=self.objective.value)
        budget.spend(tries * units)

    def _is_near(self) -> bool:
        """Whether the label bound is close enough for the linear program to meet the best partition."""
        return self.found.bound - float(self.best_value) <= NEAR * abs(float(self.best_value))

    def _take_cuts(self, proved: ProvedByCuts) -> None:
        self.better = proved.labels
        self.found = min(self.found, self._certificate(*proved.witness()), key=lambda one: one.bound)

    def by_semidefinite(self) -> None:
        """Label bound by the doubly nonnegative program with cuts."""
        self.stage = "semidefinite program"
        splitting = self._splitting(self.budget(1.0 - LINEAR_SHARE))
        self.witnesses_at_work = splitting.witnesses
        splitting.run(self.target, self.offer)
        self.take()

    def _splitting(self, budget: Budget) -> DoublyNonnegativeBound:
        """The semidefinite label bound, begun at what is proved by cuts without slack."""
        splitting = DoublyNonnegativeBound(self.objective, self.better, self.statement.n_clusters, budget)
        if self.search is not None and self.search.weighing is not None:
            splitting.begin_with(self.search.weighing)
        return splitting

    def offer(self, labels: Labels) -> None:
        """Offer a partition while labels are verified: ascend from it, and take over the end if it is the best so far."""
        self.better = max(
            self.better, improved_labels(self.objective, labels, self.statement.n_clusters), key=self.objective.value
        )

    def by_packing(self) -> None:
        """Label bound by packing cycles that no partition satisfies, where only entries have weights."""
        self.offer(self.labels)
        self._run_to_target("cycles", CyclePacking(self.objective, self.better, self.budget(1.0)))

    def by_currents(self) -> None:
        """Label bound by demands sent as currents through regions."""
        self._run_to_target("currents", CurrentBound(self.objective, self.better, self.budget(1.0)))

    def by_routing(self) -> None:
        """Label bound by demands routed along edges."""
        self._run_to_target("routing", Router(self.objective, self.better, self.budget(1.0)))

    def _run_to_target(self, stage: str, bound: CyclePacking | CurrentBound | Router) -> None:
        """Run a label bound until it leaves no room for a better partition or its budget is spent."""
        self.stage, self.witnesses_at_work = stage, bound.witnesses
        bound.run(self.target())
        self.take()


def prove_labels(
    A: Any,
    labels: Labels,
    statement: LabelStatement,
    effort: float = 1.0,
    callback: Callable[[Iterate], Any] | None = None,
    improve: bool = False,
) -> ProvedLabels:
    """The certificate of labels, or of the best partition that is met; on Ctrl-C the best one so far, in an Interrupted."""
    bounds = LabelBounds(A, labels, statement, effort, callback)
    with keep_best(lambda _: bounds.take()):
        bounds.run()
    if improve:
        bounds.change_labels()
    return ProvedLabels(bounds.found, bounds.better, bounds.search)


def _as_float(array: Any) -> Any:
    """An array of a label witness in floating point, of which the digest covers every bit."""
    values = np.asarray(array)
    return values if values.dtype.kind == "f" else values.astype(np.float64)
