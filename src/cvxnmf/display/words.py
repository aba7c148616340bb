"""Numbers and certificates in plain words."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate

#: Shares below this are said to be less than it.
_LEAST_PERCENT = 1e-4
_LOSSES = {"mse": "squared error", "kl": "Kullback–Leibler divergence"}


def number(value: float, digits: int = 7) -> str:
    """Return a number with so many significant digits, thousands apart."""
    if not math.isfinite(value):
        return "not known" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e12:
        return _scientific(value, digits)
    written = f"{value:,.{digits}g}" if size < 10**digits else f"{value:,.0f}"
    return written.replace("-", "−")


def _scientific(value: float, digits: int) -> str:
    """Return a number as mantissa and power of ten."""
    mantissa, exponent = f"{value:.{max(digits - 1, 0)}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}·10{raised}".replace("-", "−")


def power(exponent: float) -> str:
    """Return a power of ten for an axis: 1, 0.1 and 0.01 in full."""
    return number(10.0**exponent) if -2 <= exponent <= 3 else _scientific(10.0**exponent, 1).removeprefix("1·")


def bound(value: float, digits: int = 7) -> str:
    """Return a lower bound, rounded down so that what is printed is proved too."""
    return number(_rounded(value, digits, ROUND_FLOOR), digits)


def _rounded(value: float, digits: int, direction: str) -> float:
    """Round to significant digits in one direction."""
    if not math.isfinite(value):
        return value
    return float(Context(prec=digits, rounding=direction).plus(Decimal(value)))


def percent(share: float) -> str:
    """Return a share that something is at most, rounded up to two digits."""
    if not math.isfinite(share):
        return "an unknown share"
    rounded = _rounded(100 * max(share, 0.0), 2, ROUND_CEILING)
    if rounded <= _LEAST_PERCENT:
        return "0.0001%"
    return f"{rounded:.10f}".rstrip("0").rstrip(".") + "%"


def count(amount: int, noun: str) -> str:
    """Return an amount with its noun, which takes an s."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def claim(certificate: Certificate, measure: str | None = None) -> str:
    """Return the sentence that says what a certificate proves.

    Parameters
    ----------
    certificate : Certificate
        Of either scope.
    measure : str or None
        What the value measures, in words; the statement's own loss when left out.
    """
    found = number(certificate.value)
    if not math.isfinite(certificate.value):
        return f"The value found is {found}, so nothing can be said about how good it is."
    if certificate.bound <= 0 and certificate.value > 0:
        why = certificate.explanation if certificate.kind == "zero" else "the bound that was reached is not above 0"
        return f"The one found has {found}. How much better another could be is not proved: {why}."
    return f"{_subject(certificate, measure)} {bound(certificate.bound)}; the one found has {found}, {_consequence(certificate)}."


def loss(certificate: Certificate) -> str:
    """Return what the value measures."""
    weighted = "weighted " if certificate.statement.get("scaling") else ""
    return weighted + _LOSSES.get(str(certificate.statement.get("loss")), "loss")


def _subject(certificate: Certificate, given: str | None) -> str:
    """Return who cannot beat the bound."""
    statement = certificate.statement
    if certificate.scope == "model":
        shared = f", with these {statement['groups']:,} groups of nodes," if statement.get("groups") else ""
        return f"No model of this kind{shared} can fit better than"
    measure = given or loss(certificate)
    columns = statement.get("n_components")
    width = f" with {count(int(columns), 'column')}" if columns else " of this rank"
    factors = "symmetric nonnegative factorisation UU′" if statement.get("symmetric") else "nonnegative factorisation"
    return f"No {factors} of A{width} has a {measure} below"


def _consequence(certificate: Certificate) -> str:
    """Return what is left to gain."""
    gap = certificate.relative_gap
    if certificate.gap <= 0:
        return "so nothing can be gained"
    if gap > 1:
        return "so the gap is all that is known"
    return f"so at most {percent(gap)} could be gained"


def rests(certificate: Certificate) -> str:
    """Return what the bound rests on and whether it is rigorous, in a sentence."""
    base = f"The bound rests on this: {certificate.explanation}."
    if certificate.rigorous:
        return f"{base} It holds including all rounding errors."
    return f"{base} It is not rigorous: rounding, or a value the iterations missed, could make it wrong."


def verdict(certificate: Certificate) -> tuple[str, str]:
    """Return a word for the state of the proof and two or three for what is proved."""
    gap = certificate.relative_gap
    if certificate.bound <= 0 < certificate.value or not math.isfinite(gap):
        return "open", "no bound known"
    prefix = "" if certificate.rigorous else "not rigorous: "
    state = "tight" if certificate.rigorous and gap <= 1e-3 else "loose"
    return state, f"{prefix}at most {percent(gap)} to gain"
