"""How tests run the program and read what it says."""

import subprocess
import sys

PROGRAM = [sys.executable, "-m", "cvxnmf"]


def run(*arguments, **options):
    """The program in a process of its own, as a shell starts it."""
    return subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)


def one_sentence(capsys):
    """What stands on stderr, which must be one line, beside an empty stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cvxnmf: ")
    assert err.count("\n") == 1
    return err
