"""factorize: deterministic, never worse than its start, certified."""

import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.decomposition import NMF

import cvxnmf
from builders import stored_graph
from cvxnmf.nmf import initialise
from cvxnmf.nmf.bounds import ProofLater
from cvxnmf.nmf.contender import Contender
from cvxnmf.nmf.descent import Stopping
from cvxnmf.nmf.factorize import factorize
from cvxnmf.nmf.loss_names import find_loss
from cvxnmf.nmf.open import data_in_memory
from cvxnmf.nmf.race import FINE_EXCHANGES, RECOMBINATIONS, RESTARTS, Race

DIGITS = load_digits().data[:200]


def normalised(graph):
    A = nx.to_numpy_array(graph, weight=None)
    d = np.sqrt(A.sum(axis=1))
    return A / np.outer(d, d)


def loss_of(name, A, E):
    if name == "mse":
        return np.nansum((A - E) ** 2)
    return np.nansum(np.where(A > 0, A * np.log(np.where(A > 0, A, 1) / E), 0) - A + E)


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_the_value_is_that_of_the_factors(loss):
    result = factorize(DIGITS, 5, loss=loss, effort=30)
    assert result.U.min() >= 0
    assert result.V.min() >= 0
    assert result.value == pytest.approx(loss_of(loss, DIGITS, result.U @ result.V.T + 1e-300), rel=1e-6)
    assert result.certificate.value == result.value
    assert result.certificate.scope == "rank-k"
    assert result.certificate.check(DIGITS) <= result.value
    np.testing.assert_allclose(np.linalg.norm(result.U, axis=0), np.linalg.norm(result.V, axis=0), rtol=1e-9)
    assert np.all(np.diff(np.linalg.norm(result.U, axis=0)) <= 1e-9)


@pytest.mark.parametrize("k", [3, 7])
def test_as_good_as_the_best_of_random_starts(k):
    best = min(
        NMF(k, init="random", random_state=seed, tol=1e-6, max_iter=3000).fit(DIGITS).reconstruction_err_ for seed in range(5)
    )
    assert factorize(DIGITS, k, effort=0).value <= 1.001 * best**2


def test_same_input_same_bits():
    one, other = (factorize(DIGITS, 4, effort=20) for _ in range(2))
    assert np.array_equal(one.U, other.U)
    assert one.certificate.bound == other.certificate.bound


def test_scikit_learns_factors_are_only_improved():
    model = NMF(6, init="random", random_state=3, max_iter=2000)
    U = model.fit_transform(DIGITS)
    before = np.sum((DIGITS - U @ model.components_) ** 2)
    result = factorize(DIGITS, 6, start=(U, model.components_.T), effort=0)
    assert result.value <= before * (1 + 1e-12)
    again = factorize(DIGITS, 6, start=result, effort=0)
    assert again.value <= result.value * (1 + 1e-12)


@pytest.mark.parametrize(
    ("name", "k", "gap"), [("karate", 2, 1e-5), ("karate", 4, 1e-3), ("polbooks", 3, 1e-5), ("football", 12, 3e-3)]
)
def test_symmetric_gaps_on_graphs(name, k, gap):
    A = normalised(nx.karate_club_graph() if name == "karate" else stored_graph(name))
    result = factorize(A, k, symmetric=True, effort=300)
    assert result.V is result.U
    assert result.certificate.relative_gap <= gap
    assert result.certificate.check(A) == pytest.approx(result.certificate.bound, rel=1e-12)


def test_symmetry_is_recognised_and_can_be_switched_off():
    A = normalised(nx.karate_club_graph())
    twofold, free = factorize(A, 3, effort=0), factorize(A, 3, symmetric=False, effort=0)
    assert twofold.V is twofold.U
    assert free.V is not free.U
    assert free.value <= twofold.value * (1 + 1e-9)


