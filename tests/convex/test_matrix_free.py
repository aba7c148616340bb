"""Matrix-free components: their answers beside those of dense matrices, and proofs in factors."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import planted_graph, prove
from cvxnmf.convex.matrix_free import MatrixFreeComponent
from cvxnmf.convex.symmetric import state_problem


def sparse_graph(n, k, degree, seed=0, weighted=False):
    """A planted graph of k groups in compressed rows."""
    weights = (lambda rng, shape: rng.integers(1, 4, shape)) if weighted else None
    A, groups = planted_graph(n, k, degree, shuffled=False, weights=weights, seed=seed)
    return sp.csr_array(A), groups


def matrix_free_problem(A, trace="auto"):
    """The problem of sparse data of any size, matrix-free."""
    return state_problem(sp.csr_array(A, dtype=float), "kl", "conditional", "degree", trace, "fit", matrix_free_from=5)


def test_single_precision_is_a_start_and_the_proof_is_double():
    A, _ = sparse_graph(450, 3, 12)
    problem = cvxnmf.symmetric(A, trace="auto")
    coarse, fine = (cvxnmf.solve(problem, tol=tol, precision="single") for tol in (1e-3, 1e-7))
    assert coarse.certificate.relative_gap <= 1e-3
    assert fine.certificate.relative_gap <= 1e-7
    assert fine.certificate.rigorous
    assert fine.value == pytest.approx(cvxnmf.solve(problem, tol=1e-7).value, rel=2e-7)
    for other in (cvxnmf.symmetric(A.toarray()[:50, :50] + 1.0), cvxnmf.nonsymmetric(A.toarray()[:50, :40] + 1.0)):
        with pytest.raises(ValueError, match="precision='single' is for"):
            cvxnmf.solve(other, precision="single")


# Answers ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("trace", ["auto", 2.0])
def test_the_matrix_free_answer_is_that_of_dense_matrices(weighted, trace):
    A, _ = sparse_graph(120, 4, 14, weighted=weighted)
    problem = matrix_free_problem(A, trace=trace)
    assert isinstance(problem.components[0], MatrixFreeComponent)
    dense = problem.dense()
    assert dense.trace == problem.trace
    ours, theirs = cvxnmf.solve(problem, tol=1e-6), cvxnmf.solve(dense, tol=1e-9)
    assert ours.status is cvxnmf.Status.OPTIMAL
    assert ours.certificate.bound <= theirs.value * (1 + 1e-12)
    assert theirs.certificate.bound <= ours.value * (1 + 1e-12)
    assert ours.value == pytest.approx(theirs.value, rel=2e-6)
    assert ours.rank == theirs.rank
    assert ours.value == pytest.approx(problem.value(ours.X), rel=1e-10)


def test_large_sparse_data_are_matrix_free_and_small_or_dense_ones_are_not():
    A, _ = sparse_graph(450, 3, 10)
    assert isinstance(cvxnmf.symmetric(A, trace="auto").components[0], MatrixFreeComponent)
    assert sp.issparse(cvxnmf.symmetric(A, trace="auto").A)
    assert isinstance(cvxnmf.symmetric(A.toarray(), trace=5.0).components[0], MatrixFreeComponent)
    for terms in ({}, {"trace": 5.0, "cone": "psd"}, {"trace": 5.0, "loss": "mse"}, {"trace": 5.0, "diagonal": "ignore"}):
        assert not isinstance(cvxnmf.symmetric(A, **terms).components[0], MatrixFreeComponent)
    assert not isinstance(cvxnmf.symmetric(A.toarray() + 1.0, trace=5.0).components[0], MatrixFreeComponent)
    small, _ = sparse_graph(60, 3, 10)
    assert not isinstance(cvxnmf.symmetric(small, trace="auto").components[0], MatrixFreeComponent)


def test_other_methods_solve_the_same_problem_densely():
    A, _ = sparse_graph(60, 3, 10)
    problem = matrix_free_problem(A, trace="auto")
    values = [cvxnmf.solve(problem, method=name, tol=1e-6).value for name in ("factored", "accelerated", "projected-gradient")]
    assert max(values) - min(values) <= 1e-5 * min(values)
    X = cvxnmf.solve(problem).X
    assert problem.gradient(X).shape == (60, 60)
    assert cvxnmf.certify(problem, X).relative_gap <= 1e-3


@pytest.mark.parametrize(
    "make", [lambda: nx.complete_bipartite_graph(5, 6), lambda: nx.complete_graph(8), lambda: nx.star_graph(9)]
)
def test_graphs_without_directions_have_the_model_without_positions(make):
    A = nx.to_scipy_sparse_array(make())
    solution = cvxnmf.solve(matrix_free_problem(A, trace=10.0), tol=1e-6)
    assert solution.rank == 0
    assert solution.status is cvxnmf.Status.OPTIMAL


def test_empty_rows_components_loops_starts_and_interruption():
    A, _ = sparse_graph(90, 3, 8)
    lil = A.tolil()
    lil[5, :] = 0
    lil[:, 5] = 0
    lil[7, 7] = 3.0
    A = sp.csr_array(sp.block_diag([lil, np.ones((4, 4))]))
    problem = matrix_free_problem(A, trace=2.0)
    solution = cvxnmf.solve(problem, tol=1e-6)
    assert np.isneginf(solution.v[5])
    assert solution.certificate.check(A) == solution.certificate.bound
    again = cvxnmf.solve(problem, tol=1e-6, start=solution)
    assert again.value <= solution.value * (1 + 1e-9)
    assert cvxnmf.certify(problem, solution).bound <= solution.value
    assert [s.rank for s in cvxnmf.path(problem, [50.0, 2.0])][0] < solution.rank

    def stop(iterate):
        raise KeyboardInterrupt

    with pytest.raises(cvxnmf.Interrupted) as stopped:
        cvxnmf.solve(problem, tol=0.0, callback=stop)
    assert stopped.value.solution.certificate.bound <= stopped.value.solution.value


class Impatient(MatrixFreeComponent):
    """A component in which somebody presses Ctrl-C at the thirteenth product, and never again."""

    products = 0

    def slopes(self, point, single=False):
        Impatient.products += 1
        if Impatient.products == 13:
            raise KeyboardInterrupt
        return super().slopes(point, single)


def test_a_descent_that_is_broken_off_is_not_lost():
    A, _ = sparse_graph(120, 4, 14)
    problem = matrix_free_problem(A)
    (component,) = problem.components
    start = component.value(component.start())
    terms = {name.name: getattr(component, name.name) for name in dataclasses.fields(component)}
    impatient = dataclasses.replace(problem, components=(Impatient(**terms),))
    with pytest.raises(cvxnmf.Interrupted) as stopped:
        cvxnmf.solve(impatient)
    assert stopped.value.solution.rank > 0
    assert stopped.value.solution.value < start


def test_many_directions_at_once_do_not_overshoot():
    n = 420
    ring = sp.csr_array(sp.diags_array([1.0, 1.0, 1.0, 1.0], offsets=[-1, 1, 1 - n, n - 1], shape=(n, n)))
    problem = cvxnmf.symmetric(ring, trace=4.5)
    solution = cvxnmf.solve(problem, tol=1e-3)
    assert solution.status is cvxnmf.Status.OPTIMAL
    assert solution.value < 0.6 * problem.components[0].value(problem.components[0].start())


@pytest.mark.parametrize("unit", [1e-40, 1e40])
def test_the_unit_of_the_data_does_not_matter(unit):
    A, _ = sparse_graph(420, 3, 12)
    trace = cvxnmf.symmetric(A, trace="auto").trace
    solution = cvxnmf.solve(cvxnmf.symmetric(unit * A, trace=trace * np.sqrt(unit)), tol=1e-4)
    assert solution.status is cvxnmf.Status.OPTIMAL
    assert solution.value == pytest.approx(unit * cvxnmf.solve(cvxnmf.symmetric(A, trace=trace), tol=1e-4).value, rel=1e-4)


def test_sparse_single_precision_data_are_symmetric_up_to_their_rounding():
    A, _ = sparse_graph(420, 3, 12, weighted=True)
    F = sp.csr_array(A * 0.1, dtype=np.float32)
    F.data[0] *= np.float32(1 + 2e-7)
    assert cvxnmf.symmetric(F, trace=1.0).size == 420


def test_a_metric_that_is_nearly_the_named_one_is_refused():
    A, certificate = proved()
    for factor in (1 + 9e-10, 1e-300, 1e300):
        witness = dict(certificate.witness) | {"metric": certificate.witness["metric"] * factor}
        with pytest.raises(cvxnmf.CertificateError, match="metric"):
            prove(A, "dual", certificate.statement, witness)


def test_an_altered_scale_is_found():
    A, certificate = proved()
    with pytest.raises(cvxnmf.CertificateError, match="scale"):
        dataclasses.replace(certificate, scale=1e30, digest="").check(A)


def test_the_same_data_give_the_same_bits():
    A, _ = sparse_graph(450, 3, 12)
    first, second = (cvxnmf.solve(cvxnmf.symmetric(A, trace="auto")) for _ in range(2))
    assert first.certificate.digest == second.certificate.digest


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda A: A.multiply(np.triu(np.ones(A.shape))), "not symmetric"),
        (lambda A: -A, "Negative values in data"),
        (lambda A: A * np.inf, "infinite"),
        (lambda A: A * 0.0, "all zeros"),
        (lambda A: A[:, :-1], "symmetric"),
    ],
)
def test_bad_sparse_data_are_refused_in_a_sentence(change, sentence):
    A, _ = sparse_graph(450, 3, 10)
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=sentence):
        cvxnmf.symmetric(sp.csr_array(change(A)), trace=1.0)


# Proofs in factors --------------------------------------------------------------------------------------------------------------


def proved(n=450):
    A, _ = sparse_graph(n, 3, 12)
    return A, cvxnmf.solve(cvxnmf.symmetric(A, trace="auto"), tol=1e-4).certificate


def test_a_proof_in_factors_is_small_and_survives_a_file(tmp_path):
    A, certificate = proved()
    assert set(certificate.witness) == {"v", "W", "metric", "share", "diagonal"}
    certificate.save(tmp_path / "proof.npz")
    assert (tmp_path / "proof.npz").stat().st_size < 8 * A.shape[0] ** 2 / 20
    assert cvxnmf.Certificate.load(tmp_path / "proof.npz").check(A) == certificate.bound
    assert certificate.rigorous


@pytest.mark.parametrize("name", ["v", "W", "share", "diagonal", "metric"])
@pytest.mark.parametrize("factor", [1.01, -1.0])
def test_an_altered_proof_in_factors_fails(name, factor):
    A, certificate = proved()
    witness = {key: array.copy() for key, array in certificate.witness.items()}
    if name == "diagonal":
        witness[name] = witness[name] + 0.1 * factor
    else:
        witness[name] = (
            witness[name] * factor
            if name != "W"
            else np.where(np.arange(witness[name].shape[1]) == 0, factor * 2, 1) * witness[name]
        )
    forged = cvxnmf.Certificate(
        **{k: getattr(certificate, k) for k in ("value", "bound", "scope", "kind", "rigorous", "restored", "scale", "statement")},
        witness=witness,
    )
    if name == "W" and factor == -1.0:
        witness["W"] = witness["W"][:-1]
    with pytest.raises(cvxnmf.CertificateError):
        forged.check(A)


def test_a_model_of_high_rank_is_left_to_dense_matrices():
    A, _ = sparse_graph(120, 3, 12)
    problem = matrix_free_problem(A, trace=0.5)
    (component,) = problem.components
    values, _ = component.entering_directions(component.start())
    assert component.high_rank == len(values) == 12  # as many as there are in the limit, no more are looked for
    solution = cvxnmf.solve(problem, tol=1e-6)
    dense = cvxnmf.solve(problem.dense(), tol=1e-6)
    assert solution.certificate.relative_gap <= 1e-6
    assert solution.value == pytest.approx(dense.value, rel=2e-6)
    assert solution.rank > component.high_rank
