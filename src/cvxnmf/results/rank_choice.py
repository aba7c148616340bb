"""How many components: what was measured for each number, and which one is recommended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results.factorization import Factorization


class RankRow(NamedTuple):
    """A line of the table of ranks: what was measured with one number of components.

    Attributes
    ----------
    n_components : int
        The number.
    held_out : float
        Mean loss of a hidden entry, over all masks.
    spread : float
        Standard error of that mean between the masks, compared with the recommended number mask by mask.
    stability : float
        How alike components are that were found under different masks: mean cosine of the best matched pairs, at most 1.
    value, bound : float
        The loss on all data, and a proved lower bound on the loss of every nonnegative factorisation with as many components.
    """

    n_components: int
    held_out: float
    spread: float
    stability: float
    value: float
    bound: float


@dataclass(frozen=True, eq=False)
class RankChoice:
    """The recommended number of components, why, and what was measured for each number; prints as a table.

    Attributes
    ----------
    n_components : int
        The recommendation.
    reason : str
        Why, in a sentence.
    ranks : tuple of int
        The numbers that were tried.
    held_out : ndarray of shape (masks, ranks)
        Mean loss of a hidden entry.
    stability : ndarray of shape (ranks,)
        How alike the components found under different masks are.
    results : tuple of Factorization
        Factors of all data, one for each number; their certificates are proved when first looked at.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> rng = np.random.default_rng(0)
    >>> A = rng.poisson(20 * rng.gamma(0.5, size=(60, 3)) @ rng.gamma(0.5, size=(3, 40)))
    >>> choice = cvxnmf.choose_rank(A, range(2, 5), loss="kl")
    >>> choice.n_components, [row.n_components for row in choice.table], choice.result.U.shape
    (3, [2, 3, 4], (60, 3))
    >>> all(row.bound <= row.value for row in choice.table)
    True
    """

    n_components: int
    reason: str
    ranks: tuple[int, ...]
    held_out: FloatArray
    stability: FloatArray
    results: Sequence[Factorization]

    @property
    def place(self) -> int:
        """Where the recommended number of components stands among the ranks tried."""
        return self.ranks.index(self.n_components)

    @property
    def result(self) -> Factorization:
        """The factors with the recommended number of components."""
        return self.results[self.place]

    def with_result(self, result: Factorization) -> RankChoice:
        """The choice of rank with other factors of the recommended number, better ones or ones with a better bound."""
        found = list(self.results)
        found[self.place] = result
        return replace(self, results=tuple(found))

    @property
    def table(self) -> list[RankRow]:
        """The table of ranks, a line for each number of components; the first look proves the bounds."""
        excess = self.held_out - self.held_out[:, [self.place]]
        spread = excess.std(axis=0, ddof=1) / np.sqrt(len(excess))
        measured = zip(self.ranks, self.held_out.mean(axis=0), spread, self.stability, self.results, strict=True)
        return [
            RankRow(k, float(mean), float(error), float(alike), result.value, result.certificate.bound)
            for k, mean, error, alike, result in measured
        ]

    def __repr__(self) -> str:
        return f"<RankChoice: {self.n_components} of {len(self.ranks)} numbers from {self.ranks[0]} to {self.ranks[-1]}>"

    def __str__(self) -> str:
        from cvxnmf.display import formatting

        return formatting.rank_choice_text(self)

    def _repr_html_(self) -> str:
        from cvxnmf.display import cards

        return cards.rank_choice_card(self)

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame with a line for each number of components."""
        from cvxnmf.display import frames

        return frames.rank_frame(self)
