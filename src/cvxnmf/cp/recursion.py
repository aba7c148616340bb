"""The recursion by under-approximation: stages that stay below what the earlier ones leave (docs/mathematics.md)."""

from __future__ import annotations

import dataclasses
import time
import warnings
from abc import ABC, abstractmethod

import numpy as np

from cvxnmf import validation
from cvxnmf.certificates import Certificate, RankStatement
from cvxnmf.convex.doubly_nonnegative import sparse
from cvxnmf.convex.losses import LOSSES
from cvxnmf.convex.solve import solve
from cvxnmf.cp.stages import CliqueStages, Counted, Form, NoStage, WholeMatrixStages, scale_below
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.results import Factorization, Iterate, Status
from cvxnmf.results.status import keep_best
from cvxnmf.typing import MatrixLike

#: Steps that are spent on the bound.
BOUND_STEPS = 60


def recursive(
    A: MatrixLike,
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
        Whether the diagonal counts and limits the stages. Left out, it is ignored where it is zero throughout.
    trace : float, optional
        With "cliques": weight of the penalty on the embedding; left out, every stage is one column, ``U_k = u_k``.

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
    validation.choice("form", form, ("cliques", "paper"))
    validation.choice("loss", loss, OBJECTIVES)
    n_stages = validation.integer("n_stages", n_stages, minimum=1)
    checked = validation.symmetric_matrix(A)
    validation.magnitude(checked, loss)
    diagonal = _diagonal(checked, "fit" if form == "paper" and diagonal is None else diagonal)
    if trace is not None:
        trace = validation.number("trace", trace, minimum=0.0, strict=diagonal == "ignore")
    objective = OBJECTIVES[loss](checked, diagonal == "ignore")
    if form == "cliques" and not objective.allows_zeros:
        validation.refuse("loss='kl' is infinite wherever no stage covers an entry; use loss='mse', or form='paper'.")
    if form == "paper" and (diagonal == "ignore" or trace is not None):
        validation.refuse("form='paper' counts the diagonal and has no penalty; use form='cliques' or give neither.")
    stages: Form = CliqueStages(objective.A, objective.counted, trace) if form == "cliques" else WholeMatrixStages(objective.loss)
    with single_thread(len(checked)), np.errstate(all="ignore"):
        return _Recursion(objective, stages).run(n_stages)


def _diagonal(A: FloatArray, diagonal: str | None) -> str:
    if diagonal is not None:
        return validation.choice("diagonal", diagonal, ("fit", "ignore"))
    return "fit" if np.diag(A).any() else "ignore"


class Objective(ABC):
    """The recursion's objective: a loss of ``UU'`` against A, and the bound known for it; an ignored diagonal becomes zero."""

    loss: str
    #: Whether the value is finite where no stage covers an entry.
    allows_zeros: bool

    def __init__(self, A: FloatArray, ignore_diagonal: bool) -> None:
        self.A, self.ignore_diagonal = A, ignore_diagonal
        self.counted: Counted = np.ones(A.shape, dtype=bool)
        if ignore_diagonal:
            np.fill_diagonal(A, 0.0)
            np.fill_diagonal(self.counted, False)

    @abstractmethod
    def value(self, E: FloatArray) -> float:
        """Return the recursion's loss of the model E."""

    def certificate(self, value: float, columns: int) -> Certificate:
        """Return a bound for every nonnegative symmetric factorisation of so many columns: 0, where no other is known."""
        statement = RankStatement(self.loss, max(1, columns), symmetric=True)
        return Certificate.of_proof(value, "zero", statement.prove(self.A, "zero", {}), statement)


class SquaredError(Objective):
    """The recursion's squared error ``||A - UU'||^2`` over the entries that count."""

    loss, allows_zeros = "mse", True

    def value(self, E: FloatArray) -> float:
        """Return the recursion's squared error of the model E."""
        return float(np.sum((self.A - E)[self.counted] ** 2))

    def certificate(self, value: float, columns: int) -> Certificate:
        """Return the distance to the doubly nonnegative matrices, a bound for every factorisation, if the diagonal counts."""
        if self.ignore_diagonal:
            return super().certificate(value, columns)
        bound = solve(sparse(self.A), tol=1e-3, max_iter=BOUND_STEPS).certificate
        return dataclasses.replace(bound, value=value, bound=min(bound.bound, value), restored=False, digest="")


class KullbackLeibler(Objective):
    """The recursion's divergence ``KL(A || UU')``, infinite where the data are positive and no stage covers them."""

    loss, allows_zeros = "kl", False

    def value(self, E: FloatArray) -> float:
        """Return the recursion's divergence of the model E."""
        return LOSSES[self.loss](self.A).value(np.log(E))


#: Objectives of the recursion by the name of their loss.
OBJECTIVES: dict[str, type[Objective]] = {"mse": SquaredError, "kl": KullbackLeibler}


class _Recursion:
    """The loop of the recursion over stages, with the stages so far and their history."""

    def __init__(self, objective: Objective, form: Form) -> None:
        self.objective, self.form = objective, form
        self.parts: list[FloatArray] = []
        self.history: list[Iterate] = []
        self.unfinished: list[int] = []
        self.began = time.perf_counter()

    @property
    def U(self) -> FloatArray:
        """All columns of the recursion's stages so far."""
        return np.column_stack([np.zeros((len(self.objective.A), 0)), *self.parts])

    @property
    def E(self) -> FloatArray:
        """The sum ``UU'`` of all stages of the recursion so far."""
        U = self.U
        return np.asarray(U @ U.T)

    def run(self, n_stages: int) -> Factorization:
        """Take stages of the recursion until the number is reached or a stage cannot be taken."""
        status, message = Status.CONVERGED, f"{n_stages} stages were taken; every one stays below what the others leave."
        with keep_best(lambda _: self.result(Status.INTERRUPTED, Status.INTERRUPTED.sentence)):
            try:
                for number in range(1, n_stages + 1):
                    self.take_stage(number)
            except NoStage as reason:
                status, message = self.form.end, str(reason)
        if status is Status.INFEASIBLE:
            warnings.warn(message, stacklevel=3)
        return self.result(status, message)

    def take_stage(self, number: int) -> None:
        """Add a stage below the recursion's residual, refit the weights, and scale down where rounding exceeds the data."""
        objective = self.objective
        stage = self.form.next_stage(np.where(objective.counted, objective.A - self.E, 0.0), number)
        if not stage.converged:
            self.unfinished.append(number)
        parts = self.form.refit([*self.parts, stage.U])
        scaled = scale_below(np.column_stack(parts), objective.A, objective.counted)
        self.parts = np.split(scaled, np.cumsum([U.shape[1] for U in parts])[:-1], axis=1)
        seconds = time.perf_counter() - self.began
        self.history.append(Iterate(number, seconds, objective.value(self.E), 0.0, self.U.shape[1]))

    def result(self, status: Status, message: str) -> Factorization:
        """All stages of the recursion as one factorisation."""
        if self.unfinished:
            message += f" Stages that stopped before their best fit was found: {', '.join(map(str, self.unfinished))}."
        value, U = self.objective.value(self.E), self.U
        U = U[:, np.argsort(-np.sum(U * U, axis=0), kind="stable")]
        certificate = self.objective.certificate(value, U.shape[1])
        return Factorization(U, U, value, certificate, tuple(self.history), status, message)
