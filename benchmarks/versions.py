"""Two versions of the library side by side, for changes that must not cost time: ``python -m benchmarks.versions CHECKOUT``.

Each version runs in a process of its own that stays alive; the cases go back and forth between the two, so that a busy machine
slows down both. Only public names are used, so that any two versions can be compared.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets
from benchmarks.report import Table

HERE = Path(__file__).parents[1]


@functools.cache
def _table(rows: int, columns: int, rank: int, share: float | None = None) -> Any:
    """A noisy planted product; sparse with this share of entries if one is given."""
    rng = np.random.default_rng(0)
    U, V = rng.gamma(0.3, size=(rows, rank)), rng.gamma(0.3, size=(columns, rank))
    dense = rng.poisson(U @ V.T).astype(float) if share is not None else U @ V.T + 0.1 * rng.random((rows, columns))
    return sp.csr_matrix(dense * (rng.random((rows, columns)) < share)) if share is not None else dense


@functools.cache
def _planted(n: int) -> Any:
    return datasets.planted_graph(n)[0]


@functools.cache
def _sparse_planted(n: int) -> Any:
    return datasets.sparse_degree_corrected(n, 20, 10, 0.2, None, 0)[0]


@functools.cache
def _edge_list(edges: int) -> str:
    """A file of random pairs of names."""
    pairs = np.random.default_rng(0).integers(0, 50_000, size=(edges, 2))
    path = Path(tempfile.gettempdir()) / f"cvxnmf-edges-{edges}.csv"
    path.write_text("\n".join(f"n{i},n{j}" for i, j in pairs), encoding="ascii")
    return str(path)


def _solve(A: Any, tol: float = 1e-4, max_iter: int = 1000, **terms: Any) -> float:
    import cvxnmf

    return float(cvxnmf.solve(cvxnmf.symmetric(A, **terms), tol=tol, max_iter=max_iter).certificate.value)


def _nonsymmetric(A: Any, **terms: Any) -> float:
    import cvxnmf

    return float(cvxnmf.solve(cvxnmf.nonsymmetric(A, **terms), tol=1e-3).certificate.value)


def _sparse(A: Any) -> float:
    import cvxnmf

    return float(cvxnmf.solve(cvxnmf.sparse(A, l1=0.1), tol=1e-4).certificate.value)


def _descend(A: Any, k: int, **terms: Any) -> float:
    import cvxnmf

    return float(cvxnmf.classical_nmf(A, k, max_iter=60, tol=0.0, **terms).value)


def _factorize(A: Any, k: int, **terms: Any) -> float:
    import cvxnmf

    found = cvxnmf.factorize(A, k, **terms)
    return float(found.certificate.value)


def _verify() -> float:
    import cvxnmf

    U, V = np.abs(np.random.default_rng(0).normal(size=(2, 1797, 10)))
    return float(cvxnmf.verify(datasets.digits(), U, V[:64]).bound)


def _partition(A: Any, k: int | None) -> float:
    import cvxnmf

    return float(cvxnmf.partition(A, k).modularity)


def _transform(loss: str) -> float:
    import cvxnmf

    model = cvxnmf.NMF(10, beta_loss=loss, solver="mu" if loss != "frobenius" else "cd", max_iter=20)
    return float(model.fit(datasets.digits()[:500]).transform(datasets.digits()).sum())


def _exp_factor() -> float:
    import cvxnmf

    W = datasets.positions(800, 3, 0.5)
    return float(cvxnmf.exp_factor(W @ W.T, tol=1e-2).U.shape[1])


def _out_of_core() -> float:
    import cvxnmf

    path = Path(tempfile.gettempdir()) / "cvxnmf-tall.npy"
    if not path.exists():
        np.save(path, np.random.default_rng(0).random((60_000, 200)))
    return float(
        cvxnmf.classical_nmf(np.load(path, mmap_mode="r"), 10, max_iter=5, tol=0.0, init="random", memory_limit="1 GB").value
    )


def _command(*words: str) -> float:
    """A command line in a process of its own; the first number of what it prints is not looked at."""
    subprocess.run([sys.executable, "-m", "cvxnmf", *words], check=False, capture_output=True, env=os.environ)
    return 0.0


def _page() -> float:
    import networkx as nx

    import cvxnmf

    with tempfile.TemporaryDirectory() as folder:
        cvxnmf.report.write(cvxnmf.partition(nx.les_miserables_graph()), Path(folder) / "page.html")
    return 0.0


#: Name of a case, and the work, which returns a number that both versions should agree on.
CASES: dict[str, Callable[[], float]] = {
    "solve, planted n = 1,000, trace auto": lambda: _solve(_planted(1000), trace="auto"),
    "solve, planted n = 2,000, trace auto": lambda: _solve(_planted(2000), trace="auto"),
    "solve, karate, trace 0": lambda: _solve(datasets.karate()),
    "solve, karate, trace 0, squared error": lambda: _solve(datasets.karate(), loss="mse"),
    "solve, karate, psd cone": lambda: _solve(datasets.karate(), cone="psd", metric="uniform"),
    "solve, karate, mse-paper": lambda: _solve(datasets.karate(), loss="mse-paper", tol=1e-2),
    "solve, Les Miserables, ignored diagonal": lambda: _solve(datasets.miserables(), trace="auto", diagonal="ignore"),
    "solve, nonsymmetric, digits": lambda: _nonsymmetric(datasets.digits(), trace="auto"),
    "solve, nonsymmetric, squared error, 60x40": lambda: _nonsymmetric(_table(60, 40, 4), loss="mse", trace=5.0),
    "solve, sparse form, n = 300": lambda: _sparse(datasets.blocks(300)),
    "exp_factor, n = 800": _exp_factor,
    "classical hals, digits": lambda: _descend(datasets.digits(), 10),
    "classical hals, 500x300": lambda: _descend(_table(500, 300, 10), 10),
    "classical hals, sparse 2,000x1,000": lambda: _descend(_table(2000, 1000, 10, 0.1), 10),
    "classical hals, KL, digits": lambda: _descend(datasets.digits(), 10, loss="kl"),
    "classical hals, KL, sparse": lambda: _descend(_table(2000, 1000, 10, 0.1), 10, loss="kl"),
    "classical multiplicative, digits": lambda: _descend(datasets.digits(), 10, method="multiplicative"),
    "classical multiplicative, KL, digits": lambda: _descend(datasets.digits(), 10, method="multiplicative", loss="kl"),
    "classical als, digits": lambda: _descend(datasets.digits(), 10, method="als"),
    "classical projected gradient, digits": lambda: _descend(datasets.digits(), 10, method="gradient"),
    "classical quasi-newton, digits": lambda: _descend(datasets.digits(), 10, method="quasi-newton"),
    "factorize, 60x40, k = 5": lambda: _factorize(_table(60, 40, 5), 5),
    "factorize, digits[:200], k = 7": lambda: _factorize(datasets.digits()[:200], 7),
    "factorize, karate, k = 4": lambda: _factorize(datasets.karate(), 4, symmetric=True),
    "factorize, digits, k = 10": lambda: _factorize(datasets.digits(), 10),
    "factorize, KL, 60x40": lambda: _factorize(_table(60, 40, 5), 5, loss="kl"),
    "verify, digits": _verify,
    "NMF fit and transform, digits": lambda: _transform("frobenius"),
    "NMF fit and transform, KL, digits": lambda: _transform("kullback-leibler"),
    "partition, karate": lambda: _partition(datasets.karate(), None),
    "partition, planted n = 1,000": lambda: _partition(_planted(1000), 10),
    "partition, planted n = 20,000": lambda: _partition(_sparse_planted(20_000), 20),
    "out of core, 60,000x200": _out_of_core,
    "report page, Les Miserables": _page,
    "command: --help": lambda: _command("--help"),
    "command: partition, 200,000 edges of names": lambda: _command("partition", _edge_list(200_000), "-k", "5", "--json"),
}


def serve() -> None:
    """Answer each line, the name of a case, with its seconds and its number as JSON; the first run of a case is not timed."""
    warmed = set()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        name = line.strip()
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
                warnings.simplefilter("ignore")
                if name not in warmed:
                    CASES[name]()
                    warmed.add(name)
                began = time.perf_counter()
                number = CASES[name]()
                answer: dict[str, Any] = {"seconds": time.perf_counter() - began, "number": number}
        except Exception as error:  # a case that one version lacks is told, not fatal
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


class Version:
    """One version of the library in a process that stays alive."""

    def __init__(self, checkout: Path) -> None:
        environment = os.environ | {"PYTHONPATH": f"{checkout / 'src'}{os.pathsep}{HERE}"}
        command = [sys.executable, "-m", "benchmarks.versions", "--serve"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, env=environment, cwd=tempfile.gettempdir(), text=True, **pipes)

    def run(self, name: str) -> dict[str, Any]:
        """Seconds and number of a case."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return dict(json.loads(self.process.stdout.readline()))


