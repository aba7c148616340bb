"""Classical rank-k methods: monotone, equal to scikit-learn step by step where it has them, honest about values."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import non_negative_factorization
from threadpoolctl import threadpool_limits

import cvxnmf
import naive
from cvxnmf.nmf.descent import classical_nmf
from cvxnmf.nmf.methods import METHODS

GENERAL = [(method, loss) for method, kind in METHODS.items() for loss in kind.make if loss != "beta"]
SYMMETRIC = [(method, loss) for method, kind in METHODS.items() for loss in kind.symmetric_rules]
RNG = np.random.default_rng(5)
COUNTS = RNG.poisson(1.5 * RNG.gamma(0.5, 1.0, (23, 3)) @ RNG.gamma(0.5, 1.0, (3, 17))).astype(float)
COUNTS[4, 5] += 1.0
SQUARE = COUNTS[:17] + COUNTS[:17].T
U0, V0 = 0.1 + RNG.random((23, 3)), 0.1 + RNG.random((17, 3))


def with_missing(A, share=0.2, symmetric=False):
    hidden = np.random.default_rng(2).random(A.shape) < share
    if symmetric:
        hidden = hidden & hidden.T
    A = A.copy()
    A[hidden] = np.nan
    return A


def naive_value(A, U, V, loss, l1=(0, 0), l2=(0, 0)):
    """The objective, entry by entry."""
    total = naive.factor_loss(loss, A, U @ V.T)
    for X, first, second in zip((U, V), l1, l2, strict=True):
        total += first * X.sum() + second * (X**2).sum()
    return total


def options(method):
    return {"sparse": {"sparseness": (0.3, None)}, "min-volume": {"volume": 0.0}}.get(method, {})


def falls(result):
    values = [entry.value for entry in result.history]
    assert all(later <= earlier for earlier, later in itertools.pairwise(values))
    assert abs(values[-1] - result.value) <= 1e-10 * result.certificate.scale
    return values


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 0.2])
@pytest.mark.parametrize(("method", "loss"), GENERAL)
def test_the_objective_never_rises(method, loss, penalty, missing):
    A = with_missing(COUNTS) if missing else COUNTS
    result = classical_nmf(A, 3, method, loss, init=(U0, V0), max_iter=60, tol=0.0, l1=penalty, l2=penalty, **options(method))
    values = falls(result)
    assert values[-1] < values[0]
    assert (result.U >= 0).all()
    assert (result.V >= 0).all()
    assert result.value == pytest.approx(naive_value(A, result.U, result.V, loss, (penalty,) * 2, (penalty,) * 2), rel=1e-9)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 0.2])
@pytest.mark.parametrize(("method", "loss"), SYMMETRIC)
def test_the_symmetric_objective_never_rises(method, loss, penalty, missing):
    A = with_missing(SQUARE, 0.5, symmetric=True) if missing else SQUARE
    result = classical_nmf(A, 3, method, loss, symmetric=True, max_iter=60, tol=0.0, l1=penalty, l2=penalty)
    values = falls(result)
    assert values[-1] < values[0]
    assert result.V is result.U
    assert result.value == pytest.approx(naive_value(A, result.U, result.U, loss, (penalty,) * 2, (penalty,) * 2), rel=1e-9)


@pytest.mark.parametrize("l1", [0.0, 0.3])
@pytest.mark.parametrize(
    ("method", "loss", "solver", "beta"),
    [
        ("hals", "mse", "cd", "frobenius"),
        ("multiplicative", "mse", "mu", "frobenius"),
        ("multiplicative", "kl", "mu", "kullback-leibler"),
    ],
)
@pytest.mark.filterwarnings("ignore:Maximum number of iterations")
def test_one_step_equals_scikit_learn(method, loss, solver, beta, l1):
    weight = l1 / 2 if loss == "mse" else l1  # scikit-learn halves the squared error and multiplies by the other side
    W, H, _ = non_negative_factorization(
        COUNTS,
        W=U0.copy(),
        H=V0.T.copy(),
        n_components=3,
        init="custom",
        solver=solver,
        beta_loss=beta,
        max_iter=1,
        tol=0,
        alpha_W=weight / 17,
        alpha_H=weight / 23,
        l1_ratio=1.0,
    )
    result = classical_nmf(COUNTS, 3, method, loss, init=(U0, V0), max_iter=1, tol=0.0, l1=l1)
    np.testing.assert_allclose(result.U @ result.V.T, W @ H, rtol=1e-6 if method == "multiplicative" else 1e-12, atol=1e-9)


def test_the_methods_agree_on_an_easy_problem():
    A = np.kron(np.array([[3.0, 0.0], [1.0, 2.0]]), np.ones((4, 3)))
    for method in ("hals", "als", "gradient", "quasi-newton"):
        assert classical_nmf(A, 2, method, max_iter=2000, tol=1e-9).value < 1e-6
    for method, loss in SYMMETRIC:
        B = np.kron(np.diag([3.0, 2.0]), np.ones((4, 4)))
        assert classical_nmf(B, 2, method, loss, symmetric=True, max_iter=3000, tol=1e-9).value < 1e-5


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("method", "loss"), GENERAL)
def test_sparse_data_give_what_dense_data_give(method, loss, missing):
    A = with_missing(COUNTS) if missing else COUNTS
    dense = classical_nmf(A, 3, method, loss, init=(U0, V0), max_iter=12, tol=0.0, **options(method))
    sparse = classical_nmf(sp.coo_array(A), 3, method, loss, init=(U0, V0), max_iter=12, tol=0.0, **options(method))
    np.testing.assert_allclose(sparse.U @ sparse.V.T, dense.U @ dense.V.T, rtol=1e-6, atol=1e-7)
    assert sparse.value == pytest.approx(dense.value, rel=1e-8)


@pytest.mark.parametrize(("method", "loss"), SYMMETRIC)
def test_symmetric_sparse_data_give_what_dense_data_give(method, loss):
    dense = classical_nmf(SQUARE, 3, method, loss, init=U0[:17], symmetric=True, max_iter=12, tol=0.0)
    sparse = classical_nmf(sp.csr_matrix(SQUARE), 3, method, loss, init=U0[:17], symmetric=True, max_iter=12, tol=0.0)
    np.testing.assert_allclose(sparse.U, dense.U, rtol=1e-7, atol=1e-9)


def test_sparse_data_are_not_made_dense():
    rows, columns = np.arange(80_000), np.arange(80_000) * 7919 % 60_000  # 38 GB if they were dense
    A = sp.csr_array((1.0 + rows % 3, (rows, columns)), shape=(80_000, 60_000))
    for loss in ("mse", "kl"):
        start = np.ones((80_000, 2)), np.ones((60_000, 2))
        falls(classical_nmf(A, 2, "hals", loss, init=start, max_iter=2))


@pytest.mark.parametrize(("method", "loss"), GENERAL)
def test_single_precision(method, loss):
    double = classical_nmf(COUNTS, 3, method, loss, init=(U0, V0), max_iter=10, tol=0.0, **options(method))
    single = classical_nmf(COUNTS.astype(np.float32), 3, method, loss, init=(U0, V0), max_iter=10, tol=0.0, **options(method))
    assert double.U.dtype == np.float64
    assert single.U.dtype == single.V.dtype == np.float32
    np.testing.assert_allclose(single.U, double.U, rtol=1e-5, atol=1e-6)
    assert single.value == pytest.approx(double.value, rel=1e-5)


@pytest.mark.parametrize(("method", "loss", "symmetric"), [(*c, False) for c in GENERAL] + [(*c, True) for c in SYMMETRIC])
def test_same_input_same_bits_and_arrays_unchanged(method, loss, symmetric):
    A, start = (SQUARE.copy(), U0[:17].copy()) if symmetric else (COUNTS.copy(), (U0.copy(), V0.copy()))
    one, two = (classical_nmf(A, 3, method, loss, start, symmetric, max_iter=15, **options(method)) for _ in range(2))
    assert one.U.tobytes() == two.U.tobytes()
    assert one.V.tobytes() == two.V.tobytes()
    np.testing.assert_array_equal(A, SQUARE if symmetric else COUNTS)
    for X, before in zip([start] if symmetric else start, [U0[:17]] if symmetric else [U0, V0], strict=True):
        np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(("method", "loss"), GENERAL)
def test_permuted_rows_give_permuted_factors(method, loss):
    order = np.random.default_rng(1).permutation(len(COUNTS))
    plain = classical_nmf(COUNTS, 3, method, loss, max_iter=10, tol=0.0, **options(method))
    moved = classical_nmf(COUNTS[order], 3, method, loss, max_iter=10, tol=0.0, **options(method))
    np.testing.assert_allclose(moved.U, plain.U[order], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(moved.V, plain.V, rtol=1e-6, atol=1e-7)


def test_columns_come_by_weight_and_balanced():
    result = classical_nmf(COUNTS, 4)
    u, v = np.linalg.norm(result.U, axis=0), np.linalg.norm(result.V, axis=0)
    np.testing.assert_allclose(u, v)
    assert (np.diff(u) <= 0).all()


def test_penalties_by_factor():
    result = classical_nmf(COUNTS, 3, l1=(0.5, 0.0), l2=(0.1, 0.3), max_iter=40)
    assert result.value == pytest.approx(naive_value(COUNTS, result.U, result.V, "mse", (0.5, 0.0), (0.1, 0.3)), rel=1e-10)
    sparser = classical_nmf(COUNTS, 3, l1=4.0, max_iter=100)
    assert np.count_nonzero(sparser.U) + np.count_nonzero(sparser.V) < np.count_nonzero(result.U) + np.count_nonzero(result.V)


def hoyer(x):
    n = len(x)
    return (np.sqrt(n) - np.abs(x).sum() / np.linalg.norm(x)) / (np.sqrt(n) - 1)


@pytest.mark.parametrize("wanted", [(0.6, None), (None, 0.5), (0.4, 0.7), (0.0, None), (1.0, None)])
def test_sparseness_is_reached(wanted):
    result = classical_nmf(COUNTS, 3, "sparse", sparseness=wanted, max_iter=30)
    falls(result)
    for X, value in zip((result.U, result.V), wanted, strict=True):
        if value is not None:
            np.testing.assert_allclose([hoyer(x) for x in X.T], value, atol=1e-6)


def test_missing_entries_are_recovered():
    U, V = np.random.default_rng(3).random((30, 2)), np.random.default_rng(4).random((20, 2))
    for loss in ("mse", "kl"):
        result = classical_nmf(with_missing(U @ V.T), 2, loss=loss, max_iter=2000, tol=1e-8)
        np.testing.assert_allclose(result.U @ result.V.T, U @ V.T, atol=0.02)


def test_a_mask_is_as_good_as_nan():
    A = with_missing(COUNTS)
    masked = np.ma.masked_array(COUNTS.astype(int), mask=np.isnan(A))
    np.testing.assert_array_equal(classical_nmf(masked, 3, max_iter=5).U, classical_nmf(A, 3, max_iter=5).U)


@pytest.mark.parametrize(("loss", "symmetric"), [("mse", False), ("mse", True), ("kl", False), ("kl", True)])
def test_zeros_do_not_lock(loss, symmetric):
    A = np.kron(np.diag([3.0, 2.0]), np.ones((4, 4)))
    U = np.zeros((8, 2))
    U[:2, 0], U[4:6, 1] = 1.0, 1.0  # half of each block is missing, and a product with zero is zero
    start = U if symmetric else (U, U + 0.1)
    result = classical_nmf(A, 2, "multiplicative", loss, start, symmetric, max_iter=3000, tol=0.0)
    assert result.value < 1e-3 * result.certificate.scale


def test_exact_data_end_at_zero():
    A = np.outer(np.arange(1.0, 6.0), np.arange(1.0, 5.0))
    for loss in ("mse", "kl"):
        result = classical_nmf(A, 1, loss=loss, max_iter=500)
        assert 0.0 <= result.value < 1e-12 * result.certificate.scale
        assert result.status is cvxnmf.Status.OPTIMAL


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_odd_shapes(loss):
    for shape, k in (((1, 6), 1), ((6, 1), 2), ((3, 9), 5), ((2, 2), 2), ((40, 3), 40)):
        A = 1.0 + np.random.default_rng(0).random(shape)
        falls(classical_nmf(A, k, loss=loss, max_iter=20))
    A = COUNTS.copy()
    A[3], A[:, 4] = 0.0, 0.0
    result = classical_nmf(A, 3, loss=loss, max_iter=200)
    assert (result.U @ result.V.T)[3].max() < 1e-6 * A.max()


def test_the_certificate_states_what_was_fitted():
    certificate = classical_nmf(with_missing(COUNTS), 3, loss="kl").certificate
    assert certificate.statement == {"form": "rank", "loss": "kl", "n_components": 3, "symmetric": False}
    assert (certificate.bound, certificate.scope, certificate.kind, certificate.rigorous) == (0.0, "rank-k", "zero", True)
    assert certificate.scale == pytest.approx(np.nansum(with_missing(COUNTS)))


def test_stopping():
    loose, tight = classical_nmf(COUNTS, 3, tol=1e-2), classical_nmf(COUNTS, 3, tol=1e-9, max_iter=2000)
    assert len(loose.history) < len(tight.history)
    assert loose.status is tight.status is cvxnmf.Status.CONVERGED
    assert classical_nmf(COUNTS, 3, max_iter=4).status is cvxnmf.Status.MAX_ITER
    seen = []
    stopped = classical_nmf(COUNTS, 3, callback=lambda entry: seen.append(entry) or entry.iteration == 5)
    assert stopped.status is cvxnmf.Status.INTERRUPTED
    assert list(stopped.history) == seen
    assert [entry.iteration for entry in seen] == [1, 2, 3, 4, 5]
    assert {(entry.bound, entry.rank) for entry in seen} == {(0.0, 3)}


def test_an_interrupt_keeps_the_best():
    def interrupt(entry):
        if entry.iteration == 7:
            raise KeyboardInterrupt

    with pytest.raises(cvxnmf.Interrupted) as caught:
        classical_nmf(COUNTS, 3, callback=interrupt)
    assert caught.value.solution.status is cvxnmf.Status.INTERRUPTED
    assert caught.value.solution.value == pytest.approx(classical_nmf(COUNTS, 3, max_iter=7, tol=0.0).value)


def test_random_starts_follow_the_seed():
    one, two, other = (classical_nmf(COUNTS, 3, init="random", rng=seed, max_iter=5) for seed in (0, 0, 1))
    assert one.U.tobytes() == two.U.tobytes()
    assert one.U.tobytes() != other.U.tobytes()


NOT_A_NUMBER = with_missing(COUNTS)
EMPTY_ROW = np.where(np.arange(23)[:, None] == 2, np.nan, COUNTS)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1"),
        ({"n_components": 2.5}, "n_components must be an integer"),
        ({"n_components": 24}, "larger than both sides"),
        ({"method": "newton"}, "method='newton' is not known"),
        ({"loss": "huber"}, "loss='huber' is not known"),
        ({"init": "best"}, "init='best' is not known"),
        ({"init": U0}, "init must be one of"),
        ({"init": (U0, V0[:, :2])}, r"start V has shape \(17, 2\)"),
        ({"init": (U0 - 1.0, V0)}, "start U has negative"),
        ({"init": (U0, V0 * np.inf)}, "start V has negative or non-finite"),
        ({"init": (0 * U0, V0)}, "start U is all zeros"),
        ({"init": ("a", V0)}, "start U must be a matrix"),
        ({"A": -COUNTS}, "Negative values in data"),
        ({"A": sp.csr_array(-COUNTS)}, "Negative values in data"),
        ({"A": np.where(COUNTS > 2, np.inf, COUNTS)}, "infinite entry"),
        ({"A": sp.csr_array(np.where(COUNTS > 2, np.inf, COUNTS))}, "infinite entry"),
        ({"A": 0 * COUNTS}, "all zeros"),
        ({"A": sp.csr_array(COUNTS.shape)}, "all zeros"),
        ({"A": np.full((3, 3), np.nan)}, "all zeros or missing"),
        ({"A": sp.csr_array(EMPTY_ROW)}, "All entries of row 2 of A are missing"),
        ({"A": EMPTY_ROW}, "All entries of row 2 of A are missing"),
        ({"A": EMPTY_ROW.T}, "All entries of column 2 of A are missing"),
        ({"symmetric": True}, "must be square"),
        ({"A": COUNTS[:17], "symmetric": True}, "not symmetric"),
        ({"A": NOT_A_NUMBER[:17], "symmetric": True}, "mirror image"),
        ({"A": SQUARE, "symmetric": True, "method": "als"}, "has no symmetric form"),
        ({"symmetric": "yes"}, "symmetric must be True or False"),
        ({"loss": "kl", "method": "als"}, "does not lower loss='kl'; use one of 'hals', 'multiplicative', 'gradient'"),
        ({"sparseness": (0.5, 0.5)}, "constraint of method='sparse'"),
        ({"method": "sparse", "sparseness": 0.5}, "sparseness must be a pair"),
        ({"method": "sparse", "sparseness": (1.5, None)}, "from 0 to 1"),
        ({"l1": -1.0}, "l1 must be a finite number"),
        ({"l2": (1.0, 2.0, 3.0)}, "l2 must be a number or a pair"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"callback": 3}, "callback must be"),
        ({"init": "random", "rng": "x"}, "rng must be"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(arguments, sentence):
    call = {"A": COUNTS, "n_components": 3} | arguments
    with pytest.raises(ValueError, match=sentence) as caught:
        classical_nmf(**call)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize("loss", ["mse", "kl"])
@pytest.mark.parametrize(("sparse", "k"), [(False, 6), (False, 40), (True, 6)])
def test_any_number_of_threads_gives_the_same_bits(loss, sparse, k):
    rng = np.random.default_rng(0)
    A = rng.random((3000, 90)) * (rng.random((3000, 90)) < 0.9)
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            result = classical_nmf(sp.csr_array(A) if sparse else A, k, loss=loss, max_iter=15, tol=0.0)
        found.append((result.U.tobytes(), result.V.tobytes(), result.value))
    assert found[0] == found[1] == found[2]


def test_descents_in_several_threads_do_not_disturb_each_other():
    A = np.random.default_rng(0).random((3000, 90))
    alone = classical_nmf(A, 5, max_iter=8, tol=0.0)
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(3) as pool:
        for result in pool.map(lambda _: classical_nmf(A, 5, max_iter=8, tol=0.0), range(6)):
            assert result.U.tobytes() == alone.U.tobytes()
