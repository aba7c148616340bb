"""Tiny problems of every form, with their certificates."""

import warnings

import numpy as np
import scipy.sparse as sp

import cvxnmf
from cvxnmf.certificates import Certificate, LabelStatement, RankStatement, WeightedRankStatement, weights_digest
from cvxnmf.convex.coarsening import coarsen
from cvxnmf.convex.noise import degree_metric
from cvxnmf.graphs.label_bounds.verify import LabelBounds
from cvxnmf.nmf.bounds import Limits, rank_certificate
from cvxnmf.nmf.divergence_bounds import ky_fan_point, subspace_point, where_filled
from cvxnmf.nmf.sparse_divergence_bounds import sparse_ky_fan_point


def random_table(rng, symmetric):
    """A small nonnegative matrix: dense, with zeros, of low rank, of whole numbers, or of very different sizes."""
    m = int(rng.integers(2, 6))
    n = m if symmetric else int(rng.integers(2, 6))
    kind = rng.integers(5)
    if kind == 0:
        A = rng.random((m, n))
    elif kind == 1:
        A = rng.random((m, n)) * (rng.random((m, n)) < 0.6)
    elif kind == 2:
        A = rng.random((m, 2)) @ rng.random((2, n))
    elif kind == 3:
        A = rng.integers(0, 4, (m, n)).astype(float)
    else:
        A = 10.0 ** rng.uniform(-6, 6, (m, n))
    A = A + A.T if symmetric else A
    if not A.any():
        A[0, -1] = A[-1, 0] = 1.0
    if symmetric and m > 2 and rng.random() < 0.15:
        A[0] = A[:, 0] = 0.0  # a node without data
        A[1, 2] = A[2, 1] = 1.0
    return A * 10.0 ** rng.integers(-3, 4) if rng.random() < 0.3 else A


def random_certificate(rng):
    """Data, and a certificate about them of any form; None where the problem has no solution."""
    make = MAKERS[rng.integers(len(MAKERS))]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", UserWarning)  # an answer that falls short is as good a case
        try:
            return make(rng)
        except ValueError:  # data that a problem refuses, such as zero rows
            return None


def _solved(problem, A):
    return A, cvxnmf.solve(problem, tol=1e-6, max_iter=60).certificate


def random_problem(rng):
    """A tiny convex problem, and its data."""
    return (_symmetric_problem, _nonsymmetric_problem, _sparse_problem)[rng.integers(3)](rng)


def _symmetric(rng):
    return _solved(*_symmetric_problem(rng))


def _nonsymmetric(rng):
    return _solved(*_nonsymmetric_problem(rng))


def _sparse(rng):
    return _solved(*_sparse_problem(rng))


def _symmetric_problem(rng):
    A, loss = random_table(rng, True), str(rng.choice(["kl", "mse", "mse-paper"]))
    cone, metric = str(rng.choice(["psd", "conditional"])), str(rng.choice(["degree", "uniform"]))
    diagonal, trace = str(rng.choice(["fit", "ignore"], p=[0.7, 0.3])), float(rng.choice([0.0, 0.1, 1.0]))
    return cvxnmf.symmetric(A, loss=loss, cone=cone, metric=metric, diagonal=diagonal, trace=trace), A


def _nonsymmetric_problem(rng):
    A, loss = random_table(rng, False), str(rng.choice(["kl", "mse"]))
    trace, penalty = float(rng.choice([0.05, 0.5, 2.0])), "paper" if loss == "kl" and rng.random() < 0.3 else "nuclear"
    effects = penalty == "nuclear" and bool(rng.random() < 0.6)
    return cvxnmf.nonsymmetric(A, loss=loss, trace=trace, effects=effects, penalty=penalty), A


def _sparse_problem(rng):
    A = random_table(rng, True)
    return cvxnmf.sparse(A, l1=float(rng.choice([0.0, 0.2])), trace=float(rng.choice([0.0, 0.3]))), A


def _rank(rng):
    symmetric = bool(rng.random() < 0.4)
    A = random_table(rng, symmetric)
    k, loss = int(rng.integers(1, 4)), str(rng.choice(["mse", "kl"], p=[0.6, 0.4]))
    if rng.random() < 0.2 and not symmetric:
        A[tuple(rng.integers(0, side) for side in A.shape)] = np.nan
    U, V = rng.random((A.shape[0], k)), rng.random((A.shape[1], k))
    given = sp.csr_array(A) if rng.random() < 0.3 and not np.isnan(A).any() else A
    return A, cvxnmf.verify(given, U, None if symmetric else V, loss=loss, effort=int(rng.integers(0, 20)))


def _scaled(rng):
    A, k = random_table(rng, True), int(rng.integers(1, 4))
    return A, rank_certificate(sp.csr_array(A), k, 1e6, "mse", symmetric=True, effort=int(rng.integers(0, 20)), scaling="degree")


def _grouped(rng):
    A = random_table(rng, True)
    A = A[A.any(axis=1)][:, A.any(axis=1)]
    count = int(rng.integers(1, len(A) + 1))
    groups = rng.permutation(np.append(np.arange(count), rng.integers(0, count, len(A) - count)))
    coarse = coarsen(sp.csr_array(A), degree_metric(A.sum(axis=1)), groups)
    return A, coarse.solve(float(rng.choice([0.1, 1.0])), tol=1e-6, max_iter=60).certificate


