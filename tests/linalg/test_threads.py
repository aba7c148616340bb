"""Threads of BLAS: one setting for the process, put back whoever leaves last."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from cvxnmf.linalg.threads import single_thread, sum_in_threads, thread_count

CONTROLLER = ThreadpoolController()  # after the library, so that BLAS is loaded


def counts():
    return {library["filepath"]: library["num_threads"] for library in CONTROLLER.info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    limiter = CONTROLLER.limit(limits=2, user_api="blas")
    yield
    limiter.restore_original_limits()


def test_contexts_of_several_threads_that_overlap_leave_nothing_changed():
    before = counts()

    def work(seed):
        source = random.Random(seed)
        for _ in range(20):
            with single_thread():
                assert set(counts().values()) == {1}
                assert thread_count() == 2
                time.sleep(source.random() * 2e-3)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert counts() == before
    assert thread_count() == 2


def test_nested_contexts_and_errors():
    before = counts()
    with pytest.raises(ValueError, match="inside"), single_thread(), single_thread(10):
        raise ValueError("inside")
    assert counts() == before
    with single_thread(10_000):
        assert counts() == before


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_sums_are_the_same_bits_on_any_number_of_threads(count):
    items = list(np.random.default_rng(count).standard_normal((count, 50)) * 10.0 ** np.arange(count)[:, None])
    sums = []
    for threads in (1, 2, 3, 7):
        with CONTROLLER.limit(limits=threads, user_api="blas"):
            sums.append(sum_in_threads(np.square, items, np.add))
    assert all(np.array_equal(sums[0], other) for other in sums)
    np.testing.assert_allclose(sums[0], np.square(items).sum(axis=0), rtol=1e-13)
