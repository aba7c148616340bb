"""User data to checked arrays, and the sentences that say what is wrong with them."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable
from contextlib import suppress
from numbers import Real
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.linalg.arrays import FloatArray, csr_without_zeros, extremes, shared_csr, working_type
from cvxnmf.linalg.symmetry import ROUNDING, asymmetry, most_asymmetric, rounding_asymmetry
from cvxnmf.results import PairedPoint, Point, Solution

#: Asymmetry up to this share of what counts as rounding, that of double precision, is averaged without a warning.
UNNOTICED = 1e-4
#: Largest entries by loss; every other loss squares them.
LARGEST_ENTRY = {"kl": 1e100}
RECTANGULAR = "for rectangular data use cvxnmf.nonsymmetric"
#: Dense n-by-n float64 arrays the convex solvers may hold at once.
WORKING_ARRAYS = 12


class TooLargeError(ValueError, MemoryError):
    """The problem was refused before any work because it would not fit in memory."""


def refuse(sentence: str) -> NoReturn:
    """Raise a ValueError about a user's data with one sentence, on one line and of moderate length whatever values it shows."""
    line = " ".join(sentence.split())
    raise ValueError(line if len(line) <= 600 else f"{line[:200]} ... {line[-400:]}")


def choice(name: str, value: object, options: Iterable[str]) -> str:
    """Return a user's `value` if it is one of `options`, else say which ones there are."""
    listed = list(options)
    if isinstance(value, str) and value in listed:
        return value
    return refuse(f"{name}={value!r} is not known; choose one of {', '.join(map(repr, listed))}.")


def number(name: str, value: object, *, minimum: float = -math.inf, strict: bool = False) -> float:
    """Return a user's `value` as a finite float not below `minimum` (above it if `strict`)."""
    try:
        result = math.nan if isinstance(value, str | bool | np.bool_) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if not math.isfinite(result) or result < minimum or (strict and result == minimum):
        relation = "above" if strict else "of at least"
        bound = "" if minimum == -math.inf else f" {relation} {minimum:g}"
        refuse(f"{name} must be a finite number{bound}, not {value!r}.")
    return result


def integer(name: str, value: object, *, minimum: int) -> int:
    """Return a user's `value` as an int of at least `minimum`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < minimum:
        refuse(f"{name} must be an integer of at least {minimum}, not {value!r}.")
    return int(value)


def generator(rng: object) -> np.random.Generator:
    """Return a numpy Generator from a user's seed or Generator."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        refuse(f"rng must be a seed (an integer of at least 0) or a numpy.random.Generator, not {rng!r}.")
    return np.random.default_rng(int(rng))


def require_problem(problem: object, kind: type) -> None:
    """Refuse an argument that is not a convex problem."""
    if not isinstance(problem, kind):
        refuse(
            f"The problem must come from cvxnmf.symmetric(A), nonsymmetric(A) or sparse(A), not from {type(problem).__name__}."
        )


def callback(function: object) -> None:
    """Refuse a user's callback that cannot be called."""
    if function is not None and not callable(function):
        refuse(f"callback must be a function of one Iterate or None, not {function!r}.")


def physical_memory() -> float:
    """Bytes of memory of this machine, infinite where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def penalty_weight(trace: object, metric: FloatArray) -> float:
    """Return a user's trace as a number that does not overflow when multiplied by the squared metric."""
    weight = number("trace", trace, minimum=0.0)
    if weight and not (weight <= 1e100 and weight * float(np.max(metric)) ** 2 <= 1e120):
        refuse(f"trace={weight:g} is too large for these data; beyond the largest eigenvalue it changes nothing.")
    return weight


