"""The table of the steps of a solver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from cvxnmf.display import charts
from cvxnmf.display.formatting import lower_bound, number
from cvxnmf.results import Iterate


def step_rows(history: Sequence[Iterate], final_bound: float) -> list[list[str]]:
    """Return a table of the steps, of a few of them where they are many: step, value, bound, relative gap and seconds."""
    steps, bounds = charts.drawable_steps(history, final_bound)
    chosen: Iterable[int] = range(len(steps))
    if len(steps) > charts.FEW:
        chosen = np.unique(np.geomspace(1, len(steps), charts.FEW).astype(int)) - 1
    return [_step_row(steps[place], bounds[place]) for place in chosen]


def _step_row(step: Iterate, bound: float) -> list[str]:
    """Return the numbers of one step as text."""
    gap = charts.relative_gap(step.value, bound)
    return [str(step.iteration), number(step.value, 8), lower_bound(bound, 8), number(gap, 2), number(step.seconds, 2)]
