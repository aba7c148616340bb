"""The command line as a person or a script uses it."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import cvxnmf
from cvxnmf import cli
from cvxnmf.cli import progress as showing
from cvxnmf.cli import terminal
from cvxnmf.cli.progress import Progress

PROGRAM = [sys.executable, "-m", "cvxnmf"]


def run(*arguments, **options):
    """The program in a process of its own, as a shell starts it."""
    return subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)


@pytest.fixture
def club(tmp_path):
    nx.write_gml(nx.karate_club_graph(), tmp_path / "karate.gml")
    return tmp_path / "karate.gml"


@pytest.fixture
def blocks(tmp_path):
    """Two clear blocks as an edge list with names."""
    A, labels = cvxnmf.block_graph(24, 0.1, 0.95)
    lines = [f"n{i},n{j}" for i, j in np.argwhere(np.triu(A))]
    (tmp_path / "blocks.csv").write_text("source,target\n" + "\n".join(lines))
    return tmp_path / "blocks.csv", {f"n{i}": int(label) for i, label in enumerate(labels)}


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    A = rng.random((12, 3)) @ rng.random((3, 8))
    np.save(tmp_path / "a.npy", A)
    return tmp_path / "a.npy"


def one_sentence(capsys):
    """What stands on stderr, which must be one line, beside an empty stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cvxnmf: ")
    assert err.count("\n") == 1
    return err


# --- usage ---------------------------------------------------------------------------------------------------------------


def test_help_names_the_commands_and_exit_codes(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0
    assert all(name in text for name in cli.COMMANDS)
    assert "3 finished above tolerance" in text


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_explains_itself_and_its_exit_codes(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([command, "--help"])
    assert stop.value.code == 0
    assert "exit codes: 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dance"],
        ["demo", "--size", "many"],
        ["demo", "--size", "1"],
        ["demo", "--tol", "-1"],
        ["partition"],
        ["partition", "g.csv", "-k", "0"],
        ["partition", "g.csv", "--trace", "x"],
        ["partition", "g.csv", "--tol", "nan"],
        ["partition", "g.csv", "--format", "xls"],
        ["factorize", "a.npy", "--symmetric", "--general"],
        ["factorize", "a.npy", "--loss", "l1"],
        ["verify", "a.npy"],
    ],
)
def test_bad_usage_exits_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage: cvxnmf" in capsys.readouterr().err


def test_the_module_runs_as_a_program():
    answer = run("--version")
    assert answer.returncode == 0
    assert answer.stdout.startswith("cvxnmf 0")


def test_the_choices_in_the_help_are_those_of_the_files():
    from cvxnmf import io
    from cvxnmf.cli import options

    assert options.FORMATS == io.FORMATS
    assert set(options.SEPARATORS) == set(io.SEPARATORS)


# --- demo ----------------------------------------------------------------------------------------------------------------


def test_the_demo_shows_clusters_a_certified_table_and_a_page(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--size", "40"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Zachary's karate club: 34 nodes, 78 edges, ")
    assert "proved bound" in out
    assert out.count("karate club ") >= 3
    assert out.count(" yes") == 6
    assert "977.07" in out
    assert "solving: karate club" in err
    assert str(tmp_path / "cvxnmf-demo.html") in out
    assert "<html" in (tmp_path / "cvxnmf-demo.html").read_text(encoding="utf8")


def test_the_demo_as_json_is_quiet_and_complete(capsys):
    assert cli.main(["demo", "--size", "30", "--json", "--quiet", "--no-report"]) == 0
    out, err = capsys.readouterr()
    facts = json.loads(out)
    assert err == ""
    assert len(facts["solves"]) == 6
    assert facts["report"] is None
    assert facts["partition"]["nodes"] == 34
    for row in facts["solves"]:
        assert row["bound"] <= row["value"]
        assert row["relative_gap"] <= 1e-4
        assert row["checked"] is True


def test_the_demo_above_tolerance_exits_with_three(capsys):
    assert cli.main(["demo", "--size", "20", "--tol", "0", "--quiet", "--no-report"]) == 3
    assert "blocks, n = 20" in capsys.readouterr().out


