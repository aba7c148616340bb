"""Large graphs in groups of nodes: partition and factorize."""

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.datasets import sparse_degree_corrected
from sklearn.metrics import normalized_mutual_info_score as agreement

import cvxnmf
from cvxnmf.graphs.block_model import PlantedPartition, RateModel
from tiers import slow_but

N_GROUPS = 150


@pytest.fixture(scope="module")
def graph():
    return sparse_degree_corrected(1500, 6, 14, 0.25, 2.5, seed=0)


@pytest.fixture(scope="module")
def coarse(graph):
    return cvxnmf.partition(graph[0], 6, n_groups=N_GROUPS)


def test_the_likelihood_is_that_of_the_direct_answer(graph, coarse):
    A, truth = graph
    direct = cvxnmf.partition(A, 6)
    score = [PlantedPartition(A, 1.0).log_likelihood(found.labels, 6, RateModel.PER_CLUSTER) for found in (direct, coarse)]
    assert score[1] >= 0.995 * score[0]
    assert agreement(truth, coarse.labels) > agreement(truth, direct.labels) - 0.01
    assert direct.certificate.bound <= coarse.certificate.value
    assert coarse.certificate.value <= 1.02 * direct.certificate.value


def test_the_certificates_are_of_their_levels(graph):
    A, _ = graph
    found = cvxnmf.partition(A, n_groups=N_GROUPS)
    assert found.n_clusters == 6
    assert found.n_groups == found.certificate.statement["groups"] == N_GROUPS
    assert found.certificate.check(A) == found.certificate.bound
    assert found.certificate.rigorous
    vars(found)["factorization"] = cvxnmf.factorize(A, found.n_clusters, symmetric=True, effort=0)  # the proof takes its time
    model, factors = found.levels
    assert (model.size, factors.size) == (N_GROUPS, A.shape[0])
    assert model.certificate is found.certificate
    assert factors.certificate.scope == "rank-k"
    assert cvxnmf.partition(A).n_groups is None


def test_names_of_nodes_do_not_matter(graph, coarse):
    A, _ = graph
    order = np.random.default_rng(3).permutation(A.shape[0])
    other, again = (cvxnmf.partition(M, 6, n_groups=N_GROUPS) for M in (A[order][:, order], A))
    assert agreement(coarse.labels[order], other.labels) > 0.999
    assert np.array_equal(again.labels, coarse.labels)
    assert again.certificate.bound == coarse.certificate.bound


def test_large_graphs_take_groups_by_themselves():
    A, truth = sparse_degree_corrected(6_000, 5, 12, 0.2, None, seed=1)
    found = cvxnmf.partition(A)
    assert found.n_groups is not None
    assert found.n_clusters == 5
    assert agreement(truth, found.labels) > 0.95
    assert found.status.name == "OPTIMAL"


