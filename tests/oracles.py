"""Independent solvers for small problems: Clarabel for KL, full-rank quasi-Newton for squared error."""

import cvxpy as cp
import numpy as np
from scipy.linalg import null_space
from scipy.optimize import minimize

import naive


def clarabel_kl(A, cone, s, trace, diagonal):
    """Optimal value of the KL problem by cvxpy and Clarabel."""
    n = len(A)
    X = cp.Variable((n, n), symmetric=True)
    counted = np.ones((n, n)) - (np.eye(n) if diagonal == "ignore" else 0)
    a = A[(A > 0) & (counted > 0)]
    constant = np.sum(a * np.log(a) - a)
    N = naive.penalty_matrix(cone, s)
    objective = cp.sum(cp.multiply(counted, cp.exp(X))) - cp.sum(cp.multiply(counted * A - trace * N, X)) + constant
    H = null_space(np.ones((1, n))) if cone == "conditional" else np.eye(n)
    problem = cp.Problem(cp.Minimize(objective), [H.T @ X @ H >> 0])
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-8, tol_gap_abs=1e-8, tol_feas=1e-8)
    return problem.value


def full_rank_mse(A, cone, s, trace, diagonal, paper=False):
    """Optimal value of the squared-error problem by L-BFGS on ``v1' + 1v' + WW'``, W n by n.

    The paper's constraint ``X >= log(A/2)`` is met by an augmented Lagrangian.
    """
    n = len(A)
    N = naive.penalty_matrix(cone, s)
    counted = np.ones((n, n)) - (np.eye(n) if diagonal == "ignore" else 0)
    with np.errstate(divide="ignore"):
        lower = np.where(counted > 0, np.log(A / 2), -np.inf)
    free = cone == "conditional"
    multiplier = np.zeros((n, n))

    def unpack(x):
        v, W = (x[:n] if free else np.zeros(n)), x[n:].reshape(n, n)
        return v, W, v[:, None] + v[None, :] + W @ W.T

    def smooth(X):
        E = np.exp(np.clip(X, -700, 300))
        low = 2 * E < A
        tangent = A**2 / 4 - A**2 / 2 * (X - np.where(A > 0, np.log(np.where(A > 0, A, 1) / 2), 0))
        values = np.where(low, tangent, (E - A) ** 2)
        slopes = np.where(low, -(A**2) / 2, 2 * E * (E - A))
        return np.sum(counted * values) + trace * np.sum(N * X), counted * slopes + trace * N

    def objective(x, weight):
        v, W, X = unpack(x)
        f, G = smooth(X)
        if paper:
            excess = np.maximum(0, multiplier + weight * (lower - X))
            f, G = f + np.sum(excess**2 - multiplier**2) / (2 * weight), G - excess
        return f, np.concatenate([2 * G.sum(axis=1) * free, (2 * G @ W).ravel()])

    x = np.concatenate([np.zeros(n), (0.3 * np.eye(n)).ravel()])
    options = {"maxiter": 20000, "maxfun": 40000, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-10}
    for _ in range(25 if paper else 1):
        x = minimize(objective, x, args=(50.0,), jac=True, method="L-BFGS-B", options=options).x
        X = unpack(x)[2]
        multiplier = np.maximum(0, multiplier + 50.0 * (lower - X)) if paper else multiplier
    return smooth(X)[0]


def rectangular(A, loss, trace, effects, penalty="nuclear"):
    """Optimal value of a nonsymmetric problem: KL by cvxpy and Clarabel, squared error by L-BFGS on full-rank factors."""
    if loss == "mse":
        return _rectangular_mse(A, trace, effects)
    m, n = A.shape
    constant = np.sum(A[A > 0] * np.log(A[A > 0])) - A.sum()
    if penalty == "paper":
        whole = cp.Variable((m + n, m + n), symmetric=True)
        X, constraints = whole[:m, m:], [whole >> 0]
        penalised = trace * cp.sum(cp.exp(cp.diag(whole)))
    else:
        X, constraints = cp.Variable((m, n)), []
        left, right = (np.eye(k) - np.ones((k, k)) / k if effects else np.eye(k) for k in (m, n))
        penalised = 2 * trace * cp.normNuc(left @ X @ right)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(X)) - cp.sum(cp.multiply(A, X)) + constant + penalised), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)
    return problem.value


