"""What the parameters of :class:`NMF` mean: scikit-learn's conventions become those of this package here and nowhere else."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cvxnmf import validation
from cvxnmf.estimators.conventions import loss_name
from cvxnmf.nmf.loss_names import find_loss

#: scikit-learn's names of the solvers; "auto" with a start of the user's choice descends from there.
METHODS = {"auto": "hals", "cd": "hals", "mu": "multiplicative"}
#: Names of starts; the engine fills the zeros of "nndsvd" itself, by which scikit-learn's three forms differ.
STARTS = {name: name for name in ("nndsvd", "random", "convex", "custom")} | {"nndsvda": "nndsvd", "nndsvdar": "nndsvd"}
#: Singular value decompositions to spend on a bound: "cd" and "mu" are asked for speed, and take the singular values alone.
EFFORTS = {"auto": None, "cd": 0, "mu": 0}


class Plan(NamedTuple):
    """The plan of a fit, an estimator's parameters in our own convention: ``loss + l1 sum + l2 ||.||²``, pairs for W and H.

    The number of components is None where the convex problem shall tell it.
    """

    loss: str
    start: str
    n_components: int | None
    l1: tuple[float, float]
    l2: tuple[float, float]
    in_memory: bool

    @property
    def penalised(self) -> bool:
        """Whether any penalty of the estimator's plan is positive."""
        return any(self.l1 + self.l2)


def make_plan(model: Any, shape: tuple[float, int], W: Any, H: Any, in_memory: bool) -> Plan:
    """Check an estimator's parameters and translate them; twice scikit-learn's objective for squared error, itself for KL."""
    n_samples, n_features = shape
    solver = validation.choice("solver", model.solver, METHODS)
    loss = loss_name(model.beta_loss)
    default = "convex" if solver == "auto" else "nndsvd"
    start = STARTS[validation.choice("init", default if model.init is None else model.init, STARTS)]
    validation.number("tol", model.tol, minimum=0.0)
    validation.integer("max_iter", model.max_iter, minimum=1)
    weights = (model.alpha_W, model.alpha_W if isinstance(model.alpha_H, str) and model.alpha_H == "same" else model.alpha_H)
    alpha_W, alpha_H = (validation.number(f"alpha_{name}", a, minimum=0.0) for name, a in zip("WH", weights, strict=True))
    ratio = validation.number("l1_ratio", model.l1_ratio, minimum=0.0)
    if ratio > 1.0:
        validation.refuse(f"l1_ratio must be from 0 to 1, not {model.l1_ratio!r}.")
    factor = find_loss(loss).unit  # our objective over scikit-learn's
    on_W, on_H = factor * alpha_W * n_features, factor * alpha_H * n_samples
    l1, l2 = (ratio * on_W, ratio * on_H), (0.5 * (1.0 - ratio) * on_W, 0.5 * (1.0 - ratio) * on_H)
    k = _number_of_components(model.n_components, n_features, start, solver, W if H is None else np.transpose(H))
    return Plan(loss, start, k, l1, l2, in_memory)


def _number_of_components(given: Any, n_features: int, start: str, solver: str, columns: Any) -> int | None:
    """How many components the plan shall fit, None if the convex problem tells; `columns` are those of a custom start."""
    if given is None:
        return n_features
    if not isinstance(given, str):
        return validation.integer("n_components", given, minimum=1)
    if given not in ("auto", "convex"):
        validation.refuse(f"n_components must be an integer of at least 1, 'auto', 'convex' or None, not {given!r}.")
    if given == "auto":
        return int(np.shape(columns)[1]) if start == "custom" and np.ndim(columns) == 2 else n_features
    if start != "convex" or solver != "auto":
        validation.refuse("n_components='convex' is for solver='auto' without another start; give the number of components.")
    return None