def test_two_components_are_global_when_the_dual_says_so():
    rng = np.random.default_rng(0)
    A = rng.random((30, 2)) @ rng.random((2, 20)) + 0.01 * rng.random((30, 20))
    result = factorize(A, 2, effort=300)
    assert result.certificate.relative_gap < 1e-6


def test_one_component_is_the_leading_pair():
    result = factorize(DIGITS, 1)
    values = np.linalg.svd(DIGITS, compute_uv=False)
    assert result.value == pytest.approx(np.sum(values[1:] ** 2), rel=1e-6)
    assert result.certificate.relative_gap < 1e-6
    counts = factorize(DIGITS, 1, loss="kl")
    assert counts.certificate.kind == "independence"
    assert counts.certificate.relative_gap < 1e-6


def test_the_number_of_components_is_found():
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.5, 1.0, (4, 60))[rng.integers(0, 4, 300)] * rng.gamma(2, 3, (300, 1))
    A = rng.poisson(rates).astype(float)
    A = A[np.ix_(A.any(axis=1), A.any(axis=0))]
    assert factorize(A, effort=0).n_components in (4, 5)


def test_sparse_input_is_the_dense_answer():
    A = sp.random_array((60, 40), density=0.2, rng=np.random.default_rng(0)).tocsr()
    sparse, dense = (factorize(data, 3, effort=30) for data in (A, A.toarray()))
    assert sparse.value == pytest.approx(dense.value, rel=1e-5)
    assert sparse.certificate.bound == pytest.approx(dense.certificate.bound, rel=1e-3)


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_missing_entries(loss):
    rng = np.random.default_rng(0)
    truth = rng.random((30, 3)) @ rng.random((3, 20)) + 0.1
    A = np.where(rng.random((30, 20)) < 0.15, np.nan, truth)
    result = factorize(A, 3, loss=loss, effort=30, max_iter=3000, tol=1e-9)
    E = result.U @ result.V.T
    assert result.value == pytest.approx(loss_of(loss, A, E), rel=1e-6, abs=1e-9)
    hidden = np.isnan(A)
    assert np.abs(E - truth)[hidden].mean() < 0.1 * truth.mean()
    assert result.certificate.check(A) <= result.value


def test_the_convex_start_finds_planted_groups():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 20)
    P = np.where(labels[:, None] == labels[None, :], 0.5, 0.05)
    A = np.triu(rng.random(P.shape) < P, 1).astype(float)
    A = A + A.T
    U, _ = initialise.convex(A, 4, symmetric=True)
    found = np.argmax(U, axis=1)
    assert all(np.bincount(found[labels == group]).max() >= 18 for group in range(4))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1"),
        ({"n_components": -2}, "n_components must be an integer of at least 1"),
        ({"n_components": 2.5}, "n_components must be an integer"),
        ({"n_components": 1000}, "larger than both sides"),
        ({"n_components": 2, "loss": "l1"}, "loss='l1' is not known"),
        ({"n_components": 2, "symmetric": True}, "must be square"),
        ({"n_components": 2, "symmetric": "yes"}, "symmetric must be True, False or None"),
        ({"n_components": 2, "start": (np.ones((3, 2)), np.ones((64, 2)))}, "must be \\(200, 2\\)"),
        ({"n_components": 2, "effort": -1}, "effort must be an integer"),
    ],
)
def test_bad_terms(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        factorize(DIGITS, **arguments)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda A: A.__setitem__((3, 4), np.inf), "infinite"),
        (lambda A: A.__setitem__((3, 4), -1.0), "Negative values"),
        (lambda A: A.__setitem__(5, np.nan), "row 5"),
        (lambda A: A.__setitem__((slice(None), 7), np.nan), "column 7"),
    ],
)
def test_bad_data(spoil, sentence):
    A = DIGITS.copy()
    spoil(A)
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.factorize(A, 3)


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_a_classical_method_can_start_from_the_convex_solution(loss):
    convex, plain = (cvxnmf.classical_nmf(DIGITS, 5, loss=loss, init=init, max_iter=300) for init in ("convex", "nndsvd"))
    assert convex.value <= 1.05 * plain.value


