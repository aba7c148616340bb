"""The one place that calls eigensolvers, and the spectrum of noise.

Drivers by measurement (2 cores): ``evd`` is the fastest full solver; a range-restricted driver wins
when at most a tenth of the pairs is wanted; small thin products are faster on one BLAS thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from scipy.optimize import brentq
from threadpoolctl import ThreadpoolController

from cvxnmf.results import FloatArray

#: Below this size two BLAS threads stall each other more than they help.
SINGLE_THREAD_BELOW = 600
#: Up to this share of the pairs a range-restricted driver beats a full decomposition.
PARTIAL_SHARE = 0.1
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
#: Columns of a Krylov block beyond those wanted, and products with it.
KRYLOV_EXCESS, KRYLOV_PRODUCTS = 10, 7
#: Singular values below this share of the largest are lost in a Gram matrix.
SMALLEST_GRAM_SHARE = 1e-5


#: What was allowed before BLAS was held to one thread.
_ALLOWED: ContextVar[int | None] = ContextVar("allowed threads", default=None)


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def single_thread(n: int = 0, below: int = SINGLE_THREAD_BELOW) -> Iterator[None]:
    """Run BLAS on one thread inside the context, unless `n` is large enough for two to pay.

    On a busy machine threads of BLAS wait for each other by spinning, which makes small products a hundred times slower.
    """
    if n >= below:
        yield
        return
    allowed = _ALLOWED.set(thread_count())
    try:
        with _threads().limit(limits=1, user_api="blas"):
            yield
    finally:
        _ALLOWED.reset(allowed)


def thread_count() -> int:
    """Threads that BLAS may use outside of :func:`single_thread`, so that one setting governs all."""
    allowed = _ALLOWED.get()
    if allowed is not None:
        return allowed
    return max([1, *(int(library["num_threads"]) for library in _threads().info() if library["user_api"] == "blas")])


def add_outer(M: FloatArray, x: FloatArray, y: FloatArray) -> None:
    """Add ``x y'`` to M in place, without forming it."""
    sl.blas.dger(1.0, y, x, a=M.T, overwrite_a=True)  # transposed, a C array is what BLAS wants


