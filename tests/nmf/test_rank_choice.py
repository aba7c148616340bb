"""The number of components of planted data is found; masks are fair; what makes no sense is refused."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from cvxnmf.nmf.rank_choice import hide_entries, likeness, merge_components, recommend_rank
from tiers import slow_but


def planted(kind, k, seed=0):
    rng = np.random.default_rng([seed, k])
    model = rng.gamma(0.5, size=(80, k)) @ rng.gamma(0.5, size=(k, 50))
    if kind == "gaussian":
        return np.maximum(model + 0.1 * model.std() * rng.standard_normal(model.shape), 0.0), "mse"
    return rng.poisson(20 * model / model.mean()).astype(float), "kl"


@pytest.mark.parametrize("kind", ["gaussian", "poisson"])
@pytest.mark.parametrize("k", slow_but([3], [3, 5]))
def test_a_planted_rank_is_found(kind, k):
    A, loss = planted(kind, k)
    choice = cvxnmf.choose_rank(A, range(2, 8), loss)
    assert choice.n_components == k
    assert f"lowest with {k} components" in choice.reason
    assert choice.stability[choice.place] > 0.95


def test_noise_cut_off_at_zero_is_no_component():
    rng = np.random.default_rng(7)
    U, V = (rng.gamma(1.0, size=(size, 3)) * (rng.random((size, 3)) < 0.5) for size in (90, 140))
    A = np.maximum(U @ V.T + 0.3 * (U @ V.T).std() * rng.standard_normal((90, 140)), 0.0)
    choice = cvxnmf.choose_rank(A, range(2, 7))
    assert choice.n_components == 3
    assert np.argmin(choice.held_out.mean(axis=0)) == 2
    assert "which is little beside what the last of them gained" in choice.reason


def test_what_few_entries_leave_open_is_not_predicted_to_be_huge():
    rng = np.random.default_rng(12)
    A = rng.poisson(4 * rng.gamma(0.5, size=(60, 8)) @ rng.gamma(0.5, size=(8, 30))).astype(float)
    for X in (A, sp.csr_array(A)):
        choice = cvxnmf.choose_rank(X, [4, 8, 12], loss="kl")
        assert choice.held_out.max() < 3 * choice.held_out.min()


def test_the_table_is_monotone_and_proved():
    A, _ = planted("gaussian", 3)
    table = cvxnmf.choose_rank(A, [2, 3, 5]).table
    assert [row.n_components for row in table] == [2, 3, 5]
    values, bounds = [row.value for row in table], [row.bound for row in table]
    assert values == sorted(values, reverse=True)
    assert all(0 < bound <= value for bound, value in zip(bounds, values, strict=True))
    tails = [np.sum(np.linalg.svd(A, compute_uv=False)[k:] ** 2) for k in (2, 3, 5)]
    np.testing.assert_allclose(bounds, tails, rtol=1e-6)


def test_the_same_data_give_the_same_answer_and_sparse_data_nearly_the_same():
    A, loss = planted("poisson", 3)
    first, again, sparse = (cvxnmf.choose_rank(X, [2, 3, 4], loss) for X in (A, A.copy(), sp.csr_array(A)))
    np.testing.assert_array_equal(first.held_out, again.held_out)
    assert sparse.n_components == 3
    np.testing.assert_allclose(sparse.held_out.mean(axis=0), first.held_out.mean(axis=0), rtol=0.2)


def test_missing_entries_stay_missing_and_names_stay():
    A, _ = planted("gaussian", 3)
    A[::7, ::5] = np.nan
    choice = cvxnmf.choose_rank(A, [2, 3, 4], column_names=[f"c{j}" for j in range(50)])
    assert choice.n_components == 3
    assert choice.result.column_names[0] == "c0"


def test_masks_hide_known_entries_and_mirrored_ones_together():
    rng = np.random.default_rng(0)
    A = rng.random((12, 12))
    A[2, 3] = np.nan
    rows, columns, values = hide_entries(A, rng)
    np.testing.assert_array_equal(A[rows, columns], values)
    symmetric = np.nan_to_num(A) + np.nan_to_num(A).T
    rows, columns, _ = hide_entries(symmetric, rng)
    assert set(zip(rows, columns, strict=True)) == set(zip(columns, rows, strict=True))


def test_no_row_is_hidden_as_a_whole():
    A = np.ones((60, 2))
    rows, _, _ = hide_entries(A, np.random.default_rng(1))
    assert np.bincount(rows).max() == 1


def test_likeness_is_one_for_a_permutation_and_merging_keeps_equal_columns():
    V = np.random.default_rng(0).random((9, 3))
    assert likeness(V, 2 * V[:, [2, 0, 1]]) == pytest.approx(1.0)
    U = np.random.default_rng(1).random((7, 3))
    twice = np.hstack([U, U[:, :1]]), np.hstack([V, V[:, :1]])
    M, N = merge_components(*twice, 3)
    np.testing.assert_allclose(M @ N.T, twice[0] @ twice[1].T)


def test_the_smallest_number_within_the_spread_is_taken():
    held_out = np.array([[3.0, 1.02, 1.00, 1.5], [3.0, 0.99, 1.01, 1.5], [3.0, 1.01, 1.00, 1.5]])
    k, reason = recommend_rank((2, 3, 4, 5), held_out, np.ones(4))
    assert k == 3
    assert "up to the spread between masks" in reason
    assert "try more" in recommend_rank((2, 3), np.array([[2.0, 1.0], [2.1, 1.0]]), np.ones(2))[1]


@pytest.mark.parametrize(
    ("ranks", "sentence"),
    [([], "ranks are empty"), ([2, 99], "ranks go up to 99, but A is 80 by 50"), ("2:5", "must be numbers"), ([0], "at least 1")],
)
def test_ranks_that_make_no_sense_are_refused(ranks, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.choose_rank(planted("gaussian", 3)[0], ranks)


def test_a_choice_is_shown_in_every_form():
    choice = cvxnmf.choose_rank(planted("gaussian", 3)[0], [2, 3])
    assert "3 *" in str(choice)
    assert "3 components" in choice._repr_html_()
    assert list(choice.to_frame()["n_components"]) == [2, 3]
    assert "RankChoice" in repr(choice)
    pytest.importorskip("matplotlib")
    assert len(cvxnmf.plots.ranks(choice).axes) == 3


def test_a_callback_stops_after_two_masks():
    seen = []
    choice = cvxnmf.choose_rank(planted("gaussian", 3)[0], [2, 3], callback=lambda step: seen.append(step) or len(seen) == 4)
    assert len(choice.held_out) == 2
    with pytest.raises(KeyboardInterrupt):
        cvxnmf.choose_rank(planted("gaussian", 3)[0], [2, 3], callback=lambda step: True)


def test_verbose_shows_the_masks_and_how_much_is_done(capsys):
    A = np.random.default_rng(0).random((30, 12))
    cvxnmf.choose_rank(A, range(1, 4), verbose=1)
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("choose_rank [#                   ] mask 1 of 4, step ")
