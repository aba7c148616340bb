"""Graphs whose rows come in pieces: the bounds of the whole graph, and refusals of pieces that are not those of one."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import prove
from cvxnmf.certificates import row_pieces
from cvxnmf.convex.coarsening import coarsen
from cvxnmf.convex.noise import degree_metric

N, EMPTY = 40, [3, 17, 39]


def graph(whole=True, seed=0):
    """A graph with loops and nodes without edges."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 6, (N, N)) * (1.0 if whole else 0.3)
    A = np.triu(weights * (rng.random((N, N)) < 0.3))
    A[EMPTY] = A[:, EMPTY] = 0.0
    A[0, 0], A[5, 5] = 2.0, 1.0
    return A + np.triu(A, 1).T


def proved(A, count=4, tol=1e-8):
    """The certificate of a graph in groups."""
    kept = np.flatnonzero(A.any(axis=1))
    part = sp.csr_array(A[np.ix_(kept, kept)])
    return coarsen(part, degree_metric(part.sum(axis=1)), np.arange(len(kept)) % count).solve(1.0, tol=tol).certificate


def pieces(A, *cuts):
    """The rows of a matrix, cut before these."""
    rows = sp.csr_array(A)
    return [rows[first:stop] for first, stop in zip([0, *cuts], [*cuts, len(A)], strict=True)]


@pytest.fixture(scope="module")
def case():
    A = graph()
    return A, proved(A)


@pytest.mark.parametrize("cuts", [(), (1,), (7, 8, 20), range(1, N)])
@pytest.mark.parametrize("whole", [True, False])
def test_pieces_prove_what_the_graph_does(cuts, whole):
    A = graph(whole)
    certificate = proved(A)
    assert certificate.rigorous is whole
    assert certificate.check(pieces(A, *cuts)) == pytest.approx(certificate.bound, rel=1e-13)
    assert certificate.check(piece for piece in pieces(A, *cuts)) == pytest.approx(certificate.bound, rel=1e-13)
    assert prove(pieces(A, *cuts), "dual", certificate.statement, certificate.witness).rigorous is whole


def test_sums_are_those_of_the_matrix():
    A = graph(seed=1)
    kept = np.flatnonzero(A.any(axis=1))
    part, groups = A[np.ix_(kept, kept)], np.arange(len(kept)) * 5 // len(kept)
    member = np.eye(5)[groups]
    entries = part[part > 0]
    for cuts in ((), (11, 30)):
        sums = row_pieces.sum_pieces(pieces(A, *cuts), groups, 5)
        assert np.array_equal(sums.pairs.toarray(), member.T @ part @ member)
        assert np.array_equal(sums.degrees, part.sum(axis=1))
        assert sums.logs == pytest.approx(np.sum(entries * np.log(entries)), rel=1e-14)
        assert sums.size == pytest.approx(np.sum(np.abs(entries * np.log(entries)) + entries), rel=1e-14)
        assert (sums.largest, sums.whole) == (5.0, True)
    small = row_pieces.sum_pieces(pieces(A * 0.25, 9), groups, 5)
    entries = entries / 4
    assert small.size == pytest.approx(np.sum(np.abs(entries * np.log(entries)) + entries), rel=1e-14)
    assert (small.largest, small.whole) == (1.25, False)


def test_nodes_of_one_edge_carry_data_and_small_entries_are_told():
    A = np.zeros((5, 5))
    A[[0, 1, 2, 3], [1, 2, 3, 4]] = 0.25  # a path: both ends have one edge
    sums = row_pieces.sum_pieces(pieces(A + A.T, 2), np.arange(5) % 2, 2)
    assert len(sums.degrees) == 5
    assert sums.largest == 0.25


def test_one_entry_that_is_not_whole_is_enough():
    A = graph()
    groups = np.zeros(N - len(EMPTY), dtype=np.intp)
    for at in ((0, 0), tuple(np.argwhere(np.tril(A, -1))[0])):
        A[at] = A[at[::-1]] = 1.5
        assert not row_pieces.sum_pieces(pieces(A, 20), groups, 1).whole
        A[at] = A[at[::-1]] = 2.0
        assert row_pieces.sum_pieces(pieces(A, 20), groups, 1).whole


def test_entries_in_any_order_twice_and_zero_count_as_in_a_matrix(case):
    A, certificate = case
    rows = sp.coo_array(A)
    order = np.random.default_rng(0).permutation(rows.nnz)
    half = np.concatenate([rows.data[order] - 0.5, np.full(rows.nnz, 0.5)])
    twice = sp.coo_array((half, [np.concatenate([place[order], place]) for place in (rows.row, rows.col)]), shape=(N, N))
    assert certificate.check([twice]) == certificate.bound
    zeros = sp.coo_array((np.append(rows.data, 0.0), (np.append(rows.row, 3), np.append(rows.col, 17))), shape=(N, N))
    assert certificate.check([zeros]) == certificate.bound
    assert certificate.check([sp.csr_array(A).astype(np.int8)]) == certificate.bound


def changed(A, *changes):
    """A copy with other entries."""
    A = A.copy()
    for i, j, value in changes:
        A[i, j] = value
    return A


