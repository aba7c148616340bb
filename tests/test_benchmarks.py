"""The machinery of the benchmarks: tiny tables, right scores, missing peers told."""

import builtins
import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import cvxnmf
from tiers import slow_but

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:  # pytest started by its own name does not add it
    sys.path.insert(0, str(ROOT))

from benchmarks import __main__ as bench  # noqa: E402
from benchmarks import (  # noqa: E402
    child,
    communities,
    convex,
    datasets,
    environments,
    figures,
    graph_sizes,
    objective,
    prose,
    rank_k_peers,
    report,
    sentences,
    solvers,
)
from benchmarks.objective import Timing  # noqa: E402
from benchmarks.report import Table  # noqa: E402
from benchmarks.scale import Scale  # noqa: E402

IN_PROCESSES = {"start-up", "first-calls", "memory", "nmf-proofs"}
#: Tables that take a second or more even in small.
LONG = {"huge-graphs", "out-of-core", "families", "nmf-races", "one-fit", "nmf-kernels"}
QUICK = set(bench.TABLES) - IN_PROCESSES - LONG


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of small matrices wait for each other when other tests run beside."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def no_environments(monkeypatch, tmp_path):
    monkeypatch.setattr(environments, "FOLDER", tmp_path / "envs")


@pytest.fixture
def without(monkeypatch):
    """Make packages impossible to import."""

    def forget(*packages):
        real = importlib.import_module

        def refuse(name, *rest):
            if name.split(".")[0] in packages:
                raise ImportError(name)
            return real(name, *rest)

        monkeypatch.setattr(solvers, "import_module", refuse)

    return forget


# Tables -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", slow_but(sorted(QUICK), sorted(set(bench.TABLES) - IN_PROCESSES)))
def test_every_table_is_made_in_small(name, no_environments):
    for table in bench.TABLES[name](Scale.TINY):
        assert table.rows
        assert all(len(row) == len(table.header) for row in table.rows)
        assert all(isinstance(cell, str) for row in table.rows for cell in row)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is told on Linux only")
def test_memory_is_measured_in_a_process_of_its_own():
    told = child.ask("planted", n=100, tol=1e-2, degree=8)
    assert 20e6 < told["peak"] < 2e9
    assert told["gap"] <= 1e-2


def test_memory_is_not_told_elsewhere(monkeypatch):
    monkeypatch.setattr(child.sys, "platform", "win32")
    (table,) = convex.memory(Scale.TINY)
    assert table.rows[0][-1] == "not told by this system"


def test_the_report_names_no_machine_and_links_its_pictures(tmp_path, monkeypatch):
    monkeypatch.delenv("CVXNMF_DATA", raising=False)
    picture = {"growth": "<svg/>"}
    bench.write([Table("One", ["a", "b"], [["1", "2"]], "Said.", picture)], Scale.QUICK, report.machine(), tmp_path)
    text = (tmp_path / "RESULTS.md").read_text(encoding="utf8")
    assert "| 1 | 2 |" in text
    assert "pictures/growth.svg" in text
    assert "polbooks.gml" in text
    assert str(Path.home()) not in text
    assert (tmp_path / "pictures" / "growth.svg").read_text(encoding="utf8") == "<svg/>"


def test_pictures_are_small_and_the_same_each_time():
    pytest.importorskip("matplotlib")
    one, two = (report.growth_picture([10, 20], {"ours": [1.0, 2.0]}, {"ours": 1.0}) for _ in range(2))
    assert one == two
    assert len(one["growth"]) < 60_000


# Peers --------------------------------------------------------------------------------------------------------------------------


def test_missing_peers_are_told_and_do_no_harm(without):
    without("scs", "leidenalg")
    (table,) = convex.against_cvxpy(Scale.TINY)
    assert ["cvxpy + SCS", "not run: scs is not installed", "", ""] in [list(row) for row in table.rows]
    (table,) = communities.real_quality(Scale.TINY)
    assert any("leidenalg is not installed" in cell for row in table.rows for cell in row)


def test_peers_without_their_environment_are_told(no_environments):
    tables = rank_k_peers.symmetric_peer(Scale.TINY) + rank_k_peers.same_start(Scale.TINY)
    assert all(any("make bench-full" in cell for row in table.rows for cell in row) for table in tables)


