"""What the page about a factorisation shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cvxnmf.display.certificate_text import describe, loss_name
from cvxnmf.display.formatting import count, lower_bound, number
from cvxnmf.display.page import figures, payload
from cvxnmf.display.page.step_table import step_rows
from cvxnmf.results import ComponentTop, Factorization, RankChoice
from cvxnmf.results.top import Item

#: Components that the page shows, and rows and columns of each.
COMPONENTS, ITEMS = 60, 8


class Bar(NamedTuple):
    """A row or a column of the data: its name, and its entry in percent of the largest of its component."""

    name: str
    percent: float


class Card(NamedTuple):
    """A component: its number, its share of the weight of all, and what is strongest in it."""

    number: int
    share: str
    sides: list[tuple[str, list[Bar]]]


def title(result: Factorization) -> str:
    """Return the title a page has when none is given."""
    sides = f"{count(len(result.U), 'row')} and {count(len(result.V), 'column')}"
    data = count(len(result.U), "node") if result.V is result.U else sides
    return f"Factorisation of {data} into {count(result.n_components, 'component')}"


def context(result: Factorization, choice: RankChoice | None = None) -> dict[str, Any]:
    """Return what the template ``factorization.html`` shows; the curve of ranks where there is one."""
    symmetric, bound = result.V is result.U, result.certificate.bound
    certificate = describe(result.certificate)
    return {
        "headline": certificate.claim,
        "tiles": _tiles(result),
        "heading": "The factors UU'" if symmetric else "The factors UV'",
        "certificate": certificate,
        "components": result.n_components,
        "factors": [("U", len(result.U))] if symmetric else [("U", len(result.U)), ("V", len(result.V))],
        "cards": [_card(part, symmetric) for part in result.top(ITEMS)[:COMPONENTS]],
        "top_note": _top_note(result),
        "downloads": bool(payload.kept_precision(result)),
        "factors_note": _factors_note(result),
        "ending": result.message,
        "gap_figure": figures.gap_figure(result.history, bound),
        "steps": step_rows(result.history, bound) if len(result.history) > 1 else [],
        "rank_reason": "" if choice is None else choice.reason,
        "rank_figure": "" if choice is None else figures.rank_figure(choice),
    }


def _card(part: ComponentTop, symmetric: bool) -> Card:
    """Return a component with bars for its strongest columns and rows, or nodes."""
    named = [("Nodes", part.rows)] if symmetric else [("Columns", part.columns), ("Rows", part.rows)]
    return Card(part.component, f"{100 * part.share:.0f}%", [(heading, _bars(items)) for heading, items in named])


def _bars(items: Sequence[Item]) -> list[Bar]:
    """Return the names of items with bars for their weights, the largest of them full."""
    largest = max((item.weight for item in items), default=1.0)
    return [Bar(payload.encodable(item.name), 100.0 * item.weight / largest) for item in items]


def _tiles(result: Factorization) -> list[tuple[str, str, str]]:
    """Return the headline numbers: name, number and a remark."""
    rows = [("Rows", f"{len(result.U):,}", ""), ("Columns", f"{len(result.V):,}", "")]
    return [
        *([("Nodes", f"{len(result.U):,}", "")] if result.V is result.U else rows),
        ("Components", f"{result.n_components:,}", ""),
        ("Value", number(result.value, 6), loss_name(result.certificate)),
        ("Proved bound", lower_bound(result.certificate.bound, 6), "nothing can be lower"),
    ]


def _top_note(result: Factorization) -> str:
    """Return how names are to be read, and what is left out."""
    notes = [] if result.named else ["Rows and columns have no names and are numbered from 0."]
    if result.n_components > COMPONENTS:
        notes.append(f"{count(result.n_components - COMPONENTS, 'weaker component')} more; result.top() has them all.")
    return " ".join(notes)


def _factors_note(result: Factorization) -> str:
    """Return what the page does not hold."""
    width, notes = payload.kept_precision(result), []
    if max(len(result.U), len(result.V)) > payload.COLUMNS:
        notes.append(f"More than {payload.COLUMNS:,} items share columns, which show the largest entry.")
    if width == "f4":
        notes.append("The downloads hold seven digits, to keep the page small.")
    if not width:
        notes.append("The factors are too large to download from this page; cvxnmf.save keeps them.")
    return " ".join(notes)
