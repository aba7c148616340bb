"""How many components: hidden entries are predicted with every number of them, and all data factored with proved bounds.

A tenth of the entries, scattered over the matrix, is hidden; the rest is factored with every rank, and the loss of the hidden
entries tells when a component describes noise. The descents of a mask share their work: a rank starts from the one below with the
strongest direction of the residual, from the singular vectors, and from the one above with two components merged. Nothing
that a mask hides is seen by its starts. All data are then descended from what the masks found.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from cvxnmf import chunked, validation
from cvxnmf.linalg.arrays import FloatArray, is_single
from cvxnmf.linalg.products import product_entries
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf import initialise
from cvxnmf.nmf.bounds import ProofLater, proved_message, rank_certificate
from cvxnmf.nmf.data_matrix import MemoryMatrix
from cvxnmf.nmf.descent import Run, Stopping, descend
from cvxnmf.nmf.initialise import Factors
from cvxnmf.nmf.loss_names import find_loss
from cvxnmf.nmf.losses import NMFLoss
from cvxnmf.nmf.open import data_in_memory
from cvxnmf.nmf.prepare import checked_matrix
from cvxnmf.nmf.progress import shown
from cvxnmf.nmf.row_names import Named, separate_names
from cvxnmf.results import Factorization, Iterate, RankChoice
from cvxnmf.typing import MatrixLike, Names

#: Steps of a descent under a mask and its tolerance; those of one on all data.
MASKED, WHOLE = Stopping(150, 1e-3), Stopping(200, 1e-4)
#: Most stored entries of data that are masked (rows are sampled beyond), fewest rows for each component, most hidden entries.
MOST_ENTRIES, ROWS_PER_COMPONENT, MOST_HIDDEN = 400_000, 20, 200_000
#: Share of the product of margins below which no entry is predicted: nothing is impossible because a few entries did not show it.
FLOOR = 0.02
#: Standard errors by which a larger number of components must be better.
CLEARLY = 1.0
#: How little all further components may gain beside the last one for them to be left out, and of the least error itself.
MINOR, SLIGHT = 0.05, 0.05


def choose_rank(
    A: MatrixLike,
    ranks: Iterable[int] = range(2, 21),
    loss: str | float = "mse",
    *,
    n_masks: int = 4,
    callback: Callable[[Iterate], Any] | None = None,
    verbose: int = 0,
    row_names: Names = None,
    column_names: Names = None,
) -> RankChoice:
    """Choose the number of components of ``A ≈ UV'``: the smallest that predicts hidden entries as well as the best does.

    Parameters
    ----------
    A : array-like, scipy.sparse matrix, data frame or AnnData of shape (m, n)
        Nonnegative; NaN stands for missing entries.
    ranks : iterable of int
        Numbers of components to try, each at most the smaller side of A.
    loss : {"mse", "kl", "itakura-saito"} or float
        ``||A - UV'||^2``, or Kullback-Leibler, which suits counts.
    n_masks : int
        How many times a tenth of the entries is hidden, at least 2. The places follow from the data: the same data give the
        same answer.
    callback : callable, optional
        Called with an :class:`Iterate` after every rank of every mask; a true answer stops after this mask, or, while there
        are fewer than two, raises KeyboardInterrupt.
    verbose : int
        Whether to show progress, see :func:`factorize`.
    row_names, column_names : sequence, optional
        Names, see :func:`factorize`.

    Returns
    -------
    RankChoice
        The recommendation `n_components`, its `reason`, a table of held-out error, stability, loss and proved bound for every
        number, and the factors; :func:`cvxnmf.plots.ranks` draws it.

    Notes
    -----
    Data of more than 400,000 stored entries are masked on a sample of their rows. The loss and its bound are those of all data.
    What is chosen is the rank of the mean that predicts best: noise that is only added has a mean of its own, which takes one
    component more, and of few entries per component fewer can be told apart than there are. Further components that together
    gain a twentieth of what the last one did are left out: noise cut off at zero leaves such traces.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> rng = np.random.default_rng(0)
    >>> A = rng.poisson(20 * rng.gamma(0.5, size=(60, 4)) @ rng.gamma(0.5, size=(4, 40)))
    >>> choice = cvxnmf.choose_rank(A, range(2, 8), loss="kl")
    >>> choice.n_components, choice.result.U.shape
    (4, (60, 4))
    """
    loss = find_loss(loss).name
    validation.callback(callback)
    n_masks = validation.integer("n_masks", n_masks, minimum=2)
    named = separate_names(A, row_names, column_names)
    if chunked.needs_chunks(named.A):
        validation.refuse("Ranks of data in blocks cannot be compared; choose them on a sample of the rows in memory.")
    raw = validation.partial_matrix(named.A)
    validation.magnitude(raw, loss)
    tried = _checked_ranks(ranks, raw.shape)
    single = is_single(named.A)
    with single_thread(), np.errstate(all="ignore"), shown(verbose, "choose_rank", None, callback) as told:
        comparison = Comparison(raw, tried, find_loss(loss), n_masks, told)
        comparison.run()
        results = comparison.results(named, checked_matrix(raw, False, find_loss(loss), single))
    held_out, stability = comparison.held_out(), comparison.stability()
    k, reason = recommend_rank(tried, held_out, stability)
    return RankChoice(k, reason, tried, held_out, stability, results)


def _checked_ranks(ranks: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The ranks to choose from, in order, refused in a sentence where they make no sense."""
    if isinstance(ranks, str) or not isinstance(ranks, Iterable) or len(getattr(ranks, "shape", (1,))) != 1:
        validation.refuse(f"ranks must be numbers of components such as range(2, 21), not {ranks!r}.")
    tried = tuple(sorted({validation.integer("ranks", k, minimum=1) for k in ranks}))
    if not tried:
        validation.refuse("ranks are empty; give numbers of components to try, such as range(2, 21).")
    if tried[-1] > min(shape):
        sides = f"{shape[0]} by {shape[1]}"
        validation.refuse(f"ranks go up to {tried[-1]}, but A is {sides}; choose at most {min(shape)} components.")
    return tried


