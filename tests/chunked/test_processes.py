"""Workers in processes of their own: the answers of memory, also when a worker dies."""

import logging
import os
import signal

import dask.array as da
import numpy as np
import pandas as pd
import pytest

import cvxnmf
from cvxnmf.io import row_pieces
from cvxnmf.nmf.descent import classical_nmf
from dask_graphs import ENOUGH, PAIRS, Partitions, matrix
from row_chunk_builders import dask_chunks, planted_rows


@pytest.fixture(scope="module")
def expected():
    return cvxnmf.partition(matrix(), memory_limit=ENOUGH)


def test_two_processes_have_the_labels_and_the_certificate_of_memory(processes, expected):
    found = cvxnmf.partition(matrix(), client=processes)
    assert expected.n_clusters == 16
    assert np.array_equal(found.labels, expected.labels)
    assert (found.modularity, found.performance) == (expected.modularity, expected.performance)
    assert found.certificate.digest == expected.certificate.digest
    assert found.certificate.rigorous
    assert found.certificate.check(row_pieces(matrix(), client=processes)) == found.certificate.bound


def test_a_killed_worker_costs_factors_a_recomputation_and_not_the_answer(processes, caplog):
    A = planted_rows(800, 50, 4)
    data = da.from_array(A, chunks=(200, 50))
    terms = {"method": "multiplicative", "max_iter": 16, "tol": 0.0}
    undisturbed = classical_nmf(data, 4, client=processes, **terms)
    pids = processes.run(os.getpid)

    def kill(iterate):
        if iterate.iteration == 8:
            os.kill(min(pids.values()), signal.SIGKILL)

    with caplog.at_level(logging.INFO):
        disturbed = classical_nmf(data, 4, client=processes, callback=kill, **terms)
    processes.wait_for_workers(2, timeout=60)
    assert set(processes.run(os.getpid).values()) != set(pids.values())
    assert np.array_equal(disturbed.U, undisturbed.U)
    assert disturbed.value == undisturbed.value
    assert not [r for r in caplog.records if r.name.startswith("distributed") and r.levelno >= logging.WARNING]


@pytest.mark.parametrize("conducts", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_killed_worker_costs_a_graph_a_recomputation_and_not_the_answer(conducts, processes, expected):
    frame = Partitions(pd.DataFrame(PAIRS, columns=["source", "target"]), 4)
    pids, killed = processes.run(os.getpid), []

    def kill(iterate):
        if iterate.stage == "moves" and not killed:
            (conductor,) = searching(processes)
            killed.append(pids[conductor] if conducts else min(pid for worker, pid in pids.items() if worker != conductor))
            os.kill(killed[0], signal.SIGKILL)

    found = cvxnmf.partition(frame, client=processes, callback=kill)
    assert killed
    assert np.array_equal(found.labels, expected.labels[list(found.nodes)])
    processes.wait_for_workers(2, timeout=60)


def searching(client):
    """Addresses of the workers that conduct a search."""
    return [worker for worker, keys in client.processing().items() if any(key.startswith("cvxnmf-search") for key in keys)]


@pytest.mark.slow
def test_workers_that_die_on_every_attempt(processes):
    def deadly(block):
        os.kill(os.getpid(), signal.SIGKILL)
        return block

    processes.cluster.scheduler.allowed_failures = 0
    data = dask_chunks(planted_rows()).map_blocks(deadly, meta=np.empty((0, 0)))
    with pytest.raises(ConnectionError, match="died again and again"):
        classical_nmf(data, 3, client=processes)
