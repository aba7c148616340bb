"""Parts that every page has: headline numbers, certificates, figures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cvxnmf.certificates import Certificate
from cvxnmf.display.certificate_text import describe

#: Where a picture says in text what lies under the pointer or the cursor.
READOUT = '<p class="readout" aria-live="polite">Point at the picture, or focus it and use the arrow keys.</p>'


def tiles(facts: Sequence[tuple[str, str, str]]) -> str:
    """Return headline numbers: name, number and a remark that may be empty."""
    cells = "".join(_tile(*fact) for fact in facts)
    return f'<dl class="tiles">{cells}</dl>'


def _tile(name: str, value: str, remark: str) -> str:
    """Return one headline number."""
    small = f"<dd class='remark'>{escape(remark)}</dd>" if remark else ""
    return f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd>{small}</div>"


def certificate(proof: Certificate, heading: str) -> str:
    """Return a certificate in words with its numbers, under a heading that says what it is about."""
    text = describe(proof)
    listed = "".join(f"<div><dt>{name.capitalize()}</dt><dd>{escape(value)}</dd></div>" for name, value in text.facts)
    return (
        f'<article class="proof {text.state}"><header><h3>{escape(heading)}</h3>'
        f'<span class="badge">{escape(text.verdict)}</span></header><p class="claim">{escape(text.claim)}</p>'
        f'<p class="note">{escape(text.basis)}</p><dl class="facts">{listed}</dl></article>'
    )


def section(name: str, heading: str, body: str, lead: str = "") -> str:
    """Return a part of the page with its heading; `lead` is a sentence of HTML below it."""
    below = f'<p class="lead">{lead}</p>' if lead else ""
    head = f'<h2 id="{name}-heading">{escape(heading)}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-heading">{head}{below}{body}</section>'


def plot(name: str, description: str, class_: str = "") -> str:
    """Return an empty picture that the script draws; arrow keys move a cursor in it."""
    hint = escape(f"{description} Arrow keys move a cursor.")
    places = f'class="plot {class_}" data-plot="{name}"'
    return f'<div {places} tabindex="0" role="application" aria-label="{hint}"><canvas></canvas></div>'


def heat(index: int, label: str, rows: Sequence[tuple[str, str]], description: str) -> str:
    """Return an empty heat map with the names of its rows: text, and a class or style for a mark."""
    names = "".join(f"<li>{mark}{escape(text)}</li>" for text, mark in rows)
    return (
        f'<figure class="heat"><figcaption>{escape(label)}</figcaption>'
        f'<div class="heat-body"><ol class="rows" aria-hidden="true">{names}</ol>{plot(f"heat-{index}", description)}</div>'
        f"{READOUT}</figure>"
    )
