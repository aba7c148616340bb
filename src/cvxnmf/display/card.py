"""A certificate as a card for notebooks: plain HTML that takes the notebook's own colours, light or dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from cvxnmf.display import words

if TYPE_CHECKING:
    from cvxnmf.certificates.certificate import Certificate

#: A grey that shows on white and on black.
LINE = "rgba(128,128,128,.45)"
#: Colours of the bar, by the state of the proof.
BARS = {"tight": "#2a9d8f", "loose": "#e08a1e", "open": LINE}


def card(heading: str, *parts: str) -> str:
    """Return a card: a heading, which is escaped, and parts, which are HTML."""
    frame = f"border:1px solid {LINE};border-radius:6px;padding:.6em .9em;margin:.3em 0;max-width:46em;overflow-x:auto"
    return f'<div style="{frame}"><div style="font-weight:600;margin-bottom:.3em">{clean(heading)}</div>{"".join(parts)}</div>'


def clean(text: object) -> str:
    """Return a text that is safe inside HTML; what no encoding can write is shown escaped."""
    return escape(str(text).encode("utf-8", "backslashreplace").decode("utf-8"))


def sentence(text: str) -> str:
    """Return a paragraph."""
    return f'<div style="margin:.3em 0">{clean(text)}</div>'


def table(rows: Sequence[Sequence[object]], heading: Sequence[object] = ()) -> str:
    """Return a table; its first column is a heading."""
    cell = "text-align:left;vertical-align:top;padding:.15em 1.2em .15em 0;border:0;background:none"
    head = "".join(f'<th scope="col" style="{cell}">{clean(text)}</th>' for text in heading)
    lines = [f"<tr>{head}</tr>"] if heading else []
    for first, *others in rows:
        cells = "".join(f'<td style="{cell}">{clean(text)}</td>' for text in others)
        lines.append(
            f'<tr style="background:none"><th scope="row" style="{cell};font-weight:400">{clean(first)}</th>{cells}</tr>'
        )
    return f'<table style="border-collapse:collapse;margin:.3em 0;border:0;font-size:inherit">{"".join(lines)}</table>'


def certificate_card(certificate: Certificate) -> str:
    """Return what is proved: the sentence, how much of the value the bound covers, and the numbers."""
    state, verdict = words.verdict(certificate)
    projected = " (after projection on the cone)" if certificate.restored else ""
    facts = [
        ("value", words.number(certificate.value) + projected),
        ("proved bound", words.bound(certificate.bound)),
        ("relative gap", f"{certificate.relative_gap:.1e}"),
        ("rests on", certificate.explanation),
        ("rounding", "allowed for" if certificate.rigorous else "not allowed for in full: the bound is not rigorous"),
    ]
    return card(f"Certificate: {verdict}", sentence(words.claim(certificate)), _bar(certificate, BARS[state]), table(facts))


def _bar(certificate: Certificate, colour: str) -> str:
    """Return a bar as long as the bound, on a track as long as the value."""
    covered = certificate.bound / certificate.value if certificate.value > 0 and math.isfinite(certificate.value) else 1.0
    percent = 100.0 * min(max(covered, 0.0), 1.0)
    inner = f'<div style="width:{percent:.2f}%;height:100%;background:{colour};border-radius:3px"></div>'
    track = f"height:6px;background:{LINE};border-radius:3px;margin:.5em 0"
    return f'<div role="img" aria-label="The bound is {percent:.2f}% of the value." style="{track}">{inner}</div>'
