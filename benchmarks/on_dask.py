"""A graph on Dask with scheduler, workers and client in processes of their own, so that each has a peak of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import child

#: Threads of BLAS and of compiled loops in a worker: one, the machine has no more cores than workers.
SINGLE = {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def measure(edges: np.ndarray, parts: int) -> tuple[dict[str, Any], np.ndarray]:
    """Labels by node of edges in the parts of a dask data frame, and the time and peaks of those who took part."""
    with tempfile.TemporaryDirectory() as folder, _cluster(folder) as address:
        for number, part in enumerate(np.array_split(edges, parts)):
            np.save(Path(folder, f"part{number}.npy"), part)
        told = child.ask("on_dask", folder=folder, parts=parts, address=address)
        assert told is not None
        return told, np.load(Path(folder, "labels.npy"))


@contextmanager
def _cluster(folder: str) -> Iterator[str]:
    """The address of a scheduler with two workers of one thread each; scratch files are in the folder."""
    file, running = Path(folder, "scheduler.json"), []
    try:
        running.append(_start("dask_scheduler", "--port", "0", "--scheduler-file", str(file)))
        while not file.exists():
            time.sleep(0.1)
        scratch = ["--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", "--local-directory", folder]
        running += [_start("dask_worker", *scratch) for _ in range(2)]
        yield str(re.search(r"tcp://[\d.:]+", file.read_text(encoding="ascii"))[0])
    finally:
        for process in running:
            process.terminate()
            process.wait()


def _start(program: str, *terms: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.{program}", "--no-dashboard", *terms]
    return subprocess.Popen(command, env=os.environ | SINGLE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def search(folder: str, parts: int, address: str) -> dict[str, Any]:
    """The search, asked for by this process; the sizes of clusters are looked at, then the labels, which are left beside."""
    import dask.dataframe as dd
    from distributed import Client

    import cvxnmf

    with Client(address) as client:
        client.wait_for_workers(2)
        frame = dd.from_map(_read, [str(Path(folder, f"part{number}.npy")) for number in range(parts)])
        before, began = child.peak(), time.perf_counter()
        found = cvxnmf.partition(frame, client=client)
        told = {"seconds": time.perf_counter() - began, "clusters": found.n_clusters, "before": before}
        found.to_dask().value_counts().compute()
        told |= {"client": child.peak(), "workers": sorted(client.run(child.peak).values())}
        told["scheduler"] = client.run_on_scheduler(child.peak)
        np.save(Path(folder, "labels.npy"), np.column_stack([np.asarray(found.nodes, dtype=np.int64), found.labels]))
        return told


def _read(path: str) -> Any:
    import pandas as pd

    return pd.DataFrame(np.load(path), columns=["source", "target"])
