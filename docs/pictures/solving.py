"""Draw the picture of the page "How the problems are solved", and write its table: spectra of Hessians, and how gaps close.

``python docs/pictures/solving.py`` writes solving.svg and solving-table.txt beside itself, from real solves. All is counted in
steps, so that every machine draws the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import scipy.linalg as sl

import cvxnmf
from cvxnmf.convex import distances
from cvxnmf.convex.losses import LOSSES
from cvxnmf.convex.methods import AugmentedDescent, DualAscent
from cvxnmf.display import palette

Spectra = dict[str, np.ndarray]
#: Eigenvalues below this share of the largest are not told apart from zero.
VISIBLE = 1e-12


@dataclass
class Row:
    """A problem of the page: its name, the gap asked for, its spectra at a solution, and a method that it is compared with."""

    name: str
    problem: cvxnmf.Problem
    tol: float
    spectra: Callable[[cvxnmf.Problem, cvxnmf.Solution], Spectra]
    other: str


def main(folder: Path) -> None:
    """One row of panels, and one row of the table, for every problem."""
    plt.rcParams["svg.hashsalt"] = "cvxnmf"
    rows = problems()
    figure, panels = plt.subplots(len(rows), 2, figsize=(11, 2.7 * len(rows)), layout="constrained")
    lines = [row_of_table(row, *pair) for row, pair in zip(rows, panels, strict=True)]
    names = ["problem", "condition of the Hessian, plain", "as the method sees it", "step at which the value is there"]
    header = "| " + " | ".join([*names, "the bound is there", "at the end the value is above by", "the bound below by"]) + " |"
    (folder / "solving-table.txt").write_text("\n".join([header, "|---|---|---|---|---|---|---|", *lines, ""]))
    figure.savefig(folder / "solving.svg", metadata={"Date": None})


def problems() -> list[Row]:
    """The hard problems at sizes at which a Hessian can be written down."""
    graph = nx.to_numpy_array(nx.les_miserables_graph())
    blocks = cvxnmf.block_graph(120, 0.3, 0.7)[0].astype(float)
    counts = zipf(100, 80)
    rectangle = cvxnmf.nonsymmetric
    return [
        Row("KL, no penalty, Les Misérables", cvxnmf.symmetric(graph), 1e-4, over_positions, "projected-gradient"),
        Row("KL, psd cone, blocks", cvxnmf.symmetric(blocks, cone="psd"), 1e-4, over_entries, "projected-gradient"),
        Row(
            "the paper's squared error, Les Misérables", cvxnmf.symmetric(graph, "mse-paper"), 1e-4, under_the_limit, "splitting"
        ),
        Row("KL, trace 1, word counts", rectangle(counts, trace=1.0), 1e-4, over_rectangles, "accelerated"),
        Row("squared error, trace 1, word counts", rectangle(counts, "mse", trace=1.0), 1e-3, over_rectangles, "accelerated"),
        Row("doubly nonnegative, blocks", cvxnmf.sparse(blocks, l1=0.1), 1e-4, of_the_dual, "splitting"),
    ]


def zipf(rows: int, columns: int) -> np.ndarray:
    """Counts whose margins fall as those of words do."""
    rng = np.random.default_rng(3)
    mean = 300.0 * np.outer(1 / np.arange(1, rows + 1), 1 / np.arange(1, columns + 1))
    counts = rng.poisson(mean * rng.gamma(2, 0.5, (rows, columns)))
    return counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0].astype(float)


def over_positions(problem: cvxnmf.Problem, solution: cvxnmf.Solution) -> Spectra:
    """The Hessian over positions W of distances, in the degree metric and in that of the model's Laplacian."""
    (component,) = problem.components
    return spectra_of_positions(component, distances.from_point(solution.point))


def under_the_limit(problem: cvxnmf.Problem, solution: cvxnmf.Solution) -> Spectra:
    """The same for the augmented Lagrangian, once its multiplier has settled."""
    (component,) = problem.components
    method = AugmentedDescent(component, solution.point)
    for _ in range(10):
        method.step()
    return spectra_of_positions(component.with_loss(method.loss), method.descent.descent.x)


