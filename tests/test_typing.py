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


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """What mypy says about files of a person, read with the package installed."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("mypy")
    (folder / "mistakes.py").write_text(MISTAKES, encoding="utf8")
    files = [str(HERE / "user_code.py"), str(folder / "mistakes.py")]
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir", os.devnull, *files]
    said = subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, "MYPYPATH": str(SOURCE.parent)})
    return said.stdout.splitlines()


def test_types_are_shipped():
    assert (SOURCE / "py.typed").exists()


def test_strict_code_of_a_person_passes(answer):
    assert [line for line in answer if "user_code.py" in line and "error" in line] == []


@pytest.mark.parametrize("word", ["factorise", "n_clusters", "Problem", "bonud"])
def test_mistakes_are_found(answer, word):
    assert any(word in line for line in answer if "mistakes.py" in line), answer
