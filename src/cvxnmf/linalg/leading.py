"""Leading eigenpairs of large matrices and operators: Lanczos, filtered subspaces, block Krylov spaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import eigenpairs, eigenpairs_between

#: Eigenvalues, decreasing, and their vectors.
Pairs = tuple[FloatArray, FloatArray]
#: Up to this many rows a matrix is decomposed by a dense driver; beyond it, few pairs by Lanczos.
FULL_GRAM = 1200
#: Up to this many rows an operator is written out.
SMALL_OPERATOR = 60
#: Up to this many rows an operator is written out if iterations do not converge.
WRITTEN_OUT = 4000
#: Columns that subspace iterations carry beyond those wanted, their rounds, and the change of a value that ends them.
SPARE_COLUMNS, FILTER_ROUNDS, FILTER_TOLERANCE = 6, 12, 1e-3
#: Most products in a round of filtering, and how much more the first column may grow than the last.
FILTER_DEGREE, LARGEST_AMPLIFICATION = 16, 1e8
#: Columns of unit length whose Gram matrix has no smaller eigenvalue are made orthonormal by its Cholesky factor, twice.
WELL_APART = 1e-8
#: Lanczos steps that tell the ends of a spectrum.
ENDS_STEPS = 12
#: Fewest columns of a subspace beyond those wanted, and what their number is a multiple of, as loops over them like it.
SUBSPACE_EXCESS, SUBSPACE_MULTIPLE = 5, 8
#: Most iterations of a subspace, and the change of what it leaves that ends them.
SUBSPACE_ITERATIONS, SUBSPACE_CHANGE = 4, 2e-2
#: Columns of a Krylov block beyond those wanted, and products with it.
KRYLOV_EXCESS, KRYLOV_PRODUCTS = 10, 7


def leading_eigenpairs(B: Any, k: int) -> Pairs:
    """Leading eigenpairs of a symmetric matrix: the k largest eigenvalues, decreasing, and their vectors."""
    n = B.shape[0]
    if n > FULL_GRAM and 5 * k < n:
        return lanczos_pairs(B, k, np.asarray(B @ np.ones(n)).ravel())
    values, vectors = eigenpairs_between(B.toarray() if sp.issparse(B) else B.copy(), n - k, n - 1)
    return values[::-1], vectors[:, ::-1]


def operator_pairs(product: Callable[[FloatArray], FloatArray], n: int, count: int) -> Pairs:
    """Leading eigenpairs of a symmetric operator, eigenvalues decreasing; of a small one by a full decomposition."""
    if n <= SMALL_OPERATOR or 3 * count >= n:
        B = np.column_stack([product(column) for column in np.eye(n)])
        values, vectors = eigenpairs((B + B.T) / 2)
        return values[::-1][:count], vectors[:, ::-1][:, :count]
    operator = spl.LinearOperator((n, n), matvec=product, dtype=np.float64)
    return lanczos_pairs(operator, count, np.random.default_rng(0).standard_normal(n), 1e-4)


def pairs_above(
    product: Callable[..., FloatArray], n: int, edge: float, count: int, report: Callable[[int], Any] | None = None
) -> Pairs:
    """The `count` largest eigenvalues of a large symmetric operator, decreasing, and their vectors; exact only above `edge`.

    Subspace iterations with polynomials of Chebyshev that damp everything between the lower end of the spectrum and the edge,
    where eigenvalues lie so close together that Lanczos iterations would take very long to tell them apart.

    ``product(X, shift, scale, Y)`` is ``scale (B X - shift X) - Y`` with the operator B of n rows; Y may be left out, and all
    but X. `report` is told the number of every round.
    """
    width = min(n, count + SPARE_COLUMNS)
    X = np.linalg.qr(np.random.default_rng(0).standard_normal((n, width)))[0]
    low, high = _spectral_ends(product, X[:, 0])
    edge = max(edge, low + 1e-3 * (high - low))
    centre, radius = 0.5 * (edge + low), 0.5 * (edge - low)
    degree, values = FILTER_DEGREE // 4, np.full(width, -np.inf)
    for step in range(FILTER_ROUNDS):
        X = _orthonormal(_chebyshev(product, X, centre, radius, degree))
        image = product(X)
        small = X.T @ image
        before, (values, turn) = values, np.linalg.eigh((small + small.T) / 2)
        values, X = values[::-1], X @ turn[:, ::-1]
        if report is not None:
            report(step + 1)
        above = values[:count] > edge
        if step and np.all(np.abs(values[:count] - before[:count])[above] <= FILTER_TOLERANCE * (values[0] - low)):
            if np.array_equal(above, before[:count] > edge):
                break
        ratio = max((values[0] - centre) / radius, 1.0 + 1e-9)
        degree = int(np.clip(np.arccosh(LARGEST_AMPLIFICATION) / np.arccosh(ratio), 4, FILTER_DEGREE))
    return values[:count], X[:, :count]


def _orthonormal(X: FloatArray, rounds: int = 2) -> FloatArray:
    """An orthonormal basis of a subspace, the columns of X, by Cholesky factors where they are not nearly dependent (faster).

    After a single round it is so up to about 1e-8.
    """
    for _ in range(rounds):
        gram = X.T @ X
        lengths = np.sqrt(np.maximum(np.diag(gram), np.finfo(np.float64).tiny))
        gram /= np.outer(lengths, lengths)
        if not np.linalg.eigvalsh(gram)[0] > WELL_APART:
            return np.linalg.qr(X / lengths)[0]
        X = X @ (np.linalg.inv(np.linalg.cholesky(gram)).T / lengths[:, None])
    return X


def _spectral_ends(product: Callable[..., FloatArray], start: FloatArray) -> tuple[float, float]:
    """Numbers somewhat beyond the smallest and the largest eigenvalue of an operator, by a few Lanczos steps."""
    q, before, beta = start / np.linalg.norm(start), np.zeros_like(start), 0.0
    diagonal, side = [], []
    for _ in range(ENDS_STEPS):
        r = product(q[:, None])[:, 0] - beta * before
        diagonal.append(float(q @ r))
        r -= diagonal[-1] * q
        beta = float(np.linalg.norm(r))
        side.append(beta)
        if beta <= 1e-12 * max(abs(diagonal[0]), 1e-300):
            break
        before, q = q, r / beta
    values = sl.eigvalsh_tridiagonal(np.array(diagonal), np.array(side[:-1]))
    return float(values[0] - side[-1]), float(values[-1] + side[-1])


def _chebyshev(product: Callable[..., FloatArray], X: FloatArray, centre: float, radius: float, degree: int) -> FloatArray:
    """Chebyshev filter of a subspace: a polynomial of the operator, small within the radius around the centre, times X."""
    before, now = X, product(X, centre, 1.0 / radius)
    for _ in range(degree - 1):
        before, now = now, product(now, centre, 2.0 / radius, before)
    return now


def krylov_pairs(product: Callable[[FloatArray], FloatArray], n: int, k: int, excess: int = KRYLOV_EXCESS) -> Pairs:
    """The k leading eigenpairs of a positive semidefinite operator, decreasing, from a block Krylov space of a few products.

    Rayleigh-Ritz on the span of ``X, BX, B²X, ...`` with a fixed block X of some columns in excess of those wanted: the number of
    products does not depend on the spectrum, which matters where each is a pass over data on disk.
    """
    width = min(n, k + excess)
    size = min(n, width * KRYLOV_PRODUCTS)
    Q, T = np.empty((n, size), order="F"), np.zeros((size, size))
    Q[:, :width] = sl.qr(np.random.default_rng(0).standard_normal((n, width)), mode="economic", check_finite=False)[0]
    first, stop = 0, width
    while True:
        image = product(Q[:, first:stop])
        T[:stop, first:stop] = Q[:, :stop].T @ image  # of a symmetric T one triangle is enough, so that no image is kept
        if stop == size:
            break
        for _ in range(2):  # once loses orthogonality
            image = image - Q[:, :stop] @ (Q[:, :stop].T @ image)
        first, stop = stop, min(stop + width, size)
        Q[:, first:stop] = sl.qr(image, mode="economic", overwrite_a=True, check_finite=False)[0][:, : stop - first]
        del image
    values, vectors = sl.eigh(T, lower=False, check_finite=False)
    return values[::-1][:k], Q @ vectors[:, ::-1][:, :k]


def subspace_triples(
    times: Callable[[FloatArray], FloatArray],
    transposed_times: Callable[[FloatArray], FloatArray],
    n: int,
    k: int,
    energy: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nearly the k leading singular triples of a matrix A of n columns, by a few subspace iterations from fixed random numbers.

    ``times(X)`` is ``A X``, ``transposed_times(Y)`` is ``A' Y``, `energy` ``||A||²``: the iterations end when the subspace leaves
    nearly as much of it as before.
    """
    width = min(n, -(-(k + SUBSPACE_EXCESS) // SUBSPACE_MULTIPLE) * SUBSPACE_MULTIPLE)
    Q, left_before = np.random.default_rng(0).standard_normal((n, width)), np.inf
    for _ in range(SUBSPACE_ITERATIONS):
        Y = _orthonormal(times(Q), rounds=1)
        B = transposed_times(Y)  # A ≈ Y B'
        left = energy - float(np.vdot(B, B))
        if left_before - left <= SUBSPACE_CHANGE * left:
            break
        Q, left_before = B / np.maximum(np.linalg.norm(B, axis=0), np.finfo(np.float64).tiny), left
    right, values, turn = np.linalg.svd(B, full_matrices=False)
    return Y @ turn[:k].T, values[:k], right[:, :k]


def lanczos_pairs(B: Any, k: int, start: FloatArray, tol: float = 1e-6, max_iter: int | None = None) -> Pairs:
    """The k largest eigenvalues of a symmetric matrix or operator, decreasing, and their vectors, by Lanczos iterations.

    Where these do not converge, a moderate operator is written out, and of a large one what was found is refined once.
    """
    n = B.shape[0]
    size = min(n, max(2 * k + 1, 20))
    try:
        values, vectors = spl.eigsh(B, k, which="LA", v0=start, tol=tol, ncv=size, maxiter=max_iter)
    except spl.ArpackError:
        if n <= WRITTEN_OUT:
            dense = np.asarray(B @ np.eye(n))
            values, vectors = eigenpairs((dense + dense.T) / 2)
        else:
            values, vectors = spl.eigsh(B, k, which="LA", v0=start, tol=100 * tol, ncv=min(n, 4 * size), maxiter=100 * n)
    order = np.argsort(-values, kind="stable")[:k]
    return values[order], vectors[:, order]
