"""What the names of methods and starts stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf import initialise
from cvxnmf.nmf.data import Data
from cvxnmf.nmf.movers import Ahead, Rules, symmetric_coordinates, symmetric_expectation, symmetric_multiplicative
from cvxnmf.nmf.rules import Gradient, Hals, LeastSquares, Multiplicative, Newton, PositiveGradient, QuasiNewton, Rule, Sparseness


@dataclass(frozen=True)
class Method:
    """What a name stands for: rules for each loss, and symmetric rules where there are any."""

    make: dict[str, Callable[[Any], Rules]]
    symmetric_rules: dict[str, Any]
    constrained: bool = False

    def accept(self, name: str, loss: str, symmetric: bool, sparseness: Any) -> None:
        """Refuse what the method cannot do, in one sentence."""
        if symmetric and not self.symmetric_rules:
            validation.refuse(f"method={name!r} has no symmetric form; use 'hals' or 'multiplicative', or symmetric=False.")
        if not symmetric and loss not in self.make:
            validation.refuse(f"method={name!r} is for loss='mse' only; use 'hals', 'multiplicative' or 'gradient' for 'kl'.")
        if sparseness is not None and not self.constrained:
            validation.refuse(f"sparseness is a constraint of method='sparse', not of {name!r}; l1 works with every method.")

    def rules(self, loss: str, sparseness: Any) -> Rules:
        """Fresh rules: some keep a step length."""
        return self.make[loss](sparseness)


def _both(rule: Callable[[], Rule]) -> Callable[[Any], Rules]:
    return lambda sparseness: Rules(rule(), rule())


def _hals(sparseness: Any) -> Rules:
    return Rules(Hals(1), Hals(1), Ahead(wait=10, weight=0.7), (Hals(4), Hals(4)))


def _newton(sparseness: Any) -> Rules:
    return Rules(
        Newton(count=False), Newton(count=True), Ahead(wait=2, weight=0.3, keep=0.1), safe=(Multiplicative(), Multiplicative())
    )


def _hoyer(sparseness: Any) -> Rules:
    wanted = (None, None) if sparseness is None else sparseness
    if isinstance(wanted, str) or not isinstance(wanted, tuple | list) or len(wanted) != 2:
        validation.refuse(f"sparseness must be a pair (for U, for V) of numbers from 0 to 1 or None, not {sparseness!r}.")
    for value in wanted:
        if value is not None and validation.number("sparseness", value, minimum=0.0) > 1.0:
            validation.refuse(f"sparseness must be from 0 to 1, not {value!r}.")
    U, V = wanted  # one side keeps its norms, or a penalty on the other could be escaped by scaling
    return Rules(
        Hals(1) if U is None else Sparseness(float(U), keep=V is None),
        Hals(1) if V is None else Sparseness(float(V), keep=True),
    )


METHODS: dict[str, Method] = {
    "hals": Method({"mse": _hals, "kl": _newton}, {"mse": symmetric_coordinates, "kl": symmetric_expectation}),
    "multiplicative": Method(
        {"mse": _both(Multiplicative), "kl": _both(Multiplicative)},
        {"mse": symmetric_multiplicative, "kl": symmetric_expectation},
    ),
    "gradient": Method({"mse": _both(Gradient), "kl": _both(PositiveGradient)}, {}),
    "als": Method({"mse": _both(LeastSquares)}, {}),
    "quasi-newton": Method({"mse": _both(QuasiNewton)}, {}),
    "sparse": Method({"mse": _hoyer}, {}, constrained=True),
}


class StartOptions(NamedTuple):
    """What a start may want to know beside the data."""

    symmetric: bool
    rng: Any


def _nndsvd(A: Any, k: int, options: StartOptions) -> tuple[FloatArray, FloatArray]:
    return initialise.eigen_nndsvd(A, k) if options.symmetric else initialise.nndsvd(A, k)


def _random(A: Any, k: int, options: StartOptions) -> tuple[FloatArray, FloatArray]:
    U, V = initialise.random(A, k, validation.generator(options.rng))
    return (U, U) if options.symmetric else (U, V)


def _convex(A: Any, k: int, options: StartOptions) -> tuple[FloatArray, FloatArray]:
    return initialise.convex(np.asarray(A.toarray() if sp.issparse(A) else A), k, options.symmetric)


#: Starts by name: ``start(A, k, options) -> (U, V)``, A without missing entries; the same U twice for a symmetric one.
STARTS: dict[str, Callable[[Any, int, StartOptions], tuple[FloatArray, FloatArray]]] = {
    "nndsvd": _nndsvd,
    "convex": _convex,
    "random": _random,
}


def starting_point(data: Data, k: int, init: Any, symmetric: bool, rng: Any) -> tuple[FloatArray, FloatArray]:
    """A start by name, or the user's own, copied."""
    if isinstance(init, str):
        U, V = STARTS[validation.choice("init", init, STARTS)](data.A, k, StartOptions(symmetric, rng))
    elif symmetric:
        own = init[0] if isinstance(init, tuple | list) and len(init) == 2 and np.ndim(init[0]) == 2 else init
        U = V = _own_start("U", own, (data.shape[0], k))
    else:
        U, V = own_pair(init, data.shape, k, STARTS)
    return np.ascontiguousarray(U, dtype=np.float64), np.ascontiguousarray(V, dtype=np.float64)


def own_pair(init: Any, shape: tuple[int, int], k: int, names: Iterable[str]) -> tuple[FloatArray, FloatArray]:
    """The user's own U and V, copied; what is neither that nor a name of a start is refused."""
    if not (isinstance(init, tuple | list) and len(init) == 2):
        validation.refuse(
            f"init must be one of {', '.join(map(repr, names))} or a pair of arrays (U, V), not {type(init).__name__}."
        )
    return _own_start("U", init[0], (shape[0], k)), _own_start("V", init[1], (shape[1], k))


def _own_start(name: str, X: Any, shape: tuple[int, int]) -> FloatArray:
    try:
        start: FloatArray = np.array(X, dtype=np.float64)
    except (TypeError, ValueError):
        validation.refuse(f"The start {name} must be a matrix of numbers of shape {shape}.")
    if start.shape != shape:
        validation.refuse(f"The start {name} has shape {start.shape}, but it must be {shape}.")
    if not np.isfinite(start).all() or (start < 0).any():
        validation.refuse(f"The start {name} has negative or non-finite entries; only nonnegative ones are allowed.")
    if not start.any():
        validation.refuse(f"The start {name} is all zeros, from where no method can leave; give it positive entries.")
    return start


def components(n_components: Any, shape: tuple[int, int]) -> int:
    """Return the number of components, at most the larger side."""
    k = validation.integer("n_components", n_components, minimum=1)
    if k > max(shape):
        validation.refuse(
            f"n_components={k} is larger than both sides of A ({shape[0]} by {shape[1]}); choose at most {max(shape)}."
        )
    return k


def pair(name: str, value: Any) -> tuple[float, float]:
    """A number for both factors, or a pair of numbers."""
    parts = value if isinstance(value, tuple | list) else (value, value)
    if len(parts) != 2:
        validation.refuse(f"{name} must be a number or a pair of numbers (for U, for V), not {value!r}.")
    return validation.number(name, parts[0], minimum=0.0), validation.number(name, parts[1], minimum=0.0)