def fits_in_memory(rows: int, columns: int | None = None) -> None:
    """Refuse a dense problem that this machine cannot hold."""
    needed, present = WORKING_ARRAYS * 8.0 * rows * (rows if columns is None else columns), physical_memory()
    if needed > present:
        what = f"{rows:,} nodes" if columns is None else f"{rows:,} by {columns:,} entries"
        raise TooLargeError(
            f"A problem of {what} needs about {needed / 2**30:,.1f} GiB of memory and this machine has "
            f"{present / 2**30:,.1f}; take a smaller or coarsened matrix."
        )


def nonnegative_matrix(A: Any, name: str = "A") -> tuple[FloatArray, np.dtype[Any]]:
    """Return a user's `A` as a new dense array of float64, and the type that its entries had.

    Accepts arrays, nested lists, data frames and scipy.sparse matrices; refuses NaN, infinity,
    negative, complex and non-numeric entries, empty and all-zero matrices, each in one sentence.
    """
    if sp.issparse(A) and A.ndim == 2:
        fits_in_memory(*A.shape)
    raw = _numbers(A, name)
    dense = raw.toarray() if sp.issparse(raw) else raw
    if np.isnan(dense.max()):
        i, j = np.argwhere(np.isnan(dense))[0]
        refuse(f"{name} has NaN at row {i}, column {j}; replace missing values first (for example with 0).")
    _require_nonnegative(dense, name, "a finite value")
    return np.array(dense, dtype=np.float64, order="C"), raw.dtype


def _numbers(A: Any, name: str) -> Any:
    """Return user data as a two-dimensional array or scipy.sparse matrix of real numbers, or refuse in one sentence."""
    if isinstance(A, str | bytes):
        refuse(f"{name} is a string; read the file into a matrix first.")
    if hasattr(A, "edges") or hasattr(A, "get_edgelist"):
        refuse(f"{name} is a graph; pass its adjacency matrix, for example networkx.to_scipy_sparse_array({name}).")
    if A is None or np.isscalar(A):
        refuse(f"{name} must be a matrix (an array, a nested list or a scipy.sparse matrix), not {A!r}.")
    if isinstance(A, np.ma.MaskedArray):
        refuse(f"{name} is a masked array; fill the masked entries first, for example with {name}.filled(0).")
    try:
        raw = A if sp.issparse(A) else np.asarray(A)
    except ValueError:
        refuse(f"{name} is not a rectangular array of numbers; give every row the same length.")
    if raw.dtype.kind == "c":
        refuse(f"{name} has complex entries; complex data are not supported, take real nonnegative values such as abs({name}).")
    if raw.dtype.kind == "O" and not sp.issparse(raw):
        raw = _from_objects(raw, name)
    elif raw.dtype.kind not in "fiub":
        refuse(f"{name} has entries of type {raw.dtype}, which are not numbers; convert them to float first.")
    if raw.ndim != 2:
        refuse(f"{name} must be a two-dimensional matrix, not of shape {raw.shape}; A.reshape(len(A), -1) is one.")
    if 0 in raw.shape:
        refuse(f"{name} is empty (shape {raw.shape}); there is nothing to fit.")
    return raw


def _from_objects(raw: NDArray[Any], name: str) -> FloatArray:
    """Convert a user's object array whose every entry is a real number, or refuse."""
    if all(isinstance(entry, Real) for entry in raw.ravel()):
        with suppress(TypeError, OverflowError):
            return raw.astype(np.float64)
    return refuse(f"{name} has entries that are not numbers (type object); convert them to float first.")


def _require_nonnegative(matrix: Any, name: str, instead: str) -> None:
    """Refuse user data, dense or in compressed rows, unless what is known (not NaN) is finite, nonnegative and not all zero."""
    entries = matrix.data if sp.issparse(matrix) else matrix
    lowest, highest, missing = extremes(entries)
    if lowest < 0 or highest == np.inf:
        entry = int(np.nanargmin(entries) if lowest < 0 else np.nanargmax(entries))
        i, j = (side[entry] for side in matrix.tocoo().coords) if sp.issparse(matrix) else np.unravel_index(entry, matrix.shape)
        if np.isinf(lowest) or not lowest < 0:
            refuse(f"{name} has an infinite entry at row {i}, column {j}; replace it with {instead}.")
        refuse(f"Negative values in data: {name} is {lowest:g} at row {i}, column {j}; only nonnegative entries can be factored.")
    if not highest > 0:
        refuse(f"{name} is all zeros{' or missing' * missing}; there is nothing to fit.")
    if missing:
        _require_known_sides(matrix, name)


