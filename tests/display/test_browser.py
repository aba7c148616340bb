"""The page in a real browser."""

import csv
import io
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp
from strange_results import ATTACK, NAMES, hand_made

from cvxnmf import report

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


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium was found")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def window(browser):
    """Windows by their width and options, each opened once."""
    opened = {}

    def of(width, **options):
        key = (width, *options.items())
        if key not in opened:
            opened[key] = browser.new_context(viewport={"width": width, "height": 900}, accept_downloads=True, **options)
        return opened[key]

    yield of
    for context in opened.values():
        context.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where the page of a result is, written once."""
    written = {}

    def of(result):
        path = written.get(id(result), (None, None))[0]
        if path is None:
            path = tmp_path_factory.mktemp("page") / "page.html"
            report.write(result, path)
            written[id(result)] = path, result  # which keeps its id
        return path.as_uri()

    return of


@pytest.fixture
def show(window, address):
    """Opens results in pages of their own and afterwards asks whether anything went wrong."""
    complaints, requests, pages = [], [], []

    def opened(result, width=1200, **options):
        page = window(width, **options).new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address(result))
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
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


def test_names_appear_under_the_pointer_and_under_the_keys(show, club):
    page = show(club)
    for name in ("matrix-before", "matrix-after", "heat-0", "graph"):
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
    assert page.inner_text("#theme") == "Light theme"
    page.click("#theme")
    assert page.inner_text("#theme") == "Dark theme"
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
    for _ in range(80):
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


def test_a_pinned_node_is_pinned_everywhere(show, club):
    page = show(club)
    bar = page.locator("#pinned")
    page.locator("[data-plot=graph] .node").nth(33).click()
    assert bar.inner_text().startswith("33 in cluster")
    assert column(page, 1)[0] == "33"
    page.mouse.move(0, 0)
    assert page.locator("[data-plot=graph] .node.here").get_attribute("data-node") == "33"
    page.keyboard.press("Escape")
    assert bar.is_hidden()
    page.locator("table.nodes tbody tr").nth(2).click()
    name = column(page, 1)[0]
    assert bar.inner_text().startswith(f"{name} in cluster")
    page.locator("[data-plot=matrix-before]").click(position={"x": 3, "y": 3})
    assert bar.inner_text().startswith("0 in cluster")


def test_the_graph_is_zoomed_by_wheel_keys_and_buttons(show, club):
    page, width = show(club), "Number(document.querySelector('svg.graph').getAttribute('viewBox').split(' ')[2])"
    host = page.locator("[data-plot=graph]")
    whole = page.evaluate(width)
    page.click("[data-zoom=in]")
    assert page.evaluate(width) < whole
    page.click("[data-zoom=whole]")
    assert page.evaluate(width) == whole
    host.focus()
    page.keyboard.press("+")
    near = page.evaluate(width)
    assert near < whole
    host.hover()
    page.mouse.wheel(0, -100)
    page.wait_for_function(f"{width} < {near}")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("0")
    assert page.evaluate(width) == whole


def test_every_picture_is_saved(show, club, factors):
    for result, least in ((club, 5), (factors, 3)):
        page = show(result)
        for kind, begin in (("png", b"\x89PNG"), ("svg", b"<svg")):
            buttons = page.locator(f"[data-save={kind}]")
            assert buttons.count() >= least
            for number in range(buttons.count()):
                with page.expect_download() as waiting:
                    buttons.nth(number).click()
                content = Path(waiting.value.path()).read_bytes()
                assert content.startswith(begin)
                assert len(content) > 300
                if kind == "svg":
                    ElementTree.fromstring(content)
                    assert b"var(--" not in content


def test_words_explain_themselves(show, club):
    page = show(club)
    page.locator(".term", has_text="Modularity").first.hover()
    assert "edges inside clusters" in page.inner_text("#tip")


def test_names_of_columns_stand_under_the_pointer(show, factors):
    page = show(factors.with_names(None, tuple(f"word {i}" for i in range(20))))
    page.locator("[data-plot=heat-1]").hover()
    assert "word " in page.inner_text("#tip")
    page.click(".chip[data-cluster='1']")
    assert page.locator(".chip[data-cluster='1']").get_attribute("aria-pressed") == "true"


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
