"""What the default NMF and a single descent could be at best: threads, limits of the machine, precision, races of other data."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import cvxnmf
from benchmarks import child, datasets, objective, one_fit
from benchmarks.report import Table
from benchmarks.scale import Scale

#: Steps that are timed: the first ones sweep once.
STEPS = 3


class Sweep(NamedTuple):
    """Data of a descent, and how many times the limit a step may take."""

    name: str
    A: Any
    k: int
    loss: str
    allowed: float

    @property
    def flops(self) -> float:
        """Of a step: products with the data, for a divergence the model, its slope and its curvature, for both factors."""
        (m, n), entries = self.A.shape, self.A.nnz if hasattr(self.A, "nnz") else self.A.size
        return (4.0 if self.loss == "mse" else 12.0) * entries * self.k + 4.0 * (m + n) * self.k**2 * (self.loss == "mse")

    @property
    def bytes(self) -> float:
        """Of the data, read once, or for a divergence once for each factor."""
        size = 12.0 * self.A.nnz if hasattr(self.A, "nnz") else 8.0 * self.A.size
        return size * (1.0 if self.loss == "mse" else 2.0)


def _sweeps(scale: Scale) -> list[Sweep]:
    if scale.tiny:
        return [Sweep("digits, 100 rows", datasets.digits()[:100], 5, loss, 1.3) for loss in ("mse", "kl")]
    topics, wide = datasets.topic_counts(2000, 1000, 10, 60, 3), datasets.topic_counts(20_000, 8_000, 20, 80, 4)
    dense, tall = datasets.mixture(2000, 1000, 20, 0.2, 12), datasets.mixture(200_000, 100, 10, 0.2, 12)
    found = [Sweep("dense 2,000 x 1,000", dense, 20, "mse", 1.3), Sweep("dense 200,000 x 100", tall, 10, "mse", 1.3)]
    for loss in ("mse", "kl"):
        found += [Sweep("topics 2,000 x 1,000", topics, 10, loss, 3.0), Sweep("topics 20,000 x 8,000", wide, 20, loss, 3.0)]
    found.append(Sweep("dense 2,000 x 1,000", dense, 20, "kl", 4.0))
    faces = datasets.from_mat("cbcl_faces", "M")
    for loss, allowed in (("mse", 1.3), ("kl", 4.0)) if faces is not None else ():
        found.append(Sweep("CBCL faces", faces, 49, loss, allowed))
    return found


def kernels(scale: Scale) -> list[Table]:
    """Time of a step on one thread, in units of the larger of its flops and its bytes."""
    rows = []
    with threadpool_limits(1):
        speed, bandwidth = _gemm_speed(), _bandwidth()
        for case in _sweeps(scale):
            spent = _step(case, scale.pick(1, 2, 5))
            limit = max(case.flops / speed, case.bytes / bandwidth)
            times = f"{spent / limit:.1f}{'*' if spent > case.allowed * limit else ''}"
            figures = [f"{1e3 * spent:.2f}", f"{1e3 * limit:.2f}", times, f"{case.allowed:g}"]
            rows.append([case.name, str(case.k), case.loss.upper(), *figures])
    header = ["data", "k", "loss", "a step, ms", "limit, ms", "times the limit", "allowed"]
    note = (
        f"Processor time, one thread. The limit is the larger of flops at {speed / 1e9:.0f} GFlop/s, that of a matrix product, "
        f"and bytes of the data at {bandwidth / 1e9:.0f} GB/s, that of a copy. *: not kept."
    )
    return [Table("Steps of a descent against the limit of the machine", header, rows, note)]


def _gemm_speed() -> float:
    X = np.random.default_rng(0).random((1000, 1000))
    return 2e9 / min(_processor_seconds(lambda: X @ X) for _ in range(5))


def _bandwidth() -> float:
    X, Y = np.ones(10_000_000), np.zeros(10_000_000)
    return 2 * X.nbytes / min(_processor_seconds(lambda: np.copyto(Y, X)) for _ in range(5))


def _processor_seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _step(case: Sweep, repeats: int) -> float:
    """Processor time of a step, the median of those after the first, of the fastest run."""
    found = []
    for _ in range(repeats + 1):
        ends: list[float] = []
        listen = lambda line, ends=ends: ends.append(time.process_time())  # noqa: E731
        cvxnmf.classical_nmf(case.A, case.k, loss=case.loss, max_iter=STEPS, tol=0.0, callback=listen)
        found.append(median(np.diff(ends)))
    return float(min(found))


def threads(scale: Scale) -> list[Table]:
    """Steps of a descent on one thread and on two, whose factors must be the same to the last bit."""
    rows = []
    large = [case for case in _sweeps(scale) if scale.tiny or (case.A.shape[0] > 10_000 and (scale.full or case.loss == "mse"))]
    for case in large:
        works = {count: lambda case=case, count=count: _on_threads(case, count) for count in (1, 2)}
        times, answers = objective.interleaved(works, scale.pick(1, 3, 5))
        same = all(np.array_equal(one, other) for one, other in zip(answers[1][:2], answers[2][:2], strict=True))
        ratio, share = times[1].median / times[2].median, f"{answers[2][2] / answers[1][2]:.2f}"
        words = [f"{ratio:.2f}{'*' if ratio < 1.6 else ''}", share, "yes" if same else "no*"]
        rows.append([case.name, str(case.k), case.loss.upper(), str(times[1]), str(times[2]), *words])
    header = ["data", "k", "loss", "one thread, s", "two threads, s", "times faster", "share of the first", "same bits"]
    note = (
        "`classical_nmf`, ten steps from one start. Allowed: 1.6 at least. The share of the first thread is its processor time "
        "with two, in units of that with one: what the time would be on idle cores if the other keeps up. Here two threads "
        f"read memory {_gain(_reading):.2f} times as fast as one, and multiply matrices {_gain(_multiplying):.2f} times as fast. "
        "*: not kept."
    )
    return [Table("Two threads against one", header, rows, note)]


def _reading(share: int) -> Callable[[], Any]:
    X = np.ones(32_000_000 // share)
    return X.sum


def _multiplying(share: int) -> Callable[[], Any]:
    X = np.ones((1000, 1000))
    return lambda: [X @ X for _ in range(4 // share)]


def _gain(work: Callable[[int], Callable[[], Any]]) -> float:
    """How much faster two threads of their own do halves of some work than one does all of it."""
    whole, halves = work(1), [work(2), work(2)]
    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        times, _ = objective.interleaved({1: whole, 2: lambda: list(pool.map(lambda half: half(), halves))}, 7)
    return float(times[1].median / times[2].median)


def _on_threads(case: Sweep, count: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Factors, and processor time of the thread that asks for them."""
    rng = np.random.default_rng(0)
    start = tuple(rng.random((side, case.k)) for side in case.A.shape)
    with threadpool_limits(count):
        began = time.thread_time()
        result = cvxnmf.classical_nmf(case.A, case.k, loss=case.loss, init=start, max_iter=10, tol=0.0)
        return result.U, result.V, time.thread_time() - began


