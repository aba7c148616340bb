"""Deterministic starts of the rank-k methods: ``start(A, k) -> (U, V)``, nonnegative, ``A`` dense, sparse or in row chunks.

None depends on the order of the rows or columns of A beyond rounding, or, of large data, beyond the accuracy of its leading
singular vectors, and each scales with A: ``c A`` gives ``sqrt(c) U``.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from cvxnmf.chunked import ChunkedMatrix, Transposed
from cvxnmf.convex import coarsening
from cvxnmf.convex.noise import admitting_trace
from cvxnmf.convex.rectangular import nonsymmetric
from cvxnmf.convex.solve import solve
from cvxnmf.convex.symmetric import symmetric as state_symmetric
from cvxnmf.linalg.arrays import FloatArray, energy, in_double
from cvxnmf.linalg.centres import farthest_points, nearest_centres
from cvxnmf.linalg.leading import krylov_pairs, leading_eigenpairs, subspace_triples
from cvxnmf.linalg.products import dense_times, dense_transposed_times
from cvxnmf.linalg.row_chunks import row_chunks
from cvxnmf.linalg.sparse_products import csr_times, csr_transposed_times
from cvxnmf.nmf.updates.hals import SETTLED, hals_sweeps
from cvxnmf.results import Solution

#: Certified gap at which a convex solution is good enough to start from.
START_TOLERANCE = 1e-2
#: Up to this many columns a Gram matrix is formed and decomposed for a start.
FULL_GRAM = 120
#: Steps of coordinate descent before the first merge and between two merges.
SETTLING, BETWEEN = 20, 5
#: Sweeps that solve for one side when the other is fixed, and the ridge of the least squares before them.
SOLVING, RIDGE = 12, 1e-6
#: Power steps towards the strongest direction of a residual, which is formed up to so many entries.
POWER_STEPS, LARGEST_RESIDUAL = 8, 3_000_000

#: U and V.
Factors = tuple[FloatArray, FloatArray]
#: Leading singular triples: left vectors, values, right vectors.
Triples = tuple[FloatArray, FloatArray, FloatArray]


def nndsvd(A: Any, k: int, triples: Triples | None = None, fill: float = 1.0) -> Factors:
    """Nonnegative double SVD (Boutsidis & Gallopoulos), zeros replaced by the mean so that they do not lock.

    Of each singular pair the larger of its positive and negative parts is kept. The mean is that of A over the geometric mean
    of the largest entries, times `fill`, which makes the start scale with A. `triples` are at least k leading ones, where they
    are at hand.
    """
    U, V = _parts(A, k, leading_triples(A, min(k, *A.shape)) if triples is None else _first(triples, k))
    U[U == 0] = V[V == 0] = fill * _mean(A)
    return U, V


def eigen_nndsvd(A: Any, k: int) -> Factors:
    """Nonnegative double SVD from the leading eigenpairs of a symmetric A, for ``A ≈ UU'``."""
    U, _ = _parts(A, k, leading_triples(A, min(k, *A.shape), symmetric=True))
    U[U == 0] = _mean(A)
    return U, U


def random(A: Any, k: int, rng: np.random.Generator) -> Factors:
    """Initialise with uniform random factors whose product has the mean of A."""
    height = 2.0 * np.sqrt(float(A.mean()) / k)
    return height * rng.random((A.shape[0], k)), height * rng.random((A.shape[1], k))


def successive_projection(A: Any, k: int, triples: Triples | None = None) -> Factors:
    """Rows of A that stick out (successive projection on the rows of ``U_k S_k``) as V', and U by least squares."""
    left, values, _ = leading_triples(A, min(k, *A.shape)) if triples is None else _first(triples, k)
    points, chosen = left * values, np.empty(0, dtype=np.intp)
    for _ in range(len(values)):
        norms = np.einsum("ij,ij->i", points, points)
        best = int(np.argmax(norms))
        if not norms[best] > 0:
            break
        chosen = np.append(chosen, best)
        direction = points[best] / np.sqrt(norms[best])
        points = points - np.outer(points @ direction, direction)
    if len(chosen) < k:
        return nndsvd(A, k, triples)
    rows = A[chosen]
    V = np.ascontiguousarray(np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64).T)
    return balance_columns(least_squares_rows(_times(A, V), V), V)