def test_the_demo_refuses_what_does_not_fit(capsys):
    assert cli.main(["demo", "--quiet", "--no-report", "--json", "--size", "9000000"]) == 1
    assert "GiB of memory" in one_sentence(capsys)


def test_the_demo_writes_its_page_where_asked(capsys, tmp_path):
    assert cli.main(["demo", "--size", "20", "--quiet", "--report", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").exists()
    capsys.readouterr()
    assert cli.main(["demo", "--report", str(tmp_path / "none" / "page.html")]) == 1
    assert "there is no folder" in one_sentence(capsys)


# --- partition -----------------------------------------------------------------------------------------------------------


def test_partition_prints_a_summary(club, capsys):
    assert cli.main(["partition", str(club)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("karate.gml: 34 nodes, 78 edges, ")
    assert "modularity 0." in out
    assert "The model: No model of this kind can fit better than" in out
    assert "solving: " in err


def test_partition_finds_the_blocks_under_their_names(blocks, capsys):
    path, truth = blocks
    assert cli.main(["partition", str(path), "-k", "2", "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    facts = json.loads(out)
    assert err == ""
    assert facts["n_clusters"] == 2
    assert sorted(facts["sizes"]) == [12, 12]
    assert set(facts["labels"]) == set(truth)
    assert len({(facts["labels"][name], label) for name, label in truth.items()}) == 2
    assert facts["certificate"]["bound"] <= facts["certificate"]["value"]


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt"])
def test_partition_writes_labels_as_text(blocks, tmp_path, ending, capsys):
    path, truth = blocks
    target = tmp_path / f"labels.{ending}"
    assert cli.main(["partition", str(path), "-k", "2", "--quiet", "--output", str(target)]) == 0
    with open(target, newline="", encoding="utf8") as file:
        rows = list(csv.DictReader(file, delimiter="," if ending == "csv" else "\t"))
    assert {row["node"] for row in rows} == set(truth)
    assert all(0 < float(row["membership"]) <= 1 for row in rows)
    assert len({(row["cluster"], truth[row["node"]]) for row in rows}) == 2


def test_partition_writes_json_arrays_page_and_certificate(blocks, tmp_path, capsys):
    path, truth = blocks
    target, page, proof = tmp_path / "labels.json", tmp_path / "page.html", tmp_path / "proof.npz"
    options = ["--quiet", "--report", str(page), "--certificate", str(proof)]
    assert cli.main(["partition", str(path), "-k", "2", "--output", str(target), *options]) == 0
    assert set(json.loads(target.read_text())["labels"]) == set(truth)
    assert "blocks.csv" in page.read_text(encoding="utf8")
    A = cvxnmf.io.read_graph(path).A
    certificate = cvxnmf.Certificate.load(proof)
    assert certificate.check(A) == certificate.bound
    assert cli.main(["partition", str(path), "-k", "2", "--quiet", "--output", str(tmp_path / "all.npz")]) == 0
    assert "factorization" in vars(cvxnmf.load(tmp_path / "all.npz"))
    assert not list(tmp_path.glob("*.part"))


def test_unusual_names_come_back_as_they_are(tmp_path, capsys):
    names = ["a,b", 'say "hi"', "Ünï", "new york", "-1", "=1+1"]
    with open(tmp_path / "g.csv", "w", newline="", encoding="utf8") as file:
        csv.writer(file).writerows((a, b) for i, a in enumerate(names) for b in names[i + 1 :])
    assert cli.main(["partition", str(tmp_path / "g.csv"), "-k", "1", "--quiet", "--output", str(tmp_path / "o.csv")]) in (0, 3)
    with open(tmp_path / "o.csv", newline="", encoding="utf8") as file:
        assert [row["node"] for row in csv.DictReader(file)] == names


def test_names_cannot_command_the_terminal(tmp_path, capsys):
    (tmp_path / "g.txt").write_text("\x1b[31mred b\nb c\nc \x1b[31mred\nc d\n")
    assert cli.main(["partition", str(tmp_path / "g.txt"), "-k", "1", "--quiet"]) in (0, 3)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[31mred" in out


def test_above_tolerance_exits_with_three(club, capsys):
    assert cli.main(["partition", str(club), "--tol", "0", "--quiet", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["certificate"]["relative_gap"] > 0


def test_the_papers_own_formulation(club, capsys):
    assert cli.main(["partition", str(club), "--paper", "-k", "2", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_clusters"] == 2


def test_notes_on_reading_stand_on_stderr(tmp_path, capsys):
    (tmp_path / "g.csv").write_text("source,target\na,b\nb,a\nb,c\nc,d\nd,a\n")
    assert cli.main(["partition", str(tmp_path / "g.csv"), "-k", "1"]) in (0, 3)
    err = capsys.readouterr().err
    assert "g.csv: Line 1 is taken as a header" in err
    assert "g.csv: 1 of 5 edges" in err


def test_warnings_are_sentences(tmp_path, capsys):
    graph = nx.DiGraph(nx.karate_club_graph().edges)
    nx.write_graphml(graph, tmp_path / "d.graphml")
    assert cli.main(["partition", str(tmp_path / "d.graphml"), "-k", "2", "--quiet"]) == 0
    err = capsys.readouterr().err
    assert all(line.startswith("cvxnmf: ") for line in err.splitlines())
    assert "Warning" not in err
    assert "made undirected" in err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\nc\n", "g.csv, line 2: expected two node names and perhaps a weight, found 'c'."),
        ("", "is empty"),
        ("a,b,-1\n", "line 1: the weight is -1"),
        ("a\0b", "neither text"),
    ],
)
def test_broken_files_are_one_sentence_and_exit_with_one(tmp_path, capsys, content, words):
    (tmp_path / "g.csv").write_text(content)
    assert cli.main(["partition", str(tmp_path / "g.csv")]) == 1
    assert words in one_sentence(capsys)


def test_a_missing_file_is_one_sentence(tmp_path, capsys):
    assert cli.main(["partition", str(tmp_path / "none.csv")]) == 1
    assert "does not exist" in one_sentence(capsys)


@pytest.mark.parametrize("option", ["--output", "--report", "--certificate"])
def test_places_that_cannot_be_written_are_told_before_any_work(club, tmp_path, capsys, option, monkeypatch):
    monkeypatch.setattr("cvxnmf.io.read_graph", None)
    ending = {"--output": "csv", "--report": "html", "--certificate": "npz"}[option]
    (tmp_path / f"folder.{ending}").mkdir()
    for path in ("none/x." + ending, "x.unknown", f"folder.{ending}"):
        assert cli.main(["partition", str(club), option, str(tmp_path / path)]) == 1
        assert path.split("/")[-1] in one_sentence(capsys)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no files even from root")
def test_only_writing_tells_what_can_be_written(club, capsys):
    assert cli.main(["partition", str(club), "--output", "/proc/labels.csv"]) == 1
    assert "/proc/labels.csv cannot be written" in one_sentence(capsys)


def test_closed_streams_are_no_trouble(club):
    program = " ".join([*PROGRAM, "partition", str(club)])
    for closed, code in (("2>&-", 0), (">&-", 0), ("2>&- >&-", 0)):
        answer = subprocess.run(f"{program} {closed}", shell=True, capture_output=True, text=True, timeout=120, check=False)
        assert answer.returncode == code
        assert "Traceback" not in answer.stderr
        assert "cvxnmf:" not in answer.stdout


def test_the_data_are_never_overwritten(blocks, capsys):
    path, _ = blocks
    before = path.read_bytes()
    assert cli.main(["partition", str(path), "--output", str(path)]) == 1
    assert "would overwrite the data" in one_sentence(capsys)
    assert path.read_bytes() == before


def test_unexpected_errors_are_one_sentence_too(club, capsys, monkeypatch):
    monkeypatch.setattr("cvxnmf.graphs.partition.partition", lambda *_, **__: 1 / 0)
    assert cli.main(["partition", str(club), "--quiet"]) == 1
    assert "unexpected ZeroDivisionError" in one_sentence(capsys)
    monkeypatch.setenv("CVXNMF_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(["partition", str(club), "--quiet"])


def test_an_interrupted_answer_is_kept(blocks, tmp_path, capsys, monkeypatch):
    path, truth = blocks
    found = cvxnmf.partition(cvxnmf.io.read_graph(path).A, 2)

    def interrupted(*_, **__):
        raise cvxnmf.Interrupted(found)

    monkeypatch.setattr("cvxnmf.graphs.partition.partition", interrupted)
    target = tmp_path / "best.csv"
    assert cli.main(["partition", str(path), "--quiet", "--output", str(target)]) == 130
    err = one_sentence(capsys)
    assert "interrupted; the best answer so far" in err
    assert f"is in {target}." in err
    assert target.read_text().count("\n") == len(truth) + 1
    assert cli.main(["partition", str(path), "--quiet"]) == 130
    assert "no --output was given" in one_sentence(capsys)


def test_labels_are_kept_when_the_proof_of_the_factors_is_interrupted(blocks, tmp_path, capsys, monkeypatch):
    path, truth = blocks

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("cvxnmf.graphs.partition.factors_of", interrupted)
    target = tmp_path / "best.npz"
    assert cli.main(["partition", str(path), "--quiet", "--output", str(target)]) == 130
    assert f"is in {target}." in one_sentence(capsys)
    assert set(cvxnmf.load(target).nodes) == set(truth)
    assert cli.main(["partition", str(path), "--quiet", "--no-factors", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rank_certificate"] is None


# --- factorize and verify ------------------------------------------------------------------------------------------------


def test_factorize_and_verify_agree(table, tmp_path, capsys):
    out = tmp_path / "factors.npz"
    assert cli.main(["factorize", str(table), "-k", "2", "--json", "--quiet", "--output", str(out)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["columns"], facts["n_components"], facts["symmetric"]) == (12, 8, 2, False)
    assert facts["certificate"]["bound"] <= facts["value"]
    assert cli.main(["verify", str(table), str(out), "--json", "--quiet", "--save", str(tmp_path / "proof.npz")]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["value"] == pytest.approx(facts["value"])
    assert checked["relative_gap"] == pytest.approx(facts["certificate"]["relative_gap"], abs=1e-3)
    certificate = cvxnmf.Certificate.load(tmp_path / "proof.npz")
    assert certificate.check(np.load(table)) == certificate.bound


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_factors_as_text_round_trip(table, tmp_path, ending, capsys):
    out = tmp_path / f"f.{ending}"
    assert cli.main(["factorize", str(table), "-k", "3", "--quiet", "--output", str(out)]) == 0
    text = capsys.readouterr().out
    assert "12 by 8 matrix, 3 components, A = UV', squared error" in text
    U, V = tmp_path / f"f-U.{ending}", tmp_path / f"f-V.{ending}"
    assert cli.main(["verify", str(table), str(U), str(V), "--quiet"]) == 0
    assert "The fit is exact" in capsys.readouterr().out


def test_verify_takes_components_of_scikit_learn(table, tmp_path, capsys):
    from sklearn.decomposition import NMF

    model = NMF(2, init="nndsvda", random_state=0, max_iter=2000)
    np.save(tmp_path / "U.npy", model.fit_transform(np.load(table)))
    np.save(tmp_path / "H.npy", model.components_)
    assert cli.main(["verify", str(table), str(tmp_path / "U.npy"), str(tmp_path / "H.npy"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["value"] == pytest.approx(model.reconstruction_err_**2)
    assert "2 by 8, like scikit-learn's components_; it is transposed" in err


def test_a_gap_may_be_asked_for(table, tmp_path, capsys):
    arguments = ["factorize", str(table), "-k", "2", "--quiet"]
    assert cli.main([*arguments, "--tol-gap", "1"]) == 0
    assert cli.main([*arguments, "--loss", "kl", "--tol-gap", "0.5"]) == 3
    assert "is not proved: for KL of a rank above one" in capsys.readouterr().out


def test_names_of_rows_and_columns_are_kept(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("who,p,q,r\nx,1,2,3\ny,2,4,6\nz,1,1,1\n")
    arguments = ["factorize", str(tmp_path / "t.csv"), "-k", "1", "--quiet", "--output", str(tmp_path / "f.csv")]
    assert cli.main(arguments) == 0
    assert [line.split(",")[0] for line in (tmp_path / "f-U.csv").read_text().split()[1:]] == ["0", "x", "y", "z"]
    assert cvxnmf.io.read_matrix(tmp_path / "f-V.csv").rows == ("p", "q", "r")


def test_symmetric_or_general(club, capsys):
    for option, symmetric in (("--symmetric", True), ("--general", False)):
        assert cli.main(["factorize", str(club), "-k", "2", option, "--effort", "0", "--json", "--quiet"]) == 0
        assert json.loads(capsys.readouterr().out)["symmetric"] is symmetric


def test_a_graph_is_no_factor(club, capsys):
    assert cli.main(["verify", str(club), str(club), "--quiet"]) == 1
    assert "is a GML file, not a factor" in one_sentence(capsys)


@pytest.mark.parametrize(
    ("factor", "words"),
    [(-np.ones((12, 2)), "nonnegative"), (np.ones((5, 2)), "12 rows"), (np.ones(12), "shape (12,)")],
)
def test_factors_that_do_not_fit_are_one_sentence(table, tmp_path, capsys, factor, words):
    np.save(tmp_path / "U.npy", factor)
    np.save(tmp_path / "V.npy", np.ones((8, 2)))
    assert cli.main(["verify", str(table), str(tmp_path / "U.npy"), str(tmp_path / "V.npy"), "--quiet"]) == 1
    assert words in one_sentence(capsys)


# --- what a terminal sees ------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self):
        return True


def steps(report):
    """Two steps of a solver, the second with a bound."""
    report(cvxnmf.Iterate(1, 0.1, 10.0, 0.0, 1))
    report(cvxnmf.Iterate(2, 0.2, 10.0, 9.9, 1))
    return 7


def test_a_terminal_shows_the_gap_closing(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress(quiet=False)
    assert progress.run("karate", lambda: steps(progress.on_iterate), 1e-4) == 7
    progress.run("figure1", lambda: progress.on_count(2, 4, "n = 20"))
    shown = sys.stderr.getvalue()
    assert "karate: step 2, value 10, bound 9.9, gap 1e-02, goal 0.0001" in shown
    assert "figure1: 2 of 4" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 2  # the cursor comes back


def test_the_bar_is_logarithmic():
    shares = [showing.closed_share(gap, 1e-4) for gap in (2.0, 1.0, 1e-2, 1e-4, 0.0)]
    assert shares == pytest.approx([0.0, 0.0, 0.5, 1.0, 1.0])


@pytest.mark.parametrize("installed", [True, False])
def test_plain_lines_are_few(monkeypatch, capsys, installed):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    if not installed:
        monkeypatch.setitem(sys.modules, "rich.console", None)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = Progress(quiet=False)

    def work():
        for step in range(36_000):
            clock[0] += 0.1
            progress.on_iterate(cvxnmf.Iterate(step, clock[0], 10.0, 9.0, 1))

    progress.run("karate", work, 1e-4)
    lines = capsys.readouterr().err.splitlines()
    assert 5 < len(lines) < 60
    assert lines[0] == "solving: karate"
    assert lines[1].endswith("value 10, bound 9, gap 1e-01, goal 0.0001, 2 s")


def test_without_rich_results_are_plain(club, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli.main(["partition", str(club), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "cluster  nodes  members, the surest first" in out
    assert "\x1b" not in out


def test_colours_follow_the_terminal_and_the_environment(monkeypatch, capsys):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal.show("x", "green")
    monkeypatch.setenv("FORCE_COLOR", "1")
    terminal.show("x", "green")
    monkeypatch.setenv("NO_COLOR", "1")
    terminal.show("x", "green")
    assert capsys.readouterr().out == "x\n\x1b[32mx\x1b[0m\nx\n"


def test_an_encoding_without_the_names_escapes_them(tmp_path):
    (tmp_path / "g.txt").write_text("α β\nβ γ\nγ α\nγ δ\n", encoding="utf8")
    answer = run("partition", tmp_path / "g.txt", "-k", "1", "--quiet", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert answer.returncode in (0, 3), answer.stderr
    assert "\\u03b1" in answer.stdout


# --- the program in its shell --------------------------------------------------------------------------------------------


def test_a_closed_pipe_is_no_error_message(club):
    with subprocess.Popen(
        [*PROGRAM, "partition", str(club), "--quiet", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""


def test_standard_input_is_a_file(blocks):
    path, _ = blocks
    answer = run("partition", "-", "-k", "2", "--json", "--quiet", input=path.read_text())
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["nodes"] == 24


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(club):
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [*PROGRAM, "partition", str(club), "--quiet"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert answer.returncode == 1
    assert answer.stderr == "cvxnmf: No space left on device.\n"


def large_graph(path, n):
    rng = np.random.default_rng(0)
    np.savetxt(path, rng.integers(0, n, (10 * n, 2)), fmt="%d")
    return path


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("wait", [0.5, 3.0])
def test_ctrl_c_keeps_the_best_answer_or_says_that_it_is_lost(tmp_path, wait):
    path = large_graph(tmp_path / "g.txt", 3000)
    arguments = [*PROGRAM, "partition", str(path), "--tol", "0", "--output", str(tmp_path / "o.csv")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert "cvxnmf: interrupted" in err
    assert (tmp_path / "o.csv").exists() is (f"is in {tmp_path / 'o.csv'}" in err)
    assert not list(tmp_path.glob("*.part"))


SLEEPER = """
import os, sys, time
from pathlib import Path
from cvxnmf.cli.interruption import supervised

def work():
    Path(sys.argv[1]).write_text("done")
    Path(sys.argv[2] + ".part").write_text("half")
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass

sys.exit(supervised(work, sys.argv[1:]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_work_that_does_not_hear_is_ended_and_what_is_kept_is_said(tmp_path):
    kept, lost = str(tmp_path / "kept.csv"), str(tmp_path / "lost.csv")
    with subprocess.Popen([sys.executable, "-c", SLEEPER, kept, lost], stderr=subprocess.PIPE, text=True) as process:
        while not Path(f"{lost}.part").exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
    assert process.returncode == 130
    rest = f"{lost} could not be written; what was finished before is in {kept}."
    assert err == f"cvxnmf: interrupted in a step too long to wait for; {rest}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["kept.csv"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_work_that_crashes_is_a_sentence():
    code = "import os, signal, sys\nfrom cvxnmf.cli.interruption import supervised\n"
    code += "sys.exit(supervised(lambda: os.kill(os.getpid(), signal.SIGKILL), []))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 1
    assert answer.stderr == "cvxnmf: the work was ended by SIGKILL, perhaps for want of memory.\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_worker_does_not_outlive_the_program(tmp_path):
    path = large_graph(tmp_path / "g.txt", 2000)
    with subprocess.Popen([*PROGRAM, "partition", str(path), "--tol", "0", "--quiet"], stdout=subprocess.PIPE) as process:
        time.sleep(1.5)
        process.terminate()
        assert process.stdout.read() == b""
    assert process.returncode == -signal.SIGTERM


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: COMMAND; see cvxnmf --help"),
        (["partitoin", "x"], "there is no command 'partitoin'; did you mean partition? See cvxnmf --help"),
        (["zzz"], "the commands are demo, partition, factorize, verify, reproduce. See cvxnmf --help"),
    ],
)
def test_a_wrong_command_says_where_help_is(arguments, words, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


def test_an_exact_fit_is_said_once(tmp_path, capsys):
    np.savetxt(tmp_path / "exact.csv", np.outer([1.0, 2, 3], [1.0, 2, 4, 8]), delimiter=",")
    assert cli.main(["factorize", str(tmp_path / "exact.csv"), "-k", "1", "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["The fit is exact but for rounding, so nothing can be gained."]
