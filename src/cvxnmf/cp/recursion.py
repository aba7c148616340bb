"""The recursion on the residual, composed of convex problems (docs/mathematics.md)."""

from __future__ import annotations

import dataclasses
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cvxnmf import validation
from cvxnmf.certificates import Certificate, RankStatement
from cvxnmf.convex.cones import PSD, ConditionallyPSD
from cvxnmf.convex.doubly_nonnegative import sparse
from cvxnmf.convex.losses import LOSSES
from cvxnmf.convex.solve import solve
from cvxnmf.cp import under_approximation
from cvxnmf.cp.exp_factor import exp_factor
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results import Factorization, Interrupted, Iterate, Point, Solution, Status

#: Residuals below this share of the largest entry of A are used up.
USED_UP = 1e-9
#: Stages stay below the residual by this share, so that rounding cannot push them above.
ROOM = 1e-12
#: Relative error of the factors of a stage that has positions.
FACTOR_TOLERANCE = 1e-3
#: Steps that are spent on the bound.
BOUND_STEPS = 60


class _Taken(NamedTuple):
    """What a stage takes away: its factors, or the sentence that says why there is none."""

    U: FloatArray | None
    sentence: str = ""


def recursive(
    A: Any,
    n_stages: int = 3,
    loss: str = "mse",
    form: str = "cliques",
    diagonal: str | None = None,
    trace: float | None = None,
) -> Factorization:
    """Take a symmetric matrix apart stage by stage: ``A_{k+1} = A_k - U_k U_k'`` with ``U_k U_k' <= A_k``, ``U_k >= 0``.

    Each stage is the convex problem of the best model ``exp(X)`` that stays below the residual, so residuals stay
    nonnegative and every stage is a part of the data.

    Parameters
    ----------
    A : array-like or scipy.sparse matrix of shape (n, n)
        Nonnegative and symmetric.
    n_stages : int
        Number of stages; fewer are taken when nothing is left.
    loss : {"mse", "kl"}
        Squared error, or Kullback-Leibler for ``form="paper"`` only: it is infinite where no stage covers an entry.
    form : {"cliques", "paper"}
        "cliques": each stage lives on nodes that are all connected in the residual, on the conditional cone, and the weights
        of all stages are refitted together. "paper": each stage covers the whole matrix on the psd cone, which is infeasible
        as soon as the residual has an entry that no such model stays below; the result then says which.
    diagonal : {"fit", "ignore"}, optional
        Whether the diagonal counts and limits the under_approximation. Left out, it is ignored where it is zero throughout.
    trace : float, optional
        With "cliques": weight of the penalty on positions; left out, every stage is one column, ``U_k = u_k``.

    Raises
    ------
    Interrupted
        On Ctrl-C; a KeyboardInterrupt whose `solution` holds the stages so far.

    Returns
    -------
    Factorization
        The columns of all stages, by decreasing weight; ``history`` has the value after each stage. The certificate's
        bound holds for every ``UU'``, ``U >= 0``; it is 0 where the diagonal is ignored and for KL.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> A = np.kron(np.diag([3.0, 2.0]), np.ones((4, 4)))
    >>> result = cvxnmf.recursive(A, n_stages=2)
    >>> result.n_components, bool(result.value < 1e-9)
    (2, True)
    """
    validation.choice("form", form, FORMS)
    validation.choice("loss", loss, ("mse", "kl"))
    n_stages = validation.integer("n_stages", n_stages, minimum=1)
    checked = validation.symmetric_matrix(A)
    validation.magnitude(checked, loss)
    diagonal = _diagonal(checked, "fit" if form == "paper" and diagonal is None else diagonal)
    if trace is not None:
        trace = validation.number("trace", trace, minimum=0.0, strict=diagonal == "ignore")
    if form == "cliques" and loss == "kl":
        validation.refuse("loss='kl' is infinite wherever no stage covers an entry; use loss='mse', or form='paper'.")
    if form == "paper" and (diagonal == "ignore" or trace is not None):
        validation.refuse("form='paper' counts the diagonal and has no penalty; use form='cliques' or give neither.")
    with single_thread(len(checked)), np.errstate(all="ignore"):
        return _Recursion(checked, loss, diagonal == "ignore", trace).run(form, n_stages)


def _diagonal(A: FloatArray, diagonal: str | None) -> str:
    if diagonal is not None:
        return validation.choice("diagonal", diagonal, ("fit", "ignore"))
    return "fit" if np.diag(A).any() else "ignore"


