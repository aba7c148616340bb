"""Large data on the command line."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import cvxnmf
from cvxnmf import cli
from row_chunk_builders import ENOUGH, planted_rows


def told(capsys):
    """The one sentence on stderr, beside an empty stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cvxnmf: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("where", ["memory-limit", "dask"])
def test_the_command_line_in_blocks(where, client, tmp_path, capsys):
    A = planted_rows()
    path = tmp_path / "a.npy"
    np.save(path, A)
    scale = ["--memory-limit", "64GB"] if where == "memory-limit" else ["--dask", client.scheduler.address]
    command = [
        "factorize",
        str(path),
        "-k",
        "3",
        "--max-iter",
        "5",
        "--json",
        "--quiet",
        "--output",
        str(tmp_path / "f.npz"),
        *scale,
    ]
    assert cli.main(command) == 0
    facts = json.loads(capsys.readouterr().out)
    expected = cvxnmf.factorize(A, 3, memory_limit=ENOUGH, max_iter=5)
    assert facts["value"] == pytest.approx(expected.value, rel=1e-8)
    assert facts["certificate"]["kind"] == "tail"
    assert cli.main(["verify", str(path), str(tmp_path / "f.npz"), "--json", "--quiet", *scale]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(expected.value, rel=1e-8)


def test_the_command_line_says_what_is_wrong_with_large_data(tmp_path, capsys):
    path, table = tmp_path / "a.npy", tmp_path / "a.csv"
    np.save(path, planted_rows())
    np.savetxt(table, planted_rows(), delimiter=",")
    for words, sentence in [
        ([path, "-k", "3", "--memory-limit", "many"], "memory_limit='many' is not understood"),
        ([path, "-k", "3", "--memory-limit", "1MB"], "give at least"),
        ([path, "--memory-limit", "9GB"], "must be given; set n_components (-k)"),
        ([table, "-k", "3", "--memory-limit", "9GB"], "is not a numpy .npy file; only .npy files are read in blocks"),
        (["-", "-k", "3", "--memory-limit", "9GB"], "Standard input cannot be read in blocks"),
        ([tmp_path, "-k", "3", "--memory-limit", "9GB"], "is a folder"),
        ([tmp_path / "b.npy", "-k", "3", "--memory-limit", "9GB"], "does not exist"),
        ([path, "-k", "3", "--symmetric", "--memory-limit", "9GB"], "must be square for symmetric factors"),
    ]:
        assert cli.main(["factorize", "--quiet", *map(str, words)]) == 1
        assert sentence in told(capsys)
    assert cli.main(["factorize", "--quiet", str(path), "-k", "3", "--dask", "nowhere"]) == 1
    assert "is not the address of a Dask scheduler" in told(capsys)


FACTORIZE_EACH = """
import sys
from cvxnmf import cli
for path in sys.argv[1:]:
    assert cli.main(["factorize", path, "-k", "3", "--memory-limit", "9GB", "--quiet"]) == 1
"""


def test_the_command_line_and_files_that_are_cut_short(tmp_path):
    paths = [tmp_path / f"{size}.npy" for size in (20_000, 100, 7, 0)]
    for path in paths:
        np.save(path, planted_rows())
        os.truncate(path, int(path.stem))
    # In a process of its own: one that reads beyond the end of a file is killed.
    answer = subprocess.run([sys.executable, "-c", FACTORIZE_EACH, *map(str, paths)], capture_output=True, text=True, timeout=120)
    assert answer.returncode == 0, answer.stderr
    sentences = answer.stderr.splitlines()
    assert len(sentences) == len(paths)
    for path, sentence in zip(paths, sentences, strict=True):
        assert sentence.startswith("cvxnmf: ")
        assert path.name in sentence
