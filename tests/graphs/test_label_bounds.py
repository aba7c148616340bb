"""Bounds on the quality of all partitions, against every partition of small graphs and the known optima of larger ones."""

import os
from itertools import product
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from cvxnmf.certificates import LabelStatement
from cvxnmf.certificates.label_cuts import bound_by_cases
from cvxnmf.graphs.label_bounds.branching import Search, same_partition
from cvxnmf.graphs.label_bounds.budget import Budget
from cvxnmf.graphs.label_bounds.contraction import Contraction
from cvxnmf.graphs.label_bounds.uniqueness import _Exclusion, decide_uniqueness, small_cut
from cvxnmf.graphs.label_bounds.verify import UNITS, LabelBounds, prove_labels
from tiers import slow_but

OBJECTIVES = ("modularity", "cpm", "performance", "correlation")
MODULARITY = LabelStatement("modularity", 1.0)


def all_partitions(n):
    """Every partition of n nodes as restricted growth strings."""
    rows = [[]]
    for _ in range(n):
        rows = [[*row, c] for row in rows for c in range(max(row, default=-1) + 2)]
    return np.array(rows)


PARTITIONS = {n: all_partitions(n) for n in range(1, 9)}


def optima_by_enumeration(objective, n_clusters):
    """All labels of highest quality among all partitions."""
    candidates = PARTITIONS[objective.n]
    if n_clusters is not None:
        candidates = candidates[candidates.max(axis=1) < n_clusters]
    L = objective.dense()
    sums = sum(np.where(candidates[:, i] == candidates[:, j], L[i, j], 0) for i, j in product(range(objective.n), repeat=2))
    return candidates[sums == sums.max()]


def best_by_enumeration(objective, n_clusters):
    """The first labels of highest quality among all partitions."""
    return optima_by_enumeration(objective, n_clusters)[0]


