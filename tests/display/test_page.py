"""The page: what stands in it, what cannot break it, and how it behaves in a real browser."""

import base64
import csv
import dataclasses
import io
import json
import math
import re
import shutil
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import stochastic_block_graph
from cvxnmf import report
from cvxnmf.display import formatting
from cvxnmf.display.page import layout, payload
from cvxnmf.results import Iterate, Partition

ATTACK = "</script><script>window.hacked = 1</script>"
NAMES = [
    ATTACK,
    '<img src=x onerror="window.hacked=1">',
    "say \"hi\", 'you'",
    "Åsa 数学 🧮",
    "",
    "\ud800 lone",
    "a\nb",
    "‮turn",
    "&lt;b&gt;",
]
VOID = {"meta", "link", "input", "img", "br"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


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


def hand_made(club, A, labels, k):
    """A partition of any graph, with the proofs of another."""
    n, labels = len(labels), np.asarray(labels, dtype=np.intp)
    changes = {
        "nodes": tuple(range(n)),
        "labels": labels,
        "memberships": np.eye(k)[labels],
        "order": np.argsort(labels, kind="stable"),
        "A": sp.csr_array(A),
    }
    return dataclasses.replace(club, **changes, factors=lambda: club.factorization)


@pytest.fixture(scope="module")
def club():
    return cvxnmf.partition(nx.karate_club_graph(), 2)


@pytest.fixture(scope="module")
def attacked(club):
    nodes = (*NAMES, *club.nodes[len(NAMES) :])
    return dataclasses.replace(club, nodes=nodes, factors=lambda: club.factorization)


@pytest.fixture(scope="module")
def factors():
    rng = np.random.default_rng(0)
    return cvxnmf.factorize(rng.random((30, 4)) @ rng.random((4, 20)), 3)


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
    with pytest.raises(ValueError, match="a Partition or a Factorization, not of dict"):
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
    assert ("No steps were recorded." in reader.text) == (name == "none")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bound": 0.0, "kind": "zero"}, "is not proved: nothing better than 0 is known"),
        ({"rigorous": False, "kind": "lanczos"}, "It is not rigorous"),
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


def test_the_layout_is_finite_and_keeps_clusters_together():
    A = sp.csr_array(stochastic_block_graph(60, 3, 0.5, 0.02))
    labels = np.random.default_rng(0).integers(0, 3, 60)
    spots = layout.places(A, labels)
    assert np.isfinite(spots).all()
    assert np.abs(spots).max() == pytest.approx(1.0)
    centres = np.array([spots[labels == c].mean(axis=0) for c in range(3)])
    assert len(np.unique(np.round(spots, 6), axis=0)) == 60
    assert np.linalg.norm(centres[:, None] - centres, axis=2).max() > 0.1


def test_numbers_in_words():
    assert formatting.number(1234567.891) == "1,234,568"
    assert formatting.number(-2.5e-9, 2) == "−2.5·10⁻⁹"
    assert formatting.lower_bound(2.99999999, 3) == "2.99"
    assert formatting.percent(0.15501) == "16%"
    assert formatting.percent(1e-12) == "0.0001%"
    assert formatting.number(math.nan) == "not known"


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
        assert payload.precision(dataclasses.replace(factors, U=U)) == kept
        assert ("cvxnmf.save keeps them" in page) == (kept == "")


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium was found")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens results in pages of their own and afterwards asks whether anything went wrong."""
    complaints, requests, pages = [], [], []

    def opened(result: Partition, width=1200, **options):
        path = tmp_path / f"{len(pages)}.html"
        report.write(result, path)
        context = browser.new_context(viewport={"width": width, "height": 900}, accept_downloads=True, **options)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        pages.append(context)
        return page

    yield opened
    for context in pages:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []


def column(page, place):
    return page.eval_on_selector_all(
        f"table.nodes tbody td:nth-child({place})", "cells => cells.map(cell => cell.textContent.trim())"
    )


def test_search_and_sort(show, club):
    page = show(club)
    assert len(column(page, 1)) == 25
    page.click("#more")
    assert len(column(page, 1)) == 34
    page.get_by_label("Search nodes").fill("3")
    assert set(column(page, 1)) == {str(node) for node in club.nodes if "3" in str(node)}
    assert f"{len(column(page, 1))} of 34 nodes" in page.inner_text("#shown")
    page.get_by_label("Search nodes").fill("")
    head = page.locator("th:has(button[data-sort=degree])")
    page.click("[data-sort=degree]")
    degrees = [int(cell) for cell in column(page, 4)]
    assert degrees == sorted(degrees, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    page.click("[data-sort=degree]")
    assert head.get_attribute("aria-sort") == "ascending"
    page.click("[data-sort=name]")
    assert column(page, 1) == [str(node) for node in range(25)]
    page.click(".chip[data-cluster='1']")
    assert set(column(page, 2)) == {"1"}


@pytest.mark.parametrize("name", ["matrix-before", "matrix-after", "heat-0", "graph"])
def test_names_appear_under_the_pointer_and_under_the_keys(show, club, name):
    page = show(club)
    tip, host = page.locator("#tip"), page.locator(f"[data-plot='{name}']")
    host.scroll_into_view_if_needed()
    spot = host.locator(".node").first if name == "graph" else host
    spot.hover(position=None if name == "graph" else {"x": 5, "y": 5})
    expected = club.nodes[0] if name in {"matrix-before", "graph"} else club.nodes[club.order[0]]
    assert re.search(rf"^{expected} in cluster {club.labels[expected]}", tip.inner_text())
    page.mouse.move(0, 0)
    assert tip.is_hidden()
    host.focus()
    page.keyboard.press("ArrowRight")
    assert re.search(r"in cluster \d", tip.inner_text())
    page.keyboard.press("Escape")
    assert tip.is_hidden()


def test_the_theme_follows_the_system_until_it_is_chosen(show, club):
    page = show(club, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    page.click("#theme")
    assert page.locator("#theme").get_attribute("aria-pressed") == "false"
    assert page.evaluate(ground) != dark
    assert show(club, color_scheme="light").evaluate(ground) != dark


def downloaded(page, button):
    with page.expect_download() as waiting:
        page.click(button)
    with open(waiting.value.path(), newline="", encoding="utf-8") as file:
        return waiting.value.suggested_filename, list(csv.reader(io.StringIO(file.read())))


def test_the_labels_download_from_a_file(show, attacked):
    name, rows = downloaded(show(attacked), "#download")
    assert name == "labels.csv"
    assert rows[0] == ["node", "cluster", "share"]
    assert [row[0] for row in rows[1:6]] == NAMES[:5]
    assert [int(row[1]) for row in rows[1:]] == attacked.labels.tolist()


def test_the_factors_download(show, factors):
    name, rows = downloaded(show(factors), "[data-factor='1']")
    assert name == "V.csv"
    assert np.array_equal(np.array(rows[1:], dtype=float), factors.V)


def test_hostile_names_stay_text(show, attacked):
    page = show(attacked)
    page.get_by_label("Search nodes").fill("hacked")
    assert set(column(page, 1)) == {ATTACK, NAMES[1]}
    page.locator("[data-plot=graph] .node").first.hover()
    assert ATTACK in page.inner_text("#tip")
    assert page.evaluate("window.hacked") is None


def test_the_keyboard_reaches_everything(show, club):
    page, reached = show(club), []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("(e => e.id || e.dataset.sort || e.dataset.plot || e.className)(document.activeElement)"))
    places = ["skip", "theme", "chip", "matrix-before", "graph", "heat-0", "search", "download", "name", "degree", "more"]
    assert [reached.index(place) for place in places] == sorted(reached.index(place) for place in places)
    outline = page.evaluate("document.getElementById('theme').focus(), getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


@pytest.mark.parametrize("width", [360, 1400])
def test_nothing_sticks_out_sideways(show, attacked, factors, width):
    for result in (attacked, factors):
        page = show(result, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_ten_thousand_nodes_stay_quick(show, club):
    n = 10_000
    ends = np.random.default_rng(0).integers(0, n, (2, 70_000))
    A = sp.coo_array((np.ones(70_000), ends), shape=(n, n))
    page = show(hand_made(club, A + A.T, np.arange(n) % 3, 3))
    page.get_by_label("Search nodes").fill("999")
    assert "of 10,000" in page.inner_text("#shown")
    page.locator("[data-plot=matrix-after]").hover()
    assert " to " in page.inner_text("#tip")
    page.click("[data-sort=degree]")
    assert len(column(page, 1)) <= 25
