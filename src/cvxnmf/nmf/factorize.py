"""Factorisation of a given rank: deterministic starts, the best of them polished on the true loss, and a certificate."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf import chunked, validation
from cvxnmf.certificates import Certificate
from cvxnmf.convex.coarsening import LARGEST_WHOLE, MOST_DIRECTIONS, directions_above_noise
from cvxnmf.convex.rectangular import nonsymmetric
from cvxnmf.convex.solve import solve
from cvxnmf.convex.symmetric import symmetric
from cvxnmf.cp.rank_two import turned_into_orthant
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import best_low_rank
from cvxnmf.nmf import initialise
from cvxnmf.nmf.bounds import degree_scaled, rank_certificate
from cvxnmf.nmf.chunked_factorize import factorized
from cvxnmf.nmf.descent import classical_nmf
from cvxnmf.nmf.evaluation import factor_loss, proved_message
from cvxnmf.results import Factorization, Interrupted, Iterate, Level, Status

Factors = tuple[FloatArray, FloatArray]

#: Convex problems of up to this many rows are solved for a start.
LARGEST_CONVEX = 1500
#: The best runs are tried for exchanges of columns, this many pairs in vain and this many times each at most.
EXCHANGED_RUNS, EXCHANGED_PAIRS, EXCHANGES = {"mse": 5, "kl": 1}, 4, 20
#: Residuals of up to this many entries are looked at as a whole.
LARGEST_RESIDUAL = 20_000_000
#: Decompositions for the bound of a graph of n nodes: this number over n^3, from 5 to 150.
GRAPH_EFFORT = 4e9
#: Steps of a descent for the factors of a large graph.
LARGE_STEPS = 50
#: Negative entries of a rank-two matrix up to this share of the largest are rounding of the ascent.
NEARLY_NONNEGATIVE = 1e-3


def factorize(
    A: Any,
    n_components: int | None = None,
    loss: str = "mse",
    symmetric: bool | None = None,
    start: Any = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    effort: int = 150,
    callback: Callable[[Iterate], Any] | None = None,
    memory_limit: Any = None,
    client: Any = None,
) -> Factorization:
    """Factor nonnegative data, ``A ≈ UV'`` or ``A ≈ UU'``: the same good answer every time, with a bound on what is possible.

    Several deterministic starts (the singular vectors, rows that stick out, merged components; for symmetric data the
    eigenvectors and the convex solution) are each descended to the end, and the best result is kept and certified.

    Parameters
    ----------
    A : array-like or scipy.sparse matrix of shape (m, n)
        Nonnegative; NaN stands for missing entries.
    n_components : int, optional
        Number of components; left out, one more than the directions that the convex problem finds above the noise.
    loss : {"mse", "kl"}
        ``||A - UV'||^2`` (no half) or Kullback-Leibler.
    symmetric : bool, optional
        Whether to ask for ``V = U``; left out, a symmetric A is recognised.
    start : Factorization, pair (U, V) or array U, optional
        Descend from there instead; the result is never worse.
    tol : float
        Relative decrease of the loss per step at which a descent ends, see :func:`classical_nmf`.
    max_iter : int
        Most steps of each descent.
    effort : int
        Most singular value decompositions to spend on the bound.
    callback : callable, optional
        Called with an :class:`Iterate` after every step of every descent; a true answer stops, keeping the best so far.
    memory_limit, client
        Work on data in blocks of rows, from files or on a Dask cluster, as dask arrays always are; see :func:`classical_nmf`.

    Returns
    -------
    Factorization

    Raises
    ------
    Interrupted
        On Ctrl-C; a KeyboardInterrupt whose `solution` is the best factorisation so far.

    Notes
    -----
    Many descents are run, so that this takes about as long as ten random restarts; :func:`classical_nmf` is a single one.
    On data in blocks there are three (the singular vectors, rows and columns that stick out), the number of components must be
    given, and the bound rests on the singular values of the data.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> rng = np.random.default_rng(0)
    >>> A = rng.random((20, 3)) @ rng.random((3, 15))
    >>> result = cvxnmf.factorize(A, n_components=3)
    >>> result.U.shape, result.V.shape, bool(result.value < 1e-3 * np.sum(A**2))
    ((20, 3), (15, 3), True)
    """
    validation.choice("loss", loss, ("mse", "kl"))
    effort = validation.integer("effort", effort, minimum=0)
    if chunked.needs_chunks(A, memory_limit, client):
        terms = {"max_iter": max_iter, "tol": tol, "callback": callback}
        return factorized(A, n_components, loss, symmetric, start, memory_limit, client, **terms)
    data = validation.partial_matrix(A)
    validation.magnitude(data.data if sp.issparse(data) else data, loss)
    twofold = _is_symmetric(data) if symmetric is None else _asked_symmetric(data, symmetric)
    given = None if start is None else _given(start, twofold)
    if n_components is None and given is not None:
        n_components = np.shape(given if twofold else given[0])[-1]
    k = _found_components(data, twofold) if n_components is None else validation.components(n_components, data.shape)
    search = _Search(data, k, loss, twofold, {"max_iter": max_iter, "tol": tol, "callback": callback})
    try:
        search.run(given)
    except Interrupted as stopped:
        raise Interrupted(search.best_with(stopped.solution)) from None
    except _Stopped:
        effort = 0
    best = search.best
    if given is not None:
        best = _no_worse(best, given, data, loss, twofold)
    return _proved(search, best, lambda value: rank_certificate(data, k, value, loss, twofold, effort), start is None)


def normalised_factors(A: Any, k: int, start: FloatArray) -> Factorization:
    """Factors ``A ≈ UU'`` of a graph of least ``sum (A - UU')_ij^2 / (d_i d_j)``, with a proof.

    A symmetric factorisation of the adjacency matrix over the roots of its degrees d, descended from the given start and from
    its eigenvectors.

    Parameters
    ----------
    A : csr_array of shape (n, n)
        Symmetric adjacency matrix.
    k : int
        Number of columns.
    start : ndarray of shape (n, k)
        First U, nonnegative.
    """
    B, roots = degree_scaled(A)
    large = A.shape[0] > LARGEST_WHOLE
    search = _Search(B, k, "mse", True, {"max_iter": LARGE_STEPS if large else 1000, "tol": 1e-6, "callback": None})
    search.descended(start / roots[:, None])
    if not large:
        search.descended(initialise.eigen_nndsvd(B, k)[0])
    effort = int(np.clip(GRAPH_EFFORT / B.shape[0] ** 3, 5, 150))
    result = _proved(search, search.best, lambda value: rank_certificate(A, k, value, "mse", True, effort, "degree"), True)
    U = roots[:, None] * result.U
    return dataclasses.replace(result, U=U, V=U)


def _proved(
    search: _Search, best: Factorization, certificate_of: Callable[[float], Certificate], from_dual: bool
) -> Factorization:
    """The best run with its certificate; of two columns, also tried from the dual point, which may close the gap."""
    certificate = certificate_of(best.value)
    if from_dual and search.k == 2 and "N" in certificate.witness:
        better = _from_dual_point(search.data, certificate.witness["N"], search.twofold)
        run = best if better is None else search.descended(better)
        if run.value < best.value:
            best, certificate = run, certificate_of(run.value)
    message = proved_message(best.message, certificate)
    return dataclasses.replace(best, certificate=certificate, message=message, levels=search.levels(certificate))


def _no_worse(run: Factorization, given: Any, A: Any, loss: str, twofold: bool) -> Factorization:
    """The run, or the start itself if rounding or the lifting of zeros took the run above it."""
    U, V = validation.nonnegative_factors(given if twofold else given[0], None if twofold else given[1], A.shape)
    value = factor_loss(A, U, V, loss)
    return run if run.value <= value else dataclasses.replace(run, U=U, V=V, value=value, message="The start was not improved.")


class _Stopped(Exception):
    """The callback asked to stop."""


class _Search:
    """Descents from several starts, and the best of them."""

    def __init__(self, data: Any, k: int, loss: str, twofold: bool, options: dict[str, Any]) -> None:
        self.data, self.k, self.loss, self.twofold, self.options = data, k, loss, twofold, options
        self.runs: list[Factorization] = []
        self.start_levels: tuple[Level, ...] = ()

    def _portfolio(self) -> list[Factors]:
        """Deterministic starts; of a large graph one, from the convex problem of groups of its nodes."""
        if not (self.twofold and sp.issparse(self.data) and self.k > 1 and self.data.shape[0] > LARGEST_CONVEX):
            return _portfolio(self.data, self.k, self.twofold)
        first = [] if self.data.shape[0] > LARGEST_WHOLE else _portfolio(self.data, self.k, True)
        U, solution = initialise.in_groups(self.data, self.k)
        groups = solution.certificate.statement["groups"]
        self.start_levels = (Level(groups, "convex models with positions of groups: the start", solution.certificate),)
        return [*first, (U, U)]

    def levels(self, certificate: Certificate) -> tuple[Level, ...]:
        """What is proved on which level, if there are several."""
        last = Level(self.data.shape[0], f"nonnegative factors with {self.k} columns", certificate)
        return (*self.start_levels, last) if self.start_levels else ()

    @property
    def best(self) -> Factorization:
        """The best run so far."""
        return min(self.runs, key=lambda run: run.value)

    def best_with(self, current: Any) -> Factorization:
        """The best of all runs and the one that was broken off."""
        best: Factorization = min([*self.runs, current], key=lambda run: run.value)
        return dataclasses.replace(best, status=Status.INTERRUPTED)

    def descended(self, init: Any) -> Factorization:
        """Descend from one start to the end."""
        own = init[0] if self.twofold and isinstance(init, tuple) else init
        run: Factorization = classical_nmf(self.data, self.k, "hals", self.loss, own, self.twofold, **self.options)
        self.runs.append(run)
        if run.status is Status.INTERRUPTED:
            raise _Stopped
        return run

    def run(self, given: Any) -> None:
        """Descend from the given start, or from all of ours; then exchange columns of the best."""
        if given is not None:
            self.descended(given)
            return
        for init in self._portfolio():
            self.descended(init)
        if _may_exchange(self.data, self.k, self.twofold):
            first = sorted(self.runs, key=lambda run: run.value)[: EXCHANGED_RUNS[self.loss]]
            for run in first:
                _exchanged(self.data, run, self.descended)


def _is_symmetric(A: Any) -> bool:
    try:
        validation.require_symmetric(A)
    except ValueError:
        return False
    return True


def _asked_symmetric(A: Any, symmetric: Any) -> bool:
    if not isinstance(symmetric, bool | np.bool_):
        validation.refuse(f"symmetric must be True, False or None, not {symmetric!r}.")
    if symmetric:
        validation.require_symmetric(A, hint="use symmetric=False")
    return bool(symmetric)


def _given(start: Any, twofold: bool) -> Any:
    """A user's start in the form that the descent takes."""
    if isinstance(start, Factorization):
        return start.U if twofold else (start.U, start.V)
    if twofold and isinstance(start, tuple | list) and len(start) == 2 and np.ndim(start[0]) == 2:
        return start[0]
    return start


