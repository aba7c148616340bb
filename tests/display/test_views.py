"""Results for notebooks, as data frames and as graphs of networkx."""

import builtins
import dataclasses
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest

import cvxnmf

NASTY = "<script>alert(1)</script> & \"quoted\" 'too' \ud800"


class Reader(HTMLParser):
    """The text of a page, and whether its tags are closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.text = [], set(), ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def club():
    return cvxnmf.partition(nx.karate_club_graph(), weight=None)


@pytest.fixture(scope="module")
def rectangular():
    rng = np.random.default_rng(0)
    return cvxnmf.factorize(rng.random((12, 3)) @ rng.random((3, 8)), 2)


def cards(club, rectangular):
    paired = cvxnmf.solve(cvxnmf.nonsymmetric(np.kron([[5.0, 1.0], [1.0, 5.0]], np.ones((4, 3)))))
    return [club, club.solution, club.certificate, club.factorization, cvxnmf.exp_factor(club.solution), rectangular, paired]


def test_cards_are_whole_and_say_what_is_proved(club, rectangular):
    for result in cards(club, rectangular):
        page = Reader(result._repr_html_())
        assert page.tags <= {"div", "table", "tr", "th", "td"}
        if not isinstance(result, cvxnmf.CPFactor):
            assert "proved bound" in page.text
            assert "could be gained" in page.text
            assert "rounding" in page.text


def test_cards_take_the_colours_of_the_notebook(club):
    page = club._repr_html_()
    assert "color:" not in page.replace("background-color:", "")
    assert "background:#fff" not in page


def test_names_of_nodes_cannot_break_a_card(club):
    page = dataclasses.replace(club, nodes=(NASTY,) * 34)._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    page.encode()
    Reader(page)


def test_bounds_of_every_state_have_a_card(club):
    certificate = club.certificate
    for change in ({"bound": 0.0, "kind": "zero"}, {"rigorous": False}, {"restored": True}, {"value": np.inf}, {"value": 0.0}):
        Reader(dataclasses.replace(certificate, **change, digest="")._repr_html_())


def test_many_clusters_are_counted(club):
    many = dataclasses.replace(club, memberships=np.tile(np.eye(17), (2, 1)), labels=np.tile(np.arange(17), 2))
    assert "5 smaller clusters" in many._repr_html_()


def test_factors_of_large_graphs_are_not_computed_for_printing(club, monkeypatch):
    monkeypatch.setattr("cvxnmf.results.partition.PROVED_WHEN_PRINTED", 5)
    fresh = dataclasses.replace(club, factors=lambda: pytest.fail("computed"))
    assert "rank_certificate" in str(fresh)
    assert "rank_certificate" in fresh._repr_html_()


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
    really = builtins.__import__

    def without(name, *rest):
        if name == package:
            raise ImportError(name)
        return really(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        getattr(club, method)()
