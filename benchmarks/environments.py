"""Peers that cannot share our environment: each gets one of its own, made on demand, and data pass through files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / ".envs"
RUNNER = Path(__file__).parent / "foreign.py"
#: What is installed for each peer, one pip call per line.
PACKAGES: dict[str, list[list[str]]] = {
    # last released for numpy 1
    "nimfa": [["nimfa==1.4.0", "numpy<2", "scipy<1.13"]],
    # the build without CUDA, which is ten times smaller
    "torchnmf": [
        [
            "torch==2.13.0+cpu" if sys.platform.startswith("linux") else "torch",
            "--extra-index-url",
            "https://download.pytorch.org/whl/cpu",
        ],
        ["torchnmf==0.3.5", "numpy"],
    ],
    # its own limits (numpy < 1.23, pandas <= 1.3.5) exclude today's Pythons: installed without them
    "karateclub": [
        ["setuptools<80", "wheel", "numpy", "networkx", "scipy", "pandas", "scikit-learn", "gensim", "tqdm", "six", "decorator"],
        ["python-louvain", "python-levenshtein", "pygsp"],
        ["--no-deps", "--no-build-isolation", "karateclub==1.3.3"],
    ],
}
#: Seconds after which an installation or a run is given up.
PATIENCE = 600


class Unavailable(Exception):
    """A peer cannot take part; the message says why in a few words."""


def prepared(peer: str, build: bool) -> Path:
    """The interpreter of a peer's environment, which is made if it is missing and `build` is set."""
    home = FOLDER / peer
    interpreter = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (home / "ready").exists():
        return interpreter
    if not build:
        raise Unavailable("its own environment is made by `make bench-full`")
    _run([sys.executable, "-m", "venv", "--clear", str(home)], "no environment could be made")
    for line in PACKAGES[peer]:
        command = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *line]
        _run(command, "pip could not install it")
    (home / "ready").touch()
    return interpreter


def run(peer: str, build: bool, **arrays: Any) -> dict[str, np.ndarray]:
    """Hand arrays to a peer and take back its factors and the seconds it took, one thread allowed."""
    interpreter = prepared(peer, build)
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder) / "given.npz", Path(folder) / "answer.npz"
        np.savez(given, **arrays)
        command = [str(interpreter), "-W", "ignore", str(RUNNER), peer, str(given), str(answer)]
        _run(command, "it failed when run", os.environ | limits)
        with np.load(answer) as found:
            return dict(found)


def _run(command: list[str], failure: str, environment: dict[str, str] | None = None) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE, env=environment)
    except (subprocess.SubprocessError, OSError) as error:
        raise Unavailable(f"{failure} ({type(error).__name__})") from error
