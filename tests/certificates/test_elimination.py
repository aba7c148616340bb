"""Rigorous bounds of large graphs: sparse elimination, columns of the model, and what is left on a core."""

import dataclasses

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import planted_graph, random_graph
from cvxnmf.certificates import elimination, matrix_free
from cvxnmf.certificates.elimination import Model, eliminate, eliminated_nodes, is_psd_with_model, lower_factor
from cvxnmf.convex.model_operator import leading_pivots

mp.mp.dps = 40
EPS = float(np.finfo(float).eps)


def grid(height, width):
    """A grid of nodes."""
    path = [sp.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1]) for n in (height, width)]
    return sp.csr_array(sp.kron(sp.eye_array(height), path[1]) + sp.kron(path[0], sp.eye_array(width)))


@pytest.fixture(scope="module")
def certified():
    """A planted graph, its problem, and a dual point with pivots."""
    A = sp.csr_array(planted_graph(450, 3, 12, shuffled=False, seed=0)[0])
    problem = cvxnmf.symmetric(A, trace="auto")
    solution = cvxnmf.solve(problem, tol=1e-4)
    (component,) = problem.components
    return A, problem, solution, dataclasses.replace(component, largest_dense=100).certify(solution.point)


# The whole proof --------------------------------------------------------------------------------------------------------------


def test_large_graphs_are_proved_with_all_rounding(certified):
    A, problem, solution, (_, value, dual) = certified
    proof = matrix_free.prove_matrix_free(A, problem.statement, dual.witness)
    assert (proof.rigorous, proof.probable) == (True, False) == dual[2:]
    assert proof.bound == dual.bound
    assert solution.certificate.bound * (1 - 1e-4) <= dual.bound <= value
    assert 1 <= len(dual.witness["pivots"]) < 40
    dense = problem.statement.prove(A, "dual", dual.witness)  # the same dual point as a dense matrix
    assert dense.bound * (1 - 1e-9) <= proof.bound <= dense.bound * (1 + 1e-12)
    without = {name: array for name, array in dual.witness.items() if name != "pivots"}
    assert not matrix_free.prove_matrix_free(A, problem.statement, without).rigorous


def test_witnesses_that_were_changed_are_refused(certified):
    A, problem, _, (_, _, dual) = certified
    pivots, share = dual.witness["pivots"], dual.witness["share"]
    twice = np.append(pivots, pivots[0])
    names = [twice, np.append(pivots, 450.0), pivots + 0.5, pivots - 1000.0, pivots + 1000.0, pivots[None], pivots[:0]]
    changes = [{"pivots": part} for part in names]
    changes += [{"pivots": pivots[:1]}, {"share": share * 0 + 1.0}]
    changes += [{"v": dual.witness["v"] + 0.01}, {"W": 1.2 * dual.witness["W"]}, {"W": 0.8 * dual.witness["W"]}]
    for change in changes:
        with pytest.raises(cvxnmf.CertificateError):
            matrix_free.prove_matrix_free(A, problem.statement, dict(dual.witness) | change)
    other = {"pivots": np.arange(0.0, 450.0, 23.0)}  # any nodes that say as much do
    lower = {"share": share - 0.02}
    assert matrix_free.prove_matrix_free(A, problem.statement, dict(dual.witness) | other | lower).rigorous


def test_without_pivots_or_a_core_of_moderate_size_a_bound_is_probable(certified):
    A, problem, solution, _ = certified
    (component,) = problem.components
    component = dataclasses.replace(component, largest_dense=100, most_pivots=2)
    dual = component.certify(solution.point).dual
    assert (dual.rigorous, dual.probable) == (False, True)
    assert "pivots" not in dual.witness


def balanced(A, W):
    """Effects for which rows of the model have the sums of the data's."""
    d = A.sum(axis=1)
    v = np.log(d / np.sqrt(d.sum()))
    for _ in range(3000):
        v = v + 0.5 * np.log(d / np.exp(v[:, None] + v + W @ W.T).sum(axis=1))
    return v


