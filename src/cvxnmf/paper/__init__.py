"""The paper reproduced: its figures, and the study of its rank-two factors that it left for later.

figure1         a block graph before and after its clusters are put together
figure2-left    steps to a certified gap against the size of the graph
figure2-right   performance against the spectral methods, from near-bipartite graphs to clear clusters
rank-two        how precise the paper's 2^r columns are, beside its series and the lattice
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cvxnmf import validation
from cvxnmf.paper.experiment import Experiment, Progress, Reproduction
from cvxnmf.paper.figure1 import FIGURE_1
from cvxnmf.paper.figure2_left import FIGURE_2_LEFT
from cvxnmf.paper.figure2_right import FIGURE_2_RIGHT
from cvxnmf.paper.rank_two import RANK_TWO_STUDY

__all__ = ["EXPERIMENTS", "Experiment", "Reproduction", "reproduce"]

EXPERIMENTS = {experiment.name: experiment for experiment in (FIGURE_1, FIGURE_2_LEFT, FIGURE_2_RIGHT, RANK_TWO_STUDY)}


def reproduce(
    name: str, output: str | Path = "cvxnmf-paper", *, quick: bool = False, progress: Progress | None = None, **options: Any
) -> Reproduction:
    """Reproduce one figure of the paper: a table, a PNG and an SVG in a folder.

    Rows are written as they are finished, so an interrupted run leaves those it has. The same options give the same tables.

    Parameters
    ----------
    name : {"figure1", "figure2-left", "figure2-right", "rank-two"}
        The experiment.
    output : path
        Folder for its files, made when missing.
    quick : bool
        Take small sizes and few repeats where no options say otherwise.
    progress : callable, optional
        Called before every task with the number done, their total and the next one's name, and once at the end.
    **options
        Values for the experiment's own options, such as `repeats` or `seed`; ``EXPERIMENTS[name].defaults`` lists them.

    Returns
    -------
    Reproduction
    """
    return EXPERIMENTS[validation.choice("name", name, EXPERIMENTS)].run(Path(output), quick, options, progress)
