"""Files of graphs of other programs."""

import json

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
@pytest.mark.parametrize("ending", ["gml", "graphml", "gexf"])
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


def test_pajek_by_labels(tmp_path):
    graph = nx.les_miserables_graph()
    nx.write_pajek(graph, tmp_path / "g.net")
    back = read_graph(tmp_path / "g.net")
    assert back.nodes == tuple(graph)
    np.testing.assert_array_equal(dense(back), nx.to_numpy_array(graph))


def test_gexf_goes_by_labels_where_they_differ(tmp_path):
    graph = nx.Graph([(0, 1), (1, 2)])
    nx.set_node_attributes(graph, {0: "Ann", 1: "Bob", 2: "Cy"}, "label")
    nx.write_gexf(graph, tmp_path / "g.gexf")
    assert read_graph(tmp_path / "g.gexf").nodes == ("Ann", "Bob", "Cy")


@pytest.mark.parametrize("edges", ["links", "edges"])
def test_node_link_json(tmp_path, edges):
    graph = nx.les_miserables_graph()
    content = nx.node_link_data(graph, edges=edges)
    written(tmp_path, "g.json", json.dumps(content))
    back = read_graph(tmp_path / "g.json")
    assert back.nodes == tuple(graph)
    np.testing.assert_array_equal(dense(back), nx.to_numpy_array(graph))


def test_node_link_json_of_old_d3_names_nodes_by_number(tmp_path):
    written(tmp_path, "g.json", '{"nodes": [{"name": "a"}, {"name": "b"}], "links": [{"source": 0, "target": 1, "value": 3}]}')
    graph = read_graph(tmp_path / "g.json")
    assert graph.nodes == ("a", "b")
    np.testing.assert_array_equal(dense(graph), [[0, 3], [3, 0]])


@pytest.mark.parametrize(
    "content", ["[1, 2]", '{"nodes": []}', '{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 7}]}', "{"]
)
def test_other_json_is_one_sentence(tmp_path, content):
    assert "node-link JSON" in sentence_of(written(tmp_path, "g.json", content))