def _filled(A: Any) -> Any:
    """The data with missing entries replaced by what their row and column suggest."""
    if sp.issparse(A) or not np.isnan(A).any():
        return A
    rows, columns, total = np.nanmean(A, axis=1), np.nanmean(A, axis=0), float(np.nanmean(A))
    return np.where(np.isnan(A), np.outer(rows, columns) / total, A)


def _portfolio(A: Any, k: int, twofold: bool) -> list[Factors]:
    """Deterministic starts; no single one is reliable everywhere."""
    full = _filled(A)
    if k == 1:
        return [initialise.eigen_nndsvd(full, k) if twofold else initialise.nndsvd(full, k)]
    if not twofold and k >= min(A.shape):
        return [_exact(full, k)]
    if not twofold:
        simple = [start(full, k) for start in (initialise.nndsvd, initialise.successive_projection, initialise.standing_columns)]
        return simple + [initialise.merge(full, k, excess) for excess in (1.5, 2.0)]
    found = [initialise.eigen_nndsvd(full, k)]
    if not sp.issparse(full) and len(full) <= LARGEST_CONVEX and k > 1:
        found.append(initialise.convex(full, k, symmetric=True))
    return found


def _exact(A: Any, k: int) -> Factors:
    """The data next to the identity."""
    dense = np.asarray(A.toarray() if sp.issparse(A) else A)
    m, n = dense.shape
    U, V = (dense, np.eye(n)) if n <= m else (np.eye(m), dense.T)
    return tuple(np.pad(side, ((0, 0), (0, k - side.shape[1]))) for side in (U, V))  # type: ignore[return-value]


