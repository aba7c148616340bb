"""From an embedding of the nodes, or from labels, to clusters: seeds, mean field of the planted partition, local moves.

Of the clusters that several seeds lead to, those of the shortest description are kept. Where nothing stands above the noise, mean
field would make all memberships equal: then the seeds themselves compete too, and all clusters have one rate.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from cvxnmf.graphs.block_model import Clusters, PlantedPartition, RateModel, Report, Stopping
from cvxnmf.graphs.description_length import LEAST_GAIN, DescribedGraph
from cvxnmf.graphs.kernighan_lin import kernighan_lin_pass
from cvxnmf.graphs.moves import KEEP, Labels, move_nodes, visiting_order
from cvxnmf.graphs.score import Score
from cvxnmf.graphs.seeds import quick_seed, seeds
from cvxnmf.linalg.arrays import FloatArray

#: Mean field ends when no membership changes; on a whole large graph, where some nodes between clusters take for ever and moves
#: of nodes follow anyway, when they change little in the mean.
SETTLED, SETTLED_IN_THE_MEAN = Stopping(50, 1e-4, 0.0), Stopping(40, 0.0, 1e-3)
#: Local moves must shorten the description by this many nats in all, or settled clusters are left as they are.
WORTHWHILE = 0.5
#: Likelihoods that differ by no more than this share are the same.
ALIKE = 1e-9
#: Passes of Kernighan and Lin, and moves in vain that end a pass.
PASSES, PATIENCE = 20, 100
#: Rounds of moves on a large graph, each at new rates.
ROUNDS = 3


class Refinement(Enum):
    """Refinement of clusters: how much is done beyond nearest centres."""

    LIKELIHOOD = "mean field of the planted partition and local moves, from the best of several seeds"
    NONE = "the seed of the highest likelihood as it is"
    QUICK = "after an interrupt: one seed of a few iterations as it is"


def cluster_positions(graph: DescribedGraph, W: FloatArray, k: int, above_noise: int, refinement: Refinement) -> Clusters:
    """Divide nodes by their positions W, of shape (n, r), into k clusters, none of them empty.

    `above_noise` is the number of directions above the noise.
    """
    if k == 1:
        return Clusters(np.zeros(len(W), dtype=np.intp), np.ones((len(W), 1)))
    first = [quick_seed(W, k)] if refinement is Refinement.QUICK else seeds(W, k)
    rates = RateModel.PER_CLUSTER if above_noise else RateModel.COMMON
    if refinement is Refinement.LIKELIHOOD:
        return refine_seeds(graph, first, k, rates, compete=above_noise < k - 1)
    model = graph.model
    return model.with_posterior(max(first, key=lambda labels: model.log_likelihood(labels, k, rates)), k, rates)


def refine_seeds(graph: DescribedGraph, first: list[Labels], k: int, rates: RateModel, compete: bool) -> Clusters:
    """Refine seeds: the best clusters that they lead to by mean field; the seeds themselves may compete."""
    model = graph.model
    candidates = [model.label_all(model.mean_field(labels, k, SETTLED)) for labels in first]
    if compete or any(candidate.n_filled for candidate in candidates):
        candidates = [Clusters(labels, np.eye(k)[labels]) for labels in first] + candidates
    likelihoods = [model.log_likelihood(candidate.labels, k, rates) for candidate in candidates]
    least = max(likelihoods) - ALIKE * max(1.0, abs(max(likelihoods)))
    likeliest = [candidate for candidate, x in zip(candidates, likelihoods, strict=True) if x >= least]
    best = min(likeliest, key=lambda candidate: candidate.n_filled)
    labels = _kernighan_lin(graph, best.labels, k, rates)
    return best if labels is best.labels else model.with_posterior(labels, k, rates)._replace(n_filled=best.n_filled)


def refine_labels(graph: DescribedGraph, labels: Labels, k: int, report: Report) -> Clusters:
    """Refine the clusters of a large graph by mean field and moves of single nodes, at a cost in proportion to its edges.

    The graph has no empty rows; of the k clusters those without a node get one.
    """
    model, rates = graph.model, RateModel.PER_CLUSTER
    found = model.label_all(model.mean_field(labels, k, SETTLED_IN_THE_MEAN, lambda share: report(0.8 * share)))
    if model.log_likelihood(labels, k, rates) > model.log_likelihood(found.labels, k, rates):
        found = model.with_posterior(labels, k, rates)  # where nothing stands out, memberships become equal
    better = found.labels
    for step in range(ROUNDS):
        if report(0.8 + 0.2 * step / ROUNDS):
            break
        before, better = better, move_between(graph, better, k, rates)
        if np.array_equal(before, better):
            break
    if model.log_likelihood(better, k, rates) > model.log_likelihood(found.labels, k, rates):
        return model.with_posterior(better, k, rates)._replace(n_filled=found.n_filled)
    return found


def move_between(graph: DescribedGraph, labels: Labels, k: int, rates: RateModel) -> Labels:
    """Refine labels by moves of single nodes between k clusters, none of which is emptied."""
    score, level = likelihood_score(graph.model, labels, k, rates), graph.level
    start = np.array(labels, dtype=np.int32)
    moved = move_nodes(level, score, graph.logs, start, visiting_order(level, False), LEAST_GAIN, k, KEEP)
    return np.asarray(moved, dtype=np.int64)


def likelihood_score(model: PlantedPartition, labels: Labels, k: int, rates: RateModel) -> Score:
    """The log-likelihood as a score of clusters for refinement, at the best common rates of these labels."""
    inside = model.inside(labels, k)
    if rates is RateModel.COMMON:
        logs, excess = model.log_rates(inside, rates)
        return Score(0.5 * float(logs[0]) / model.dispersion, 0.5 * float(excess[0]) / model.dispersion)
    across = max(model.total - float(inside.edges.sum()), 1e-12 * model.total)
    across /= max(model.total**2 - float(inside.pairs.sum()), 1e-12 * model.total**2)
    return Score(0.0, 0.0, 1.0 / model.dispersion, across)


def _kernighan_lin(graph: DescribedGraph, labels: Labels, k: int, rates: RateModel) -> Labels:
    """Refine labels by passes of Kernighan and Lin, each at the best rates of the last, as long as they are worth it."""
    worthwhile = WORTHWHILE if rates is RateModel.PER_CLUSTER else 1e-9
    for _ in range(PASSES):
        score = likelihood_score(graph.model, labels, k, rates)
        start = np.ascontiguousarray(labels, dtype=np.int64)
        better, gain = kernighan_lin_pass(graph.level, score, graph.logs, start, k, min(len(labels), PATIENCE))
        if gain <= worthwhile:
            break
        labels = better
    return labels
