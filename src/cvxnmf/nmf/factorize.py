"""Factorisation of a given rank: deterministic starts race on the true loss, and the winner is certified."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from cvxnmf import chunked, validation
from cvxnmf.certificates import Certificate
from cvxnmf.convex.coarsening import LARGEST_WHOLE, MOST_DIRECTIONS, directions_above_noise
from cvxnmf.convex.rectangular import nonsymmetric
from cvxnmf.convex.solve import solve
from cvxnmf.convex.symmetric import symmetric as state_symmetric
from cvxnmf.cp.rank_two import rotate_into_orthant
from cvxnmf.linalg.arrays import FloatArray, in_double
from cvxnmf.linalg.eigen import best_low_rank
from cvxnmf.nmf import initialise
from cvxnmf.nmf.bound_goal import degree_scaled
from cvxnmf.nmf.bounds import ProofLater, proved_message, rank_certificate, weighted_certificate
from cvxnmf.nmf.data_matrix import NO_PENALTY, DataMatrix
from cvxnmf.nmf.descent import Stopping
from cvxnmf.nmf.initialise import Factors
from cvxnmf.nmf.loss_names import WEIGHTED, find_loss
from cvxnmf.nmf.methods import require_method
from cvxnmf.nmf.open import open_data
from cvxnmf.nmf.prepare import checked_matrix
from cvxnmf.nmf.progress import shown
from cvxnmf.nmf.row_names import separate_names
from cvxnmf.nmf.search import Search
from cvxnmf.nmf.weights import checked_weights
from cvxnmf.results import Factorization, Iterate
from cvxnmf.results.status import keep_best
from cvxnmf.typing import ClientLike, FactorsLike, MatrixLike, MemoryLimit, Names

#: Decompositions for the bound of a graph of n nodes: this number over n^3, from 5 to 150.
GRAPH_EFFORT = 4e9
#: Steps of a descent for the factors of a large graph.
LARGE_STEPS = 50
#: Negative entries of a rank-two matrix up to this share of the largest are rounding of the ascent.
NEARLY_NONNEGATIVE = 1e-3


def factorize(
    A: MatrixLike,
    n_components: int | None = None,
    loss: str | float = "mse",
    symmetric: bool | None = None,
    start: FactorsLike | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    effort: int | None = None,
    certificate: str = "later",
    weights: ArrayLike | None = None,
    verbose: int = 0,
    callback: Callable[[Iterate], Any] | None = None,
    memory_limit: MemoryLimit = None,
    client: ClientLike | None = None,
    row_names: Names = None,
    column_names: Names = None,
) -> Factorization:
    """Factor nonnegative data, ``A ≈ UV'`` or ``A ≈ UU'``: the same good answer every time, with a bound on what is possible.

    Several deterministic starts (the singular vectors, rows and columns that stick out, merged components) race, first on samples
    of the rows, and columns of the winner are exchanged as long as that helps; the search ends early where starts agree or the
    singular values say that nothing is left to gain. Symmetric data are descended from the eigenvectors and the convex solution.

    Parameters
    ----------
    A : array-like, scipy.sparse matrix, data frame or AnnData of shape (m, n)
        Nonnegative; NaN stands for missing entries. Names that come with the data go out with the result.
    n_components : int, optional
        Number of components; left out, one more than the directions that the convex problem finds above the noise.
    loss : {"mse", "kl", "itakura-saito"} or float
        ``||A - UV'||^2`` (no half), Kullback-Leibler, or another beta divergence by its number, see :func:`classical_nmf`; for
        these no bound better than 0 is known.
    symmetric : bool, optional
        Whether to ask for ``V = U``; left out, a symmetric A is recognised, but not in row chunks.
    start : Factorization, pair (U, V) or array U, optional
        Descend from there instead; the result is never worse.
    tol : float
        Relative decrease of the loss per step at which a descent ends, see :func:`classical_nmf`.
    max_iter : int
        Most steps of each descent; below 200, the whole race is as much shorter.
    effort : int, optional
        Most singular value decompositions to spend on the bound; 0 takes the singular values of A alone. Left out, as many as
        pay, at most 150, and sparse data are not made dense unless they are small: their largest singular values are found by
        Lanczos iterations, which is not rigorous.
    certificate : {"later", "now"}
        When to prove the bound: "later", when the certificate is first looked at, printed or saved, for which the result keeps
        the data; "now", before the result is returned, and two components are then also sought from the dual point.
    weights : array-like of shape (m,) or (m, n), optional
        Weights of the rows or of the entries in the loss, see :func:`classical_nmf`.
    verbose : int
        Whether to show progress on the standard error stream: a line that changes at a terminal or in a notebook, else a few.
    callback : callable, optional
        Called with an :class:`Iterate` after every step of every descent, and with the bound if ``certificate="now"``; a true
        answer stops, keeping the best so far.
    memory_limit, client
        Work on data in row chunks, from files or on a Dask cluster, as dask arrays always are; see :func:`classical_nmf`.
    row_names, column_names : sequence, optional
        Names of rows and columns of data without any, or in place of theirs; all different.

    Returns
    -------
    Factorization

    Raises
    ------
    Interrupted
        On Ctrl-C; a KeyboardInterrupt whose `solution` is the best factorisation so far.

    Notes
    -----
    This takes up to three times as long as one descent of scikit-learn's, or a fifth of a second; :func:`classical_nmf` is a
    single descent. On data in row chunks there are three descents (the singular vectors, rows and columns that stick out), the
    number of components must be given, and the bound rests on the singular values of the data and is proved at once.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> rng = np.random.default_rng(0)
    >>> A = rng.random((20, 3)) @ rng.random((3, 15))
    >>> result = cvxnmf.factorize(A, n_components=3)
    >>> result.U.shape, result.V.shape, bool(result.value < 1e-3 * np.sum(A**2))
    ((20, 3), (15, 3), True)
    """
    found = find_loss(loss) if weights is None else find_loss(f"{WEIGHTED}{find_loss(loss).name}")
    effort = None if effort is None else validation.integer("effort", effort, minimum=0)
    now = validation.choice("certificate", certificate, ("later", "now")) == "now"
    stopping = Stopping.from_arguments(max_iter, tol, callback)
    if not (symmetric is None or isinstance(symmetric, bool | np.bool_)):
        validation.refuse(f"symmetric must be True, False or None, not {symmetric!r}.")
    named, place = separate_names(A, row_names, column_names), (memory_limit, client)
    require_method("hals", found, bool(symmetric), None, not chunked.needs_chunks(named.A, *place))
    weights = named.weights(weights)
    if n_components is None and start is not None:
        n_components = _columns(start)

    def search_best(told: Callable[[Iterate], Any] | None) -> Factorization:
        with open_data(named.A, n_components, found, symmetric, weights, place) as (raw, data):
            k = _found_components(data) if n_components is None else validation.components(n_components, data.shape)
            given = None if start is None else _start_factors(start, data.symmetric)
            search = Search(data, raw, k, found.name, stopping._replace(callback=told))
            own_weights = None if weights is None else checked_weights(weights, data.shape)
            return _best_of(search, given, effort, now or not data.in_memory, own_weights)

    with shown(verbose, "factorize", stopping.max_iter, callback) as told:
        return named.result_of(lambda: search_best(told))


def _best_of(search: Search, given: Any, effort: int | None, now: bool, weights: FloatArray | None = None) -> Factorization:
    """The best factorisation of a search with its certificate, or the given start itself if no run is below it."""
    search.run(given)
    best, A, k, loss = search.best.factorization(), search.A, search.k, search.loss
    symmetric = search.symmetric and search.data.in_memory  # a bound from row chunks is about all factors of this rank
    if given is not None:
        best = _no_worse(best, given, search)
    spent = 0 if search.stopped else effort

    def prove(value: float) -> Certificate:
        if weights is not None:
            return weighted_certificate(A, k, value, loss, weights, spent)
        return rank_certificate(A, k, value, loss, symmetric, spent)

    return _certify_best(search, best, prove, given is None) if now else _certified_later(search, best, prove)


def normalised_factors(A: Any, k: int, start: FloatArray) -> Factorization:
    """Factors ``A ≈ UU'`` of a graph of least ``sum (A - UU')_ij^2 / (d_i d_j)``, with a proof.

    A symmetric factorisation of the adjacency matrix over the roots of its degrees d, descended from the given start, n by k and
    nonnegative, and from its eigenvectors.
    """
    B, roots = degree_scaled(A)
    large = A.shape[0] > LARGEST_WHOLE
    data = checked_matrix(B, True, find_loss("mse"))
    search = Search(data, B, k, "mse", Stopping(LARGE_STEPS if large else 1000, 1e-6))
    search.descend((start / roots[:, None],) * 2)
    if not large:
        search.descend(initialise.eigen_nndsvd(B, k))
    effort = int(np.clip(GRAPH_EFFORT / B.shape[0] ** 3, 5, 150))
    best = search.best.factorization()
    result = _certify_best(search, best, lambda value: rank_certificate(A, k, value, "mse", True, effort, "degree"), True)
    U = roots[:, None] * result.U
    return dataclasses.replace(result, U=U, V=U)


def _certify_best(
    search: Search, best: Factorization, certificate_of: Callable[[float], Certificate], from_dual: bool
) -> Factorization:
    """The best factorisation with its certificate; of two columns, also tried from the dual point, which may close the gap."""
    with keep_best(lambda found: best if found is None else _with_certificate(best, found, search)):
        certificate = certificate_of(best.value)
    if from_dual and search.k == 2 and certificate.kind == "dual":
        better = _from_dual_point(search.A, certificate.witness["N"], search.symmetric)
        run = None if better is None else search.descend(better)
        if run is not None and run.value < best.value:
            best, certificate = run.factorization(), certificate_of(run.value)
    search.tell_bound(certificate)
    return _with_certificate(best, certificate, search)


def _with_certificate(best: Factorization, certificate: Certificate, search: Search) -> Factorization:
    """The best factorisation with its certificate, which its message and levels tell of."""
    message = proved_message(best.message, certificate)
    return dataclasses.replace(best, certificate=certificate, message=message, levels=search.levels(certificate))


def _certified_later(search: Search, best: Factorization, certificate_of: Callable[[float], Certificate]) -> Factorization:
    """The best factorisation of the search, with a certificate that is computed when first looked at."""
    proof = functools.cache(ProofLater(search.A, lambda: certificate_of(best.value)))
    return dataclasses.replace(
        best,
        certificate=proof,
        message=lambda: proved_message(best.message, proof()),
        levels=lambda: search.levels(proof()),
    )


def _no_worse(run: Factorization, given: Any, search: Search) -> Factorization:
    """The factorisation, or the user's start if rounding or the lifting of zeros took the descent above it."""
    sides = (given, None) if search.symmetric else given
    U, V = validation.nonnegative_factors(sides[0], sides[1], search.A.shape)
    value = search.data.loss_value(find_loss(search.loss), search.data.hold(U, NO_PENALTY), V)
    return run if run.value <= value else dataclasses.replace(run, U=U, V=V, value=value, message="The start was not improved.")


