"""Results as cards for notebooks."""

import dataclasses
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pandas as pd
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


def test_the_card_of_clusters_of_rows_and_columns():
    found = cvxnmf.cocluster(pd.DataFrame(np.kron(np.eye(2), np.ones((8, 3))) + 0.01, columns=[NASTY, *"bcdef"]))
    page = Reader(found._repr_html_())
    assert "2 clusters of 16 rows and 6 columns" in page.text
    assert "8: 0, 1, 2, 3, 4, 5, …" in page.text
    assert "soon as you look at it: .certificate" in page.text
    assert found.certificate.rigorous
    assert "proved bound" in Reader(found._repr_html_()).text


def test_cards_are_whole_and_say_what_is_proved(club, rectangular):
    for result in cards(club, rectangular):
        page = Reader(result._repr_html_())
        assert page.tags <= {"div", "span", "table", "tr", "th", "td", "details", "summary"}
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
