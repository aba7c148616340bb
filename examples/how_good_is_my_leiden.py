"""
How good is my Leiden partition?
================================

Leiden finds partitions of high modularity, another one with every seed, and cannot say how
far they are from the best. ``verify_labels`` proves a number that no partition exceeds.
"""

import igraph
import leidenalg
import matplotlib.pyplot as plt
import networkx as nx

import cvxnmf

graphs = {
    "karate club": nx.karate_club_graph(),
    "Les Misérables": nx.les_miserables_graph(),
    "random hubs": nx.barabasi_albert_graph(50, 2, seed=0),
}
runs, proofs = {}, {}
for name, graph in graphs.items():
    numbers = nx.convert_node_labels_to_integers(graph)
    other = igraph.Graph(numbers.number_of_nodes(), list(numbers.edges))
    find, kind = leidenalg.find_partition, leidenalg.ModularityVertexPartition
    found = [find(other, kind, seed=seed) for seed in range(10)]
    runs[name] = [one.modularity for one in found]
    best = max(found, key=lambda one: one.modularity)
    proofs[name] = cvxnmf.verify_labels(numbers, best.membership, weight=None)
    proof = proofs[name]
    print(f"{name}: Leiden {min(runs[name]):.4f} to {max(runs[name]):.4f}")
    print(f"   no partition is above {proof.bound:.4f}: {proof.relative_gap:.2%} to gain")

# %%
# Where the best run meets the bound, it is optimal, and no search could have told. On the
# random graph the seeds differ by four percent, and only the bound says that the best of
# them cannot be improved.

figure, axes = plt.subplots(figsize=(6.4, 3.0), layout="constrained")
for place, name in enumerate(graphs):
    bound = proofs[name].bound
    label = "no partition is here (proved)" if place == 0 else None
    axes.bar(place, 0.05, bottom=1.0, width=0.5, color="#d7dce3", label=label)
    label = "Leiden, ten seeds" if place == 0 else None
    shares = [value / bound for value in runs[name]]
    axes.plot([place] * 10, shares, "o", color="#e08a1e", label=label)
axes.set_xticks(range(len(graphs)), graphs)
axes.set_ylim(0.95, 1.01)
axes.set_ylabel("modularity over the bound")
axes.legend(frameon=False, loc="lower left")
figure.savefig("how-good-leiden.png", dpi=150)
