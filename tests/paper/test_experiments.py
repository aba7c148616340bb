"""The paper's figures in small: rows, tables, pictures, and what stays when a run is broken off."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cvxnmf
from cvxnmf.cli import main
from cvxnmf.cli.reproduce import NAMES, PASSED
from cvxnmf.paper import EXPERIMENTS, methods, reproduce
from cvxnmf.paper.spectral import min_max_cut
from tiers import slow_but

image = pytest.importorskip("PIL.Image")

SMALL = {
    "figure1": {"size": 16},
    "figure2-left": {"sizes": (12, 16), "repeats": 2, "tol": 1e-4},
    "figure2-right": {"size": 16, "repeats": 3, "deltas": (-0.4, 0.6)},
    "rank-two": {"size": 15, "spreads": (0.5, 2.0), "ranks": (1, 2)},
}


def table(path):
    with path.open(encoding="utf8", newline="") as stream:
        return list(csv.DictReader(stream))


def rows_of(name, **options):
    """The rows of an experiment without its pictures."""
    experiment = EXPERIMENTS[name]
    chosen = {**experiment.defaults, **options}
    return [row for task in experiment.tasks(chosen) for row in experiment.rows(task, chosen)]


@pytest.fixture(scope="module", params=NAMES)
def result(request, tmp_path_factory):
    return reproduce(request.param, tmp_path_factory.mktemp(request.param), **SMALL[request.param])


def test_tables_and_pictures_are_written(result):
    assert [path.suffix for path in result.files] == [".csv"] * (len(result.files) - 2) + [".png", ".svg"]
    assert all(path.stat().st_size > 0 for path in result.files)
    with image.open(result.files[-2]) as picture:
        assert picture.convert("RGB").getcolors(20) is None  # more than 20 colours: something is drawn
    assert len(table(result.files[0])) == len(result.rows)
    assert result.certified


@pytest.mark.parametrize("result", slow_but(["figure1", "figure2-left"], NAMES), indirect=True)
def test_the_same_options_write_the_same_files(result, tmp_path):
    again = reproduce(result.name, tmp_path, **SMALL[result.name])
    for first, second in zip(result.files, again.files, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_the_command_line_knows_every_experiment_and_option():
    assert set(NAMES) == set(EXPERIMENTS)
    assert set(PASSED) >= {key for e in EXPERIMENTS.values() for key in e.defaults} - {"spreads", "ranks"}
    for experiment in EXPERIMENTS.values():
        assert set(experiment.quick) <= set(experiment.defaults)


def test_rows_of_the_comparison_are_performances_of_the_same_graphs():
    rows = rows_of("figure2-right", size=20, repeats=2, deltas=(0.3,), seed=5)
    for seed in (5, 6):
        A, _ = cvxnmf.block_graph(20, 0.35, 0.65, rng=seed)
        (found,) = (row for row in rows if row["seed"] == seed and row["method"] == methods.MIN_MAX)
        assert found["performance"] == cvxnmf.performance(A, min_max_cut(A, 2))


@pytest.mark.parametrize("result", ["figure2-right"], indirect=True)
def test_paired_differences_are_those_of_the_rows(result):
    scores = {(row["delta"], row["seed"], row["method"]): row["performance"] for row in result.rows}
    for line in result.summaries["paired"]:
        method, against = ([scores[line["delta"], s, line[side]] for s in range(3)] for side in ("method", "against"))
        difference = np.subtract(method, against)
        assert line["mean_difference"] == pytest.approx(difference.mean())
        assert line["standard_error"] == pytest.approx(difference.std(ddof=1) / np.sqrt(3))
        assert line["wins"] + line["ties"] + line["losses"] == pytest.approx(1.0)


def test_no_method_is_above_the_proved_bound_and_clear_clusters_meet_it():
    rows = rows_of("figure2-right", size=24, repeats=2, deltas=(-0.4, 0.0, 0.8))
    bounds = {(row["delta"], row["seed"]): row["performance"] for row in rows if row["method"] == methods.BOUND}
    assert all(row["performance"] <= bounds[row["delta"], row["seed"]] + 1e-12 for row in rows)
    assert all(row["performance"] > bounds[0.8, row["seed"]] - 1e-12 for row in rows if row["delta"] == 0.8)


def test_figure_1_orders_every_node_once():
    rows = rows_of("figure1", size=20, deltas=(0.6,))
    for name in {row["setting"] for row in rows}:
        chosen = [row for row in rows if row["setting"] == name]
        assert sorted(row["node"] for row in chosen) == list(range(20))
        assert np.count_nonzero(np.diff([row["cluster"] for row in chosen])) == 1


@pytest.mark.parametrize("result", ["figure2-left"], indirect=True)
def test_steps_are_counted_to_a_certified_gap(result):
    assert {row["n"] for row in result.rows} == {12, 16}
    for row in result.rows:
        assert 0 <= row["value"] - row["bound"] <= row["tol"] * row["value"]
        sooner = row["series"] == "projected gradient, KL" and row["steps"] - 1
        if sooner:  # one step fewer is not enough
            A = methods.draw_graph(row["n"], row["delta"], row["seed"])
            problem = cvxnmf.symmetric(A, cone="psd", metric="uniform")
            assert cvxnmf.solve(problem, "projected-gradient", tol=0.0, max_iter=sooner).certificate.relative_gap > row["tol"]


@pytest.mark.parametrize("result", ["rank-two"], indirect=True)
def test_rank_two_is_precise_only_where_the_spread_is_small(result):
    narrow, wide = (row for row in result.rows if row["varied"] == "spread" and row["method"] == "rank-two")
    assert narrow["least_entry"] == 0.0
    assert narrow["max_relative_error"] < 0.03
    assert wide["least_entry"] < -0.1
    assert wide["max_relative_error"] > 10
    for row in result.rows:
        if row["tol"] is not None and row["columns"] is not None:
            assert row["max_relative_error"] <= row["tol"]


def test_complete_bipartite_graphs_and_separate_cliques_are_no_trouble():
    rows = rows_of("figure2-right", size=12, repeats=1, deltas=(-1.0, 1.0))
    assert all(row["performance"] == 1.0 for row in rows if row["delta"] == 1.0)
    assert all(0.4 <= row["performance"] <= 0.6 for row in rows if row["delta"] == -1.0)


def test_a_run_that_is_broken_off_leaves_its_rows(tmp_path):
    def stop(done, total, task):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce("figure2-right", tmp_path, progress=stop, **SMALL["figure2-right"])
    assert len(table(tmp_path / "figure2-right.csv")) == 2 * (len(methods.CONVEX) + len(methods.SPECTRAL) + 1)
    assert not (tmp_path / "figure2-right.png").exists()


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("figure3", {}, "name='figure3' is not known"),
        ("rank-two", {"repeats": 3}, "rank-two has no option 'repeats'; it has size, spreads, ranks, seed"),
        ("figure1", {"deltas": (2.0,)}, "deltas must lie between -1 and 1, not be 2.0"),
        ("figure2-left", {"sizes": ()}, "sizes must be a sequence of at least one number"),
        ("figure2-right", {"deltas": (0.5, 0.5)}, "deltas must be different numbers"),
        ("figure2-right", {"repeats": 0}, "repeats must be an integer of at least 1"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(name, options, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        reproduce(name, tmp_path / "folder", **options)
    assert not (tmp_path / "folder").exists()


def test_the_command_prints_the_files(tmp_path, capsys):
    folder = tmp_path / "out"
    graphs = ["--size", "12", "--repeats", "2", "--deltas", "-0.4", "0.6"]
    arguments = ["reproduce", "figure2-right", *graphs, "--output", str(folder)]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    paths = [Path(line) for line in out.splitlines()]
    assert [path.name for path in paths] == [
        "figure2-right.csv",
        "figure2-right-means.csv",
        "figure2-right-paired.csv",
        "figure2-right.png",
        "figure2-right.svg",
    ]
    assert all(path.exists() for path in paths)
    assert main([*arguments, "--quiet", "--json"]) == 0
    out, err = capsys.readouterr()
    (facts,) = json.loads(out)["figures"]
    assert not err
    assert facts["certified"]
    assert facts["options"]["repeats"] == 2
    assert len(facts["means"]) == 2 * (len(methods.CONVEX) + len(methods.SPECTRAL) + 1)


def test_the_command_refuses_an_option_of_another_figure(tmp_path, capsys):
    assert main(["reproduce", "figure1", "--repeats", "3", "--output", str(tmp_path / "out")]) == 1
    assert "figure1 has no option 'repeats'" in capsys.readouterr().err


def test_help_imports_nothing_heavy():
    code = "import sys, contextlib, cvxnmf.cli\nwith contextlib.suppress(SystemExit): cvxnmf.cli.main(['reproduce', '--help'])\n"
    code += "print(sorted({'numpy', 'matplotlib', 'sklearn'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("script", sorted((Path(__file__).parents[2] / "paper").glob("*.py")), ids=lambda path: path.stem)
def test_a_script_calls_an_experiment_that_exists(script):
    named = [name for name in NAMES if f'reproduce("{name}"' in script.read_text(encoding="utf8")]
    assert len(named) == 1
    assert named[0].replace("-", "_") == script.stem


@pytest.mark.parametrize("page", ["docs/paper.md", "paper/README.md"])
def test_links_of_the_pages_resolve(page):
    path = Path(__file__).parents[2] / page
    targets = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf8"))
    assert targets
    assert all((path.parent / target).exists() for target in targets)


def test_what_the_page_says_of_one_spread():
    rows = rows_of("rank-two", spreads=(2.0,), ranks=(1,))
    errors = {(row["method"], row["tol"]): row for row in rows if row["varied"] == "spread"}
    page = (Path(__file__).parents[2] / "docs" / "paper.md").read_text(encoding="utf8")
    paper, lattice, series = errors["rank-two", None], errors["lattice", 1e-2], errors["series", 1e-2]
    line = f"| 2 | {paper['max_relative_error']:.0f} | {paper['frobenius_error']:.2f} | {paper['least_entry']:.2f} | "
    line += f"{lattice['columns']} / {series['columns']} |"
    assert line.replace("0.", ".").replace("-", "−") in page
