"""What is measured: seconds, values, certified gaps, losses, agreement. Solvers never score themselves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeVar

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.special import rel_entr
from threadpoolctl import threadpool_limits

import cvxnmf

Name = TypeVar("Name")
#: Entries of a model that are formed at a time.
ENTRIES_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Timing:
    """Wall times of one piece of work."""

    runs: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return median(self.runs)

    def __str__(self) -> str:
        if len(self.runs) == 1:
            return _digits(self.median)
        return f"{_digits(self.median)} ({_digits(min(self.runs))} to {_digits(max(self.runs))})"


def _digits(seconds: float) -> str:
    """Three digits that count."""
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.2f}" if seconds < 10 else f"{seconds:.1f}"


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Wall time of one run and its answer."""
    began = time.perf_counter()
    answer = work()
    return time.perf_counter() - began, answer


def interleaved(
    works: Mapping[Name, Callable[..., Any]], repeats: int, warm_up: bool = True
) -> tuple[dict[Name, Timing], dict[Name, Any]]:
    """Wall times of each piece of work, run in turns after one round that does not count, and the last answers."""
    times: dict[Name, list[float]] = {name: [] for name in works}
    answers: dict[Name, Any] = {}
    for round_ in range(repeats + warm_up):
        for name, work in works.items():
            spent, answers[name] = seconds(work)
            if round_ >= warm_up:
                times[name].append(spent)
    return {name: Timing(tuple(spent)) for name, spent in times.items()}, answers


def ratio(times: dict[str, Timing], name: str, unit: str) -> str:
    """Median over median."""
    quotient = times[name].median / times[unit].median
    return f"{quotient:.2f}" if quotient < 10 else f"{quotient:.0f}"


def exponent(sizes: Any, spent: Any) -> float:
    """Slope of the line that fits ``log(seconds)`` over ``log(n)`` best."""
    return float(np.polyfit(np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(spent, dtype=float)), 1)[0])


# Units of cost -----------------------------------------------------------------------------------------------------------------


def eigendecompositions(A: Any) -> dict[str, Callable[[], Any]]:
    """One full ``scipy.linalg.eigh`` of A, eigenvectors included, or a thin SVD of a rectangle, on all threads and on one.

    On a busy machine threads may wait for each other so long that one is several times faster; what is compared with the unit
    would then look better than it is.
    """
    dense = A.toarray() if sp.issparse(A) else A
    decompose = (lambda: sl.eigh(dense)) if dense.shape[0] == dense.shape[1] else thin_svd(dense)

    def on_one_thread() -> Any:
        with threadpool_limits(1):
            return decompose()

    return {"eigh": decompose, "eigh on one thread": on_one_thread}


def faster(times: dict[str, Timing]) -> str:
    """Which of the two is the unit: the faster one."""
    return min((name for name in times if name.startswith("eigh")), key=lambda name: times[name].median)


def thin_svd(A: np.ndarray) -> Callable[[], Any]:
    """One thin singular value decomposition of A."""
    return lambda: sl.svd(A, full_matrices=False)


# Convex problems ---------------------------------------------------------------------------------------------------------------


def certified_gap(problem: cvxnmf.Problem, X: Any) -> float:
    """Relative gap of anybody's X, computed by our certificate, whoever found it."""
    return cvxnmf.certify(problem, X).relative_gap


def model_value(A: Any, v: np.ndarray, W: np.ndarray, s: np.ndarray, trace: float) -> float:
    """``KL(A, exp(v1' + 1v' + WW')) + trace <N, WW'>`` on the conditional cone, row by row from the definition."""
    data, total, n = sp.csr_array(A), 0.0, len(v)
    height = max(1, ENTRIES_AT_ONCE // n)
    for first in range(0, n, height):
        rows = slice(first, min(n, first + height))
        X = v[rows, None] + v[None, :] + W[rows] @ W.T
        a = data[rows].tocoo()
        total += float(np.exp(X).sum() - a.data @ X[a.row, a.col] + np.sum(a.data * np.log(a.data) - a.data))
    centred = W - (s**2 @ W) / np.sum(s**2)
    return total + trace * float(np.sum((s[:, None] * centred) ** 2))


def proved_gap(A: Any, problem: Any, solution: cvxnmf.Solution) -> float:
    """Relative gap of a solution, KL on the conditional cone: its value from the definition, its bound proved anew.

    Only for data without empty rows.
    """
    value = model_value(A, solution.v, solution.W, problem.metric, problem.trace)
    return (value - solution.certificate.check(A)) / value


# Factors -----------------------------------------------------------------------------------------------------------------------


def factor_loss(A: Any, U: np.ndarray, V: np.ndarray, loss: str = "mse") -> float:
    """``||A - UV'||^2`` or ``sum A log(A/UV') - A + UV'`` of anybody's factors; infinite if they are not nonnegative."""
    if min(U.min(), V.min()) < 0:
        return float("inf")
    if not sp.issparse(A):
        Y = U @ V.T
        return float(np.sum((A - Y) ** 2)) if loss == "mse" else float(np.sum(rel_entr(A, Y) - A + Y))
    a = sp.coo_array(A)
    fitted = np.einsum("ij,ij->i", U[a.row], V[a.col])
    if loss == "mse":
        return float(np.sum(a.data**2) - 2.0 * a.data @ fitted + np.sum((U.T @ U) * (V.T @ V)))
    return float(np.sum(rel_entr(a.data, fitted) - a.data) + U.sum(axis=0) @ V.sum(axis=0))


# Partitions --------------------------------------------------------------------------------------------------------------------


def agreement(truth: Any, labels: Any) -> tuple[float, float]:
    """Adjusted Rand index and normalised mutual information."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    return float(adjusted_rand_score(truth, labels)), float(normalized_mutual_info_score(truth, labels))


def mutual_information(truth: Any, labels: Any) -> float:
    """Adjusted mutual information."""
    from sklearn.metrics import adjusted_mutual_info_score

    return float(adjusted_mutual_info_score(truth, labels))


def paired(ours: Any, theirs: Any) -> str:
    """Mean of the differences and its standard error."""
    difference = np.asarray(ours) - np.asarray(theirs)
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else np.nan
    return f"{difference.mean():+.3f} ± {error:.3f}"
