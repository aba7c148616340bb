"""Types: a person's strict mypy understands the package, and finds mistakes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cvxnmf

HERE = Path(__file__).parent / "typing"
SOURCE = Path(cvxnmf.__file__).parent
MISTAKES = """
import numpy as np
import cvxnmf

cvxnmf.factorise(np.eye(3))
cvxnmf.partition(np.eye(3), n_clusters="three")
cvxnmf.solve(np.eye(3))
cvxnmf.factorize(np.eye(3)).certificate.bonud
"""


def checked(path, folder):
    """What mypy says about a file, read as a person would with the package installed."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir", str(folder), str(path)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, "MYPYPATH": str(SOURCE.parent)})


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


def test_types_are_shipped():
    assert (SOURCE / "py.typed").exists()


def test_strict_code_of_a_person_passes(cache):
    answer = checked(HERE / "user_code.py", cache)
    mine = [line for line in answer.stdout.splitlines() if "user_code.py" in line and "error" in line]
    assert mine == [], answer.stdout


def test_mistakes_are_found(cache):
    path = cache / "mistakes.py"
    path.write_text(MISTAKES, encoding="utf8")
    answer = checked(path, cache).stdout
    for word in ("factorise", "n_clusters", "Problem", "bonud"):
        assert any(word in line for line in answer.splitlines() if "mistakes.py" in line), answer
