"""An experiment: tasks, the rows of each, and the figure of all rows; one loop runs them and writes rows as they are made."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from cvxnmf import validation
from cvxnmf.paper import style

Row = dict[str, Any]
Options = Mapping[str, Any]
#: Told how many tasks are done, how many there are and what the next one is.
Progress = Callable[[int, int, str], object]


@dataclass(frozen=True)
class Experiment:
    """An experiment, one figure of the paper: how its rows are made and how they are drawn.

    `defaults` are the options of the full run, `quick` those of a quick one where they differ. `tasks` makes the tasks, each with
    its name in words first; `rows` the rows of a task, all with the same columns; `draw` the figure of all rows; and
    `summaries` further tables of all rows, by name.
    """

    name: str
    defaults: Options
    quick: Options
    tasks: Callable[[Options], Sequence[tuple[Any, ...]]]
    rows: Callable[[tuple[Any, ...], Options], list[Row]]
    draw: Callable[[Sequence[Row], Options], Any]
    summaries: Mapping[str, Callable[[Sequence[Row]], list[Row]]] = field(default_factory=dict)

    def run(self, folder: Path, quick: bool, given: Options, progress: Progress | None) -> Reproduction:
        """Make all rows of an experiment, write them as they are finished, and draw; see :func:`cvxnmf.paper.reproduce`."""
        options = self._options(quick, given)
        tasks = self.tasks(options)
        style.require_matplotlib()  # before the work, not after it
        folder.mkdir(parents=True, exist_ok=True)
        table, rows = folder / f"{self.name}.csv", []
        with table.open("w", newline="", encoding="utf8") as stream:
            for done, task in enumerate(tasks):
                if progress:
                    progress(done, len(tasks), task[0])
                rows += _write_rows(stream, self.rows(task, options), header=done == 0)
        if progress:
            progress(len(tasks), len(tasks), "drawing")
        summaries = {key: summary(rows) for key, summary in self.summaries.items()}
        files = [table]
        for key, lines in summaries.items():
            files.append(folder / f"{self.name}-{key}.csv")
            with files[-1].open("w", newline="", encoding="utf8") as stream:
                _write_rows(stream, lines, header=True)
        files += style.save(self.draw(rows, options), folder / self.name)
        return Reproduction(self.name, options, tuple(files), rows, summaries)

    def _options(self, quick: bool, given: Options) -> Options:
        """The options of a run of an experiment, checked."""
        for key in given:
            if key not in self.defaults:
                validation.refuse(f"{self.name} has no option {key!r}; it has {', '.join(self.defaults)}.")
        chosen = {**self.defaults, **(self.quick if quick else {}), **given}
        for key, value in chosen.items():
            _CHECKS[key](key, value)
        return chosen


@dataclass(frozen=True)
class Reproduction:
    """A finished experiment of the paper: its options, the files written (tables, then pictures), and the rows of its tables."""

    name: str
    options: Options
    files: tuple[Path, ...]
    rows: list[Row] = field(repr=False)
    summaries: Mapping[str, list[Row]] = field(repr=False)

    @property
    def certified(self) -> bool:
        """Whether every convex problem of the experiment was solved to the tolerance asked for."""
        return all(row["relative_gap"] <= row["tol"] for row in self.rows if row.get("relative_gap") is not None)


def repeated_tasks(options: Options, values: Sequence[float], text: str) -> list[tuple[Any, ...]]:
    """Tasks ``(name, value, repeat)`` of an experiment: every value with every repeat."""
    repeats = range(options["repeats"])
    return [(f"{text.format(x)}, graph {i + 1} of {len(repeats)}", x, i) for x in values for i in repeats]


def _check_each(check: Callable[[str, Any], object]) -> Callable[[str, Any], None]:
    """A check of an experiment's option that is a sequence of different numbers, from the check of one."""

    def check_all(name: str, values: Any) -> None:
        if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
            validation.refuse(f"{name} must be a sequence of at least one number, not {values!r}.")
        if len(set(values)) < len(values):
            validation.refuse(f"{name} must be different numbers, not {values!r}.")
        for value in values:
            check(name, value)

    return check_all


def _check_delta(name: str, value: Any) -> None:
    if not -1 <= validation.number(name, value) <= 1:
        validation.refuse(f"{name} must lie between -1 and 1, not be {value!r}.")


def _check_integer(minimum: int) -> Callable[[str, Any], int]:
    return lambda name, value: validation.integer(name, value, minimum=minimum)


def _check_positive(name: str, value: Any) -> float:
    return validation.number(name, value, minimum=0.0, strict=True)


_CHECKS: dict[str, Callable[[str, Any], object]] = {
    "size": _check_integer(4),
    "sizes": _check_each(_check_integer(4)),
    "ranks": _check_each(_check_integer(1)),
    "repeats": _check_integer(1),
    "seed": _check_integer(0),
    "tol": _check_positive,
    "deltas": _check_each(_check_delta),
    "spreads": _check_each(_check_positive),
}


def _write_rows(stream: IO[str], rows: list[Row], header: bool) -> list[Row]:
    """Write rows of an experiment to its table at once, and return them."""
    writer = csv.writer(stream, lineterminator="\n")
    if header and rows:
        writer.writerow(rows[0])
    writer.writerows([_cell(value) for value in row.values()] for row in rows)
    stream.flush()
    return rows


def _cell(value: Any) -> str:
    """A cell of an experiment's table: numbers to ten digits, nothing for what does not exist."""
    if value is None:
        return ""
    return format(float(value), ".10g") if isinstance(value, float) else str(value)
