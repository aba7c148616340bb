"""Clusters of rows and columns together."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import cvxnmf


def planted_table(m, n, k, inside, across, seed=0):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, k, m), rng.integers(0, k, n)
    return (rng.random((m, n)) < np.where(rows[:, None] == columns[None, :], inside, across)).astype(float), rows, columns


@pytest.mark.parametrize("k", [None, 4])
def test_planted_clusters_of_both_sides_are_found(k):
    table, rows, columns = planted_table(200, 150, 4, 0.25, 0.03)
    found = cvxnmf.cocluster(table, k)
    assert found.n_clusters == 4
    assert adjusted_rand_score(rows, found.row_labels) > 0.95
    assert adjusted_rand_score(columns, found.column_labels) > 0.95
    same = found.row_labels[:, None] == found.column_labels[None, :]
    assert table[same].mean() > 5 * table[~same].mean()
    assert found.row_memberships.shape == (200, 4)
    np.testing.assert_array_equal(found.column_memberships.argmax(axis=1), found.column_labels)


@pytest.mark.parametrize("shape", [(200, 150), (600, 30)])
def test_noise_is_one_cluster(shape):
    assert cvxnmf.cocluster(planted_table(*shape, 1, 0.2, 0.2)[0]).n_clusters == 1


def test_the_convex_model_is_that_of_the_table_and_proved_when_asked_for():
    table = planted_table(60, 40, 2, 0.4, 0.05)[0]
    found = cvxnmf.cocluster(sp.csr_array(table))
    assert "proof when asked for" in repr(found)
    assert found.certificate.relative_gap <= 1e-4
    assert found.certificate.check(table) == found.certificate.bound


def test_names_of_rows_and_columns_stay():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.kron(np.eye(2), np.ones((5, 4))), index=list("abcdefghij"), columns=list("rstuvwxy"))
    assert (set("abcde"), set("rstu")) in cvxnmf.cocluster(frame).communities()


def test_bipartite_graphs_have_two_sides():
    women = cvxnmf.cocluster(nx.davis_southern_women_graph())
    assert (len(women.rows), len(women.columns), women.n_clusters) == (18, 14, 2)
    with pytest.raises(ValueError, match="call partition"):
        cvxnmf.cocluster(nx.karate_club_graph())


def test_directed_graphs_keep_their_directions():
    rng = np.random.default_rng(0)
    part = np.arange(120) // 40
    A = (rng.random((120, 120)) < np.where(part[None, :] == (part[:, None] + 1) % 3, 0.4, 0.02)).astype(
        float
    )  # a cycle of groups
    found = cvxnmf.cocluster(nx.from_numpy_array(A, create_using=nx.DiGraph))
    assert found.n_clusters == 3
    assert adjusted_rand_score(part, found.row_labels) == adjusted_rand_score(part, found.column_labels) == 1.0
    assert (found.row_labels != found.column_labels).all()  # groups send to the next one


def test_tables_without_entries_are_refused():
    with pytest.raises(ValueError, match="all zeros"):
        cvxnmf.cocluster(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="Negative values"):
        cvxnmf.cocluster(sp.csr_array([[1.0, -1.0]]))
