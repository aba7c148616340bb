"""Lower bounds for all nonnegative factorisations of a rank: the ascent over N (docs/mathematics.md).

``||A||^2 - sum_{i <= k} sigma_i(A + N)^2`` is concave in N >= 0, with gradient minus twice the best approximation of rank k of
``A + N``: accelerated ascent with backtracking, and where singular values k and k + 1 meet, so that the bound has a kink, steps
of Polyak's length towards the value of the factorisation at hand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf import certificates, chunked, validation
from cvxnmf.certificates import Certificate, RankStatement
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import best_low_rank
from cvxnmf.linalg.momentum import Momentum
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf import chunked_bounds
from cvxnmf.nmf.evaluation import factor_loss, stated
from cvxnmf.results import Factorization

#: Up to this many rows or columns, whichever are fewer, all singular values are computed.
LARGEST_DENSE_SIDE = 3000
#: Up to this many entries a matrix N is sought.
LARGEST_DENSE_SIZE = 40_000_000
#: Below this gap, relative to the value, there is nothing left to gain.
CLOSED = 1e-9
#: A step as short as this tells of a kink.
SHORTEST_STEP = 0.1
#: Steps of Polyak's length without progress before they are halved.
PATIENCE = 8


class Part(NamedTuple):
    """The fully observed part of the data that a bound is computed on."""

    A: FloatArray
    witness: dict[str, FloatArray]


def verify(
    A: Any, U: Any, V: Any = None, loss: str = "mse", effort: int = 150, *, memory_limit: Any = None, client: Any = None
) -> Certificate:
    """Certify anybody's nonnegative factors: their exact loss, and a bound that no factorisation of this rank can beat.

    Parameters
    ----------
    A : array-like, scipy.sparse matrix, numpy.memmap or dask array of shape (m, n)
        Nonnegative; NaN stands for missing entries, which data in blocks cannot have.
    U : array-like of shape (m, k), or Factorization
        Nonnegative.
    V : array-like of shape (n, k), optional
        Nonnegative, ``A ≈ UV'`` (the transpose of scikit-learn's ``components_``). Left out, ``A ≈ UU'`` and the bound is about
        symmetric factorisations.
    loss : {"mse", "kl"}
        ``||A - UV'||^2`` (no half), or Kullback-Leibler, for which a bound is known for rank one only; above it the bound is 0.
    effort : int
        Most singular value decompositions to spend on the bound; 0 takes the singular values of A alone, and so do data in
        chunked.
    memory_limit, client
        Work on data in blocks of rows, from files or on a Dask cluster; see :func:`classical_nmf`.

    Returns
    -------
    Certificate
        Of scope "rank-k"; ``certificate.kind`` tells which bound it is.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> U, V = np.eye(4)[:, :2] + 0.1, np.ones((3, 2))
    >>> certificate = cvxnmf.verify(U @ V.T + 0.01, U, V)
    >>> bool(certificate.bound <= certificate.value)
    True
    """
    validation.choice("loss", loss, ("mse", "kl"))
    effort = validation.integer("effort", effort, minimum=0)
    if isinstance(U, Factorization):
        U, V = U.U, None if U.V is U.U else U.V
    if chunked.needs_chunks(A, memory_limit, client):
        return chunked_bounds.verified(A, U, V, loss, memory_limit, client)
    data = validation.partial_matrix(A)
    validation.magnitude(data.data if sp.issparse(data) else data, loss)
    U, V = validation.nonnegative_factors(U, V, data.shape)
    symmetric = V is U
    if symmetric:
        validation.require_symmetric(data)
    with np.errstate(all="ignore"):  # values are tested for being finite
        return rank_certificate(data, U.shape[1], factor_loss(data, U, V, loss), loss, symmetric, effort)


def degree_scaled(A: Any) -> tuple[Any, FloatArray]:
    """``A_ij / sqrt(d_i d_j)`` with the degrees d, and their roots, 1 for nodes without entries."""
    degrees = np.asarray(A.sum(axis=1)).ravel()
    roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))
    inverse = sp.diags_array(1.0 / roots)
    return sp.csr_array(inverse @ A @ inverse), roots


def rank_certificate(
    A: Any, k: int, value: float, loss: str, symmetric: bool, effort: int, scaling: str | None = None
) -> Certificate:
    """The best certificate of the value that the effort allows.

    With ``scaling="degree"`` the value and the bound are of ``sum (A - UU')_ij^2 / (d_i d_j)``.
    """
    statement = RankStatement(loss, k, symmetric, scaling)
    data = A if scaling is None else degree_scaled(A)[0]
    best: tuple[str, dict[str, FloatArray], certificates.Proof] = ("zero", {}, statement.prove(A, "zero", {}))
    for kind, witness in _candidates(data, k, value, loss, symmetric, effort):
        try:
            proof = statement.prove(A, kind, witness)
        except certificates.CertificateError:  # an observed part that is all zero, for instance: nothing is gained
            continue
        if proof.bound > best[2].bound:
            best = (kind, witness, proof)
    return stated(*best, value, statement)


def _candidates(A: Any, k: int, value: float, loss: str, symmetric: bool, effort: int) -> list[tuple[str, dict[str, FloatArray]]]:
    """Kinds of bounds to try, with their witnesses."""
    if loss == "kl":
        part = _observed_part(A, symmetric) if k == 1 else None
        return [] if part is None else [("independence", part.witness)]
    if k >= min(A.shape) and not symmetric:
        return []
    if sp.issparse(A) and (min(A.shape) > LARGEST_DENSE_SIDE or np.prod(A.shape, dtype=float) > LARGEST_DENSE_SIZE):
        return [("lanczos", {})]
    part = _observed_part(A, symmetric)
    if part is None or (k >= min(part.A.shape) and not symmetric):
        return []
    k = min(k, *part.A.shape)
    if k == 1 or effort == 0 or part.A.size > LARGEST_DENSE_SIZE:  # of rank one, the best approximation is nonnegative
        return [("tail", part.witness)]
    return [("tail", part.witness), ("dual", part.witness | {"N": ascended(part.A, k, symmetric, value, effort)})]


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


def ascended(A: FloatArray, k: int, symmetric: bool, value: float, effort: int) -> FloatArray:
    """Return the N >= 0 of the best bound found within the effort."""
    with single_thread(min(A.shape)):
        ascent = _Ascent(A, k, symmetric, value, effort)
        ascent.accelerate()
        ascent.approach()
    N = ascent.best_N
    return (N + N.T) / 2 if symmetric else N


class _Ascent:
    """The best N so far and what is left of the effort; energies are ``sum sigma_i^2`` of ``A + N``."""

    def __init__(self, A: FloatArray, k: int, symmetric: bool, value: float, effort: int) -> None:
        self.A, self.k, self.symmetric, self.value, self.left = A, k, symmetric, value, effort
        self.norm = float(np.vdot(A, A))
        self.best_N, self.least = np.zeros_like(A), np.inf

    @property
    def done(self) -> bool:
        """Whether the effort is spent or the gap is closed."""
        return self.left <= 0 or self.norm - self.least >= self.value * (1.0 - CLOSED)

    def evaluate(self, N: FloatArray) -> tuple[FloatArray, float]:
        """Best approximation of rank k of ``A + N``, and its energy."""
        self.left -= 1
        X, energy = best_low_rank(self.A + N, self.k, self.symmetric)
        if energy < self.least:
            self.best_N, self.least = N, energy
        return X, energy

    def accelerate(self) -> None:
        """Accelerated ascent with backtracking, until steps become short."""
        N = ahead = self.best_N
        X, energy = self.evaluate(ahead)
        step, momentum, before = 1.0, Momentum(), energy
        while not self.done and step > SHORTEST_STEP:
            following = np.maximum(0.0, ahead - step * X)
            move = following - ahead
            X_there, there = self.evaluate(following)
            if there > energy + 2.0 * float(np.vdot(X, move)) + float(np.vdot(move, move)) / step + 1e-13 * energy:
                step *= 0.5
                continue
            if there > before:
                momentum.restart(0.0)
            ahead, X, energy, share = following, X_there, there, momentum.extrapolation()
            if share > 0:
                ahead = np.maximum(0.0, following + share * (following - N))
                X, energy = self.evaluate(ahead)
            N, before, step = following, there, 1.1 * step

    def approach(self) -> None:
        """Steps of Polyak's length towards the known value, halved when they bring nothing."""
        N, share, idle = self.best_N, 1.0, 0
        while not self.done and share > 1e-3:
            least = self.least
            X, energy = self.evaluate(N)
            idle = 0 if least - self.least > 1e-7 * abs(self.value - self.norm + least) else idle + 1
            if idle >= PATIENCE:
                N, share, idle = self.best_N, 0.5 * share, 0
                continue
            free = np.where((N > 0) | (X < 0), X, 0.0)
            slope = 2.0 * float(np.vdot(free, free))
            if slope == 0:
                return
            N = np.maximum(0.0, N - min(1.0, share * (self.value - self.norm + energy) / slope) * X)
