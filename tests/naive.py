"""One-line twins of fast code, written from the formulas of the paper and its corrections."""

import math

import numpy as np


def kl(a, x):
    return math.exp(x) - (a * x if a > 0 else 0.0) + (a * math.log(a) - a if a > 0 else 0.0)


def mse(a, x):
    if math.exp(x) >= a / 2:
        return (math.exp(x) - a) ** 2
    return a**2 / 4 - a**2 / 2 * (x - math.log(a / 2))


LOSS = {"kl": kl, "mse": mse, "mse-paper": mse}


def conjugate(name, a, w):
    """phi*(w), infinite outside its domain."""
    if name == "kl":
        z = a + w
        constant = a * math.log(a) - a if a > 0 else 0.0
        return math.inf if z < 0 else (z * math.log(z) - z if z > 0 else 0.0) - constant
    if w < -(a**2) / 2:
        return w * math.log(a / 2) - a**2 / 4 if name == "mse-paper" and a > 0 else math.inf
    u = (a + math.sqrt(a**2 + 2 * w)) / 2
    return (w * math.log(u) if w else 0.0) - (u - a) ** 2


def entries(n, diagonal):
    return [(i, j) for i in range(n) for j in range(n) if diagonal == "fit" or i != j]


def penalty_matrix(cone, s):
    if cone == "psd":
        return np.diag(s**2)
    P = np.eye(len(s)) - np.outer(s, s) / (s @ s)
    return np.diag(s) @ P @ np.diag(s)


def value(name, A, X, cone, s, trace, diagonal="fit"):
    loss = sum(LOSS[name](A[i, j], X[i, j]) for i, j in entries(len(A), diagonal))
    return loss + trace * np.sum(penalty_matrix(cone, s) * X)


def bound(name, A, Z, cone, s, trace, diagonal="fit"):
    """Dual value of the witness Z, after checking the dual cone by a plain eigendecomposition."""
    floor = A if name == "kl" else A * A / 2
    W = Z - floor
    if diagonal == "ignore":
        assert not np.diag(W).any()
    Y = W + trace * penalty_matrix(cone, s)
    scale = np.abs(Y).max()
    if cone == "conditional":
        np.testing.assert_allclose(Y.sum(axis=1), 0, atol=1e-12 * len(A) * scale)
    assert np.linalg.eigvalsh(Y)[0] >= -1e-12 * len(A) * scale
    return -sum(conjugate(name, A[i, j], W[i, j]) for i, j in entries(len(A), diagonal))


def project_psd(X):
    values, vectors = np.linalg.eigh(X)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def project_conditional(X, s, threshold=0.0):
    """Householder: take s to a coordinate axis and threshold the leading block."""
    n = len(s)
    u = s / np.linalg.norm(s)
    w = u + np.where(u[-1] >= 0, 1.0, -1.0) * np.eye(n)[-1]
    H = np.eye(n) - 2 * np.outer(w, w) / (w @ w)
    B = H @ (np.outer(s, s) * X) @ H
    values, vectors = np.linalg.eigh(B[:-1, :-1])
    B[:-1, :-1] = (vectors * np.maximum(values - threshold, 0)) @ vectors.T
    return (H @ B @ H) / np.outer(s, s)


def degree_metric(A):
    d = A.sum(axis=1)
    return np.array([math.sqrt((di + d.mean()) / math.sqrt(sum(d + d.mean()))) for di in d])


def naive_performance(A, labels):
    """1 - #{(i, j) : [A_ij != 0] != [same cluster]} / n^2, pair by pair."""
    n = len(A)
    return 1 - sum((A[i, j] != 0) != (labels[i] == labels[j]) for i in range(n) for j in range(n)) / n**2


def naive_modularity(A, labels):
    """sum_ij (A_ij - d_i d_j / 2m) [same cluster] / 2m, pair by pair."""
    n, d, total = len(A), A.sum(axis=1), A.sum()
    if total == 0:
        return 0.0
    return sum(A[i, j] - d[i] * d[j] / total for i in range(n) for j in range(n) if labels[i] == labels[j]) / total


def naive_score(A, labels, score):
    """The score of clusters: its formula, cluster by cluster."""
    degrees, value = A.sum(axis=1), 0.0
    for cluster in np.unique(labels):
        inside = labels == cluster
        E, D, n = A[np.ix_(inside, inside)].sum(), degrees[inside].sum(), int(inside.sum())
        value += score.reward * E - score.penalty * D**2 - score.charge + score.entropy * math.lgamma(n + 1)
        expected = score.across * D**2
        value += score.own / 2 * ((E * np.log(E / expected) if E > 0 else 0.0) - E + expected)
        e, N = E / 2, n * (n - 1) / 2
        if score.simple and e > 0 and N > 0:
            value += score.simple * (e + ((N - e) * np.log1p(-e / N) if e < N else 0.0))
    return value


def naive_rates(A, q, common):
    """Edges over expected edges, inside each cluster and across."""
    d, total = A.sum(axis=1), A.sum()
    inside, pairs = np.diag(q.T @ A @ q), (d @ q) ** 2
    across = (total - inside.sum()) / (total**2 - pairs.sum()) if q.shape[1] > 1 else 0.0
    within = np.full(len(inside), inside.sum() / pairs.sum()) if common else inside / pairs
    return within, across


def naive_block_likelihood(A, labels, k, common):
    """Poisson log-likelihood, half of all ordered pairs, of rates ``d_i d_j w``; terms without w left out."""
    d = A.sum(axis=1)
    within, across = naive_rates(A, np.eye(k)[labels], common)
    w = np.where(labels[:, None] == labels[None, :], within[labels][:, None], across)
    return 0.5 * sum(A[i, j] * math.log(w[i, j]) - d[i] * d[j] * w[i, j] for i in range(len(A)) for j in range(len(A)) if w[i, j])


def naive_posterior(A, q, dispersion, prior, common):
    d = A.sum(axis=1)
    within, across = naive_rates(A, q, common)
    within = np.maximum(within, 1.0001 * across)
    L = (A @ q * np.log(within / across) - np.outer(d, (within - across) * (d @ q))) / dispersion + prior
    p = np.exp(L - L.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


#: The losses of factors U and V by their names, entry by entry, where A > 0 or not.
FACTOR_LOSSES = {
    "mse": lambda a, e: (a - e) ** 2,
    "kl": lambda a, e: (a * math.log(a / e) if a > 0 else 0.0) - a + e,
    "itakura-saito": lambda a, e: a / e - math.log(a / e) - 1.0,
}


def factor_loss(name, A, E):
    """The loss over the entries that are not missing."""
    return math.fsum(FACTOR_LOSSES[name](a, e) for a, e in zip(A.flat, E.flat, strict=True) if not math.isnan(a))
