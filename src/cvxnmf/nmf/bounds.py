"""Lower bounds for all nonnegative factorisations of a rank, and the certificate of a value (docs/mathematics.md).

A bound is sought here and proved by the checker; to bound another loss, add who seeks its bounds to `BOUNDS`, and to the
checker's `KINDS` what it proves.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np

from cvxnmf import certificates
from cvxnmf.certificates import Certificate, RankStatement, Statement, WeightedRankStatement, weights_digest
from cvxnmf.certificates.leading import EXCESS, ritz_tail
from cvxnmf.certificates.losses import FACTOR_LOSSES
from cvxnmf.certificates.rank import chunked_tail, gram_tail
from cvxnmf.chunked import ChunkedMatrix
from cvxnmf.linalg.arrays import FloatArray, in_double
from cvxnmf.linalg.fingerprint import fingerprint
from cvxnmf.linalg.leading import KRYLOV_EXCESS, krylov_pairs
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf.bound_goal import DEFAULT_LIMITS, Found, Goal, Limits, WeightedGoal
from cvxnmf.nmf.chunked_data import ChunkedData
from cvxnmf.nmf.divergence_bounds import divergence_bounds
from cvxnmf.nmf.loss_names import WEIGHTED, find_loss
from cvxnmf.nmf.rectangle_bounds import rectangle_bounds
from cvxnmf.nmf.sparse_divergence_bounds import sparse_divergence_bounds
from cvxnmf.nmf.squared_error_bounds import squared_error_bounds
from cvxnmf.nmf.streamed_divergence_bounds import streamed_divergence_bounds
from cvxnmf.nmf.weighted_bounds import weighted_bounds
from cvxnmf.results.status import keep_best

#: Up to this relative gap a result is called globally optimal.
GLOBAL = 1e-6
#: A bound may exceed the value by this share of the data's scale, which is rounding, and up to the second the value may be off.
ROUNDING, INEXCUSABLE = 1e-12, 1e-9


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
    they are small. Data in row chunks take singular values, or a rule learnt from some rows. If symmetric, the bound is about
    ``UU'``; with the scaling "degree", value and bound are of ``sum (A - UU')_ij^2 / (d_i d_j)``.
    """
    statement = RankStatement(loss, k, symmetric, scaling)
    with np.errstate(all="ignore"):  # values are tested for being finite
        zero, candidates = _zero_and_bounds(in_double(A), statement, value, effort, limits)
        return _best_certificate(statement, value, zero, candidates)


def weighted_certificate(
    A: Any, k: int, value: float, loss: str, weights: FloatArray, effort: int | None = None, limits: Limits = DEFAULT_LIMITS
) -> Certificate:
    """The best certificate of the value of a rank-k factorisation in a loss with weights, of every row or of every entry."""
    if loss.removeprefix(WEIGHTED) not in FACTOR_LOSSES:
        return rank_certificate(A, k, value, loss, effort=effort)
    statement = WeightedRankStatement(loss, k, False, weights_digest(weights))
    goal = WeightedGoal(A, statement, value, effort, limits, weights)
    with np.errstate(all="ignore"):
        (zero,) = goal.prove_bound("zero", {})
        return _best_certificate(statement, value, zero, _found_by(weighted_bounds, goal))


def _best_certificate(statement: Statement, value: float, zero: Found, candidates: Iterator[Found]) -> Certificate:
    """The certificate of the best of the candidate bounds for a rank; on Ctrl-C the best so far goes with the interrupt."""
    best = zero

    def certificate(_: Any = None) -> Certificate:
        return Certificate.of_proof(value, best.kind, best.proof, statement, best.witness)

    with keep_best(certificate):
        for candidate in candidates:
            if not _contradicts(candidate, value) and best.proof.bound < candidate.proof.bound:
                best = candidate
    return certificate()


def _contradicts(found: Found, value: float) -> bool:
    """Whether a rank bound exceeds the value by more than rounding; it is then dropped, with a warning if there is no excuse."""
    bound, scale = found.proof.bound, found.proof.scale
    if bound > value + INEXCUSABLE * scale:
        sentence = (
            f"The bound {bound:.12g} ({found.kind}) exceeds the value {value:.12g} and is dropped: please report this as a bug."
        )
        warnings.warn(sentence, RuntimeWarning, stacklevel=3)
    return not bound <= value + ROUNDING * scale


