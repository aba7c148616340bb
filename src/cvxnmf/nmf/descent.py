"""Classical rank-k factorisation ``A ≈ UV'``, U and V nonnegative: one loop drives every method on every kind of data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cvxnmf import chunked, validation
from cvxnmf.certificates import NEGLIGIBLE, Certificate, Proof, RankStatement
from cvxnmf.linalg.arrays import FloatArray, column_sums
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf.alternating import Alternating, Objective, Symmetric
from cvxnmf.nmf.data_matrix import NO_PENALTY, DataMatrix, Penalty
from cvxnmf.nmf.loss_names import WEIGHTED, find_loss
from cvxnmf.nmf.methods import METHODS, Needs, require_method
from cvxnmf.nmf.open import open_data
from cvxnmf.nmf.progress import shown
from cvxnmf.nmf.row_names import separate_names
from cvxnmf.nmf.starts import scaled_start, starting_point
from cvxnmf.nmf.updates.volume import Volume
from cvxnmf.results import Factorization, Iterate, Status
from cvxnmf.results.status import keep_best
from cvxnmf.typing import ClientLike, FactorsLike, MatrixLike, MemoryLimit, Names, Pair, Seed

#: A volume is weighed against at least this share of the data's size.
LEAST_LOSS = 1e-6
#: Steps whose common progress decides about stopping.
WINDOW = 10

ENDINGS = {
    Status.OPTIMAL: "the data are reproduced up to rounding",
    Status.CONVERGED: "the objective no longer falls by more than the tolerance",
    Status.MAX_ITER: "the limit of steps was reached while the objective was still falling",
    Status.INTERRUPTED: "stopped on request",
    Status.NONFINITE: "a value stopped being finite, and the last finite point is kept",
}


class Run(NamedTuple):
    """The factors, value, history and status that a descent found; the certificate is made only on demand."""

    U: FloatArray
    V: FloatArray
    value: float
    history: tuple[Iterate, ...]
    status: Status
    loss: str
    scale: float

    @property
    def message(self) -> str:
        """How the descent ended, and after how many steps."""
        steps = f"{len(self.history)} step{'s' if len(self.history) != 1 else ''}"
        return f"After {steps} {ENDINGS[self.status]}; a local method, so that better factors may exist."

    def factorization(self) -> Factorization:
        """The result of the descent with a certificate of its value and the bound 0."""
        statement = RankStatement(self.loss, self.U.shape[1], self.V is self.U)
        certificate = Certificate.of_proof(self.value, "zero", Proof(0.0, True, self.scale), statement)
        return Factorization(self.U, self.V, self.value, certificate, self.history, self.status, self.message)


class Stopping(NamedTuple):
    """When a descent ends: most steps, tolerance, and a callback that may stop it."""

    max_iter: int = 200
    tol: float = 1e-4
    callback: Callable[[Iterate], Any] | None = None

    @classmethod
    def from_arguments(cls, max_iter: Any, tol: Any, callback: Any) -> Stopping:
        """When a descent ends by a user's arguments, refused in a sentence where they make no sense."""
        validation.callback(callback)
        return cls(validation.integer("max_iter", max_iter, minimum=1), validation.number("tol", tol, minimum=0.0), callback)


DEFAULT_STOPPING = Stopping()


