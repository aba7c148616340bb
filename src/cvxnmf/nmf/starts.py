"""Named starts of a descent, and those that users bring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from cvxnmf import validation
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf import initialise
from cvxnmf.nmf.data_matrix import DataMatrix
from cvxnmf.nmf.initialise import Factors

#: What replaces zeros of a start that descends alone, in units of the mean: the more, the freer it is to leave its basin.
FILL = 4.0


def _nndsvd(A: Any, k: int, symmetric: bool, rng: Any) -> Factors:
    return initialise.eigen_nndsvd(A, k) if symmetric else initialise.nndsvd(A, k, fill=FILL)


def _random(A: Any, k: int, symmetric: bool, rng: Any) -> Factors:
    U, V = initialise.random(A, k, validation.generator(rng))
    return (U, U) if symmetric else (U, V)


def _spa(A: Any, k: int, symmetric: bool, rng: Any) -> Factors:
    if symmetric:
        validation.refuse("init='spa' takes rows of A as V and has no symmetric form; use 'nndsvd', or symmetric=False.")
    return initialise.successive_projection(A, k)


def _convex(A: Any, k: int, symmetric: bool, rng: Any) -> Factors:
    return initialise.convex(np.asarray(A.toarray() if sp.issparse(A) else A), k, symmetric)


#: Starts that a few passes over the data give: ``start(A, k, symmetric, rng) -> (U, V)``, A without missing entries.
FEW_PASSES: dict[str, Callable[..., Factors]] = {"nndsvd": _nndsvd, "spa": _spa, "random": _random}
#: Starts of data in memory.
STARTS: dict[str, Callable[..., Factors]] = {"nndsvd": _nndsvd, "spa": _spa, "convex": _convex, "random": _random}


def starting_point(data: DataMatrix, k: int, init: Any, symmetric: bool, rng: Any = 0) -> Factors:
    """A start of a descent by name, or the user's own, copied; one factor twice if symmetric."""
    names = STARTS if data.in_memory else FEW_PASSES
    if isinstance(init, str):
        start = names[validation.choice("init", init, names)]
        with single_thread(), np.errstate(all="ignore"):
            U, V = start(data.matrix, k, symmetric, rng)
    elif symmetric:
        own = init[0] if isinstance(init, tuple | list) and len(init) == 2 and np.ndim(init[0]) == 2 else init
        U = V = _own_start("U", own, (data.shape[0], k))
    elif isinstance(init, tuple | list) and len(init) == 2:
        U, V = _own_start("U", init[0], (data.shape[0], k)), _own_start("V", init[1], (data.shape[1], k))
    else:
        listed = ", ".join(map(repr, names))
        validation.refuse(f"init must be one of {listed} or a pair of arrays (U, V), not {type(init).__name__}.")
    U = np.ascontiguousarray(U, dtype=np.float64)
    return (U, U) if symmetric else (U, np.ascontiguousarray(V, dtype=np.float64))


def scaled_start(start: Factors, sum_to_one: bool) -> Factors:
    """The start with columns scaled so that those of V sum to one, or those of U to nearly one in every row."""
    U, V = start
    scale = np.maximum(V.sum(axis=0), np.finfo(np.float64).tiny)
    if sum_to_one:
        found = nnls(U, np.ones(len(U)))[0]
        scale = np.where(found > 0, found, 1.0 / max(float(U.max()), np.finfo(np.float64).tiny))
    return np.ascontiguousarray(U * scale), np.ascontiguousarray(V / scale)


def _own_start(name: str, X: Any, shape: tuple[int, int]) -> FloatArray:
    try:
        start: FloatArray = np.array(None if np.iscomplexobj(X) else X, dtype=np.float64)
    except (TypeError, ValueError):
        validation.refuse(f"The start {name} must be a matrix of numbers of shape {shape}.")
    if start.shape != shape:
        validation.refuse(f"The start {name} has shape {start.shape}, but it must be {shape}.")
    if not np.isfinite(start).all() or (start < 0).any():
        validation.refuse(f"The start {name} has negative or non-finite entries; only nonnegative ones are allowed.")
    if not start.any():
        validation.refuse(f"The start {name} is all zeros, from where no method can leave; give it positive entries.")
    return start
