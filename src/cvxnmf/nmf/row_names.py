"""Names of rows and columns: taken from data frames and AnnData, or given, and handed on to the result."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from cvxnmf import chunked, validation
from cvxnmf.results import Factorization, Interrupted

Names = tuple[Any, ...] | None


class Named(NamedTuple):
    """Data without their names, and the names of rows and columns where there are any."""

    A: Any
    rows: Names = None
    columns: Names = None

    def weights(self, given: Any) -> Any:
        """Weights of the rows or of the entries, a frame or series of them in the order of the names of the data."""
        ordered = in_order(given, self.rows, "weights")
        if getattr(ordered, "ndim", 1) == 2 and hasattr(ordered, "iloc") and ordered.shape[1] > 1:
            ordered = in_order(ordered.T, self.columns, "weights").T
        return ordered

    def result_of(self, work: Callable[[], Factorization]) -> Factorization:
        """The factorisation that the work finds, with the names of rows and columns; so is the best so far on Ctrl-C."""
        try:
            return work().with_names(self.rows, self.columns)
        except Interrupted as stopped:
            stopped.solution = stopped.solution.with_names(self.rows, self.columns)
            raise


def separate_names(A: Any, row_names: Any = None, column_names: Any = None) -> Named:
    """The data of a frame or of an AnnData apart from their row and column names; given names replace those of the data.

    Frames are those of pandas, whose default numbering is no names, and all that narwhals knows (polars, pyarrow, ...), where a
    single column of text names the rows. Names of the data that occur twice are worth a warning, given ones are refused.
    """
    table = _table(A)
    for side, names in (("rows", table.rows), ("columns", table.columns)):
        if names is not None and (twice := _first_duplicate(names)) is not None:
            sentence = f"{twice!r} names several {side} of A, which tables cannot tell apart; make the names of {side} unique."
            warnings.warn(sentence, stacklevel=3)
    if row_names is None and column_names is None:
        return table
    m, n = chunked.matrix_shape(table.A)
    rows = table.rows if row_names is None else _given_names("row_names", row_names, m)
    columns = table.columns if column_names is None else _given_names("column_names", column_names, n)
    return Named(table.A, rows, columns)


def in_order(given: Any, names: Names, what: str) -> Any:
    """A frame or series of pandas with its rows in the order of these names of the data; what has no names is left as it is."""
    if not (hasattr(given, "index") and hasattr(given, "iloc")):
        return given
    order = order_of(_index_names(given.index), names, what)
    return given if order is None else given.iloc[order]


def order_of(own: Names, names: Names, what: str) -> list[int] | None:
    """Places of the names of the data among those of something else about them; None where both are alike, or one has none."""
    if own is None or names is None or own == names:
        return None
    places = {name: place for place, name in enumerate(own)}
    missing = next((name for name in names if name not in places), None)
    if missing is not None or len(places) < len(own) or len(own) != len(names):
        lack = "other names than A" if missing is None else f"names, but not {missing!r}, which A has"
        validation.refuse(f"{what} has {lack}; give it the names of A, or none.")
    return [places[name] for name in names]


def _given_names(name: str, given: Any, size: int) -> tuple[Any, ...]:
    """Names of rows or columns that a user gives: one for each, and all different."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        validation.refuse(f"{name} must be a sequence of names, not {given!r}.")
    try:
        names = _plain(given)
        twice = _first_duplicate(names)
    except TypeError:
        validation.refuse(f"{name} must be a sequence of names, strings or numbers, not {given!r}.")
    if len(names) != size:
        validation.refuse(f"{name} has {len(names)} names, but A has {size} {name.split('_')[0]}s; give one for each.")
    if twice is not None:
        validation.refuse(f"{name} has {twice!r} more than once; names must be different.")
    return names


def _plain(names: Iterable[Any]) -> tuple[Any, ...]:
    """Names of rows or columns as Python objects."""
    return tuple(name.item() if isinstance(name, np.generic) else name for name in names)


def _first_duplicate(names: tuple[Any, ...]) -> Any:
    """The first name of a row or column that occurs again; None if there is none."""
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _table(A: Any) -> Named:
    """The matrix and the names of rows and columns in a frame, an AnnData or a plain array."""
    if hasattr(A, "obs_names") and hasattr(A, "var_names"):
        return Named(A.X, _plain(A.obs_names), _plain(A.var_names))
    if hasattr(A, "index") and hasattr(A, "columns") and hasattr(A, "iloc"):
        return _pandas_table(A)
    if hasattr(type(A), "columns") or hasattr(type(A), "column_names"):  # on the type: lazy frames would be computed
        return _narwhals_table(A)
    return Named(A)


def _pandas_table(A: Any) -> Named:
    """Numbers and names of a pandas frame; where its rows are only numbered, a single column of text names them."""
    rows = _index_names(A.index)
    texts = [name for place, name in enumerate(A.columns) if _is_text(A.iloc[:, place])]
    if not texts:
        return Named(_numbers(A), rows, _index_names(A.columns))
    if rows is not None or len(texts) > 1:
        listed = ", ".join(map(repr, texts[:3])) + (", ..." if len(texts) > 3 else "")
        what = "a column that is" if len(texts) == 1 else "columns that are"
        validation.refuse(
            f"A has {what} not numbers ({listed}); drop them, or name the rows by one with A.set_index({texts[0]!r})."
        )
    return Named(_numbers(A.drop(columns=texts)), _plain(A[texts[0]]), _plain(A.columns.drop(texts)))


def _numbers(frame: Any) -> Any:
    """The entries of a pandas frame, NaN where one is missing in any of pandas' ways."""
    found = frame.to_numpy()
    return found if found.dtype.kind != "O" else frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _is_text(column: Any) -> bool:
    """Whether a column of a pandas frame holds anything but numbers and missing ones, so that it may name the rows."""
    if column.dtype.kind in "biufc":
        return False
    return column.dtype.kind != "O" or not all(isinstance(value, Real) for value in column[column.notna()])


def _index_names(index: Any) -> Names:
    """Names in an index of pandas; None for its default numbering."""
    plain = _plain(index)
    return None if type(index).__name__ == "RangeIndex" and plain == tuple(range(len(plain))) else plain


def _narwhals_table(A: Any) -> Named:
    """Numbers and column names of any data frame that narwhals knows."""
    try:
        import narwhals
    except ImportError:
        validation.refuse(f"A is a {type(A).__name__}, which needs narwhals to be read; pip install narwhals, or pass an array.")
    frame: Any = narwhals.from_native(A, pass_through=True)
    if frame is A:
        return Named(A)
    if isinstance(frame, narwhals.LazyFrame):
        validation.refuse("A is a lazy frame; call collect() first.")
    texts = [name for name in frame.columns if frame.schema[name] in (narwhals.String, narwhals.Categorical, narwhals.Enum)]
    if len(texts) > 1:
        listed = ", ".join(map(repr, texts[:3]))
        validation.refuse(f"A has several columns of text ({listed}); keep at most one, which names the rows, and numbers.")
    rows = _plain(frame[texts[0]].to_list()) if texts else None
    numbers = frame.drop(texts) if texts else frame
    return Named(numbers.to_numpy(), rows, tuple(numbers.columns))