class _Recursion:
    """The stages so far and what is left of the data."""

    def __init__(self, A: FloatArray, loss: str, ignore_diagonal: bool, trace: float | None) -> None:
        if ignore_diagonal:
            np.fill_diagonal(A, 0.0)
        self.A, self.loss, self.ignore_diagonal, self.trace = A, loss, ignore_diagonal, trace
        self.counted: NDArray[np.bool_] = ~np.eye(len(A), dtype=bool) if ignore_diagonal else np.ones(A.shape, dtype=bool)
        self.parts: list[FloatArray] = []
        self.history: list[Iterate] = []
        self.unsettled: list[int] = []
        self.began = time.perf_counter()

    @property
    def U(self) -> FloatArray:
        """All columns so far."""
        return np.column_stack([np.zeros((len(self.A), 0)), *self.parts])

    def residual(self) -> FloatArray:
        """What the stages leave of the data, nonnegative where it counts."""
        U = self.U
        return np.where(self.counted, self.A - U @ U.T, 0.0)

    def value(self) -> float:
        """The loss of all stages together."""
        U = self.U
        E = U @ U.T
        if self.loss == "mse":
            return float(np.sum((self.A - E)[self.counted] ** 2))
        return LOSSES["kl"](self.A).value(np.log(E))

    def run(self, form: str, n_stages: int) -> Factorization:
        """Take stages until the number is reached or a stage cannot be taken."""
        status, message = Status.CONVERGED, f"{n_stages} stages were taken; every one stays below what the others leave."
        try:
            for number in range(1, n_stages + 1):
                taken = FORMS[form](self, number)
                if taken.U is None:
                    status, message = (Status.CONVERGED if form == "cliques" else Status.INFEASIBLE), taken.sentence
                    break
                self.add(taken.U, form == "cliques")
        except KeyboardInterrupt:
            raise Interrupted(self.result(Status.INTERRUPTED, Status.INTERRUPTED.sentence)) from None
        if status is Status.INFEASIBLE:
            warnings.warn(message, stacklevel=3)
        return self.result(status, message)

    def add(self, U: FloatArray, refit: bool) -> None:
        """Keep a stage."""
        self.parts.append(U)
        if refit:
            self.refit()
        share = np.sqrt(_share_below(self.U, self.A, self.counted))  # rounding must not push the sum above the data
        self.parts = [share * part for part in self.parts]
        seconds = time.perf_counter() - self.began
        self.history.append(Iterate(len(self.history) + 1, seconds, self.value(), 0.0, self.U.shape[1]))

    def result(self, status: Status, message: str) -> Factorization:
        """All stages as one factorisation."""
        if self.unsettled:
            message += f" Stages that stopped before their best fit was found: {', '.join(map(str, self.unsettled))}."
        value, U = self.value(), self.U
        U = U[:, np.argsort(-np.sum(U * U, axis=0), kind="stable")]
        return Factorization(U, U, value, self.certificate(value), tuple(self.history), status, message)

    def refit(self) -> None:
        """Choose the weights of all stages anew, lowered until the residual is nonnegative."""
        c = under_approximation.refitted_weights(self.A, self.parts, self.counted)
        parts = [np.sqrt(weight) * U for weight, U in zip(c, self.parts, strict=True)]
        U = np.column_stack(parts)
        share = _share_below(U, self.A, self.counted)
        candidate = [np.sqrt(share) * part for part in parts]
        before, self.parts = self.parts, candidate
        if min(c) == 0 and self.residual_energy(before) <= self.residual_energy(candidate):
            self.parts = before

    def residual_energy(self, parts: list[FloatArray]) -> float:
        """Squared error of the given stages; infinite if they exceed the data."""
        U = np.column_stack(parts)
        R = (self.A - U @ U.T)[self.counted]
        return float(np.vdot(R, R)) if R.min() >= 0 else np.inf

    def clique_stage(self, number: int) -> _Taken:
        """The best model below the residual on a heavy clique of its support."""
        R = self.residual()
        nodes = under_approximation.heavy_clique(R, USED_UP * float(self.A.max()), self.ignore_diagonal)
        if not len(nodes):
            left = "two nodes have a positive residual" if self.ignore_diagonal else "node has a positive residual diagonal"
            return _Taken(None, f"Stage {number} has nothing left to take: no {left}.")
        square = np.ix_(nodes, nodes)
        loss = LOSSES[self.loss](R[square], self.ignore_diagonal)
        cone = ConditionallyPSD(np.ones(len(nodes)))
        stage = (
            under_approximation.effects_below(loss, cone)
            if self.trace is None
            else under_approximation.nearest_below(loss, cone, self.trace)
        )
        part = self.factors(stage, number)
        U = np.zeros((len(R), part.shape[1]))
        U[nodes] = part
        return _Taken(np.sqrt(_share_below(U, R, self.counted)) * U)

    def whole_stage(self, number: int) -> _Taken:
        """The best model below the residual on the psd cone, as the paper has it."""
        R = self.residual()
        sentence = _forbidding_entry(R, number)
        if sentence:
            return _Taken(None, sentence)
        stage = under_approximation.nearest_below(LOSSES[self.loss](R), PSD(np.ones(len(R))), 0.0)
        E = np.exp(stage.point.dense())
        i, j = np.unravel_index(int(np.argmin(R / E)), R.shape)
        if R[i, j] < 0.99 * E[i, j]:
            return _Taken(
                None,
                f"Stage {number} is infeasible: no positive semidefinite X was found with exp(X) below the residual, "
                f"which is {R[i, j]:.3g} at row {i}, column {j}; use form='cliques'.",
            )
        U = self.factors(stage, number)
        return _Taken(np.sqrt(_share_below(U, R, self.counted)) * U)

    def factors(self, stage: under_approximation.Stage, number: int) -> FloatArray:
        """Nonnegative columns of a stage; what did not settle is remembered."""
        if not stage.settled:
            self.unsettled.append(number)
        return _nonnegative_factors(stage.point)

    def certificate(self, value: float) -> Certificate:
        """A bound for every nonnegative symmetric factorisation, where one is known."""
        if self.loss == "mse" and not self.ignore_diagonal:
            bound = solve(sparse(self.A), tol=1e-3, max_iter=BOUND_STEPS).certificate
            return dataclasses.replace(bound, value=value, bound=min(bound.bound, value), restored=False, digest="")
        columns = max(1, self.U.shape[1])
        statement = RankStatement(self.loss, columns, symmetric=True)
        return Certificate.of_proof(value, "zero", statement.prove(self.A, "zero", {}), statement)