def _may_exchange(A: Any, k: int, twofold: bool) -> bool:
    """Whether columns can be exchanged: the residual is looked at as a whole."""
    return not (twofold or k == 1 or k >= min(A.shape) or np.prod(A.shape, dtype=np.float64) > LARGEST_RESIDUAL)


def _exchanged(A: Any, run: Factorization, descended: Callable[[Any], Factorization]) -> None:
    """Exchange a column and descend again, as long as that helps."""
    full, choice = A.toarray() if sp.issparse(A) else _filled(A), 0
    for _ in range(EXCHANGES):
        following = descended(initialise.exchanged(full, run.U, run.V, choice))
        better = following.value < run.value * (1.0 - 1e-6)
        run, choice = (following, 0) if better else (run, choice + 1)
        if choice == EXCHANGED_PAIRS:
            break


def _found_components(A: Any, twofold: bool) -> int:
    """One more than the rank of the convex solution at the noise edge."""
    if twofold and sp.issparse(A) and A.shape[0] > LARGEST_WHOLE:
        kept = np.flatnonzero(np.diff(A.indptr))
        return 1 + directions_above_noise(sp.csr_array(A[kept][:, kept]), MOST_DIRECTIONS)
    full = _filled(A)
    dense = full.toarray() if sp.issparse(full) else full
    if min(dense.shape) == 1:
        return 1
    try:
        problem: Any = symmetric(dense, trace="auto") if twofold else nonsymmetric(dense, trace="auto")
    except ValueError:  # no noise at all
        return int(np.linalg.matrix_rank(dense))
    return int(min(1 + solve(problem, tol=1e-3).rank, *A.shape))


def _from_dual_point(A: Any, N: FloatArray, twofold: bool) -> Factors | None:
    """Factors of the best matrix of rank two for the dual point N; if it is nonnegative, they are globally optimal."""
    if A.shape != N.shape:  # the bound is that of a part of the data
        return None
    dense = np.asarray(A.toarray() if sp.issparse(A) else A)
    X, _ = best_low_rank(dense + N, 2, twofold)
    if X.min() < -NEARLY_NONNEGATIVE * X.max():
        return None
    if twofold:
        values, vectors = np.linalg.eigh(X)
        U = turned_into_orthant(vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0)))
        return None if U is None else (U, U)
    left, values, right = np.linalg.svd(X, full_matrices=False)
    rows = left[:, :2] * values[:2]
    angles = np.arctan2(rows[:, 1], rows[:, 0] * np.sign(rows[:, 0].sum()))
    corners = rows[[int(np.argmin(angles)), int(np.argmax(angles))]]
    if abs(np.linalg.det(corners)) <= 1e-12 * float(np.vdot(corners, corners)):
        return None
    return np.maximum(0.0, rows @ np.linalg.inv(corners)), np.maximum(0.0, (corners @ right[:2]).T)
