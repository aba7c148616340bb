"""Start-up: imports, the command line, and the first call after installation, each in a process of its own."""

from __future__ import annotations

import os
import shutil
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
    "NMF(10).fit, digits": (
        "from sklearn.datasets import load_digits; A = load_digits().data",
        "import cvxnmf; cvxnmf.NMF(10).fit(A)",
    ),
    "partition, karate": (
        "import networkx as nx; G = nx.karate_club_graph()",
        "import cvxnmf; cvxnmf.partition(G)",
    ),
    "factorize and its certificate, digits k = 10": (
        "from sklearn.datasets import load_digits; A = load_digits().data",
        "import cvxnmf; cvxnmf.factorize(A, 10).certificate",
    ),
    "solve, planted n = 500": (
        "from benchmarks.datasets import planted_graph; A = planted_graph(500)[0]",
        "import cvxnmf; cvxnmf.solve(cvxnmf.symmetric(A, trace='auto'))",
    ),
}
#: The call itself is timed, and the imports before it.
TIMED = """
import sys, time
began = time.perf_counter()
{data}
ready = time.perf_counter()
{call}
sys.stdout.write(f"{{time.perf_counter() - ready}}")
"""


def _process(code: str) -> float:
    """Wall time of a new interpreter that runs the code; bytecode is kept, as an installation has it."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
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
    """The first call after installation, in a copy installed as pip does it, and where its compiled code is of no use."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [] if scale.tiny else _first_calls(list(CALLS.items())[: scale.pick(0, 2, len(CALLS))], Path(folder))
    note = (
        "Seconds of the call alone, `import cvxnmf` included. Installed from the sources with pip, which takes along code "
        "compiled for the processor at hand; on another one, or with another version of numba, nothing is compiled yet. Goal: at "
        "most 3 s. *: not kept."
    )
    header = [
        "call",
        "first after installation, s",
        "loops compiled",
        "next processes, s",
        "nothing compiled, s",
        "loops compiled",
    ]
    return [Table("First call after installation", header, rows, note)]


def _first_calls(calls: list[tuple[str, tuple[str, str]]], folder: Path) -> list[list[str]]:
    """A row for each call, with an installation in a folder and one without its compiled code."""
    brought, bare = folder / "brought", folder / "bare"
    _install(brought)
    shutil.copytree(brought, bare, ignore=shutil.ignore_patterns("*.nbi", "*.nbc"))
    return [[name, *_first_call(data, call, brought, bare)] for name, (data, call) in calls]


def _install(folder: Path) -> None:
    """Install the sources into a folder."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target"]
    subprocess.run([*command, folder, Path(__file__).parents[1]], check=True, capture_output=True)


def _first_call(data: str, call: str, brought: Path, bare: Path) -> list[str]:
    """Seconds of a first call and of later ones, then those where no code was brought along; loops compiled in the first ones."""
    words = []
    for site in (brought, bare):
        with tempfile.TemporaryDirectory() as kept:
            times = [_timed_call(data, call, site, kept)]
            compiled = len(list(Path(kept).rglob("*.nbc")))
            times += [_timed_call(data, call, site, kept) for _ in range(3)]
        words += [f"{times[0]:.2f}{'*' if site is brought and times[0] > 3.0 else ''}", str(compiled)]
        words += [str(Timing(tuple(times[1:])))] if site is brought else []
    return words


def _timed_call(data: str, call: str, site: Path, kept: str) -> float:
    environment = os.environ | {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": kept}
    command = [sys.executable, "-W", "ignore", "-c", TIMED.format(data=data, call=call)]
    return float(subprocess.run(command, check=True, capture_output=True, env=environment, cwd=Path(__file__).parents[1]).stdout)