def classical_nmf(
    A: MatrixLike,
    n_components: int,
    method: str = "hals",
    loss: str | float = "mse",
    init: str | FactorsLike | None = None,
    symmetric: bool = False,
    *,
    max_iter: int = 200,
    tol: float = 1e-4,
    l1: Pair = 0.0,
    l2: Pair = 0.0,
    sparseness: tuple[float | None, float | None] | None = None,
    volume: float = 0.2,
    sum_to_one: bool = False,
    rng: Seed = 0,
    weights: ArrayLike | None = None,
    verbose: int = 0,
    callback: Callable[[Iterate], Any] | None = None,
    memory_limit: MemoryLimit = None,
    client: ClientLike | None = None,
    row_names: Names = None,
    column_names: Names = None,
) -> Factorization:
    """Factor a nonnegative matrix, ``A ≈ UV'`` or ``A ≈ UU'``, by a classical local method.

    The objective, which no method ever lets rise, is ``loss + l1_U sum(U) + l1_V sum(V) + l2_U ||U||² + l2_V ||V||²`` with the
    loss ``||A - UV'||²`` ("mse"), ``sum A log(A/UV') - A + UV'`` ("kl") or another beta divergence over the observed entries.

    Parameters
    ----------
    A : array-like, scipy.sparse matrix, numpy.memmap or dask array of shape (m, n)
        Nonnegative; NaN marks missing entries. Sparse matrices stay sparse. A dask array, and data for which a memory limit
        or a client is given, are worked on in row chunks and cannot have missing entries; see the notes.
    n_components : int
        Number of columns of U and V, at most the larger side of A.
    method : {"hals", "multiplicative", "gradient", "als", "quasi-newton", "sparse", "min-volume"}
        "hals": coordinate descent, extrapolated and restarted; but for "mse" with a scalar Newton step per coordinate, and for
        betas other than 0, 1/2, 1, 3/2, 2 and 3 by extrapolated multiplication.
        "multiplicative": Lee & Seung. "gradient": projected gradient with backtracking. "als": exact alternating least
        squares by block principal pivoting. "quasi-newton": Zdunek & Cichocki's projected step with a regularised Hessian.
        "sparse": Hoyer's constraint on the columns by projection. "min-volume": columns of V that sum to one and lie as near
        to one another as the data let them, for unmixing (Leplat, Ang & Gillis). The last four are for "mse".
    loss : {"mse", "kl", "itakura-saito"} or float
        Squared error, Kullback-Leibler or Itakura-Saito divergence; or the number beta of the beta divergence
        ``sum (A^beta + (beta - 1) E^beta - beta A E^(beta - 1)) / (beta (beta - 1))`` with ``E = UV'``, where 0 is
        Itakura-Saito, 1 Kullback-Leibler and 2 the squared error, which is not halved here. A beta of 0 or below needs
        positive data.
    init : {"nndsvd", "spa", "convex", "random"} or pair of arrays (U, V), optional
        The start: the singular vectors, rows of A that stick out (successive projection, which finds V where pure rows are among
        the data), the convex solution (of data that fit in memory when filled), or random numbers; for a symmetric factorisation
        an array U. Arrays are not changed. Left out, "nndsvd", and "spa" for "min-volume".
    symmetric : bool
        Factor a symmetric A as ``UU'``: "multiplicative" (Ding, He & Simon; for "kl" expectation maximisation) or "hals" (exact
        coordinate descent). V is U, so that both penalties fall on it.
    max_iter : int
        Most steps; one step updates U and V once.
    tol : float
        Stop when the last ten steps together lowered the objective by less than `tol` times its value.
    l1, l2 : float or pair of floats
        Weights of the penalties on U and V. Without them columns are scaled so that ``|u_l| = |v_l|``.
    sparseness : pair of floats or None, optional
        For method "sparse": Hoyer's ``(sqrt(n) - |x|_1/|x|_2) / (sqrt(n) - 1)`` that every column of U and of V shall have, from
        0 to 1; None leaves a factor free.
    volume : float
        For method "min-volume": the share of the loss at the start that the penalty ``log det(V'V + c I)`` weighs there.
    sum_to_one : bool
        Whether the rows of U shall sum to one, for "hals" and "min-volume" with "mse"; V is then as bright as the data. Where
        rows differ in brightness leave it out and take ``Factorization.shares()``.
    weights : array-like of shape (m,) or (m, n), optional
        Weights of the rows or of the entries in the loss, not negative; the data must fit in memory when filled. Missing
        entries have the weight 0. No bound better than 0 is known with weights.
    rng : int or numpy.random.Generator
        For ``init="random"``.
    verbose : int
        Whether to show progress on the standard error stream: a line that changes at a terminal or in a notebook, else a few.
    callback : callable, optional
        Called with an :class:`Iterate` after every step; a true answer stops.
    memory_limit : int or str, optional
        Most memory that the whole process may use, in bytes or in words such as ``"2 GB"``: data are read in row chunks, each
        once per step. Files opened with ``numpy.load(path, mmap_mode="r")`` may be larger than the memory.
    client : distributed.Client or str, optional
        A Dask cluster, or the address of its scheduler, that does the work. Left out, a dask array is worked on by the current
        client, or in this process if there is none.
    row_names, column_names : sequence, optional
        Names of rows and columns, where A brings none along; see :func:`factorize`.

    Returns
    -------
    Factorization
        Columns by decreasing weight. The certificate holds the value and the bound 0.

    Raises
    ------
    Interrupted
        On Ctrl-C; a KeyboardInterrupt whose `solution` is the best Factorization so far.

    Notes
    -----
    On data in row chunks the methods are "hals", "multiplicative", "als", "quasi-newton" and "min-volume" ("kl": the first two)
    and the starts "nndsvd", "spa", "random" and arrays. Steps are the same as in memory, with two exceptions: "hals" for "kl"
    updates V by multiplication, since Newton's steps on V would need more than one pass over the data; and symmetric "hals" takes
    the best point on the way to nonnegative least squares instead of one coordinate after the other. For "kl" the values in the
    history are those before V is updated; the value of the result is computed at its factors.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxnmf import classical_nmf
    >>> A = np.kron(np.array([[2.0, 0.0], [1.0, 3.0]]), np.ones((3, 4)))
    >>> result = classical_nmf(A, n_components=2, max_iter=1000, tol=1e-10)
    >>> bool(result.value < 1e-9), result.U.shape, result.V.shape
    (True, (6, 2), (8, 2))
    """
    validation.choice("method", method, METHODS)
    found = find_loss(loss) if weights is None else find_loss(f"{WEIGHTED}{find_loss(loss).name}")
    stopping = Stopping.from_arguments(max_iter, tol, callback)
    if not isinstance(symmetric, bool | np.bool_):
        validation.refuse(f"symmetric must be True or False, not {symmetric!r}.")
    if not isinstance(sum_to_one, bool | np.bool_):
        validation.refuse(f"sum_to_one must be True or False, not {sum_to_one!r}.")
    least = METHODS[method].least_volume
    share = validation.number("volume", volume, minimum=0.0) if least else 0.0
    penalty = Penalty(_pair("l1", l1), _pair("l2", l2), Volume(share), bool(sum_to_one))
    init = ("spa" if least else "nndsvd") if init is None else init
    named = separate_names(A, row_names, column_names)
    weights = named.weights(weights)
    place, twofold = (memory_limit, client), bool(symmetric)
    require_method(method, found, twofold, sparseness, not chunked.needs_chunks(named.A, *place), bool(sum_to_one))

    def descend_once(told: Callable[[Iterate], Any] | None) -> Factorization:
        with open_data(named.A, n_components, found, twofold, weights, place, keep_given=False) as (_, data), single_thread():
            start = starting_point(data, validation.components(n_components, data.shape), init, twofold, rng)
            terms = (method, found.name, twofold, penalty, sparseness, stopping._replace(callback=told))
            return descend(data, start, *terms).factorization()

    with shown(verbose, "classical_nmf", stopping.max_iter, callback) as told:
        return named.result_of(lambda: descend_once(told))


