"""The parts of a page about a factorisation."""

from __future__ import annotations

from html import escape

from cvxnmf.display import formatting as words
from cvxnmf.display.certificate_text import loss_name
from cvxnmf.display.page import payload, sections, steps
from cvxnmf.results import Factorization


def title(result: Factorization) -> str:
    """Return the title a page has when none is given."""
    return f"Nonnegative factorisation with {words.count(result.n_components, 'component')}"


def body(result: Factorization) -> str:
    """Return the parts in the order they are read."""
    return headline(result) + proof(result) + factors(result) + history(result)


def headline(result: Factorization) -> str:
    """Return the headline numbers."""
    same = result.V is result.U
    sides = (
        [("Nodes", f"{len(result.U):,}", "")]
        if same
        else [("Rows", f"{len(result.U):,}", ""), ("Columns", f"{len(result.V):,}", "")]
    )
    measure = loss_name(result.certificate)
    facts = [
        *sides,
        ("Components", f"{result.n_components:,}", ""),
        ("Value", words.number(result.value, 6), measure),
        ("Proved bound", words.lower_bound(result.certificate.bound, 6), "nothing can be lower"),
    ]
    return sections.section("overview", "At a glance", sections.tiles(facts))


def proof(result: Factorization) -> str:
    """Return the certificate in plain words."""
    heading = "The factors UU'" if result.V is result.U else "The factors UV'"
    return sections.section("proof", "What is proved", sections.certificate(result.certificate, heading))


def factors(result: Factorization) -> str:
    """Return heat maps of the factors and a button for each download."""
    sides = [("U", result.U)] if result.V is result.U else [("U", result.U), ("V", result.V)]
    rows = [(str(component), "") for component in range(result.n_components)]
    maps = "".join(
        sections.heat(place, f"{name}: {len(factor):,} items across, components down", rows, f"Entries of {name}.")
        for place, (name, factor) in enumerate(sides)
    )
    width = payload.precision(result)
    buttons = "".join(
        f'<button type="button" data-factor="{place}">Download {name} (CSV)</button> ' for place, (name, _) in enumerate(sides)
    )
    tools = f'<div class="tools">{buttons}</div>' if width else ""
    lead = "Components are numbered from 0, by decreasing weight; the strongest colour is the largest entry of the factor."
    return sections.section("factors", "The factors", maps + tools + _left_out(result, width), lead)


def _left_out(result: Factorization, width: str) -> str:
    """Return what the page does not hold."""
    said = []
    if max(len(result.U), len(result.V)) > payload.COLUMNS:
        said.append(f"More than {payload.COLUMNS:,} items share columns, which show the largest entry.")
    if width == "f4":
        said.append("The downloads hold seven digits, to keep the page small.")
    if not width:
        said.append("The factors are too large to download from this page; cvxnmf.save keeps them.")
    return f'<p class="note">{" ".join(said)}</p>' if said else ""


def history(result: Factorization) -> str:
    """Return how the loss fell."""
    told = f'<p class="note">{escape(result.message)}</p>'
    bound = result.certificate.bound
    drawn, listed = steps.closing(result.history, bound), steps.listed(result.history, bound)
    return sections.section("solve", "How it was found", told + f'<div class="pair"><div>{drawn}</div><div>{listed}</div></div>')