def _found_by(seek: Callable[[Any], Iterator[Found]], goal: Goal | WeightedGoal) -> Iterator[Found]:
    """Bounds that one method finds for a rank, up to a decomposition that fails, which leaves the factors as they are."""
    with contextlib.suppress(np.linalg.LinAlgError):
        yield from seek(goal)


@functools.singledispatch
def _zero_and_bounds(
    A: Any, statement: RankStatement, value: float, effort: int | None, limits: Limits
) -> tuple[Found, Iterator[Found]]:
    """The bound 0 for all factorisations of a rank, and an iterator over better ones."""
    goal = Goal(A, statement, value, effort, limits)
    found = itertools.chain.from_iterable(_found_by(seek, goal) for seek in BOUNDS.get(find_loss(statement.loss).kind, []))
    return Found("zero", {}, statement.prove(A, "zero", {})), found


@_zero_and_bounds.register
def _(
    A: ChunkedMatrix, statement: RankStatement, value: float, effort: int | None, limits: Limits
) -> tuple[Found, Iterator[Found]]:
    """The bound 0 and better ones for a rank of data in row chunks, from singular values or a rule for dual points."""
    seek = CHUNKED_BOUNDS.get(statement.loss)
    found = iter(()) if seek is None or statement.n_components >= min(A.shape) else seek(A, statement, limits)
    return Found("zero", {}, certificates.Proof(0.0, True, find_loss(statement.loss).scale(ChunkedData(A)))), found


def _chunked_tails(A: ChunkedMatrix, statement: RankStatement, limits: Limits) -> Iterator[Found]:
    """The rank bound of row chunks: the tail of singular values from either Gram matrix, or from a few leading vectors."""
    k = statement.n_components
    with single_thread(min(A.shape)):
        if A.gram_fits and A.shape[0] >= A.shape[1]:
            yield Found("tail", {}, gram_tail(A.gram(), A.energy, A.max(), A.shape[0], statement))
        elif A.transposed_gram_fits:
            yield Found("tail", {}, chunked_tail(A.given, statement))
        else:
            wanted = min(k + EXCESS, A.shape[1])
            Q = np.linalg.qr(krylov_pairs(A.gram_product, A.shape[1], wanted, KRYLOV_EXCESS - EXCESS)[1])[0]
            yield Found("lanczos", {"vectors": Q}, ritz_tail(Q, A.gram_product, A.energy, statement))


#: Who seeks bounds of data in memory, by kind of loss; of other kinds nothing better than 0 is known.
BOUNDS: dict[str, list[Callable[[Goal], Iterator[Found]]]] = {
    "mse": [squared_error_bounds, rectangle_bounds],
    "kl": [divergence_bounds, sparse_divergence_bounds, rectangle_bounds],
}
#: Losses that are bounded by singular values.
SPECTRAL = {"mse"}
#: Who seeks bounds of data in row chunks, by loss.
CHUNKED_BOUNDS = {"mse": _chunked_tails, "kl": streamed_divergence_bounds}


def proved_message(message: str, certificate: Certificate) -> str:
    """The message of a factorisation: how its descent ended, and what the bound leaves open."""
    factors = "symmetric nonnegative factorisation UU'" if certificate.statement["symmetric"] else "nonnegative factorisation"
    if certificate.relative_gap <= GLOBAL:
        return f"No {factors} of this rank is better, up to the certified gap."
    if not certificate.bound > 0:
        return message
    ending = message.partition(";")[0]
    percent = Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(100 * certificate.relative_gap)
    return f"{ending}; no {factors} of this rank can save more than {percent:f}% of the loss."


class ProofLater:
    """A rank certificate that is proved when asked for: the data are kept, and a fingerprint that tells if they change."""

    def __init__(self, A: Any, prove: Callable[[], Certificate]) -> None:
        self.A, self.fingerprint, self.prove = A, fingerprint(A), prove

    def __call__(self) -> Certificate:
        """The rank certificate, refused if the data have changed since they were factored."""
        if fingerprint(self.A) != self.fingerprint:
            raise certificates.CertificateError(
                "The data were changed after they were factored, so that nothing can be proved about them any more; "
                "pass a copy, or ask for the proof at once with certificate='now'."
            )
        return self.prove()