@pytest.mark.parametrize("seed", range(4))
def test_forty_digits_confirm_the_cone_and_the_bound(seed):
    n, rng = 9, np.random.default_rng(seed)
    A = random_graph(n, seed) * rng.integers(1, 5)
    W = 0.4 * rng.standard_normal((n, 2))
    v, s = balanced(A, W), 1.0 + rng.random(n)
    point = matrix_free.MatrixFreeDual(sp.csr_array(A), v, W, s)
    E = mp.matrix(n, n)
    for i in range(n):
        for j in range(n):
            E[i, j] = mp.exp(mp.mpf(v[i]) + mp.mpf(v[j]) + sum(mp.mpf(a) * mp.mpf(b) for a, b in zip(W[i], W[j], strict=True)))
    excess = [mp.fsum(E[i, j] - mp.mpf(A[i, j]) for j in range(n)) for i in range(n)]
    assert all(abs(float(excess[i]) - point.excess[i]) <= 0.5 * point.excess_error[i] for i in range(n))
    G = mp.matrix(n, n)  # of the metric: trace I + share G must be positive semidefinite beside s
    for i in range(n):
        for j in range(n):
            G[i, j] = (E[i, j] - mp.mpf(A[i, j]) - (excess[i] if i == j else 0)) / (mp.mpf(s[i]) * mp.mpf(s[j]))
    edge = -float(min(mp.eigsy(G, eigvals_only=True)))
    verdicts = []
    for share in (0.2, 0.9):
        for off in (-1e-1, -1e-9, -1e-13, 1e-15, 1e-9, 1e-3, 1e-1):
            trace = share * edge * (1 + off)
            verdicts.append(point.is_in_cone(share, trace, np.arange(n, dtype=float)))
            assert not verdicts[-1] or off > 0
        proof, exact = point.rigorous_proof(share), mp.mpf(0)
        for i in range(n):
            for j in range(n):
                a = mp.mpf(A[i, j])
                z = (1 - mp.mpf(share)) * a + mp.mpf(share) * (E[i, j] - (excess[i] if i == j else 0))
                exact += (a * mp.log(a) if a > 0 else 0) - a + z - z * mp.log(z)
        assert proof.rigorous
        assert mp.mpf(proof.bound) + proof.spare <= exact <= proof.bound + 1e-9 * A.sum()
    assert verdicts[6]
    assert verdicts[13]


def test_too_large_exponents_and_a_diagonal_near_its_edge_are_refused():
    A = random_graph(12, 0)
    v = balanced(A, np.zeros((12, 0)))
    point = matrix_free.MatrixFreeDual(sp.csr_array(A), v, np.zeros((12, 0)), np.ones(12))
    assert point.rigorous_proof(0.5).bound > 0
    with pytest.raises(cvxnmf.CertificateError, match="on the diagonal"):
        point.rigorous_proof(0.0)  # of no model, the diagonal is that of the data
    A[0, 0] = 1.0
    point = matrix_free.MatrixFreeDual(sp.csr_array(A), balanced(A, np.zeros((12, 0))), np.zeros((12, 0)), np.ones(12))
    with pytest.raises(cvxnmf.CertificateError, match="on the diagonal"):
        point.rigorous_proof(0.0)  # where one entry is positive
    tiny = A * np.exp(-400.0)
    point = matrix_free.MatrixFreeDual(sp.csr_array(tiny), balanced(tiny, np.zeros((12, 0))), np.zeros((12, 0)), np.ones(12))
    with pytest.raises(cvxnmf.CertificateError, match="too large"):
        point.rigorous_proof(0.5)


@pytest.mark.parametrize(("errors", "is_inside"), [(1.5, False), (3.0, True)])
def test_a_diagonal_within_twice_its_error_is_refused(errors, is_inside):
    share, A = 0.5, random_graph(12, 0)
    v = balanced(A, np.zeros((12, 0)))
    point = matrix_free.MatrixFreeDual(sp.csr_array(A), v, np.zeros((12, 0)), np.ones(12))
    point.excess[0] = np.exp(2 * v[0]) - errors * point.excess_error[0]  # what is left of Z_00 is share times so many errors
    if is_inside:
        assert point.rigorous_proof(share).rigorous
    else:
        with pytest.raises(cvxnmf.CertificateError, match="on the diagonal"):
            point.rigorous_proof(share)


