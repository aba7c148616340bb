"""Ascents of large levels: the same graphs and labels whether threads share them or not."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf.graphs import ascent
from cvxnmf.graphs.ascent import _aggregate, aggregate, ascend, climb
from cvxnmf.graphs.moves import Effort, level_of, log_factorials, refine, visiting_order
from cvxnmf.graphs.score import Score
from cvxnmf.linalg import threads

SCORES = [Score(1.0, 0.0001), Score(0.0, 0.0, 1.0, 0.00002, 1.0, 8.0)]


@pytest.fixture(scope="module")
def large_level():
    """A planted graph with weights and loops, of more entries than one thread is given."""
    rng, n = np.random.default_rng(0), 20_000
    groups = rng.integers(0, 30, n)
    tails, heads = rng.integers(0, n, (2, 900_000))
    kept = (groups[tails] == groups[heads]) | (rng.random(len(tails)) < 0.1)
    A = sp.coo_array((rng.integers(1, 4, kept.sum()), (tails[kept], heads[kept])), shape=(n, n)).tocsr().astype(float)
    A = sp.csr_array(A + A.T)
    level = level_of(A, np.asarray(A.sum(axis=1)).ravel())
    assert len(level.indices) > ascent.ONE_SHARE_BELOW
    return level, groups


def same(first, second):
    return all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("count", [1, 2, 40, 7_000, 20_000])
def test_a_graph_of_parts_is_the_same_in_shares_and_as_a_whole(large_level, count):
    level, parts = large_level[0], np.random.default_rng(count).permutation(20_000) % count
    whole = _aggregate(level, parts.astype(np.int32))
    assert same(aggregate(level, parts), whole)
    A = sp.csr_array((level.weights, level.indices, level.indptr))
    S = sp.csr_array((np.ones(20_000), (parts, np.arange(20_000))))
    expected = (S @ A @ S.T).toarray() if count <= 40 else S @ A @ S.T
    between = sp.csr_array((whole.weights, whole.indices, whole.indptr), shape=(count, count)) + sp.diags_array(
        whole.loops - S @ level.loops
    )
    assert abs(between - expected).max() == 0.0


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("allowed", [1, 3])
def test_labels_do_not_depend_on_threads(large_level, score, allowed, monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: allowed)
    (level, groups), logs = large_level, log_factorials(20_000)
    for start, effort in ((groups, Effort(2, by_mass=False)), (np.arange(20_000), Effort(2, largest=10_000))):
        expected = ascend(level, score, logs, start.copy(), 1e-9, False, 1, 20_000, effort)
        assert np.array_equal(climb(level, score, logs, start.copy(), 1e-9, False, 20_000, effort), expected)
    labels, order = groups.astype(np.int32), visiting_order(level, False)
    parts = refine(level, score, logs, labels, order, 1e-9)
    assert np.array_equal(ascent._refine_in_threads(level, score, logs, labels, order, 1e-9), parts)
