"""Lower bounds for all nonnegative factorisations of a rank, and the certificate of a value (docs/mathematics.md).

A bound is sought here and proved by the checker; to bound another loss, add its candidates to `CANDIDATES`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, Context
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf import certificates
from cvxnmf.certificates import Certificate, RankStatement
from cvxnmf.certificates.leading import EXCESS, ritz_tail
from cvxnmf.certificates.rank import chunked_tail, gram_tail
from cvxnmf.chunked import ChunkedMatrix
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import best_low_rank
from cvxnmf.linalg.fingerprint import fingerprint
from cvxnmf.linalg.leading import KRYLOV_EXCESS, krylov_pairs
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf.dual_ascent import best_dual_matrix
from cvxnmf.nmf.losses import LOSSES

#: Up to this relative gap a result is called globally optimal.
GLOBAL = 1e-6
#: A gap that the singular values leave, relative to the value, which is not narrowed further without being asked.
NEARLY_CLOSED = 1e-3
#: A bound may exceed the value by this share of the data's scale, which is rounding, and up to the second the value may be off.
ROUNDING, INEXCUSABLE = 1e-12, 1e-9


class Limits(NamedTuple):
    """Sizes up to which dense matrices are formed, and decomposed."""

    #: Rows or columns, whichever are fewer, of sparse data whose singular values are all computed if an effort is asked for.
    dense_side: int = 3000
    #: Entries of data for which a dual matrix is sought.
    dense_size: int = 40_000_000
    #: Entries of sparse data that are filled without being asked.
    unasked_size: int = 300_000
    #: Flops that may be spent on a dual matrix without being asked, and the most and fewest decompositions these buy.
    unasked_work: float = 5e10
    most_unasked: int = 150
    fewest_unasked: int = 10

    def may_fill(self, A: Any, effort: int | None) -> bool:
        """Whether sparse data may be made dense."""
        size = float(np.prod(A.shape, dtype=float))
        asked = bool(effort) and min(A.shape) <= self.dense_side and size <= self.dense_size
        return asked or size <= self.unasked_size

    def decompositions(self, shape: tuple[int, int], effort: int | None) -> int:
        """The effort, or what pays where none is asked for."""
        if np.prod(shape, dtype=float) > self.dense_size:
            return 0
        if effort is not None:
            return effort
        short, long = sorted(shape)
        bought = int(self.unasked_work / (2.0 * long * short**2 + 10.0 * short**3))
        return min(bought, self.most_unasked) if bought >= self.fewest_unasked else 0


DEFAULT_LIMITS = Limits()


class Part(NamedTuple):
    """The fully observed part of the data that a bound is computed on."""

    A: FloatArray
    witness: dict[str, FloatArray]


class Found(NamedTuple):
    """A bound with its proof."""

    kind: str
    witness: dict[str, FloatArray]
    proof: certificates.Proof


def rank_certificate(
    A: Any,
    k: int,
    value: float,
    loss: str,
    symmetric: bool = False,
    effort: int | None = None,
    scaling: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Certificate:
    """The best certificate of the value, the loss of a factorisation with k components, that the effort allows.

    The effort counts singular value decompositions; left out, as many are taken as pay, and sparse data are not made dense unless
    they are small. Data in row chunks take the singular values alone. If symmetric, the bound is about ``UU'``; with the scaling
    "degree", value and bound are of ``sum (A - UU')_ij^2 / (d_i d_j)``.
    """
    statement = RankStatement(loss, k, symmetric, scaling)
    with np.errstate(all="ignore"):  # values are tested for being finite
        if isinstance(A, ChunkedMatrix):
            best, found = Found("zero", {}, certificates.Proof(0.0, True, LOSSES[loss].scale(A))), _chunked_bounds(A, statement)
        else:
            best = Found("zero", {}, statement.prove(A, "zero", {}))
            found = _memory_bounds(A, value, effort, statement, limits)
        for candidate in found:
            if not _contradicts(candidate, value) and best.proof.bound < candidate.proof.bound:
                best = candidate
    return Certificate.of_proof(value, best.kind, best.proof, statement, best.witness)


def _contradicts(found: Found, value: float) -> bool:
    """Whether a bound exceeds the value by more than rounding; it is then dropped, with a warning if there is no excuse."""
    bound, scale = found.proof.bound, found.proof.scale
    if bound > value + INEXCUSABLE * scale:
        sentence = (
            f"The bound {bound:.12g} ({found.kind}) exceeds the value {value:.12g} and is dropped: please report this as a bug."
        )
        warnings.warn(sentence, RuntimeWarning, stacklevel=3)
    return not bound <= value + ROUNDING * scale


def degree_scaled(A: Any) -> tuple[Any, FloatArray]:
    """``A_ij / sqrt(d_i d_j)`` with the degrees d, and their roots, 1 for nodes without entries."""
    degrees = np.asarray(A.sum(axis=1)).ravel()
    roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))
    inverse = sp.diags_array(1.0 / roots)
    return sp.csr_array(inverse @ A @ inverse), roots


def _memory_bounds(A: Any, value: float, effort: int | None, statement: RankStatement, limits: Limits) -> Iterator[Found]:
    """Bounds of data in memory."""
    data, k = (A if statement.scaling is None else degree_scaled(A)[0]), statement.n_components
    for kind, witness in CANDIDATES[statement.loss](data, k, value, statement.symmetric, effort, limits):
        try:
            yield Found(kind, witness, statement.prove(A, kind, witness))
        except certificates.CertificateError:  # an observed part that is all zero, for instance: nothing is gained
            continue


def _chunked_bounds(A: ChunkedMatrix, statement: RankStatement) -> Iterator[Found]:
    """The tail of the singular values, from the Gram matrix of either side, rigorous, or else from a few leading vectors."""
    k = statement.n_components
    if statement.loss not in SPECTRAL or k >= min(A.shape):
        return
    with single_thread(min(A.shape)):
        if A.gram_fits and A.shape[0] >= A.shape[1]:
            yield Found("tail", {}, gram_tail(A.gram(), A.energy, A.max(), A.shape[0], statement))
        elif A.transposed_gram_fits:
            yield Found("tail", {}, chunked_tail(A.given, statement))
        else:
            wanted = min(k + EXCESS, A.shape[1])
            Q = np.linalg.qr(krylov_pairs(A.gram_product, A.shape[1], wanted, KRYLOV_EXCESS - EXCESS)[1])[0]
            yield Found("lanczos", {"vectors": Q}, ritz_tail(Q, A.gram_product, A.energy, statement))


#: Kinds of bounds to try, with their witnesses.
Candidates = list[tuple[str, dict[str, FloatArray]]]


def _squared_error_candidates(A: Any, k: int, value: float, symmetric: bool, effort: int | None, limits: Limits) -> Candidates:
    """The tail of the singular values, and where they can be computed often enough, a dual matrix."""
    if k >= min(A.shape) and not symmetric:
        return []
    if sp.issparse(A) and not limits.may_fill(A, effort):
        return [("lanczos", {})]
    part = _observed_part(A, symmetric)
    if part is None or (k >= min(part.A.shape) and not symmetric):
        return []
    k, left = min(k, *part.A.shape), limits.decompositions(part.A.shape, effort)
    if k == 1 or left == 0:  # of rank one, the best approximation is nonnegative
        return [("tail", part.witness)]
    if effort is None and not part.witness and value - _tail(part.A, k, symmetric) <= NEARLY_CLOSED * value:
        return [("tail", part.witness)]
    N = best_dual_matrix(part.A, k, symmetric, value, left)
    return [("tail", part.witness), ("dual", part.witness | {"N": N})]


def _tail(A: FloatArray, k: int, symmetric: bool) -> float:
    """What the best approximation of rank k leaves, up to rounding."""
    with single_thread(min(A.shape)):
        return float(np.vdot(A, A)) - best_low_rank(A, k, symmetric)[1]


def _divergence_candidates(A: Any, k: int, value: float, symmetric: bool, effort: int | None, limits: Limits) -> Candidates:
    """The product of the margins, best of rank one; above nothing is known."""
    part = _observed_part(A, symmetric) if k == 1 else None
    return [] if part is None else [("independence", part.witness)]


#: Bounds by loss.
CANDIDATES: dict[str, Callable[..., Candidates]] = {"mse": _squared_error_candidates, "kl": _divergence_candidates}
#: Losses that are bounded by singular values.
SPECTRAL = {"mse"}


def _observed_part(A: Any, symmetric: bool) -> Part | None:
    """All of the data, or a large part without missing entries: rows and columns with the most are dropped in turn."""
    dense = np.asarray(A.toarray() if sp.issparse(A) else A)
    missing = np.isnan(dense)
    if not missing.any():
        return Part((dense + dense.T) / 2 if symmetric else dense, {})
    if symmetric:
        missing = missing | missing.T
    rows, columns = np.ones(dense.shape[0], dtype=bool), np.ones(dense.shape[1], dtype=bool)
    while (left := missing[np.ix_(rows, columns)]).any():
        by_row, by_column = left.mean(axis=1), left.mean(axis=0)
        if symmetric or by_row.max() >= by_column.max():
            rows[np.flatnonzero(rows)[int(np.argmax(by_row))]] = False
        else:
            columns[np.flatnonzero(columns)[int(np.argmax(by_column))]] = False
        if symmetric:
            columns = rows
        if not (rows.any() and columns.any()):
            return None
    part = dense[np.ix_(rows, columns)]
    witness = {"rows": rows.astype(np.float64), "columns": columns.astype(np.float64)}
    return Part((part + part.T) / 2 if symmetric else part, witness)


def proved_message(message: str, certificate: Certificate) -> str:
    """How a descent ended, and what the certificate leaves open of it."""
    if certificate.relative_gap <= GLOBAL:
        return "No nonnegative factorisation of this rank is better, up to the certified gap."
    if not certificate.bound > 0:
        return message
    ending = message.partition(";")[0]
    percent = Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(100 * certificate.relative_gap)
    return f"{ending}; no nonnegative factorisation of this rank can save more than {percent:f}% of the loss."


class ProofLater:
    """What is proved of data when somebody asks: until then the data are kept, and a fingerprint that tells if they change."""

    def __init__(self, A: Any, prove: Callable[[], Certificate]) -> None:
        self.A, self.fingerprint, self.prove = A, fingerprint(A), prove

    def __call__(self) -> Certificate:
        """The certificate."""
        if fingerprint(self.A) != self.fingerprint:
            raise certificates.CertificateError(
                "The data were changed after they were factored, so that nothing can be proved about them any more; "
                "pass a copy, or ask for the proof at once with certificate='now'."
            )
        return self.prove()
