"""What is measured: seconds, certified gaps, memory. Solvers never score themselves."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import scipy.linalg as sl

import cvxnmf


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Wall time of one run and its answer."""
    began = time.perf_counter()
    answer = work()
    return time.perf_counter() - began, answer


def interleaved(works: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Median wall time of each piece of work, run in turns after one warm-up round, and the last answers."""
    times: dict[str, list[float]] = {name: [] for name in works}
    answers: dict[str, Any] = {}
    for round_ in range(repeats + 1):
        for name, work in works.items():
            spent, answers[name] = seconds(work)
            if round_:
                times[name].append(spent)
    return {name: median(spent) for name, spent in times.items()}, answers


def eigendecomposition(A: np.ndarray) -> Callable[[], Any]:
    """One full eigendecomposition of the size of A, the unit of cost."""
    return lambda: sl.eigh(A)


def thin_svd(A: np.ndarray) -> Callable[[], Any]:
    """One thin singular value decomposition of A, the unit of cost."""
    return lambda: sl.svd(A, full_matrices=False)


def certified_gap(problem: cvxnmf.Problem, X: Any) -> float:
    """Relative gap of anybody's X, computed by our certificate, whoever found it."""
    return cvxnmf.certify(problem, X).relative_gap


_PEAK = """
import json, re, sys
import numpy as np, scipy.linalg as sl
import cvxnmf
n = int(sys.argv[1])
cvxnmf.solve(cvxnmf.symmetric(cvxnmf.block_graph(100, 0.3, 0.7)[0], trace="auto"))
sl.eigh(np.eye(700))
A, _ = cvxnmf.block_graph(n, 0.3, 0.7)
def status(key):
    return 1024 * int(re.search(key + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1])
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
before = status("VmRSS")
cvxnmf.solve(cvxnmf.symmetric(A, **json.loads(sys.argv[3])), method=sys.argv[2], max_iter=2)
print((status("VmHWM") - before) / (8 * n * n))
"""


def peak_arrays(n: int, method: str, terms: dict[str, Any]) -> float | None:
    """Growth of the peak memory during a solve, in dense n-by-n arrays, in a process of its own; None where not told."""
    if not sys.platform.startswith("linux"):
        return None
    answer = subprocess.run(
        [sys.executable, "-c", _PEAK, str(n), method, json.dumps(terms)], capture_output=True, text=True, check=True
    )
    return float(answer.stdout)


_PEAK_OF_FACTOR = """
import re, sys
import numpy as np
import cvxnmf
n, rank, sigma, tol = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
cvxnmf.exp_factor(np.zeros((20, 20)))
W = np.random.default_rng(0).normal(0.0, sigma, (n, rank))
X = W @ W.T
def status(key):
    return 1024 * int(re.search(key + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1])
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
before = status("VmRSS")
cvxnmf.exp_factor(X, tol=tol)
print((status("VmHWM") - before) / 1e6)
"""


def peak_of_factor(n: int, rank: int, sigma: float, tol: float) -> float | None:
    """Growth of the peak memory in megabytes while factors are computed, in a process of its own; None where not told."""
    if not sys.platform.startswith("linux"):
        return None
    words = [str(word) for word in (n, rank, sigma, tol)]
    answer = subprocess.run([sys.executable, "-c", _PEAK_OF_FACTOR, *words], capture_output=True, text=True, check=True)
    return float(answer.stdout)