def test_altered_entries_are_refused(case):
    A, certificate = case
    i, j = map(int, np.argwhere(np.triu(A, 1))[10])
    for change in [(i, j, A[i, j] + 1), (j, i, A[i, j] + 1), (i, j, 0.0), (j, i, 0.0), (j, 3, 1.0), (3, j, 1.0)]:
        with pytest.raises(cvxnmf.CertificateError, match=r"not those of a symmetric matrix|groups of the witness"):
            certificate.check(pieces(changed(A, change), 12))
    both = changed(A, (i, j, A[i, j] + 1), (j, i, A[i, j] + 1))
    for other in (both, changed(A, (5, 5, 2.0))):
        with pytest.raises(cvxnmf.CertificateError, match="The metric|the stated"):
            certificate.check(pieces(other, 12))


def test_rows_that_mirror_each_other_in_their_sums_alone_are_refused(case):
    A, certificate = case
    a, b, c = 6, 10, 14  # of one group; every row and column keeps its sum
    A = changed(A, *((i, j, 3.0) for i in (a, b, c) for j in (a, b, c) if i != j))
    turned = changed(A, (a, b, 4.0), (b, c, 4.0), (c, a, 4.0), (b, a, 2.0), (c, b, 2.0), (a, c, 2.0))
    assert np.array_equal(turned.sum(axis=0), A.sum(axis=0))
    assert np.array_equal(turned.sum(axis=1), A.sum(axis=1))
    groups = np.arange(N - len(EMPTY)) % 4
    row_pieces.sum_pieces(pieces(A, 20), groups, 4)
    with pytest.raises(cvxnmf.CertificateError, match="not those of a symmetric matrix"):
        row_pieces.sum_pieces(pieces(turned, 20), groups, 4)


def test_missing_repeated_and_exchanged_pieces_are_refused(case):
    A, certificate = case
    first, second, third = pieces(A, 13, 26)
    for wrong, sentence in [
        ([first, second], "26 rows in all, but 40 columns"),
        ([second, third], "27 rows in all, but 40 columns|symmetric"),
        ([first, second, third, third], "more rows than the data"),
        ([first, first, second, third], "more rows than the data|symmetric"),
        ([first, first, third], "not those of a symmetric matrix"),
        ([second, first, third], "not those of a symmetric matrix"),
        ([], "square matrix of finite nonnegative numbers"),
        (iter([]), "groups of the witness do not match"),
        ([first, second[:, :-1], third], "A piece has 39 columns, but the first one has 40"),
        ([first[:, :13]], "groups of the witness do not match|symmetric"),
        (iter([A[:13], second, third]), "sparse matrix of finite nonnegative numbers"),
        (iter([first, None, third]), "sparse matrix of finite nonnegative numbers"),
        ([first, -second, third], "sparse matrix of finite nonnegative numbers"),
        ([first, second * np.inf, third], "sparse matrix of finite nonnegative numbers"),
        ([first, second * np.nan, third], "sparse matrix of finite nonnegative numbers"),
        ([piece * 1e101 for piece in (first, second, third)], "no bound is safe against rounding"),
    ]:
        with pytest.raises(cvxnmf.CertificateError, match=sentence):
            certificate.check(wrong)


def test_forged_witnesses_are_refused(case):
    A, certificate = case
    honest, statement = dict(certificate.witness), certificate.statement
    groups = honest["groups"]
    for change, sentence in (
        ({"groups": groups[:-1]}, "more rows .* than the groups of the witness match"),
        ({"groups": np.append(groups, 0.0)}, "groups of the witness do not match"),
        ({"groups": groups + 1}, "groups of the witness do not match"),
        ({"groups": np.where(groups == 3, 2, groups)}, "groups of the witness do not match"),
        ({"groups": groups[:, None]}, "groups of the witness do not match"),
        ({"groups": groups[::-1].copy()}, "The metric"),
        ({"metric": honest["metric"] * (1 + 1e-11)}, "The metric"),
    ):
        with pytest.raises(cvxnmf.CertificateError, match=sentence):
            prove(pieces(A, 20), "dual", statement, honest | change)


def test_a_node_without_edges_has_no_group(case):
    A, certificate = case
    kept = np.flatnonzero(A.any(axis=1))
    assert certificate.check(pieces(A[np.ix_(kept, kept)], 9)) == certificate.bound
    more = np.zeros((N + 5, N + 5))
    more[5:, 5:] = A
    assert certificate.check(pieces(more, 2, 9)) == certificate.bound


def test_what_are_pieces():
    A = sp.csr_array(np.eye(3))
    for data in ([A], (A, A), iter([A]), (piece for piece in [A]), {1: A}):
        assert row_pieces.is_in_pieces(data)
    for data in (A, np.eye(3), np.eye(3).tolist(), [], [A, np.eye(3)], None, 3):
        assert not row_pieces.is_in_pieces(data)


def test_bits_of_an_entry_are_mixed():
    at = [(1, 0, 1.0), (2, 0, 1.0), (2, 1, 1.0), (1, 0, 2.0), (2, 1, 2.0), (2, 0, 3.0)]
    found = []
    for i, j, weight in at:
        lower = sp.csr_array(([weight], ([i], [j])), shape=(3, 3))
        found.append(row_pieces.fingerprint(lower, 0))
        assert row_pieces.fingerprint(lower[1:], 1) == found[-1]
        assert row_pieces.fingerprint(sp.csr_array(lower.T), 0) == -found[-1]
        assert row_pieces.fingerprint(sp.csr_array(lower + lower.T), 0) == 0
        assert bin(found[-1]).count("1") > 10
    assert len(set(found)) == len(at)
    assert row_pieces.fingerprint(sp.csr_array(np.diag([1.0, 2.0, 3.0])), 0) == 0
