"""Stages of the recursion: factors of the best model below the residual, on a clique of its support or on the whole matrix."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from cvxnmf import validation
from cvxnmf.convex.cones import PSD, ConditionallyPSD
from cvxnmf.convex.losses import LOSSES
from cvxnmf.convex.under_approximation import best_point_below, best_scalings_below
from cvxnmf.cp.cliques import heavy_clique
from cvxnmf.cp.exp_factor import factor_point
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import Point, Status

Counted = NDArray[np.bool_]

#: Residuals below this share of the largest entry of A are used up.
USED_UP = 1e-9
#: Stages stay below the residual by this share, so that rounding cannot push them above.
ROOM = 1e-12
#: Relative error of the factors of a stage that has an embedding.
FACTOR_TOLERANCE = 1e-3
#: The most violated entries join the constraints, this many at a time, for this many rounds.
VIOLATED_AT_ONCE = 20
ROUNDS = 100


class NoStage(Exception):
    """No further stage of the recursion exists; the message says why."""


class Stage(NamedTuple):
    """A stage of the recursion: columns U >= 0 with ``UU'`` below the residual, and whether the iteration for them converged."""

    U: FloatArray
    converged: bool


class CliqueStages:
    """Stages of the recursion on cliques of the residual; all weights are refitted after each.

    The entries of A that count are all, or all but the diagonal. `trace` is the weight of the penalty on the embedding;
    without it every stage is one column.
    """

    end = Status.CONVERGED

    def __init__(self, A: FloatArray, counted: Counted, trace: float | None) -> None:
        self.A, self.counted, self.trace = A, counted, trace
        self.ignore_diagonal = not counted[0, 0]

    def next_stage(self, R: FloatArray, number: int) -> Stage:
        """Return the stage that is the best model below the residual on a heavy clique of its support."""
        nodes = heavy_clique(R, USED_UP * float(self.A.max()), self.ignore_diagonal)
        if not len(nodes):
            left = "two nodes have a positive residual" if self.ignore_diagonal else "node has a positive residual diagonal"
            raise NoStage(f"Stage {number} has nothing left to take: no {left}.")
        loss = LOSSES["mse"](R[np.ix_(nodes, nodes)], self.ignore_diagonal)
        cone = ConditionallyPSD(np.ones(len(nodes)))
        if self.trace is None:
            found = best_scalings_below(loss, cone)
        else:
            found = best_point_below(loss, cone, self.trace, 1e-2 * FACTOR_TOLERANCE)
        part = _nonnegative_factors(found.point)
        U = np.zeros((len(R), part.shape[1]))
        U[nodes] = part
        return Stage(scale_below(U, R, self.counted), found.converged)

    def refit(self, parts: list[FloatArray]) -> list[FloatArray]:
        """Choose the weights of all stages anew, unless one would vanish and the old weights fit at least as well."""
        weights = refit_stages(self.A, parts, self.counted)
        columns = np.column_stack([np.sqrt(weight) * U for weight, U in zip(weights, parts, strict=True)])
        scaled = scale_below(columns, self.A, self.counted)
        if min(weights) == 0 and self._squared_error(np.column_stack(parts)) <= self._squared_error(scaled):
            return parts
        return np.split(scaled, np.cumsum([U.shape[1] for U in parts])[:-1], axis=1)

    def _squared_error(self, U: FloatArray) -> float:
        """Squared error of the stages' columns; infinite if they exceed the data."""
        R = (self.A - U @ U.T)[self.counted]
        return float(np.vdot(R, R)) if R.min() >= 0 else np.inf


class WholeMatrixStages:
    """The paper's form: each stage is the best model below the residual on the psd cone, over the whole matrix."""

    end = Status.INFEASIBLE

    def __init__(self, loss: str) -> None:
        self.loss = loss

    def next_stage(self, R: FloatArray, number: int) -> Stage:
        """Return the stage that is the best model below the whole residual."""
        _refuse_infeasible(R, number)
        found = best_point_below(LOSSES[self.loss](R), PSD(np.ones(len(R))), 0.0)
        E = np.exp(found.point.dense())
        i, j = np.unravel_index(int(np.argmin(R / E)), R.shape)
        if R[i, j] < 0.99 * E[i, j]:
            raise NoStage(
                f"Stage {number} is infeasible: no positive semidefinite X was found with exp(X) below the residual, "
                f"which is {R[i, j]:.3g} at row {i}, column {j}; use form='cliques'."
            )
        U = _nonnegative_factors(found.point)
        return Stage(scale_below(U, R, np.ones(R.shape, dtype=bool)), found.converged)

    def refit(self, parts: list[FloatArray]) -> list[FloatArray]:
        """Return the stages unchanged: the paper does not refit them."""
        return parts