def spectra_of_positions(component, x: np.ndarray) -> Spectra:
    """By differences of gradients."""
    n, width = x.shape
    H = np.empty((n * (width - 1),) * 2)
    for column in range(len(H)):
        step = np.zeros_like(x)
        step[column // (width - 1), 1 + column % (width - 1)] = 1e-5
        up, down = distances.slopes(component, x + step)[1], distances.slopes(component, x - step)[1]
        H[column] = ((up - down) / 2e-5)[:, 1:].ravel()
    H = 0.5 * (H + H.T)
    E = component.loss.metric_weights(distances.to_point(x).dense())
    laplacian = np.diag(1.01 * E.sum(axis=1)) - E
    metrics = {"degree metric": np.diag(component.cone.s**2), "Laplacian of the model": laplacian}
    idle = width * (width - 1) // 2  # turns and shifts of all positions change nothing
    values = {name: sl.eigh(H, np.kron(M, np.eye(width - 1)), eigvals_only=True) for name, M in metrics.items()}
    return {name: positive(np.sort(np.abs(found))[idle:]) for name, found in values.items()}


def over_entries(problem: cvxnmf.Problem, solution: cvxnmf.Solution) -> Spectra:
    """Over the entries of X the Hessian is diagonal: the model, plain and in the degree metric."""
    (component,) = problem.components
    H, t = component.loss.curvature(solution.X), component.cone.s**2
    return {"plain": positive(H), "degree metric": positive(H / np.outer(t, t))}


def over_rectangles(problem: cvxnmf.Problem, solution: cvxnmf.Solution) -> Spectra:
    """The same for rectangles, and seen by alternating directions with the penalty rho: ``h / (h + rho)``."""
    H = LOSSES[problem.statement.loss](problem.A).curvature(solution.X)
    rho = 2.0 * problem.trace / np.sqrt(max(H.shape))
    return {"plain": positive(H), "of a step of alternating directions": positive(H / (H + rho))}


def of_the_dual(problem: cvxnmf.Problem, solution: cvxnmf.Solution) -> Spectra:
    """The distance itself has a Hessian of one; that of its dual is the slope of the projection, ``p / (p + q)`` at most."""
    (component,) = problem.components
    ascent = DualAscent(component, solution.point)
    for _ in range(60):
        ascent.step()
    values = np.linalg.eigvalsh(component.add_data(ascent.best_N.copy()))
    p, q = values[values > 0], -values[values < 0]
    mixed = p[:, None] / (p[:, None] + q[None, :])
    slopes = np.concatenate([np.ones(len(p) * (len(p) + 1) // 2), mixed.ravel()])
    return {"of the distance": np.ones(len(slopes)), "of its dual": positive(slopes)}


def positive(values: np.ndarray) -> np.ndarray:
    """Those that are not zero within rounding, as shares of the largest, decreasing."""
    values = np.sort(np.ravel(values))[::-1]
    return values[values > VISIBLE * values[0]] / values[0]


def row_of_table(row: Row, left, right) -> str:
    """Draw the two panels of a problem; return its row of the table."""
    best = cvxnmf.solve(row.problem, tol=1e-2 * row.tol, max_iter=400)
    optimum = 0.5 * (best.value + best.certificate.bound)  # known to half of that gap
    spectra = row.spectra(row.problem, best)
    for (name, values), colour in zip(spectra.items(), palette.LIGHT[1::-1], strict=False):
        left.semilogy(np.linspace(0, 1, len(values)), values, color=colour, label=name)
    left.set(title=f"{row.name}: Hessian", xlabel="share of the eigenvalues", ylabel="eigenvalue / largest")
    left.legend(frameon=False)
    solution = cvxnmf.solve(row.problem, tol=row.tol)
    other = cvxnmf.solve(row.problem, method=row.other, tol=row.tol, max_iter=200)
    values = [it.value for it in solution.history[:-1]] + [solution.value]  # the last one with its effects balanced
    above = shares([value - optimum for value in values], optimum)
    below = shares([optimum - it.bound for it in solution.history], optimum)
    steps = np.arange(1, len(above) + 1)
    right.loglog(steps, above, color=palette.LIGHT[0], label="value above the optimum")
    right.loglog(steps, below, color=palette.LIGHT[1], label="bound below it")
    gaps = shares([it.value - it.bound for it in other.history], optimum)
    right.loglog(np.arange(1, len(gaps) + 1), gaps, ":", color="0.5", label=f"gap of {row.other}")
    right.axhline(row.tol, color="0.8", linewidth=0.8)
    right.set(title=f"{row.name}: {len(steps)} steps", xlabel="step", ylabel="share of the optimum", ylim=(0.01 * row.tol, 3.0))
    right.legend(frameon=False, fontsize="small")
    plain, used = (short(1.0 / values[-1]) for values in spectra.values())
    reached = [first_below(values, row.tol) for values in (above, below)]
    lost = [short(values[-1]) for values in (above, below)]
    return "| " + " | ".join([row.name, plain, used, *reached, *lost]) + " |"


def shares(values: list[float], optimum: float) -> np.ndarray:
    """As shares of the optimum, the best so far, never so small that a logarithm is in danger."""
    return np.minimum.accumulate(np.maximum(np.asarray(values) / optimum, 1e-9))


def short(value: float) -> str:
    """One digit that counts."""
    return f"{value:.0f}" if 1 <= value < 1000 else f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


def first_below(values: np.ndarray, tol: float) -> str:
    """The first step with a value below the gap asked for."""
    return str(int(np.argmax(values <= tol)) + 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
