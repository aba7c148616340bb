"""What an experiment is: a list of tasks, the rows of each, and the figure of all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Options = Mapping[str, Any]
#: Told how many tasks are done, how many there are and what the next one is.
Progress = Callable[[int, int, str], object]


@dataclass(frozen=True)
class Experiment:
    """One figure of the paper: how its rows are made and how they are drawn.

    Attributes
    ----------
    name, title : str
        The name on the command line and in file names, and what the figure shows.
    defaults, quick : mapping
        Options by name with the values of the full run, and those of a quick one where they differ.
    tasks : callable
        From options to the tasks, in order, each with its name in words first.
    rows : callable
        From a task and the options to its rows; all rows have the same columns.
    draw : callable
        From all rows and the options to a matplotlib figure.
    summaries : mapping
        Further tables by name, each made from all rows.
    """

    name: str
    title: str
    defaults: Options
    quick: Options
    tasks: Callable[[Options], Sequence[tuple[Any, ...]]]
    rows: Callable[[tuple[Any, ...], Options], list[Row]]
    draw: Callable[[Sequence[Row], Options], Any]
    summaries: Mapping[str, Callable[[Sequence[Row]], list[Row]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Reproduction:
    """A finished experiment.

    Attributes
    ----------
    name : str
        The experiment.
    options : mapping
        The options it ran with.
    files : tuple of Path
        What was written: tables, then pictures.
    rows : list of dict
        All rows of its table.
    summaries : mapping
        Rows of its further tables by name.
    """

    name: str
    options: Options
    files: tuple[Path, ...]
    rows: list[Row] = field(repr=False)
    summaries: Mapping[str, list[Row]] = field(repr=False)

    @property
    def certified(self) -> bool:
        """Whether every convex problem was solved to the tolerance asked for."""
        return all(row["relative_gap"] <= row["tol"] for row in self.rows if row.get("relative_gap") is not None)