def _nonnegative_factors(point: Point) -> FloatArray:
    """Columns whose products are ``exp(X)``."""
    if not point.W.shape[1]:
        return np.exp(point.v)[:, None]
    shell = Solution(point, Status.OPTIMAL, None, (), 0, 0.0)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a factor that is off is scaled down below the residual all the same
        try:
            return exp_factor(shell, tol=FACTOR_TOLERANCE).U
        except ValueError:
            return validation.refuse("A stage needs too many columns; give a larger trace, or none for one column per stage.")


def _share_below(U: FloatArray, limit: FloatArray, counted: NDArray[np.bool_]) -> float:
    """The largest share of ``UU'`` that stays below the limit on the counted entries, at most 1."""
    E = U @ U.T
    binding = counted & (E > 0)
    share = float(np.min(limit[binding] / E[binding], initial=1.0))
    return max(0.0, share) * (1.0 - ROOM)


def _forbidding_entry(R: FloatArray, number: int) -> str:
    """The sentence that says why no ``exp(X)``, X positive semidefinite, stays below R; empty if nothing speaks against it."""
    diagonal = np.diag(R)
    low = int(np.argmin(diagonal))
    if diagonal[low] < 1:
        return (
            f"Stage {number} is infeasible: the residual is {diagonal[low]:.3g} at row {low}, column {low}, and exp(X) is at "
            "least 1 on the diagonal for every positive semidefinite X; use form='cliques'."
        )
    reach = np.sqrt(np.log(diagonal))
    least = np.exp(-np.outer(reach, reach))  # X_ij >= -sqrt(X_ii X_jj)
    i, j = np.unravel_index(int(np.argmin(R / least)), R.shape)
    if R[i, j] < least[i, j]:
        return (
            f"Stage {number} is infeasible: the residual is {R[i, j]:.3g} at row {i}, column {j}, where exp(X) is at least "
            f"{least[i, j]:.3g} for every positive semidefinite X below its diagonal; use form='cliques'."
        )
    return ""


FORMS = {"cliques": _Recursion.clique_stage, "paper": _Recursion.whole_stage}
