"""The same sweeps in memory, from a file in blocks, and on a Dask cluster of two worker processes."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import cvxnmf
from benchmarks import child, objective
from benchmarks.objective import Timing
from benchmarks.report import Table, missing_row
from benchmarks.scale import Scale

HEADER = ["where", "seconds per sweep", "in units of memory", "goal", "loss after the sweeps", "peak of a process, MB"]
GOALS = {"in memory": "", "out of core": "at most 2", "Dask, 2 workers": "at most 1.3"}
#: Sides of the data, sweeps, and the memory limit out of core.
SIZES = {"tiny": (300, 20, 3, "4 GB"), "quick": (20_000, 200, 10, "400 MB"), "full": (200_000, 500, 20, "800 MB")}
COMPONENTS = 20


def sweeps(scale: Scale) -> list[Table]:
    """Seconds per sweep of extrapolated coordinate descent from one start, in turns; peaks in processes of their own."""
    m, n, count, limit = SIZES[scale.value]
    k = 3 if scale.tiny else COMPONENTS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npy"
        start = _written(path, m, n, k)
        terms: dict[str, Any] = {"n_components": k, "init": start, "max_iter": count, "tol": 0.0}
        A = np.load(path)
        file = np.load(path, mmap_mode="r")
        works: dict[str, Callable[[], Any]] = {
            "in memory": lambda: cvxnmf.classical_nmf(A, **terms),
            "out of core": lambda: cvxnmf.classical_nmf(file, memory_limit="64 GB", **terms),
        }
        with _two_workers() as client:
            if client is not None:
                works["Dask, 2 workers"] = lambda: cvxnmf.classical_nmf(file, client=client, **terms)
            times, runs = _per_sweep(works, scale.pick(1, 2, 5))
            peaks = (
                {}
                if scale.tiny
                else _peaks(
                    str(path), k, {"in memory": None, "out of core": limit} if scale.full else {"out of core": limit}, client
                )
            )
        rows = []
        for name, goal in GOALS.items():
            if name not in works:
                rows.append(missing_row(name, "dask is not installed", len(HEADER)))
                continue
            share = "" if name == "in memory" else objective.ratio(times, name, "in memory")
            goal = goal if scale.full else ""  # of data as small as the quick ones, messages take longer than work
            rows.append([name, str(times[name]), share, goal, f"{runs[name].value:.10g}", peaks.get(name, "")])
    note = (
        f"{m:,} by {n:,} entries ({8e-6 * m * n:,.0f} MB), k = {k}, {count} sweeps of `classical_nmf` from one start. In memory "
        "one thread of BLAS is used; out of core blocks are worked on in threads, and the file is in the system's cache; each "
        "worker has one thread. Seconds are those of the sweeps, without reading and checking the data before them. Peaks are "
        f"those of whole processes: in memory, out of core with a memory limit of {limit}, and of each worker."
    )
    return [Table("Data larger than memory, and Dask", HEADER, rows, note)]


def _written(path: Path, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A file of noisy data of rank k, written in pieces, and a start."""
    rng = np.random.default_rng(0)
    V = rng.random((k, n))
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(m, n))
    for first in range(0, m, 10_000):
        height = min(10_000, m - first)
        file[first : first + height] = rng.random((height, k)) @ V + rng.random((height, n))
    file.flush()
    return rng.random((m, k)), rng.random((n, k))


def _per_sweep(works: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, Timing], dict[str, Any]]:
    """Seconds per sweep of each piece of work, run in turns after one round that does not count, and the last answers."""
    spent: dict[str, list[float]] = {name: [] for name in works}
    runs: dict[str, Any] = {}
    for turn in range(repeats + 1):
        for name, work in works.items():
            runs[name] = work()
            if turn:
                spent[name].append(runs[name].history[-1].seconds / len(runs[name].history))
    return {name: Timing(tuple(seconds)) for name, seconds in spent.items()}, runs


def _peaks(path: str, k: int, limits: dict[str, str | None], client: Any) -> dict[str, str]:
    """Peaks of whole processes in MB, and their seconds per sweep."""
    told = {name: child.ask("sweeps", path=path, k=k, count=10, limit=limit) for name, limit in limits.items()}
    unknown = "not told by this system"
    peaks = {
        name: unknown if facts is None else f"{facts['peak'] / 1e6:.0f}, at {facts['seconds']:.3f} s per sweep"
        for name, facts in told.items()
    }
    if client is not None and None not in told.values():
        workers = client.run(child.peak)
        peaks["Dask, 2 workers"] = f"{max(workers.values()) / 1e6:.0f} each"
    return peaks


@contextmanager
def _two_workers() -> Iterator[Any]:
    """A client of two worker processes, None without dask."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        yield None
        return
    terms = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(**terms) as cluster, Client(cluster, set_as_default=False) as client:
        yield client
