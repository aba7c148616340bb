"""Ours and the peers: each takes data and returns an answer, X, factors or labels, and nothing about its quality."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

import cvxnmf

Factors = tuple[np.ndarray, np.ndarray]
#: Packages, beyond our own dependencies, that a peer needs.
NEEDS = {
    "cvxpy + SCS": ("cvxpy", "scs"),
    "cvxpy + Clarabel": ("cvxpy", "clarabel"),
    "leidenalg": ("igraph", "leidenalg"),
    "igraph": ("igraph",),
    "infomap": ("infomap",),
}


def why_missing(peer: str) -> str | None:
    """Why a peer cannot take part, in a few words; None if it can."""
    for package in NEEDS.get(peer, ()):
        try:
            import_module(package)
        except ImportError:
            return f"{package} is not installed"
    return None


def present(works: dict[str, Callable[[], Any]]) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """The pieces of work that can be done here, and why the others cannot."""
    reasons = {name: why_missing(name) for name in works}
    return (
        {name: work for name, work in works.items() if reasons[name] is None},
        {name: reason for name, reason in reasons.items() if reason is not None},
    )


# Convex problems ---------------------------------------------------------------------------------------------------------------


def ours(problem: cvxnmf.Problem, tol: float) -> cvxnmf.Solution:
    """Solve with the default method."""
    return cvxnmf.solve(problem, tol=tol)


def cvxpy_psd(A: np.ndarray, solver: str, **options: float) -> np.ndarray:
    """KL on the PSD cone, modelled in cvxpy; building and compiling the model is part of the work."""
    import cvxpy as cp

    n = len(A)
    X = cp.Variable((n, n), PSD=True)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(X)) - cp.sum(cp.multiply(A, X))))
    problem.solve(solver=solver, **options)
    return X.value


# Partitions: labels ------------------------------------------------------------------------------------------------------------


def our_labels(A: Any, k: int | None, tol: float = 1e-4) -> np.ndarray:
    """Partition with its defaults."""
    return cvxnmf.partition(A, k, tol=tol).labels


def spectral_labels(A: Any, k: int) -> np.ndarray:
    """scikit-learn's SpectralClustering with its defaults and a fixed seed."""
    from sklearn.cluster import SpectralClustering

    graph = sp.csr_matrix(A)
    graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about graphs in several pieces
        return SpectralClustering(k, affinity="precomputed", random_state=0).fit_predict(graph)


def _igraph(A: Any) -> Any:
    import igraph

    upper = sp.coo_array(sp.triu(A))
    return igraph.Graph(n=A.shape[0], edges=np.column_stack(upper.coords).tolist())


def igraph_labels(A: Any) -> np.ndarray:
    """Leiden as igraph has it, on the modularity until nothing changes, with a fixed seed."""
    import random

    import igraph

    igraph.set_random_number_generator(random.Random(0))
    return np.array(_igraph(A).community_leiden("modularity", n_iterations=-1).membership)


def infomap_labels(A: Any) -> np.ndarray:
    """Infomap in two levels, the best of five trials."""
    from infomap import Infomap

    upper, walk = sp.coo_array(sp.triu(A)), Infomap("--two-level --silent --seed 1 --num-trials 5")
    for node in range(A.shape[0]):
        walk.add_node(node)
    for i, j in np.column_stack(upper.coords).tolist():
        walk.add_link(i, j)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions have another way to ask, older ones only this
        walk.run()
        modules = walk.get_modules()
    return np.array([modules[node] for node in range(A.shape[0])])


def leiden_labels(A: Any) -> np.ndarray:
    """Leiden on the modularity, its defaults and a fixed seed; it chooses the number of clusters."""
    import leidenalg

    return np.array(leidenalg.find_partition(_igraph(A), leidenalg.ModularityVertexPartition, seed=0).membership)


# Rank-k: factors ---------------------------------------------------------------------------------------------------------------

BETA = {"mse": "frobenius", "kl": "kullback-leibler"}


def sklearn_nmf(A: Any, start: Factors, loss: str, solver: str, max_iter: int = 200, tol: float = 1e-4) -> Factors:
    """scikit-learn's NMF from a given start."""
    from sklearn.decomposition import NMF

    model = NMF(start[0].shape[1], init="custom", solver=solver, beta_loss=BETA[loss], tol=tol, max_iter=max_iter)
    return _fitted(model, A, start)


def sklearn_minibatch(A: Any, start: Factors, loss: str) -> Factors:
    """scikit-learn's MiniBatchNMF from a given start, other settings its own."""
    from sklearn.decomposition import MiniBatchNMF

    return _fitted(MiniBatchNMF(start[0].shape[1], init="custom", beta_loss=BETA[loss], random_state=0), A, start)


def _fitted(model: Any, A: Any, start: Factors) -> Factors:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that few iterations are few
        U = model.fit_transform(A, W=start[0].copy(), H=np.array(start[1].T, order="C"))
    return U, np.ascontiguousarray(model.components_.T)


def sklearn_random(A: Any, k: int, runs: int, **options: Any) -> list[Factors]:
    """scikit-learn's NMF from several random starts."""
    from sklearn.decomposition import NMF

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [NMF(k, init="random", random_state=seed, **options) for seed in range(runs)]
        return [(model.fit_transform(A), np.ascontiguousarray(model.components_.T)) for model in models]


def common_start(A: Any, k: int, loss: str, solver: str) -> Factors:
    """scikit-learn's own start, after one iteration of the solver that is raced against: another's zeros would lock it."""
    from sklearn.decomposition import NMF

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NMF(k, init="nndsvda", solver=solver, beta_loss=BETA[loss], max_iter=1, tol=0, random_state=0)
        return model.fit_transform(A), np.ascontiguousarray(model.components_.T)


def our_descent(A: Any, start: Factors, loss: str, target: float | None = None) -> cvxnmf.Factorization:
    """Our classical method from a given start: with its defaults, or until it says that it has reached a target."""
    k = start[0].shape[1]
    if target is None:
        return cvxnmf.classical_nmf(A, k, loss=loss, init=start)
    reached = lambda line: line.value <= target  # noqa: E731
    return cvxnmf.classical_nmf(A, k, loss=loss, init=start, max_iter=2000, tol=0.0, callback=reached)
