"""The canonical order of nodes."""

import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from builders import planted_graph
from cvxnmf.graphs.order import canonical_order, in_order


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_canonical_order_does_not_depend_on_names(seed, weighted):
    A, _ = planted_graph(60, 3, 12, 0.3, tail=2.5, seed=seed)
    rng = np.random.default_rng(seed)
    if weighted:
        W = np.triu(rng.random(A.shape), 1)
        A = A * (W + W.T)
    names = rng.permutation(60)
    B = sp.csr_array(A[np.ix_(names, names)])
    order = canonical_order(sp.csr_array(A), A.sum(axis=1))
    again = canonical_order(B, np.asarray(B.sum(axis=1)).ravel())
    np.testing.assert_array_equal(order, names[again])
    np.testing.assert_array_equal(in_order(sp.csr_array(A), order).toarray(), in_order(B, again).toarray())


def test_nodes_that_the_graph_can_tell_apart_by_their_neighbours_only_are_ordered():
    A = sp.csr_array(nx.to_scipy_sparse_array(nx.path_graph(5), dtype=float))
    order = canonical_order(A, np.asarray(A.sum(axis=1)).ravel()).tolist()
    assert set(order[:2]) == {0, 4}
    assert order.index(2) in (2, 4)


@pytest.mark.parametrize("density", [0.02, 0.9])
def test_rows_in_another_order_are_sorted_with_their_values(density):
    rng = np.random.default_rng(0)
    A = sp.random_array((400, 400), density=density, rng=rng, format="csr")
    A = sp.csr_array(A + A.T)
    order = rng.permutation(400)
    B = in_order(A, order)
    np.testing.assert_array_equal(B.toarray(), A.toarray()[np.ix_(order, order)])
    assert all(np.all(np.diff(B.indices[first:last]) > 0) for first, last in itertools.pairwise(B.indptr))