def test_an_interrupt_before_the_first_start_is_just_that(monkeypatch):
    def interrupt(race):
        raise KeyboardInterrupt

    monkeypatch.setattr("cvxnmf.nmf.search.Race.run", interrupt)
    with pytest.raises(KeyboardInterrupt) as stopped:
        cvxnmf.factorize(np.random.default_rng(0).random((30, 20)), 4)
    assert not isinstance(stopped.value, cvxnmf.Interrupted)


def test_ctrl_c_keeps_the_best_run():
    values = []

    def interrupting(line):
        values.append(line.value)
        if len(values) == 120:
            raise KeyboardInterrupt

    with pytest.raises(cvxnmf.Interrupted) as stopped:
        factorize(DIGITS, 5, callback=interrupting)
    assert stopped.value.solution.value <= min(values) * (1 + 1e-5)  # starts race in single precision
    assert stopped.value.solution.status is cvxnmf.Status.INTERRUPTED


def test_a_true_answer_stops_everything():
    calls = []
    result = factorize(DIGITS, 5, callback=lambda line: calls.append(line) or True)
    assert len(calls) == 1
    assert result.status is cvxnmf.Status.INTERRUPTED


def test_the_start_gives_the_number_of_components_and_is_never_worsened():
    D = np.array([1e8, 1, 1e-8])
    start = (np.diag(D), np.diag(1 / D))
    result = factorize(np.eye(3), loss="kl", symmetric=False, start=start, max_iter=1)
    assert result.n_components == 3
    assert result.value == 0


def test_as_many_components_as_columns_are_exact():
    result = factorize(DIGITS[:, 2:10], 8)
    assert result.value <= 1e-12 * np.sum(DIGITS**2)


def test_sparse_data_with_missing_entries():
    A = np.random.default_rng(0).random((8, 6)) + 0.1
    A[0, 1] = np.nan
    sparse, dense = (factorize(data, 2) for data in (sp.csr_array(A), A))
    assert sparse.value == dense.value
    assert np.isfinite(cvxnmf.verify(sp.csr_array(A), sparse.U, sparse.V).value)


def test_a_pattern_of_missing_entries_can_spoil_symmetry():
    A = np.array([[1.0, 2, np.nan], [2, 1, 2], [7, 2, 1]])
    assert factorize(A, 2).V is not factorize(A, 2).U
    with pytest.raises(ValueError, match="mirror image"):
        factorize(A, 2, symmetric=True)


def test_data_without_noise_have_their_rank():
    assert factorize(np.ones((3, 4))).n_components == 1
    assert factorize(np.ones((1, 5))).n_components == 1


def test_huge_data_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="rescale A"):
        factorize(DIGITS * 1e200, 2)


def test_the_proof_waits_until_somebody_looks():
    A = DIGITS.copy()
    later, now = (factorize(A, 3, effort=10, certificate=when) for when in ("later", "now"))
    assert callable(vars(later)["certificate"])
    assert not callable(vars(now)["certificate"])
    assert str(later).count("proved bound") == 1
    assert later.certificate.bound == now.certificate.bound
    assert later.message == now.message
    copy = pickle.loads(pickle.dumps(factorize(A, 3, effort=0)))
    assert copy.certificate.check(A) <= copy.value
    with pytest.raises(ValueError, match="certificate='never' is not known"):
        factorize(A, 3, certificate="never")


def test_data_that_were_changed_meanwhile_are_not_certified():
    X = sp.random_array((80, 50), density=0.2, rng=np.random.default_rng(0)).tocsr()
    for data, entries in ((X, X.data), (dense := X.toarray(), dense)):
        proof = ProofLater(data, lambda: "proved")
        assert proof() == "proved"
        entries[(0,) * entries.ndim] += 1e-9
        with pytest.raises(cvxnmf.CertificateError, match="changed after they were factored"):
            proof()


