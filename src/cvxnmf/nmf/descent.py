"""Classical rank-k factorisation ``A ≈ UV'``, U and V nonnegative: one loop drives every method."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cvxnmf import chunked, validation
from cvxnmf.certificates import NEGLIGIBLE, Certificate, Proof, RankStatement
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf import chunked_descent
from cvxnmf.nmf.chunked_descent import rules_for
from cvxnmf.nmf.data import Data
from cvxnmf.nmf.methods import METHODS, components, pair, starting_point
from cvxnmf.nmf.movers import Alternating, Mover, Rules, Symmetric
from cvxnmf.nmf.objectives import LOSSES, Penalty, Problem
from cvxnmf.results import Factorization, Interrupted, Iterate, Status

#: Steps whose common progress decides about stopping.
WINDOW = 10


def classical_nmf(
    A: Any,
    n_components: int,
    method: str = "hals",
    loss: str = "mse",
    init: Any = "nndsvd",
    symmetric: bool = False,
    *,
    max_iter: int = 200,
    tol: float = 1e-4,
    l1: Any = 0.0,
    l2: Any = 0.0,
    sparseness: Any = None,
    rng: Any = 0,
    callback: Callable[[Iterate], Any] | None = None,
    memory_limit: Any = None,
    client: Any = None,
) -> Factorization:
    """Factor a nonnegative matrix, ``A ≈ UV'`` or ``A ≈ UU'``, by a classical local method.

    The objective, which no method ever lets rise, is ``loss + l1_U sum(U) + l1_V sum(V) + l2_U ||U||² + l2_V ||V||²`` with the
    loss ``||A - UV'||²`` ("mse") or ``sum A log(A/UV') - A + UV'`` ("kl") over the observed entries.

    Parameters
    ----------
    A : array-like, scipy.sparse matrix, numpy.memmap or dask array of shape (m, n)
        Nonnegative; NaN marks missing entries. Sparse matrices stay sparse. A dask array, and data for which a memory limit
        or a client is given, are worked on in blocks of rows and cannot have missing entries; see the notes.
    n_components : int
        Number of columns of U and V, at most the larger side of A.
    method : {"hals", "multiplicative", "gradient", "als", "quasi-newton", "sparse"}
        "hals": coordinate descent, extrapolated and restarted; for "kl" with a scalar Newton step per coordinate.
        "multiplicative": Lee & Seung. "gradient": projected gradient with backtracking. "als": exact alternating least
        squares by block principal pivoting. "quasi-newton": Zdunek & Cichocki's projected step with a regularised Hessian.
        "sparse": Hoyer's constraint on the columns by projection. The last three are for "mse".
    loss : {"mse", "kl"}
        Squared error or Kullback-Leibler divergence.
    init : {"nndsvd", "convex", "random"} or pair of arrays (U, V)
        The start: the singular vectors, the convex solution (of data that fit in memory when filled), or random numbers;
        for a symmetric factorisation an array U. Arrays are not changed.
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
    rng : int or numpy.random.Generator
        For ``init="random"``.
    callback : callable, optional
        Called with an :class:`Iterate` after every step; a true answer stops.
    memory_limit : int or str, optional
        Most memory that the whole process may use, in bytes or in words such as ``"2 GB"``: data are read in blocks of rows,
        each once per step. Files opened with ``numpy.load(path, mmap_mode="r")`` may be larger than the memory.
    client : distributed.Client or str, optional
        A Dask cluster, or the address of its scheduler, that does the work. Left out, a dask array is worked on by the current
        client, or in this process if there is none.

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
    On data in blocks the methods are "hals", "multiplicative", "als" and "quasi-newton" ("kl": the first two) and the starts
    "nndsvd", "random" and arrays. Steps are the same as in memory, with one exception: "hals" for "kl" moves V by
    multiplication, since Newton's steps on V would need more than one pass over the data. For "kl" the values in the history
    are those before V is moved; the value of the result is computed at its factors.

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
    validation.choice("loss", loss, LOSSES)
    validation.callback(callback)
    if not isinstance(symmetric, bool | np.bool_):
        validation.refuse(f"symmetric must be True or False, not {symmetric!r}.")
    max_iter = validation.integer("max_iter", max_iter, minimum=1)
    tol = validation.number("tol", tol, minimum=0.0)
    penalty = Penalty(pair("l1", l1), pair("l2", l2))
    kind = METHODS[method]
    kind.accept(method, loss, bool(symmetric), sparseness)
    if chunked.needs_chunks(A, memory_limit, client):
        if symmetric:
            validation.refuse("Data in blocks cannot be factored as UU'; use symmetric=False, or data in memory.")
        rules, k = rules_for(method, loss), components(n_components, chunked.matrix_shape(A))
        with chunked.open_chunked(A, k, memory_limit, client) as matrix:
            return _in_blocks(matrix, k, rules, loss, init, rng, penalty, (max_iter, tol, callback))
    data = Data.from_user(A, bool(symmetric), loss)
    k = components(n_components, data.shape)
    with single_thread(), np.errstate(all="ignore"):  # values are tested for being finite
        U, V = starting_point(data, k, init, bool(symmetric), rng)
        problem = LOSSES[loss](data, penalty)
        mover: Mover
        if symmetric:
            mover = Symmetric(problem, kind.symmetric_rules[loss], U)
        else:
            mover = Alternating(problem, kind.rules(loss, sparseness), U, V)
        return _Run(problem, mover, max_iter, tol, callback).descended()


