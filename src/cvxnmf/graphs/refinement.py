"""From an embedding of the nodes to clusters: seeds, mean field of the block model, local moves.

Of the clusters that several seeds lead to, those of the highest likelihood are kept. Where nothing stands above the noise,
mean field would make all memberships equal: then the seeds themselves compete too, and all clusters have one rate.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
import scipy.sparse as sp

from cvxnmf.graphs.block_model import Clusters, PlantedPartition, RateModel, Report, Stopping
from cvxnmf.graphs.local_moves import Labels, greedy_sweep, kernighan_lin_pass
from cvxnmf.graphs.seeds import canonical_order, quick_seed, seeds
from cvxnmf.linalg.arrays import FloatArray

#: Mean field ends when no membership changes; on a whole large graph, where some nodes between clusters take for ever and moves
#: of nodes follow anyway, when they change little in the mean.
SETTLED, SETTLED_IN_THE_MEAN = Stopping(50, 1e-4, 0.0), Stopping(40, 0.0, 1e-3)
#: Local moves must raise the log-likelihood by this much in all, or settled clusters are left as they are.
WORTHWHILE = 0.5
#: Likelihoods that differ by no more than this share are the same.
ALIKE = 1e-9
#: Passes of Kernighan and Lin, and moves in vain that end a pass.
PASSES, PATIENCE = 20, 100
#: Sweeps over the nodes of a large graph, and the share of nodes that move in the last one.
SWEEPS, QUIET = 10, 1e-5


class Refinement(Enum):
    """How much is done beyond nearest centres."""

    LIKELIHOOD = "mean field of the block model and local moves, from the best of several seeds"
    NONE = "the seed of the highest likelihood as it is"
    QUICK = "after an interrupt: one seed of a few iterations as it is"


def cluster_positions(
    A: sp.csr_array, W: FloatArray, k: int, dispersion: float, above_noise: int, refinement: Refinement
) -> Clusters:
    """Divide nodes by their positions W, of shape (n, r), into k clusters, by decreasing size, none of them empty.

    `dispersion` is the variance of an entry of A over its mean, `above_noise` the number of directions above the noise.
    """
    if k == 1:
        return Clusters(np.zeros(len(W), dtype=np.intp), np.ones((len(W), 1)))
    model = PlantedPartition(A, dispersion)
    order = canonical_order(A, model.degrees, W)
    model, W = model.in_order(order), W[order]
    first = [quick_seed(W, k)] if refinement is Refinement.QUICK else seeds(W, k)
    rates = RateModel.PER_CLUSTER if above_noise else RateModel.COMMON
    if refinement is Refinement.LIKELIHOOD:
        found = _refine_seeds(model, first, k, rates, compete=above_noise < k - 1)
    else:
        found = model.with_posterior(max(first, key=lambda z: model.log_likelihood(z, k, rates)), k, rates)
    return found.by_size().of_nodes(np.argsort(order, kind="stable"))


def refine_labels(A: sp.csr_array, dispersion: float, labels: Labels, k: int, report: Report) -> Clusters:
    """Improve the clusters of a large graph by mean field and sweeps of local moves, at a cost in proportion to its edges.

    A has no empty rows; of the k clusters those without a node get one.
    """
    model, rates = PlantedPartition(A, dispersion), RateModel.PER_CLUSTER
    found = model.label_all(model.mean_field(labels, k, SETTLED_IN_THE_MEAN, lambda share: report(0.8 * share)))
    if model.log_likelihood(labels, k, rates) > model.log_likelihood(found.labels, k, rates):
        found = model.with_posterior(labels, k, rates)  # where nothing stands out, memberships become equal
    better = found.labels
    for step in range(SWEEPS):
        if report(0.8 + 0.2 * step / SWEEPS):
            break
        better, moved = greedy_sweep(A, better, model.quality(model.inside(better, k), rates))
        if moved <= QUIET * len(labels):
            break
    if model.log_likelihood(better, k, rates) > model.log_likelihood(found.labels, k, rates):
        return model.with_posterior(better, k, rates)._replace(n_filled=found.n_filled)
    return found


def _refine_seeds(model: PlantedPartition, first: list[Labels], k: int, rates: RateModel, compete: bool) -> Clusters:
    """The clusters of the highest likelihood that the seeds lead to; the seeds themselves may compete."""
    candidates = [model.label_all(model.mean_field(labels, k, SETTLED)) for labels in first]
    if compete or any(candidate.n_filled for candidate in candidates):
        candidates = [Clusters(labels, np.eye(k)[labels]) for labels in first] + candidates
    likelihoods = [model.log_likelihood(candidate.labels, k, rates) for candidate in candidates]
    least = max(likelihoods) - ALIKE * max(1.0, abs(max(likelihoods)))
    likeliest = [candidate for candidate, x in zip(candidates, likelihoods, strict=True) if x >= least]
    best = min(likeliest, key=lambda candidate: candidate.n_filled)
    labels = _kernighan_lin(model, best.labels, k, rates)
    return best if labels is best.labels else model.with_posterior(labels, k, rates)._replace(n_filled=best.n_filled)


def _kernighan_lin(model: PlantedPartition, labels: Labels, k: int, rates: RateModel) -> Labels:
    """Labels after passes of Kernighan and Lin, each at the best rates of the last, as long as they are worth it."""
    worthwhile = WORTHWHILE if rates is RateModel.PER_CLUSTER else 1e-9
    for _ in range(PASSES):
        quality = model.quality(model.inside(labels, k), rates)
        better, gain = kernighan_lin_pass(model.A, labels, quality, min(len(labels), PATIENCE))
        if gain / (2.0 * model.dispersion) <= worthwhile:
            break
        labels = better
    return labels
