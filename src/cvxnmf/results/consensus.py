"""Factors on which many starts agree."""

from __future__ import annotations

from dataclasses import dataclass

from cvxnmf.results.factorization import Factorization


@dataclass(frozen=True, eq=False)
class Consensus:
    """Factors from the components that many random starts have in common, and how far they agree.

    Attributes
    ----------
    result : Factorization
        Descended from the medians of the clusters of components.
    silhouette : float
        Mean silhouette of the clusters, cNMF's stability: 1 where all starts agree.
    tightness : tuple of float
        Mean cosine of the components of each cluster with one another.
    kept : float
        Share of the components that were dense enough to count.
    values : tuple of float
        The losses that the starts came to.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> rng = np.random.default_rng(0)
    >>> A = rng.gamma(0.3, size=(60, 3)) @ rng.gamma(0.3, size=(3, 30))
    >>> found = cvxnmf.consensus(A, 3, n_starts=5)
    >>> found.result.U.shape, len(found.values), found.silhouette > 0.9
    ((60, 3), 5, True)
    """

    result: Factorization
    silhouette: float
    tightness: tuple[float, ...]
    kept: float
    values: tuple[float, ...]

    def __repr__(self) -> str:
        from cvxnmf.display.formatting import count

        return (
            f"<Consensus: {count(self.result.n_components, 'component')} of {count(len(self.values), 'start')}, "
            f"silhouette {self.silhouette:.2f}, {self.kept:.0%} kept>"
        )
