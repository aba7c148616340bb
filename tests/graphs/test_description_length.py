"""Description lengths: the formula, the number of clusters that they choose, merges and hierarchies."""

from math import comb, lgamma, log

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.metrics.pairwise import cosine_similarity

import cvxnmf
from builders import planted_graph
from cvxnmf.graphs.block_model import RateModel
from cvxnmf.graphs.candidates import best_candidates, split_clusters
from cvxnmf.graphs.description_length import describe_graph
from cvxnmf.graphs.given_number import divide_further, divisions
from cvxnmf.graphs.hierarchy import hierarchy_of
from cvxnmf.graphs.merges import merge_clusters
from cvxnmf.graphs.score import Score
from naive import naive_block_likelihood, naive_score


def csr(graph):
    return sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))


@pytest.mark.parametrize("rates", RateModel)
def test_the_length_is_that_of_the_formula(rates):
    A, labels = planted_graph(60, 3, 12, 0.2, connected=True)
    graph, common = describe_graph(sp.csr_array(A)), rates is RateModel.COMMON
    sizes, n, edges = np.bincount(labels), len(A), A.sum() / 2
    once = lambda e, N: e + (N - e) * np.log1p(-e / N)  # noqa: E731
    inside = [A[labels == r][:, labels == r].sum() / 2 for r in range(3)]
    pairs = sizes * (sizes - 1) / 2
    likelihood = naive_block_likelihood(A, labels, 3, common) - naive_block_likelihood(A, 0 * labels, 1, common)
    likelihood += (
        sum(map(once, inside, pairs)) + once(edges - sum(inside), n * (n - 1) / 2 - pairs.sum()) - once(edges, n * (n - 1) / 2)
    )
    cost = lgamma(n + 1) - sum(lgamma(size + 1) for size in sizes) + log(comb(n - 1, 2)) + log(n)
    cost += (1 if common else 3) / 2 * log(edges)
    found = graph.candidate(labels, rates)
    assert found.length == pytest.approx(cost - likelihood)
    assert graph.candidate(0 * labels).length == 0.0


@pytest.mark.parametrize("rates", RateModel)
def test_moves_raise_what_shortens_the_description(rates):
    """At given rates and number of clusters, differences of the score are differences of the length."""
    A, labels = planted_graph(80, 4, 12, 0.3, connected=True)
    graph = describe_graph(sp.csr_array(A))
    before, score = graph.candidate(labels, rates), graph.score(labels, rates)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = before.labels.copy()
        other[rng.integers(80)] = rng.integers(4)
        gained = naive_score(A, other, score) - naive_score(A, before.labels, score)
        shorter = before.length - graph.candidate(other, rates).length
        assert shorter == pytest.approx(
            gained, rel=0.1, abs=1.0
        )  # the rest is the change of the best rates, and of the pairs across


