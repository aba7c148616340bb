"""The page: what stands in it and what cannot break it."""

import base64
import dataclasses
import json
import math
import os
import stat
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from strange_results import ATTACK, NAMES, hand_made

import cvxnmf
from builders import stochastic_block_graph
from cvxnmf import report
from cvxnmf.display.page import document, payload
from cvxnmf.results import Iterate

VOID = {"meta", "link", "input", "img", "br"}


class Reader(HTMLParser):
    """Reads a page, checks that elements are closed in order, and keeps scripts, tags and identifiers."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.scripts, self.ids, self.addresses, self.text = [], [], [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        given = dict(attributes)
        assert not [name for name in given if name.startswith("on")]
        self.ids += [given["id"]] if "id" in given else []
        self.addresses += [given[name] for name in ("href", "src") if name in given]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += text
        else:
            self.text += text


def read(page):
    """A page read, with nothing left open."""
    reader = Reader(page)
    assert not reader.open
    assert len(set(reader.ids)) == len(reader.ids)
    return reader


def data_of(page):
    return json.loads(read(page).scripts[0])


def numbers(packed):
    return np.frombuffer(base64.b64decode(packed["data"]), dtype="<" + packed["type"])


def test_the_page_holds_what_it_promises(club):
    reader = read(report.html(club, "Zachary's club"))
    for section in ("overview", "proof", "adjacency", "graph", "memberships", "solve", "nodes"):
        assert section in reader.ids
    for said in (
        "Zachary's club",
        "34",
        "78",
        f"{club.modularity:.4f}",
        f"{club.performance:.4f}",
        "noise edge",
        "weighted squared error",
    ):
        assert said in reader.text
    assert "No model of this kind can fit better than" in reader.text
    assert "No symmetric nonnegative factorisation UU' of A with 2 columns" in reader.text


def test_the_page_asks_for_nothing(club, factors):
    for page in (report.html(club), report.html(factors)):
        reader = read(page)
        assert set(reader.addresses) <= {"data:,", "#main"}
        assert "url(" not in page
        assert "@import" not in page
        assert "default-src 'none'" in page
        assert len(reader.scripts) == 2


def test_the_data_are_the_partition(club):
    data = data_of(report.html(club))
    assert data["names"] == [str(node) for node in club.nodes]
    assert np.array_equal(numbers(data["labels"]), club.labels)
    assert np.array_equal(numbers(data["order"]), club.order)
    first, second = numbers(data["edges"]["first"]), numbers(data["edges"]["second"])
    back = sp.coo_array((numbers(data["edges"]["weights"]), (first, second)), shape=club.A.shape).toarray()
    assert np.array_equal(back + back.T, club.A.toarray())
    assert np.array_equal(numbers(data["degree"]), [degree for _, degree in nx.karate_club_graph().degree()])


def test_names_cannot_break_out(attacked):
    page = report.html(attacked, title=ATTACK)
    assert "window.hacked = 1</script>" not in page
    assert "<img" not in page
    reader = read(page)
    assert len(reader.scripts) == 2
    assert json.loads(reader.scripts[0])["names"][:5] == NAMES[:5]
    assert ATTACK in reader.text


def test_the_same_result_gives_the_same_bytes(club, tmp_path):
    report.write(club, tmp_path / "one.html")
    report.write(club, str(tmp_path / "other.html"))
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "other.html").read_bytes()


def test_anything_else_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="a Factorization or a RankChoice, not a dict"):
        report.write({}, tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


def test_sizes_stay_small(club):
    sparse = stochastic_block_graph(1000, 10, 0.09, 0.004)
    dense = stochastic_block_graph(200, 2, 0.7, 0.3)
    pages = [report.html(hand_made(club, A, np.arange(len(A)) % k, k)) for A, k in ((sparse, 10), (dense, 2))]
    assert max(map(len, pages)) < 600_000
    n, k = 10_000, 25
    ends = np.random.default_rng(0).integers(0, n, (2, 200_000))
    A = sp.coo_array((np.ones(200_000), ends), shape=(n, n))
    page = report.html(hand_made(club, A + A.T, np.arange(n) % k, k))
    assert len(page) < 2_000_000
    assert "single edges are left out" in page
    assert "share 1,500 columns" in page
    assert "this graph has 10,000" in page


HISTORIES = {
    "none": (),
    "three": tuple(Iterate(i, 0.1 * i, 5.0 + 0.1**i, 5.0 - 0.1**i, 1) for i in (1, 2, 3)),
    "many": tuple(Iterate(i, 0.1 * i, 5.0 + 1 / i, 5.0 - 1 / i, 1) for i in range(1, 900)),
    "odd": (Iterate(1, 0.1, math.inf, -math.inf, 1), Iterate(2, 0.1, 5.0, -math.inf, 1), Iterate(3, math.nan, 5.0, 5.0, 0)),
    "still": tuple(Iterate(i, 0.0, 0.0, 0.0, 1) for i in range(20)),
    "unbounded": tuple(Iterate(i, 0.0, 1.0, -math.inf, 1) for i in range(20)),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_every_history_gives_a_page(club, name):
    solution = dataclasses.replace(club.solution, history=HISTORIES[name])
    reader = read(report.html(dataclasses.replace(club, solution=solution, factors=lambda: club.factorization)))
    assert ("The gap closing" in reader.text) == (name != "none")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bound": 0.0, "kind": "zero"}, "is not proved: nothing better than 0 was sought or found"),
        ({"rigorous": False, "kind": "lanczos"}, "It is not rigorous"),
        ({"rigorous": False, "probable": True, "kind": "lanczos"}, "a probability of at least 1 - 1e-12"),
        ({"value": math.inf}, "so nothing can be said"),
        ({"value": math.nan, "bound": math.nan}, "not known"),
        ({"value": 0.0, "bound": 0.0}, "so nothing can be gained"),
        ({"bound": -math.inf}, "is not proved: the bound that was reached is not above 0"),
    ],
)
def test_weak_certificates_are_told_honestly(club, changes, said):
    weak = dataclasses.replace(club.rank_certificate, **changes)
    proofs = dataclasses.replace(club.factorization, certificate=weak)
    page = report.html(dataclasses.replace(club, factors=lambda: proofs))
    assert said in read(page).text


@pytest.mark.parametrize(
    ("n", "edges", "k"), [(1, [], 1), (2, [], 2), (3, [], 1), (5, [(0, 1), (1, 1)], 3), (40, [(0, 1)], 20), (250, [(0, 1)], 70)]
)
def test_odd_graphs_give_a_page(club, n, edges, k):
    A = np.zeros((n, n))
    for i, j in edges:
        A[i, j] = A[j, i] = 2.0
    odd = hand_made(club, A, np.arange(n) % k, k)
    odd = dataclasses.replace(
        odd, spectrum=np.empty(0), noise_edge=math.nan, modularity=math.nan, memberships=odd.memberships * math.nan
    )
    assert numbers(data_of(report.html(odd))["share"]).max() == 0


def test_a_penalty_below_the_noise_edge_is_shown(club):
    below = dataclasses.replace(club, noise_edge=2 * club.certificate.statement["trace"], factors=lambda: club.factorization)
    assert "past a penalty of" in read(report.html(below)).text
    assert "past a penalty of" not in read(report.html(dataclasses.replace(below, noise_edge=below.noise_edge / 2))).text


def test_a_factorisation_has_its_page(factors):
    page = report.html(factors)
    data = data_of(page)
    assert np.array_equal(numbers(data["factors"][0]).reshape(30, 3), factors.U)
    assert np.array_equal(numbers(data["factors"][1]).reshape(20, 3), factors.V)
    assert {"overview", "proof", "factors", "solve"} <= set(read(page).ids)
    symmetric = cvxnmf.factorize(factors.U @ factors.U.T, 3, symmetric=True)
    assert len(data_of(report.html(symmetric))["factors"]) == 1


def test_large_factors_are_cut_down(factors):
    for rows, kept in ((20_000, "f8"), (60_000, "f4"), (90_000, "")):
        U = np.random.default_rng(0).random((rows, 3))
        page = report.html(dataclasses.replace(factors, U=U))
        assert len(page) < 2_000_000
        assert payload.kept_precision(dataclasses.replace(factors, U=U)) == kept
        assert ("cvxnmf.save keeps them" in page) == (kept == "")


def test_what_is_missing_is_said_in_a_sentence(club, monkeypatch):
    monkeypatch.setattr(document, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pages need jinja2 and matplotlib; install with: pip install jinja2 matplotlib\."):
        report.html(club)


def test_a_page_is_headed_by_the_name_of_the_graph_and_by_what_is_proved_of_the_clusters():
    graph = nx.karate_club_graph()
    found = cvxnmf.partition(graph, objective="modularity", prove=True, weight=None)
    text = read(report.html(found)).text
    assert text.index("Zachary's Karate Club") < text.index("34 nodes into 4 clusters") < text.index("No partition of this graph")
    assert text.index("No partition of this graph") < text.index("At a glance")
    assert "The gap closing" not in text  # a single step has no chart
    assert "Zachary" not in read(report.html(found, title="Mine")).text


def test_components_have_bars_images_and_sorted_factors(factors):
    named = factors.with_names(None, tuple(f"word <{i}>" for i in range(20)))
    page = report.html(named, shape=(4, 5))
    data = data_of(page)
    assert data["images"]["height"] == 4
    assert sorted(numbers(data["orders"][1])) == list(range(20))
    assert data["itemNames"] == [None, [f"word <{i}>" for i in range(20)]]
    strongest = factors.V[numbers(data["orders"][1])].argmax(axis=1)
    assert (np.diff(strongest) >= 0).all()
    reader = read(page)
    assert reader.tags.count("canvas") == 3 + 2
    assert "word <" in reader.text


def test_a_choice_of_rank_has_its_curve():
    rng = np.random.default_rng(0)
    counts = rng.poisson(20 * rng.gamma(0.5, size=(30, 2)) @ rng.gamma(0.5, size=(2, 20)))
    choice = cvxnmf.choose_rank(counts, [1, 2, 3], loss="kl")
    reader = read(report.html(choice))
    assert "ranks" in reader.ids
    assert choice.reason in reader.text


def test_the_page_says_whether_an_optimum_is_the_only_one():
    found = cvxnmf.partition(nx.karate_club_graph(), objective="modularity", prove=True, weight=None)
    page = report.html(found)
    assert "it is optimal." in page
    assert "No other partition is optimal." in page


def test_clusters_say_how_many_nats_they_save():
    found = cvxnmf.partition(nx.ring_of_cliques(6, 5))
    assert "6 clusters, -" in repr(found)
    assert " nats against 0.0 with 1, " in repr(found)
    assert read(report.html(found)).text.count("5 nodes, saves ") == 6


def test_a_page_takes_its_place_when_it_is_complete(club, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("the one before")
    path.chmod(0o640)
    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no room")))
        with pytest.raises(OSError, match="no room"):
            report.write(club, path)
    assert path.read_text() == "the one before"
    report.write(club, path)
    assert "<html" in path.read_text(encoding="utf8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


def test_a_page_of_arrays_is_headed_by_their_size():
    A = np.random.default_rng(0).random((7, 5))
    assert "<h1>Factorisation of 7 rows and 5 columns into 2 components</h1>" in report.html(cvxnmf.factorize(A, 2))
    assert "<h1>Factorisation of 7 nodes into 1 component</h1>" in report.html(cvxnmf.factorize(A @ A.T, 1))
