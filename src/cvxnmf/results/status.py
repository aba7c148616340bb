"""How work ended and how it went: Status, Iterate, and the exception that carries the best answer so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate
    from cvxnmf.results.factorization import Factorization
    from cvxnmf.results.partition import Partition
    from cvxnmf.results.solution import Solution


class Status(Enum):
    """How a solve ended; the member's value is its sentence.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> solution = cvxnmf.solve(cvxnmf.symmetric(A, trace="auto"), tol=1e-4)
    >>> solution.status is cvxnmf.Status.OPTIMAL
    True
    >>> print(solution.status.sentence)
    The certified relative gap is at or below the tolerance.
    """

    OPTIMAL = "The certified relative gap is at or below the tolerance."
    MAX_ITER = "The iteration limit was reached before the certified gap fell below the tolerance."
    STALLED = "Neither the value nor the bound moves any more; the gap that is left stands in the certificate."
    NONFINITE = "A value stopped being finite; the last finite point is returned."
    INFEASIBLE = "No point satisfies the constraints."
    CONVERGED = "The descent has come to rest; how good the result is stands in its certificate."
    INTERRUPTED = "Stopped on request; the best point so far is returned with its certificate."

    @property
    def sentence(self) -> str:
        """The status of a solve in plain words."""
        return str(self.value)

    def __str__(self) -> str:
        """Name and sentence of a status, as a person would want to read them."""
        return f"{self.name}: {self.value}"


@dataclass(frozen=True)
class Iterate:
    """One line of a solver's history, which is also handed to callbacks.

    Attributes
    ----------
    iteration : int
        Steps taken so far.
    seconds : float
        Wall time since the solve began, certificates included.
    value, bound : float
        Objective at this iterate, and the best proved lower bound so far; of the components reached so far when
        several are solved apart.
    rank : int
        Number of columns of W at this iterate, in the component at work.
    stage : str
        What is being done, where the work has several stages; value and bound are NaN in those before the first solve.
    share : float
        Estimated share of the whole work that is done, from 0 to 1; 0 where it is unknown.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> steps = []
    >>> solution = cvxnmf.solve(cvxnmf.symmetric(A, trace="auto"), callback=steps.append)
    >>> steps[-1].iteration == solution.n_iter, steps[-1].bound <= steps[-1].value
    (True, True)
    """

    iteration: int
    seconds: float
    value: float
    bound: float
    rank: int
    stage: str = ""
    share: float = 0.0

    @property
    def seconds_left(self) -> float:
        """Estimated seconds until the solver's end; NaN where they are unknown."""
        return self.seconds * (1.0 / self.share - 1.0) if self.share > 0 else float("nan")

    @property
    def gap(self) -> float:
        """Distance of value and bound at a step, on whichever side the bound is."""
        return abs(self.value - self.bound)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a solve: ends loops as Ctrl-C does, and carries the best answer so far.

    Attributes
    ----------
    solution : Solution, Factorization, Partition or Certificate
        The best answer so far with its certificate, status INTERRUPTED; of :func:`verify_labels` the certificate.
    finished : list of Solution
        What :func:`path` had finished before.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(60, 0.3, 0.7)
    >>> def press_ctrl_c(iterate):
    ...     raise KeyboardInterrupt
    >>> try:
    ...     cvxnmf.solve(cvxnmf.symmetric(A), callback=press_ctrl_c)
    ... except cvxnmf.Interrupted as stopped:
    ...     print(stopped.solution.status.name, stopped.solution.certificate.bound <= stopped.solution.value)
    INTERRUPTED True
    """

    def __init__(self, solution: Solution | Factorization | Partition | Certificate) -> None:
        super().__init__("interrupted; the best answer so far is in the exception's `solution`")
        self.solution: Any = solution
        self.finished: list[Solution] = []


@contextmanager
def keep_best(best: Callable[[Any], Solution | Factorization | Partition | Certificate | None]) -> Iterator[None]:
    """On Ctrl-C inside the context, raise :class:`Interrupted` with the best answer so far.

    ``best(inner)`` returns that answer, given the one that an inner interrupt carries (None if there is none). Where it returns
    None, as nothing has been found yet, the interrupt is raised again unchanged.
    """
    try:
        yield
    except KeyboardInterrupt as stopped:
        answer = best(getattr(stopped, "solution", None))
        if answer is None:
            raise
        raise Interrupted(answer) from None
