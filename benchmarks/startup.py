"""Start-up: imports, the command line, and the first call after installation, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import objective
from benchmarks.objective import Timing
from benchmarks.report import Table
from benchmarks.scale import Scale

BASE = "import numpy, scipy.linalg, scipy.sparse.linalg"
USES = {
    "import cvxnmf": "import cvxnmf",
    "and cvxnmf.solve": "import cvxnmf; cvxnmf.solve, cvxnmf.symmetric",
    "and cvxnmf.factorize": "import cvxnmf; cvxnmf.factorize",
    "and cvxnmf.partition": "import cvxnmf; cvxnmf.partition",
    "and cvxnmf.NMF": "import cvxnmf; cvxnmf.NMF",
    "and scikit-learn's NMF": "from sklearn.decomposition import NMF",
}
#: First calls: what a person may well try first.
CALLS = {
    "solve, planted n = 500": (
        "from benchmarks.datasets import planted_graph; A = planted_graph(500)[0]",
        "import cvxnmf; cvxnmf.solve(cvxnmf.symmetric(A, trace='auto'))",
    ),
    "partition, karate": (
        "import networkx as nx; G = nx.karate_club_graph()",
        "import cvxnmf; cvxnmf.partition(G)",
    ),
    "factorize, digits k = 10": (
        "from sklearn.datasets import load_digits; A = load_digits().data",
        "import cvxnmf; cvxnmf.factorize(A, 10)",
    ),
}


def _process(code: str, cache: str | None = None) -> float:
    """Wall time of a new interpreter that runs the code; bytecode is kept, as an installation has it."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""} | ({} if cache is None else {"NUMBA_CACHE_DIR": cache})
    command = [sys.executable, "-W", "ignore", "-c", code]
    folder = Path(__file__).parents[1]
    run = lambda: subprocess.run(command, check=True, capture_output=True, env=environment, cwd=folder)  # noqa: E731
    return objective.seconds(run)[0]


def imports(scale: Scale) -> list[Table]:
    """Imports beyond numpy and scipy's own, and the command line's help."""
    uses = dict(list(USES.items())[:1]) if scale.tiny else USES
    codes = {"numpy and scipy": BASE} | {name: f"{BASE}; {code}" for name, code in uses.items()}
    codes["cvxnmf --help"] = "import sys; sys.argv = ['cvxnmf', '--help']\nfrom cvxnmf.cli import main\nmain()"
    codes["Python alone"] = "pass"
    works = {name: lambda code=code: _process(code) for name, code in codes.items()}
    times, _ = objective.interleaved(works, repeats=scale.pick(1, 3, 5), warm_up=not scale.tiny)
    base = times["numpy and scipy"].median
    rows = []
    for name, timing in times.items():
        beyond = f"{timing.median - base:.2f}" if name in uses else ""
        rows.append([name, str(timing), beyond])
    note = (
        "Whole processes, bytecode and compiled code cached. Goal: less than 0.5 s beyond numpy and scipy (linalg, "
        "sparse.linalg), of NMF beyond scikit-learn's."
    )
    return [Table("Start-up", ["process", "seconds", "beyond numpy and scipy, s"], rows, note)]


def first_calls(scale: Scale) -> list[Table]:
    """The first call after installation, with nothing compiled, and the next process."""
    rows = []
    for name, (data, call) in list(CALLS.items())[: scale.pick(0, 1, len(CALLS))]:
        with tempfile.TemporaryDirectory() as cache:
            code = f"{data}\n{call}"
            without = Timing((_process(code, cache),))
            after = Timing(tuple(_process(code, cache) for _ in range(3 if scale.full else 1)))
        rows.append([name, str(without), str(after)])
    note = "Whole processes, data and imports included; NUMBA_CACHE_DIR is an empty folder at first. Goal: at most 10 s."
    header = ["call", "first process, nothing compiled, s", "next processes, s"]
    return [Table("First call after installation", header, rows, note)]