def _require_known_sides(matrix: Any, name: str) -> None:
    """Refuse user data with a row or a column of which all entries are missing."""
    missing = matrix != matrix  # NaN is what differs from itself, in sparse data too
    for axis, side in ((1, "row"), (0, "column")):
        lost = missing.sum(axis=axis) == matrix.shape[axis]
        if lost.any():
            refuse(f"All entries of {side} {int(np.argmax(lost))} of {name} are missing; leave that {side} out.")


def partial_matrix(A: Any, name: str = "A", keep_single: bool = False, share: bool = False) -> Any:
    """Return `A` as an array, NaN where entries are missing, or as a scipy.sparse CSR array.

    Of float64, but with `keep_single` large dense data in single precision stay so. Sparse data with missing entries become
    dense; with `share` they stay as they are, and large data may share their memory with the result: do not change it.
    """
    if isinstance(A, np.ma.MaskedArray):
        refuse(f"{name} is a masked array; mark missing entries by NaN, for example with {name}.filled(numpy.nan).")
    raw = _numbers(A, name)
    if not sp.issparse(raw):
        matrix = (np.asarray if share else np.array)(raw, dtype=working_type(raw, keep_single), order="C")
    elif share:
        matrix = shared_csr(raw)
    else:
        matrix = csr_without_zeros(raw)
        if np.isnan(matrix.data).any():  # the missing entries are known one by one, the rest must be filled anyway
            fits_in_memory(*matrix.shape)
            matrix = matrix.toarray()
    _require_nonnegative(matrix, name, "a finite value, or with NaN if it is missing")
    return matrix


def adjacency_matrix(graph: Any, signed: bool = False) -> Any:
    """Return an array-like or sparse adjacency matrix as float64 CSR without zeros, perhaps shared; entries may be `signed`."""
    raw = _numbers(graph, "The graph")
    if raw.shape[0] != raw.shape[1]:
        refuse(f"The adjacency matrix must be square, not {raw.shape[0]} by {raw.shape[1]}.")
    matrix = shared_csr(raw)
    lowest, highest = (matrix.data.min(), matrix.data.max()) if matrix.nnz else (0.0, 0.0)
    if np.isfinite(lowest) and np.isfinite(highest) and (signed or lowest >= 0):
        return matrix
    bad = np.flatnonzero(~np.isfinite(matrix.data) | ((matrix.data < 0) & (not signed)))
    coordinates = matrix.tocoo()
    i, j, value = coordinates.row[bad[0]], coordinates.col[bad[0]], matrix.data[bad[0]]
    found = f"Negative values in data: the adjacency matrix is {value:g}" if value < 0 else f"The adjacency matrix is {value}"
    return refuse(f"{found} at row {i}, column {j}; only finite weights{'' if signed else ' of at least 0'} are allowed.")


def clusters(n_clusters: object, n: int) -> int:
    """Return a user's number of clusters, checked to be from 1 to the number of nodes."""
    k = integer("n_clusters", n_clusters, minimum=1)
    if k > n:
        refuse(f"n_clusters={k} is more than the graph has nodes ({n}); choose at most {n}.")
    return k


def components(n_components: object, shape: tuple[int, ...]) -> int:
    """Return a user's number of components, checked to be at least 1 and no larger than both sides of the data."""
    k = integer("n_components", n_components, minimum=1)
    if k > max(shape):
        refuse(f"n_components={k} is larger than both sides of A ({shape[0]} by {shape[1]}); choose at most {max(shape)}.")
    return k