def standing_columns(A: Any, k: int, triples: Triples | None = None) -> Factors:
    """Initialise with columns of A that stick out as U, and V by least squares."""
    transposed = A.T.tocsr() if sp.issparse(A) else A.T
    V, U = successive_projection(transposed, k, None if triples is None else triples[::-1])
    return U, V


def least_squares_rows(P: FloatArray, V: FloatArray, sweeps: int = SOLVING) -> FloatArray:
    """Nearly the U >= 0 that minimises ``||A - UV'||``, given ``P = AV``: clipped least squares, then coordinate descent."""
    Q, k = V.T @ V, V.shape[1]
    ridge = max(RIDGE * float(np.trace(Q)) / k, np.finfo(np.float64).tiny)
    U = np.maximum(P @ np.linalg.inv(Q + ridge * np.eye(k)), 0.0)
    return hals_sweeps(U, P, Q, sweeps, SETTLED)


def merge(A: Any, k: int, excess: float = 2.0, working: Any = None) -> Factors:
    """Initialise with more components than wanted, by the factor `excess`, merged pair by pair where least is lost.

    The pair with the least second singular value of ``u_i v_i' + u_j v_j'`` becomes its best rank-one approximation, and a few
    steps of coordinate descent follow, on `working`, the same data in single precision, where that is at hand.
    """
    working = A if working is None else working
    U, V = descend(working, *nndsvd(A, min(int(excess * k), *A.shape)), SETTLING)
    if U.shape[1] < k:
        return nndsvd(A, k)
    while U.shape[1] > k:
        i, j = cheapest_pair(U, V)
        u, v = rank_one(U[:, [i, j]], V[:, [i, j]])
        U[:, i], V[:, i] = u, v
        U, V = descend(working, np.delete(U, j, axis=1), np.delete(V, j, axis=1), BETWEEN)
    return balance_columns(U, V)


def convex(A: FloatArray, k: int, symmetric: bool) -> Factors:
    """Start from the convex solution: k centres c among its positions, ``U_il = exp(a_i + w_i . c_l - |c_l|^2 / 2)``, V alike.

    The penalty is at the noise edge, or lower so that k - 1 directions are let in.
    """
    state = state_symmetric if symmetric else nonsymmetric
    try:
        problem: Any = state(A, trace="auto")
    except ValueError:  # no noise, or a single row
        return eigen_nndsvd(A, k) if symmetric else nndsvd(A, k)
    trace = admitting_trace(problem.trace, _entering_traces(A, problem, symmetric), k)
    if trace < problem.trace:
        problem = problem.with_trace(trace)
    solution = solve(problem, method="accelerated", tol=START_TOLERANCE, max_iter=100)  # at this tolerance a few steps do
    m = len(A)
    first, second = (slice(0, m),) * 2 if symmetric else (slice(0, m), slice(m, None))
    centres = _centres(solution.W[first][np.isfinite(solution.v[first])], k)
    shift = -0.5 * np.sum(centres**2, axis=1)
    U, V = (np.exp(np.minimum(solution.v[part, None] + solution.W[part] @ centres.T + shift, 300.0)) for part in (first, second))
    scale = np.sqrt(max(float(np.sum(_times(A, V) * U)) / float(np.sum((U.T @ U) * (V.T @ V))), 0.0))
    U, V = (np.maximum(np.sqrt(scale) ** (1 + symmetric) * side, 1e-6 * side.max()) for side in (U, V))
    return (U, U) if symmetric else balance_columns(U, V)


def in_groups(A: Any, k: int, n_groups: int = coarsening.GROUPS) -> tuple[FloatArray, Solution]:
    """Initialise ``A ≈ UU'`` from the convex model of a large graph with groups of nodes, which comes along."""
    kept = np.flatnonzero(np.diff(A.indptr))
    part = A if len(kept) == A.shape[0] else sp.csr_array(A[kept][:, kept])
    coarse, trace = coarsening.coarsen_by_directions(part, k, n_groups)
    solution = coarse.solve(trace, tol=START_TOLERANCE)
    first = np.unique(coarse.groups, return_index=True)[1]
    centres = _centres(solution.W[first], k)
    shift = -0.5 * np.sum(centres**2, axis=1)
    U = np.zeros((A.shape[0], k))
    U[kept] = np.exp(np.minimum(solution.v[:, None] + (solution.W @ centres.T + shift), 300.0))
    scale = max(float(np.sum((A @ U) * U)) / float(np.sum((U.T @ U) ** 2)), 0.0)
    U = np.maximum(np.sqrt(scale) * U, 1e-6 * np.sqrt(scale) * U.max())
    return U, solution


