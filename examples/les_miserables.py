"""
Les Misérables: people between the groups
=========================================

Characters of the novel are joined as often as they appear in the same chapter. Clusters
come with soft memberships, which show who belongs to several.
"""

import networkx as nx

import cvxnmf

found = cvxnmf.partition(nx.les_miserables_graph())
for cluster in range(found.n_clusters):
    names = [found.nodes[i] for i in found.order if found.labels[i] == cluster]
    print(f"{cluster}: {len(names)} people, {', '.join(names[:5])}")

# %%
# Here are all shares, people across, cluster by cluster. Most people are of one cluster
# only.

cvxnmf.plots.memberships(found).savefig("memberships.png")

# %%
# Those who are not:

shares = found.memberships.max(axis=1)
for i in shares.argsort()[:6]:
    print(f"{found.nodes[i]:16s} {shares[i]:.0%} in cluster {found.labels[i]}")

# %%
# The graph itself, and what is proved about its clusters. The second certificate is about
# factors: no four nonnegative columns reproduce the graph better, each edge weighed by the
# degrees of its ends.

cvxnmf.plots.graph(found).savefig("les-miserables.png")
print(found.rank_certificate)
