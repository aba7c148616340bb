"""From positions to clusters, with and without refinement."""

import networkx as nx
import numpy as np
import pytest

from cvxnmf.graphs.description_length import describe_graph
from cvxnmf.graphs.refinement import Refinement, cluster_positions


@pytest.mark.parametrize("refinement", Refinement)
@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_clusters_without_positions_follow_the_degrees(refinement, k):
    A = nx.to_scipy_sparse_array(nx.star_graph(5), dtype=float, format="csr")
    labels, memberships, _ = cluster_positions(describe_graph(A), np.zeros((6, 0)), k, 0, refinement)
    assert set(labels) == set(range(k))
    np.testing.assert_array_equal(memberships.argmax(axis=1), labels)