def _start_factors(start: Any, twofold: bool) -> Any:
    """A user's start of factorize, a Factorization or factors, in the form that the descent takes."""
    if isinstance(start, Factorization):
        return start.U if twofold else (start.U, start.V)
    pair = isinstance(start, tuple | list) and len(start) == 2 and np.ndim(start[0]) == 2
    if not (twofold or pair):
        _refuse_start()
    return start[0] if twofold and pair else start


def _columns(start: Any) -> int:
    """How many columns the start has that a user gives to factorize."""
    try:
        return int(np.shape(_start_factors(start, True))[1])
    except (IndexError, TypeError, ValueError):
        _refuse_start()


def _refuse_start() -> NoReturn:
    validation.refuse("start must be a Factorization, a pair of matrices (U, V), or for symmetric factors a matrix U.")


def _found_components(data: DataMatrix) -> int:
    """The number of components where none is given: the rank of the convex solution at the noise edge, plus one."""
    A, twofold = data.matrix, data.symmetric
    if twofold and sp.issparse(A) and A.shape[0] > LARGEST_WHOLE:
        kept = np.flatnonzero(np.diff(A.indptr))
        return 1 + directions_above_noise(sp.csr_array(A[kept][:, kept]), MOST_DIRECTIONS)
    dense = A.toarray() if sp.issparse(A) else in_double(A)
    if min(dense.shape) == 1:
        return 1
    try:
        problem: Any = state_symmetric(dense, trace="auto") if twofold else nonsymmetric(dense, trace="auto")
    except ValueError:  # no noise at all
        return int(np.linalg.matrix_rank(dense))
    return int(min(1 + solve(problem, tol=1e-3).rank, *A.shape))


def _from_dual_point(A: Any, N: FloatArray, twofold: bool) -> Factors | None:
    """Factors of the best rank-two matrix for the dual point N; globally optimal if that matrix is nonnegative."""
    if A.shape != N.shape:  # the bound is that of a part of the data
        return None
    dense = np.asarray(A.toarray() if sp.issparse(A) else A)
    X, _ = best_low_rank(dense + N, 2, twofold)
    if X.min() < -NEARLY_NONNEGATIVE * X.max():
        return None
    if twofold:
        values, vectors = np.linalg.eigh(X)
        U = rotate_into_orthant(vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0)))
        return None if U is None else (U, U)
    left, values, right = np.linalg.svd(X, full_matrices=False)
    rows = left[:, :2] * values[:2]
    angles = np.arctan2(rows[:, 1], rows[:, 0] * np.sign(rows[:, 0].sum()))
    corners = rows[[int(np.argmin(angles)), int(np.argmax(angles))]]
    if abs(np.linalg.det(corners)) <= 1e-12 * float(np.vdot(corners, corners)):
        return None
    return np.maximum(0.0, rows @ np.linalg.inv(corners)), np.maximum(0.0, (corners @ right[:2]).T)
