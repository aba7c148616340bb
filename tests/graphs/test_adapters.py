"""Graphs of other packages: names, weights, loops and directions, and what is refused."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import cvxnmf
from cvxnmf.graphs.adapters import named_graph
from cvxnmf.io.edge_lists import read_edges
from cvxnmf.io.source import read_source


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


def test_rows_of_an_adjacency_matrix_may_stand_in_any_order():
    frame = pd.DataFrame([[0, 2, 0], [2, 0, 5], [0, 5, 1]], index=[*"pqr"], columns=[*"pqr"])
    expected = entries(named_graph(frame))
    assert entries(named_graph(frame.loc[[*"rpq"]])) == expected
    assert named_graph(frame.loc[[*"rpq"]]).nodes == ("p", "q", "r")
    saved = pd.DataFrame([[2, 0], [1, 2]], index=[7, 8], columns=["8", "7"])  # a file gives columns as text, rows as numbers
    assert entries(named_graph(saved)) == {("8", "8"): 1.0, ("7", "8"): 2.0, ("8", "7"): 2.0}


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"w": [2.0, 1.0, 3.0], "a": [*"abc"], "b": [*"bcc"]}),
        pd.DataFrame({"w": [2, 1, 3], "a": [*"abc"], "b": [*"bcc"]}),
        pd.DataFrame({"a": [*"abc"], "weight": [2, 1, 3], "b": pd.Categorical([*"bcc"])}),
        pd.DataFrame([("a", "b", 2.0), ("b", "c", 1.0), ("c", "c", 3.0)]),  # rows and columns are both 0, 1, 2
    ],
)
def test_two_columns_of_names_are_ends_wherever_they_stand(frame):
    assert entries(named_graph(frame)) == EXPECTED


@pytest.mark.parametrize("kind", ["int64", "Int64", "uint8"])
def test_two_columns_of_whole_numbers_are_ends(kind):
    frame = pd.DataFrame({"x": [1, 2, 3], "y": [2, 3, 3]}).astype(kind)
    expected = {(1, 2): 1.0, (2, 1): 1.0, (2, 3): 1.0, (3, 2): 1.0, (3, 3): 1.0}
    assert entries(named_graph(frame)) == expected
    assert entries(named_graph(frame.assign(z=0.5))) == {pair: 0.5 for pair in expected}
    assert entries(named_graph(frame.assign(z=2), weight="z")) == {pair: 2.0 for pair in expected}
    assert entries(named_graph(frame.assign(weight=2))) == {pair: 2.0 for pair in expected}


@pytest.mark.parametrize("make", [list, tuple, set])
def test_pairs_are_edges(make):
    named = named_graph(make([(0, 1), (1, 2)]))
    assert named.nodes == (0, 1, 2)
    assert entries(named) == {(0, 1): 1.0, (1, 0): 1.0, (1, 2): 1.0, (2, 1): 1.0}
    assert named_graph([("b", "a"), ("a", "c")]).nodes == ("b", "a", "c")
    assert entries(named_graph([("a", "b", 2.0), ("b", "c"), ("c", "c", 3)])) == EXPECTED
    assert set(named_graph([("a", "b", 2.0), ("b", "c")], weight=None).A.data) == {1.0}
    assert cvxnmf.partition([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]).n_clusters == 2


def test_edges_of_networkx_and_pairs_of_names_in_lists_are_edges():
    graph = nx.karate_club_graph()
    assert entries(named_graph(graph.edges)) == entries(named_graph(list(graph.edges)))
    for make in (list, np.array):
        assert named_graph(make([["b", "a"], ["a", "c"]])).nodes == ("b", "a", "c")
    assert named_graph({("b", "c"), ("a", "b"), ("c", "d")}).nodes == ("a", "b", "c", "d")  # in any process


@pytest.mark.parametrize("make", [np.array, lambda pairs: np.array(pairs, dtype=np.uint16), lambda pairs: pairs])
def test_two_columns_of_an_array_of_whole_numbers_are_edges(make):
    named = named_graph(make([[5, 1], [1, 2], [2, 5]]))
    assert named.nodes == (1, 2, 5)
    assert named.A.toarray().tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert named_graph(make([[0, 1], [1, 0]])).A.toarray().tolist() == [[0, 1], [1, 0]]  # a square is an adjacency matrix


RNG = np.random.default_rng(0)
SIMILAR = RNG.integers(0, 3, (60, 60))
NAMES = [f"n{i}" for i in range(60)]


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        (pd.DataFrame(SIMILAR, NAMES, NAMES).reset_index(), "60 rows and 61 columns is neither an adjacency matrix"),
        (pd.DataFrame(RNG.integers(0, 9, (40, 25))), 'nor clearly a list of edges; name two columns of it "source"'),
        (pd.DataFrame(SIMILAR, columns=NAMES), "60 rows and 60 columns is neither"),
        (pd.DataFrame(RNG.random((30, 2)), columns=["x", "y"]), "neither an adjacency matrix"),
        (pd.DataFrame(RNG.integers(0, 9, (30, 3)), columns=["x", "y", "z"]), "neither an adjacency matrix"),
        (pd.DataFrame({"node": [*"abc"], "degree": [1, 2, 1]}), "neither an adjacency matrix"),
        (pd.DataFrame({"node": [*"abc"], "x": [1, 2, 1], "y": [1, 2, 1]}), "neither an adjacency matrix"),
        (pd.DataFrame({"a": [*"abc"], "b": [*"bcd"], "c": [*"cde"]}), "neither an adjacency matrix"),
        (pd.DataFrame({"a": [*"ab"], "b": [*"bc"], "weight": [1, 1], "year": [1, 2]}), "neither an adjacency matrix"),
        (pd.DataFrame([[0, 1], [1, 0]], ["a", "a"], ["a", "a"]), "several columns of the same name"),
        ([(0, 1, 1), (1, 0, 1), (1, 1, 0)], "may be edges with weights or an adjacency matrix"),
        ([(0, 1), (1, 2, 3, 4)], "a tuple here has another length"),
        (RNG.random((5, 2)), "must be square, not 5 by 2"),
    ],
)
def test_what_can_be_read_in_several_ways_is_refused_in_a_sentence(graph, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.partition(graph)


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


@pytest.mark.parametrize(
    ("graph", "origin"),
    [
        (nx.path_graph(4), "a networkx graph"),
        (nx.to_numpy_array(nx.path_graph(4)), "an adjacency matrix"),
        (nx.to_pandas_adjacency(nx.path_graph(4)), "an adjacency matrix"),
        ([(0, 1), (1, 2), (2, 3)], "a list of edges"),
        (np.array([[0, 1], [1, 2], [2, 3]]), "a list of edges"),
        (nx.to_pandas_edgelist(nx.path_graph(4)), "a data frame of edges in the columns 'source' and 'target'"),
    ],
)
def test_a_partition_says_what_was_read(graph, origin):
    found = cvxnmf.partition(graph, 2)
    assert (len(found.nodes), found.origin) == (4, origin)
    assert f"Partition of 4 nodes of {origin} into" in str(found)


def test_ends_of_edges_in_rows_and_anndata_are_told_what_to_pass():
    with pytest.raises(ValueError, match="numpy.transpose"):
        named_graph((np.array([0, 1, 2]), np.array([1, 2, 0])))
    with pytest.raises(ValueError, match="connectivities"):
        named_graph(SimpleNamespace(obsp={}, X=np.eye(3)))


@pytest.mark.parametrize(("names", "listed"), [("zayxbq", "zayxbq"), ([9, 10, 4, 2, 1, 0], [0, 1, 2, 4, 9, 10])])
@pytest.mark.parametrize("large", [1, 1 << 30])
def test_nodes_of_edges_stand_in_one_order_whatever_they_are_read_from(tmp_path, names, listed, large):
    """As they first occur line by line, whole numbers rising: in frames, lists, files, and files in blocks."""
    edges = [(names[a], names[b]) for a, b in [(0, 1), (2, 1), (3, 4), (4, 0), (5, 2)]]
    frame = pd.DataFrame(edges, columns=["source", "target"])
    frame.to_csv(tmp_path / "edges.csv", index=False)
    text = tuple(map(str, listed))
    assert read_edges(read_source(tmp_path / "edges.csv"), large=large).nodes == text
    assert named_graph(frame).nodes == named_graph(edges).nodes == tuple(listed)
    assert tuple(map(str, cvxnmf.partition(tmp_path / "edges.csv", memory_limit="32 GB").nodes)) == text


def test_the_name_of_an_igraph_graph_is_kept():
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph.Famous("Zachary")
    assert named_graph(graph).name == ""
    graph["name"] = "the club"
    assert named_graph(graph).name == "the club"


def test_edges_as_networkx_lists_them_with_their_data():
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", 3.0)])
    listed = list(graph.edges(data=True))
    for weight in ("weight", None):
        listed_too = named_graph(listed, weight)
        assert abs(listed_too.A - named_graph(graph, weight).A).nnz == 0
    with pytest.raises(ValueError, match="No edge has the weight 'cost'"):
        named_graph(listed, "cost")
