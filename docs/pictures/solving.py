"""Draw the pictures of the page "How the problems are solved": spectra of Hessians, and gaps against the work done.

``python docs/pictures/solving.py`` writes solving.svg beside itself, from real solves; time is counted in eigendecompositions.
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import scipy.linalg as sl
from matplotlib.ticker import NullFormatter

import cvxnmf
from cvxnmf.convex import distances
from cvxnmf.display import palette

METHODS = ("projected-gradient", "accelerated", "factored", "splitting", "adaptive")
COLOURS = dict(zip(METHODS, palette.LIGHT, strict=False))


def main(folder: Path) -> None:
    """Four panels: one spectrum, three races."""
    plt.rcParams["svg.hashsalt"] = "cvxnmf"
    figure, panels = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
    graph = nx.to_numpy_array(nx.les_miserables_graph())
    blocks = cvxnmf.block_graph(200, 0.3, 0.7)[0].astype(float)
    tree = nx.to_numpy_array(nx.random_labeled_tree(60, seed=2))
    spectrum(panels[0], cvxnmf.symmetric(tree))
    race(panels[1], "Les Misérables, KL, trace 0", cvxnmf.symmetric(graph), METHODS[:3] + METHODS[4:])
    race(panels[2], "Counts of a wide range, KL, trace 1", cvxnmf.nonsymmetric(zipf(120, 100), trace=1.0), METHODS[1:4])
    race(panels[3], "Doubly nonnegative, blocks n = 200", cvxnmf.sparse(blocks, l1=0.1), METHODS[1::2], tol=1e-8)
    figure.savefig(folder / "solving.svg", metadata={"Date": None})


def zipf(rows: int, columns: int) -> np.ndarray:
    """Counts whose margins fall as those of words do."""
    rng = np.random.default_rng(3)
    mean = 300.0 * np.outer(1 / np.arange(1, rows + 1), 1 / np.arange(1, columns + 1))
    counts = rng.poisson(mean * rng.gamma(2, 0.5, (rows, columns)))
    return counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0].astype(float)


def spectrum(panel, problem) -> None:
    """Eigenvalues of the Hessian over the positions at the solution, in the degree metric and in the Laplacian's."""
    (component,) = problem.components
    x = distances.from_point(cvxnmf.solve(problem, tol=1e-6).point)
    n, width = x.shape
    H = np.empty((n * (width - 1),) * 2)
    for column in range(len(H)):
        step = np.zeros_like(x)
        step[column // (width - 1), 1 + column % (width - 1)] = 1e-5
        up, down = distances.slopes(component, x + step)[1], distances.slopes(component, x - step)[1]
        H[column] = ((up - down) / 2e-5)[:, 1:].ravel()
    H = 0.5 * (H + H.T)
    E = np.exp(distances.to_point(x).dense())
    laplacian = np.diag(1.01 * E.sum(axis=1)) - E
    metrics = {"degree metric": np.diag(component.cone.s**2), "Laplacian of the model": laplacian}
    for (name, M), colour in zip(metrics.items(), (palette.LIGHT[1], palette.LIGHT[0]), strict=True):
        values = sl.eigh(H, np.kron(M, np.eye(width - 1)), eigvals_only=True)
        values = np.sort(values[values > 1e-9 * values[-1]])[::-1]
        panel.semilogy(values / values[0], color=colour, label=name)
    panel.set(title="Hessian over positions, a tree, trace 0", xlabel="number", ylabel="eigenvalue / largest")
    panel.legend(frameon=False)


def race(panel, title, problem, methods, tol=1e-5) -> None:
    """Certified gap of every method against its time, in decompositions of the data."""
    A = np.asarray(problem.A)
    began = time.perf_counter()
    for _ in range(5):
        sl.eigh(A) if A.shape[0] == A.shape[1] else sl.svd(A, full_matrices=False)
    unit = (time.perf_counter() - began) / 5
    for method in methods:
        solution = cvxnmf.solve(problem, method=method, tol=tol, max_iter=400)
        gaps = [max(1e-16, it.value - it.bound) / it.value for it in solution.history]
        panel.loglog([it.seconds / unit for it in solution.history], gaps, color=COLOURS[method], label=method)
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set(title=title, xlabel="time, in decompositions", ylabel="certified relative gap", ylim=(tol / 3, 2.0))
    panel.legend(frameon=False)


if __name__ == "__main__":
    main(Path(__file__).parent)
