"""Numbers, shares, counts and clusters as text."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cvxnmf.results import Partition, RankChoice

#: What stands above the columns of a choice of rank.
RANK_HEADING = ("components", "held-out error", "spread", "stability", "loss", "proved bound")
#: Shares below so many percent are said to be that.
SMALLEST_PERCENT = 1e-4


def number(value: float, digits: int = 7) -> str:
    """Return a number formatted with so many significant digits and commas between thousands."""
    if not math.isfinite(value):
        return "not known" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e12:
        return _scientific(value, digits)
    written = f"{value:,.{digits}g}" if size < 10**digits else f"{value:,.0f}"
    return written.replace("-", "−")


def power_of_ten(exponent: int) -> str:
    """Return a power of ten for an axis: 0.01 to 1,000 in full, others as in 10⁻⁸."""
    return number(10.0**exponent) if -2 <= exponent <= 3 else _scientific(10.0**exponent, 1).removeprefix("1·")


def _scientific(value: float, digits: int) -> str:
    """Return a number as mantissa and power of ten, as in 2.5·10⁻⁹."""
    mantissa, exponent = f"{value:.{max(digits - 1, 0)}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}·10{raised}".replace("-", "−")


def lower_bound(value: float, digits: int = 7) -> str:
    """Return a lower bound as text, rounded down so that the printed number is proved too."""
    return number(_round_towards(value, digits, ROUND_FLOOR), digits)


def upper_bound(value: float, digits: int = 7) -> str:
    """Return an upper bound as text, rounded up so that the printed number is proved too."""
    return number(_round_towards(value, digits, ROUND_CEILING), digits)


def _round_towards(value: float, digits: int, direction: str) -> float:
    """Round a bound to significant digits in one direction, for its text."""
    if not math.isfinite(value):
        return value
    return float(Context(prec=digits, rounding=direction).plus(Decimal(value)))


def percent(share: float) -> str:
    """Return an upper limit of a share as text in percent, rounded up to two digits."""
    if not math.isfinite(share):
        return "an unknown share"
    rounded = max(_round_towards(100 * share, 2, ROUND_CEILING), SMALLEST_PERCENT)
    return f"{rounded:.10f}".rstrip("0").rstrip(".") + "%"


def count(amount: int, noun: str) -> str:
    """Return an amount as text with its noun, which takes an s: 1 node, 2 nodes."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def rank_rows(choice: RankChoice) -> list[tuple[str, ...]]:
    """Return the table of a choice of rank as rows of text, the recommended number marked."""
    return [
        (
            f"{row.n_components}{' *' if row.n_components == choice.n_components else ''}",
            number(row.held_out, 4),
            f"± {number(row.spread, 2)}",
            f"{row.stability:.2f}",
            number(row.value, 6),
            lower_bound(row.bound, 6),
        )
        for row in choice.table
    ]


def rank_choice_text(choice: RankChoice) -> str:
    """Return a choice of rank as lines: the reason, and a table."""
    lines = [RANK_HEADING, *rank_rows(choice)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(RANK_HEADING))]
    table = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return "\n".join([f"{count(choice.n_components, 'component')}. {choice.reason}", "", *table])


def cluster_rows(partition: Partition, clusters: int, members: int, show: Callable[[str], str]) -> list[tuple[str, str, str]]:
    """Return number, size and surest members of the first clusters as text; `show` makes names fit to be shown."""
    rows = []
    for cluster in range(min(partition.n_clusters, clusters)):
        nodes = partition.order[partition.labels[partition.order] == cluster]
        names = ", ".join(show(str(partition.nodes[node])) for node in nodes[:members])
        rows.append((str(cluster), f"{len(nodes):,}", names + (", …" if len(nodes) > members else "")))
    return rows
