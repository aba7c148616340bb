"""Undirected edges as an adjacency matrix: repeated ones, both directions, weight 0."""

import numpy as np
from files import dense, written

from cvxnmf.io import read_graph


def test_repeated_edges_without_weights_count_once(tmp_path):
    graph = read_graph(written(tmp_path, "g.txt", "a b\nb a\na b\nb b\nb b\n"))
    np.testing.assert_array_equal(dense(graph), [[0, 1], [1, 1]])
    assert "3 of 5 edges are repeated" in graph.notes[0]
    assert "1 of 2 edges is repeated or stands" in read_graph(written(tmp_path, "h.txt", "a b\nb a\n")).notes[0]


def test_repeated_edges_with_weights_add_up(tmp_path):
    graph = read_graph(written(tmp_path, "g.txt", "a b 1\nb a 2\na b 4\nb b 8\nb b 8\n"))
    np.testing.assert_array_equal(dense(graph), [[0, 7], [7, 16]])
    assert "third column is taken as weights" in graph.notes[0]
    assert "3 of 5 weighted edges" in graph.notes[1]


def test_edges_listed_both_ways_with_equal_weights_count_once(tmp_path):
    graph = read_graph(written(tmp_path, "g.txt", "a b 1\nb a 1\nb c 3\nc b 3\nc c 2\n"))
    np.testing.assert_array_equal(dense(graph), [[0, 1, 0], [1, 0, 3], [0, 3, 2]])
    assert "both directions" in graph.notes[1]


def test_edges_of_weight_zero_are_left_out_and_their_nodes_kept(tmp_path):
    graph = read_graph(written(tmp_path, "g.txt", "a b 1\nb c 0\n"))
    assert graph.nodes == ("a", "b", "c")
    assert graph.A.nnz == 2
    assert graph.notes[1:] == ("1 edge has weight 0 and is left out.",)