@pytest.mark.slow
def test_it_finds_planted_groups_as_well_as_leiden():
    leidenalg, igraph = pytest.importorskip("leidenalg"), pytest.importorskip("igraph")
    A, truth = sparse_degree_corrected(8_000, 20, 15, 0.2, 2.5, seed=0)
    rows, columns = sp.triu(A).nonzero()
    other = igraph.Graph(A.shape[0], np.column_stack([rows, columns]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = leidenalg.find_partition(other, leidenalg.ModularityVertexPartition, seed=0).membership
    assert agreement(truth, cvxnmf.partition(A, 20).labels) >= agreement(truth, theirs) - 1e-3  # ties between clusters


@pytest.mark.parametrize(
    "name",
    ["isolated", "disconnected", "weighted", "star", "bipartite", "complete", "edge", "triangle", "cliques", "path", "loops"],
)
def test_odd_graphs(name, graph):
    A, _ = graph
    rng = np.random.default_rng(0)
    B = A[:300][:, :300].tocsr()
    odd = {
        "isolated": lambda: sp.block_diag([B, sp.csr_array((20, 20))]).tocsr(),
        "disconnected": lambda: sp.block_diag([B, B]).tocsr(),
        "weighted": lambda: sp.csr_array(B.multiply(np.add.outer(rng.random(300), np.ones(300)))) * 1.0,
        "star": lambda: nx.star_graph(200),
        "bipartite": lambda: nx.complete_bipartite_graph(30, 40),
        "complete": lambda: nx.complete_graph(40),
        "edge": lambda: nx.path_graph(2),
        "triangle": lambda: nx.complete_graph(3),
        "cliques": lambda: nx.disjoint_union_all([nx.complete_graph(6)] * 12),
        "path": lambda: nx.path_graph(200),
        "loops": lambda: sp.csr_array(B + sp.eye_array(300)),
    }[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cvxnmf.partition(odd, n_groups=30)
    assert found.certificate.check(found.A) == found.certificate.bound
    assert found.certificate.bound <= found.certificate.value
    assert np.array_equal(np.argmax(found.memberships, axis=1), found.labels)
    np.testing.assert_allclose(found.memberships.sum(axis=1), 1.0)
    assert set(found.labels) == set(range(found.n_clusters))
    if name == "cliques":
        assert found.n_clusters == 12
    if name == "isolated":
        sizes = np.bincount(found.labels[:300])
        assert set(found.labels[300:]) == {int(np.argmax(sizes))}


def test_terms_that_groups_do_not_know_are_refused(graph):
    A, _ = graph
    for terms in ({"loss": "mse"}, {"cone": "psd"}, {"metric": "uniform"}):
        with pytest.raises(ValueError, match="n_groups is known for"):
            cvxnmf.partition(A, trace=1.0, n_groups=50, **terms)
    for wrong in (1, 0, 2.5, "many", True):
        with pytest.raises(ValueError, match="n_groups must be an integer of at least 2"):
            cvxnmf.partition(A, n_groups=wrong)


def test_a_callback_hears_stages_and_how_much_is_left(graph):
    heard = []
    cvxnmf.partition(graph[0], 6, n_groups=N_GROUPS, callback=heard.append)
    stages = list(dict.fromkeys(line.stage.split(" of ")[0] for line in heard))
    assert stages == ["directions", "groups", "convex problem", "clusters"]
    told = [line.share for line in heard if line.share > 0]  # nobody knows how long the convex problem takes
    assert told == sorted(told)
    assert 0 < told[0] < told[-1] < 1
    assert "1,500 nodes" in heard[0].stage
    assert np.isnan(heard[0].value)
    assert heard[-1].bound <= heard[-1].value


def test_it_can_be_interrupted(graph):
    def press(line):
        if line.stage.startswith("clusters"):
            raise KeyboardInterrupt

    with pytest.raises(cvxnmf.Interrupted) as stopped:
        cvxnmf.partition(graph[0], 6, n_groups=N_GROUPS, callback=press)
    assert stopped.value.solution.n_clusters == 6
    stopping = cvxnmf.partition(graph[0], 6, n_groups=N_GROUPS, callback=lambda line: line.stage.startswith("clusters"))
    assert stopping.n_clusters == 6


@pytest.mark.parametrize("stage", ["directions", "groups", "convex problem", "clusters"])
def test_a_callback_may_stop_in_every_stage(graph, stage):
    calls = []

    def stop(line):
        calls.append(line.stage)
        return line.stage.startswith(stage)

    found = cvxnmf.partition(graph[0], 6, n_groups=N_GROUPS, callback=stop)
    assert found.n_clusters == 6
    assert found.certificate.check(graph[0]) == found.certificate.bound
    after = calls[calls.index(next(call for call in calls if call.startswith(stage))) :]
    assert len([call for call in after if call.startswith("clusters")]) <= 2


@pytest.mark.parametrize("refine", slow_but([True], [True, False]))
def test_no_cluster_is_empty_though_there_are_few_groups(refine):
    A = nx.ring_of_cliques(12, 20)
    for k, groups in ((10, 2), (10, 5), (60, 50), (240, 20)):
        found = cvxnmf.partition(A, k, n_groups=groups, refine=refine)
        assert np.bincount(found.labels, minlength=k).min() > 0
    alike = cvxnmf.partition(nx.complete_graph(30), 5, n_groups=3, refine=refine)  # nothing tells the nodes apart
    assert np.bincount(alike.labels, minlength=5).min() > 0


def test_many_equal_parts_are_not_let_in_one_by_one():
    pairs = nx.disjoint_union_all([nx.path_graph(2)] * 400)
    assert cvxnmf.partition(pairs).n_clusters == 400
    found = cvxnmf.partition(pairs, 100, n_groups=150)
    assert found.certificate.check(found.A) == found.certificate.bound
    factors = cvxnmf.factorize(sp.block_diag([np.ones((2, 2)) - np.eye(2)] * 900).tocsr(), 3, symmetric=True, effort=0)
    assert factors.certificate.bound <= factors.value < 1800
    assert factors.levels[0].certificate.relative_gap < 1e-2
    with pytest.raises(ValueError, match="clusters of"):
        cvxnmf.partition(sp.eye_array(400_000, format="csr"), 300_000)


def test_partitions_in_groups_are_kept_in_files(graph, coarse, tmp_path):
    cvxnmf.save(coarse, tmp_path / "found.npz")
    again = cvxnmf.load(tmp_path / "found.npz")
    assert again.n_groups == N_GROUPS
    assert again.certificate.check(graph[0]) == coarse.certificate.bound


@pytest.mark.parametrize("loss", slow_but(["mse"], ["mse", "kl"]))
def test_large_symmetric_factorisations_start_from_groups(loss, tmp_path):
    A, _ = sparse_degree_corrected(2500, 6, 14, 0.2, 2.5, seed=0)
    found = cvxnmf.factorize(A, 6, loss, symmetric=True, effort=0)
    direct = cvxnmf.classical_nmf(A, 6, "hals", loss, symmetric=True, max_iter=1000, tol=1e-6)
    assert found.value <= 1.005 * direct.value
    start, whole = found.levels
    assert start.certificate.check(A) == start.certificate.bound
    assert (start.certificate.scope, whole.certificate.scope) == ("model", "rank-k")
    assert whole.certificate is found.certificate
    cvxnmf.save(found, tmp_path / "found.npz")
    again = cvxnmf.load(tmp_path / "found.npz")
    assert [level.size for level in again.levels] == [level.size for level in found.levels]
    assert again.levels[0].certificate.check(A) == start.certificate.bound
    assert cvxnmf.factorize(A.toarray()[:50, :50] + 1.0, 3).levels == ()


def test_the_number_of_components_of_a_large_graph_is_found():
    A, _ = sparse_degree_corrected(6_000, 5, 14, 0.2, None, seed=1)
    found = cvxnmf.factorize(A, symmetric=True, max_iter=20)
    assert found.n_components == 5
    assert found.certificate.bound <= found.value
