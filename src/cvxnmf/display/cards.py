"""Results as cards for notebooks: what was found first, what is proved in a line, details folded.

Plain HTML that takes the notebook's own colours, light or dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from cvxnmf.display import palette
from cvxnmf.display.certificate_text import describe
from cvxnmf.display.formatting import RANK_HEADING, cluster_rows, count, rank_rows
from cvxnmf.results.partition import IN_BLOCKS

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate
    from cvxnmf.results import CoClusters, CPFactor, Factorization, Partition, RankChoice, Solution, Top

#: A grey that shows on white and on black.
LINE = "rgba(128,128,128,.45)"
#: Colours of the bar, by the state of the proof.
BARS = {"tight": "#2a9d8f", "loose": "#e08a1e", "open": LINE}
#: Most clusters that a card lists, names of members of each, and letters of a name.
CLUSTERS, MEMBERS, LETTERS = 12, 6, 40
#: Letters up to which a cell is taken for a number.
NUMBER = 12


def certificate_card(certificate: Certificate) -> str:
    """Return the card of a certificate: the sentence, how much of the value the bound covers, and the numbers."""
    text = describe(certificate)
    bar = _bar(certificate.value, certificate.bound, BARS[text.state])
    return _card(f"Certificate: {text.verdict}", _paragraph(text.claim), bar, _proof_details(certificate))


def _proof(certificate: Certificate, about: str = "") -> str:
    """Return the line of a card on what is proved; `about` says of what."""
    return _paragraph(f"{about}{describe(certificate).claim}")


def _proof_details(certificate: Certificate) -> str:
    """Return what a bound rests on, and the numbers, folded on a card."""
    return _details_element("What the bound rests on", _proof_facts(certificate))


def _proof_facts(certificate: Certificate) -> str:
    """Return what a bound rests on, and the numbers, for a card."""
    text = describe(certificate)
    return _paragraph(text.basis) + _table(text.facts)


def solution_card(solution: Solution, size: str) -> str:
    """Return the card of a solved problem: its size, how the solve ended, and its certificate."""
    steps = f"{count(solution.n_iter, 'step')} in {solution.seconds:.2f} s"
    ending = _paragraph(f"{steps}. {solution.status.sentence}")
    proof = solution.certificate
    return _card(f"Solution of {size}, rank {solution.rank}", _proof(proof), ending, _proof_details(proof))


def cp_factor_card(factor: CPFactor) -> str:
    """Return the card of completely positive factors: their size and errors."""
    symmetric = factor.V is factor.U
    sides = count(len(factor.U), "row") + ("" if symmetric else f" and {count(len(factor.V), 'column')}")
    errors = [
        ("largest relative error of an entry", f"{factor.max_relative_error:.1e}"),
        ("relative error in norm", f"{factor.frobenius_error:.1e}"),
    ]
    form = "UU'" if symmetric else "UV'"
    return _card(f"CPFactor: {sides}, {count(factor.U.shape[1], 'nonnegative factor')}, E ≈ {form}", _table(errors))


def factorization_card(result: Factorization) -> str:
    """Return the card of a factorisation: components with what is strongest in them, the proof, and how it ended."""
    symmetric = result.V is result.U
    pair = f"{count(len(result.U), 'row')} and {count(len(result.V), 'column')}"
    sides = count(len(result.U), "node") if symmetric else pair
    heading = f"Factorization A ≈ {'UU' if symmetric else 'UV'}': {sides}, {count(result.n_components, 'component')}"
    top, proof = result.top(MEMBERS), result.certificate
    details = (_proof_facts(proof), _paragraph(result.message))
    strip = _strip([part.share for part in top])
    return _card(heading, strip, top_table(top), _proof(proof), _details_element("Details of the proof", *details))


def rank_choice_card(choice: RankChoice) -> str:
    """Return the card of a choice of rank: the recommended number of components, why, and the table."""
    heading = f"Choice of rank: {count(choice.n_components, 'component')}"
    return _card(heading, _paragraph(choice.reason), _table(rank_rows(choice), RANK_HEADING))


def top_card(top: Top) -> str:
    """Return the card of the strongest rows and columns of every component."""
    return _card(f"The strongest of {count(len(top), 'component')}", top_table(top, len(top)))


def top_table(top: Top, most: int = CLUSTERS) -> str:
    """Return the card's table of the strongest rows and columns of the first components."""
    lines = [[text if at < 2 else _cut_names(text) for at, text in enumerate(line)] for line in top.lines()[:most]]
    rest = _paragraph(f"and {count(len(top) - most, 'weaker component')}; top() has them all.") if len(top) > most else ""
    return _table(lines, top.heading, coloured=True) + rest


