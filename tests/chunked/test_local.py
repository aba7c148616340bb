"""Row chunks in this process: in order, each read once, the same bits whatever the threads."""

import time

import numpy as np
import pytest

from builders import random_factors
from cvxnmf.chunked.local import ordered_results
from cvxnmf.nmf.descent import classical_nmf
from row_chunk_builders import dask_chunks, in_chunks, mapped_file, planted_rows

SWEEPS = {"max_iter": 6, "tol": 0.0}


def test_results_come_in_order_and_errors_come_through():
    def slow(number):
        time.sleep(0.02 if number == 0 else 0.0)
        return number

    assert list(ordered_results(slow, 9, 3)) == list(range(9))

    def broken(number):
        if number == 4:
            raise ValueError("four")
        return number

    with pytest.raises(ValueError, match="four"):
        list(ordered_results(broken, 9, 3))


def test_each_chunk_is_read_once_per_sweep(tmp_path):
    terms = {"method": "multiplicative", "init": random_factors((173, 24), 3), "tol": 0.0}
    with in_chunks(mapped_file(tmp_path, planted_rows())) as matrix:
        reads, source = [], matrix.chunks.source

        class Counted:
            """The source, and which chunks were read."""

            def read(self, first, stop):
                reads.append(first)
                return source.read(first, stop)

        matrix.chunks.source, numbers = Counted(), []
        for sweeps in (5, 15):
            reads.clear()
            classical_nmf(matrix, 3, max_iter=sweeps, **terms)
            numbers.append(len(reads))
    count = len(set(reads))
    assert count == 9
    assert numbers[1] - numbers[0] == 10 * count
    assert numbers[0] == (5 + 2) * count  # the value of the start and that of the result


def test_same_bits_whatever_the_threads(client):
    A = planted_rows()
    with in_chunks(A) as matrix:
        runs = []
        for threads in (1, 2, 5):
            matrix.chunks.threads = threads
            runs.append(classical_nmf(matrix, 3, **SWEEPS))
    twice = [classical_nmf(dask_chunks(A), 3, client=client, **SWEEPS) for _ in range(2)]
    assert all(np.array_equal(run.U, runs[0].U) for run in runs)
    assert np.array_equal(twice[0].U, twice[1].U)
    assert np.array_equal(twice[0].V, twice[1].V)


def test_data_are_not_changed():
    A = planted_rows()
    before = A.copy()
    with in_chunks(A) as matrix:
        classical_nmf(matrix, 3, **SWEEPS)
    np.testing.assert_array_equal(A, before)