def test_a_single_pivot_is_enough_for_a_large_trace():
    A = random_graph(12, 0)
    point = matrix_free.MatrixFreeDual(sp.csr_array(A), balanced(A, np.zeros((12, 0))), np.zeros((12, 0)), np.ones(12))
    assert point.is_in_cone(0.5, 1e3, np.zeros(1))


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_rounding_of_the_dual_point_is_allowed_for(share):
    n, rng = 30, np.random.default_rng(0)
    A = random_graph(n, 0) * 3.0
    W = 0.4 * rng.standard_normal((n, 2))
    v, s = balanced(A, W), 1.0 + rng.random(n)
    point = matrix_free.MatrixFreeDual(sp.csr_array(A), v, W, s)
    accuracy = 2 * EPS * (10 * (2 * np.abs(v) + (W * W).sum(axis=1)).max() + 16)
    assert point.model.accuracy == pytest.approx(accuracy, abs=0.0)
    error = 2 * (accuracy + 2 * (n + 16) * EPS) * A.sum(axis=1)
    assert point.excess_error == pytest.approx(error, abs=0.0)
    point.excess = rng.uniform(-0.5, 0.5, n)
    B, uncertain = point.cone_matrix(share, 7.0)
    scaled, diagonal = share * A / np.outer(s, s), share * point.excess / s**2
    assert B.toarray() == pytest.approx(np.diag(7.0 - diagonal) - scaled, abs=1e-14)
    wanted = 8 * EPS * (7.0 + scaled.sum(axis=1) + np.abs(diagonal)) + share * error / s**2
    assert uncertain == pytest.approx(wanted.max(), abs=0.0)
    point.excess = matrix_free.MatrixFreeDual(sp.csr_array(A), v, W, s).excess
    Z = (1 - share) * A + share * np.exp(v[:, None] + v + W @ W.T)
    Z[np.arange(n), np.arange(n)] -= share * point.excess
    logs, data = Z * np.log(Z), A[A > 0]
    size = (Z + np.abs(logs)).sum() + (np.abs(data * np.log(data)) + data).sum()
    proof = point.rigorous_proof(share)
    assert proof.spare == pytest.approx(0.5 * (64 * EPS + 2 * accuracy) * size, rel=1e-2, abs=0.0)
    total = point.proof(share, probable=True).bound + 64 * EPS * size
    shifted = 2 * share * error @ (np.abs(np.log(np.diag(Z))) + 1)
    assert total - proof.bound == pytest.approx(2 * proof.spare + shifted, rel=1e-2, abs=0.0)
    assert proof.scale == pytest.approx(A.sum())


def test_what_is_left_for_errors():
    assert matrix_free.room_for_errors(1.0, 3.0) == 0.0
    assert matrix_free.room_for_errors(1 - 1e-6, 2.0) == pytest.approx(5e-7)
    assert matrix_free.room_for_errors(0.5, 2.0) == pytest.approx(2e-4)


# Elimination ------------------------------------------------------------------------------------------------------------------


def test_nodes_of_least_degree_are_eliminated_first():
    star = sp.csr_array(np.eye(9)[0][:, None] + np.eye(9)[0][None, :] > 0, dtype=float)
    assert eliminated_nodes(star, core=1) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert len(eliminated_nodes(star, core=3)) == 6
    assert len(eliminated_nodes(star)) == 5  # half of few
    assert eliminated_nodes(star, work=4, core=1) == [1, 2, 3, 4]
    assert eliminated_nodes(star, work=0) == []
    cycle = sp.csr_array(np.roll(np.eye(8), 1, axis=1) + np.roll(np.eye(8), -1, axis=1))
    assert sum(1 for _ in eliminated_nodes(cycle, work=4 * 5 + 4, core=1)) == 6  # degree 2 all the way but for the last two