def log_trace_blocks(A, trace):
    """KL with ``trace (tr X_11 + tr X_22)`` over positive semidefinite block matrices."""
    m, n = A.shape
    whole = cp.Variable((m + n, m + n), symmetric=True)
    X = whole[:m, m:]
    constant = np.sum(A[A > 0] * np.log(A[A > 0])) - A.sum()
    objective = cp.sum(cp.exp(X)) - cp.sum(cp.multiply(A, X)) + constant + trace * cp.trace(whole)
    problem = cp.Problem(cp.Minimize(objective), [whole >> 0])
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)
    return problem.value


def _rectangular_mse(A, trace, effects):
    m, n = A.shape
    rank = min(m, n)
    logs = np.log(np.where(A > 0, A, 1.0) / 2)

    def objective(x):
        a, b, L, R = x[:m] * effects, x[m : m + n] * effects, x[m + n : m + n + m * rank], x[m + n + m * rank :]
        L, R = L.reshape(m, rank), R.reshape(n, rank)
        X = a[:, None] + b[None, :] + L @ R.T
        E = np.exp(np.clip(X, -700, 300))
        low = 2 * E < A
        values = np.where(low, A**2 / 4 - A**2 / 2 * (X - logs), (E - A) ** 2)
        G = np.where(low, -(A**2) / 2, 2 * E * (E - A))
        Lc, Rc = (L - L.mean(axis=0), R - R.mean(axis=0)) if effects else (L, R)
        value = values.sum() + trace * (np.sum(Lc**2) + np.sum(Rc**2))
        slopes = [
            G.sum(axis=1) * effects,
            G.sum(axis=0) * effects,
            (G @ R + 2 * trace * Lc).ravel(),
            (G.T @ L + 2 * trace * Rc).ravel(),
        ]
        return value, np.concatenate(slopes)

    x = np.concatenate([np.zeros(m + n), 0.3 * np.random.default_rng(0).standard_normal((m + n) * rank)])
    options = {"maxiter": 50_000, "maxfun": 100_000, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-11}
    return minimize(objective, x, jac=True, method="L-BFGS-B", options=options).fun


def clarabel_doubly_nonnegative(A, l1, trace):
    """Optimal value of the sparse problem by cvxpy and Clarabel."""
    X = cp.Variable(A.shape, PSD=True)
    objective = cp.sum_squares(A - X) + l1 * cp.sum(X) + trace * cp.trace(X)
    problem = cp.Problem(cp.Minimize(objective), [X >= 0])
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)
    return problem.value


def clarabel_below(A, cone, trace):
    """Optimal value of KL plus ``trace <N, X>`` over X in the cone with ``exp(X) <= A``."""
    n = len(A)
    X = cp.Variable((n, n), symmetric=True)
    N = naive.penalty_matrix(cone, np.ones(n))
    H = null_space(np.ones((1, n))) if cone == "conditional" else np.eye(n)
    constant = np.sum(A * np.log(A) - A)
    objective = cp.sum(cp.exp(X)) - cp.sum(cp.multiply(A - trace * N, X)) + constant
    problem = cp.Problem(cp.Minimize(objective), [H.T @ X @ H >> 0, X <= np.log(A)])
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)
    return problem.value


def clarabel_effects_below(A, ignore_diagonal):
    """Optimal KL over ``X = v1' + 1v'`` with ``exp(X) <= A`` on the counted entries."""
    n = len(A)
    v = cp.Variable(n)
    i, j = np.nonzero(~np.eye(n, dtype=bool)) if ignore_diagonal else np.nonzero(np.ones((n, n)))
    a = A[i, j]
    X = v[i] + v[j]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(X)) - a @ X + np.sum(a * np.log(a) - a)), [X <= np.log(a)])
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return problem.value


def weights_below(A, stages):
    """Optimal value of ``||A - sum c_k E_k||^2`` over c >= 0 with ``sum c_k E_k <= A``."""
    c = cp.Variable(len(stages), nonneg=True)
    total = sum(c[k] * (U @ U.T) for k, U in enumerate(stages))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A - total)), [total <= A])
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return problem.value