def test_an_environment_that_cannot_be_made_is_told_in_a_few_words(no_environments, monkeypatch):
    def fail(command, **_):
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(environments.subprocess, "run", fail)
    with pytest.raises(environments.Unavailable, match=r"^no environment could be made \(CalledProcessError\)$"):
        environments.prepared("nimfa", build=True)


def test_a_peer_gets_and_returns_arrays_through_files(no_environments, monkeypatch, tmp_path):
    runner = tmp_path / "runner.py"
    runner.write_text("import sys, numpy as np\nwith np.load(sys.argv[2]) as a: np.savez(sys.argv[3], U=2 * a['U'])\n")
    monkeypatch.setattr(environments, "prepared", lambda peer, build: Path(sys.executable))
    monkeypatch.setattr(environments, "RUNNER", runner)
    np.testing.assert_array_equal(environments.run("nimfa", False, U=np.arange(3.0))["U"], [0.0, 2.0, 4.0])


def test_pictures_can_be_done_without(monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest):
        if name == "matplotlib":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert report.quality_picture({"ours": [1.0]}) == {}


# Scores -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_losses_of_factors_are_the_same_dense_sparse_and_in_the_library(loss):
    rng = np.random.default_rng(0)
    A = rng.poisson(1.0, (12, 9)).astype(float)
    U, V = rng.random((12, 3)) + 0.1, rng.random((9, 3)) + 0.1
    dense = objective.factor_loss(A, U, V, loss)
    assert objective.factor_loss(sp.csr_array(A), U, V, loss) == pytest.approx(dense, rel=1e-12)
    assert cvxnmf.verify(A, U, V, loss=loss, effort=1).value == pytest.approx(dense, rel=1e-10)


def test_losses_of_known_factors():
    U = np.array([[1.0], [2.0]])
    assert objective.factor_loss(U @ U.T, U, U) == 0.0
    assert objective.factor_loss(U @ U.T, U, U, "kl") == 0.0
    assert objective.factor_loss(np.eye(2), np.zeros((2, 1)), np.zeros((2, 1))) == 2.0
    assert objective.factor_loss(np.eye(2), -U, -U) == np.inf


def test_values_and_gaps_of_models_are_those_of_the_problem():
    A, _ = datasets.planted_graph(60, 3, degree=10)
    problem = cvxnmf.symmetric(A, trace="auto")
    solution = cvxnmf.solve(problem, tol=1e-6)
    value = objective.model_value(A, solution.v, solution.W, problem.metric, problem.trace)
    assert value == pytest.approx(problem.value(solution.X), rel=1e-10)
    assert objective.proved_gap(A, problem, solution) == pytest.approx(solution.certificate.relative_gap, abs=1e-9)


def test_times_ratios_and_exponents():
    times = {"a": Timing((3.0, 1.0, 2.0)), "eigh": Timing((4.0,)), "eigh on one thread": Timing((1.0,))}
    assert str(times["a"]) == "2.00 (1.00 to 3.00)"
    assert objective.ratio(times, "a", objective.faster(times)) == "2.00"
    assert objective.exponent([10, 100, 1000], [1.0, 100.0, 10000.0]) == pytest.approx(2.0)
    assert objective.paired([1.0, 3.0], [0.0, 0.0]) == "+2.000 ± 1.000"
    assert objective.agreement([0, 0, 1, 1], [1, 1, 0, 0]) == pytest.approx((1.0, 1.0))


def test_work_is_done_in_turns_after_a_round_that_does_not_count():
    order = []
    times, answers = objective.interleaved({name: lambda name=name: order.append(name) or name for name in "ab"}, repeats=2)
    assert order == list("ababab")
    assert len(times["a"].runs) == 2
    assert answers == {"a": "a", "b": "b"}


# Data ---------------------------------------------------------------------------------------------------------------------------


def test_planted_graphs_have_the_edges_asked_for():
    A, labels = datasets.planted_graph(300, 5, degree=20, mixing=0.2, seed=1)
    assert A.nnz == 300 * 20
    assert set(A.data) == {1.0}
    assert (A != A.T).nnz == 0
    assert not A.diagonal().any()
    edges = sp.coo_array(A)
    assert np.mean(labels[edges.row] != labels[edges.col]) == pytest.approx(0.2)
    assert set(np.bincount(labels)) == {60}
    again, _ = datasets.planted_graph(300, 5, degree=20, mixing=0.2, seed=1)
    assert (A != again).nnz == 0


def test_planted_graphs_of_unequal_groups_are_refused():
    with pytest.raises(ValueError, match="equal groups"):
        datasets.planted_graph(101, 10)


