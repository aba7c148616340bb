"""Results as data frames and as graphs of networkx."""

import sys

import networkx as nx
import numpy as np
import pytest

import cvxnmf


@pytest.fixture(scope="module")
def club():
    return cvxnmf.partition(nx.karate_club_graph(), weight=None)


@pytest.fixture(scope="module")
def rectangular():
    rng = np.random.default_rng(0)
    return cvxnmf.factorize(rng.random((12, 3)) @ rng.random((3, 8)), 2)


def test_a_partition_as_a_frame(club):
    frame = club.to_frame()
    assert list(frame.columns) == ["node", "cluster", "membership", "share 0", "share 1"]
    assert frame.set_index("node")["cluster"].to_dict() == club.to_dict()
    assert np.allclose(frame[["share 0", "share 1"]].sum(axis=1), 1.0)
    assert np.array_equal(frame["membership"], club.memberships.max(axis=1))


def test_nodes_of_a_frame_may_be_tuples():
    found = cvxnmf.partition(nx.grid_2d_graph(4, 4), 2)
    assert found.to_frame()["node"].tolist() == list(found.nodes)


def test_factors_as_frames(rectangular):
    rows = [f"row {i}" for i in range(12)]
    U = rectangular.to_frame(names=rows)
    assert list(U.index) == rows
    assert list(U.columns) == ["component 0", "component 1"]
    assert np.array_equal(rectangular.to_frame("V").to_numpy(), rectangular.V)


@pytest.mark.parametrize("which", ["solution", "factorization"])
def test_a_history_as_a_frame(club, which):
    result = getattr(club, which)
    frame = result.history_frame()
    assert list(frame.columns) == ["iteration", "seconds", "value", "bound", "gap", "rank"]
    assert len(frame) == len(result.history)


def test_a_partition_as_a_graph(club):
    graph = club.to_networkx()
    assert nx.utils.graphs_equal(nx.Graph(graph.edges), nx.Graph(nx.karate_club_graph().edges))
    assert {node: data["cluster"] for node, data in graph.nodes(data=True)} == club.to_dict()
    assert all(0 <= data["membership"] <= 1 for _, data in graph.nodes(data=True))


def test_weights_and_loops_survive():
    graph = nx.Graph([("a", "b", {"weight": 2.5}), ("b", "c", {"weight": 1.0}), ("c", "c", {"weight": 3.0}), ("a", "c", {})])
    again = cvxnmf.partition(graph, 2).to_networkx()
    assert again["a"]["b"]["weight"] == 2.5
    assert again["c"]["c"]["weight"] == 3.0
    assert again.number_of_edges() == 4


@pytest.mark.parametrize(("package", "method"), [("pandas", "to_frame"), ("networkx", "to_networkx")])
def test_what_is_missing_is_said_in_a_sentence(club, monkeypatch, package, method):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        getattr(club, method)()


def test_a_dask_series_without_dask_data_frames_is_refused_in_a_sentence(club, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(ImportError, match=r"pip install 'dask\[dataframe\]'"):
        club.to_dask()