class Fit(NamedTuple):
    """The best run of a rank under a mask, and the mean loss of the hidden entries."""

    run: Run
    held_out: float


class Comparison:
    """Fits of every rank under every mask of hidden entries, on all rows or a sample of them."""

    def __init__(self, A: Any, ranks: tuple[int, ...], loss: NMFLoss, n_masks: int, callback: Any) -> None:
        self.ranks, self.loss, self.n_masks, self.callback = ranks, loss, n_masks, callback
        self.A = sample_rows(A, ranks[-1])
        self.rng = np.random.default_rng(data_digest(self.A))
        self.fits: list[dict[int, Fit]] = []
        self.stopped = False

    def run(self) -> None:
        """Fit every rank under every mask of hidden entries."""
        for _ in range(self.n_masks):
            self.fits.append(self._fit_mask())
            if self.stopped:
                break
        if len(self.fits) < 2:
            raise KeyboardInterrupt("stopped before two masks were compared")

    def _fit_mask(self) -> dict[int, Fit]:
        """The best run of each rank under a new mask, and the loss of the entries that the mask hides."""
        rows, columns, hidden = hide_entries(self.A, self.rng)
        if not len(hidden):
            validation.refuse("A has too few entries for some of them to be hidden; choose the number of components yourself.")
        _, data = data_in_memory(with_missing(self.A, rows, columns), self.loss, keep_given=False)
        runs = shared_descents(data, self.ranks, self.loss.name, self._report)
        floor, ceiling = FLOOR * _product_of_margins(self.A, rows, columns), _largest_beside(self.A, rows, columns)
        fits = {}
        for k, run in runs.items():
            model = np.clip(product_entries(rows, columns, run.U, run.V), floor, np.maximum(floor, ceiling))
            fits[k] = Fit(run, float(self.loss.entrywise(hidden, np.asarray(model)).mean()))
        return fits

    def _report(self, k: int, run: Run) -> None:
        """Tell the callback that a rank was fitted under a mask."""
        if self.callback is not None:
            share = (len(self.fits) + (self.ranks.index(k) + 1) / len(self.ranks)) / (self.n_masks + 1)
            step = Iterate(len(run.history), 0.0, run.value, 0.0, k, f"mask {len(self.fits) + 1} of {self.n_masks}", share)
            self.stopped = bool(self.callback(step)) or self.stopped

    def held_out(self) -> FloatArray:
        """Mean loss of a hidden entry by mask and rank."""
        return np.array([[fits[k].held_out for k in self.ranks] for fits in self.fits])

    def stability(self) -> FloatArray:
        """Mean likeness of the components of two masks, by rank."""
        pairs = list(itertools.combinations(self.fits, 2))
        return np.array([np.mean([likeness(a[k].run.V, b[k].run.V) for a, b in pairs]) for k in self.ranks])

    def results(self, named: Named, data: MemoryMatrix) -> tuple[Factorization, ...]:
        """Factors of all data for every rank: from the best mask, or the rank below with a direction more where that is lower."""
        found: list[Factorization] = []
        previous: Run | None = None
        A = named.A
        for k in self.ranks:
            best = min((fits[k] for fits in self.fits), key=lambda fit: fit.run.value).run
            run = _descend(data, self._lift(best, data), self.loss.name, WHOLE)
            if previous is not None and previous.value < run.value:
                run = _descend(data, extend_factors(data, previous, k), self.loss.name, WHOLE)
            previous = run
            found.append(_with_proof_later(run, data.matrix if data.complete else validation.partial_matrix(A), named))
        return tuple(found)

    def _lift(self, run: Run, data: MemoryMatrix) -> Factors:
        """The factors of a masked fit on sampled rows as a start for all rows."""
        if len(run.U) == data.shape[0]:
            return run.U, run.V
        V = np.ascontiguousarray(run.V, dtype=np.float64)
        return initialise.least_squares_rows(data.storage.times(V), V), V