def _in_blocks(
    A: chunked.ChunkedMatrix,
    k: int,
    rules: Rules,
    loss: str,
    init: Any,
    rng: Any,
    penalty: Penalty,
    terms: tuple[int, float, Any],
) -> Factorization:
    """The same descent on data in blocks of rows."""
    validation.magnitude(np.array([A.max()]), loss)
    with single_thread(), np.errstate(all="ignore"):
        U, V = chunked_descent.starting_point(A, k, init, rng)
        problem = chunked_descent.PROBLEMS[loss](A, penalty)
        mover = chunked_descent.Spread(problem, rules, U, V)
        del U
        return _Run(problem, mover, *terms).descended()


class _Run:
    """One factorisation: the loop, its clock and history, and the last point that did not rise."""

    def __init__(
        self, problem: Problem, mover: Mover, max_iter: int, tol: float, callback: Callable[[Iterate], Any] | None
    ) -> None:
        self.problem, self.mover, self.max_iter, self.tol, self.callback = problem, mover, max_iter, tol, callback
        self.began, self.history = time.perf_counter(), list[Iterate]()
        self.point, self.values = (mover.U, mover.V), [mover.value]
        self.symmetric = mover.V is mover.U

    def descended(self) -> Factorization:
        """What the loop finds; on Ctrl-C the best so far goes with the interrupt."""
        try:
            status = self.loop()
        except KeyboardInterrupt:
            raise Interrupted(self.result(Status.INTERRUPTED)) from None
        return self.result(status)

    def loop(self) -> Status:
        """The one loop: step, guard, record, stop."""
        for iteration in range(1, self.max_iter + 1):
            self.mover.step()
            value, before = self.mover.value, self.values[-1]
            if not np.isfinite(value):
                return Status.NONFINITE
            if value <= before:
                self.point = self.mover.U, self.mover.V
            self.values.append(min(value, before))
            if self._record(iteration):
                return Status.INTERRUPTED
            if self.values[-1] <= self.tol * NEGLIGIBLE * self.problem.scale:
                return Status.OPTIMAL
            if value > before:  # a rise by rounding: nothing is left to gain
                return Status.CONVERGED
            if iteration >= WINDOW and self.values[-1 - WINDOW] - self.values[-1] <= self.tol * self.values[-1]:
                return Status.CONVERGED
        return Status.MAX_ITER

    def _record(self, iteration: int) -> bool:
        """Add a line to the history and tell the callback; a true answer stops the loop."""
        rank = self.point[1].shape[1]
        self.history.append(Iterate(iteration, time.perf_counter() - self.began, self.values[-1], 0.0, rank))
        return self.callback is not None and bool(self.callback(self.history[-1]))

    def result(self, status: Status) -> Factorization:
        """The point in tidy columns, its value computed there."""
        U = self.point[1] if self.symmetric else self.problem.whole(self.point[0])
        U, V = _tidy(U, self.point[1], balance=not self.problem.penalty.any)
        if self.problem.data.single:
            U, V = U.astype(np.float32), (V if V is U else V.astype(np.float32))
        V = U if self.symmetric else V
        value = self.problem.evaluate(*(np.ascontiguousarray(X, dtype=np.float64) for X in (U, V)))
        statement = RankStatement(self.problem.name, U.shape[1], self.symmetric)
        certificate = Certificate.of_proof(value, "zero", Proof(0.0, True, self.problem.scale), statement)
        return Factorization(U, V, value, certificate, tuple(self.history), status, self._message(status))

    def _message(self, status: Status) -> str:
        steps = f"{len(self.history)} step{'s' if len(self.history) != 1 else ''}"
        endings = {
            Status.OPTIMAL: "the data are reproduced up to rounding",
            Status.CONVERGED: "the objective no longer falls by more than the tolerance",
            Status.MAX_ITER: "the limit of steps was reached while the objective was still falling",
            Status.INTERRUPTED: "stopped on request",
            Status.NONFINITE: "a value stopped being finite, and the last finite point is kept",
        }
        return f"After {steps} {endings[status]}; a local method, so that better factors may exist."


def _tidy(U: FloatArray, V: FloatArray, balance: bool) -> tuple[FloatArray, FloatArray]:
    """Columns by decreasing weight, of equal norms on both sides if `balance`."""
    u, v = np.linalg.norm(U, axis=0), np.linalg.norm(V, axis=0)
    order = np.argsort(-(u * v), kind="stable")
    if V is U:
        U = np.ascontiguousarray(U[:, order])
        return U, U
    alive = (u > 0) & (v > 0) & balance
    ratio = np.sqrt(np.where(alive, v, 1.0) / np.where(alive, u, 1.0))
    return np.ascontiguousarray((U * ratio)[:, order]), np.ascontiguousarray((V / ratio)[:, order])