def test_sparse_data_are_not_made_dense_for_a_proof_that_nobody_asked_for():
    A = sp.random_array((1200, 600), density=0.02, rng=np.random.default_rng(0)).tocsr()
    result = factorize(A, 3)
    assert result.certificate.kind == "lanczos"
    assert 0 < result.certificate.bound <= result.value


@pytest.mark.parametrize("symmetric", [False, True])
def test_single_precision_goes_out_as_it_came_in(symmetric):
    A = (DIGITS.T @ DIGITS if symmetric else DIGITS).astype(np.float32)
    result = factorize(A, 3, symmetric=symmetric)
    assert result.U.dtype == result.V.dtype == np.float32
    assert result.value == pytest.approx(np.sum((A - result.U.astype(float) @ result.V.T.astype(float)) ** 2), rel=1e-9)
    assert result.certificate.check(A) <= result.value
    assert cvxnmf.verify(A, result).value == pytest.approx(result.value, rel=1e-9)


@pytest.mark.parametrize(
    ("A", "k", "best"),
    [
        (load_digits().data, 5, 1153190.0),  # all starts agree on a sample, and on all rows another basin is lower
        (np.random.default_rng(28).random((300, 200)), 10, 4314.27),  # a flat spectrum, whose tail is easily overrated
        (load_digits().data[load_digits().target == 5], 12, 27679.2),  # exchanges come back to the point that they leave
        (load_digits().data[load_digits().target == 5], 20, 13051.7),  # found from a random start in the time that is left
    ],
)
def test_starts_that_agree_or_seem_to_be_at_the_bound_do_not_end_the_search(A, k, best):
    assert cvxnmf.factorize(A, k, symmetric=False, tol=1e-4, max_iter=200).value < 1.001 * best


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_a_race_of_few_steps_has_a_winner(loss):
    assert cvxnmf.factorize(load_digits().data[:500], 6, loss, symmetric=False, max_iter=2).value > 0


@pytest.mark.parametrize(
    ("rows", "k", "sampled"), [(500, 5, 500), (700, 5, 350), (1300, 5, 325), (1300, 40, 650), (700, 40, 700)]
)
def test_samples_of_a_race_have_enough_rows_for_the_components(rows, k, sampled):
    data = data_in_memory(np.random.default_rng(1).random((rows, 60)), find_loss("mse"))[1]
    first = Race(data, k, find_loss("mse"), Stopping())._sampled_rows()[0]
    assert (rows if first is None else len(first)) == sampled


@pytest.mark.parametrize(("k", "fewest", "most"), [(2, 4, 4), (3, 8, 7 + RECOMBINATIONS.most + RESTARTS)])
def test_few_rows_are_merged_to_from_all_numbers_of_columns_and_started_at_random_unless_starts_agree(k, fewest, most):
    data = data_in_memory(load_digits().data[load_digits().target == 5], find_loss("mse"))[1]
    race = Race(data, k, find_loss("mse"), Stopping())
    race.run()
    starts = {contender.origin for contender in race.on_all_rows}  # three from singular vectors, one or four merged
    assert fewest <= len(starts) <= most


def test_a_race_whose_effort_is_spent_leaves_out_its_third_start():
    data = data_in_memory(load_digits().data[load_digits().target == 5], find_loss("mse"))[1]
    race = Race(data, 3, find_loss("mse"), Stopping())
    race.effort.limit = 1.0
    race.run()
    assert len({contender.origin for contender in race.on_all_rows}) == 3  # two from singular vectors and a merged one


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_nothing_is_exchanged_in_exact_factors(loss):
    rng = np.random.default_rng(4)
    U, V = rng.random((60, 3)), rng.random((40, 3))
    race = Race(data_in_memory(U @ V.T, find_loss(loss))[1], 3, find_loss(loss), Stopping())
    exact, other = (Contender(race, race.all_rows, (start, V)) for start in (U, rng.random((60, 3))))
    assert race._exchange(exact, FINE_EXCHANGES, 1e-4, 1.0) is exact
    assert race._restart(exact) is exact
    assert len(race.on_all_rows) == 2
    assert race._exchange(other, FINE_EXCHANGES, 1e-4, 1.0).value < other.value


