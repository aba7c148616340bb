"""Results as cards for notebooks: plain HTML that takes the notebook's own colours, light or dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from cvxnmf.display.certificate_text import describe
from cvxnmf.display.formatting import RANK_HEADING, cluster_rows, count, rank_rows

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate
    from cvxnmf.results import CPFactor, Factorization, Partition, RankChoice, Solution, Top

#: A grey that shows on white and on black.
LINE = "rgba(128,128,128,.45)"
#: Colours of the bar, by the state of the proof.
BARS = {"tight": "#2a9d8f", "loose": "#e08a1e", "open": LINE}
#: Most clusters that a card lists, names of members of each, and letters of a name.
CLUSTERS, MEMBERS, LETTERS = 12, 6, 40


def certificate_card(certificate: Certificate) -> str:
    """Return what is proved: the sentence, how much of the value the bound covers, and the numbers."""
    text = describe(certificate)
    bar = _bar(certificate.value, certificate.bound, BARS[text.state])
    return _card(f"Certificate: {text.verdict}", _paragraph(text.claim), bar, _paragraph(text.basis), _table(text.facts))


def solution_card(solution: Solution, size: str) -> str:
    """Return a solved problem: its size, how the solve ended, and its certificate."""
    steps = f"{count(solution.n_iter, 'step')} in {solution.seconds:.2f} s"
    ending = _paragraph(f"{steps}. {solution.status.sentence}")
    return _card(f"Solution of {size}, rank {solution.rank}", ending, certificate_card(solution.certificate))


def cp_factor_card(factor: CPFactor) -> str:
    """Return the size of completely positive factors and their errors."""
    symmetric = factor.V is factor.U
    sides = f"{len(factor.U)} rows" if symmetric else f"{len(factor.U)} rows and {len(factor.V)} columns"
    errors = [
        ("largest relative error of an entry", f"{factor.max_relative_error:.1e}"),
        ("relative error in norm", f"{factor.frobenius_error:.1e}"),
    ]
    form = "UU'" if symmetric else "UV'"
    return _card(f"CPFactor: {sides}, {count(factor.U.shape[1], 'nonnegative factor')}, E ≈ {form}", _table(errors))


def factorization_card(result: Factorization) -> str:
    """Return the size of a factorisation, how it ended, and its certificate."""
    symmetric = result.V is result.U
    sides = f"{len(result.U)} nodes" if symmetric else f"{len(result.U)} rows and {len(result.V)} columns"
    heading = f"Factorization A ≈ {'UU' if symmetric else 'UV'}': {sides}, {count(result.n_components, 'component')}"
    top = top_table(result.top(MEMBERS)) if result.named else ""
    return _card(heading, _paragraph(result.message), top, certificate_card(result.certificate))


def rank_choice_card(choice: RankChoice) -> str:
    """Return the recommended number of components, why, and the table."""
    return _card(f"{choice.n_components} components", _paragraph(choice.reason), _table(rank_rows(choice), RANK_HEADING))


def top_card(top: Top) -> str:
    """Return the strongest rows and columns of every component."""
    return _card(f"The strongest of {count(len(top), 'component')}", top_table(top, len(top)))


def top_table(top: Top, most: int = CLUSTERS) -> str:
    """Return a table of the strongest rows and columns of the first components."""
    lines = [[text if at < 2 else _cut_names(text) for at, text in enumerate(line)] for line in top.lines()[:most]]
    rest = _paragraph(f"and {count(len(top) - most, 'weaker component')}; top() has them all.") if len(top) > most else ""
    return _table(lines, top.heading) + rest


def _cut_names(names: str) -> str:
    """Return names between commas, each of moderate length."""
    return ", ".join(name[:LETTERS] for name in names.split(", "))


def partition_card(partition: Partition, with_model: bool, with_factors: bool) -> str:
    """Return clusters with their surest members, measures, and certificates, those of model and factors if they are asked for."""
    k = partition.n_clusters
    quality = f"Modularity {partition.modularity:.4f}, performance {partition.performance:.4f}"
    rows = cluster_rows(partition, CLUSTERS, MEMBERS, lambda name: name[:LETTERS])
    parts = [
        _paragraph(f"{quality} ({partition.off_diagonal_performance:.4f} without the diagonal)."),
        _table(rows, ("cluster", "nodes", "members, the surest first")),
    ]
    if partition.comparison:
        parts.insert(1, _paragraph(f"{partition.comparison.capitalize()}."))
    if k > CLUSTERS:
        parts.append(_paragraph(f"and {count(k - CLUSTERS, 'smaller cluster')}; to_frame() has them all."))
    if with_model:
        parts += [_paragraph("The model behind the clusters:"), certificate_card(partition.certificate)]
    else:
        parts.append(_paragraph("The proof of the model behind the clusters is computed when certificate is asked for."))
    if with_factors:
        parts += [_paragraph(f"Its {count(k, 'factor')}:"), certificate_card(partition.rank_certificate)]
    else:
        parts.append(_paragraph("The proof of its factors is computed when rank_certificate is asked for."))
    if partition.label_certificate_at_hand is not None:
        parts += [_paragraph("Its labels:"), certificate_card(partition.label_certificate_at_hand)]
    return _card(f"Partition of {count(len(partition.nodes), 'node')} into {count(k, 'cluster')}", *parts)


def _card(heading: str, *parts: str) -> str:
    """Return a card: a heading, which is escaped, and parts, which are HTML."""
    frame = f"border:1px solid {LINE};border-radius:6px;padding:.6em .9em;margin:.3em 0;max-width:46em;overflow-x:auto"
    head = f'<div style="font-weight:600;margin-bottom:.3em">{_escape(heading)}</div>'
    return f'<div style="{frame}">{head}{"".join(parts)}</div>'


def _escape(text: object) -> str:
    """Return a text that is safe inside HTML; what no encoding can write is shown by its code."""
    return escape(str(text).encode("utf-8", "backslashreplace").decode("utf-8"))


def _paragraph(text: str) -> str:
    """Return a paragraph."""
    return f'<div style="margin:.3em 0">{_escape(text)}</div>'


def _table(rows: Iterable[Sequence[object]], heading: Sequence[object] = ()) -> str:
    """Return a table; its first column is a heading."""
    cell = "text-align:left;vertical-align:top;padding:.15em 1.2em .15em 0;border:0;background:none"
    head = "".join(f'<th scope="col" style="{cell}">{_escape(text)}</th>' for text in heading)
    lines = [f"<tr>{head}</tr>"] if heading else []
    for first, *others in rows:
        name = f'<th scope="row" style="{cell};font-weight:400">{_escape(first)}</th>'
        cells = "".join(f'<td style="{cell}">{_escape(text)}</td>' for text in others)
        lines.append(f'<tr style="background:none">{name}{cells}</tr>')
    return f'<table style="border-collapse:collapse;margin:.3em 0;border:0;font-size:inherit">{"".join(lines)}</table>'


def _bar(value: float, bound: float, colour: str) -> str:
    """Return a bar as long as the smaller of value and bound, on a track as long as the larger."""
    lower, upper = min(value, bound), max(value, bound)
    covered = lower / upper if upper > 0 and math.isfinite(upper) else 1.0
    percent = 100.0 * min(max(covered, 0.0), 1.0)
    inner = f'<div style="width:{percent:.2f}%;height:100%;background:{colour};border-radius:3px"></div>'
    share = f"The {'value' if bound > value else 'bound'} is {percent:.2f}% of the {'bound' if bound > value else 'value'}."
    track = f"height:6px;background:{LINE};border-radius:3px;margin:.5em 0"
    return f'<div role="img" aria-label="{share}" style="{track}">{inner}</div>'