#: How stages are taken: `next_stage` raises NoStage where there is none, and `end` is then the status of the recursion.
Form = CliqueStages | WholeMatrixStages


def scale_below(U: FloatArray, limit: FloatArray, counted: Counted) -> FloatArray:
    """Scale the columns U of a stage as little as is needed for ``UU'`` to stay below the limit on the counted entries."""
    E = U @ U.T
    binding = counted & (E > 0)
    share = float(np.min(limit[binding] / E[binding], initial=1.0))
    return np.asarray(np.sqrt(max(0.0, share) * (1.0 - ROOM)) * U)


def _nonnegative_factors(point: Point) -> FloatArray:
    """Nonnegative columns of a stage whose products are ``exp(X)``."""
    if not point.W.shape[1]:
        return np.exp(point.v)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a factor that is off is scaled down below the residual all the same
        try:
            return factor_point(point, FACTOR_TOLERANCE)
        except ValueError:
            return validation.refuse("A stage needs too many columns; give a larger trace, or none for one column per stage.")


def _refuse_infeasible(R: FloatArray, number: int) -> None:
    """Raise NoStage with the entry that forbids ``exp(X) <= R`` for every positive semidefinite X, if there is one."""
    diagonal = np.diag(R)
    low = int(np.argmin(diagonal))
    if diagonal[low] < 1:
        raise NoStage(
            f"Stage {number} is infeasible: the residual is {diagonal[low]:.3g} at row {low}, column {low}, and exp(X) is at "
            "least 1 on the diagonal for every positive semidefinite X; use form='cliques'."
        )
    root = np.sqrt(np.log(diagonal))
    least = np.exp(-np.outer(root, root))  # X_ij >= -sqrt(X_ii X_jj)
    i, j = np.unravel_index(int(np.argmin(R / least)), R.shape)
    if R[i, j] < least[i, j]:
        raise NoStage(
            f"Stage {number} is infeasible: the residual is {R[i, j]:.3g} at row {i}, column {j}, where exp(X) is at least "
            f"{least[i, j]:.3g} for every positive semidefinite X below its diagonal; use form='cliques'."
        )


def refit_stages(A: FloatArray, stages: list[FloatArray], counted: Counted) -> FloatArray:
    """Weights of stages ``c >= 0`` of least ``||A - sum c_k U_k U_k'||^2`` with ``sum c_k U_k U_k' <= A`` on counted entries."""
    columns = np.column_stack([(U @ U.T)[counted] for U in stages])
    data = A[counted]
    chosen, c = np.zeros(0, dtype=np.intp), np.zeros(len(stages))
    for _ in range(ROUNDS):
        c = _least_squares_below(columns, data, chosen)
        excess = columns @ c - data
        worst = np.argsort(-excess, kind="stable")[:VIOLATED_AT_ONCE]
        worst = np.setdiff1d(worst[excess[worst] > 1e-9 * data.max()], chosen)
        if not len(worst):
            break
        chosen = np.concatenate([chosen, worst])
    return c


def _least_squares_below(columns: FloatArray, data: FloatArray, chosen: NDArray[np.intp]) -> FloatArray:
    """Least squares for the weights of stages: ``|columns c - data|`` over c >= 0, ``columns c <= data`` at chosen rows.

    In coordinates where the objective is a distance this is a least-distance problem, whose dual is a nonnegative
    least-squares problem (Lawson and Hanson).
    """
    size = np.linalg.norm(columns, axis=0)
    scaled = columns / size
    R = np.asarray(np.linalg.qr(scaled, mode="r"))
    ridge = np.sqrt(float(np.finfo(np.float64).eps)) * np.eye(len(size))
    R = np.asarray(np.linalg.qr(np.vstack([R, ridge]), mode="r"))  # stages may repeat each other
    free = np.linalg.solve(R, np.linalg.solve(R.T, scaled.T @ data))
    limits = np.vstack([np.eye(len(size)), -scaled[chosen]])  # limits @ c >= edges
    edges = np.concatenate([np.zeros(len(size)), -data[chosen]]) - limits @ free
    G = np.linalg.solve(R.T, limits.T).T
    unit = max(float(np.abs(edges).max()), np.finfo(np.float64).tiny)
    M, e = np.vstack([G.T, edges / unit]), np.append(np.zeros(len(size)), 1.0)
    residual = M @ nnls(M, e, maxiter=50 * len(edges))[0] - e
    if -residual[-1] < 1e-12:  # no room at all: nothing may be taken
        return np.zeros(len(size))
    z = residual[:-1] / -residual[-1] * unit
    return np.asarray(np.maximum(0.0, free + np.linalg.solve(R, z)) / size)
