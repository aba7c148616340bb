"""Help, arguments, and what is said about wrong ones."""

import re

import pytest
from running import run

from cvxnmf import cli


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
    said = capsys.readouterr().err
    assert said.startswith("cvxnmf")
    assert said.endswith("--help\n")
    assert said.count("\n") == 1


def test_shells_complete_commands_options_and_choices(capsys):
    for shell, words in (("bash", ("--objective", "modularity")), ("zsh", ("bashcompinit",)), ("fish", ("-l objective",))):
        assert cli.main(["completion", shell]) == 0
        script = capsys.readouterr().out
        assert all(word in script for word in (*cli.COMMANDS, *words))


def test_the_module_runs_as_a_program():
    answer = run("--version")
    assert answer.returncode == 0
    assert answer.stdout.startswith("cvxnmf 0")


def test_the_choices_in_the_help_are_those_of_the_files():
    from cvxnmf import io
    from cvxnmf.cli import options
    from cvxnmf.nmf.loss_names import LOSSES, NUMBERS, find_loss

    assert options.FORMATS == io.FORMATS
    assert set(options.SEPARATORS) == set(io.SEPARATORS)
    assert options.LOSSES == NUMBERS
    for text in (*LOSSES, "2", "1", "0", "0.5", "-1", "3e0", "beta=0.1"):
        assert options.loss(text) == find_loss(text).name
    words = [io.formats.WORDS[name].removeprefix("a ").removesuffix(" file") for name in io.networks.READERS]
    assert [word for word in words if word not in options.GRAPH_FILES or word not in options.MATRIX_FILES] == []


def test_the_help_names_every_loss(capsys):
    from cvxnmf.nmf.loss_names import LOSSES

    with pytest.raises(SystemExit):
        cli.main(["factorize", "--help"])
    text = " ".join(capsys.readouterr().out.replace("-\n", "-").split())
    assert [name for name in LOSSES if not re.search(rf"LOSS [^;]*\b{name}\b", text)] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: COMMAND; see cvxnmf --help"),
        (["partition", "g.csv", "--reprot", "x.html"], "no option --reprot; did you mean --report? See cvxnmf partition --help"),
        (["demo", "--zzz"], "cvxnmf demo: there is no option --zzz; see cvxnmf demo --help"),
        (["partition", "a.csv", "b.csv"], "'b.csv' is one argument too many; see cvxnmf partition --help"),
        (["partitoin", "x"], "there is no command 'partitoin'; did you mean partition? See cvxnmf --help"),
        (["zzz"], "the commands are demo, partition, factorize, verify, reproduce, completion. See cvxnmf --help"),
    ],
)
def test_a_wrong_command_says_where_help_is(arguments, words, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert words in capsys.readouterr().err
