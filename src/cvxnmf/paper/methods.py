"""What the figures compare: the paper's settings, the package's own, and the spectral methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cvxnmf.certificates import LabelStatement
from cvxnmf.graphs.block_graph import block_graph
from cvxnmf.graphs.label_bounds.verify import LabelBounds
from cvxnmf.graphs.partition import partition
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.paper.spectral import min_max_cut, normalised_cut
from cvxnmf.results import Partition

PAPER_KL, PAPER_MSE, DEFAULT = "paper's setting, KL", "paper's setting, MSE", "this package's default"
MIN_MAX, NORMALISED, SPLIT = "min-max cut", "normalised cut", "min-max split"
BOUND = "proved bound"
#: Work for a bound, as a part of the usual.
BOUND_EFFORT = 0.005

#: The paper's problem and method; labels are read off its positions, as there, and not improved afterwards.
_PAPER = {"trace": 0.0, "cone": "psd", "metric": "uniform", "method": "projected-gradient", "refine": False}
#: Arguments of `partition` by the name of the setting.
CONVEX: dict[str, dict[str, Any]] = {PAPER_KL: {**_PAPER, "loss": "kl"}, PAPER_MSE: {**_PAPER, "loss": "mse"}, DEFAULT: {}}
#: Labels of a graph in two clusters by the name of the spectral method; a split is a min-max cut without refinement.
SPECTRAL: dict[str, Callable[[FloatArray], NDArray[np.intp]]] = {
    MIN_MAX: lambda A: min_max_cut(A, 2),
    SPLIT: lambda A: min_max_cut(A, 2, refine=False),
    NORMALISED: lambda A: normalised_cut(A, 2),
}
#: Steps after which a solve gives up.
MOST_STEPS = 20_000


def partition_in_two(A: FloatArray, setting: str, tol: float) -> Partition:
    """Two clusters of a graph by one of the convex methods that the figures compare."""
    return partition(A, 2, tol=tol, max_iter=MOST_STEPS, **CONVEX[setting])


def draw_graph(n: int, delta: float, seed: int) -> FloatArray:
    """The adjacency matrix of a figure's block graph with ``alpha = (1 - delta) / 2`` and ``beta = (1 + delta) / 2``."""
    return block_graph(n, (1.0 - delta) / 2.0, (1.0 + delta) / 2.0, rng=seed)[0]


def performance_bound(A: FloatArray, labels: Any) -> float:
    """A number that the performance of no partition into at most two clusters exceeds, from the doubly nonnegative bound."""
    statement = LabelStatement("performance", 1.0, 2)
    bounds = LabelBounds(sp.csr_array(A), np.asarray(labels, dtype=np.int64), statement, BOUND_EFFORT, None)
    bounds.by_semidefinite()
    return bounds.found.bound