def races(scale: Scale) -> list[Table]:
    """Single precision, missing entries and symmetric data against ten random starts of our own descent."""
    digits = datasets.digits()[: scale.pick(80, None, None)]
    holes = digits.copy()
    holes[np.random.default_rng(0).random(digits.shape) < 0.2] = np.nan
    graph = datasets.from_file("football")
    cases: list[tuple[str, Any, int, bool]] = [("digits, a fifth missing", holes, scale.pick(3, 10, 10), False)]
    cases.append(("digits, single precision", digits.astype(np.float32), scale.pick(3, 10, 10), False))
    cases.append(("karate", datasets.karate(), 4, True))
    cases += [] if graph is None else [("football", graph, 12, True)]
    rows = [[name, str(k), loss.upper(), *_race(A, k, loss, both, scale)] for name, A, k, both in cases for loss in ("mse", "kl")]
    header = ["data", "k", "loss", "one fit, s", "factorize, s", "fits", "loss / best of 10", "factors"]
    note = (
        "One fit is that of scikit-learn by default (nndsvda), and where it takes no such data one of `classical_nmf`; all with "
        "a tolerance of 1e-4 and at most 200 steps, the defaults of `NMF`; the ten are by `classical_nmf` and start at random "
        "(tol 1e-6, at most 2,000 steps). Allowed: 3 fits or 0.2 s, and 1.001. *: not kept."
    )
    return [Table("Races of other data", header, rows, note)]


def _race(A: Any, k: int, loss: str, symmetric: bool, scale: Scale) -> list[str]:
    options: dict[str, Any] = {"loss": loss, "symmetric": symmetric}
    ours_alone = symmetric or bool(np.isnan(A).any())
    works = {
        "one": lambda: cvxnmf.classical_nmf(A, k, **options) if ours_alone else one_fit.default_fit(A, k, loss),
        "ours": lambda: cvxnmf.factorize(A, k, tol=1e-4, max_iter=200, certificate="later", **options),  # as NMF asks for it
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times, answers = objective.interleaved(works, scale.pick(1, 3, 5))
        many = range(scale.pick(2, 10, 10))
        random = [cvxnmf.classical_nmf(A, k, init="random", rng=seed, tol=1e-6, max_iter=2000, **options).value for seed in many]
    best = answers["ours"].value / min(random)
    fits = times["ours"].median / times["one"].median
    late = times["ours"].median > max(3.0 * times["one"].median, 0.2)
    words = [f"{fits:.2f}{'*' if late else ''}", f"{best:.5f}{'*' if best > 1.001 else ''}", str(answers["ours"].U.dtype)]
    return [str(times["one"]), str(times["ours"]), *words]


def proofs(scale: Scale) -> list[Table]:
    """Time of `certificate_` in fits of scikit-learn, and what it adds to the memory, in a process of its own."""
    names = scale.pick(["digits"], ["digits", "topics"], ["digits", "faces", "topics", "large topics"])
    rows = []
    for name in names:
        found = child.ask("proof", data=name)
        if found is not None:
            fits, grown = found["seconds"] / found["fit"], found["grown"] / 1e6
            late, large = "*" if fits > 10.0 else "", "*" if grown > 1000.0 else ""
            figures = [f"{found['fit']:.3f}", f"{found['seconds']:.3f}", f"{fits:.1f}{late}", f"{grown:.0f}{large}"]
            rows.append([name, str(found["k"]), *figures, f"{100.0 * found['gap']:.2f}%"])
    header = ["data", "k", "scikit-learn, s", "certificate, s", "fits", "memory, MB", "certified gap"]
    note = "Squared error. Allowed: 10 fits and 1,000 MB. *: not kept."
    return [Table("The certificate of a default NMF", header, rows, note)]


def proof_cases() -> dict[str, tuple[Callable[[], Any], int]]:
    """Data and numbers of components of the table of proofs."""
    return {
        "digits": (datasets.digits, 10),
        "faces": (lambda: datasets.from_mat("cbcl_faces", "M"), 49),
        "topics": (lambda: datasets.topic_counts(2000, 1000, 10, 60, 3), 10),
        "large topics": (lambda: datasets.topic_counts(20_000, 8_000, 20, 80, 4), 20),
    }