def require_symmetric(A: Any, name: str = "A", hint: str = "give V as well", dtype: Any = np.float64) -> float:
    """Refuse a user's matrix that is not symmetric up to rounding; return its asymmetry.

    Warn of the rounding of single precision, unless that is the type `dtype` that the entries had when they were given.
    """
    if A.shape[0] != A.shape[1]:
        refuse(f"{name} must be square for symmetric factors, not {A.shape[0]} by {A.shape[1]}; {hint}.")
    if not sp.issparse(A) and not np.array_equal(np.isnan(A), np.isnan(A).T):
        refuse(f"{name} has NaN at an entry but not at its mirror image, so it is not symmetric; {hint}.")
    largest, allowed = asymmetry(A), rounding_asymmetry(A)
    if largest > allowed:
        i, j = most_asymmetric(A)
        refuse(
            f"{name} is not symmetric: {name}[{i}, {j}] and {name}[{j}, {i}] differ by {largest:g}; {hint}, or pass "
            f"({name} + {name}.T) / 2 if that is what you mean."
        )
    if largest > UNNOTICED * allowed and np.dtype(dtype) != np.float32:
        warnings.warn(
            f"Mirrored entries of {name} differ by up to {largest:g}, as after work in single precision; their mean is taken.",
            stacklevel=3,
        )
    return largest


def symmetrise(A: Any, name: str = "A", hint: str = "give V as well", dtype: Any = np.float64) -> Any:
    """Return `A` exactly symmetric: mirrored entries that differ by rounding are averaged, and refused if by more."""
    if require_symmetric(A, name, hint, dtype) == 0.0:
        return A
    return sp.csr_array((A + A.T) / 2) if sp.issparse(A) else (A + A.T) / 2