def test_a_bound_that_is_out_of_reach_is_given_up():
    data = data_in_memory(load_digits().data[:400], find_loss("mse"))[1]
    race = Race(data, 10, find_loss("mse"), Stopping(max_iter=20))  # a new descent begins after as many
    left, values, right = initialise.leading_triples(data.matrix, 10)
    contender = race._enter(race.all_rows, initialise.nndsvd(data.matrix, 10))
    nearly = np.sqrt((data.energy - contender.value / 1.1) / np.sum(values**2))  # as if a tenth were left to gain
    before = race.effort.spent
    assert not race._reaches_bound(race.all_rows, [contender], (left, nearly * values, right))
    assert race.effort.spent - before <= 30  # of 74 until it no longer falls


@pytest.mark.parametrize("k", [5, 20])
def test_a_step_with_exact_updates_counts_for_more(k):
    data = data_in_memory(load_digits().data[:100], find_loss("mse"))[1]
    race = Race(data, k, find_loss("mse"), Stopping())
    assert 1.0 < race.effort.exact_step < 1.0 + 4e-9 * 64 * k**2 / 3.3e-5
    contender = Contender(race, race.all_rows, initialise.nndsvd(data.matrix, k))
    contender.run(5, 0.0)
    contender.solve_exactly()
    contender.run(2, 0.0)
    np.testing.assert_allclose(race.effort.spent, 5 + 2 * race.effort.exact_step)


def test_columns_of_two_contenders_are_recombined_where_that_is_better():
    rng = np.random.default_rng(8)
    U, V = rng.random((80, 4)), rng.random((50, 4))
    race = Race(data_in_memory(U @ V.T, find_loss("mse"))[1], 4, find_loss("mse"), Stopping())
    spoilt = [np.where(np.isin(np.arange(4), wrong), rng.random((80, 4)), U) for wrong in ((0, 1), (2, 3))]
    parents = [Contender(race, race.all_rows, (start, V)) for start in spoilt]
    assert race._recombine(min(parents, key=lambda parent: parent.value), RECOMBINATIONS).value < 1e-3 * parents[0].value
    alone = Race(race.data, 4, find_loss("mse"), Stopping())
    only = Contender(alone, alone.all_rows, (spoilt[0], V))
    assert alone._recombine(only, RECOMBINATIONS) is only


def test_nearly_exact_data_race_in_double_precision():
    rng = np.random.default_rng(3)
    A = rng.random((120, 4)) @ rng.random((4, 90))
    assert factorize(A, 4, tol=1e-4).value < 1e-6 * np.sum(A**2)


@pytest.mark.parametrize(("data", "k", "left"), [(load_breast_cancer, 8, 0.05), (load_iris, 3, 1e-3)])
def test_badly_scaled_columns_and_little_noise_do_not_end_a_descent_early(data, k, left):
    A = data().data
    found = factorize(A, k, tol=1e-4, max_iter=200)  # as `NMF` asks for it
    longer = cvxnmf.classical_nmf(A, k, "als", init=(found.U, found.V), tol=0.0, max_iter=200)
    assert longer.value >= (1.0 - left) * found.value


def test_messages_of_symmetric_factors_speak_of_symmetric_ones_alone():
    """``[[0, 1], [1, 0]]`` is exactly a UV' of rank two, but no UU'."""
    A = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert factorize(A, 2, symmetric=False).value < 1e-12
    assert (
        factorize(A, 2).message == "No symmetric nonnegative factorisation UU' of this rank is better, up to the certified gap."
    )
    assert factorize(A, 1, symmetric=False).message.startswith("No nonnegative factorisation of this rank is better")
