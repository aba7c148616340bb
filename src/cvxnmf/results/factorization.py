"""Nonnegative factors: of exp(X), and of the data with what is proved about them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results.status import Iterate, Status
from cvxnmf.results.top import Top, checked_terms, top_of

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate
    from cvxnmf.linalg.uniqueness import Uniqueness

Value = TypeVar("Value")
#: Rows and columns of a component that are printed with a result, where they have names.
REPR_ITEMS = 4


class OnDemand(Generic[Value]):
    """A field of a result that may be given as a function of no arguments, called when it is first looked at."""

    def __init__(self, default: Value | None = None) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        if instance is None:  # the dataclass asks for the default
            if self.default is None:
                raise AttributeError(self.name)
            return self.default
        value = vars(instance)[self.name]
        if callable(value):
            value = vars(instance)[self.name] = value()
        return value  # type: ignore[no-any-return]

    def __set__(self, instance: Any, value: Value | Callable[[], Value]) -> None:
        vars(instance)[self.name] = value


@dataclass(frozen=True, eq=False)
class CPFactor:
    """Explicit nonnegative factors, ``E = UV'`` up to the stated errors; ``V is U`` for a completely positive E.

    Attributes
    ----------
    U : ndarray of shape (m, columns)
        Nonnegative.
    max_relative_error : float
        Largest of ``|UV' - E| / E`` over the entries, measured.
    frobenius_error : float
        ``||UV' - E|| / ||E||``, measured.
    V : ndarray of shape (n, columns)
        Nonnegative; U itself for a symmetric E.

    Examples
    --------
    >>> import cvxnmf
    >>> factor = cvxnmf.exp_factor([[0.0, -1.0], [-1.0, 0.0]], tol=1e-2)
    >>> bool(factor.U.min() >= 0), factor.max_relative_error <= 1e-2
    (True, True)
    """

    U: FloatArray
    max_relative_error: float
    frobenius_error: float
    V: FloatArray = field(default=None)  # type: ignore[arg-type]  # U when left out

    def __post_init__(self) -> None:
        if getattr(self, "V", None) is None:
            object.__setattr__(self, "V", self.U)

    def __repr__(self) -> str:
        from cvxnmf.display.formatting import count

        n, columns = self.U.shape
        return (
            f"<CPFactor: {count(n, 'row')}, {count(columns, 'column')}, relative error {self.max_relative_error:.1e} at most, "
            f"{self.frobenius_error:.1e} in norm>"
        )

    def _repr_html_(self) -> str:
        from cvxnmf.display import cards

        return cards.cp_factor_card(self)


class Level(NamedTuple):
    """One level on which a factorisation or partition was certified: its size, what it is about, and the certificate.

    Attributes
    ----------
    size : int
        Nodes, or groups of nodes, on this level.
    words : str
        What the certificate is about.
    certificate : Certificate
        Its numbers are those of the whole data.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> for level in cvxnmf.partition(A).levels:
    ...     print(level.size, level.certificate.scope)
    20 model
    20 rank-k
    """

    size: int
    words: str
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class Factorization:
    """Nonnegative factors of the data, ``A ≈ UV'``, with what is proved about them.

    Attributes
    ----------
    U : ndarray of shape (m, columns)
        Nonnegative.
    V : ndarray of shape (n, columns)
        Nonnegative; U itself for a symmetric factorisation.
    value : float
        The loss of ``UV'``.
    certificate : Certificate
        The value and a proved lower bound on the loss of every factorisation it speaks of. What :func:`factorize` finds is
        proved when the certificate is first looked at, printed or saved, from the data as they were.
    history : sequence of Iterate
        One entry per step; a step of :func:`recursive` is a stage.
    status : Status
        How the work ended.
    message : str
        The status in a sentence, with the reason for it, and what the certificate does not settle.
    levels : tuple of Level
        Of a large graph, what is proved on groups of its nodes and on the whole; else empty.
    row_names, column_names : tuple or None
        Names of the rows and columns of the data, where these came with names; tables, cards and pages show them.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> result = cvxnmf.factorize(np.kron([[2.0, 0.0], [1.0, 3.0]], np.ones((2, 3))), 2)
    >>> result.U.shape, result.V.shape, result.value < 1e-9
    ((4, 2), (6, 2), True)
    """

    U: FloatArray
    V: FloatArray
    value: float
    certificate: OnDemand[Certificate] = OnDemand()
    history: Sequence[Iterate]  # type: ignore[misc]  # the field before has no default
    status: Status  # type: ignore[misc]
    message: OnDemand[str] = OnDemand()
    levels: OnDemand[tuple[Level, ...]] = OnDemand(())
    row_names: tuple[Any, ...] | None = None
    column_names: tuple[Any, ...] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything of a factorisation, proved: a pickle or copy no longer needs the data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def n_components(self) -> int:
        """Number of components, the columns of the factors."""
        return int(self.U.shape[1])

    @functools.cached_property
    def uniqueness(self) -> Uniqueness:
        """Whether other nonnegative factors have the same product; order and scale of the components do not count.

        The status is "proved", "refuted" (with an alternative) or "unknown", and the reason says why; all in exact arithmetic.

        Examples
        --------
        >>> import numpy as np
        >>> import cvxnmf
        >>> A = np.kron(np.eye(3), np.ones((4, 4)))
        >>> cvxnmf.factorize(A, n_components=3).uniqueness.status
        'proved'
        """
        from cvxnmf.linalg.uniqueness import factor_uniqueness

        return factor_uniqueness(self.U, self.V)

    def _size(self) -> str:
        """The size of the data of a factorisation, and the number of components, in words."""
        from cvxnmf.display.formatting import count

        pair = f"{count(len(self.U), 'row')} and {count(len(self.V), 'column')}"
        sides = count(len(self.U), "node") if self.V is self.U else pair
        return f"{sides}, {count(self.n_components, 'component')}"

    @property
    def named(self) -> bool:
        """Whether rows or columns of a factorisation have names."""
        return self.row_names is not None or self.column_names is not None

    def with_names(self, row_names: Sequence[Any] | None, column_names: Sequence[Any] | None) -> Factorization:
        """Return the factorisation with names of rows and columns, without computing its certificate."""
        if self.V is self.U:  # the same nodes
            row_names = column_names = column_names if row_names is None else row_names
        other = object.__new__(type(self))
        rows, columns = (None if names is None else tuple(names) for names in (row_names, column_names))
        vars(other).update(vars(self) | {"row_names": rows, "column_names": columns})
        return other

    def top(self, n: int = 10, by: Literal["weight", "distinct"] = "weight") -> Top:
        """Return the strongest rows and columns of every component, by name, or by number where they have no names.

        Parameters
        ----------
        n : int
            How many of each; those whose entry is below a thousandth of the largest are left out.
        by : {"weight", "distinct"}
            "weight": the largest entries of a column of U or V. "distinct": the largest entries times the component's share
            of what the row or column has in all of them, so that what is strong everywhere comes later.

        Returns
        -------
        Top
            A sequence of :class:`ComponentTop`, which prints as a table; ``to_frame()`` gives a pandas data frame.

        Examples
        --------
        >>> import numpy as np, cvxnmf
        >>> A = np.kron([[2.0, 0.0], [0.0, 3.0]], np.ones((2, 2)))
        >>> result = cvxnmf.factorize(A, 2, row_names=["a", "b", "c", "d"], column_names=["w", "x", "y", "z"], symmetric=False)
        >>> print(result.top(2))
          0  60%  c, d  |  y, z
          1  40%  a, b  |  w, x
        """
        return top_of(self.U, self.V, (self.row_names, self.column_names), *checked_terms(n, by))

    def shares(self) -> FloatArray:
        """Return how much of each row every component is, as in unmixing: ``U_il |v_l|`` divided by its sum over l.

        Rows without any weight are zero. They do not depend on how bright a row is, nor on the scale of the columns.
        Where all rows of U sum to one, as by ``sum_to_one``, they are U.
        """
        if np.allclose(self.U.sum(axis=1), 1.0, rtol=0.0, atol=1e-6):
            return np.asarray(self.U, dtype=np.float64)
        weights = np.asarray(self.U * np.linalg.norm(self.V, axis=0), dtype=np.float64)
        return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny))

    def __repr__(self) -> str:
        line = f"<Factorization: {self._size()}, value {self.value:.6g}, {self.status.name}>"
        return line if not self.named else f"{line}\n{self.top(REPR_ITEMS)}"

    def __str__(self) -> str:
        top = f"\n{self.top(REPR_ITEMS)}" if self.named else ""
        return f"Factorization of {self._size()}\n{self.certificate}\n  {self.message}{top}"

    def _repr_html_(self) -> str:
        from cvxnmf.display import cards

        return cards.factorization_card(self)

    def to_frame(self, factor: Literal["U", "V"] = "U", names: Sequence[Any] | None = None) -> Any:
        """Return a factor as a pandas data frame, a column for each component.

        Parameters
        ----------
        factor : {"U", "V"}
            U has a line for each row of the data, V for each column.
        names : sequence, optional
            Names of these lines; left out, those that the data came with.
        """
        from cvxnmf.display import frames

        own = {"U": self.row_names, "V": self.column_names}[factor]
        return frames.factor_frame({"U": self.U, "V": self.V}[factor], own if names is None else names)

    def history_frame(self) -> Any:
        """Return the history as a pandas data frame: iteration, seconds, value, bound, gap and rank of every step."""
        from cvxnmf.display import frames

        return frames.history_frame(self.history)
