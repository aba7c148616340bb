"""Consensus over random starts, as single cells are factored (Kotliar et al. 2019, cNMF).

Components of many descents are put together, those that few others resemble are left out, the rest are clustered, and the medians
of the clusters are the start of a last descent. How tight the clusters are tells how far the answer depends on the start.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf import chunked, validation
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf import initialise
from cvxnmf.nmf.descent import Stopping, descend
from cvxnmf.nmf.encoding import encode
from cvxnmf.nmf.factorize import factorize
from cvxnmf.nmf.loss_names import find_loss
from cvxnmf.nmf.methods import require_method
from cvxnmf.nmf.open import open_data
from cvxnmf.nmf.rank_choice import data_digest
from cvxnmf.nmf.row_names import separate_names
from cvxnmf.results import Consensus
from cvxnmf.typing import ClientLike, MatrixLike, MemoryLimit, Names

#: Share of the starts that are the neighbours of a component, as in cNMF.
NEIGHBOURS = 0.3
#: When the descent of a start ends.
START = Stopping(200, 1e-4)


def consensus(
    A: MatrixLike,
    n_components: int,
    loss: str | float = "mse",
    *,
    n_starts: int = 20,
    density: float = 0.5,
    memory_limit: MemoryLimit = None,
    client: ClientLike | None = None,
    row_names: Names = None,
    column_names: Names = None,
) -> Consensus:
    """Factor ``A ≈ UV'`` from many random starts, and report how far they agree, as cNMF does.

    Parameters
    ----------
    A : array-like, scipy.sparse matrix, data frame, AnnData or dask array of shape (m, n)
        Nonnegative; NaN stands for missing entries, of which data in row chunks have none.
    n_components : int
        Number of components.
    loss : {"mse", "kl", "itakura-saito"} or float
        As in :func:`factorize`; "kl" suits counts.
    n_starts : int
        Descents from random starts, at least 2; the seed follows from the data, in row chunks from their shape, so that the same
        data give the same answer.
    density : float
        Components whose mean distance to their nearest neighbours is above are left out; of components of unit norm
        distances are at most the square root of 2.
    memory_limit, client
        Work on data in row chunks, from files or on a Dask cluster, as dask arrays always are; see :func:`classical_nmf`.
    row_names, column_names : sequence, optional
        Names, see :func:`factorize`.

    Returns
    -------
    Consensus
        Factors from the medians of the clusters, with silhouette and spread of the clusters.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> rng = np.random.default_rng(0)
    >>> A = rng.poisson(20 * rng.gamma(0.3, size=(60, 3)) @ rng.gamma(0.3, size=(3, 40)))
    >>> found = cvxnmf.consensus(A, 3, loss="kl", n_starts=5)
    >>> found.result.n_components, bool(found.silhouette > 0.9)
    (3, True)
    """
    known, n_starts = find_loss(loss), validation.integer("n_starts", n_starts, minimum=2)
    density = validation.number("density", density, minimum=0.0, strict=True)
    named = separate_names(A, row_names, column_names)
    place = memory_limit, client
    require_method("hals", known, False, None, not chunked.needs_chunks(named.A, *place))
    with open_data(named.A, n_components, known, place=place, keep_single=False) as (raw, data):
        k = validation.components(n_components, data.shape)
        rng = np.random.default_rng(data_digest(raw) if data.in_memory else data.shape)
        with single_thread(), np.errstate(all="ignore"):
            runs = [
                descend(data, initialise.random(data.matrix, k, rng), "hals", known.name, stopping=START) for _ in range(n_starts)
            ]
        spectra = np.concatenate([_unit_rows(run.V.T) for run in runs])
        kept = local_distances(spectra, max(1, int(NEIGHBOURS * n_starts))) <= density
        if np.count_nonzero(kept) < k:
            dense = f"{np.count_nonzero(kept)} components of {len(kept)}"
            validation.refuse(f"Only {dense} are dense at density={density:g}; raise it.")
        medians, labels, silhouette = cluster_medians(spectra[kept], k)
        U = encode(raw, medians, known.name)
        start = np.maximum(U, 1e-9 * U.max()), np.maximum(medians.T, 1e-9 * medians.max())
        result = factorize(raw, k, loss, False, start, row_names=named.rows, column_names=named.columns)
    return Consensus(
        result, silhouette, tightness(spectra[kept], labels, k), float(kept.mean()), tuple(run.value for run in runs)
    )


def _unit_rows(X: FloatArray) -> FloatArray:
    """Components of the random starts as rows of norm 1."""
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(np.float64).tiny), dtype=np.float64)


def local_distances(X: FloatArray, neighbours: int) -> FloatArray:
    """Mean distance of each component of the starts to so many nearest other ones."""
    distances = np.sqrt(np.maximum(2.0 - 2.0 * X @ X.T, 0.0))
    np.fill_diagonal(distances, np.inf)
    return np.asarray(np.sort(distances, axis=1)[:, : min(neighbours, len(X) - 1)].mean(axis=1))


def cluster_medians(X: FloatArray, k: int) -> tuple[FloatArray, Any, float]:
    """Medians of k clusters of the components of all starts, their labels, and the mean silhouette; by k-means, seeded."""
    from sklearn.cluster import KMeans  # type: ignore[import-untyped]
    from sklearn.metrics import silhouette_score  # type: ignore[import-untyped]

    labels = KMeans(k, n_init=10, random_state=1).fit(X).labels_ if k > 1 else np.zeros(len(X), dtype=np.intp)
    if len(np.unique(labels)) < k:
        validation.refuse(f"The starts agree on {len(np.unique(labels))} different components; ask for no more than that.")
    medians = _unit_rows(np.array([np.median(X[labels == cluster], axis=0) for cluster in range(k)]))
    several = 1 < len(np.unique(labels)) < len(X)
    return medians, labels, float(silhouette_score(X, labels)) if several else 1.0


def tightness(X: FloatArray, labels: Any, k: int) -> tuple[float, ...]:
    """Mean cosine of the components of each consensus cluster with one another."""
    sums = [_unit_rows(X[labels == cluster]).sum(axis=0) for cluster in range(k)]
    sizes = np.bincount(labels, minlength=k)
    return tuple(float((s @ s - n) / (n * (n - 1))) if n > 1 else 1.0 for s, n in zip(sums, sizes, strict=True))