def _entering_traces(A: FloatArray, problem: Any, symmetric: bool) -> FloatArray:
    """The traces at which directions enter the convex model of an initialisation, in decreasing order."""
    residual = A - np.outer(A.sum(axis=1), A.sum(axis=0) / A.sum())
    if not symmetric:
        return np.asarray(0.5 * np.linalg.svd(residual, compute_uv=False))
    s = np.where(problem.metric > 0, problem.metric, np.inf)
    return np.asarray(np.linalg.eigvalsh(residual / s[:, None] / s[None, :])[::-1])


def _centres(W: FloatArray, k: int) -> FloatArray:
    """K centres of the positions in the convex initialisation: the farthest points in turn, then means of nearest points."""
    first = farthest_points(W, k)
    labels = nearest_centres(W, first)
    return np.array([W[labels == c].mean(axis=0) if np.any(labels == c) else first[c] for c in range(k)])


def exchange_columns(A: Any, U: FloatArray, V: FloatArray, choice: int = 0) -> Factors:
    """Factors as a new start, two near columns merged and the strongest direction of the residual in the free place.

    `choice` counts the pairs from the one whose merging costs least.
    """
    i, j = cheapest_pair(U, V, choice)
    u, v = residual_pair(A, U, V)
    U, V = U.copy(), V.copy()
    U[:, i], V[:, i] = rank_one(U[:, [i, j]], V[:, [i, j]])
    U[:, [j]], V[:, [j]] = balance_columns(u[:, None], v[:, None])
    return U, V


def recombine(first: Factors, second: Factors, rng: np.random.Generator) -> Factors:
    """Factors as a new start, of every pair of like columns one: which, is left to chance.

    Columns are paired such that the sum of their products ``|u_i' u_j| |v_i' v_j|``, of unit columns, is greatest.
    """
    (U, V), (other_U, other_V) = balance_columns(*first), balance_columns(*second)
    alike = np.prod([_unit_columns(X).T @ _unit_columns(Y) for X, Y in ((U, other_U), (V, other_V))], axis=0)
    partners = linear_sum_assignment(alike, maximize=True)[1]
    own = rng.random(U.shape[1]) < 0.5
    return np.where(own, U, other_U[:, partners]), np.where(own, V, other_V[:, partners])


def _unit_columns(X: FloatArray) -> FloatArray:
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=0), np.finfo(np.float64).tiny))


def residual_pair(A: Any, U: FloatArray, V: FloatArray) -> Factors:
    """Nonnegative vectors of the strongest direction in the residual ``A - UV'``, of its positive part where that fits."""
    formed = not sp.issparse(A) and A.shape[0] * A.shape[1] <= LARGEST_RESIDUAL
    if formed:
        residual = np.maximum(0.0, A - U @ V.T)
        times, transposed_times, v = residual.__matmul__, residual.T.__matmul__, residual.sum(axis=0)
    else:
        times = lambda x: _times(A, x[:, None])[:, 0] - U @ (V.T @ x)  # noqa: E731
        transposed_times = lambda y: _transposed_times(A, y[:, None])[:, 0] - V @ (U.T @ y)  # noqa: E731
        v = np.ones(A.shape[1])
    for _ in range(POWER_STEPS):
        v = transposed_times(times(v / max(float(np.linalg.norm(v)), np.finfo(np.float64).tiny)))
    v = v / max(float(np.linalg.norm(v)), np.finfo(np.float64).tiny)
    parts = [(np.maximum(sign * times(v), 0.0), np.maximum(sign * v, 0.0)) for sign in (1.0, -1.0)]
    return max(parts, key=lambda pair: float(np.linalg.norm(pair[0]) * np.linalg.norm(pair[1])))


