"""Groups of nodes that share a position: sums, constants, certificates, and what they are made of."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import planted_graph
from cvxnmf.convex import coarsening
from cvxnmf.convex.noise import degree_metric
from cvxnmf.linalg.leading import pairs_above
from cvxnmf.linalg.sparse_products import RankOneDowndate, csr_times


def planted(n=300, k=4, degree=12, mixing=0.2, seed=0, weights=False):
    """A graph with k groups and its labels; without empty rows."""
    drawn = (lambda rng, shape: rng.gamma(2.0, size=shape)) if weights else None
    A, labels = planted_graph(n, k, degree, mixing, connected=True, weights=drawn, seed=seed)
    return sp.csr_array(A), labels


def coarse_of(A, count, seed=1):
    groups = np.random.default_rng(seed).integers(0, count, A.shape[0])
    groups[:count] = np.arange(count)
    return coarsening.coarsen(A, degree_metric(np.asarray(A.sum(axis=1)).ravel()), groups)


def test_the_value_is_that_of_the_whole_problem_at_the_prolonged_point():
    A, _ = planted()
    for weights in (False, True):
        A, _ = planted(weights=weights)
        solution = coarse_of(A, 40).solve(2.0)
        whole = cvxnmf.symmetric(A.toarray(), trace=2.0).value(solution.X)
        assert solution.value == pytest.approx(whole, rel=1e-10)
        assert solution.certificate.relative_gap <= 1e-4
        assert solution.certificate.check(A) == solution.certificate.bound
        assert solution.certificate.rigorous is not weights  # sums of whole numbers are exact


def test_no_model_with_these_groups_is_below_the_bound():
    A, _ = planted(n=120)
    coarse = coarse_of(A, 15)
    bound = coarse.solve(1.0, tol=1e-8).certificate.bound
    problem, rng = cvxnmf.symmetric(A.toarray(), trace=1.0), np.random.default_rng(2)
    degrees = np.asarray(A.sum(axis=1)).ravel()
    for scale in (0.0, 0.1, 0.5, 1.0):
        W = scale * rng.standard_normal((15, 3))[coarse.groups]
        v = np.log(degrees) - 0.5 * np.log(degrees.sum()) + 0.1 * scale * rng.standard_normal(120)
        assert problem.value(v[:, None] + v[None, :] + W @ W.T) >= bound


def test_as_many_groups_as_nodes_is_the_problem_itself():
    A, _ = planted(n=150)
    own = coarse_of(A, 150)
    trace = cvxnmf.symmetric(A, trace="auto").trace
    direct = cvxnmf.solve(cvxnmf.symmetric(A, trace=trace), tol=1e-7)
    assert own.solve(trace, tol=1e-7).value == pytest.approx(direct.value, rel=1e-6)


def test_fewer_groups_are_never_better():
    A, _ = planted(n=150)
    groups = coarse_of(A, 60).groups
    values = []
    for count in (60, 30, 15):
        s = degree_metric(np.asarray(A.sum(axis=1)).ravel())
        values.append(coarsening.coarsen(A, s, groups % count).solve(1.0, tol=1e-7).certificate)
    direct = cvxnmf.solve(cvxnmf.symmetric(A, trace=1.0), tol=1e-7).certificate
    for finer, coarser in zip([direct, *values], values, strict=False):
        assert finer.bound <= coarser.value * (1 + 1e-9)
        assert finer.value <= coarser.value * (1 + 1e-6)


@pytest.mark.parametrize(
    "break_it",
    [
        lambda s, w: (s, w | {"groups": np.roll(w["groups"], 1)}),
        lambda s, w: (s, w | {"groups": w["groups"][:-1]}),
        lambda s, w: (s, w | {"groups": w["groups"] + 0.5}),
        lambda s, w: (s, w | {"groups": np.minimum(w["groups"], 3)}),
        lambda s, w: (s, w | {"metric": 2 * w["metric"]}),
        lambda s, w: (s, {name: array for name, array in w.items() if name != "groups"}),
        lambda s, w: (s | {"groups": 7}, w),
        lambda s, w: (s | {"groups": True}, w),
        lambda s, w: (s | {"loss": "mse"}, w),
        lambda s, w: (s | {"cone": "psd"}, w),
        lambda s, w: (s | {"metric": "uniform"}, w),
    ],
)
def test_an_altered_certificate_of_groups_is_refused(break_it):
    A, _ = planted(n=120)
    good = coarse_of(A, 20).solve(1.0).certificate
    statement, witness = break_it(dict(good.statement), dict(good.witness))
    facts = (good.value, good.bound, good.scope, good.kind, good.rigorous, good.restored, good.scale)
    with pytest.raises(cvxnmf.CertificateError):
        cvxnmf.Certificate(*facts, statement, witness).check(A)


def test_a_certificate_of_groups_is_about_its_own_data():
    A, _ = planted(n=120)
    certificate = coarse_of(A, 20).solve(1.0).certificate
    other = A.toarray()
    other[0, 60] = other[60, 0] = other[0, 60] + 3
    with pytest.raises(cvxnmf.CertificateError):
        certificate.check(other)
    for wrong in (-A, A[:50], "A", np.full((120, 120), np.nan)):
        with pytest.raises(cvxnmf.CertificateError):
            certificate.check(wrong)


def test_a_certificate_of_groups_goes_to_a_file_and_back(tmp_path):
    A, _ = planted(n=120)
    certificate = coarse_of(A, 20).solve(1.0).certificate
    certificate.save(tmp_path / "proof.npz")
    assert cvxnmf.Certificate.load(tmp_path / "proof.npz").check(A) == certificate.bound


def test_history_and_callback_speak_of_the_whole_graph():
    A, _ = planted(n=120)
    heard = []
    solution = coarse_of(A, 20).solve(1.0, callback=heard.append)
    assert heard == list(solution.history)
    assert min(line.value for line in heard) == pytest.approx(solution.value, rel=1e-3)


def test_points_are_divided_into_near_ones():
    rng = np.random.default_rng(0)
    Y = np.repeat(rng.standard_normal((6, 3)), 10, axis=0) + 1e-3 * rng.standard_normal((60, 3))
    groups = coarsening.group_near_points(Y, np.ones(60), 6)
    assert len(np.unique(groups)) == 6
    assert all(len(np.unique(groups[i : i + 10])) == 1 for i in range(0, 60, 10))
    order = rng.permutation(60)
    again = coarsening.group_near_points(Y[order], np.ones(60), 6)
    assert len(np.unique(np.stack([groups[order], again]), axis=1).T) == 6


def test_points_that_do_not_differ_make_few_groups():
    Y = np.repeat(np.arange(3.0), 5)[:, None]
    assert len(np.unique(coarsening.group_near_points(Y, np.ones(15), 10))) == 3
    assert np.bincount(coarsening.group_near_points(np.ones((7, 2)), np.ones(7), 5)).tolist() == [4, 3]


@pytest.mark.parametrize("below", [0.0, 0.2])
def test_eigenvalues_above_the_edge_are_those_of_a_full_decomposition(below):
    A, _ = planted(n=400, k=6, degree=16)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], 400)
    M = A.toarray() - below * np.outer(signs, signs)  # eigenvalues far below zero too
    values = np.linalg.eigvalsh(M)[::-1]
    edge = 0.5 * (values[4] + values[5])

    def product(X, shift=0.0, scale=1.0, Y=0.0):
        return scale * (M @ X - shift * X) - Y

    found, vectors = pairs_above(product, 400, edge, 7)
    np.testing.assert_allclose(found[:5], values[:5], rtol=1e-3)
    assert np.all(found[5:] <= edge)
    assert np.linalg.norm(M @ vectors[:, :5] - vectors[:, :5] * found[:5]) < 0.05 * values[0]


@pytest.mark.parametrize("n", [50, 3000])
def test_threaded_products_agree_with_plain_ones(n):
    A = sp.random_array((n, n), density=30 / n, rng=np.random.default_rng(0), format="csr")
    X = np.random.default_rng(1).standard_normal((n, 5))
    np.testing.assert_allclose(csr_times(A, X), A @ X, rtol=1e-12, atol=1e-12)
    assert np.array_equal(csr_times(A, X), csr_times(A, X))


@pytest.mark.parametrize("n", [50, 3000])
def test_residuals_are_those_of_the_formula(n):
    A = sp.random_array((n, n), density=30 / n, rng=np.random.default_rng(0), format="csr")
    rng = np.random.default_rng(1)
    e, X, Y = rng.random(n), rng.standard_normal((n, 5)), rng.standard_normal((n, 5))
    residual = RankOneDowndate(A, e)
    plain = A @ X - np.outer(e, e @ X)
    np.testing.assert_allclose(residual(X), plain, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(residual(X, 0.3, 2.0, Y), 2.0 * (plain - 0.3 * X) - Y, rtol=1e-12, atol=1e-9)
