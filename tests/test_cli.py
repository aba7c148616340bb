import json
import subprocess
import sys

import pytest

import cvxnmf
from cvxnmf import cli


def test_help_names_the_commands_and_exit_codes(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0
    assert "demo" in text
    assert "3 finished above tolerance" in text


@pytest.mark.parametrize(
    "arguments", [[], ["dance"], ["demo", "--size", "many"], ["demo", "--size", "1"], ["demo", "--tol", "-1"]]
)
def test_bad_usage_exits_with_two(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage: cvxnmf" in capsys.readouterr().err


def test_the_demo_prints_a_certified_table(capsys):
    assert cli.main(["demo", "--size", "40"]) == 0
    out, err = capsys.readouterr()
    assert "proved bound" in out
    assert out.count("karate club ") >= 3
    assert out.count(" yes") == 6
    assert "977.07" in out
    assert "solving: karate club" in err


def test_the_demo_as_json_is_quiet_and_complete(capsys):
    assert cli.main(["demo", "--size", "30", "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    rows = json.loads(out)
    assert err == ""
    assert len(rows) == 6
    for row in rows:
        assert row["bound"] <= row["value"]
        assert row["relative_gap"] <= 1e-4
        assert row["checked"] is True


def test_above_tolerance_exits_with_three(capsys):
    assert cli.main(["demo", "--size", "20", "--tol", "0", "--quiet"]) == 3
    assert "blocks, n = 20" in capsys.readouterr().out


def test_errors_are_one_sentence_and_exit_with_one(capsys):
    assert cli.main(["demo", "--quiet", "--size", "9000000"]) == 1
    err = capsys.readouterr().err
    assert "GiB of memory" in err
    assert err.count("\n") == 1


def test_a_closed_pipe_is_no_error_message():
    program = [sys.executable, "-m", "cvxnmf", "demo", "--size", "20", "--quiet", "--json"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_terminal_shows_the_gap_closing(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    shown = []
    with cli._Progress(quiet=False) as progress:
        progress.update = shown.append
        progress.begin("karate", 1e-4)
        progress.show(cvxnmf.Iterate(1, 0.1, 10.0, 0.0, 1))
        progress.show(cvxnmf.Iterate(2, 0.2, 10.0, 9.9, 1))
    assert shown == ["karate", "karate: step 1, value 10, no bound yet", "karate: step 2, value 10, gap 1e-02 (goal 1e-04)"]


def test_the_module_runs_as_a_program():
    answer = subprocess.run([sys.executable, "-m", "cvxnmf", "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("cvxnmf 0")