def descend(
    data: DataMatrix,
    start: tuple[FloatArray, FloatArray],
    method: str = "hals",
    loss: str = "mse",
    symmetric: bool = False,
    penalty: Penalty = NO_PENALTY,
    sparseness: Any = None,
    stopping: Stopping = DEFAULT_STOPPING,
) -> Run:
    """One descent on checked data from checked factors, which are not changed; U and V are the same array if symmetric."""
    kind = METHODS[method]
    with single_thread(), np.errstate(all="ignore"):  # values are tested for being finite
        objective = Objective(data, find_loss(loss), penalty)
        if symmetric:
            rule = kind.symmetric_rule(objective.loss.kind, data.in_memory)
            return Descent(Symmetric(objective, rule, start[0]), stopping).run()
        if kind.least_volume or penalty.sum_to_one:
            start = scaled_start(start, penalty.sum_to_one)
            objective.penalty = penalty = penalty._replace(volume=_volume(objective, start))
        rules = kind.make[objective.loss.kind](Needs(sparseness, data.in_memory, penalty.volume, penalty.sum_to_one))
        return Descent(Alternating(objective, rules, *start), stopping).run()


def _volume(objective: Objective, start: tuple[FloatArray, FloatArray]) -> Volume:
    """The penalty on the volume for a descent, its weight a share of the loss at the start, or of a millionth of the scale."""
    share, U = objective.penalty.volume.weight, objective.data.hold(start[0], NO_PENALTY)
    if not share:
        return Volume()
    loss = objective.data.loss_value(objective.loss, U, start[1])
    return Volume.balancing(share, max(loss, LEAST_LOSS * objective.scale), start[1])


