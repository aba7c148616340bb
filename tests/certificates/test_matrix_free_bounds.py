"""Bounds of large graphs, proved without dense matrices."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import planted_graph, random_graph
from cvxnmf.certificates import krylov, matrix_free


def sparse_graph(n):
    """A planted graph of three groups in compressed rows."""
    A, _ = planted_graph(n, 3, 12, shuffled=False, seed=0)
    return sp.csr_array(A)


def test_isolated_nodes_do_not_make_a_graph_large():
    A = sparse_graph(420)
    padded = sp.csr_array(sp.block_diag([A, sp.csr_array((300, 300))]))
    assert matrix_free.is_large(padded, 419)
    assert not matrix_free.is_large(padded, 420)
    assert not matrix_free.is_large(padded.toarray(), 420)
    assert not matrix_free.is_large(np.ones(500), 420)


def certified_without_matrices(A, trace="auto", tol=1e-4, most_pivots=0):
    """The statement, the solution, and the dual point of its positions that needs no dense matrices; probable without pivots."""
    problem = cvxnmf.symmetric(A, trace=trace)
    solution = cvxnmf.solve(problem, tol=tol)
    (component,) = problem.components
    component = dataclasses.replace(component, largest_dense=100, most_pivots=most_pivots)
    return problem, solution, component.certify(solution.point)


def test_large_graphs_are_proved_without_dense_matrices():
    A = sparse_graph(450)
    problem, solution, (_, value, dual) = certified_without_matrices(A)
    proof = matrix_free.prove_matrix_free(A, problem.statement, dual.witness)
    assert (proof.rigorous, proof.probable) == (False, True) == dual[2:]
    assert proof.bound == pytest.approx(dual.bound, rel=1e-12)
    assert solution.certificate.bound * (1 - 1e-4) <= dual.bound <= value
    unproved = problem.statement.prove(A, "dual", dual.witness)  # the same dual point as a dense matrix
    assert unproved.rigorous
    assert unproved.bound == pytest.approx(proof.bound, rel=1e-10)
    for change in (
        {"share": dual.witness["share"] * 0 + 1.0, "W": 0.5 * dual.witness["W"]},
        {"v": dual.witness["v"] + 0.01},
        {"W": 1.2 * dual.witness["W"]},
    ):
        with pytest.raises(cvxnmf.CertificateError):
            matrix_free.prove_matrix_free(A, problem.statement, dict(dual.witness) | change)


def test_a_dual_point_just_outside_the_cone_is_refused_and_one_nearly_so_is_unproved():
    A = sparse_graph(600)
    problem = cvxnmf.symmetric(A, trace=1.0)
    (component,) = problem.components
    v, W = component.independent_model()
    point = matrix_free.MatrixFreeDual(A, v, W, component.cone.s)
    B = (A.toarray() - np.exp(v[:, None] + v[None, :])) / np.outer(point.s, point.s)
    true = float(np.linalg.eigvalsh(B)[-1])
    bounds = list(point.largest_eigenvalues())
    assert len(bounds) == 2
    for upper, found in bounds:
        assert true * (1 - 1e-3) <= found <= true * (1 + 1e-9)
        assert true <= upper <= 1.2 * true
    (upper, found), (least, _) = bounds
    assert least < upper
    witness = {"v": v, "W": W, "metric": point.s, "share": np.array([1.0]), "diagonal": np.zeros(len(v))}
    for trace, probable in ((upper, True), (least * (1 + 1e-9), True), (0.5 * (least + true), False)):
        proof = matrix_free.prove_matrix_free(A, dataclasses.replace(problem.statement, trace=trace), witness)
        assert proof.probable is probable
    with pytest.raises(cvxnmf.CertificateError, match="semidefinite"):
        matrix_free.prove_matrix_free(A, dataclasses.replace(problem.statement, trace=found * (1 - 1e-6)), witness)


@pytest.mark.parametrize("entries", [1, 1000, 1 << 22])
def test_rows_of_the_model_a_few_at_a_time(entries):
    A = sparse_graph(90)
    rng, degrees = np.random.default_rng(0), np.asarray(A.sum(axis=1)).ravel()
    W = 0.3 * rng.standard_normal((90, 2))
    v = np.log(degrees) - 0.5 * np.log(degrees.sum())
    for _ in range(500):  # balance the effects
        v = v + 0.5 * np.log(degrees / np.exp(v[:, None] + v[None, :] + W @ W.T).sum(axis=1))
    s = 1.0 + rng.random(90)
    E = np.exp(v[:, None] + v[None, :] + W @ W.T)
    point = matrix_free.MatrixFreeDual(A, v, W, s, entries)
    assert point.excess == pytest.approx(E.sum(axis=1) - degrees, abs=1e-12)
    true = float(np.linalg.eigvalsh((A.toarray() - E) / np.outer(s, s))[-1])
    upper, found = next(point.largest_eigenvalues())
    assert 0.9 * true <= found <= true <= upper <= 1.2 * true
    Z = 0.7 * E + 0.3 * A.toarray()
    positive = A.data * np.log(A.data) - A.data
    proof = point.proof(0.7, probable=True)
    assert proof.bound == pytest.approx(positive.sum() + (Z - Z * np.log(Z)).sum(), rel=1e-10)
    size = np.abs(A.data * np.log(A.data)).sum() + A.data.sum() + (Z + np.abs(Z * np.log(Z))).sum()
    assert proof.spare == pytest.approx(32 * np.finfo(float).eps * size, rel=1e-2)
    assert (proof.probable, proof.rigorous, proof.scale) == (True, False, pytest.approx(A.sum()))
    assert matrix_free.MatrixFreeDual(A, v, W, s).proof(0.0, probable=False).bound == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(cvxnmf.CertificateError, match="sum to zero"):
        matrix_free.MatrixFreeDual(A, v + 1e-7, W, s, entries)


def test_factors_of_other_problems_prove_nothing_without_dense_matrices():
    A = sparse_graph(450)
    problem, _, (_, _, dual) = certified_without_matrices(A)
    for change in ({"loss": "mse"}, {"cone": "psd"}, {"diagonal": "ignore"}, {"trace": 0.0}):
        with pytest.raises(cvxnmf.CertificateError, match="conditional cone with a penalty"):
            matrix_free.prove_matrix_free(A, dataclasses.replace(problem.statement, **change), dual.witness)
    witness = dict(dual.witness) | {"metric": dual.witness["metric"] * (1 + 1e-9)}
    with pytest.raises(cvxnmf.CertificateError, match="metric"):
        matrix_free.prove_matrix_free(A, problem.statement, witness)


# Small graphs, for which all can be written down ------------------------------------------------------------------------------


def balanced(A, off=0.0):
    """Effects with which the model of one position has the degrees of the graph, up to a share of those of the first node."""
    d = A.sum(axis=1)
    v = np.log(d / np.sqrt(d.sum()))
    v[0] += off
    return v


def small_point(off=0.0, n=12):
    A = random_graph(n, 0)
    return A, matrix_free.MatrixFreeDual(sp.csr_array(A), balanced(A, off), np.zeros((n, 0)), np.linspace(1.0, 2.0, n))


@pytest.mark.parametrize(("off", "verdict"), [(5e-9, True), (-5e-9, True), (2e-8, False), (-2e-8, False)])
def test_rows_that_are_off_by_little_are_put_right(off, verdict):
    if not verdict:
        with pytest.raises(cvxnmf.CertificateError, match="do not sum to zero"):
            small_point(off)
        return
    A, point = small_point(off)
    E = np.exp(np.add.outer(point.v, point.v))
    assert point.excess == pytest.approx(E.sum(axis=1) - A.sum(axis=1), abs=1e-13)
    M = (A - E + np.diag(point.excess)) / np.outer(point.s, point.s)
    for upper, found in point.largest_eigenvalues():
        assert found == pytest.approx(np.linalg.eigvalsh(M)[-1], abs=1e-12)
        assert upper == pytest.approx(found, abs=1e-9)


def test_bounds_on_the_eigenvalue_are_those_of_their_spaces():
    """The operator has eigenvalues of both signs, and the space of 32 vectors and 14 products is not all."""
    n = 500
    A, point = small_point(n=n)
    M = (A - np.exp(np.add.outer(point.v, point.v)) + np.diag(point.excess)) / np.outer(point.s, point.s)
    upper, found = next(iter(point.largest_eigenvalues()))
    top = np.linalg.eigvalsh(M)[-1]
    source = krylov.random_source(point.A.indices.astype(np.int64), point.A.data, point.v, point.W)
    Q = point.s[:, None] / np.linalg.norm(point.s)
    spaces = [krylov.Krylov(32, depth, False) for depth in (14, 42)]
    wanted = next(krylov.leading_eigenvalues(lambda X: M @ X, Q, source, spaces, 1, lambda values: values[0]))
    assert found <= top * (1 + 1e-12)
    assert top <= upper == pytest.approx(wanted.upper[0], rel=1e-6)


def prove_small(A, v, share, trace, **terms):
    statement = cvxnmf.certificates.SymmetricStatement("kl", "conditional", "fit", trace, "uniform")
    n = len(v)
    witness = {"metric": np.ones(n), "v": v, "W": np.zeros((n, 0)), "share": np.array([share]), "diagonal": np.zeros(n)}
    return matrix_free.prove_matrix_free(sp.csr_array(A), statement, witness | terms)


def test_the_share_and_the_penalty_decide():
    A = random_graph(12, 0)
    v = balanced(A)
    top = np.linalg.eigvalsh(A - np.exp(np.add.outer(v, v)))[-1]
    for trace in (0.25, 1.0):
        proof = prove_small(A, v, 0.999999 * trace / top, trace)
        assert (proof.probable, proof.rigorous) == (True, False)
        Z = 0.999999 * trace / top * (np.exp(np.add.outer(v, v)) - A) + A
        logs = np.where(Z > 0, Z * np.log(np.where(Z > 0, Z, 1.0)), 0.0)
        assert proof.bound == pytest.approx(np.sum(-A + Z - logs), rel=1e-9)
        with pytest.raises(cvxnmf.CertificateError, match="not positive semidefinite"):
            prove_small(A, v, 1.000001 * trace / top, trace)
    with pytest.raises(cvxnmf.CertificateError, match="with a penalty only"):
        prove_small(A, v, 0.0, 0.0)
    assert prove_small(A, v, 0.0, 0.5).bound == 0.0


def test_a_diagonal_that_leaves_its_domain_is_refused():
    """A node of degree 1e-10 whose row is off by more than its diagonal holds."""
    A = random_graph(12, 0)
    A[0] *= 1e-10
    A[:, 0] *= 1e-10
    assert prove_small(A, balanced(A), 0.1, 10.0).bound > 0
    with pytest.raises(cvxnmf.CertificateError, match="leaves its domain in the rows from 0"):
        prove_small(A, balanced(A, 5e-9), 0.1, 10.0)


def test_what_is_large():
    A = np.ones((5, 3))
    assert [matrix_free.is_large(A, limit) for limit in (3, 4, 5, 6)] == [True, True, False, False]
    A[0] = 0.0
    for data in (A, sp.csr_array(A)):
        assert [matrix_free.is_large(data, limit) for limit in (3, 4, 5)] == [True, False, False]
    assert not matrix_free.is_large(np.ones(9), 3)
    assert not matrix_free.is_large([[1.0]], 0)


def test_factors_of_other_sizes_are_refused():
    A = random_graph(12, 0)
    v, trace = balanced(A), 100.0
    assert prove_small(A, v, 0.5, trace).bound > 0
    for change in (
        *({name: np.ones(size)} for name in ("metric", "diagonal") for size in (11, 13)),
        *({"W": np.zeros(shape)} for shape in ((12,), (11, 1), (13, 1), (12, 1, 1))),
    ):
        with pytest.raises(cvxnmf.CertificateError, match="do not match the data, where 12 nodes"):
            prove_small(A, v, 0.5, trace, **change)
