"""
Choosing the number of clusters
===============================

``partition`` counts the directions in which a graph differs from noise, and adds one. This
plants 2 to 8 groups into graphs of 200 nodes and looks whether they are counted right.
"""

import numpy as np

import cvxnmf

rng = np.random.default_rng(0)


def planted(n, k, mean_degree=18.0, across=0.25):
    """Draw a graph of k equal groups, with a share of the edges across them."""
    groups = np.arange(n) % k
    same = groups[:, None] == groups[None, :]
    p = (
        mean_degree
        / n
        * np.where(same, k * (1 - across), across * k / (k - 1) if k > 1 else 0.0)
    )
    edges = np.triu(rng.random((n, n)) < p, 1)
    return (edges | edges.T).astype(float)


for k in range(2, 9):
    print(
        f"{k} groups planted, {cvxnmf.partition(planted(200, k)).n_clusters} clusters found"
    )

# %%
# Without any groups, nothing stands out, and one cluster is the honest answer.

noise = planted(200, 1, across=0.0)
print(f"no groups planted, {cvxnmf.partition(noise).n_clusters} cluster found")

# %%
# The picture shows why: of a graph with 6 groups, five eigenvalues of the modularity matrix
# lie above what noise can reach.

found = cvxnmf.partition(planted(200, 6))
cvxnmf.plots.spectrum(found).savefig("spectrum.png")

# %%
# If you know better, say so: ``cvxnmf.partition(graph, n_clusters=5)``. The proof of the
# factors tells how well five of them can do at best, and so do those of six and seven. A
# cluster that brings little, whatever one does, is one too many.

for k in (5, 6, 7):
    proof = cvxnmf.partition(found.A, k).rank_certificate
    print(f"{k} factors: weighted error {proof.value:.3f}, not below {proof.bound:.3f}")