class Descent:
    """The loop of a descent, which can be left and taken up again, its history, and the last point that did not rise."""

    def __init__(self, iteration: Alternating | Symmetric, stopping: Stopping) -> None:
        self.iteration, self.objective, self.stopping = iteration, iteration.objective, stopping
        self.began, self.history = time.perf_counter(), list[Iterate]()
        self.point, self.values = (iteration.U, iteration.V), [iteration.value]

    def run(self) -> Run:
        """The run of the descent to its end; on Ctrl-C the best so far goes with the interrupt."""
        with keep_best(lambda inner: self.result(Status.INTERRUPTED).factorization()):
            status = self.advance(self.stopping.max_iter, self.stopping.tol)
        return self.result(status)

    def advance(self, steps: int, tol: float) -> Status:
        """The one loop of all descents, so many steps of it at most: step, guard, record, stop."""
        for number in range(len(self.values), len(self.values) + steps):
            self.iteration.step()
            value, before = self.iteration.value, self.values[-1]
            if not math.isfinite(value):
                return Status.NONFINITE
            if value <= before:
                self.point = self.iteration.U, self.iteration.V
            self.values.append(min(value, before))
            if self._record(number):
                return Status.INTERRUPTED
            if self.values[-1] <= tol * NEGLIGIBLE * self.objective.scale:
                return Status.OPTIMAL
            if value > before:  # a rise by rounding: nothing is left to gain
                return Status.CONVERGED
            if number >= WINDOW and self.values[-1 - WINDOW] - self.values[-1] <= tol * self.values[-1]:
                return Status.CONVERGED
        return Status.MAX_ITER

    def _record(self, number: int) -> bool:
        """Add a line to the history of the descent and call the callback; a true answer stops the loop."""
        rank, callback = self.point[1].shape[1], self.stopping.callback
        self.history.append(Iterate(number, time.perf_counter() - self.began, self.values[-1], 0.0, rank))
        return callback is not None and bool(callback(self.history[-1]))

    def result(self, status: Status) -> Run:
        """The run of the descent at its last point: columns in order, the value computed there."""
        objective, symmetric = self.objective, self.iteration.symmetric
        U = self.point[1] if symmetric else objective.data.collect(self.point[0])
        U, V = order_columns(U, self.point[1], balance=not objective.penalty.any)
        if objective.data.single:
            U, V = U.astype(np.float32), (V if V is U else V.astype(np.float32))
        V = U if symmetric else V
        whole = [np.ascontiguousarray(X, dtype=np.float64) for X in (U, V)]
        value = objective.evaluate(objective.data.hold(whole[0], objective.penalty), whole[1])
        return Run(U, V, value, tuple(self.history), status, objective.loss.name, objective.scale)


def order_columns(U: FloatArray, V: FloatArray, balance: bool) -> tuple[FloatArray, FloatArray]:
    """Columns of U and V by decreasing weight at the end of a descent, of equal norms on both sides if `balance`."""
    u, v = (np.sqrt(column_sums(X * X)) for X in (U, V))
    order = np.argsort(-(u * v), kind="stable")
    alive = (u > 0) & (v > 0) & balance
    ratio = np.sqrt(np.where(alive, v, 1.0) / np.where(alive, u, 1.0))[order]
    first, second = (np.take(X, order, axis=1, mode="clip") for X in (U, V))  # many times as fast as with other modes
    return (first, first) if V is U else (first * ratio, second / ratio)


def _pair(name: str, value: Any) -> tuple[float, float]:
    """Two numbers for the factors U and V of a descent, from one number for both or a pair."""
    parts = value if isinstance(value, tuple | list) else (value, value)
    if len(parts) != 2:
        validation.refuse(f"{name} must be a number or a pair of numbers (for U, for V), not {value!r}.")
    return validation.number(name, parts[0], minimum=0.0), validation.number(name, parts[1], minimum=0.0)