def shared_descents(
    data: MemoryMatrix, ranks: tuple[int, ...], loss: str, report: Callable[[int, Run], Any] = lambda k, run: None
) -> dict[int, Run]:
    """The best run of each rank: from the singular vectors, from the rank below grown, and from the rank above merged."""
    best: dict[int, Run] = {}
    triples = initialise.leading_triples(data.storage.A, ranks[-1])
    for k in ranks:
        starts = [initialise.nndsvd(data.storage.A, k, triples)]
        if best:
            starts.append(extend_factors(data, best[max(best)], k))
        best[k] = min((_descend(data, start, loss, MASKED) for start in starts), key=lambda run: run.value)
        report(k, best[k])
    for above, k in itertools.pairwise(reversed(ranks)):
        run = _descend(data, merge_components(best[above].U, best[above].V, k), loss, MASKED)
        best[k] = min(best[k], run, key=lambda run: run.value)
    return best


def _descend(data: MemoryMatrix, start: Factors, loss: str, stopping: Stopping) -> Run:
    """One descent of a rank from a start."""
    U, V = (np.ascontiguousarray(side, dtype=np.float64) for side in start)
    return descend(data, (U, V), "hals", loss, stopping=stopping)


def extend_factors(data: MemoryMatrix, run: Run, k: int) -> Factors:
    """Factors of a higher rank: the strongest directions of the residual become further columns."""
    U, V = run.U, run.V
    data.impute(U, V)
    while U.shape[1] < k:
        pair = initialise.residual_pair(data.storage.A, U, V)
        u, v = initialise.balance_columns(*(side[:, None] for side in pair))
        U, V = np.hstack([U, u]), np.hstack([V, v])
    return U, V


def merge_components(U: FloatArray, V: FloatArray, k: int) -> Factors:
    """Factors of a lower rank: pairs of components merged where merging costs least."""
    while U.shape[1] > k:
        i, j = initialise.cheapest_pair(U, V)
        u, v = initialise.rank_one(U[:, [i, j]], V[:, [i, j]])
        U, V = (np.column_stack([np.delete(side, [i, j], axis=1), new]) for side, new in ((U, u), (V, v)))
    return U, V


def _with_proof_later(run: Run, A: Any, named: Named) -> Factorization:
    """The run of a rank with names, to be certified by the singular values when somebody looks."""
    plain, k, loss = run.factorization(), run.U.shape[1], run.loss
    proof = functools.cache(ProofLater(A, lambda: rank_certificate(A, k, run.value, loss, False, 0)))
    vars(plain).update(certificate=proof, message=lambda: proved_message(run.message, proof()))
    return plain.with_names(named.rows, named.columns)


def sample_rows(A: Any, most_components: int) -> Any:
    """All rows for the choice of rank, or so many, evenly through the order of their norms, that stored entries are few."""
    stored = A.nnz if sp.issparse(A) else A.size
    wanted = max(int(A.shape[0] * MOST_ENTRIES / max(stored, 1)), ROWS_PER_COMPONENT * most_components)
    if wanted >= A.shape[0]:
        return A
    squares = np.asarray(A.multiply(A).sum(axis=1)).ravel() if sp.issparse(A) else np.nansum(A * A, axis=1)
    order = np.argsort(squares, kind="stable")
    part = A[np.sort(order[np.linspace(0, A.shape[0] - 1, wanted).astype(np.intp)])]
    return part if sp.issparse(part) else np.where(np.isnan(part).all(axis=0), 0.0, part)  # columns of which nothing is known


def data_digest(A: Any) -> int:
    """A seed for masks and random starts that follows from the data."""
    seal = hashlib.sha256(repr(A.shape).encode())
    for part in (A.data, A.indices, A.indptr) if sp.issparse(A) else (A,):
        seal.update(np.ascontiguousarray(part).tobytes())
    return int.from_bytes(seal.digest()[:16], "little")


