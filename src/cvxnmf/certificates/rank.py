"""Bounds for all nonnegative factorisations of a rank, whoever computed them (docs/mathematics.md).

For squared error and any N >= 0, every X >= 0 of rank at most k has

    ||A - X||^2  >=  ||A||^2 - 2 <A + N, X> + ||X||^2  >=  ||A||^2 - sum_{i <= k} sigma_i(A + N)^2,

with the positive eigenvalues in place of the singular values if ``X = UU'``. N is the witness; N = 0 is the tail of the
singular values of A. Where entries are missing, the bound is that of a fully observed part of the rows and columns, which is
part of the witness. For KL and rank one the best model is the product of the margins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, eigsh, svds

from cvxnmf.certificates.rounding import (
    UNIT,
    UNITS_PER_TERM,
    Array,
    CertificateError,
    Proof,
    is_finite,
    largest_eigenvalues,
    log,
    of_moderate_size,
    safe_bound,
    witness_arrays,
)
from cvxnmf.certificates.row_chunks import in_pieces, is_chunked, pieces, walked

#: What the bounds speak of.
SCOPE = "rank-k"
#: Inner products of vectors that count as orthonormal may be off by this much.
ORTHONORMAL = 1e-10
#: Random vectors beyond the rank that join given ones, and steps that all of them take towards the leading ones.
RANDOM_EXCESS, POWER_STEPS = 5, 3

#: Up to this many nodes eigenvalues are iterated to the last bit, and beyond to this share.
LARGEST_EXACT, LOOSE = 20_000, 1e-5


class _Terms(NamedTuple):
    """The factorisations that a bound is about."""

    loss: str
    n_components: int
    symmetric: bool
    scaling: str | None = None


def _terms(statement: Mapping[str, Any]) -> _Terms:
    try:
        terms = _Terms(statement["loss"], statement["n_components"], statement["symmetric"], statement.get("scaling"))
        whole = isinstance(terms.n_components, int) and not isinstance(terms.n_components, bool)
        known = terms.loss in ("mse", "kl") and whole and terms.n_components >= 1 and isinstance(terms.symmetric, bool)
        known = known and (terms.scaling is None or (terms.scaling == "degree" and terms.symmetric and terms.loss == "mse"))
    except (KeyError, TypeError, ValueError, OverflowError):
        known = False
    if not known:
        raise CertificateError("The certificate's statement of the problem is not understood.")
    return terms


def _data(A: Any, terms: _Terms) -> Any:
    """The data as a float64 array, NaN where entries are missing, or as a sparse matrix; scaled as the terms say."""
    data = _given_data(A, terms.symmetric)
    return data if terms.scaling is None else _degree_scaled(data)


def _degree_scaled(A: Any) -> Any:
    """``A_ij / sqrt(d_i d_j)`` with the row sums d; rows without entries stay as they are.

    Each entry is off by the roundings of a row sum, a root, a quotient and two products, which `_scaling_error` allows for.
    """
    sums = np.asarray(A.sum(axis=1)).ravel()
    if not (is_finite(sums) and sums.max(initial=0.0) > 0):
        raise CertificateError("The row sums of the data must be finite, with some of them positive.")
    inverse = 1.0 / np.sqrt(np.where(sums > 0, sums, 1.0))
    if sp.issparse(A):
        return sp.csr_array(sp.diags_array(inverse) @ A @ sp.diags_array(inverse))
    return A * inverse[:, None] * inverse[None, :]


def _scaling_error(A: Any, terms: _Terms) -> float:
    """Bound on the relative error of every scaled entry."""
    return 0.0 if terms.scaling is None else (A.shape[0] + 16) * UNIT


def _given_data(A: Any, symmetric: bool) -> Any:
    """The data as they are, made symmetric to the last bit."""
    A = A.compute() if is_chunked(A) else A
    try:
        real = not isinstance(A, np.ma.MaskedArray) and (A if sp.issparse(A) else np.asarray(A)).dtype.kind in "fiubO"
        data = (A.tocsr().astype(np.float64) if sp.issparse(A) else np.asarray(A, dtype=np.float64)) if real else None
    except (TypeError, ValueError, OverflowError):
        data = None
    entries: Any = np.full(1, np.inf) if data is None else (data.data if sp.issparse(data) else data)
    if data is None or data.ndim != 2 or 0 in data.shape or np.isinf(entries).any() or np.nanmin(entries, initial=0.0) < 0:
        raise CertificateError("The data must be a matrix of nonnegative numbers.")
    if symmetric and data.shape[0] != data.shape[1]:
        raise CertificateError("The data must be a square matrix.")
    return (data + data.T) / 2 if symmetric else data


def scale(A: Any, statement: Mapping[str, Any]) -> float:
    """Size of the observed data, against which rounding is judged."""
    terms = _terms(statement)
    if in_pieces(A) and not (terms.symmetric or terms.scaling):
        walk = walked(A)
        return walk.total if terms.loss == "kl" else walk.energy
    data = _data(A, terms)
    entries = data.data if sp.issparse(data) else data
    return float(np.nansum(entries) if terms.loss == "kl" else np.nansum(entries * entries))


def _observed_part(data: Any, witness: Mapping[str, Array], symmetric: bool) -> Array:
    """The rows and columns that the witness names, all of them if it names none."""
    dense = np.asarray(data.toarray() if sp.issparse(data) else data)
    if "rows" in witness:
        rows, columns = (part > 0 for part in witness_arrays(witness, "rows", "columns"))
        if rows.shape != dense.shape[:1] or columns.shape != dense.shape[1:] or not (rows.any() and columns.any()):
            raise CertificateError("The rows and columns of the witness do not match the data.")
        if symmetric and not np.array_equal(rows, columns):
            raise CertificateError("The rows and columns of the witness must agree for a symmetric bound.")
        dense = dense[np.ix_(rows, columns)]
    if not is_finite(dense):
        raise CertificateError("The data have missing entries where the witness needs them.")
    return dense


def _prove_dual(A: Any, statement: Mapping[str, Any], witness: Mapping[str, Array]) -> Proof:
    """The bound of the witness N."""
    terms = _terms(statement)
    data = _data(A, terms)
    part = _observed_part(data, witness, terms.symmetric)
    (N,) = witness_arrays(witness, "N") if "N" in witness else (np.zeros_like(part),)
    if terms.loss != "mse":
        raise CertificateError("A bound of this kind is known for squared error only.")
    if N.shape != part.shape or not N.min() >= 0:
        raise CertificateError(f"The witness of shape {N.shape} does not match data of shape {part.shape}, or is negative.")
    if terms.symmetric and not np.array_equal(N, N.T):
        raise CertificateError("The witness is not symmetric.")
    of_moderate_size(part, terms.loss)
    norm = float(np.square(np.ascontiguousarray(part)).sum())  # summed pairwise
    error = _scaling_error(data, terms)
    taken = _taken_energy(part + N, terms, error * np.sqrt(norm))
    lost = UNITS_PER_TERM * UNIT * (norm + taken) + 4 * error * norm
    return Proof(safe_bound(norm - taken, lost), True, scale(A, statement))


def _prove_tail(A: Any, statement: Mapping[str, Any], witness: Mapping[str, Array]) -> Proof:
    """The tail of the singular values of the data; of files and dask arrays piece by piece."""
    terms = _terms(statement)
    if in_pieces(A) and "rows" not in witness and not (terms.symmetric or terms.scaling):
        return walked_tail(A, statement)
    return _prove_dual(A, statement, {name: witness[name] for name in witness if name != "N"})


def walked_tail(A: Any, statement: Mapping[str, Any]) -> Proof:
    """The same in bounded memory, from the smaller Gram matrix summed over pieces of the data."""
    walk = walked(A, gram=True)
    if not walk.complete:
        raise CertificateError("The data have missing entries where the witness needs them.")
    assert walk.gram is not None
    return gram_tail(walk.gram, walk.energy, walk.largest, max(A.shape), statement)


def gram_tail(G: Array, energy: float, largest: float, count: int, statement: Mapping[str, Any]) -> Proof:
    """The tail of the singular values from a Gram matrix.

    Parameters
    ----------
    G : ndarray
        ``A'A`` or ``AA'``, whichever is smaller, its entries sums of `count` products in any order.
    energy, largest : float
        ``||A||²``, summed pairwise in pieces and exactly over them, and the largest entry.
    count : int
        The larger side of A.
    statement : mapping
        What the bound is about.
    """
    terms = _terms(statement)
    if terms.loss != "mse" or terms.symmetric or terms.scaling:
        raise CertificateError("A bound of this kind is known for the squared error of factors U and V only.")
    of_moderate_size(np.array([largest]), terms.loss)
    taken = _gram_energy(G, count, float(np.sqrt(energy)), terms.n_components)
    return Proof(safe_bound(energy - taken, UNITS_PER_TERM * UNIT * (energy + taken)), True, energy)


def _gram_energy(G: Array, count: int, norm: float, k: int) -> float:
    """An upper bound on the sum of the k largest ``sigma_i²`` from a Gram matrix whose entries are sums of `count` products."""
    squares = largest_eigenvalues(G, k) + 2 * (count + 16) * UNIT * norm**2
    values = np.sqrt(squares) + 2 * UNIT * norm
    return float(np.sum(values * values)) * (1 + 8 * UNIT * len(values))


def _taken_energy(Y: Array, terms: _Terms, error: float) -> float:
    """An upper bound on ``sum_{i <= k} sigma_i(Y)^2``, of the positive eigenvalues if symmetric; Y is off by `error` in norm."""
    norm = float(np.linalg.norm(Y))
    if terms.symmetric:
        values = largest_eigenvalues(Y, terms.n_components) + 2 * UNIT * norm + 2 * error  # Y was rounded
        return float(np.sum(values * values)) * (1 + 8 * UNIT * len(Y))
    thin = Y if Y.shape[0] >= Y.shape[1] else Y.T
    return _gram_energy(thin.T @ thin, len(thin), norm, terms.n_components)


def lanczos_values(data: Any, n_components: int, symmetric: bool) -> tuple[Array, Array]:
    """The largest singular values (positive eigenvalues) of a sparse matrix, and the norms of their residuals."""
    start = np.ones(min(data.shape)) / min(data.shape) ** 0.5
    if symmetric:
        tol = 0.0 if data.shape[0] <= LARGEST_EXACT else LOOSE  # what is lost is added as residuals
        values, V = eigsh(data, k=n_components, which="LA", v0=start, tol=tol)
        return np.maximum(values, 0.0), np.linalg.norm(data @ V - V * values, axis=0)
    U, values, Vt = svds(data, k=n_components, v0=start)
    return values, np.linalg.norm(data @ Vt.T - U * values, axis=0) + np.linalg.norm(data.T @ U - Vt.T * values, axis=0)


def _prove_lanczos(A: Any, statement: Mapping[str, Any], witness: Mapping[str, Array]) -> Proof:
    """The tail of the singular values of a large matrix, from Lanczos iterations or from given vectors: not rigorous."""
    terms = _terms(statement)
    if "vectors" in witness:
        return _prove_ritz(A, terms, witness)
    data = _data(A, terms)
    if terms.loss != "mse" or not sp.issparse(data) or np.isnan(data.data).any():
        raise CertificateError("A bound of this kind is known for the squared error of sparse, fully observed data only.")
    try:
        values, residuals = lanczos_values(data, terms.n_components, terms.symmetric)
    except (ArpackError, TypeError, ValueError):
        raise CertificateError("The singular values of the data could not be computed.") from None
    reached = np.sort(values + residuals)[::-1]
    if terms.scaling is not None:  # 1 is an eigenvalue once for every component, of which iterations see a single one
        parts = connected_components(data, directed=False)[0] - int(np.count_nonzero(np.diff(data.indptr) == 0))
        reached[:parts] = np.maximum(reached[:parts], 1.0)
    norm, taken = float(data.data @ data.data), float(np.sum(reached**2))
    return Proof(safe_bound(norm - taken, UNITS_PER_TERM * UNIT * (norm + taken)), False, norm)


def _prove_ritz(A: Any, terms: _Terms, witness: Mapping[str, Array]) -> Proof:
    """The tail of the singular values from vectors that span nearly all of the leading ones, in a few walks over the data."""
    (Z,) = witness_arrays(witness, "vectors")
    if terms.loss != "mse" or terms.symmetric or Z.ndim != 2 or len(Z) != A.shape[1] or Z.shape[1] < terms.n_components:
        raise CertificateError("The vectors of the witness do not match the data.")
    skew = float(np.abs(Z.T @ Z - np.eye(Z.shape[1])).max())
    if not skew < ORTHONORMAL:
        raise CertificateError("The vectors of the witness are not orthonormal.")
    data = None if in_pieces(A) else _given_data(A, symmetric=False)

    def product(Q: Array) -> Array:
        image = np.zeros(Q.shape)
        for piece in pieces(A) if data is None else [data]:
            image += piece.T @ (piece @ Q)
        return image

    energy = walked(A).energy if data is None else float(np.square(data.data if sp.issparse(data) else data).sum())
    return ritz_tail(Z, product, energy, terms.n_components)


def ritz_tail(Z: Array, product: Callable[[Array], Array], energy: float, k: int) -> Proof:
    """The tail from orthonormal vectors Z that someone gives, products ``A'AX`` and ``||A||²``; not rigorous.

    Vectors that leave leading ones out would prove too much, so fixed random ones join them, and all take a few steps towards
    the leading ones. On the span of the result Q the eigenvalues of ``A'A`` are those of ``Q'A'AQ`` up to their residuals.
    """
    count = max(0, min(len(Z) - Z.shape[1], k + RANDOM_EXCESS))
    Q = np.hstack([Z, np.random.default_rng(0).standard_normal((len(Z), count))])
    for _ in range(POWER_STEPS):
        Q = _finite(product(np.linalg.qr(Q)[0]))
    Q = np.linalg.qr(Q)[0]
    image = _finite(product(Q))
    T = Q.T @ image
    values, W = np.linalg.eigh((T + T.T) / 2)
    values, W = values[::-1][:k], W[:, ::-1][:, :k]
    residual = float(np.linalg.norm(image @ W - (Q @ W) * values))  # of all, so that equal values may be rotated
    taken = float(np.sum(np.maximum(values, 0.0))) + math.sqrt(k) * residual
    if not math.isfinite(energy):
        raise CertificateError("The data have missing entries, or are too large.")
    return Proof(safe_bound(energy - taken, UNITS_PER_TERM * UNIT * (energy + taken)), False, energy)


def _finite(X: Array) -> Array:
    if not is_finite(X):
        raise CertificateError("The data have missing entries, or are too large.")
    return X


def _prove_independence(A: Any, statement: Mapping[str, Any], witness: Mapping[str, Array]) -> Proof:
    """KL of rank one: ``KL(A || rc'/sum A)``."""
    terms = _terms(statement)
    if terms.loss != "kl" or terms.n_components != 1:
        raise CertificateError("A bound of this kind is known for KL of rank one only.")
    data = _data(A, terms)
    part = _observed_part(data, witness, terms.symmetric)
    of_moderate_size(part, terms.loss)
    rows, columns, total = part.sum(axis=1), part.sum(axis=0), float(part.sum())
    if not 0 < total < math.inf:
        raise CertificateError("The bound is not a finite number.")
    pieces = [(part, 1.0), (rows, -1.0), (columns, -1.0), (np.array([total]), 1.0)]
    terms_sum = sum(sign * float(np.sum(x * log(x))) for x, sign in pieces)
    size = sum(float(np.sum(x * (np.abs(log(x)) + 1.0))) for x, _ in pieces)
    return Proof(safe_bound(terms_sum, (UNITS_PER_TERM + sum(part.shape)) * UNIT * size), True, scale(A, statement))


#: Kinds of bounds, and who proves them.
KINDS = {"dual": _prove_dual, "tail": _prove_tail, "lanczos": _prove_lanczos, "independence": _prove_independence}