def _random_graph(rng):
    n = int(rng.integers(4, 9))
    upper = np.triu(rng.random((n, n)) < rng.uniform(0.2, 0.6), int(rng.random() < 0.8))
    upper[0, 1] = True
    return (upper + np.triu(upper, 1).T) * 1.0


def _labels(rng):
    objective = str(rng.choice(["modularity", "cpm", "performance", "correlation"]))
    A = random_table(rng, True) if rng.random() < 0.5 else _random_graph(rng)
    if objective == "correlation":
        signs = np.triu(rng.choice([-1, 1], A.shape))
        A = A * (signs + np.triu(signs, 1).T)
    resolution = float(rng.choice([1.0, 0.5, 0.1, 1.7])) if objective in ("modularity", "cpm") else 1.0
    k = int(rng.integers(1, len(A) + 1)) if rng.random() < 0.4 else None
    labels = rng.integers(0, k or 3, len(A))
    bounds = LabelBounds(sp.csr_array(A), labels, LabelStatement(objective, resolution, k), 0.003, None)
    getattr(bounds, str(rng.choice(["by_cuts", "by_semidefinite", "by_routing", "by_currents"])))()
    return A, bounds.found


def _iterated(rng):
    symmetric, k = bool(rng.random() < 0.5), int(rng.integers(1, 4))
    A = sp.csr_array(random_table(rng, symmetric))
    return A, rank_certificate(A, k, 1e30, "mse", symmetric=symmetric, limits=Limits(dense_side=1, unasked_size=0))


def _proved(A, statement, kind, witness):
    return A, Certificate.of_proof(1e30, kind, statement.prove(A, kind, witness), statement, witness)


def _divergence(rng):
    symmetric, k, steps = bool(rng.random() < 0.4), int(rng.integers(1, 4)), int(rng.integers(1, 12))
    A, kind = random_table(rng, symmetric), str(rng.choice(["ky-fan", "sparse", "subspace", "pinsker"]))
    statement = RankStatement("kl", k, symmetric)
    if kind == "ky-fan":
        return _proved(A, statement, kind, {"y": where_filled(A, lambda part: ky_fan_point(part, k, symmetric, steps))})
    if kind == "sparse":
        data = sp.csr_array(A)
        return _proved(data, statement, "ky-fan", {"y": sparse_ky_fan_point(data, k, steps)})
    turned = bool(rng.random() < 0.5)
    side = A.T if turned else A
    if kind == "subspace":
        witness = {"Y": (1 - 1e-12) * where_filled(side, lambda part: subspace_point(part, k, steps))}
    else:
        witness = {"N": 0.1 * rng.random(side.shape) * (rng.random(side.shape) < 0.3)} if rng.random() < 0.5 else {}
    return _proved(A, statement, kind, witness | ({"transposed": np.ones(1)} if turned else {}))


def _rectangles(rng):
    """Rectangles with weights of rows and columns that are observed together; they fill entries once, or up to their weights."""
    A, k, loss = random_table(rng, False), int(rng.integers(1, 3)), str(rng.choice(["mse", "kl"]))
    A[rng.random(A.shape) < 0.15] = np.nan
    weighted = bool(rng.random() < 0.5)
    W = rng.random(A.shape if rng.random() < 0.5 else (len(A), 1)) + 1e-3 if weighted else np.ones((1, 1))
    turned = bool(rng.random() < 0.5)
    side, limits = (A.T, W.T) if turned else (A, W)
    sets = (rng.random((int(rng.integers(1, 4)), side.shape[1])) < 0.7) * (rng.random(side.shape[1]) if weighted else 1.0)
    sets[:, 0] = 1.0
    observed = np.array([~np.isnan(side[:, columns > 0]).any(axis=1) for columns in sets]).T
    weights = observed * rng.random(observed.shape)
    weights *= (1 - 1e-13) / max(float((weights @ sets / limits).max()), 1e-9)
    witness = {"sets": sets, "weights": weights} | ({"transposed": np.ones(1)} if turned else {})
    witness |= _rectangle_points(rng, np.nan_to_num(side), sets, k, loss)
    if not weighted:
        return _proved(A, RankStatement(loss, k, False), "rectangles", witness)
    statement = WeightedRankStatement(f"weighted {loss}", k, False, weights_digest(W))
    return _proved(A, statement, "rectangles", witness | {"W": W})


def _rectangle_points(rng, A, sets, k, loss):
    """Dual points of the rectangles side by side, of a kind or of none."""
    name = str(rng.choice(["", "N"] if loss == "mse" else ["", "y", "y", "Y"]))
    points = {
        "": lambda part: part,
        "N": lambda part: 0.1 * rng.random(part.shape) * (rng.random(part.shape) < 0.3),
        "y": lambda part: ky_fan_point(part, k, False, 8),
        "Y": lambda part: (1 - 1e-12) * subspace_point(part, k, 4),
    }[name]
    return {name: np.concatenate([points(A[:, columns > 0] + 1e-9) for columns in sets], axis=1)} if name else {}


MAKERS = [
    *(_symmetric, _symmetric, _nonsymmetric, _sparse, _rank, _rank, _scaled, _iterated, _grouped, _labels, _labels),
    *(_divergence, _divergence, _rectangles),
]


def reseal(certificate, **changes):
    """The certificate with other contents and the digest of these."""
    names = ("value", "bound", "scope", "kind", "rigorous", "restored", "scale", "statement", "witness", "probable")
    facts = {name: getattr(certificate, name) for name in names} | changes
    return Certificate(**facts)
