"""Running an experiment: one loop over its tasks, tables as it goes, pictures at the end."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import IO, Any

from cvxnmf import validation
from cvxnmf.paper import clustering, iterations, permutation, precision, style
from cvxnmf.paper.experiment import Experiment, Options, Progress, Reproduction, Row

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (permutation.FIGURE_1, iterations.FIGURE_2_LEFT, clustering.FIGURE_2_RIGHT, precision.RANK_TWO_STUDY)
}


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
    experiment = EXPERIMENTS[validation.choice("name", name, EXPERIMENTS)]
    chosen = _options(experiment, quick, options)
    tasks = experiment.tasks(chosen)
    style.require_matplotlib()  # before the work, not after it
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    table, rows = folder / f"{name}.csv", []
    with table.open("w", newline="", encoding="utf8") as stream:
        for done, task in enumerate(tasks):
            if progress:
                progress(done, len(tasks), task[0])
            rows += _written(stream, experiment.rows(task, chosen), header=done == 0)
    if progress:
        progress(len(tasks), len(tasks), "drawing")
    summaries = {key: summary(rows) for key, summary in experiment.summaries.items()}
    files = [table]
    for key, lines in summaries.items():
        files.append(folder / f"{name}-{key}.csv")
        with files[-1].open("w", newline="", encoding="utf8") as stream:
            _written(stream, lines, header=True)
    files += style.saved(experiment.draw(rows, chosen), folder / name)
    return Reproduction(name, chosen, tuple(files), rows, summaries)


def _options(experiment: Experiment, quick: bool, given: Options) -> Options:
    """The options of a run, checked."""
    for key in given:
        if key not in experiment.defaults:
            known = ", ".join(experiment.defaults)
            validation.refuse(f"{experiment.name} has no option {key!r}; it has {known}.")
    chosen = {**experiment.defaults, **(experiment.quick if quick else {}), **given}
    for key, value in chosen.items():
        _CHECKS[key](key, value)
    return chosen


def _integers(name: str, values: Any, minimum: int) -> None:
    _different(name, values)
    for value in values:
        validation.integer(name, value, minimum=minimum)


def _deltas(name: str, values: Any) -> None:
    _different(name, values)
    for value in values:
        if not -1 <= validation.number(name, value) <= 1:
            validation.refuse(f"{name} must lie between -1 and 1, not be {value!r}.")


def _spreads(name: str, values: Any) -> None:
    _different(name, values)
    for value in values:
        validation.number(name, value, minimum=0.0, strict=True)


def _different(name: str, values: Any) -> None:
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
        validation.refuse(f"{name} must be a sequence of at least one number, not {values!r}.")
    if len(set(values)) < len(values):
        validation.refuse(f"{name} must be different numbers, not {values!r}.")


_CHECKS = {
    "size": lambda name, value: validation.integer(name, value, minimum=4),
    "sizes": lambda name, values: _integers(name, values, 4),
    "ranks": lambda name, values: _integers(name, values, 1),
    "repeats": lambda name, value: validation.integer(name, value, minimum=1),
    "seed": lambda name, value: validation.integer(name, value, minimum=0),
    "tol": lambda name, value: validation.number(name, value, minimum=0.0, strict=True),
    "deltas": _deltas,
    "spreads": _spreads,
}


def _written(stream: IO[str], rows: list[Row], header: bool) -> list[Row]:
    """Write rows to a table at once, and hand them back."""
    writer = csv.writer(stream, lineterminator="\n")
    if header and rows:
        writer.writerow(rows[0])
    writer.writerows([_text(value) for value in row.values()] for row in rows)
    stream.flush()
    return rows


def _text(value: Any) -> str:
    """A cell: numbers to ten digits, nothing for what does not exist."""
    if value is None:
        return ""
    return format(float(value), ".10g") if isinstance(value, float) else str(value)