def nonnegative_factors(U: Any, V: Any, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Return a user's factors, checked to be nonnegative and of matching shapes; V is U if none is given."""
    first = _factor(U, "U", shape[0])
    if V is None:
        return first, first
    second = _factor(V, "V", shape[1])
    if first.shape[1] != second.shape[1]:
        refuse(f"U has {first.shape[1]} columns and V has {second.shape[1]}; both need one per component (V is n by k).")
    return first, second


def _factor(factor: Any, name: str, rows: int) -> FloatArray:
    array = real_array(factor.toarray() if sp.issparse(factor) else factor)
    if array.ndim != 2 or len(array) != rows or array.shape[1] == 0:
        hint = "; transpose scikit-learn's components_" if name == "V" else "; take transform(A)" * hasattr(factor, "components_")
        refuse(f"{name} must be a real matrix of {rows} rows, one per {'row' if name == 'U' else 'column'} of A{hint}.")
    if not (np.isfinite(array).all() and array.min() >= 0):
        refuse(f"{name} must be finite and nonnegative; its smallest entry is {array.min():g}.")
    return array


def rectangular_matrix(A: Any, name: str = "A") -> FloatArray:
    """Return `A` as a new, dense float64 array of at least 2 rows and 2 columns."""
    shape = getattr(A, "shape", None)
    if shape is not None and len(shape) == 2:
        fits_in_memory(*shape)
    dense, _ = nonnegative_matrix(A, name)
    if min(dense.shape) == 1:
        refuse(f"{name} is {dense.shape[0]} by {dense.shape[1]}; at least two rows and two columns are needed.")
    return dense


def symmetric_matrix(A: Any, name: str = "A") -> FloatArray:
    """Return `A` as a new, exactly symmetric, dense float64 array of at least 2 rows."""
    shape = getattr(A, "shape", None)
    if shape is not None and len(shape) == 2 and shape[0] == shape[1]:
        fits_in_memory(int(shape[0]))
    dense, dtype = nonnegative_matrix(A, name)
    rows, columns = dense.shape
    if rows != columns:
        refuse(f"{name} must be square, not {rows} by {columns}; {RECTANGULAR}.")
    if rows == 1:
        refuse(f"{name} is 1 by 1; at least two rows are needed.")
    return np.asarray(symmetrise(dense, name, RECTANGULAR, dtype))


def sparse_symmetric_matrix(A: Any, name: str = "A") -> Any:
    """Return a sparse `A` as a new, exactly symmetric CSR array of float64 without zeros."""
    matrix = partial_matrix(A, name)
    if not sp.issparse(matrix):
        refuse(f"{name} has NaN; replace missing values first (for example with 0).")
    return symmetrise(matrix, name, RECTANGULAR, A.dtype)


def magnitude(A: Any, loss: str) -> None:
    """Refuse data so large or small that the loss would overflow or vanish."""
    if sp.issparse(A):
        A = A.data
    largest, limit = extremes(A)[1], LARGEST_ENTRY.get(loss, 1e50)
    if not 1 / limit <= largest <= limit:
        refuse(
            f"The largest entry of A is {largest:g}, outside the range {1 / limit:g} to {limit:g} that the "
            f"{loss!r} loss can handle; rescale A, for example by dividing it by its maximum."
        )


def metric_vector(metric: Any, n: int) -> FloatArray:
    """Return a user's own metric as a positive vector of length n."""
    s = real_array(metric)
    if s.shape != (n,) or not np.all((s >= 1e-30) & (s <= 1e30)):
        refuse(f"metric must be 'degree', 'uniform' or {n} positive finite numbers (1e-30 to 1e30), one per row of A.")
    return s


def real_array(value: Any) -> FloatArray:
    """A copy of a user's `value` as an array of real numbers; an empty one if it is anything else."""
    try:
        return np.empty(0) if np.iscomplexobj(value) else np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.empty(0)


def log_matrix(candidate: Any, n: int, name: str = "X") -> FloatArray:
    """Return a candidate X as an exactly symmetric (n, n) array without NaN or +inf."""
    X = rectangular_logs(candidate, (n, n), name)
    largest = asymmetry(X)
    if largest > ROUNDING * max(1.0, float(np.abs(X[np.isfinite(X)]).max(initial=0.0))):
        refuse(f"{name} is not symmetric: entries differ by up to {largest:g}; pass ({name} + {name}.T) / 2.")
    return 0.5 * X + 0.5 * X.T


def rectangular_logs(candidate: Any, shape: tuple[int, int], name: str = "X") -> FloatArray:
    """Return a candidate X as an array of the given shape without NaN or +inf."""
    X = real_array(candidate)
    if X.ndim != 2:
        refuse(f"{name} must be a real matrix of shape {shape}.")
    if X.shape != shape:
        refuse(f"{name} has shape {X.shape}, but the data have shape {shape}: it must be {shape}.")
    if np.isnan(X).any() or np.isposinf(X).any():
        refuse(f"{name} has NaN or +inf entries; only finite entries (or -inf, for exp(X) = 0) are allowed.")
    return X


def factors(
    start: Any, n: int, kind: type[Point] | type[PairedPoint] = Point, rows: int | None = None
) -> tuple[FloatArray, FloatArray] | None:
    """Return v and W of a user's warm start with n rows, a Solution of this kind or a pair (v, W); None if it is neither."""
    point = start.point if isinstance(start, Solution) else start
    if isinstance(point, kind) and (rows is None or getattr(point, "n_rows", rows) == rows):
        v, W = point.v, point.W
    elif isinstance(start, Solution | Point | PairedPoint):
        v, W = np.empty(0), np.empty((0, 0))
    elif isinstance(start, tuple | list) and len(start) == 2 and np.ndim(start[0]) == 1 and np.ndim(start[1]) == 2:
        v, W = real_array(start[0]), real_array(start[1])
    else:
        return None
    if v.shape != (n,) or len(W) != n or not np.all(np.isfinite(W)) or np.isnan(v).any():
        refuse(f"start must be a Solution of this kind of problem, a matrix X, or a pair (v, W) with {n} rows.")
    return v, W
