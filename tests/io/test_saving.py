"""Results in files."""

import networkx as nx
import numpy as np
import pytest

import cvxnmf
from builders import random_counts, random_graph


def results():
    A, table = random_graph(12, 0), random_counts(9, 0)[:, :6]
    two = np.kron(np.eye(2), np.ones((4, 4)))
    yield cvxnmf.solve(cvxnmf.symmetric(A, trace="auto")), A
    yield cvxnmf.solve(cvxnmf.symmetric(two)), two
    yield cvxnmf.solve(cvxnmf.nonsymmetric(table, trace=2.0)), table
    yield cvxnmf.solve(cvxnmf.sparse(A, 0.1)), A
    yield cvxnmf.recursive(table[:6] @ table[:6].T, n_stages=2), table[:6] @ table[:6].T
    yield cvxnmf.exp_factor(cvxnmf.solve(cvxnmf.symmetric(A, trace="auto"))), None
    yield cvxnmf.exp_factor(cvxnmf.solve(cvxnmf.nonsymmetric(table, trace=4.0))), None


@pytest.mark.parametrize("number", range(7))
def test_what_comes_back_is_what_was_saved(number, tmp_path):
    result, A = list(results())[number]
    cvxnmf.save(result, tmp_path / "result.npz")
    again = cvxnmf.load(tmp_path / "result.npz")
    assert type(again) is type(result)
    assert repr(again) == repr(result)
    for name in ("U", "V", "X", "v", "W"):
        if hasattr(result, name):
            assert np.array_equal(getattr(again, name), getattr(result, name))
    if hasattr(result, "V"):
        assert (again.V is again.U) == (result.V is result.U)
    if A is not None:
        assert again.status is result.status
        assert again.history == result.history
        assert again.certificate.check(A) == result.certificate.bound


def test_bad_files_and_objects(tmp_path):
    (tmp_path / "text.npz").write_text("no result")
    with pytest.raises(ValueError, match=r"is not a result file written by cvxnmf\.save"):
        cvxnmf.load(tmp_path / "text.npz")
    with pytest.raises(FileNotFoundError):
        cvxnmf.load(tmp_path / "absent.npz")
    with pytest.raises(ValueError, match="A path is needed"):
        cvxnmf.load(3)
    with pytest.raises(ValueError, match="can be saved, not dict"):
        cvxnmf.save({}, tmp_path / "result.npz")
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(ValueError, match="is not a result file"):
        cvxnmf.load(tmp_path / "other.npz")


@pytest.mark.parametrize("with_factors", [False, True])
def test_partitions_come_back_with_their_proofs(with_factors, tmp_path):
    graph = nx.relabel_nodes(nx.barbell_graph(5, 0), {0: "a", 1: ("a", "pair"), 2: 2.5})
    found = cvxnmf.partition(graph, 2)
    if with_factors:
        assert found.rank_certificate.bound <= found.rank_certificate.value
    cvxnmf.save(found, tmp_path / "partition.npz")
    again = cvxnmf.load(tmp_path / "partition.npz")
    assert again.nodes[:3] == ("a", "('a', 'pair')", 2.5)
    for name in ("labels", "memberships", "order", "spectrum"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    assert repr(again) == repr(found)
    assert again.certificate.check(again.A) == found.certificate.bound
    assert again.rank_certificate.bound == found.rank_certificate.bound
    np.testing.assert_array_equal(again.U, found.U)
