"""GraphPartitioner: clusters of graphs and of points."""

import numpy as np
import pytest

import cvxnmf
from cvxnmf.estimators import GraphPartitioner


def test_the_partitioner_is_the_function():
    A, _ = cvxnmf.block_graph(60, 0.3, 0.7)
    model, found = GraphPartitioner().fit(A), cvxnmf.partition(A)
    np.testing.assert_array_equal(model.labels_, found.labels)
    np.testing.assert_array_equal(model.memberships_, found.memberships)
    assert model.n_clusters_ == found.n_clusters == 2
    assert model.certificate_.bound == found.certificate.bound
    assert model.certificate_.check(A) == model.certificate_.bound


@pytest.mark.parametrize("affinity", ["rbf", "nearest_neighbors"])
def test_clouds_of_points_become_clusters(affinity):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(centre, 0.3, (25, 2)) for centre in ((0, 0), (3, 0), (0, 3))])
    labels = GraphPartitioner(3, affinity=affinity).fit_predict(X)
    assert [len(set(labels[i : i + 25])) for i in (0, 25, 50)] == [1, 1, 1]
    assert len(set(labels)) == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"affinity": "cosine"}, "affinity='cosine' is not known"),
        ({"affinity": "rbf", "gamma": -1.0}, "gamma must be a finite number of at least 0"),
        ({"affinity": "nearest_neighbors", "n_neighbors": 0}, "n_neighbors must be an integer of at least 1"),
        ({"n_clusters": 11}, "n_clusters=11 is more than the graph has nodes"),
    ],
)
def test_bad_parameters_of_the_partitioner_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        GraphPartitioner(**options).fit(np.ones((10, 10)))