def eigenpairs_above(B: FloatArray, threshold: float, expected: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues above `threshold` in decreasing order, with their vectors.

    Parameters
    ----------
    B : ndarray of shape (n, n)
        Symmetric; overwritten.
    threshold : float
        Pairs at or below it are left out.
    expected : int, optional
        How many pairs to expect; few expected pairs are computed by a restricted driver, which is
        only trusted if it also finds one pair below the threshold.
    """
    n = len(B)
    wanted = n if expected is None else expected + 2 + n // 50  # some more pairs cost next to nothing
    if n > 200 and wanted <= PARTIAL_SHARE * n:
        values, vectors = sl.eigh(B, subset_by_index=[n - wanted, n - 1], check_finite=False)
        if values[0] > threshold:
            return eigenpairs_above(B, threshold)
    else:
        values, vectors = sl.eigh(B.T, driver="evd", overwrite_a=True, check_finite=False)
    keep = int(np.searchsorted(-values[::-1], -threshold, side="left"))
    return values[::-1][:keep], vectors[:, ::-1][:, :keep]


def parts(M: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Positive and negative part of a symmetric M, both positive semidefinite up to rounding: ``M = positive - negative``."""
    values, vectors = sl.eigh(M, driver="evd", check_finite=False)
    first = int(np.searchsorted(values, 0.0, side="right"))
    if 2 * first >= len(values):  # fewer positive pairs: their product is cheaper
        half = vectors[:, first:] * np.sqrt(values[first:])
        positive: FloatArray = half @ half.T
        return positive, positive - M
    half = vectors[:, :first] * np.sqrt(-values[:first])
    negative: FloatArray = half @ half.T
    return M + negative, negative


def top_part(M: FloatArray, k: int, symmetric: bool) -> tuple[FloatArray, float]:
    """Best approximation of rank k of M, positive semidefinite if `symmetric`, and its squared norm."""
    if symmetric:
        values, vectors = _top_pairs(M, k)
        values = np.maximum(values, 0.0)
        return (vectors * values) @ vectors.T, float(np.sum(values * values))
    if M.shape[0] < M.shape[1]:
        X, energy = top_part(M.T, k, symmetric)
        return X.T, energy
    squares, right = _top_pairs(M.T @ M, k)
    return (M @ right) @ right.T, float(np.sum(squares))


def _top_pairs(M: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """The k largest eigenvalues of M and their vectors, in increasing order."""
    n = len(M)
    if n > 200 and k <= PARTIAL_SHARE * n:
        values, vectors = sl.eigh(M, subset_by_index=[n - k, n - 1], check_finite=False)
        return values, vectors
    values, vectors = sl.eigh(M, driver="evd", check_finite=False)
    return values[n - k :], vectors[:, n - k :]


def singular_triples_above(B: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Left vectors, values and right vectors of B for singular values above `threshold`, in decreasing order.

    From the eigenpairs of the smaller Gram matrix, which is several times faster than a decomposition of B and as accurate for
    values that are not tiny against the largest; where the threshold is, B itself is decomposed.
    """
    if B.shape[0] < B.shape[1]:
        right, values, left = singular_triples_above(B.T, threshold)
        return left, values, right
    squares, vectors = sl.eigh(B.T @ B, driver="evd", check_finite=False)
    values = np.sqrt(np.maximum(squares[::-1], 0.0))
    if threshold < SMALLEST_GRAM_SHARE * values[0]:
        left, values, right = sl.svd(B, full_matrices=False, check_finite=False)
        keep = int(np.count_nonzero(values > max(threshold, np.finfo(np.float64).eps * len(B) * values[0])))
        return left[:, :keep], values[:keep], right[:keep].T
    keep = int(np.count_nonzero(values > threshold))
    right = vectors[:, ::-1][:, :keep]
    return B @ (right / values[:keep]), values[:keep], right


def spectral_norm(B: FloatArray) -> float:
    """Largest singular value of B."""
    unit = max(float(B.max(initial=0.0)), -float(B.min(initial=0.0)))
    if not 0 < unit < np.inf:
        return unit
    thin = (B if B.shape[0] >= B.shape[1] else B.T) / unit
    top = sl.eigh(thin.T @ thin, eigvals_only=True, subset_by_index=[thin.shape[1] - 1] * 2, check_finite=False)
    return float(unit * np.sqrt(max(0.0, top[0])))


def smallest_eigenvalue(B: FloatArray, metric: FloatArray | None = None) -> float:
    """Smallest eigenvalue of B, or of the pencil (B, metric) with a positive definite metric; both are overwritten."""
    metric = None if metric is None else metric.T  # transposed, a C array is what LAPACK wants: no copy
    options = {"eigvals_only": True, "subset_by_index": [0, 0], "overwrite_a": True, "overwrite_b": True}
    values = sl.eigh(B.T, metric, check_finite=False, **options)
    return float(values[0])


def noise_edge(variance: FloatArray) -> float:
    """Largest eigenvalue that pure noise can show (docs/mathematics.md).

    For a symmetric random matrix whose entries have variance close to ``a_i a_j`` the spectrum ends at
    the minimum over ``t > max a`` of ``t sqrt(sum_j a_j / (t - a_j))``, found as the root of the derivative.

    Parameters
    ----------
    variance : ndarray of shape (n,)
        Row sums ``r`` of the matrix of entry variances; ``a = r / sqrt(sum r)``.
    """
    total = float(variance.sum())
    if total == 0:
        return 0.0
    a = variance / np.sqrt(total)
    top = float(a.max())

    def slope(t: float) -> float:
        q = a / (t - a)
        return float(np.sum(q * q) - np.sum(q))

    high = 2.0 * top
    while slope(high) > 0:
        high *= 2.0
    t = brentq(slope, top * (1.0 + 1e-12), high, xtol=1e-13 * top)
    return float(t * np.sqrt(np.sum(a / (t - a))))


def dispersion(
    A: Any,
    s: FloatArray,
    variance: FloatArray,
    unit_edge: float,
    pairs: Callable[[float, int], tuple[FloatArray, FloatArray]] | None = None,
) -> float:
    """Noise variance per unit of model variance, from the energy of the residual outside the signal.

    Eigenvalues of the standardised residual ``S^-1 (A - dd'/1'd) S^-1`` above ``unit_edge * sqrt(phi)`` are signal. The rest is
    compared with what noise of variance ``phi a_i a_j`` leaves outside the signal's directions, ``phi (sum_i a_i (1 - p_i))^2``
    with their leverages p; down to the fixed point. Without the leverages a strong signal takes the noise with it.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Data.
    s, variance : ndarray of shape (n,)
        The metric, and the row sums of the matrix of entry variances of the model, ``a = variance / sqrt(sum variance)``.
    unit_edge : float
        The noise edge of that model.
    pairs : callable, optional
        ``pairs(threshold, count)`` finds the leading eigenpairs of the standardised residual, exactly only above the threshold;
        left out, :func:`modularity_pairs` does.
    """
    pairs = pairs or (lambda threshold, count: modularity_pairs(A, s, count))
    n, energy = A.shape[0], _modularity_energy(A, s)
    a = variance / np.sqrt(variance.sum())
    values, vectors, count = np.empty(0), np.empty((n, 0)), 0
    phi = energy / float(a.sum()) ** 2
    while count < n:
        threshold = unit_edge * np.sqrt(phi)
        while len(values) < n and (not len(values) or values[-1] > threshold):
            values, vectors = pairs(threshold, min(max(16, 2 * len(values)), n))
        more = int(np.count_nonzero(values > threshold))
        if more <= count:
            break
        leverages = np.sum(vectors[:, :more] ** 2, axis=1)
        room = float(a @ (1.0 - np.minimum(leverages, 1.0))) ** 2
        smaller = max(0.0, energy - float(np.sum(values[:more] ** 2))) / max(room, 1e-6 * float(a.sum()) ** 2)
        if not smaller < phi:
            break
        phi, count = smaller, more
    return phi


def _modularity_energy(A: Any, s: FloatArray) -> float:
    """``||S^-1 (A - dd'/1'd) S^-1||^2`` of a sparse A."""
    degrees = np.asarray(A.sum(axis=1)).ravel()
    expected = degrees / s / np.sqrt(degrees.sum())
    coordinates = A.tocoo()
    entries = coordinates.data / (s[coordinates.row] * s[coordinates.col])
    there = expected[coordinates.row] * expected[coordinates.col]
    return float(np.sum((entries - there) ** 2) + max(0.0, float(expected @ expected) ** 2 - float(np.sum(there * there))))


def modularity_pairs(A: Any, s: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """The largest eigenvalues of ``S^-1 (A - dd'/1'd) S^-1``, in decreasing order, and their vectors; A is sparse."""
    n = A.shape[0]
    degrees = np.asarray(A.sum(axis=1)).ravel()
    expected = degrees / s / np.sqrt(degrees.sum())
    scaled = sp.diags_array(1.0 / s) @ A @ sp.diags_array(1.0 / s)
    if n <= FULL_GRAM or 5 * count >= n:
        B = scaled.toarray()
        add_outer(B, -expected, expected)
        values, vectors = sl.eigh(B, overwrite_a=True, subset_by_index=[n - count, n - 1], check_finite=False)
        return values[::-1], vectors[:, ::-1]
    operator = spl.LinearOperator((n, n), matvec=lambda x: scaled @ x - expected * (expected @ x), dtype=np.float64)
    return lanczos(operator, count, np.random.default_rng(0).standard_normal(n))


def rectangular_noise_edge(row_variance: FloatArray, column_variance: FloatArray) -> float:
    """Largest singular value that pure noise can show in a rectangular matrix (docs/mathematics.md).

    For entry variances close to ``a_i b_j`` it is the least ``sqrt(q t u)`` over q > 0, where t and u solve
    ``sum a_i / (t - a_i) = q`` and ``sum b_j / (u - b_j) = q``; found as the root of the derivative.

    Parameters
    ----------
    row_variance, column_variance : ndarray
        Row and column sums of the matrix of entry variances.
    """
    total = float(row_variance.sum())
    if total == 0:
        return 0.0
    a, b = row_variance / np.sqrt(total), column_variance / np.sqrt(total)

    def inverse(q: float, x: FloatArray) -> float:
        top = float(x.max())
        low, high = top * (1.0 + (1.0 - 1e-9) / q), top + float(x.sum()) * (1.0 + 1e-9) / q
        return float(brentq(lambda t: np.sum(x / (t - x)) - q, low, high, xtol=1e-14 * top))

    def decline(log_q: float) -> float:
        q, share = np.exp(log_q), 1.0
        for x in (a, b):
            t = inverse(q, x)
            share -= q / (t * float(np.sum(x / (t - x) ** 2)))
        return share

    low, high = -1.0, 1.0
    while decline(low) > 0:
        low -= 2.0
    while decline(high) < 0:
        high += 2.0
    q = float(np.exp(brentq(decline, low, high, xtol=1e-12)))
    return float(np.sqrt(q * inverse(q, a) * inverse(q, b)))


def rectangular_dispersion(B: FloatArray, row_variance: FloatArray, column_variance: FloatArray, unit_edge: float) -> float:
    """Noise variance per unit of model variance, from the energy of the residual `B` outside the signal.

    Singular values above ``unit_edge * sqrt(phi)`` are signal. The rest is compared with what noise of variance
    ``phi a_i b_j`` leaves outside the signal's rows and columns, ``phi sum_i a_i (1 - p_i) sum_j b_j (1 - q_j)`` with their
    leverages p and q; down to the fixed point. Without the leverages a few strong directions in a thin matrix take the
    noise with them.
    """
    total = np.sqrt(float(row_variance.sum()))
    left, values, right = sl.svd(B, full_matrices=False, check_finite=False)
    signal, phi = 0, np.inf
    while signal < len(values):
        rows = float(row_variance @ (1.0 - np.sum(left[:, :signal] ** 2, axis=1))) / total
        columns = float(column_variance @ (1.0 - np.sum(right[:signal] ** 2, axis=0))) / total
        smaller = float(np.sum(values[signal:] ** 2)) / max(rows * columns, np.finfo(np.float64).tiny)
        more = int(np.count_nonzero(values > unit_edge * np.sqrt(smaller)))
        if not smaller < phi or more <= signal:
            return float(min(phi, smaller))
        signal, phi = more, smaller
    return 0.0


def leading_eigenpairs(B: Any, k: int) -> tuple[FloatArray, FloatArray]:
    """The k largest eigenvalues of a symmetric matrix, decreasing, and their vectors."""
    n = B.shape[0]
    if n > FULL_GRAM and 5 * k < n:
        return lanczos(B, k, np.asarray(B @ np.ones(n)).ravel())
    dense = B.toarray() if sp.issparse(B) else B
    values, vectors = sl.eigh(dense, subset_by_index=[n - k, n - 1], check_finite=False)
    return values[::-1], vectors[:, ::-1]


def operator_pairs(product: Callable[[FloatArray], FloatArray], n: int, count: int) -> tuple[FloatArray, FloatArray]:
    """The largest eigenvalues of a symmetric operator, decreasing, and their vectors; of a small one by a full decomposition."""
    if n <= SMALL_OPERATOR or 3 * count >= n:
        B = np.column_stack([product(column) for column in np.eye(n)])
        values, vectors = sl.eigh((B + B.T) / 2, check_finite=False)
        return values[::-1][:count], vectors[:, ::-1][:, :count]
    operator = spl.LinearOperator((n, n), matvec=product, dtype=np.float64)
    return lanczos(operator, count, np.random.default_rng(0).standard_normal(n), 1e-4)


def pairs_above(
    product: Callable[..., FloatArray], n: int, edge: float, count: int, heard: Callable[[int], Any] | None = None
) -> tuple[FloatArray, FloatArray]:
    """The largest eigenvalues of a large symmetric operator, decreasing, and their vectors; exact only above `edge`.

    Subspace iterations with polynomials of Chebyshev that damp everything between the lower end of the spectrum and the edge,
    where eigenvalues lie so close together that Lanczos iterations would take very long to tell them apart.

    Parameters
    ----------
    product : callable
        ``product(X, shift, scale, Y)`` is ``scale (B X - shift X) - Y`` with the operator B; Y may be left out, and all but X.
    n : int
        Its size.
    edge : float
        What need not be resolved lies below it.
    count : int
        How many pairs are wanted; a few more are carried along.
    heard : callable, optional
        Told the number of every round.
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
        if heard is not None:
            heard(step + 1)
        above = values[:count] > edge
        if step and np.all(np.abs(values[:count] - before[:count])[above] <= FILTER_TOLERANCE * (values[0] - low)):
            if np.array_equal(above, before[:count] > edge):
                break
        ratio = max((values[0] - centre) / radius, 1.0 + 1e-9)
        degree = int(np.clip(np.arccosh(LARGEST_AMPLIFICATION) / np.arccosh(ratio), 4, FILTER_DEGREE))
    return values[:count], X[:, :count]


def _orthonormal(X: FloatArray) -> FloatArray:
    """An orthonormal basis of the columns, by Cholesky factors where they are not nearly dependent, which is faster."""
    for _ in range(2):
        X = X / np.maximum(np.linalg.norm(X, axis=0), np.finfo(np.float64).tiny)
        gram = X.T @ X
        if not np.linalg.eigvalsh(gram)[0] > WELL_APART:
            return np.linalg.qr(X)[0]
        X = X @ np.linalg.inv(np.linalg.cholesky(gram)).T
    return X


def _spectral_ends(product: Callable[..., FloatArray], start: FloatArray) -> tuple[float, float]:
    """Numbers somewhat beyond the smallest and the largest eigenvalue, by a few Lanczos steps."""
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
    """The polynomial of Chebyshev of the operator, moved so that it is small within the radius around the centre."""
    before, now = X, product(X, centre, 1.0 / radius)
    for _ in range(degree - 1):
        before, now = now, product(now, centre, 2.0 / radius, before)
    return now


def krylov_pairs(product: Callable[[FloatArray], FloatArray], n: int, k: int) -> tuple[FloatArray, FloatArray]:
    """The k largest eigenvalues of a positive semidefinite operator, decreasing, and their vectors, by a few block products.

    Rayleigh-Ritz on the span of ``X, BX, B²X, ...`` with a fixed block X of some more columns than wanted: the number of products
    does not depend on the spectrum, which matters where each is a pass over data on disk.
    """
    width = min(n, k + KRYLOV_EXCESS)
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


def lanczos(B: Any, k: int, start: FloatArray, tol: float = 1e-6) -> tuple[FloatArray, FloatArray]:
    """The k largest eigenvalues of a symmetric matrix or operator, decreasing, and their vectors, by Lanczos iterations.

    Where these do not converge, a moderate operator is written out, and of a large one what was found is refined once.
    """
    n = B.shape[0]
    size = min(n, max(2 * k + 1, 20))
    try:
        values, vectors = spl.eigsh(B, k, which="LA", v0=start, tol=tol, ncv=size)
    except spl.ArpackError:
        if n <= WRITTEN_OUT:
            dense = np.asarray(B @ np.eye(n))
            values, vectors = sl.eigh((dense + dense.T) / 2, check_finite=False)
        else:
            values, vectors = spl.eigsh(B, k, which="LA", v0=start, tol=100 * tol, ncv=min(n, 4 * size), maxiter=100 * n)
    order = np.argsort(-values, kind="stable")[:k]
    return values[order], vectors[:, order]