@pytest.mark.parametrize(("count", "size"), [(30, 5), (100, 5), (200, 4)])
def test_rings_of_cliques_are_found(count, size):
    A = csr(nx.ring_of_cliques(count, size))
    _, found = best_candidates(describe_graph(A), np.zeros(A.shape[0], dtype=np.int64))
    assert found[0].n_clusters == count
    assert len(set(zip(found[0].labels.tolist(), (np.arange(A.shape[0]) // size).tolist(), strict=True))) == count


def test_edges_that_hang_together_in_triangles_count_less():
    points = np.random.default_rng(0).random((400, 2))
    near = (((points[:, None] - points[None]) ** 2).sum(axis=-1) < 0.005).astype(float) - np.eye(400)
    independent, labels = planted_graph(400, 4, 12, 0.2, connected=True)
    assert describe_graph(sp.csr_array(independent)).tied_edges(labels) < 1.1
    graph = describe_graph(sp.csr_array(near[near.sum(axis=1) > 0][:, near.sum(axis=1) > 0]))
    assert graph.tied_edges(np.zeros(graph.A.shape[0], dtype=np.int64)) > 2.0
    assert describe_graph(csr(nx.ring_of_cliques(5, 5))).tied_edges(np.arange(25) // 5) == 1.0


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_the_best_merge_is_made_at_every_step(k):
    A, labels = planted_graph(30, 5, 10, 0.3, connected=True)
    graph = describe_graph(sp.csr_array(A))
    score = Score(1.0, 1.0 / A.sum())
    merged = merge_clusters(graph.level, score, graph.logs, labels, k)
    current = np.unique(labels, return_inverse=True)[1]
    while current.max() + 1 > k:
        pairs = [(a, b) for a in range(current.max() + 1) for b in range(a)]
        unions = [np.unique(np.where(current == a, b, current), return_inverse=True)[1] for a, b in pairs]
        current = max(unions, key=lambda division: naive_score(A, division, score))
    assert len(set(zip(merged.tolist(), current.tolist(), strict=True))) == k


def test_divisions_into_a_given_number_are_merged_from_finer_ones():
    A, labels = planted_graph(200, 4, 16, 0.15, connected=True)
    graph = describe_graph(sp.csr_array(A))
    graph, found = best_candidates(graph, np.zeros(200, dtype=np.int64))
    assert {candidate.n_clusters for candidate in divisions(graph, found, [], 3)} == {3}
    given = divisions(graph, found, [np.arange(200) % 4], 4)
    assert given[0].length == min(division.length for division in given) <= graph.candidate(labels).length


def test_more_clusters_than_were_found_are_split_off():
    cliques = sp.csr_array(sp.block_diag([np.ones((6, 6)) - np.eye(6)] * 8))
    graph, halves = describe_graph(cliques), np.arange(48) // 24
    assert split_clusters(graph, halves).tolist() == (np.arange(48) // 6).tolist()
    given = divisions(graph, [graph.candidate(halves)], [], 8)
    assert given[0].labels.tolist() == (np.arange(48) // 6).tolist()


def test_what_is_divided_further_stays_within_its_clusters():
    A, labels = planted_graph(300, 3, 14, 0.1, connected=True)
    graph = describe_graph(sp.csr_array(A))
    further = divide_further(graph, labels, 9)
    assert further.n_clusters == 9
    sizes = np.bincount(further.labels)
    inside = [np.bincount(labels[further.labels == r]).max() / sizes[r] for r in range(9)]
    assert np.average(inside, weights=sizes) > 0.95
    assert sizes.max() < 80
    assert divide_further(graph, labels, 301) is None


def degree_code(degrees, groups):
    """Nats for degrees as ends of edges that fall on the nodes of their groups evenly."""
    ends = [degrees[groups == r] for r in np.unique(groups)]
    return sum(d.sum() * log(len(d)) - lgamma(d.sum() + 1) + sum(lgamma(x + 1) for x in d) for d in ends)


def test_degrees_are_even_where_clusters_explain_them():
    sizes = [150, *[15] * 3]
    graph = nx.stochastic_block_model(sizes, np.where(np.eye(4, dtype=bool), 0.5, 0.02), seed=1)
    A, labels = csr(graph), np.repeat(range(4), sizes)
    plain = describe_graph(A)
    even = plain.with_fitting_degrees(labels)
    assert even.even
    assert even.with_fitting_degrees(labels) is even
    heavy = nx.barabasi_albert_graph(300, 3, seed=0)
    assert not describe_graph(csr(heavy)).with_fitting_degrees(np.arange(300) % 3).even
    degrees, one = np.diff(A.indptr), np.zeros(len(labels), dtype=int)
    histogram = np.bincount(degrees)
    known = (
        lgamma(len(degrees) + 1) - sum(lgamma(x + 1) for x in histogram) + 0.5 * log(len(degrees)) * np.count_nonzero(histogram)
    )
    assert even.degree_cost == pytest.approx(degree_code(degrees, one) - known)
    own = even.with_own_degrees()
    assert own.degree_cost == 0.0
    assert own.candidate(labels).length == plain.candidate(labels).length


def test_a_hierarchy_is_nested_and_has_its_lengths():
    A = csr(nx.ring_of_cliques(6, 5))
    labels = np.arange(30) // 5
    found, graph = hierarchy_of(A, labels), describe_graph(A)
    assert found.n_clusters == 6
    for k in range(1, 7):
        division = found.at(k)
        assert len(set(division.tolist())) == k
        assert found.lengths[6 - k] == pytest.approx(graph.candidate(division).length)
        assert len(set(zip(labels.tolist(), division.tolist(), strict=True))) == 6
    assert (found.savings > 0).all()
    pair = cvxnmf.partition(nx.Graph(nx.karate_club_graph().edges), 2).hierarchy
    np.testing.assert_allclose(pair.savings, pair.lengths[1] - pair.lengths[0])  # one length, whoever quotes it
    with pytest.raises(ValueError, match="1 to 6 clusters, not 7"):
        found.at(7)


@pytest.mark.parametrize("sides", [(6, 6), (10, 10), (5, 20)])
def test_sides_of_a_bipartite_graph_are_no_clusters(sides):
    graph = nx.complete_bipartite_graph(*sides)
    assert cvxnmf.partition(graph).n_clusters == 1
    assert cvxnmf.partition(graph, 2).modularity >= -1e-12


@pytest.mark.parametrize("loops", [0.0, 1.0])
def test_similarities_have_few_clusters_with_and_without_their_diagonal(loops):
    data, truth = load_digits(return_X_y=True)
    A = cosine_similarity(data[::8])
    np.fill_diagonal(A, loops)
    found = cvxnmf.partition(A)
    assert 5 <= found.n_clusters <= 12
    assert adjusted_mutual_info_score(truth[::8], found.labels) > 0.6
