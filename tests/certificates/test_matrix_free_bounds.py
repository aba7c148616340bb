"""Bounds of large graphs, proved without dense matrices."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import planted_graph
from cvxnmf.certificates import matrix_free


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


def certified_without_matrices(A, trace="auto", tol=1e-4):
    """The statement, the solution, and the dual point of its positions that needs no dense matrices."""
    problem = cvxnmf.symmetric(A, trace=trace)
    solution = cvxnmf.solve(problem, tol=tol)
    (component,) = problem.components
    return problem, solution, dataclasses.replace(component, largest_dense=100).certify(solution.point)


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
