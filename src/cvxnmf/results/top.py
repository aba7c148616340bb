"""The strongest rows and columns of every component, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cvxnmf.linalg.arrays import FloatArray

#: An entry of a factor up to this share of the largest of its component is not among the strongest, however few there are.
NEGLIGIBLE = 1e-3


class Item(NamedTuple):
    """A row or a column among the strongest of a component, by name or number, and its entry in the factor."""

    name: Any
    weight: float


Items = tuple[Item, ...]


class ComponentTop(NamedTuple):
    """The strongest rows and columns of one component, and its share of the weight ``|u_l| |v_l|`` of all.

    Examples
    --------
    >>> import cvxnmf
    >>> first = cvxnmf.factorize([[9, 8, 0], [7, 9, 0], [0, 0, 5]], 2, column_names=["red", "dry", "white"]).top(2)[0]
    >>> first.component, [item.name for item in first.columns]
    (0, ['dry', 'red'])
    """

    component: int
    share: float
    rows: tuple[Item, ...]
    columns: tuple[Item, ...]


@dataclass(frozen=True)
class Top(Sequence[ComponentTop]):
    """The strongest rows and columns of every component; prints as a table.

    Attributes
    ----------
    components : tuple of ComponentTop
        One for each component, in the order of the factors.
    symmetric : bool
        Whether rows and columns are the same nodes, so that `columns` are empty.

    Examples
    --------
    >>> import cvxnmf
    >>> result = cvxnmf.factorize([[9, 8, 0], [7, 9, 0], [0, 0, 5]], 2, column_names=["red", "dry", "white"])
    >>> top = result.top(2)
    >>> len(top), top[1].columns[0].name
    (2, 'white')
    """

    components: tuple[ComponentTop, ...]
    symmetric: bool = False

    def __getitem__(self, place: Any) -> Any:
        return self.components[place]

    def __len__(self) -> int:
        return len(self.components)

    def __iter__(self) -> Iterator[ComponentTop]:
        return iter(self.components)

    @property
    def heading(self) -> tuple[str, ...]:
        """Headings of the table of the strongest rows and columns."""
        return ("component", "share", "nodes") if self.symmetric else ("component", "share", "rows", "columns")

    def lines(self) -> list[tuple[str, ...]]:
        """The table of the strongest rows and columns as text: number, share of the weight, names."""
        return [
            (
                str(top.component),
                f"{100 * top.share:.0f}%",
                *(", ".join(str(item.name) for item in side) for side in self._sides(top)),
            )
            for top in self.components
        ]

    def _sides(self, top: ComponentTop) -> tuple[tuple[Item, ...], ...]:
        """The strongest rows and columns of a component, or nodes alone for symmetric factors."""
        return (top.rows,) if self.symmetric else (top.rows, top.columns)

    def __str__(self) -> str:
        return "\n".join(f"{number:>3} {share:>4}  {'  |  '.join(filter(None, sides))}" for number, share, *sides in self.lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from cvxnmf.display import cards

        return cards.top_card(self)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a line for each item: component, side, place from 1, name and weight."""
        from cvxnmf.display import frames

        return frames.top_frame(self)


def top_features(components: FloatArray, names: Sequence[Any] | None, n: int, by: str) -> Top:
    """The n strongest columns of the data in each row of `components`, which are not normalised on the other side."""
    n, by = checked_terms(n, by)
    columns = _strongest(components.T, names, n, by)
    return _table(np.linalg.norm(components, axis=1), [()] * len(columns), columns)


def checked_terms(n: Any, by: Any) -> tuple[int, str]:
    """Check how many of the strongest items to show and how they are ranked."""
    if isinstance(n, bool) or not hasattr(n, "__index__") or n < 1:
        raise ValueError(f"n must be an integer of at least 1, not {n!r}.")
    if by not in ("weight", "distinct"):
        raise ValueError(f"by={by!r} is not known; choose one of 'weight', 'distinct'.")
    return int(n), str(by)


def top_of(U: FloatArray, V: FloatArray, names: tuple[Sequence[Any] | None, Sequence[Any] | None], n: int, by: str) -> Top:
    """The n largest entries of each column of both factors, negligible ones left out; V may be U."""
    columns: list[Items] = [()] * U.shape[1] if V is U else _strongest(V, names[1], n, by)
    weights = np.linalg.norm(U, axis=0) * np.linalg.norm(V, axis=0)
    return _table(weights, _strongest(U, names[0], n, by), columns, V is U)


def _table(weights: FloatArray, rows: list[Items], columns: list[Items], symmetric: bool = False) -> Top:
    """The strongest items of all components with their shares of all weight."""
    shares = (weights / max(float(weights.sum()), np.finfo(np.float64).tiny)).tolist()
    return Top(tuple(map(ComponentTop, range(len(shares)), shares, rows, columns)), symmetric)


def _strongest(factor: FloatArray, names: Sequence[Any] | None, n: int, by: str) -> list[Items]:
    """The n strongest rows of each column of a factor, by their entries, or by entries times their share of the row."""
    score = factor
    if by == "distinct":
        lengths = np.maximum(np.linalg.norm(factor, axis=0), np.finfo(np.float64).tiny)
        scaled = factor / lengths
        score = factor * scaled / np.maximum(scaled.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    order, largest = np.argsort(-score, axis=0, kind="stable")[:n], factor.max(axis=0, initial=0.0)
    return [
        tuple(
            Item(place if names is None else names[place], float(factor[place, column]))
            for place in order[:, column].tolist()
            if factor[place, column] > NEGLIGIBLE * largest[column]
        )
        for column in range(factor.shape[1])
    ]
