"""Clusters that fail: a recomputation or a sentence, never a wrong answer or an endless wait."""

import socket
import sys
import threading
import time

import numpy as np
import pytest
from distributed import Client, LocalCluster

import cvxnmf
from cvxnmf.nmf.descent import classical_nmf
from row_chunk_builders import dask_chunks, in_chunks, planted_rows

SWEEPS = {"max_iter": 9, "tol": 0.0}


def test_the_state_is_sent_anew_when_its_lineage_is_long(client):
    runs = []
    for longest in (200, 4):
        with in_chunks(dask_chunks(planted_rows()), client, longest_lineage=longest) as matrix:
            runs.append((classical_nmf(matrix, 3, **SWEEPS).U, matrix.chunks.sent))
    assert np.array_equal(runs[0][0], runs[1][0])
    assert runs[1][1] - runs[0][1] >= SWEEPS["max_iter"] // 4 - 1


def test_an_address_that_does_not_answer():
    with pytest.raises(ConnectionError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9 within 1 seconds"):
        in_chunks(planted_rows(), "tcp://127.0.0.1:9", answer_seconds=1)


def test_something_else_answers_at_the_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        def reply():
            other, _ = server.accept()
            with other:
                other.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                other.recv(1000)

        threading.Thread(target=reply, daemon=True).start()
        with pytest.raises(ConnectionError, match="No Dask scheduler answers at"):
            in_chunks(planted_rows(), address, answer_seconds=2)


@pytest.mark.parametrize("address", ["nowhere", "http://x:1", ""])
def test_what_is_no_address(address):
    with pytest.raises(ValueError, match="is not the address of a Dask scheduler .* it looks like tcp://host:8786"):
        classical_nmf(planted_rows(), 3, client=address)


def test_a_cluster_without_workers():
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as nobody,
        Client(nobody, set_as_default=False) as empty,
    ):
        with pytest.raises(ConnectionError, match="has no workers"):
            in_chunks(planted_rows(), empty, answer_seconds=0.3)


def test_a_cluster_that_loses_all_workers():
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as one, Client(one, set_as_default=False) as single:

        def retire(iterate):
            if iterate.iteration == 2:
                one.scale(0)

        with (
            pytest.raises(ConnectionError, match="no workers for"),
            in_chunks(planted_rows(), single, workerless_seconds=0.2, poll_seconds=0.2) as matrix,
        ):
            classical_nmf(matrix, 3, callback=retire, **SWEEPS)


def test_a_cluster_that_is_closed_in_mid_run_and_its_client():
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as one, Client(one, set_as_default=False) as single:

        def close(iterate):
            if iterate.iteration == 2:
                one.close()
                until = time.monotonic() + 10
                while single.status == "running" and time.monotonic() < until:
                    time.sleep(0.05)

        with pytest.raises(ConnectionError, match="The Dask scheduler is gone, and with its workers the factors so far"):
            classical_nmf(planted_rows(), 3, client=single, callback=close, **SWEEPS)
        single.close()
        for call in (classical_nmf, cvxnmf.factorize):
            with pytest.raises(ConnectionError, match=r"The Dask client is closed; open a new one, Client\(address\)\."):
                call(planted_rows(), 3, client=single)


def test_without_dask_a_client_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'dask\[array\]' distributed"):
        classical_nmf(planted_rows(), 3, client="tcp://127.0.0.1:9")


def test_the_data_are_forgotten_by_the_workers(client):
    def held():
        return {key for keys in client.has_what().values() for key in keys}

    before = held()  # what exceptions of other tests may keep
    classical_nmf(dask_chunks(planted_rows()), 3, client=client, **SWEEPS)
    until = time.monotonic() + 60
    while time.monotonic() < until and held() - before:
        time.sleep(0.05)
    assert held() <= before