def definite(n=90, top=4.05):
    A = grid(9, n // 9)
    return sp.csr_array(top * sp.eye_array(n) - A)


def test_elimination_is_what_it_says():
    B = definite()
    parts = eliminate(B, eliminated_nodes(B, core=20))
    kept, n = len(parts.D), B.shape[0]
    assert (kept, parts.S.shape, parts.L.shape) == (70, (20, 20), (90, 70))
    assert parts.D.min() > 0
    whole = np.column_stack([parts.L.toarray(), np.eye(n)[:, kept:]])
    middle = np.zeros((n, n))
    middle[:kept, :kept], middle[kept:, kept:] = np.diag(parts.D), parts.S
    ordered = B.toarray()[np.ix_(parts.order, parts.order)]
    assert np.abs(whole @ middle @ whole.T - ordered).max() < 1e-13
    assert 1e-15 < parts.error < 1e-11
    G = np.random.default_rng(0).standard_normal((n, 3))
    Y, apart = parts.solve(G)
    assert whole @ Y == pytest.approx(G, abs=1e-12)
    units = 2 * (np.count_nonzero(parts.L.toarray(), axis=1).max() + 16) * EPS
    sizes = np.linalg.norm(np.abs(whole) @ np.abs(Y)) + np.linalg.norm(G)
    assert units * sizes <= apart <= units * sizes + 1e-13
    sizes = np.abs(parts.L.toarray()) @ np.diag(parts.D) @ np.abs(parts.L.toarray()).T + np.abs(ordered)
    assert (units * sizes.sum(axis=1)).max() <= parts.error <= (units * sizes.sum(axis=1)).max() + 1e-13


def test_factors_that_are_off_are_paid_for():
    B = definite()
    nodes = eliminated_nodes(B, core=20)
    order = np.concatenate([nodes, np.setdiff1d(np.arange(90), nodes)])
    ordered = sp.csc_array(B[order][:, order])
    parts = eliminate(B, nodes)
    L, D = sp.csr_array(parts.L[:70]), parts.D
    bent = L.toarray()
    bent[69, 3] += 1e-6
    for factor, pivots in ((L, D * (1 + 1e-6)), (sp.csr_array(bent), D)):
        for entries in (1, 1 << 22):
            found = elimination.with_core(ordered, order, factor, pivots, entries)
            left = ordered.toarray() - found.L.toarray() @ np.diag(pivots) @ found.L.toarray().T
            assert found.S == pytest.approx(left[70:, 70:], abs=1e-13)
            left[70:, 70:] = 0.0
            assert found.error == pytest.approx(np.abs(left).sum(axis=1).max(), rel=1e-4)


def test_a_core_that_is_nearly_singular_is_refused():
    for error, verdict in ((0.0, True), (0.9, True), (1 - 1e-7, False), (2.0, False)):
        assert elimination.is_psd_up_to(np.eye(3), error) is verdict


def test_nodes_without_a_positive_pivot_join_the_core():
    B = definite(top=3.5)
    assert np.linalg.eigvalsh(B.toarray())[0] < 0
    nodes = eliminated_nodes(B, core=1)
    parts = eliminate(B, nodes)
    assert parts.D.min() > 0
    assert len(parts.D) < len(nodes)
    assert (np.linalg.eigvalsh(parts.S) < 0).sum() == (np.linalg.eigvalsh(B.toarray()) < 0).sum()
    for refused in ((B, nodes, 1), (B, []), (sp.csr_array(-B), nodes), (B, list(range(90)))):
        with pytest.raises(cvxnmf.CertificateError, match="core of moderate size"):
            eliminate(*refused)


# The model --------------------------------------------------------------------------------------------------------------------


def random_model(n, rng, accuracy=1e-14):
    return Model(0.3 * rng.standard_normal(n), 0.5 * rng.standard_normal((n, 2)), 1.0 + rng.random(n), accuracy)


def whole_model(model):
    return np.exp(model.v[:, None] + model.v + model.W @ model.W.T) / np.outer(model.s, model.s)


def test_columns_of_the_model_are_below_it():
    model = random_model(40, np.random.default_rng(0))
    E = whole_model(model)
    assert model.columns([3, 5]) == pytest.approx(E[:, [3, 5]])
    assert model.diagonal() == pytest.approx(np.diag(E))
    for count in (1, 4, 9):
        pivots = np.argsort(-model.diagonal())[:count]
        F, error = lower_factor(model, pivots)
        left = E - F @ F.T
        assert np.linalg.eigvalsh(left)[0] >= -error
        assert np.abs(left[pivots]).max() < 1e-9
        assert 1e-14 < error < 1e-6
        assert lower_factor(model._replace(accuracy=1e-3), pivots)[1] > 1e-3
    with pytest.raises(cvxnmf.CertificateError, match="not independent"):
        lower_factor(model._replace(v=np.zeros(40), W=np.zeros((40, 1)), s=np.ones(40)), [1, 2])


def test_errors_of_the_model_are_allowed_for():
    model = random_model(40, np.random.default_rng(0), accuracy=1e-9)
    pivots = np.argsort(-model.diagonal())[:6]
    F, error = lower_factor(model, pivots)
    C, norm = model.columns(pivots), np.linalg.norm
    K = C[pivots]
    R, T, units = np.linalg.cholesky(K).T, np.linalg.solve(K, C.T), 2 * (6 + 16) * EPS
    solved = units * (norm(R) * norm(T) + norm(F))
    shared = units * (norm(R) * norm(F) + norm(C)) + 1e-9 * norm(C)
    rooted = units * (norm(R) ** 2 + norm(K)) + 1e-9 * norm(K)
    wanted = 2 * shared * norm(T) + solved**2 + rooted * norm(T) ** 2
    assert error == pytest.approx(wanted, rel=1e-5, abs=0.0)
    exact = model._replace(accuracy=0.0)
    shared, rooted = units * (norm(R) * norm(F) + norm(C)), units * (norm(R) ** 2 + norm(K))
    wanted = 2 * shared * norm(T) + rooted * norm(T) ** 2
    assert wanted * (1 - 1e-6) <= lower_factor(exact, pivots)[1] <= 1.2 * wanted


def test_the_core_is_what_elimination_of_the_rest_leaves():
    B = definite(top=3.5)
    parts = eliminate(B, eliminated_nodes(B, core=20))
    kept, rng = len(parts.D), np.random.default_rng(0)
    Y = rng.standard_normal((90, 4))
    whole = Y @ Y.T
    whole[np.arange(kept), np.arange(kept)] += parts.D
    whole[kept:, kept:] += parts.S
    left = whole[kept:, kept:] - whole[kept:, :kept] @ np.linalg.solve(whole[:kept, :kept], whole[:kept, kept:])
    K = np.eye(4) + (Y[:kept].T / parts.D) @ Y[:kept]
    X, norm = np.linalg.solve(K, Y[kept:].T), np.linalg.norm
    size = norm(X) * (2 * norm(Y[kept:]) + norm(X) * norm(K)) + norm(parts.S)
    wanted = 2 * EPS * ((2 * 4 + 16) * size + (kept + 4 + 16) * np.trace(K) * norm(X) ** 2)
    M, error = elimination.core_matrix(parts, Y)
    assert M == pytest.approx(left, abs=1e-9)
    assert error == pytest.approx(wanted, rel=1e-9, abs=0.0)


def test_errors_together_may_not_exceed_the_room():
    A, model = grid(6, 10), random_model(60, np.random.default_rng(0), accuracy=0.0)
    nodes, share, pivots = eliminated_nodes(A, core=15), 0.7, np.argsort(-model.diagonal())[:8]
    B = sp.csr_array(5.0 * sp.eye_array(60) - A)
    F, lost = lower_factor(model, pivots)
    room = 1e-9
    parts = eliminate(B - room * sp.eye_array(60), nodes)
    G = np.sqrt(share) * F[parts.order]
    apart, size = parts.solve(G)[1], np.linalg.norm(G)
    needed = parts.error + share * lost + 2 * size * apart + apart**2 + 8 * EPS * size**2
    for more in (-1e-4, 1e-4):  # of what is needed
        error = room / (1 + 1e-6) - (1 - more) * needed
        assert is_psd_with_model(B, error, room, nodes, model, share, pivots) is (more < 0)


def test_pivots_leave_little():
    model = random_model(200, np.random.default_rng(1))
    E = whole_model(model)
    pivots = leading_pivots(model.columns, model.diagonal(), 1e-3, 100).astype(int)
    F, _ = lower_factor(model, pivots)
    assert np.trace(E - F @ F.T) <= 1e-3 * (1 + 1e-6)
    assert len(set(pivots)) == len(pivots) < 40
    assert leading_pivots(model.columns, model.diagonal(), 1e-3, len(pivots) - 1) is None
    assert len(leading_pivots(model.columns, model.diagonal(), 1e9, 5)) == 1


@pytest.mark.parametrize("seed", range(3))
def test_never_called_positive_semidefinite_wrongly(seed):
    rng = np.random.default_rng(seed)
    A, model = grid(6, 10), random_model(60, rng)
    E, pivots = whole_model(model), np.arange(0, 60, 2)
    nodes, share = eliminated_nodes(A, core=15), 0.7
    edge = -np.linalg.eigvalsh(share * E - A.toarray())[0]
    for off in (-0.5, -1e-3, -1e-6, -1e-10):
        B = sp.csr_array((edge + off) * sp.eye_array(60) - A)
        assert not is_psd_with_model(B, 0.0, 1e-9, nodes, model, share, pivots)
    B = sp.csr_array((edge + 1e-2) * sp.eye_array(60) - A)
    assert is_psd_with_model(B, 0.0, 1e-5, nodes, model, share, np.arange(60)[np.argsort(-model.diagonal())][:30])
    few = (B, 0.0, 1e-5, nodes, model, share, np.array([0]))
    assert not is_psd_with_model(*few) or np.linalg.eigvalsh(B.toarray())[1] > 0
    assert not is_psd_with_model(B, 2e-5, 1e-5, nodes, model, share, pivots)
    assert not is_psd_with_model(B, 0.0, 1e-16, nodes, model, share, pivots)
    assert not is_psd_with_model(B, 0.0, 2e-2, nodes, model, share, pivots)
