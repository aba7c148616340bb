"""A certificate in words: the one text that notebooks, pages and the command line show.

Most certificates are about something small that cannot be smaller: a loss and a lower bound. Those about labels are about
something large that cannot be larger, a quality and an upper bound; bounds are rounded to the safe side either way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cvxnmf.display.formatting import count, lower_bound, number, percent, upper_bound

if TYPE_CHECKING:
    from cvxnmf.certificates import Certificate

#: Relative gaps up to the first leave nothing worth gaining, up to the second the proof counts as tight.
NEGLIGIBLE, TIGHT = 1e-6, 1e-3
QUALITIES = {
    "modularity": "modularity",
    "cpm": "quality of the constant Potts model",
    "performance": "performance",
    "correlation": "sum of agreements",
}
LOSSES = {"mse": "squared error", "kl": "Kullback-Leibler divergence", "itakura-saito": "Itakura-Saito divergence"}


class Level(NamedTuple):
    """How far a certificate's bound can be relied on, in words: before a verdict, among the facts, and in a sentence."""

    prefix: str
    fact: str
    sentence: str


TRUST = {
    "proved": Level("", "yes", "It holds including all rounding errors."),
    "probable": Level(
        "almost surely ",
        "no, but true with probability 1 - 1e-12",
        "It is true with a probability of at least 1 - 1e-12 over the random start of the iterations, up to rounding.",
    ),
    "unproved": Level(
        "not rigorous: ", "no", "It is not rigorous: rounding, or a value the iterations missed, could make it wrong."
    ),
}


@dataclass(frozen=True)
class Description:
    """A certificate in words: state, verdict, claim, basis and facts."""

    state: str  # how strong the proof is: "tight", "loose", or "open" where nothing useful is proved
    verdict: str  # what is left to gain, in a few words
    claim: str  # what is proved, in a sentence
    basis: str  # what the bound rests on and whether it is rigorous, in sentences
    facts: tuple[tuple[str, str], ...]  # the numbers by their names

    @property
    def exact(self) -> bool:
        """Whether the certificate's fit is exact, so that nothing needs a proof."""
        return self.verdict == "exact"


def describe(certificate: Certificate) -> Description:
    """Return a certificate in words and numbers."""
    state, verdict = _verdict(certificate)
    facts = (
        ("value", number(certificate.value, 9)),
        ("proved bound", _safe_bound(certificate, 9)),
        ("gap", number(certificate.gap, 2)),
        ("relative gap", number(certificate.relative_gap, 3)),
        ("rigorous", TRUST[certificate.trust].fact),
    )
    return Description(state, verdict, _claim(certificate), _basis(certificate), facts)


def _safe_bound(certificate: Certificate, digits: int = 7) -> str:
    """Return the bound of a certificate as text, rounded so that the printed number is proved too."""
    if certificate.bound == certificate.value:  # printed alike
        return number(certificate.bound, digits)
    return (lower_bound if certificate.sense == "min" else upper_bound)(certificate.bound, digits)


def loss_name(certificate: Certificate) -> str:
    """Return the name of the loss that the value of a certificate measures."""
    name = str(certificate.statement.get("loss"))
    weighted = "weighted " if certificate.statement.get("scaling") or name.startswith("weighted ") else ""
    return weighted + LOSSES.get(name.removeprefix("weighted "), "loss")


def _is_exact(certificate: Certificate) -> bool:
    """Whether a certificate's factorisation has no error but for rounding, so that nothing needs a proof."""
    return certificate.scope == "rank-k" and not certificate.bound > 0 and certificate.relative_gap <= NEGLIGIBLE


def _verdict(certificate: Certificate) -> tuple[str, str]:
    """Return the state of a certificate's proof and a verdict of a few words."""
    gap = certificate.relative_gap
    if _is_exact(certificate):
        return "tight", "exact"
    if certificate.scope == "labels" and gap == 0:
        return "tight", "optimal"
    if certificate.bound <= 0 < certificate.value or not math.isfinite(gap):
        return "open", "no bound known"
    prefix = TRUST[certificate.trust].prefix
    state = "tight" if certificate.rigorous and gap <= TIGHT else "loose"
    return state, f"{prefix}at most {percent(gap)} to gain"


def _claim(certificate: Certificate) -> str:
    """Return the claim of a certificate in a sentence: what is proved."""
    found = number(certificate.value)
    if not math.isfinite(certificate.value):
        return f"The value found is {found}, so nothing can be said about how good it is."
    if certificate.scope == "labels":
        return _claim_about_labels(certificate)
    if _is_exact(certificate):
        return "The fit is exact but for rounding, so nothing can be gained."
    if certificate.bound <= 0 < certificate.value:
        why = certificate.explanation if certificate.kind == "zero" else "the bound that was reached is not above 0"
        return f"The one found has {found}. How much better another could be is not proved: {why}."
    bound = lower_bound(certificate.bound)
    return f"{_subject(certificate)} {bound}; the one found has {found}, {_consequence(certificate)}."


def _claim_about_labels(certificate: Certificate) -> str:
    """Return the claim of a certificate about clusters, whoever found them, in a sentence."""
    terms = certificate.statement
    most = f" into at most {count(int(terms['n_clusters']), 'cluster')}" if terms.get("n_clusters") else ""
    resolution = "" if terms["resolution"] == 1.0 else f" at resolution {terms['resolution']:g}"
    if certificate.gap == 0:
        bound, consequence = number(certificate.bound), ": it is optimal"
    else:
        bound, consequence = _safe_bound(certificate), f", {_consequence(certificate)}"
    limit = f"No partition of this graph{most} has a {QUALITIES[terms['objective']]}{resolution} above {bound}"
    return f"{limit}; this one has {number(certificate.value)}{consequence}."


def _subject(certificate: Certificate) -> str:
    """Return the beginning of a certificate's claim: which models or factorisations cannot beat the bound."""
    statement = certificate.statement
    if certificate.scope == "model":
        shared = f", with these {statement['groups']:,} groups of nodes," if statement.get("groups") else ""
        return f"No model of this kind{shared} can fit better than"
    columns = statement.get("n_components")
    width = f" with {count(int(columns), 'column')}" if columns else " of this rank"
    factors = "symmetric nonnegative factorisation UU'" if statement.get("symmetric") else "nonnegative factorisation"
    return f"No {factors} of A{width} has a {loss_name(certificate)} below"


def _consequence(certificate: Certificate) -> str:
    """Return the end of a certificate's claim: what is left to gain."""
    if certificate.gap <= 0:
        return "so nothing can be gained"
    if certificate.relative_gap > 1:
        return "so the gap is all that is known"
    return f"so at most {percent(certificate.relative_gap)} could be gained"


def _basis(certificate: Certificate) -> str:
    """Return what a certificate's bound rests on, what rounding could do to it, and what else belongs to the value."""
    sentences = [f"The bound rests on this: {certificate.explanation}.", TRUST[certificate.trust].sentence]
    if certificate.restored:
        sentences.append("The value is that of the point after projection on the cone.")
    if certificate.statement.get("scaling"):
        sentences.append("Squared errors of entries are divided by the degrees of both nodes.")
    return " ".join(sentences)
