"""Label certificates against twins in fractions, and against all partitions of small graphs.

``CVXNMF_CAMPAIGN=500 pytest tests/certificates/test_label_twins.py`` checks as many graphs for every objective; the suite a few.
"""

import os
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import exact_labels as exact
from cvxnmf.certificates import LabelStatement
from cvxnmf.graphs.label_bounds.verify import LabelBounds

GRAPHS = int(os.environ.get("CVXNMF_CAMPAIGN", "5"))
LARGEST = 9 if "CVXNMF_CAMPAIGN" in os.environ else 7


def draw(seed, objective):
    """A random graph, weighted or signed, with the terms of a statement."""
    rng = np.random.default_rng([seed, len(objective)])
    n = int(rng.integers(2, LARGEST + 1))
    weights = [np.ones((n, n)), rng.integers(1, 6, (n, n)), rng.integers(1, 6, (n, n)) / 4, rng.random((n, n))][rng.integers(4)]
    upper = np.triu((rng.random((n, n)) < rng.uniform(0.2, 0.9)) * weights)
    if objective == "correlation":
        upper = upper * rng.choice([-1, 1], (n, n))
    resolution = float(rng.choice([1.0, 0.5, 0.1, 1.7])) if objective in ("modularity", "cpm") else 1.0
    k = int(rng.integers(1, n + 1)) if seed % 2 else None
    return upper + np.triu(upper, 1).T, LabelStatement(objective, resolution, k)


def bounded(A, statement, way, effort):
    bounds = LabelBounds(sp.csr_array(A), np.zeros(len(A), dtype=np.int64), statement, effort, None)
    getattr(bounds, way)()
    return bounds.found


@pytest.mark.parametrize("objective", ["modularity", "cpm", "performance", "correlation"])
@pytest.mark.parametrize("way", ["by_cuts", "by_semidefinite", "by_routing", "by_currents"])
def test_bounds_agree_with_their_twins_and_no_partition_is_above(objective, way):
    for seed in range(GRAPHS):
        A, statement = draw(seed, objective)
        found = bounded(A, statement, way, 0.5 if way == "by_cuts" else 0.003)
        terms = (objective, statement.resolution)
        best = exact.optimum(A, *terms, statement.n_clusters)
        pairs = statement.objective_of(A)
        assert Fraction(found.value) == pytest.approx(exact.quality(A, np.zeros(len(A)), *terms), rel=1e-12, abs=1e-12), seed
        # a bound that meets the optimum is rounded to the nearest number; weights that are not whole are known up to rounding
        assert found.bound >= float(best) - (0.0 if pairs.exact else 1e-12 * pairs.magnitude()), seed
        if way == "by_cuts":
            assert found.bound <= float(best) + (1e-15 if pairs.exact else 1e-8) * pairs.magnitude(), seed
        if pairs.exact and found.kind == way[3:]:
            check_against_twin(A, statement, found, pairs)


def check_against_twin(A, statement, found, pairs):
    """The exact bound, from which the certificate may differ by divisibility and, but for cuts, by allowances for rounding."""
    offset, C, unit = exact.pair_weights(A, statement.objective, statement.resolution)
    ratio = Fraction(int(pairs.unit)) / unit
    whole = [[c * ratio for c in row] for row in C]
    assert all(c.denominator == 1 for row in whole for c in row)
    if found.kind == "routing":
        return  # compared with networkx below
    if found.kind == "currents":
        edges = [(int(i), int(j)) for i, j in zip(pairs.rows, pairs.columns, strict=True) if i < j]
        sizes = [Fraction(int(p)) for p in pairs.sizes]
        total = exact.currents_bound(whole, edges, sizes, Fraction(int(pairs.beta)), found.witness)
    else:
        twin = exact.cuts_bound if found.kind == "cuts" else exact.semidefinite_bound
        total = twin(whole, found.witness, statement.n_clusters)
    bound = (offset * ratio + total) / Fraction(int(pairs.unit))
    step = float(Fraction(pairs.step(), int(pairs.unit)))
    assert found.bound <= float(bound) + 1e-12 * pairs.magnitude() + (1e-9 if found.kind == "currents" else 0)
    assert found.bound >= float(bound) - step - 1e-12 * pairs.magnitude()


def test_routing_agrees_with_shortest_paths_of_networkx():
    nx = pytest.importorskip("networkx")
    A = nx.to_scipy_sparse_array(nx.karate_club_graph(), weight=None)
    found = bounded(A.toarray(), LabelStatement("modularity", 1.0), "by_routing", 0.002)
    offset, C, unit = exact.pair_weights(A.toarray(), "modularity", 1.0)
    edges = [(i, j) for i in range(34) for j in range(i + 1, 34) if A[i, j]]
    load, routed, (rounds, _, _) = dict.fromkeys(edges, Fraction(0)), Fraction(0), found.witness["lengths"].shape
    for lengths in found.witness["lengths"]:
        for source in range(34):
            graph = nx.Graph()
            for e, (i, j) in enumerate(edges):
                if C[i][j] > 0:
                    graph.add_edge(i, j, weight=float(lengths[int(found.witness["turns"][source])][e]))
            far, paths = nx.single_source_dijkstra(graph, source, cutoff=1.0)
            for node, path in paths.items():
                demand = max(-C[source][node], 0) / 2 if node != source and far[node] < 1.0 else 0
                routed += demand / rounds
                for a, b in zip(path, path[1:], strict=False):
                    load[min(a, b), max(a, b)] += demand / rounds
    share = Fraction(float(found.witness["share"]))
    total = sum(max(C[i][j], share * load[i, j], 0) for i, j in edges) - share * routed
    bound = (offset + sum(C[i][i] for i in range(34)) + 2 * total) / unit
    assert found.bound == pytest.approx(float(bound), abs=2e-4)  # one step of modularity here is 1 / 78^2
    assert found.bound >= 0.4197896


@pytest.mark.parametrize("k", [2, 3, 4])
def test_at_most_k_clusters_are_bounded_tightly_at_optimal_duals(k):
    """k cliques that do not touch: the bound for at most k - 1 clusters merges two of them, that for k is the planted quality."""
    A = sp.block_diag([np.ones((4, 4)) - np.eye(4)] * k).toarray()
    planted = np.arange(4 * k) // 4
    found = bounded(A, LabelStatement("performance", 1.0, k), "by_semidefinite", 0.05)
    exactly = exact.quality(A, planted, "performance", 1.0)
    assert found.bound == pytest.approx(float(exactly), abs=1e-12)
    if k > 2:
        fewer = bounded(A, LabelStatement("performance", 1.0, k - 1), "by_semidefinite", 0.05)
        merged = exact.quality(A, np.minimum(planted, k - 2), "performance", 1.0)
        assert float(merged) <= fewer.bound < found.bound
