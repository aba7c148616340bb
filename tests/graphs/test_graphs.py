"""Block graphs, adapters, and what is measured on a partition."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import cvxnmf
from cvxnmf.graphs.adapters import named_graph
from cvxnmf.graphs.quality import modularity
from naive import naive_modularity, naive_performance


def test_block_graphs_are_symmetric_zero_one_and_repeatable():
    A, labels = cvxnmf.block_graph(31, 0.3, 0.7)
    again, _ = cvxnmf.block_graph(31, 0.3, 0.7)
    np.testing.assert_array_equal(A, A.T)
    np.testing.assert_array_equal(A, again)
    assert set(np.unique(A)) == {0.0, 1.0}
    assert sorted(np.bincount(labels)) == [15, 16]
    assert not np.array_equal(A, cvxnmf.block_graph(31, 0.3, 0.7, rng=1)[0])


def test_thresholds_set_the_densities():
    A, labels = cvxnmf.block_graph(600, 0.3, 0.8, rng=np.random.default_rng(0))
    same = labels[:, None] == labels[None, :]
    assert A[same].mean() == pytest.approx(0.7, abs=0.01)
    assert A[~same].mean() == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((1, 0.3, 0.7), "n must be an integer of at least 2"),
        ((10, -0.1, 0.7), "alpha must lie between 0 and 1"),
        ((10, 0.3, 1.7), "beta must lie between 0 and 1"),
        ((10, "a", 0.7), "alpha must be a finite number"),
        ((10, 0.3, 0.7, "seed"), "rng must be a seed"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.block_graph(*arguments)


# Measures ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [3, 4, 6])
@pytest.mark.parametrize("path", [0, 1, 2])
def test_performance_of_barbell_graphs_is_an_exact_fraction(m, path):
    """Two bells of m nodes and the path between them: wrong are the path's and bridges' edges and the zero diagonal."""
    A = nx.to_numpy_array(nx.barbell_graph(m, path), nodelist=range(2 * m + path))
    labels = np.array([0] * m + list(range(1, path + 1)) + [path + 1] * m)
    n = 2 * m + path
    assert cvxnmf.performance(A, labels) == float(1 - Fraction(2 * (path + 1) + n, n * n))
    assert cvxnmf.performance(A, labels, diagonal=False) == float(1 - Fraction(2 * (path + 1), n * (n - 1)))


@pytest.mark.parametrize("seed", range(5))
def test_performance_relates_to_that_of_networkx(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(15, 0.4, seed=seed)
    labels = rng.integers(0, 3, 15)
    A = nx.to_numpy_array(graph)
    theirs = nx.community.partition_quality(graph, [set(np.flatnonzero(labels == c)) for c in np.unique(labels)])[1]
    n = 15
    assert cvxnmf.performance(A, labels) == pytest.approx(1 - (n * (n - 1) * (1 - theirs) + n) / n**2, abs=1e-14)
    assert cvxnmf.performance(A, labels, diagonal=False) == pytest.approx(theirs, abs=1e-14)


@given(st.integers(1, 8), st.integers(0, 10**6))
def test_measures_equal_their_naive_twins(n, seed):
    rng = np.random.default_rng(seed)
    A = np.triu(rng.integers(0, 3, (n, n)) * rng.random((n, n)))
    A = A + np.triu(A, 1).T
    labels = rng.integers(0, 3, n)
    assert cvxnmf.performance(A, labels) == pytest.approx(naive_performance(A, labels), abs=1e-14)
    assert cvxnmf.performance(sp.csr_array(A), labels) == cvxnmf.performance(A, labels)
    assert modularity(A, labels) == pytest.approx(naive_modularity(A, labels), abs=1e-12)


def test_performance_is_the_squared_error_of_the_indicator(karate):
    """The paper's identity: for 0/1 data n^2 (1 - perf) = ||A - XX'||^2."""
    X = np.eye(3)[np.arange(34) % 3]
    assert 34**2 * (1 - cvxnmf.performance(karate, np.arange(34) % 3)) == pytest.approx(np.sum((karate - X @ X.T) ** 2))


def test_measures_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="labels must name a cluster for each of the 3 nodes"):
        cvxnmf.performance(np.ones((3, 3)), [0, 1])
    with pytest.raises(ValueError, match="square adjacency matrix"):
        cvxnmf.performance(np.ones((2, 3)), [0, 1])
    assert cvxnmf.performance(np.zeros((1, 1)), ["only"], diagonal=False) == 1.0


# Adapters ----------------------------------------------------------------------------------------------------------------------


def small_graph():
    graph = nx.Graph()
    graph.add_node("alone")
    graph.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", 1.0), ("c", "c", 3.0)])
    return graph


EXPECTED = {("a", "b"): 2.0, ("b", "a"): 2.0, ("b", "c"): 1.0, ("c", "b"): 1.0, ("c", "c"): 3.0}


def entries(named):
    coordinates = named.A.tocoo()
    triples = zip(coordinates.row, coordinates.col, coordinates.data, strict=True)
    return {(named.nodes[i], named.nodes[j]): value for i, j, value in triples}


def test_networkx_graphs_keep_names_weights_and_loops():
    named = named_graph(small_graph())
    assert named.nodes == ("alone", "a", "b", "c")
    assert entries(named) == EXPECTED
    assert set(named_graph(small_graph(), weight=None).A.data) == {1.0}


def test_igraph_graphs_read_the_same():
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph.from_networkx(small_graph())
    graph.vs["name"] = graph.vs["_nx_name"]
    assert entries(named_graph(graph)) == EXPECTED
    assert named_graph(igraph.Graph([(0, 1), (1, 2)])).nodes == (0, 1, 2)


@pytest.mark.parametrize("columns", [["from", "to", "weight"], ["x", "y", "z"]])
def test_frames_of_edges_read_the_same(columns):
    frame = pd.DataFrame([("a", "b", 2.0), ("b", "c", 1.0), ("c", "c", 3.0)], columns=columns)
    assert entries(named_graph(frame)) == EXPECTED
    assert set(named_graph(frame[columns[:2]]).A.data) == {1.0}


def test_a_square_frame_with_equal_names_is_an_adjacency_matrix():
    frame = pd.DataFrame([[0, 2], [2, 1]], index=["p", "q"], columns=["p", "q"])
    assert entries(named_graph(frame)) == {("p", "q"): 2.0, ("q", "p"): 2.0, ("q", "q"): 1.0}


def test_repeated_edges_add_up():
    multi = nx.MultiGraph([(0, 1), (1, 0), (1, 2)])
    assert entries(named_graph(multi)) == {(0, 1): 2.0, (1, 0): 2.0, (1, 2): 1.0, (2, 1): 1.0}


@pytest.mark.parametrize("kind", ["networkx", "array", "sparse"])
def test_directed_graphs_are_symmetrised_with_a_warning(kind):
    graph = nx.DiGraph([(0, 1), (1, 0), (1, 2)])
    A = nx.to_numpy_array(graph)
    given_as = {"networkx": graph, "array": A, "sparse": sp.coo_matrix(A)}[kind]
    named = named_graph(given_as)
    assert named.note.startswith("The graph is directed and was made undirected: joined where either direction is")
    np.testing.assert_array_equal(named.A.toarray(), np.maximum(A, A.T))


def test_weights_of_two_directions_are_averaged_and_mutual_edges_need_no_warning():
    named = named_graph(np.array([[0.0, 3.0], [1.0, 0.0]]))
    assert "averaged" in named.note
    np.testing.assert_array_equal(named.A.toarray(), [[0.0, 2.0], [2.0, 0.0]])
    mutual = named_graph(nx.DiGraph([(0, 1), (1, 0)]))
    assert mutual.note is None
    assert entries(mutual) == {(0, 1): 1.0, (1, 0): 1.0}


def test_the_warning_about_directions_points_at_the_caller():
    with pytest.warns(UserWarning, match="made undirected") as caught:
        cvxnmf.partition(nx.DiGraph([(0, 1), (1, 2), (2, 0), (2, 3)]))
    assert caught[0].filename == __file__


def test_headings_of_a_frame_tell_its_columns():
    frame = pd.DataFrame({"id": [1, 2], "weight": [2.0, 1.0], "target": ["b", "c"], "source": ["a", "b"]})
    assert entries(named_graph(frame)) == {("a", "b"): 2.0, ("b", "a"): 2.0, ("b", "c"): 1.0, ("c", "b"): 1.0}


def test_rounding_of_single_precision_is_no_direction():
    A = np.random.default_rng(0).random((30, 30)).astype(np.float32)
    A = A + A.T
    A[0, 1] *= np.float32(1 + 2e-7)
    assert named_graph(A).note is None


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        (nx.Graph([(0, 1, {"weight": -1.0})]), "edge from 0 to 1 has the weight -1.0; only finite weights"),
        (nx.Graph([(0, 1, {"weight": float("nan")})]), "only finite weights"),
        (nx.Graph([(0, 1, {"weight": "heavy"})]), "weight 'heavy', which is not a number"),
        (np.array([[0.0, -1.0], [-1.0, 0.0]]), "Negative values in data: the adjacency matrix is -1 at row 0, column 1"),
        (np.array([[0.0, np.nan], [np.nan, 0.0]]), "The adjacency matrix is nan at row 0"),
        (np.ones((2, 3)), "must be square, not 2 by 3"),
        ("karate.gml", "is a string; read the file first"),
        (pd.DataFrame({"only": [1, 2]}), "needs two columns of node names"),
        (pd.DataFrame({"a": ["x", None], "b": ["y", "z"]}), "missing node names"),
        (None, "must be a matrix"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(graph, sentence):
    with pytest.raises(ValueError, match=sentence):
        named_graph(graph)