def compare(other: Path, names: list[str], repeats: int) -> Table:
    """Medians of both versions, their ratio, and the numbers where they differ."""
    versions = Version(other), Version(HERE)
    rows = []
    for name in names:
        runs = [[version.run(name) for version in versions] for _ in range(repeats)]
        errors = [answer["error"] for pair in runs for answer in pair if "error" in answer]
        if errors:
            rows.append([name, "", "", "", errors[0]])
        else:
            seconds = [[pair[side]["seconds"] for pair in runs] for side in (0, 1)]
            before, after = map(statistics.median, seconds)
            best = min(seconds[1]) / min(seconds[0])
            numbers = [runs[0][side]["number"] for side in (0, 1)]
            differs = "" if np.isclose(*numbers, rtol=1e-9) else f"{numbers[0]:.8g} -> {numbers[1]:.8g}"
            rows.append([name, f"{before:.3f}", f"{after:.3f}", f"{after / before:.2f} ({best:.2f})", differs])
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    header = ["case", "before, s", "after, s", "ratio of medians (of minima)", "numbers that differ"]
    return Table("Two versions side by side", header, rows)


def main() -> None:
    """Compare, or serve as one of the two."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__)
    parser.add_argument("other", nargs="?", type=Path, help="a checkout of the other version")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.serve:
        serve()
    else:
        print(compare(words.other.resolve(), [name for name in CASES if words.only in name], words.repeats).markdown())


if __name__ == "__main__":
    main()