def _cut_names(names: str) -> str:
    """Return names between commas for a card, each of moderate length."""
    return ", ".join(name[:LETTERS] for name in names.split(", "))


def partition_card(partition: Partition, with_model: bool, with_factors: bool) -> str:
    """Return the card of a partition: clusters with surest members, measures, and proofs; of model and factors if asked for."""
    k = partition.n_clusters
    quality = f"Modularity {partition.modularity:.4f}, performance {partition.performance:.4f}"
    rows = cluster_rows(partition, CLUSTERS, MEMBERS, lambda name: name[:LETTERS])
    sizes = np.bincount(partition.labels, minlength=k)
    members = "members" if partition.in_blocks else "members, the surest first"
    parts = [_strip(sizes.tolist()), _table(rows, ("cluster", "nodes", members), coloured=True)]
    if k > CLUSTERS:
        parts.append(_paragraph(f"and {count(k - CLUSTERS, 'smaller cluster')}; to_frame() has them all."))
    parts.append(_paragraph(f"{quality} ({partition.off_diagonal_performance:.4f} without the diagonal)."))
    if partition.comparison:
        parts.append(_paragraph(f"{partition.comparison.capitalize()}."))
    known = {
        "label_certificate": ("The clusters: ", partition.label_certificate_at_hand),
        "certificate": ("The model behind them: ", partition.certificate if with_model else None),
        "rank_certificate": (f"Its {count(k, 'factor')}: ", partition.rank_certificate if with_factors else None),
    }
    proofs = [(about, proof) for about, proof in known.values() if proof is not None]
    parts += [_proof(proof, about) for about, proof in proofs]
    if partition.in_blocks:
        known = {"certificate": known["certificate"]}
        parts.append(_paragraph(IN_BLOCKS))
    if waiting := [f".{name}" for name, (_, proof) in known.items() if proof is None]:
        parts.append(_paragraph(f"Proved as soon as you look at it: {', '.join(waiting)}"))
    details = [part for about, proof in proofs for part in (_paragraph(about), _proof_facts(proof))]
    if details:
        parts.append(_details_element("Details of the proofs", *details))
    return _card("Partition of {} into {}".format(*partition._sizes()), *parts)


def cocluster_card(found: CoClusters, proof: Certificate | None) -> str:
    """Return the card of co-clusters: clusters of rows and columns with some of both, and the proof, if there is one."""
    sides = [(found.rows, found.row_labels), (found.columns, found.column_labels)]
    rows = [
        (str(number), *(_list_names(names, labels == number) for names, labels in sides)) for number in range(found.n_clusters)
    ]
    sizes = np.bincount(np.concatenate([found.row_labels, found.column_labels]), minlength=found.n_clusters)
    parts = [_strip(sizes.tolist()), _table(rows[:CLUSTERS], ("cluster", "rows", "columns"), coloured=True)]
    if len(rows) > CLUSTERS:
        parts.append(_paragraph(f"and {count(len(rows) - CLUSTERS, 'smaller cluster')}; communities() has them all."))
    waiting = _paragraph("Proved as soon as you look at it: .certificate")
    parts += [waiting] if proof is None else [_proof(proof), _proof_details(proof)]
    size = f"{count(len(found.rows), 'row')} and {count(len(found.columns), 'column')}"
    return _card(f"{count(found.n_clusters, 'cluster').capitalize()} of {size}", *parts)