def hide_entries(A: Any, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """A mask of hidden entries, about a tenth of the known ones: rows, columns, values; mirrored ones go together.

    No row and no column is hidden as a whole.
    """
    m, n = A.shape
    places = np.unique(rng.integers(0, m * n, size=max(4, min(m * n // 10, MOST_HIDDEN))))
    if m == n and _is_symmetric(A):
        places = np.unique(np.concatenate([places, places % n * n + places // n]))
    rows, columns = places // n, places % n
    values = np.asarray(A[rows, columns], dtype=np.float64).ravel()
    known = ~np.isnan(values)
    missing = np.zeros((1, 1), dtype=bool) if sp.issparse(A) else np.isnan(A)
    for side, size, given in ((rows, m, n - missing.sum(axis=1)), (columns, n, m - missing.sum(axis=0))):
        hidden = np.bincount(side[known], minlength=size)
        known &= (hidden < given * np.ones(size))[side]
    return rows[known], columns[known], values[known]


def _is_symmetric(A: Any) -> bool:
    return not (A != A.T).nnz if sp.issparse(A) else np.array_equal(A, A.T, equal_nan=True)


def with_missing(A: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Any:
    """The data with the hidden entries of a mask missing."""
    if not sp.issparse(A):
        hidden = A.copy()
        hidden[rows, columns] = np.nan
        return hidden
    return sp.csr_array(A + sp.csr_array((np.full(len(rows), np.nan), (rows, columns)), shape=A.shape))


def _product_of_margins(A: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> FloatArray:
    """A guess of hidden entries from the sums of their rows and columns."""
    known = A if sp.issparse(A) else np.nan_to_num(A)
    row, column = (np.asarray(known.sum(axis=axis)).ravel() for axis in (1, 0))
    return np.asarray(row[rows] * column[columns] / row.sum())


def _largest_beside(A: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> FloatArray:
    """The largest entry in the row and column of each hidden entry, which its prediction may not exceed."""
    known = A if sp.issparse(A) else np.nan_to_num(A)
    row, column = (
        np.asarray(known.max(axis=axis).todense() if sp.issparse(known) else known.max(axis=axis)).ravel() for axis in (1, 0)
    )
    return np.asarray(np.maximum(row[rows], column[columns]))


def likeness(V: FloatArray, W: FloatArray) -> float:
    """Mean cosine of the components of two masks' factors, matched one to one."""
    first, second = (side / np.maximum(np.linalg.norm(side, axis=0), np.finfo(np.float64).tiny) for side in (V, W))
    cosines = first.T @ second
    return float(cosines[linear_sum_assignment(-cosines)].mean())


def recommend_rank(ranks: tuple[int, ...], held_out: FloatArray, stability: FloatArray) -> tuple[int, str]:
    """The smallest rank whose held-out error is not clearly above the least one, or beyond which little is gained, and why."""
    mean = held_out.mean(axis=0)
    best = int(np.argmin(mean))
    excess = held_out - held_out[:, [best]]
    error = excess.std(axis=0, ddof=1) / np.sqrt(len(held_out))
    equal = int(np.argmax(excess.mean(axis=0) <= CLEARLY * error))
    place = min(equal, _bend(mean))
    alike = f"components of different masks are alike to {stability[place]:.2f}"
    if len(ranks) == 1:
        return ranks[0], f"{ranks[0]} is the only number that was tried; {alike}."
    least = mean[place] or np.finfo(np.float64).tiny
    tried = f"{ranks[place]} component{'' if ranks[place] == 1 else 's'}"
    below = "" if place == 0 else f", with {ranks[place - 1]} it is {mean[place - 1] / least - 1:.1%} higher"
    if place < equal:
        lowest = f"lower by {1 - mean[best] / least:.1%} with {ranks[best]}, which is little beside what the last of them gained"
        start = f"With {tried} the error of hidden entries is only {lowest}"
    elif place < best:
        lowest = f"with {ranks[best]}, where it is lowest, up to the spread between masks"
        start = f"With {tried} the error of hidden entries is as low as {lowest}"
    else:
        start = f"The error of hidden entries is lowest with {tried}"
    sentence = f"{start}{below}; {alike}."
    if place == len(ranks) - 1:
        sentence += " It is the largest number that was tried: try more."
    return ranks[place], sentence


def _bend(mean: FloatArray) -> int:
    """The first rank beyond which little held-out error is gained, beside the last gain and beside the error."""
    left = mean - mean.min()
    gains = np.append(0.0, -np.diff(mean))
    return int(np.argmax((left <= MINOR * gains) & (left <= SLIGHT * mean.min()) | (left == 0)))
