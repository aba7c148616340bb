"""Embeddings: what stands above the noise, and positions that can be divided."""

import networkx as nx
import numpy as np
import scipy.sparse as sp

import cvxnmf
from builders import planted_graph
from cvxnmf.graphs.coarsen import GroupEmbedding
from cvxnmf.graphs.embedding import NodeEmbedding, centred_positions


def test_both_embeddings_see_the_same_directions_above_the_noise():
    A, _ = planted_graph(400, 4, 16, 0.2, connected=True)
    A = sp.csr_array(A)
    nodes, groups = NodeEmbedding(A, None), GroupEmbedding(A, None, 50, None)
    assert nodes.above_noise == groups.above_noise == 3
    assert nodes.noise == groups.noise
    np.testing.assert_allclose(nodes.spectrum[:3], groups.spectrum, rtol=1e-3)
    first, second = (M @ M.T for M in (nodes.directions[:, :3][groups.order], groups.directions))
    np.testing.assert_allclose(first, second, atol=0.02 * np.abs(first).max())


def test_nodes_without_edges_are_set_aside():
    A = sp.csr_array(nx.to_scipy_sparse_array(nx.barbell_graph(6, 0), dtype=float))
    padded = sp.csr_array(sp.block_diag([A, sp.csr_array((3, 3))]))
    plain, more = NodeEmbedding(A, 2), NodeEmbedding(padded, 2)
    np.testing.assert_array_equal(plain.spectrum, more.spectrum)
    np.testing.assert_array_equal(more.directions[12:], 0.0)


def test_positions_are_centred_and_those_of_a_flat_solution_are_the_leading_directions():
    A, _ = cvxnmf.block_graph(40, 0.2, 0.8)
    embedding = NodeEmbedding(sp.csr_array(A), 2)
    solution = embedding.solve({"trace": 0.5 * embedding.noise.edge}, {})
    W = centred_positions(solution, embedding.directions, 2)
    np.testing.assert_allclose(W.mean(axis=0), 0.0, atol=1e-10)
    assert W.shape[1] <= 4
    flat = embedding.solve({"trace": 2.0 * embedding.spectrum[0]}, {})
    assert flat.rank == 0
    np.testing.assert_array_equal(centred_positions(flat, embedding.directions, 3), embedding.directions[:, :2])


def test_components_that_are_solved_apart_stay_apart():
    graph = nx.disjoint_union(nx.complete_graph(5), nx.cycle_graph(6))
    A = sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))
    embedding = NodeEmbedding(A, 2)
    W = centred_positions(embedding.solve({"trace": 0.0}, {}), embedding.directions, 2)
    inside = max(np.ptp(W[:5], axis=0).max(), np.ptp(W[5:], axis=0).max())
    assert np.linalg.norm(W[:5, None] - W[None, 5:], axis=2).min() > inside