def random_case(seed, objective):
    """A random weighted or signed graph with its terms, half of them with at most k clusters."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    weights = [np.ones((n, n)), 0.5 * np.ones((n, n)), rng.integers(1, 5, (n, n)), rng.random((n, n))][rng.integers(4)]
    A = np.triu((rng.random((n, n)) < rng.random()) * weights)
    if objective == "correlation":
        A = A * rng.choice([-1, 1], (n, n))
    resolution = float(rng.choice([1.0, 0.5, 0.1, 2.0, 1 / 3])) if objective in ("modularity", "cpm") else 1.0
    k = int(rng.integers(1, n + 1)) if rng.random() < 0.5 else None
    return A + np.triu(A, 1).T, LabelStatement(objective, resolution, k)


def certificate_by(A, statement, bound, effort=0.02):
    """The certificate of one kind of bound, about a single cluster."""
    bounds = LabelBounds(sp.csr_array(A), np.zeros(len(A), dtype=np.int64), statement, effort, None)
    getattr(bounds, bound)()
    return bounds


@pytest.mark.parametrize("cases", slow_but([15], [15, 50]))
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_linear_program_with_branching_finds_the_optimum_of_all_partitions(objective, cases):
    for seed in range(cases):
        A, statement = random_case(seed, objective)
        bounds = certificate_by(A, statement, "by_cuts", effort=1.0)
        pairs = bounds.objective
        optimum = pairs.value(best_by_enumeration(pairs, statement.n_clusters))
        slack = (1e-15 if pairs.exact else 1e-9) * max(1.0, abs(float(optimum)))
        assert float(optimum) <= bounds.found.bound <= float(optimum) + slack, seed
        assert float(bounds.best_value) >= float(optimum) - slack
        assert bounds.found.check(A) == bounds.found.bound


@pytest.mark.parametrize("bound", ["by_semidefinite", "by_routing", "by_currents", "by_packing"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_partition_is_above_a_bound(objective, bound):
    for seed in range(100, 112):
        A, statement = random_case(seed, objective)
        bounds = certificate_by(A, statement, bound, effort=0.002)
        optimum = bounds.objective.value(best_by_enumeration(bounds.objective, statement.n_clusters))
        assert bounds.found.bound >= float(optimum) - (0.0 if bounds.objective.exact else 1e-12), seed
        bounds.found.check(A)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_at_most_k_clusters_are_bounded_by_their_optimum_at_optimal_duals(objective):
    for seed in range(300, 310):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(4, 8)), int(rng.integers(2, 4))
        A = np.triu(rng.integers(0, 3, (n, n)), 1)
        A = A * rng.choice([-1, 1], (n, n)) if objective == "correlation" else A
        bounds = certificate_by(A + A.T, LabelStatement(objective, 1.0, k), "by_semidefinite", effort=0.01)
        optimum = float(bounds.objective.value(best_by_enumeration(bounds.objective, k)))
        assert bounds.found.bound == pytest.approx(optimum, abs=1e-12 * bounds.objective.magnitude()), seed


def weighed(A, labels, statement, effort):
    """Bounds by cuts and a matrix without slack at the best partition alone, and all bounds that were told."""
    told = []
    bounds = LabelBounds(sp.csr_array(A), labels, statement, effort, told.append)
    bounds.by_complementary()
    return bounds, [iterate.bound for iterate in told]


@pytest.mark.parametrize(("cases", "most"), slow_but([(5, 3)], [(5, 3), (14, 8)]))
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_cuts_without_slack_bound_all_partitions_and_prove_most_optima(objective, cases, most):
    closed = 0
    for seed in range(400, 400 + cases):
        A, statement = random_case(seed, objective)
        pairs = statement.objective_of(sp.csr_array(A))
        optimum = best_by_enumeration(pairs, statement.n_clusters)
        for labels in (optimum, np.zeros(len(A), dtype=np.int64)):
            bounds, _ = weighed(A, labels, statement, 0.003)
            assert bounds.found.bound >= float(pairs.value(optimum)) - (0.0 if pairs.exact else 1e-12), seed
            assert bounds.found.check(sp.csr_array(A)) == bounds.found.bound
            assert bounds.best_value >= pairs.value(labels)
        closed += bounds.closed
    assert closed >= most


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_semidefinite_program_begins_with_multipliers_of_cuts(objective):
    for seed in range(500, 508):
        A, statement = random_case(seed, objective)
        pairs, k = statement.objective_of(sp.csr_array(A)), statement.n_clusters
        bounds = LabelBounds(sp.csr_array(A), np.zeros(len(A), dtype=np.int64), statement, 0.001, None)
        bounds.search = Search(pairs, bounds.labels, k, Budget(0.0))
        bounds.search.weigh_complementary_cuts(bounds.labels, Budget(20.0))
        bounds.by_semidefinite()
        optimum = float(pairs.value(best_by_enumeration(pairs, k)))
        assert bounds.found.bound >= optimum - (0.0 if pairs.exact else 1e-12), seed
        bounds.found.check(sp.csr_array(A))


def test_planted_groups_are_proved_optimal_without_a_simplex_method():
    A = nx.to_scipy_sparse_array(nx.planted_partition_graph(6, 20, 0.4, 0.01, seed=3))
    planted = np.arange(120) // 20
    bounds, told = weighed(A, planted, MODULARITY, 0.06)
    assert bounds.closed
    assert told[0] > told[-1] >= bounds.value - 1e-9  # every bound that is told is one
    assert bounds.found.check(A) == bounds.found.bound
    assert decide_uniqueness(bounds.objective, planted, None, bounds.search).several is False
    missed = np.where(np.arange(120) == 7, 5, planted)
    bounds, _ = weighed(A, missed, MODULARITY, 0.06)
    assert bounds.closed  # a better partition is found on the way
    assert bounds.best_value == bounds.objective.value(planted)


def test_a_matrix_proves_what_cuts_alone_leave_open():
    graph = nx.planted_partition_graph(4, 25, 0.4, 0.05, seed=1)
    A, planted = nx.to_scipy_sparse_array(graph), np.arange(100) // 25
    bounds, _ = weighed(A, planted, MODULARITY, 0.1)
    assert bounds.closed
    assert bounds.found.kind == "semidefinite"
    assert bounds.found.check(A) == bounds.found.bound
    weighing = bounds.search.weighing
    assert np.linalg.eigvalsh(weighing.point.T)[0] > -1e-9  # positive semidefinite
    np.testing.assert_allclose(weighing.point.T @ weighing.indicators, 0.0, atol=1e-9)
    grain = bounds.search.program.grain
    whole = np.rint(weighing.point.m * weighing.unit * grain).astype(np.int64)
    cuts = weighing.cuts._replace(multipliers=whole).select(whole > 0)
    alone = bound_by_cases(bounds.objective, cuts, [], grain, None)
    assert bounds.objective.quality(alone) > bounds.objective.value(planted)


def search_of(graph, units, reserve):
    """A search with the linear program from a single cluster, after it ran, and its budget."""
    objective = LabelStatement("modularity", 1.0).objective_of(nx.to_scipy_sparse_array(graph, weight=None))
    budget = Budget(units, None, reserve)
    search = Search(objective, np.zeros(len(graph), dtype=np.int64), None, budget)
    return search.run(), budget


def test_the_reserve_is_drawn_once_the_bound_is_close():
    graph = nx.barabasi_albert_graph(34, 2, seed=0)
    _, whole = search_of(graph, 1e5, 0.0)
    units = 0.8 * whole.spent
    near, _ = search_of(graph, units, 0.0)
    assert not near.closed
    proved, budget = search_of(graph, units, 1e5)
    assert proved.closed
    assert budget.units == units + 1e5
    far, budget = search_of(nx.gnp_random_graph(50, 0.12, seed=1), 150.0, 1e5)
    assert not far.closed
    assert budget.units == 150.0


def leafy_graph():
    """A ring of cliques, every node with one leaf and some with two."""
    graph = nx.ring_of_cliques(5, 4)
    graph.add_edges_from((node, 100 + node) for node in range(20))
    graph.add_edges_from((node, 200 + node) for node in range(0, 20, 3))
    return nx.convert_node_labels_to_integers(graph)


def test_leaves_join_their_neighbours_and_nothing_of_the_quality_is_lost():
    graph = leafy_graph()
    objective = LabelStatement("modularity", 1.0).objective_of(nx.to_scipy_sparse_array(graph))
    contraction = Contraction(objective)
    assert contraction.objective.n == 20
    labels = np.random.default_rng(0).integers(0, 4, 20)
    assert contraction.objective.value(labels) == objective.value(contraction.expand(labels))
    assert np.array_equal(contraction.shrink(contraction.expand(labels)), labels)


@pytest.mark.parametrize("n_clusters", [None, 3])
def test_what_is_proved_of_a_contracted_graph_holds_for_all_its_nodes(n_clusters):
    A = nx.to_scipy_sparse_array(leafy_graph())
    statement = LabelStatement("modularity", 1.0, n_clusters)
    exact, split = (certificate_by(A.toarray(), statement, bound, 0.05) for bound in ("by_cuts", "by_semidefinite"))
    assert exact.closed
    assert exact.found.bound <= split.found.bound <= 1.05 * exact.found.bound
    for bounds in (exact, split):
        assert len(bounds.found.witness["labels"]) == A.shape[0]
        assert bounds.found.check(A) == bounds.found.bound
    assert split.found.kind == "semidefinite"


@pytest.mark.parametrize("effort", slow_but([0.005], [0.005, 0.01]))
def test_all_bounds_together_keep_to_the_effort(effort):
    A = sp.csr_array(nx.to_scipy_sparse_array(nx.gnp_random_graph(60, 0.1, seed=1)))
    bounds = LabelBounds(A, np.zeros(60, dtype=np.int64), LabelStatement("modularity", 1.0), effort, None)
    bounds.run()
    assert len(bounds.budgets) >= 3
    assert not bounds.closed
    assert bounds.spent <= effort * UNITS + 100.0  # a step that has begun is finished


def test_a_partition_is_read_off_the_semidefinite_program():
    A = sp.csr_array(nx.to_scipy_sparse_array(nx.barabasi_albert_graph(60, 2, seed=0)))
    bounds = LabelBounds(A, np.zeros(60, dtype=np.int64), LabelStatement("modularity", 1.0), 0.2, None)
    bounds.by_semidefinite()
    assert bounds.closed
    assert bounds.found.check(A) == bounds.found.bound


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_whether_an_optimum_is_the_only_one_is_told_truly(objective):
    for seed in range(200, 225):
        A, statement = random_case(seed, objective)
        found = prove_labels(sp.csr_array(A), np.zeros(len(A), dtype=np.int64), statement, improve=True)
        pairs = statement.objective_of(A)
        unique = decide_uniqueness(pairs, found.better, statement.n_clusters, found.search)
        if not pairs.exact:
            assert unique.several is None or statement.n_clusters == 1 or len(A) == 1
            continue
        assert unique.several == (len(optima_by_enumeration(pairs, statement.n_clusters)) > 1), seed
        if unique.several:
            assert pairs.value(unique.other) == pairs.value(found.better)
            assert not same_partition(unique.other, found.better)


def test_whether_an_optimum_is_the_only_one_takes_its_share_of_the_effort():
    pairs = MODULARITY.objective_of(nx.to_scipy_sparse_array(nx.karate_club_graph(), weight=None))
    optimum = prove_labels(nx.to_scipy_sparse_array(nx.karate_club_graph(), weight=None), np.zeros(34, int), MODULARITY).better
    told = [decide_uniqueness(pairs, optimum, None, Search(pairs, optimum, None, Budget(0.0)), effort) for effort in (0.0, 1.0)]
    assert [unique.several for unique in told] == [None, False]


def data(name):
    if "CVXNMF_DATA" not in os.environ:
        pytest.skip("CVXNMF_DATA is not set")
    nx = pytest.importorskip("networkx")
    path = Path(os.environ["CVXNMF_DATA"]) / name
    if path.suffix == ".gml":
        return nx.Graph(nx.read_gml(path, label="id"))
    return nx.Graph(np.loadtxt(path, delimiter=",", skiprows=1, usecols=(0, 1)).tolist())


@pytest.mark.parametrize(
    ("name", "optimum"),
    [
        ("dolphins.gml", 0.528519441),
        ("football.gml", 0.604569563),
        pytest.param("polbooks.gml", 0.527236594, marks=pytest.mark.slow),
        pytest.param("netscience_edges.csv", 0.848586778, marks=pytest.mark.slow),
    ],
)
def test_optimal_modularity_of_known_graphs_is_proved(name, optimum):
    graph = data(name)
    certificate = cvxnmf.verify_labels(graph, [0] * len(graph), weight=None)
    assert certificate.bound == pytest.approx(optimum, abs=1e-9)


@pytest.mark.parametrize(("name", "optimum"), [("karate_club", 0.419789612), ("les_miserables", 0.560008370)])
def test_optimal_modularity_of_networkx_graphs_is_proved(name, optimum):
    nx = pytest.importorskip("networkx")
    graph = getattr(nx, f"{name}_graph")()
    certificate = cvxnmf.verify_labels(graph, dict.fromkeys(graph, 0), weight=None)
    assert certificate.bound == pytest.approx(optimum, abs=1e-9)


def test_at_most_two_clusters_have_a_lower_bound():
    nx = pytest.importorskip("networkx")
    A = nx.to_scipy_sparse_array(nx.karate_club_graph(), weight=None)
    two = certificate_by(A.toarray(), LabelStatement("modularity", 1.0, 2), "by_cuts", effort=0.5)
    assert two.found.bound == pytest.approx(0.371794871, abs=1e-8)
    assert float(two.best_value) == two.found.bound
    semidefinite = certificate_by(A.toarray(), LabelStatement("modularity", 1.0, 2), "by_semidefinite", effort=0.02)
    assert two.found.bound <= semidefinite.found.bound < 0.41


def planted(n, size, rng=0):
    """A sparse graph of planted clusters, and their labels."""
    rng = np.random.default_rng(rng)
    labels = np.arange(n) // size
    i = rng.integers(0, n, 8 * n)
    j = np.where(rng.random(8 * n) < 0.8, labels[i] * size + rng.integers(0, size, 8 * n), rng.integers(0, n, 8 * n))
    keep = i != j
    A = sp.csr_array((np.ones(keep.sum()), (i[keep], j[keep])), shape=(n, n))
    return (A + A.T).minimum(1.0), labels


def test_currents_prove_a_bound_in_memory_of_the_size_of_the_graph():
    A, labels = planted(2400, 100)
    bounds = LabelBounds(A, labels, LabelStatement("modularity", 1.0), 1.0, None)
    bounds.by_currents()
    assert bounds.found.kind == "currents"
    assert len(np.unique(bounds.found.witness["regions"])) > 1
    assert bounds.found.relative_gap < 0.1
    assert bounds.found.check(A) == bounds.found.bound


def test_regions_do_not_need_good_labels():
    A, labels = planted(1200, 100)
    good, poor = (LabelBounds(A, given, LabelStatement("modularity", 1.0), 1.0, None) for given in (labels, np.arange(1200) % 7))
    good.by_currents()
    poor.by_currents()
    assert poor.found.bound == pytest.approx(good.found.bound, rel=0.02)


def planted_signs(n, size, noise, rng=0):
    """A sparse signed graph in which planted clusters agree and others do not, but for a share of the pairs; its labels."""
    A, labels = planted(n, size, rng)
    upper = sp.triu(A, 1).tocoo()
    flips = np.where(np.random.default_rng(rng).random(upper.nnz) < noise, -1.0, 1.0)
    signs = flips * np.where(labels[upper.row] == labels[upper.col], 1.0, -1.0)
    A = sp.csr_array((signs, (upper.row, upper.col)), shape=(n, n))
    return A + A.T, labels


def test_large_signed_graphs_are_bounded_by_packed_cycles():
    A, labels = planted_signs(2400, 60, 0.1)
    bounds = LabelBounds(A, labels, LabelStatement("correlation", 1.0), 0.01, None)
    bounds.by_packing()
    positive = float(A.data[A.data > 0].sum())
    assert bounds.found.kind == "cuts"
    assert bounds.found.bound - bounds.found.value < 0.05 * (positive - bounds.found.value)
    assert bounds.found.check(A) == bounds.found.bound


def test_weights_that_are_not_whole_are_packed_too():
    A, labels = planted_signs(400, 40, 0.1)
    weights = np.random.default_rng(0).gamma(2.0, size=A.shape)
    A = sp.csr_array(A * (weights + weights.T))
    bounds = LabelBounds(A, labels, LabelStatement("correlation", 1.0), 0.01, None)
    bounds.by_packing()
    assert not bounds.objective.exact
    assert bounds.found.relative_gap < 0.05
    bounds.found.check(A)


def test_a_solve_of_the_linear_program_keeps_to_the_work_that_is_left():
    graph = nx.watts_strogatz_graph(120, 4, 0.1, seed=0)
    proved, budget = search_of(graph, 200.0, 0.0)
    assert not proved.closed
    assert budget.spent < 400.0


def test_the_bound_falls_while_it_is_computed():
    nx = pytest.importorskip("networkx")
    seen = []
    cvxnmf.verify_labels(nx.les_miserables_graph(), [0] * 77, callback=seen.append)
    assert len(seen) > 2
    assert all(b.bound <= a.bound for a, b in zip(seen, seen[1:], strict=False))
    assert seen[-1].stage == "linear program"


def test_an_interrupt_leaves_the_best_bound_so_far():
    nx = pytest.importorskip("networkx")
    graph, heard = nx.les_miserables_graph(), []

    def stop(iterate):
        heard.append(iterate.bound)
        if len(heard) == 3:
            raise KeyboardInterrupt

    with pytest.raises(cvxnmf.Interrupted) as stopped:
        cvxnmf.verify_labels(graph, [0] * 77, callback=stop)
    certificate = stopped.value.solution
    assert certificate.bound <= heard[0]
    certificate.check(nx.to_scipy_sparse_array(graph))


def test_the_same_effort_gives_the_same_certificate():
    A, _ = cvxnmf.block_graph(24, 0.4, 0.6)
    first, second = (cvxnmf.verify_labels(A, np.arange(24) % 2, effort=0.003) for _ in range(2))
    assert first.digest == second.digest


def test_labels_may_be_an_array_a_dictionary_or_a_partition():
    nx = pytest.importorskip("networkx")
    graph = nx.karate_club_graph()
    found = cvxnmf.partition(graph, n_clusters=2)
    forms = [found, found.to_dict(), found.labels, [f"cluster {label}" for label in found.labels]]
    values = {cvxnmf.verify_labels(graph, form, effort=0.0).value for form in forms}
    assert len(values) == 1
    assert values.pop() == pytest.approx(found.modularity)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0, 1]}, "each of the 3 nodes"),
        ({"labels": {0: 1}}, "no entry for the node 1"),
        ({"labels": [0, None, 1]}, "some are missing"),
        ({"n_clusters": 1}, "more than n_clusters=1"),
        ({"objective": "likelihood"}, "objective"),
        ({"objective": "performance", "resolution": 2.0}, "no resolution"),
        ({"resolution": -1.0}, "resolution"),
        ({"effort": -1.0}, "effort"),
        ({"graph": -np.ones((3, 3))}, "Negative values"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(change, message):
    arguments = {"graph": np.ones((3, 3)), "labels": [0, 0, 1]} | change
    with pytest.raises(ValueError, match=message):
        cvxnmf.verify_labels(**arguments)


def test_graphs_without_edges_or_with_one_node():
    assert cvxnmf.verify_labels(np.zeros((3, 3)), [0, 1, 2]).gap == 0
    assert cvxnmf.verify_labels(np.ones((1, 1)), [0]).gap == 0
    assert cvxnmf.verify_labels(np.zeros((3, 3)), [0, 1, 2], "cpm", 1 / 3).gap < 1e-11


def test_names_that_the_graph_does_not_have_are_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="the name 'x', that the graph does not have; left out"):
        certificate = cvxnmf.verify_labels([("a", "b"), ("b", "c")], {"a": 0, "b": 0, "c": 1, "x": 1})
    assert certificate.gap >= 0


def test_communities_of_networkx_are_labels():
    graph = nx.karate_club_graph()
    groups = [{node for node in graph if graph.nodes[node]["club"] == club} for club in ("Officer", "Mr. Hi")]
    by_node = {node: data["club"] for node, data in graph.nodes(data=True)}
    assert cvxnmf.verify_labels(graph, groups).value == cvxnmf.verify_labels(graph, by_node).value
    with pytest.raises(ValueError, match="in two sets"):
        cvxnmf.verify_labels(graph, [*groups, {0}])
    with pytest.raises(ValueError, match="no entry for the node"):
        cvxnmf.verify_labels(graph, groups[:1])


def test_clusterings_of_igraph_and_leidenalg_are_understood():
    igraph, leidenalg = pytest.importorskip("igraph"), pytest.importorskip("leidenalg")
    graph = igraph.Graph.Famous("Zachary")
    theirs = leidenalg.find_partition(graph, leidenalg.ModularityVertexPartition, seed=1)
    for labels in (theirs, graph.community_multilevel()):
        by_object, by_list = (cvxnmf.verify_labels(graph, found, effort=0.05) for found in (labels, labels.membership))
        assert (by_object.value, by_object.bound) == (by_list.value, by_list.bound)


def test_a_frame_of_labels_is_told_what_to_pass_whatever_its_columns():
    frame = cvxnmf.partition(nx.karate_club_graph(), objective="modularity").to_frame()
    with pytest.raises(ValueError, match=r"of a frame give dict\(zip\(frame.node, frame.cluster\)\)"):
        cvxnmf.verify_labels(nx.karate_club_graph(), frame)


def test_a_cut_of_small_weight_is_found_wherever_there_is_one():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 6):
        W = np.triu(rng.integers(0, 4, (n, n)), 1).astype(float)
        W += W.T
        sides = [np.array([q >> i & 1 for i in range(n)], dtype=bool) for q in range(1, 2 ** (n - 1))]
        least = min((W[side][:, ~side].sum() for side in sides), default=np.inf)
        assert not small_cut(W.copy(), min(least, 1e9) - 0.5).any()
        if n > 1:
            side = small_cut(W.copy(), least)
            assert side.any()
            assert W[side][:, ~side].sum() == least


def test_the_only_optimum_is_known_as_such_without_a_search():
    A, planted = nx.to_scipy_sparse_array(nx.planted_partition_graph(4, 25, 0.4, 0.05, seed=1)), np.arange(100) // 25
    bounds, _ = weighed(A, planted, MODULARITY, 0.1)
    before = bounds.search.weighing.L
    exclusion = _Exclusion(bounds.search, planted, 1.0)
    assert exclusion.sure.all()  # sets of nodes that no other optimum parts or joins
    np.testing.assert_allclose(bounds.search.weighing.L, before, atol=1e-12)
    assert exclusion.run().several is False
