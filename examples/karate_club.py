"""
The karate club, with a proof
=============================

Zachary watched a karate club of 34 members fall apart into two. Who went with whom can be
read off the friendships before.
"""

import networkx as nx

import cvxnmf

club = nx.karate_club_graph()
found = cvxnmf.partition(club, weight=None)
print(found)

# %%
# The number of clusters was found: one direction stands out of the noise, so there are two.
# *The model* is proved to be the best of its form, and *its 2 factors* to be the best two
# nonnegative factors of the graph, both up to what rounding leaves.
#
# How well does it agree with what happened?

later = [data["club"] for _, data in club.nodes(data=True)]
first = found.labels[0]
agree = sum((found.labels[node] == first) == (later[node] == later[0]) for node in club)
print(f"{agree} of {len(club)} members are where they later went")

# %%
# Everything can be drawn.

cvxnmf.plots.graph(found).savefig("karate.png")
cvxnmf.plots.figure1(found.A, found.order, found.labels).savefig("karate-matrix.png")

# %%
# The proof can be kept, and checked by somebody who has nothing but the data.

print("proved anew:", found.certificate.check(found.A))
