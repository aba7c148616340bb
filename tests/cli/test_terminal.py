"""What a terminal sees: progress, tables, colours."""

import io
import logging
import os
import sys
import time

import pytest
from running import run

import cvxnmf
from cvxnmf import cli
from cvxnmf.cli import progress as showing
from cvxnmf.cli import terminal
from cvxnmf.cli.progress import Progress


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
    assert lines[1].endswith("value 10, bound 9, gap 1e-01, goal 0.0001, 1 s")


def table_on(width, monkeypatch, *table, **terms):
    """The lines of a table on a terminal of so many columns."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys, "stdout", Terminal())
    terminal.show_table(*table, **terms)
    return sys.stdout.getvalue().splitlines()


def test_a_table_cuts_lists_of_names_between_names(monkeypatch):
    header, rule, row = table_on(50, monkeypatch, ("cluster", "nodes", "members"), [["0", "1,234", "a name, " * 20]], left=(2,))
    assert header == "cluster   nodes   members"
    assert row == "      0   1,234   a name, a name, a name, …"
    assert len(rule) == 50


def test_columns_of_text_share_a_narrow_terminal(monkeypatch):
    rows = [["0", "row one, " * 30, "column, " * 30], ["1", "short", "x" * 300]]
    lines = table_on(80, monkeypatch, ("component", "rows", "columns"), rows, left=(1, 2))
    assert lines[2] == "        0   row one, row one, row one, …       column, column, column, …"
    assert lines[3] == f"        1   short{' ' * 30}{'x' * 31}…"


def test_wide_characters_take_two_cells(monkeypatch):
    rows = [["东京, 大阪, 名古屋, 札幌, 福岡", "1"], ["e\u0301t\u00e9", "2"]]
    lines = table_on(25, monkeypatch, ("names", "n"), rows, left=(0,))
    assert lines[2].startswith("东京, 大阪, 名古屋, …")
    assert lines[2].endswith("   1")
    assert lines[3] == f"e\u0301t\u00e9{' ' * 21}2"  # the accent takes no cell of its own


def test_a_pipe_gets_all_names_in_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    terminal.show_table(("cluster", "members"), [["0", "a name, " * 20], ["10", "b"]], left=(1,))
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert header == "cluster   members"
    assert rows == ["      0   " + "a name, " * 19 + "a name,", "     10   b"]


def test_without_rich_results_are_plain(club, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli.main(["partition", str(club), "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "cluster   nodes   members, the surest first" in out
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


@pytest.mark.parametrize("quiet", [False, True])
def test_what_the_package_logs_is_a_note_unless_quiet(quiet, monkeypatch, capsys):
    monkeypatch.setattr("cvxnmf.cli.demo.run", lambda options: logging.getLogger("cvxnmf").info("Compiling.") or 0)
    cli.main(["demo", *(["--quiet"] if quiet else [])])
    assert capsys.readouterr().err == ("" if quiet else "cvxnmf: Compiling.\n")
    assert logging.getLogger("cvxnmf").propagate
