"""GML and GraphML."""

import networkx as nx
import numpy as np
import pytest
from files import dense, sentence_of, written

from cvxnmf.io import read_graph


def test_gml_by_labels_ids_and_twice_the_same_edge(tmp_path):
    nodes = 'node [ id 3 label "é" ] node [ id 5 label "b" ]'
    assert read_graph(written(tmp_path, "a.gml", f"graph [ {nodes} edge [ source 3 target 5 ] ]")).nodes == ("é", "b")
    same = nodes.replace('"b"', '"é"')
    graph = read_graph(written(tmp_path, "b.gml", f"graph [ {same} edge [ source 3 target 5 ] ]"))
    assert graph.nodes == ("3", "5")
    assert "ids" in graph.notes[0]
    bare = "node [ id 3 ] node [ id 5 ]"
    edge = "edge [ source 3 target 5 value 2 ]"
    graph = read_graph(written(tmp_path, "c.gml", f'Creator "me"\ngraph\n[\n  {bare} {edge} {edge} ]'))
    assert graph.nodes == ("3", "5")
    np.testing.assert_array_equal(dense(graph), [[0, 4], [4, 0]])
    assert any("'value'" in note for note in graph.notes)


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("ending", ["gml", "graphml"])
def test_networkx_round_trip(tmp_path, ending, packed):
    graph = nx.les_miserables_graph()
    getattr(nx, f"write_{ending}")(graph, tmp_path / f"g.{ending}{packed}")
    back = read_graph(tmp_path / f"g.{ending}{packed}")
    assert back.nodes == tuple(graph)
    np.testing.assert_array_equal(dense(back), nx.to_numpy_array(graph))


def test_a_directed_graph_keeps_its_directions(tmp_path):
    nx.write_graphml(nx.DiGraph([("a", "b"), ("b", "c")]), tmp_path / "d.graphml")
    np.testing.assert_array_equal(dense(read_graph(tmp_path / "d.graphml")), [[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_edges_with_impossible_weights_are_named(tmp_path):
    nx.write_gml(nx.Graph([("a", "b", {"weight": -1})]), tmp_path / "g.gml")
    assert "'a' and 'b' of weight -1" in sentence_of(tmp_path / "g.gml")
    assert dense(read_graph(tmp_path / "g.gml", weights=False)).sum() == 2
