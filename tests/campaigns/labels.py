"""Bounds on the quality of all partitions against every partition of small graphs."""

from functools import cache
from itertools import combinations

import numpy as np
import scipy.sparse as sp

import exact_labels
from cvxnmf.certificates import LabelStatement
from cvxnmf.graphs.label_bounds.verify import LabelBounds, prove_labels

OBJECTIVES = ("modularity", "cpm", "performance", "correlation")
#: Bounds other than the linear program, with efforts that take a few hundredths of a second.
OTHER_BOUNDS = {
    "by_semidefinite": 0.003,
    "by_complementary": 0.003,
    "by_routing": 0.001,
    "by_currents": 0.001,
    "by_packing": 0.001,
}


def labels_by_enumeration(rng, folder, most=9):
    """For every objective, with and without k: no partition of a small graph is above a bound, and branching ends at the best."""
    n = int(rng.integers(2, most + 1)) if rng.random() < 0.5 else most
    for objective in OBJECTIVES:
        A = _random_graph(rng, n, signed=objective == "correlation")
        resolution = float(rng.choice([1.0, 0.5, 0.1, 1.7, 1 / 3])) if objective in ("modularity", "cpm") else 1.0
        for k in (None, int(rng.integers(1, n + 1))):
            _attack(rng, A, LabelStatement(objective, resolution, k))


def _random_graph(rng, n, signed):
    """A graph of any density with loops: plain, or weighted by whole numbers, halves, small differences or any numbers."""
    ones = np.ones((n, n))
    weights = [ones, ones / 2, rng.integers(1, 6, (n, n)), 1 + 1e-9 * rng.random((n, n)), rng.random((n, n))][rng.integers(5)]
    upper = np.triu((rng.random((n, n)) < rng.uniform(0.1, 1.0)) * weights)
    if signed:
        upper = upper * rng.choice([-1, 1], (n, n), p=[0.4, 0.6])
    return upper + np.triu(upper, 1).T


def _attack(rng, A, statement):
    best = best_quality(A, statement)
    given = rng.integers(0, statement.n_clusters or 3, len(A))
    proved = prove_labels(sp.csr_array(A), given, statement, improve=True)
    quality = statement.objective_of(A)
    slack = 1e-9 * quality.magnitude()
    _require_bound(A, proved.certificate, best)
    assert proved.certificate.bound <= best + slack, f"{proved.certificate.bound!r} is left above the best, {best!r}"
    if quality.exact:
        assert proved.certificate.gap == 0, f"{proved.certificate!r} is not closed"
    assert abs(proved.certificate.value - best) <= slack, f"{proved.certificate.value!r} was found, not the best, {best!r}"
    for way, effort in OTHER_BOUNDS.items():
        bounds = LabelBounds(sp.csr_array(A), given, statement, effort, None)
        getattr(bounds, way)()
        _require_bound(A, bounds.found, best)


def _require_bound(A, certificate, best):
    size = certificate.statement.objective_of(A).magnitude()
    assert certificate.check(A) == certificate.bound
    assert certificate.bound >= best - 1e-14 * size, f"{certificate.bound!r} of {certificate.kind} is below the best, {best!r}"


def best_quality(A, statement):
    """The highest quality of all partitions into at most so many clusters."""
    offset, C, unit = exact_labels.pair_weights(A, statement.objective, statement.resolution)
    n, labels = len(A), all_partitions(len(A))
    if statement.n_clusters is not None:
        labels = labels[:, labels.max(axis=0) < statement.n_clusters]
    sums = np.zeros(labels.shape[1])
    for i, j in combinations(range(n), 2):
        sums += float(2 * C[i][j]) * (labels[i] == labels[j])
    best = labels[:, int(np.argmax(sums))]
    joined = sum(C[i][j] for i in range(n) for j in range(n) if best[i] == best[j])
    return float((offset + joined) / unit)


@cache
def all_partitions(n):
    """Labels of all partitions, a column each."""
    rows = [()]
    for _ in range(n):
        rows = [(*row, c) for row in rows for c in range(max(row, default=-1) + 2)]
    return np.array(rows, dtype=np.int8).T
