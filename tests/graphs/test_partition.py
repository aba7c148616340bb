"""Partitions: exact where the answer is known, as good as promised elsewhere, the same under other names."""

import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import cvxnmf
from builders import planted_graph, stored_graph
from cvxnmf.paper.spectral import min_max_cut
from tiers import slow_but


def half_normal(n):
    """Dense noise."""
    A = np.triu(np.abs(np.random.default_rng(0).standard_normal((n, n))), 1)
    return A + A.T


def consistent(found, A):
    """What holds for every partition."""
    n, k = len(found.nodes), found.n_clusters
    assert sorted(np.unique(found.labels)) == list(range(k))
    assert found.memberships.shape == (n, k)
    assert found.memberships.min() >= 0
    np.testing.assert_allclose(found.memberships.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(found.memberships.argmax(axis=1), found.labels)
    assert list(np.sort(found.order)) == list(range(n))
    assert (np.diff(found.labels[found.order]) >= 0).all()
    assert (np.diff(np.bincount(found.labels)) <= 0).all()
    assert found.performance == cvxnmf.performance(A, found.labels)
    for certificate in (found.certificate, found.rank_certificate):
        assert certificate.bound <= certificate.value
        assert certificate.check(A) <= certificate.value
    assert found.certificate.scope == "model"
    assert found.rank_certificate.scope == "rank-k"


# Known answers -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", ["weight", None])
def test_karate(weight):
    graph = nx.karate_club_graph()
    truth = [club for _, club in graph.nodes(data="club")]
    found = cvxnmf.partition(graph, weight=weight)
    assert found.n_clusters == 2
    assert adjusted_rand_score(truth, found.labels) >= 0.88
    assert found.certificate.relative_gap <= 1e-4
    assert found.rank_certificate.relative_gap <= 1e-6
    assert found.to_dict() == dict(zip(graph.nodes, found.labels.tolist(), strict=True))
    consistent(found, nx.to_numpy_array(graph, weight=weight))


def test_political_books():
    graph = stored_graph("polbooks")
    truth = [data["value"] for _, data in graph.nodes(data=True)]
    assert adjusted_rand_score(truth, cvxnmf.partition(graph, 3).labels) >= 0.63
    assert 2 <= cvxnmf.partition(graph).n_clusters <= 4


def test_football():
    graph = stored_graph("football")
    truth = [data["value"] for _, data in graph.nodes(data=True)]
    assert normalized_mutual_info_score(truth, cvxnmf.partition(graph, 12).labels) >= 0.92
    assert 8 <= cvxnmf.partition(graph).n_clusters <= 12


@pytest.mark.parametrize("m", [5, 7])
def test_barbell_and_cliques(m):
    barbell = nx.barbell_graph(m, 0)
    found = cvxnmf.partition(barbell, 2)
    assert len(set(found.labels[:m])) == len(set(found.labels[m:])) == 1
    assert found.labels[0] != found.labels[-1]
    consistent(found, nx.to_numpy_array(barbell))
    apart = nx.disjoint_union(nx.complete_graph(m), nx.complete_graph(m))
    assert cvxnmf.partition(apart).n_clusters == 2
    assert cvxnmf.partition(nx.complete_graph(m)).n_clusters == 1


@pytest.mark.parametrize("k", [2, 3, 5, 8, 10])
@pytest.mark.parametrize("tail", [None, 2.5])
def test_the_number_of_planted_groups_is_found(k, tail):
    A, groups = planted_graph(60 * k if k > 2 else 200, k, 20, 0.12, tail=tail, seed=k)
    found = cvxnmf.partition(A, tol=1e-3)
    assert found.n_clusters == k
    assert adjusted_rand_score(groups, found.labels) >= 0.95


@pytest.mark.parametrize(
    ("make", "k"),
    [
        (lambda: nx.caveman_graph(10, 5), 10),
        (lambda: nx.caveman_graph(3, 4), 3),
        (lambda: nx.disjoint_union(nx.complete_graph(3), nx.complete_graph(3)), 2),
        (lambda: nx.connected_caveman_graph(6, 10), 6),
        (lambda: nx.ring_of_cliques(200, 4), 200),
        (lambda: nx.disjoint_union_all([nx.path_graph(2)] * 50), 50),
        (lambda: nx.disjoint_union_all([nx.star_graph(5), nx.path_graph(9), nx.balanced_tree(2, 3)] * 5), 15),
        (lambda: nx.gnp_random_graph(500, 0.004, seed=0), 1),
        (lambda: half_normal(100), 1),
        (lambda: nx.random_regular_graph(4, 200, seed=0), 1),
        (lambda: nx.gnp_random_graph(200, 0.05, seed=0), 1),
        (lambda: nx.barabasi_albert_graph(200, 4, seed=0), 1),
        (lambda: nx.balanced_tree(2, 5), 1),
        (lambda: np.ones((5, 5)), 1),
        (lambda: np.full((4, 4), 2.5), 1),
    ],
)
def test_obvious_numbers_of_clusters(make, k):
    assert cvxnmf.partition(make()).n_clusters == k


@pytest.mark.parametrize("inside", slow_but([0.2], [0.3, 0.2]))
def test_small_groups_beside_a_large_one_are_found(inside):
    sizes = [500, *[20] * 5]
    rates = np.where(np.eye(6, dtype=bool), inside, 0.01)
    graph = nx.stochastic_block_model(sizes, rates, seed=0)
    truth = np.repeat(np.arange(6), sizes)
    for k in (None, 6):
        assert adjusted_rand_score(truth, cvxnmf.partition(graph, k).labels) >= 0.95


@pytest.mark.parametrize("heavy", [False, True])
def test_groups_are_found_though_weights_vary(heavy):
    A, groups = planted_graph(300, 5, 14, 0.2, seed=0)
    W = np.triu(np.random.default_rng(0).lognormal(0.0, 1.5 if heavy else 0.5, A.shape), 1)
    found = cvxnmf.partition(A * (W + W.T))
    assert found.n_clusters == 5
    assert adjusted_rand_score(groups, found.labels) >= 0.9


def test_smooth_similarities_are_divided_at_the_widest_gap():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(centre, 0.5, (40, 2)) for centre in ((0, 0), (4, 0), (0, 4))])
    for gamma in (0.1, 1.0):
        model = cvxnmf.GraphPartitioner(affinity="rbf", gamma=gamma).fit(X)
        assert model.n_clusters_ == 3
        assert adjusted_rand_score(np.arange(120) // 40, model.labels_) == 1.0


# Quality against others --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", slow_but([-0.4, 0.6], [-0.8, -0.4, 0.0, 0.2, 0.6]))
def test_block_graphs_are_divided_as_well_as_by_spectral_methods(delta):
    differences = []
    for seed in range(12):
        A, _ = cvxnmf.block_graph(100, (1 - delta) / 2, (1 + delta) / 2, rng=seed)
        ours = cvxnmf.performance(A, cvxnmf.partition(A, 2, tol=1e-3).labels)
        spectral = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(A)
        differences.append([ours - cvxnmf.performance(A, labels) for labels in (min_max_cut(A, 2), spectral)])
    mean = np.mean(differences, axis=0)
    error = np.std(differences, axis=0, ddof=1) / np.sqrt(len(differences))
    assert (mean >= -error - 1e-12).all()


def test_directions_below_the_tolerance_of_the_solve_still_divide():
    A, _ = cvxnmf.block_graph(100, 0.45, 0.55, rng=1040)  # one eigenvalue just above the noise edge
    found = cvxnmf.partition(A, 2, tol=1e-3)
    assert found.solution.rank == 0
    assert found.performance >= cvxnmf.performance(A, min_max_cut(A, 2)) - 0.005


@pytest.mark.slow
def test_planted_graphs_are_not_worse_than_spectral_clustering():
    gains = []
    for seed in range(6):
        A, groups = planted_graph(500, 5 + seed % 4, 15, 0.45, tail=2.5 if seed % 2 else None, seed=seed)
        k = groups.max() + 1
        theirs = SpectralClustering(k, affinity="precomputed", random_state=0).fit_predict(A)
        ours = cvxnmf.partition(A, k, tol=1e-3).labels
        gains.append(adjusted_rand_score(groups, ours) - adjusted_rand_score(groups, theirs))
    assert min(gains) >= -0.02
    assert np.mean(gains) > 0


# Odd graphs --------------------------------------------------------------------------------------------------------------------


def test_isolated_nodes_go_with_the_largest_cluster():
    graph = nx.barbell_graph(6, 0)
    graph.add_nodes_from(["x", "y"])
    found = cvxnmf.partition(graph, 2)
    assert found.to_dict()["x"] == found.to_dict()["y"] == 0
    assert found.memberships[-1].max() < 0.9
    consistent(found, nx.to_numpy_array(graph))


def test_loops_weights_and_components_work():
    graph = nx.Graph()
    graph.add_weighted_edges_from([(i, j, 2.5) for i in range(5) for j in range(i)])
    graph.add_weighted_edges_from([(i, j, 0.5) for i in range(5, 9) for j in range(5, i)])
    graph.add_edge(2, 2, weight=4.0)
    found = cvxnmf.partition(graph, 2)
    assert len(set(found.labels[:5])) == len(set(found.labels[5:])) == 1
    consistent(found, nx.to_numpy_array(graph))


@pytest.mark.parametrize("k", [1, 2, 4, 9])
@pytest.mark.parametrize("make", [lambda: nx.complete_bipartite_graph(4, 5), lambda: nx.star_graph(8), lambda: nx.path_graph(9)])
def test_every_number_of_clusters_is_filled(make, k):
    graph = make()
    found = cvxnmf.partition(graph, k)
    assert found.n_clusters == k
    consistent(found, nx.to_numpy_array(graph))


def test_nodes_of_one_edge_stay_together_among_isolated_ones():
    A = np.zeros((5, 5))
    A[2, 3] = A[3, 2] = 1.0
    labels = cvxnmf.partition(A, 2).labels
    assert labels[2] == labels[3]
    assert cvxnmf.partition(np.diag([0.0, 0.0, 1.0]), 2).n_clusters == 2


@pytest.mark.parametrize("seed", range(4))
def test_other_names_and_another_order_give_the_same_clusters(seed):
    A, _ = planted_graph(120, 4, 12, 0.3, seed=seed)
    order = np.random.default_rng(seed).permutation(len(A))
    first, second = cvxnmf.partition(A, 4), cvxnmf.partition(A[np.ix_(order, order)], 4)
    np.testing.assert_array_equal(first.labels[order], second.labels)
    np.testing.assert_allclose(first.memberships[order], second.memberships, atol=1e-6)


@pytest.mark.parametrize(
    "make", [nx.les_miserables_graph, lambda: nx.ring_of_cliques(12, 5), lambda: planted_graph(200, 5, 12, 0.35)[0]]
)
def test_the_number_found_does_not_depend_on_the_order_of_the_nodes(make):
    A = cvxnmf.partition(make(), 2).A
    first = cvxnmf.partition(A)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(A.shape[0])
        again = cvxnmf.partition(A[order][:, order])
        assert adjusted_rand_score(first.labels[order], again.labels) == 1.0


def test_weights_in_another_unit_change_nothing():
    A, _ = planted_graph(150, 3, 15, 0.35, seed=1)
    A *= (
        np.triu(np.random.default_rng(0).integers(1, 4, A.shape), 1)
        + np.triu(np.random.default_rng(0).integers(1, 4, A.shape), 1).T
    )
    first, second = cvxnmf.partition(A, 3), cvxnmf.partition(1000 * A, 3)
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_allclose(first.memberships, second.memberships, atol=1e-6)


def test_same_input_same_bits_and_input_unchanged():
    A, _ = planted_graph(100, 3, 12, 0.3)
    before = A.copy()
    first, second = cvxnmf.partition(A), cvxnmf.partition(sp.csr_array(A))
    np.testing.assert_array_equal(A, before)
    np.testing.assert_array_equal(first.memberships, second.memberships)
    assert first.certificate.digest == second.certificate.digest


@pytest.mark.parametrize(
    ("graph", "options", "sentence"),
    [
        (nx.empty_graph(3), {}, "no edges"),
        (nx.Graph([(0, 0)]), {}, "single node"),
        (nx.path_graph(3), {"n_clusters": 4}, "n_clusters=4 is more than the graph has nodes"),
        (nx.path_graph(3), {"n_clusters": 0}, "n_clusters must be an integer of at least 1"),
        (nx.path_graph(3), {"trace": "none"}, "trace must be 'auto' or a number"),
        (nx.path_graph(3), {"cone": "psd"}, "trace='auto' is known for"),
        (nx.path_graph(3), {"loss": "l1"}, "loss='l1' is not known"),
    ],
)
def test_bad_requests_are_refused_in_a_sentence(graph, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.partition(graph, **options)


# The paper's setting, options and results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["kl", "mse"])
def test_the_papers_setting_is_a_few_options_away(loss):
    A, labels = cvxnmf.block_graph(40, 0.2, 0.8)
    terms = {"loss": loss, "cone": "psd", "metric": "uniform", "method": "projected-gradient"}
    for refine in (False, True):
        found = cvxnmf.partition(A, 2, trace=0.0, refine=refine, **terms)
        assert adjusted_rand_score(labels, found.labels) == 1.0
        assert found.certificate.statement["cone"] == "psd"


def test_without_a_penalty_components_stay_apart():
    graph = nx.disjoint_union(nx.cycle_graph(6), nx.complete_graph(5))
    found = cvxnmf.partition(graph, 2, trace=0.0)
    assert len(set(found.labels[:6])) == len(set(found.labels[6:])) == 1
    assert found.labels[0] != found.labels[-1]


def test_an_interrupted_partition_carries_the_best_so_far():
    A, _ = planted_graph(80, 3, 12, 0.3)

    def stop(iterate):
        raise KeyboardInterrupt

    with pytest.raises(cvxnmf.Interrupted) as stopped:
        cvxnmf.partition(A, 3, callback=stop)
    found = stopped.value.solution
    assert isinstance(found, cvxnmf.Partition)
    assert found.status is cvxnmf.Status.INTERRUPTED
    assert found.n_clusters == 3


def test_results_explain_themselves_and_can_be_pickled():
    found = cvxnmf.partition(nx.karate_club_graph(), 2)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.labels, found.labels)
    assert again.rank_certificate.bound == found.rank_certificate.bound
    assert "2 clusters" in repr(found)
    assert "without the diagonal" in str(found)


def test_labels_do_not_wait_for_the_proof():
    found = cvxnmf.partition(planted_graph(100, 3, 12, 0.3)[0])
    assert "proof when asked for" in repr(found)
    assert callable(vars(found)["solution"])
    assert found.alternatives[0][0] == found.n_clusters
    assert found.certificate.relative_gap <= 1e-4
    assert "gap" in repr(found)


def test_no_merge_of_clusters_shortens_the_description_and_one_length_is_told_everywhere():
    found = cvxnmf.partition(nx.Graph(nx.les_miserables_graph().edges()))
    assert found.hierarchy.lengths[0] == pytest.approx(found.alternatives[0][1], rel=1e-6)
    assert np.argmin(found.hierarchy.lengths) == 0


def test_clusters_can_be_handed_on_and_merged():
    igraph = pytest.importorskip("igraph")
    found = cvxnmf.partition(nx.ring_of_cliques(6, 5))
    sets = found.communities()
    assert nx.community.is_partition(nx.ring_of_cliques(6, 5), sets)
    assert sorted(map(len, sets)) == [5] * 6
    other = found.to_igraph()
    assert isinstance(other, igraph.VertexClustering)
    assert other.membership == found.labels.tolist()
    assert len(set(found.at(3))) == 3
    assert found.hierarchy.lengths[0] == pytest.approx(found.alternatives[0][1], rel=1e-6)
    with pytest.raises(ValueError, match="1 to 6 clusters"):
        found.at(9)


def test_factors_are_those_of_the_certificate():
    found = cvxnmf.partition(nx.karate_club_graph(), 3)
    A, U = found.A.toarray(), found.U
    degrees = A.sum(axis=1)
    assert U.shape == (34, 3)
    assert U.min() >= 0
    error = np.sum((A - U @ U.T) ** 2 / np.outer(degrees, degrees))
    assert found.rank_certificate.value == pytest.approx(error, rel=1e-10)


def test_a_weighted_rank_certificate_is_about_its_own_weights():
    found = cvxnmf.partition(nx.karate_club_graph(), 2).rank_certificate
    assert found.statement["scaling"] == "degree"
    with pytest.raises(cvxnmf.CertificateError):
        found.check(nx.to_numpy_array(nx.karate_club_graph(), weight=None))


@pytest.mark.parametrize("n_clusters", slow_but([None], [None, 6]))
def test_twins_and_ties_do_not_make_the_order_of_nodes_matter(n_clusters):
    A = nx.to_scipy_sparse_array(nx.les_miserables_graph()).astype(float).tocsr()
    first = cvxnmf.partition(A, n_clusters)
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(A.shape[0])
        again = cvxnmf.partition(A[order][:, order], n_clusters)
        pairs = set(zip(first.labels[order].tolist(), again.labels.tolist(), strict=True))
        assert len(pairs) == first.n_clusters == again.n_clusters


def test_a_weight_that_no_edge_has_is_refused():
    graph = nx.les_miserables_graph()
    with pytest.raises(ValueError, match="No edge has the weight 'wieght'"):
        cvxnmf.partition(graph, weight="wieght")
    assert cvxnmf.partition(nx.karate_club_graph(), weight=None).n_clusters == 2


def test_who_reads_progress_does_not_wait_for_the_convex_problem(monkeypatch):
    solved = []
    monkeypatch.setattr("cvxnmf.graphs.partition._solve_now", lambda found, model: solved.append(model) or found)
    cvxnmf.partition(nx.karate_club_graph(), verbose=1)
    assert not solved
    cvxnmf.partition(nx.karate_club_graph(), callback=lambda step: None)
    assert len(solved) == 1


def test_verbose_shows_how_far_the_proof_of_labels_is(capsys):
    graph = nx.les_miserables_graph()
    found = cvxnmf.partition(graph, objective="modularity", prove=True, effort=0.1, verbose=1)
    shown = capsys.readouterr().err.splitlines()
    assert all(line.startswith("partition") for line in shown)
    assert any("linear program, step 1, value 0.56" in line and "bound" in line for line in shown)
    assert not any("nan" in line for line in shown)
    cvxnmf.verify_labels(graph, found, effort=0.1, verbose=1)
    assert capsys.readouterr().err.startswith("verify_labels")
    cvxnmf.verify_labels(graph, found, effort=0.1)
    assert capsys.readouterr().err == ""