def _list_names(names: Sequence[object], chosen: np.ndarray) -> str:
    """Return how many of the names are chosen, and the first of them, for a card of co-clusters."""
    places = np.flatnonzero(chosen)
    listed = ", ".join(str(names[place])[:LETTERS] for place in places[:MEMBERS])
    return f"{len(places):,}: {listed}{', …' if len(places) > MEMBERS else ''}" if len(places) else "none"


def _card(heading: str, *parts: str) -> str:
    """Return a notebook card as HTML: a heading, which is escaped, and parts, which are HTML."""
    frame = f"border:1px solid {LINE};border-radius:6px;padding:.6em .9em;margin:.3em 0;max-width:46em;overflow-x:auto"
    head = f'<div style="font-weight:600;margin-bottom:.3em">{_escape(heading)}</div>'
    return f'<div style="{frame}">{head}{"".join(parts)}</div>'


def _details_element(summary: str, *parts: str) -> str:
    """Return a folded part of a card, an HTML details element."""
    return (
        f'<details style="margin:.3em 0"><summary style="cursor:pointer">{_escape(summary)}</summary>{"".join(parts)}</details>'
    )


def _strip(sizes: Sequence[float]) -> str:
    """Return the strip of a card: pieces as long as the sizes, in the colours of clusters or components."""
    pieces = "".join(
        f'<div title="{number}" style="flex:{size:.6g} 0 0;min-width:1px;background:{palette.colour(number)}"></div>'
        for number, size in enumerate(sizes)
        if size > 0
    )
    return f'<div role="img" aria-label="Sizes" style="display:flex;gap:1px;height:10px;margin:.4em 0">{pieces}</div>'


def _escape(text: object) -> str:
    """Return a text that is safe inside a card's HTML; what no encoding can write is shown by its code."""
    return escape(str(text).encode("utf-8", "backslashreplace").decode("utf-8"))


def _paragraph(text: str) -> str:
    """Return a paragraph of a card."""
    return f'<div style="margin:.3em 0">{_escape(text)}</div>'


def _table(rows: Iterable[Sequence[object]], heading: Sequence[object] = (), coloured: bool = False) -> str:
    """Return a table of a card; the first column is a heading, if `coloured` with the strip's colours. Numbers are not broken."""
    cell = "text-align:left;vertical-align:top;padding:.15em 1em .15em 0;border:0;background:none"
    head = "".join(f'<th scope="col" style="{cell}">{_escape(text)}</th>' for text in heading)
    lines = [f"<tr>{head}</tr>"] if heading else []
    for number, (first, *others) in enumerate(rows):
        name = f'<th scope="row" style="{cell};font-weight:400">{_swatch(number) if coloured else ""}{_escape(first)}</th>'
        cells = "".join(f'<td style="{cell}{_breaks(str(text))}">{_escape(text)}</td>' for text in others)
        lines.append(f'<tr style="background:none">{name}{cells}</tr>')
    return f'<table style="border-collapse:collapse;margin:.3em 0;border:0;font-size:inherit">{"".join(lines)}</table>'


def _swatch(number: int) -> str:
    """Return a small square of a card in the colour of a cluster or component."""
    square = f"display:inline-block;width:.7em;height:.7em;margin-right:.4em;background:{palette.colour(number)}"
    return f'<span aria-hidden="true" style="{square}"></span>'


def _breaks(text: str) -> str:
    """Return the style by which a cell of a card may be broken into lines: a number nowhere, also not at its signs."""
    return ";white-space:nowrap" if len(text) <= NUMBER and "," not in text else ""


def _bar(value: float, bound: float, colour: str) -> str:
    """Return a card's bar as long as the smaller of value and bound, on a track as long as the larger."""
    lower, upper = min(value, bound), max(value, bound)
    covered = lower / upper if upper > 0 and math.isfinite(upper) else 1.0
    percent = 100.0 * min(max(covered, 0.0), 1.0)
    inner = f'<div style="width:{percent:.2f}%;height:100%;background:{colour};border-radius:3px"></div>'
    share = f"The {'value' if bound > value else 'bound'} is {percent:.2f}% of the {'bound' if bound > value else 'value'}."
    track = f"height:6px;background:{LINE};border-radius:3px;margin:.5em 0"
    return f'<div role="img" aria-label="{share}" style="{track}">{inner}</div>'