def descend(A: Any, U: FloatArray, V: FloatArray, steps: int) -> Factors:
    """Plain coordinate descent on ``||A - UV'||^2`` to settle an initialisation, one sweep over U and one over V per step."""
    dense = (dense_times, dense_transposed_times)
    times, transposed_times = (csr_times, csr_transposed_times) if sp.issparse(A) else dense
    for _ in range(steps):
        U = hals_sweeps(U, times(A, V), V.T @ V, 1, SETTLED)
        V = hals_sweeps(V, transposed_times(A, U), U.T @ U, 1, SETTLED)
    return U, V


def _times(A: Any, X: FloatArray) -> FloatArray:
    """The product ``A X`` for an initialisation; nothing is compiled for dense data."""
    if sp.issparse(A):
        return csr_times(A, X)
    return np.ascontiguousarray(A @ _in_type_of(A, X), dtype=np.float64)


def _transposed_times(A: Any, X: FloatArray) -> FloatArray:
    """The product ``A' X`` for an initialisation."""
    if sp.issparse(A):
        return csr_transposed_times(A, X)
    return np.ascontiguousarray((_in_type_of(A, X).T @ A).T, dtype=np.float64)


def _in_type_of(A: Any, X: FloatArray) -> Any:
    """X in the precision of a dense A that it is multiplied with: otherwise the library would make a copy of A in the other."""
    return X.astype(A.dtype, copy=False) if isinstance(A, np.ndarray) else X


@functools.singledispatch
def leading_triples(A: Any, k: int, symmetric: bool = False, full_gram: int = FULL_GRAM) -> Triples:
    """The k leading singular triples of A, or eigenpairs (negative values become 0) twice over, for initialisations.

    Up to `full_gram` columns the Gram matrix is formed; beyond a subspace is iterated a few times, which is enough for a start.
    """
    m, n = A.shape
    if symmetric:
        values, vectors = leading_eigenpairs(A, k)
        return vectors, np.maximum(values, 0.0), vectors
    if m < n:
        right, values, left = leading_triples(A.T.tocsr() if sp.issparse(A) else A.T, k, full_gram=full_gram)
        return left, values, right
    if n > full_gram and 5 * k < n:
        entries = A.data if sp.issparse(A) else A
        return subspace_triples(lambda X: _times(A, X), lambda Y: _transposed_times(A, Y), n, k, energy(entries))
    gram = _gram(A)
    return _triples_of_gram(A, *leading_eigenpairs(gram.toarray() if sp.issparse(gram) else gram, k))


def _gram(A: Any) -> Any:
    """The Gram matrix ``A'A`` for an initialisation, added up in double precision."""
    if A.dtype == np.float64:
        return A.T @ A
    parts = (in_double(A[rows]) for rows in row_chunks(*A.shape))
    return sum(part.T @ part for part in parts)


def refined_values(A: Any, right: FloatArray) -> FloatArray:
    """Singular values after two more subspace iterations from nearly singular vectors of a matrix that is not wide."""
    for _ in range(2):
        right = _transposed_times(A, np.linalg.qr(_times(A, right))[0])
    return np.asarray(np.linalg.svd(right, compute_uv=False))


@leading_triples.register
def _(A: ChunkedMatrix, k: int, symmetric: bool = False, full_gram: int = FULL_GRAM) -> Triples:
    """The leading singular triples of row chunks, from the Gram matrix where it fits, or by a few passes."""
    if symmetric:
        values, vectors = krylov_pairs(A.__matmul__, A.shape[1], k)
        return vectors, np.maximum(values, 0.0), vectors
    pairs = leading_eigenpairs(A.gram(), k) if A.gram_fits else krylov_pairs(A.gram_product, A.shape[1], k)
    return _triples_of_gram(A, *pairs)


@leading_triples.register
def _(A: Transposed, k: int, symmetric: bool = False, full_gram: int = FULL_GRAM) -> Triples:
    """The leading singular triples of transposed row chunks, with sides exchanged."""
    right, values, left = leading_triples(A.T, k)
    return left, values, right


def _triples_of_gram(A: Any, squares: FloatArray, right: FloatArray) -> Triples:
    """Singular triples of row chunks from eigenpairs of ``A'A``; values that rounding hides are zero."""
    values = np.sqrt(np.maximum(squares, 0.0))
    tiny = np.finfo(np.float64).eps ** 0.5 * max(float(values[0]), np.finfo(np.float64).tiny)
    return _times(A, right) / np.maximum(values, tiny), np.where(values > tiny, values, 0.0), right


