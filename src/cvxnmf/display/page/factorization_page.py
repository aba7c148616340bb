"""What the page about a factorisation shows."""

from __future__ import annotations

from typing import Any

from cvxnmf.display.certificate_text import describe, loss_name
from cvxnmf.display.formatting import count, lower_bound, number
from cvxnmf.display.page import figures, payload
from cvxnmf.results import Factorization, RankChoice

#: Components that the page shows, and rows and columns of each.
COMPONENTS, ITEMS = 60, 8


def title(result: Factorization) -> str:
    """Return the title that the page about a factorisation has when none is given."""
    sides = f"{count(len(result.U), 'row')} and {count(len(result.V), 'column')}"
    data = count(len(result.U), "node") if result.V is result.U else sides
    return f"Factorisation of {data} into {count(result.n_components, 'component')}"


def context(result: Factorization, choice: RankChoice | None = None) -> dict[str, Any]:
    """Return everything that the template ``factorization.html`` shows; the curve of ranks where there is one."""
    symmetric, bound = result.V is result.U, result.certificate.bound
    certificate = describe(result.certificate)
    return {
        "headline": certificate.claim,
        "tiles": _tiles(result),
        "heading": "The factors UU'" if symmetric else "The factors UV'",
        "certificate": certificate,
        "components": result.n_components,
        "factors": [("U", len(result.U))] if symmetric else [("U", len(result.U)), ("V", len(result.V))],
        "symmetric": symmetric,
        "top": result.top(ITEMS)[:COMPONENTS],
        "top_note": _top_note(result),
        "downloads": bool(payload.kept_precision(result)),
        "factors_note": _factors_note(result),
        "ending": result.message,
        "gap_figure": figures.gap_figure(result.history, bound),
        "steps": figures.step_rows(result.history, bound) if len(result.history) > 1 else [],
        "rank_reason": "" if choice is None else choice.reason,
        "rank_figure": "" if choice is None else figures.rank_figure(choice),
    }


def _tiles(result: Factorization) -> list[tuple[str, str, str]]:
    """Return the headline numbers of the page about a factorisation: name, number and a remark."""
    rows = [("Rows", f"{len(result.U):,}", ""), ("Columns", f"{len(result.V):,}", "")]
    return [
        *([("Nodes", f"{len(result.U):,}", "")] if result.V is result.U else rows),
        ("Components", f"{result.n_components:,}", ""),
        ("Value", number(result.value, 6), loss_name(result.certificate)),
        ("Proved bound", lower_bound(result.certificate.bound, 6), "nothing can be lower"),
    ]


def _top_note(result: Factorization) -> str:
    """Return the note on how names of the strongest rows and columns are to be read on the page, and what is left out."""
    notes = [] if result.named else ["Rows and columns have no names and are numbered from 0."]
    if result.n_components > COMPONENTS:
        notes.append(f"{count(result.n_components - COMPONENTS, 'weaker component')} more; result.top() has them all.")
    return " ".join(notes)


def _factors_note(result: Factorization) -> str:
    """Return the note on what the page about a factorisation does not hold of the factors."""
    width, notes = payload.kept_precision(result), []
    if max(len(result.U), len(result.V)) > payload.COLUMNS:
        notes.append(f"More than {payload.COLUMNS:,} items share columns, which show the largest entry.")
    if width == "f4":
        notes.append("The downloads hold seven digits, to keep the page small.")
    if not width:
        notes.append("The factors are too large to download from this page; cvxnmf.save keeps them.")
    return " ".join(notes)
