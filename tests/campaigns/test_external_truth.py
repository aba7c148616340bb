"""Truths from the literature and from independent solvers, none of them ours."""

import itertools

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import cvxnmf

# Completely positive matrices -----------------------------------------------------------------------------------------------

#: The pentagon with ones on the diagonal: doubly nonnegative for a = (sqrt 5 - 1) / 2 and not completely positive, since the Horn
#: matrix, which is copositive, has a negative inner product with it (Diananda 1962, Hall and Newman 1963).
PENTAGON = np.eye(5) + (np.sqrt(5) - 1) / 2 * nx.to_numpy_array(nx.cycle_graph(5))
HORN = np.array([[1, -1, 1, 1, -1], [-1, 1, -1, 1, 1], [1, -1, 1, -1, 1], [1, 1, -1, 1, -1], [-1, 1, 1, -1, 1]], dtype=float)
#: Berman and Shaked-Monderer (2003), example 2.9: doubly nonnegative and not completely positive.
CYCLE = np.array([[1, 1, 0, 0, 1], [1, 2, 1, 0, 0], [0, 1, 2, 1, 0], [0, 0, 1, 1, 1], [1, 0, 0, 1, 6]], dtype=float)


def test_a_doubly_nonnegative_matrix_that_is_not_completely_positive_has_no_exact_factors():
    assert np.linalg.eigvalsh(PENTAGON)[0] >= -1e-12
    assert np.vdot(HORN, PENTAGON) < -0.1
    fit = cvxnmf.solve(cvxnmf.sparse(PENTAGON, l1=0.0), tol=1e-8)
    assert fit.certificate.bound <= 1e-6  # the doubly nonnegative cone cannot tell
    for k in (4, 5):
        best = cvxnmf.factorize(PENTAGON, k, symmetric=True)
        # <H, X> >= 0 for every completely positive X: the distance is at least |<H, A>| / ||H||
        assert best.value >= (np.vdot(HORN, PENTAGON) / np.linalg.norm(HORN)) ** 2 - 1e-9
        assert best.certificate.bound <= best.value


def test_a_known_obstacle_on_a_cycle():
    assert np.linalg.eigvalsh(CYCLE)[0] >= -1e-12
    assert cvxnmf.factorize(CYCLE, 5, symmetric=True).value > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_completely_positive_matrices_are_not_bounded_away(seed):
    B = np.random.default_rng(seed).random((6, 3))
    certificate = cvxnmf.verify(B @ B.T, B)
    assert certificate.bound <= certificate.value <= 1e-20
    assert cvxnmf.solve(cvxnmf.sparse(B @ B.T, l1=0.0), tol=1e-8).certificate.bound <= 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_diagonally_dominant_matrices_are_completely_positive(seed):
    A = np.random.default_rng(seed).random((5, 5))
    A = A + A.T
    np.fill_diagonal(A, A.sum(axis=1))  # Kaykobad 1987
    k = 15
    U = np.zeros((5, k))
    for column, (i, j) in enumerate(itertools.combinations(range(5), 2)):
        U[i, column] = U[j, column] = np.sqrt(A[i, j])
    U[np.arange(5), np.arange(10, 15)] = np.sqrt(np.maximum(0.0, np.diag(A) - (U**2).sum(axis=1)))
    assert cvxnmf.verify(A, U).value <= 1e-24


# Nonnegative rank -----------------------------------------------------------------------------------------------------------


def slack_matrix(n):
    """Distances of the vertices of a regular polygon from its sides: rank 3."""
    angles = 2 * np.pi * np.arange(n) / n
    vertices = np.column_stack([np.cos(angles), np.sin(angles)])
    normals = np.column_stack([np.cos(angles + np.pi / n), np.sin(angles + np.pi / n)])
    slack = np.cos(np.pi / n) - vertices @ normals.T
    return np.where(slack < 1e-12, 0.0, slack)


@pytest.mark.parametrize(("n", "nonnegative_rank"), [(4, 4), (6, 5)])
def test_polygons_of_known_nonnegative_rank(n, nonnegative_rank):
    A = slack_matrix(n)
    assert np.linalg.matrix_rank(A) == 3
    below, exact = (cvxnmf.factorize(A, k) for k in (nonnegative_rank - 1, nonnegative_rank))
    assert below.value > 1e-3 * np.sum(A * A) / n**2  # no exact factorisation is found where there is none
    assert exact.value <= 1e-3 * below.value
    for result in (below, exact):
        assert result.certificate.bound <= result.value
    assert cvxnmf.factorize(A, 2).certificate.bound > 0.0  # below the rank it is proved


# Optima of an independent solver --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_projections_on_doubly_nonnegative_matrices(seed):
    rng = np.random.default_rng(seed)
    A = rng.random((6, 6)) * (rng.random((6, 6)) < 0.6)
    A = A + A.T
    X = cp.Variable((6, 6), PSD=True)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A - X) + 0.2 * cp.sum(X)), [X >= 0])
    best = problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)
    found = cvxnmf.solve(cvxnmf.sparse(A, l1=0.2), tol=1e-6, max_iter=3000).certificate
    assert found.bound <= best * (1 + 1e-6)
    assert found.value >= best * (1 - 1e-6)
    assert found.relative_gap <= 1e-5


@pytest.mark.parametrize("seed", range(3))
def test_maximum_cuts_by_correlation(seed):
    """With weights -A a best partition in two is a maximum cut, bounded by the semidefinite optimum of Goemans and Williamson."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.integers(0, 3, (7, 7)), 1).astype(float)
    A = A + A.T
    labels = np.array(max(itertools.product((0, 1), repeat=7), key=lambda cut: -_inside(A, cut)))
    certificate = cvxnmf.verify_labels(-A, labels, objective="correlation", n_clusters=2)
    best = -_inside(A, labels)
    X = cp.Variable((7, 7), PSD=True)
    relaxed = cp.Problem(cp.Maximize(cp.sum(cp.multiply(-A, (1 + X) / 2))), [cp.diag(X) == 1]).solve(solver=cp.CLARABEL)
    assert certificate.value == pytest.approx(best)
    assert best <= certificate.bound
    assert relaxed >= best - 1e-6


def _inside(A, cut):
    cut = np.asarray(cut)
    return float(A[cut[:, None] == cut[None, :]].sum())


# Graphs with known communities ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_lfr_graphs():
    graph = nx.LFR_benchmark_graph(250, 3, 1.5, 0.1, average_degree=5, min_community=20, seed=10)
    graph.remove_edges_from(nx.selfloop_edges(graph))
    planted = {frozenset(graph.nodes[node]["community"]) for node in graph}
    labels = np.empty(len(graph), dtype=int)
    for number, community in enumerate(planted):
        labels[list(community)] = number
    truth = nx.community.modularity(graph, planted)
    certificate = cvxnmf.verify_labels(graph, labels, effort=0.02)
    assert certificate.value == pytest.approx(truth, abs=1e-12)
    best = max(nx.community.modularity(graph, nx.community.louvain_communities(graph, seed=seed)) for seed in range(5))
    assert max(best, truth) <= certificate.bound + 1e-12
    found = cvxnmf.partition(graph, n_clusters=len(planted))
    joint = np.unique(np.column_stack([labels, found.labels]), axis=0)
    assert len(joint) <= 3 * len(planted)  # most communities are found
