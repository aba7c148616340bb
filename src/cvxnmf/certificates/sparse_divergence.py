"""The Ky Fan bound of `divergence` for large sparse data: y is given on the entries of A and zero elsewhere, and so is G.

    KL  >=  sum A log y + S - S u'Gv - S sum_{i < k} sigma_i((I - uu') G (I - vv')),     G_ij = u_i v_j y_ij,

with the singular values bounded by iterations, with a probability of at least 1 - 1e-12 (see `krylov`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from cvxnmf.certificates.data import witness_arrays
from cvxnmf.certificates.krylov import Product, leading_eigenvalues, random_source, spaces_in_turn
from cvxnmf.certificates.leading import DEPTHS, ITERATED, WIDTH, best_settled, leading_vectors, probable_proof
from cvxnmf.certificates.losses import KL, require_moderate_size
from cvxnmf.certificates.statement import Array, CertificateError, Proof, Witness

if TYPE_CHECKING:
    from cvxnmf.certificates.rank import RankStatement


def prove_sparse_ky_fan(A: Any, statement: RankStatement, witness: Witness) -> Proof:
    """The Ky Fan bound on the divergence of sparse data from y, given on the entries row by row."""
    data = sp.csr_array(statement.data(A), copy=True)
    data.sum_duplicates()
    data.eliminate_zeros()
    (y,) = witness_arrays(witness, "y")
    if y.shape != data.data.shape or not data.nnz or not y.min() > 0 or np.isnan(data.data).any():
        raise CertificateError("The witness must be positive and match the entries of sparse, fully observed data.")
    require_moderate_size(data.data, KL)
    total = float(data.data.sum())
    u, v = (np.sqrt(np.asarray(data.sum(axis=axis)).ravel() / total) for axis in (1, 0))
    rows = np.repeat(np.arange(data.shape[0]), np.diff(data.indptr))
    G = sp.csr_array((u[rows] * y * v[data.indices], data.indices, data.indptr), shape=data.shape)
    source = random_source(np.array(data.shape), data.indptr.astype(np.int64), data.indices.astype(np.int64), data.data, y)
    logs, mass, scale = float(data.data @ np.log(y)), float(u @ (G @ v)), statement.scale(A)
    slack = ITERATED * (float(data.data @ np.abs(np.log(y))) + total * (1.0 + mass))
    sums = _leading_sums(G, u, v, statement.n_components - 1, statement.symmetric, source)
    totals = ([logs + total * (1.0 - mass - leading) for leading in upper_and_found] for upper_and_found in sums)
    return best_settled(probable_proof(bound, found, slack, scale) for bound, found in totals)


def _leading_sums(G: Any, u: Array, v: Array, count: int, symmetric: bool, source: np.random.RandomState) -> Any:
    """Bounds on the summed leading singular values (or positive eigenvalues) of sparse G beside u and v, and those found."""
    if count == 0:
        return [(0.0, 0.0)]
    product, n = _beside(G, u, v, symmetric)
    square = LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)
    Q = leading_vectors(square, count, source.standard_normal(n))

    def leading_sum(values: Array) -> float:
        positive = np.maximum(values, 0.0)
        return float(np.sum(positive if symmetric else np.sqrt(positive)))

    spaces = spaces_in_turn(n, WIDTH, DEPTHS, not symmetric)
    bounds = leading_eigenvalues(product, Q, source, spaces, min(count, n), leading_sum)
    return ((leading_sum(upper), leading_sum(found)) for upper, found in bounds)


def _beside(G: Any, u: Array, v: Array, symmetric: bool) -> tuple[Product, int]:
    """Products with ``Y'Y`` (smaller side), ``Y = (I - uu') G (I - vv')`` for sparse G, or ``(Y + Y') / 2``, and their size."""
    transposed = G.T.tocsr()

    def project(unit: Array, X: Array) -> Array:
        return np.asarray(X - np.multiply.outer(unit, unit @ X))

    def forward(X: Array) -> Array:
        return project(u, G @ project(v, X))

    def backward(X: Array) -> Array:
        return project(v, transposed @ project(u, X))

    if symmetric:
        return (lambda X: 0.5 * (forward(X) + backward(X))), len(u)
    if len(u) >= len(v):
        return (lambda X: backward(forward(X))), len(v)
    return (lambda X: forward(backward(X))), len(u)