def _first(triples: Triples, k: int) -> Triples:
    """The first k singular triples of an initialisation."""
    left, values, right = triples
    return left[:, :k], values[:k], right[:, :k]


def _parts(A: Any, k: int, triples: Triples) -> Factors:
    """Scaled nonnegative parts of k singular triples for NNDSVD; where there are fewer, the parts left over and then zeros."""
    left, values, right = triples
    U, V = np.zeros((A.shape[0], k)), np.zeros((A.shape[1], k))
    spare = []
    for column, value in enumerate(values):
        pairs = []
        for sign in (1.0, -1.0):
            u, v = np.maximum(sign * left[:, column], 0.0), np.maximum(sign * right[:, column], 0.0)
            lengths = [max(float(np.linalg.norm(side)), 1e-300) for side in (u, v)]
            pairs.append((value * lengths[0] * lengths[1], u / lengths[0], v / lengths[1]))
        (weight, u, v), other = sorted(pairs, key=lambda pair: -pair[0])
        U[:, column], V[:, column] = np.sqrt(weight) * u, np.sqrt(weight) * v
        spare += [other] if len(values) < k else []
    spare.sort(key=lambda pair: -pair[0])
    for column, (weight, u, v) in zip(range(len(values), k), spare, strict=False):
        U[:, column], V[:, column] = np.sqrt(weight) * u, np.sqrt(weight) * v
    negligible = np.finfo(np.float64).eps * max(float(U.max()), float(V.max()))
    U[negligible >= U], V[negligible >= V] = 0.0, 0.0
    return U, V


def _mean(A: Any) -> float:
    """The mean of A in units of a factor, over the root of its largest entry, to fill zeros of an initialisation."""
    mean = A.data.sum() / (A.shape[0] * A.shape[1]) if sp.issparse(A) else A.mean()  # scipy's own makes a copy
    return float(mean / np.sqrt(A.max()))


def cheapest_pair(U: FloatArray, V: FloatArray, choice: int = 0) -> tuple[int, int]:
    """The pair of columns of U and V whose merging into one loses least, or the next such pairs.

    What is lost is the smaller eigenvalue of the product of the two 2 by 2 Gram matrices.
    """
    G, K = U.T @ U, V.T @ V
    g, q = np.diag(G), np.diag(K)
    weights = g * q
    trace = weights[:, None] + weights[None, :] + 2.0 * G * K
    determinant = (np.outer(g, g) - G * G) * (np.outer(q, q) - K * K)
    larger = 0.5 * (trace + np.sqrt(np.maximum(trace * trace - 4.0 * determinant, 0.0)))
    lost = determinant / np.maximum(larger, np.finfo(np.float64).tiny)
    lost[np.tril_indices_from(lost)] = np.inf
    order = np.argsort(lost, axis=None, kind="stable") if choice else np.array([np.argmin(lost)])
    pairs = U.shape[1] * (U.shape[1] - 1) // 2
    i, j = np.unravel_index(int(order[min(choice, pairs - 1) if choice else 0]), lost.shape)
    return int(i), int(j)


def rank_one(U: FloatArray, V: FloatArray) -> Factors:
    """The best rank-one approximation of ``UV'`` with two columns each; nonnegative, as the leading pair of such a product is."""
    K = V.T @ V
    values, vectors = np.linalg.eig((U.T @ U) @ K)
    y = np.abs(np.real(vectors[:, int(np.argmax(np.real(values)))]))  # v = V y
    v = V @ y
    u = U @ (K @ y)
    return u / max(float(v @ v), np.finfo(np.float64).tiny), v


def balance_columns(U: FloatArray, V: FloatArray) -> Factors:
    """Factors of an initialisation with the product ``UV'`` kept and columns of equal norms in pairs."""
    u, v = np.linalg.norm(U, axis=0), np.linalg.norm(V, axis=0)
    alive = (u > 0) & (v > 0)
    ratio = np.sqrt(np.where(alive, v, 1.0) / np.where(alive, u, 1.0))
    return U * ratio, V / ratio
