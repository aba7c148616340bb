"""The bound of `squared_error` without N for large data, true with a probability of at least 1 - 1e-12 (see `krylov`).

Every X of rank at most k, nonnegative or not, has

    ||A - X||^2  >=  ||A||^2 - sum_{i <= k} sigma_i(A)^2,

the tail of the singular values; with the positive eigenvalues in place of the singular values if ``X = UU'``. The leading ones
are bounded from above by iterations with ``A'A``, or with A itself if X is symmetric: from vectors that are found here, or that
the witness gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from cvxnmf.certificates.data import observed_matrix, witness_arrays
from cvxnmf.certificates.krylov import (
    ORTHONORMAL,
    Krylov,
    Product,
    finite,
    leading_eigenvalues,
    random_source,
    spaces_in_turn,
)
from cvxnmf.certificates.losses import SQUARED_ERROR
from cvxnmf.certificates.rounding import safe_proof
from cvxnmf.certificates.row_chunks import is_read_in_chunks, row_chunks, summarise
from cvxnmf.certificates.statement import Array, CertificateError, Proof, Witness

if TYPE_CHECKING:
    from cvxnmf.certificates.rank import RankStatement

#: Vectors beyond the rank that are looked for, and the tolerance of iterations; their error enters squared.
EXCESS, TOLERANCE = 8, 1e-5
#: Up to this many rows all eigenvalues of an operator are computed.
SMALL = 200
#: Random vectors, and products with them in turn while much is left open.
WIDTH, DEPTHS = 4, (12, 24, 48)
#: What is left open counts as little below this share of the bound.
LITTLE = 1e-3
#: The same for data in row chunks, where every product is a pass over them.
CHUNKED = Krylov(16, 6, True)
#: Iterations repeat their result up to this share of the squared norm.
ITERATED = 1e-10


def prove_lanczos(A: Any, statement: RankStatement, witness: Witness) -> Proof:
    """The tail of the leading singular values of large data, true with high probability over the random start."""
    if "vectors" in witness:
        return _prove_ritz(A, statement, witness)
    data = statement.data(A)
    if not sp.issparse(data) or np.isnan(data.data).any():
        raise CertificateError("A bound of this kind is known for sparse, fully observed data only.")
    raw = observed_matrix(A, statement.symmetric)
    source = random_source(np.array(raw.shape), raw.indptr.astype(np.int64), raw.indices.astype(np.int64), raw.data)
    square: Any = data if statement.symmetric else _gram_operator(data)
    Q = leading_vectors(square, statement.n_components, source.standard_normal(square.shape[0]))
    energy, spaces = float(data.data @ data.data), spaces_in_turn(len(Q), WIDTH, DEPTHS, not statement.symmetric)
    return best_settled(_tails(lambda X: square @ X, Q, source, spaces, energy, statement))


def best_settled(proofs: Iterable[Proof]) -> Proof:
    """The best of the probable proofs in turn, until one leaves little open between its bound and what was found."""
    best: Proof | None = None
    for proof in proofs:
        best = proof if best is None or proof.bound > best.bound else best
        if proof.estimate - proof.bound <= LITTLE * proof.bound:
            break
    assert best is not None
    return best


def _gram_operator(A: Any) -> LinearOperator:
    """The smaller Gram operator of sparse data, ``A'A`` or ``AA'``, for leading singular values."""
    A = A if A.shape[0] >= A.shape[1] else A.T.tocsr()
    transposed = A.T.tocsr()

    def product(X: Array) -> Array:
        return np.asarray(transposed @ (A @ X))

    return LinearOperator((A.shape[1], A.shape[1]), matvec=product, matmat=product, dtype=np.float64)


def leading_vectors(square: Any, k: int, start: Array) -> Array:
    """Orthonormal vectors near the leading eigenvectors of an operator; where iterations do not converge, those that did."""
    n = len(start)
    count = min(k + EXCESS, n - 1)
    if n <= SMALL or 3 * count >= n:
        vectors = np.linalg.eigh(finite(np.asarray(square @ np.eye(n))))[1][:, n - max(count, 1) :]
    else:
        try:
            vectors = eigsh(square, k=count, which="LA", v0=start, tol=TOLERANCE)[1]
        except ArpackNoConvergence as stopped:
            vectors = np.asarray(stopped.eigenvectors).reshape(n, -1)
        except (ArpackError, TypeError, ValueError):
            raise CertificateError("The singular values of the data could not be computed.") from None
    return np.asarray(np.linalg.qr(vectors)[0])


def _prove_ritz(A: Any, statement: RankStatement, witness: Witness) -> Proof:
    """The tail beside leading singular values from Ritz vectors in the witness, in a few passes over the data."""
    (Z,) = witness_arrays(witness, "vectors")
    data = A if is_read_in_chunks(A) else observed_matrix(A, symmetric=False)
    if statement.symmetric or Z.ndim != 2 or len(Z) != data.shape[1] or Z.shape[1] < statement.n_components:
        raise CertificateError("The vectors of the witness do not match the data.")

    def product(Q: Array) -> Array:
        image = np.zeros(Q.shape)
        for chunk in row_chunks(data):
            image += chunk.T @ (chunk @ Q)
        return image

    return ritz_tail(Z, product, summarise(data, SQUARED_ERROR).total, statement)


def ritz_tail(Z: Array, product: Product, energy: float, statement: RankStatement) -> Proof:
    """The tail beside leading singular values from orthonormal Z, products ``A'AX`` and ``||A||²``; Z seeds the random start."""
    if not float(np.abs(Z.T @ Z - np.eye(Z.shape[1])).max()) < ORTHONORMAL:
        raise CertificateError("The vectors of the witness are not orthonormal.")
    return next(_tails(product, np.linalg.qr(Z)[0], random_source(Z), [CHUNKED], energy, statement))


def _tails(
    product: Product,
    Q: Array,
    source: np.random.RandomState,
    spaces: list[Krylov],
    energy: float,
    statement: RankStatement,
) -> Iterator[Proof]:
    """Tails that leading singular values leave, less twice what iterations may vary, from one Krylov space after the other."""

    def leading_energy(values: Array) -> float:
        positive = np.maximum(values, 0.0)
        return float(np.sum(positive * positive if statement.symmetric else positive))

    slack = ITERATED * energy
    for upper, found in leading_eigenvalues(product, Q, source, spaces, statement.n_components, leading_energy):
        yield probable_proof(energy - leading_energy(upper), energy - leading_energy(found), slack, energy)


def probable_proof(bound: float, found: float, slack: float, scale: float) -> Proof:
    """A probable bound from leading eigenvalues, less twice what iterations may vary by; its estimate is what was found."""
    proof = safe_proof(bound, 0.0, scale, shifted=2 * slack, spare=slack, rigorous=False)
    return proof._replace(probable=True, estimate=max(proof.bound, found))