def test_degree_corrected_graphs_leave_no_node_alone():
    A, labels = datasets.degree_corrected(80, 4, 3.0, 0.3, 2.5, seed=0)
    assert A.sum(axis=1).min() >= 1
    assert A.shape == (len(labels), len(labels))


# Figures ------------------------------------------------------------------------------------------------------------------------


def test_the_pages_have_the_figures_of_the_results_file():
    for page, text in figures.pages(figures.read_results()).items():
        assert (ROOT / page).read_text(encoding="utf8") == text, f"run python -m benchmarks.figures: {page} has other figures"


def test_a_figure_that_a_page_does_not_have_is_told():
    results = figures.Results("### One\n\n| a | b |\n|---|---|\n| x | 1.5 (1 to 2) |\n")
    assert results.number("One", "b", "x") == 1.5
    missing = figures.Figure("README.md", "no such words ", " anywhere", lambda results: "1")
    with pytest.raises(ValueError, match="no such words"):
        figures.written_with((missing,), results)


def test_a_limit_that_was_not_kept_is_still_a_figure():
    results = figures.Results(f"### {figures.DEFAULT}\n\n| data | fits |\n|---|---|\n| x | 0.91 |\n| y | 3.13* |\n")
    assert figures.most_fits(results) == "3.1"


#: A measured number in prose, and what looks like one: the terms of estimates on paper, and a setting.
MEASURED = re.compile(r"[\d.,]*\d ?(?:s|ms|MB|GB|minutes?|seconds?|times|degrees|%)(?!\w)|(?:ARI|NMI|AMI)[ (]+\.?\d")
ASSUMED = ("links of 1 GB/s", "0.03 s for the messages", "with 30% of the edges across")
PROSE = ["README.md", *(f"docs/{name}.md" for name in ("index", "get-started", "tutorials", "how-good", "how-to-choose"))]
GENERATED = [
    figures.COPY.pattern,
    sentences.MARKED.pattern,
    "<!-- (?:table of|figures: ).*?<!-- end of (?:the table|figures) -->",
]


@pytest.mark.parametrize("page", [*PROSE, "docs/coming-from.md", "docs/benchmarks.md", "docs/scale.md"])
def test_no_measured_number_of_a_page_is_written_by_hand(page):
    text = (ROOT / page).read_text(encoding="utf8")
    for pattern in (r"^```.*?^```", *GENERATED, r"^\|[^\n]*", r"`[^`\n]+`", *map(re.escape, ASSUMED)):
        text = re.sub(pattern, "", text, flags=re.DOTALL | re.MULTILINE)
    for figure in figures.FIGURES:
        before, after = (re.sub(r"`[^`\n]+`", "", part) for part in (figure.before, figure.after))
        text = re.sub(f"({re.escape(before)})\\S+?({re.escape(after)})", r"\1\2", text)
    assert [text[max(0, found.start() - 30) : found.end()] for found in MEASURED.finditer(text)] == []


def test_a_graph_of_which_edges_are_replaced_keeps_its_size():
    A, _ = graph_sizes.planted_graph(400, 4, 10, 0.3)
    B = prose._replaced(A, 0.02)
    assert abs(B - B.T).nnz == 0
    assert set(B.data) == {1.0}
    assert 0.97 * A.nnz < B.nnz <= A.nnz
    assert 0.95 * A.nnz < A.multiply(B).nnz < 0.99 * A.nnz


# Graphs by size -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [graph_sizes.Case(3000, k=5), graph_sizes.Case(3000, lfr=True, mixing=0.2)])
def test_graphs_of_any_size_are_simple_and_show_their_groups(case):
    A, groups = case.make()
    assert abs(A - A.T).nnz == 0
    assert not A.diagonal().any()
    assert A.has_canonical_format
    inside = np.mean(groups[np.repeat(np.arange(3000), np.diff(A.indptr))] == groups[A.indices])
    assert inside == pytest.approx(1 - case.mixing * (1.0 if case.lfr else 0.8), abs=0.03)


def test_the_table_of_graph_sizes_is_that_of_the_results():
    known = graph_sizes.results()
    assert graph_sizes.page(known) == graph_sizes.PAGE.read_text(encoding="utf8")
    beside = [runs for runs in known.values() if "igraph" in runs]
    assert len(beside) >= 5
    assert all(runs["ours"]["nmi"] >= runs["igraph"]["nmi"] - 1e-3 for runs in beside)
