"""What bounds give away for rounding, term by term: on data so small that every allowance can be written down.

An allowance that is left out, or taken twice, changes nothing that could be seen on data of ordinary size.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from cvxnmf.certificates import NonsymmetricStatement, RankStatement, divergence, nonsymmetric, rank, rectangles, squared_error
from cvxnmf.certificates.rounding import UNIT

#: Upper bounds on the one eigenvalue of a matrix of one entry exceed it by this many units, see `test_rounding`.
EIGENVALUE = 136


def singular_value(square, terms, norm):
    return np.sqrt(square * (1 + EIGENVALUE * UNIT) + 2 * (terms + 16) * UNIT * norm**2) + 2 * UNIT * norm


# Squared error --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [0.0, 1e-3])
@pytest.mark.parametrize(("a", "b"), [(2.0, 0.0), (2.0, 1.0), (8.0, 1.0)])
def test_squared_error_of_one_entry(a, b, error):
    bound = squared_error.dual_bound(np.array([[a]]), np.array([[b]]), 1, False, error)
    y = a + b
    taken = (singular_value(y * y, 1, y) + 2 * error * a) ** 2 * (1 + 8 * UNIT)
    assert (bound.total - a * a + taken) / (y * y) == pytest.approx(0.0, abs=3 * UNIT)
    assert bound.rounding == pytest.approx(64 * UNIT * (a * a + taken) + 4 * error * a * a, rel=1e-9, abs=0.0)
    assert bound.spare == pytest.approx(17 * UNIT * y * y, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("error", [0.0, 1e-3])
@pytest.mark.parametrize(("a", "b"), [(2.0, 0.0), (2.0, 1.0), (8.0, 1.0)])
def test_squared_error_of_one_entry_and_symmetric_factors(a, b, error):
    bound = squared_error.dual_bound(np.array([[a]]), np.array([[b]]), 1, True, error)
    y = a + b
    value = y * (1 + (EIGENVALUE + 2) * UNIT) + 2 * error * a
    assert (bound.total - a * a + value**2 * (1 + 8 * UNIT)) / (y * y) == pytest.approx(0.0, abs=3 * UNIT)
    assert bound.spare == pytest.approx(17 * UNIT * y * value, rel=1e-9, abs=0.0)


def test_squared_error_of_several_values():
    """Of 2 I the k leading values take 4 each; a rank of 3 and more takes all."""
    for k, symmetric in ((1, False), (2, False), (3, False), (9, False), (2, True), (9, True)):
        n, some = 3, min(k, 3)
        bound = squared_error.dual_bound(2 * np.eye(n), None, k, symmetric)
        assert bound.total == pytest.approx(12.0 - 4.0 * some, abs=1e-11)
        if symmetric:
            value = 2 * (1 + 8 * (n + 16) * n * UNIT) + 2 * UNIT * np.sqrt(12.0)
            taken = some * value**2 * (1 + 8 * UNIT * n)
            spare = (n + 16) * UNIT * np.sqrt(12.0) * some * value
        else:
            value = np.sqrt(4 * (1 + 8 * (n + 16) * n * UNIT) + 2 * (n + 16) * UNIT * 12.0) + 2 * UNIT * np.sqrt(12.0)
            taken = some * value**2 * (1 + 8 * UNIT * some)
            spare = some * (n + 16) * UNIT * 12.0
        assert (bound.total - 12.0 + taken) / UNIT == pytest.approx(0.0, abs=16 * some)
        assert bound.spare == pytest.approx(spare, rel=1e-9, abs=0.0)


def test_tall_and_wide_data_are_summed_along_their_longer_side():
    A = np.zeros((40, 2))
    A[0, 0] = A[1, 1] = 1.0
    for data in (A, A.T):
        assert squared_error.dual_bound(data, None, 1, False).spare == pytest.approx((40 + 16) * UNIT * 2.0, rel=1e-9, abs=0.0)


def test_data_of_moderate_size_only():
    for largest, safe in ((1e50, True), (1e-50, True), (1.1e50, False), (0.9e-50, False)):
        A = np.array([[largest]])
        if safe:
            squared_error.dual_bound(A, None, 1, False)
        else:
            with pytest.raises(cvxnmf.CertificateError, match="largest entry"):
                squared_error.dual_bound(A, None, 1, False)


@pytest.mark.parametrize("count", [1, 30])
def test_tails_from_gram_matrices(count):
    proof = rank.gram_tail(np.diag([9.0, 4.0]), 13.0, 3.0, count, RankStatement("mse", 1, False))
    norm = np.sqrt(13.0)
    skew = 8 * 18 * UNIT
    square = 9.0 * (1 + skew) + 4 * 18 * UNIT * 13.0 + 2 * (count + 16) * UNIT * 13.0
    taken = (np.sqrt(square) + 2 * UNIT * norm) ** 2 * (1 + 8 * UNIT)
    rounding = 64 * UNIT * (13.0 + taken)
    assert (proof.bound - (13.0 - taken - rounding)) / UNIT == pytest.approx(0.0, abs=24)
    assert proof.spare == pytest.approx(rounding / 2 + (count + 16) * UNIT * 13.0, rel=0.01, abs=0.0)
    assert proof.scale == 13.0
    for statement in (RankStatement("kl", 1, False), RankStatement("mse", 1, True), RankStatement("mse", 1, True, "degree")):
        with pytest.raises(cvxnmf.CertificateError, match="squared error of factors U and V only"):
            rank.gram_tail(np.diag([9.0, 4.0]), 13.0, 3.0, count, statement)
    with pytest.raises(cvxnmf.CertificateError, match="largest entry"):
        rank.gram_tail(np.diag([9.0, 4.0]), 13.0, 1e60, count, RankStatement("mse", 1, False))


# Divergence -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 2), (4, 2)])
def test_the_product_of_the_margins(shape):
    A = np.ones(shape) + 2 * np.eye(*shape)
    bound = divergence.independence_bound(A, 1, {})
    entropies = [A, A.sum(axis=1), A.sum(axis=0), A.sum()]
    value = sum(sign * np.sum(x * np.log(x)) for x, sign in zip(entropies, (1, -1, -1, 1), strict=True))
    size = sum(np.sum(x * (np.log(x) + 1)) for x in entropies)
    assert bound.total == pytest.approx(value, rel=1e-12, abs=0.0)
    assert bound.rounding == pytest.approx((64 + sum(shape)) * UNIT * size, rel=1e-9, abs=0.0)
    assert bound.spare == 0.0
    with pytest.raises(cvxnmf.CertificateError, match="rank one"):
        divergence.independence_bound(A, 2, {})
    with pytest.raises(cvxnmf.CertificateError, match="finite number"):
        divergence.independence_bound(0 * A, 1, {})
    with pytest.raises(cvxnmf.CertificateError, match="finite number"), np.errstate(over="ignore"):
        divergence.independence_bound(np.full(shape, 1e308), 1, {})


def test_logarithms_below_one_count_by_their_size():
    A = np.full((2, 2), 0.25)
    bound = divergence.independence_bound(A, 1, {})
    size = 1 + np.log(4) + 2 * (1 + np.log(2)) + 1
    assert bound.rounding == pytest.approx(68 * UNIT * size, rel=1e-9, abs=0.0)


@pytest.mark.parametrize(("m", "n"), [(2, 2), (5, 3)])
@pytest.mark.parametrize("height", [1.0, 0.5])
def test_ky_fan_bounds_of_a_constant(m, n, height):
    """With y constant, G is a multiple of uv' and nothing is beside it: all that is left is what projections may leave."""
    A, k = np.ones((m, n)), 2
    y = np.full((m, n), height)
    bound = divergence.singular_bound(A, y, k)
    total, norm, log_y = float(m * n), height, np.log(height)
    error = 2 * (m + n + 512) * UNIT * norm
    leading = error * (1 + 64 * UNIT)
    assert bound.total == pytest.approx(total * log_y + total * (1 - height - leading), abs=40 * total * UNIT)
    assert bound.total < total * log_y + total * (1 - height) - 0.9 * total * error
    size = total * abs(log_y) + total * (2 + leading)
    assert bound.rounding == pytest.approx(64 * UNIT * size + (m + n + 512) * UNIT * total * height, rel=1e-9, abs=0.0)
    assert divergence.singular_bound(A, y, 1).total == pytest.approx(total * log_y + total * (1 - height), abs=8 * total * UNIT)


@pytest.mark.parametrize("symmetric", [False, True])
def test_ky_fan_bounds_of_two_blocks(symmetric):
    """Of two blocks ``y = 2 on them`` makes G uv' and one vector more, whose singular value is 1."""
    A = np.kron(np.eye(2), np.ones((2, 2)))
    y = 2.0 * A
    for k, left in ((1, 8 * np.log(2)), (2, 8 * np.log(2) - 8.0), (3, 8 * np.log(2) - 8.0), (9, 8 * np.log(2) - 8.0)):
        bound = divergence.singular_bound(A, y, k, symmetric)
        assert bound.total == pytest.approx(left, abs=1e-5 if k > 2 and not symmetric else 1e-10)
        leading = 0.0 if k == 1 else 1.0
        assert bound.rounding == pytest.approx(
            64 * UNIT * (8 * np.log(2) + 8 * (2 + leading)) + 520 * UNIT * 8.0, rel=1e-6, abs=0.0
        )


def test_the_sum_of_leading_singular_values():
    """Values 3 and 2 of a tall or a wide matrix, each with its error."""
    M = np.zeros((30, 2))
    M[0, 0], M[1, 1] = 3.0, 2.0
    norm, skew = np.sqrt(13.0), 8 * 18 * UNIT
    squares = [x * x + 9.0 * 0 + 4 * 18 * UNIT * 13.0 + x * x * skew / 1 * 1.0 for x in (3.0, 2.0)]
    values = [np.sqrt(square + 2 * 46 * UNIT * 13.0) + 2 * UNIT * norm for square in squares]
    for data in (M, M.T):
        for count in (1, 2, 5):
            wanted = sum(value + 1e-3 for value in values[:count]) * (1 + 64 * UNIT)
            assert divergence._leading_sum(data, count, False, 1e-3) == pytest.approx(wanted, abs=100 * UNIT)
            assert divergence._leading_sum(data, count, False, 1e-3) >= sum((3.0, 2.0)[:count]) + min(count, 2) * 1e-3 + 64 * UNIT
        assert divergence._leading_sum(data, 0, False, 1e-3) == 0.0
    skewed = np.array([[1.0, 2.0], [0.0, -3.0]])
    top = max(np.linalg.eigvalsh((skewed + skewed.T) / 2))
    assert divergence._leading_sum(skewed, 1, True, 0.5) == pytest.approx(top + 0.5, rel=1e-12, abs=0.0)
    assert divergence._leading_sum(skewed, 2, True, 0.5) == pytest.approx(top + 1.0, rel=1e-12, abs=0.0)


def test_rows_and_columns_without_data_are_left_out():
    A = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 2.0], [3.0, 0.0, 2.0]])
    found = divergence.margins(A)
    assert found.A.tolist() == [[1.0, 2.0], [3.0, 2.0]]
    assert (found.rows.tolist(), found.columns.tolist(), found.total) == ([3.0, 5.0], [4.0, 4.0], 8.0)
    u, v = found.shares
    assert u == pytest.approx(np.sqrt([3 / 8, 5 / 8]))
    assert v == pytest.approx(np.sqrt([0.5, 0.5]))


def test_ky_fan_points_must_be_positive_where_the_data_are():
    A = np.array([[1.0, 0.0], [1.0, 2.0]])
    assert divergence.singular_bound(A, np.array([[1.0, 0.0], [1.0, 1.0]]), 2)
    for y in ([[1.0, -1e-9], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]):
        with pytest.raises(cvxnmf.CertificateError, match="must not be negative"):
            divergence.singular_bound(A, np.array(y), 2)


@pytest.mark.parametrize("m", [2, 40])
def test_subspaces_of_a_column(m):
    """B of one column is ``D_r^-1/2 A`` beside u; with Y along it R is its length, less what rounding may do to it."""
    A = np.array([[1.0, 3.0]] + [[2.0, 2.0]] * (m - 1))
    data = divergence.margins(A)
    u = data.shares[0]
    B = A / np.sqrt(data.rows)[:, None]
    norm = np.linalg.norm(B)
    B -= np.outer(u, u @ B)
    Y = 0.999999 * B / np.linalg.norm(B, axis=0)
    for k in (1, 2):
        bound = divergence.subspace_bound(A, k, {"Y": Y})
        n, inner = 2, float(np.sum(Y * B))
        M = B @ Y.T
        outer = max(np.linalg.eigvalsh((M + M.T) / 2)) if k == 2 else 0.0
        error = 2 * (m + 512) * UNIT * norm
        reach = np.sqrt(n) * (error + (m + n + 512) * UNIT * norm)
        R = max(0.0, inner - outer - k * reach)
        largest = (A / data.rows[:, None]).max(axis=0).sum()
        wanted = 1.5 * R * R / (largest + 2 * k)
        assert bound.total == pytest.approx(wanted, rel=1e-6 if m == 2 else 1e-4, abs=1e-12)
        assert bound.rounding == pytest.approx((64 + n) * UNIT * bound.total, rel=1e-9, abs=0.0)
        if k == 1:  # the reach is seen against R
            without = 1.5 * inner**2 / (largest + 2)
            assert (without - bound.total) / without == pytest.approx(2 * reach / inner, rel=0.05, abs=0.0)


def test_columns_of_a_subspace_point_are_no_longer_than_1():
    A = np.array([[1.0, 3.0], [2.0, 2.0]])
    for short, verdict in ((16, False), (20, True)):  # (m + 16) units of the square
        Y = np.array([[0.0, 1.0 - short * UNIT / 2], [0.5, 0.0]])
        if verdict:
            divergence.subspace_bound(A, 1, {"Y": Y})
        else:
            with pytest.raises(cvxnmf.CertificateError, match="longer than 1"):
                divergence.subspace_bound(A, 1, {"Y": Y})


def test_symmetric_sums_of_tall_and_square_data_agree():
    rng = np.random.default_rng(0)
    for m, n in ((3, 2), (4, 2), (5, 2), (40, 2)):  # tall from 5 on
        B, Y = rng.standard_normal((m, n)), rng.standard_normal((m, n))
        values = np.linalg.eigvalsh((B @ Y.T + Y @ B.T) / 2)[::-1]
        for count in range(6):
            wanted = np.maximum(values, 0.0)[:count].sum()
            found = divergence._symmetric_sum(B, Y, count)
            assert found == pytest.approx(wanted, rel=1e-11, abs=1e-11)
            assert found >= wanted or count == 0


def test_what_tall_data_allow_for():
    """B and Y of one column each along axes: the eigenvalues of ``(BY' + YB') / 2`` are 1/2 and -1/2."""
    m = 30
    B, Y = np.zeros((m, 1)), np.zeros((m, 1))
    B[0], Y[1] = 1.0, 4.0
    skew, missed = 4 * (m + 16) * UNIT * 2, 4 * 18 * UNIT * np.sqrt(17)
    reach = missed * (np.sqrt(17) + missed) * (1 + skew) + 4 * 18 * UNIT * 4.0
    value = 2.0 * (1 + 4 * 18 * 2 * UNIT) + 4 * 18 * UNIT * 4.0
    assert (divergence._symmetric_sum(B, Y, 1) - (value * (1 + skew) + reach)) / UNIT == pytest.approx(0.0, abs=40)


# Rectangles -----------------------------------------------------------------------------------------------------------------


def packing(sets, weights, data=None):
    data = np.ones((2, 2)) if data is None else data
    rectangles._require_packing(data, np.ones((1, 1)), np.array(sets, dtype=float), np.array(weights, dtype=float))


def test_entries_are_counted_once_at_most():
    packing([[1, 1], [1, 0]], [[0.5, 0.5 - 40 * UNIT], [1 - 40 * UNIT, 0]])
    packing(np.zeros((0, 2)), np.zeros((2, 0)))
    for count, spared, verdict in ((1, 33, False), (1, 36, True), (2, 35, False), (2, 38, True)):  # 2 (rectangles + 16) units
        sets, weights = np.ones((count, 2)), np.zeros((2, count))
        weights[1] = (1 - spared * UNIT) / count
        if verdict:
            packing(sets, weights)
        else:
            with pytest.raises(cvxnmf.CertificateError, match="more than once"):
                packing(sets, weights)


@pytest.mark.parametrize(
    ("sets", "weights"),
    [
        ([[1, 1]], [[0.5, 0.5], [0.5, 0.5]]),
        ([[1, 1], [1, 1]], [[0.5], [0.5]]),
        ([[1, 1, 0]], [[0.5], [0.5]]),
        ([[1]], [[0.5], [0.5]]),
        ([[1, 1]], [[0.5], [0.5], [0.5]]),
        ([[1, 1e-101]], [[0.5], [0.5]]),
        ([[1, -1]], [[0.5], [0.5]]),
        ([[1, 1]], [[0.5], [-1e-9]]),
        ([1, 1], [[0.5], [0.5]]),
        ([[1, 1]], [0.5, 0.5]),
        ([[[1, 1]]], [[0.5], [0.5]]),
    ],
)
def test_rectangles_of_other_shapes_or_signs_are_refused(sets, weights):
    with pytest.raises(cvxnmf.CertificateError, match="do not match"):
        packing(sets, weights)


def test_rectangles_add_up():
    """Two rectangles of one entry more than the rank each, and one that proves nothing."""
    statement = RankStatement("mse", 1, False)
    A = np.array([[4.0, 0.0, 1.0], [0.0, 2.0, 1.0], [1.0, 1.0, np.nan]])
    sets, weights = np.array([[1.0, 1, 0], [0, 0, 1]]), np.array([[1, 1], [0.25, 0.25], [0, 0]]) * (1 - 1e-12)
    proof = statement.prove(A, "rectangles", {"sets": sets, "weights": weights})
    whole = squared_error.dual_bound(np.diag([4.0, 1.0]), None, 1, False, 4 * UNIT)
    assert proof.bound == pytest.approx(1.0, rel=1e-11, abs=0.0)
    wanted = whole.total - whole.rounding - 2 * UNIT * whole.total
    assert (proof.bound / (1 - 1e-12) - wanted) / UNIT == pytest.approx(0.0, abs=60)
    assert proof.spare == pytest.approx(whole.rounding / 2 + whole.spare + UNIT, rel=0.02, abs=0.0)
    one = statement.prove(A, "rectangles", {"sets": sets[:1], "weights": weights[:, :1]})
    assert one.bound == pytest.approx(1.0, rel=1e-11, abs=0.0)
    turned = statement.prove(A.T, "rectangles", {"sets": sets, "weights": weights, "transposed": np.ones(1)})
    assert turned.bound == proof.bound
    with pytest.raises(cvxnmf.CertificateError, match="missing entries"):
        statement.prove(A, "rectangles", {"sets": sets, "weights": weights[::-1]})
    with pytest.raises(cvxnmf.CertificateError, match="not scaled"):
        RankStatement("mse", 1, True, "degree").prove(np.nan_to_num(A), "rectangles", {"sets": sets, "weights": weights})


def test_rectangles_that_hold_nothing_cost_their_rounding():
    statement, A = RankStatement("mse", 1, False), np.diag([4.0, 1.0])
    lost = []
    for extra in (0, 1000):
        sets, weights = np.zeros((1 + extra, 2)), np.zeros((2, 1 + extra))
        sets[0] = 1.0
        weights[:, 0] = 1 - 2.0**-40
        lost.append(1 - 2.0**-40 - statement.prove(A, "rectangles", {"sets": sets, "weights": weights}).bound)
    assert (lost[1] - lost[0]) / UNIT == pytest.approx(1000.0, rel=0.05)


def test_subspaces_of_many_columns():
    """The reach grows with the columns: of B in norm, and of the sums with Y."""
    n = 400
    A = np.ones((2, n))
    A[0, ::2] = 3.0
    data = divergence.margins(A)
    u, B = data.shares[0], A / np.sqrt(data.rows)[:, None]
    norm = np.linalg.norm(B)
    B -= np.outer(u, u @ B)
    Y = (1 - 1e-9) * B / np.linalg.norm(B, axis=0)
    bound = divergence.subspace_bound(A, 1, {"Y": Y})
    inner, largest = float(np.sum(Y * B)), (A / data.rows[:, None]).max(axis=0).sum()
    without = 1.5 * inner**2 / (largest + 2)
    reach = np.sqrt(n) * (2 * (2 + 512) + (2 + n + 512)) * UNIT * norm
    assert (without - bound.total) / without == pytest.approx(2 * reach / inner, rel=0.02, abs=0.0)


# Degrees --------------------------------------------------------------------------------------------------------------------


def test_data_scaled_by_degrees():
    A = np.array([[0.0, 0.25, 0.0], [0.25, 0.5, 0.0], [0.0, 0.0, 0.0]])  # row sums below 1, and a node without data
    statement = RankStatement("mse", 1, True, "degree")
    wanted = A[:2, :2] / np.sqrt(np.outer([0.25, 0.75], [0.25, 0.75]))
    for data in (A, sp.csr_array(A)):
        found = statement.data(data)
        found = found.toarray() if sp.issparse(found) else found
        assert found[:2, :2] == pytest.approx(wanted, rel=1e-15)
        assert not found[2].any()
    assert statement.scaling_error(np.ones((3, 3))) == pytest.approx(19 * UNIT, rel=1e-12, abs=0.0)
    assert RankStatement("mse", 1, True).scaling_error(A) == 0.0
    for bad in (np.zeros((2, 2)), np.full((2, 2), np.nan), np.array([[1.0, np.nan], [np.nan, 1.0]]), np.full((2, 2), 1e101)):
        with pytest.raises(cvxnmf.CertificateError, match="row sums|largest entry"):
            statement.data(bad)


def test_parts_that_a_witness_names():
    A = np.diag([3.0, 2.0, 1.0])
    statement = RankStatement("mse", 1, False)
    part = lambda rows, columns: {"rows": np.array(rows, dtype=float), "columns": np.array(columns, dtype=float)}  # noqa: E731
    assert statement.prove(A, "tail", part([1, 1, 0], [1, 1, 0])).bound == pytest.approx(4.0)
    for rows, columns in (([0, 0, 0], [1, 1, 1]), ([1, 1, 1], [0, 0, 0]), ([1, 1], [1, 1, 1]), ([1, 1, 1], [1, 1])):
        with pytest.raises(cvxnmf.CertificateError, match="do not match the data"):
            statement.prove(A, "tail", part(rows, columns))
    gap = np.where(A == 1.0, np.nan, A)
    assert statement.prove(gap, "tail", part([1, 1, 0], [1, 1, 0])).bound == pytest.approx(4.0)
    with pytest.raises(cvxnmf.CertificateError, match="missing entries"):
        statement.prove(gap, "tail", {})


def test_tails_of_files(tmp_path):
    path = tmp_path / "data.npy"
    A = np.random.default_rng(0).random((40, 6))
    for data in (A, A.T.copy()):
        np.save(path, data)
        mapped, statement = np.load(path, mmap_mode="r"), RankStatement("mse", 2, False)
        assert statement.prove(mapped, "tail", {}).bound == pytest.approx(statement.prove(data, "tail", {}).bound, rel=1e-12)
        assert statement.prove(mapped, "tail", {}).spare == pytest.approx(
            rank.gram_tail(A.T @ A, float(np.sum(A * A)), A.max(), 40, statement).spare, rel=1e-6, abs=0.0
        )
        rows = {"rows": np.ones(len(data)), "columns": np.ones(data.shape[1])}
        assert statement.prove(mapped, "tail", rows).bound == pytest.approx(statement.prove(data, "tail", rows).bound, rel=1e-12)
        assert statement.scale(mapped) == pytest.approx(np.sum(A * A))
    A[3, 4] = np.nan
    np.save(path, A)
    with pytest.raises(cvxnmf.CertificateError, match="missing entries"):
        RankStatement("mse", 2, False).prove(np.load(path, mmap_mode="r"), "tail", {})


def test_what_is_said_of_a_bound():
    squared, divergent = RankStatement("mse", 1, False), RankStatement("kl", 1, False)
    assert squared.explain("zero").startswith("nothing better than 0 was sought or found; verify looks for more")
    assert divergent.explain("zero") == squared.explain("zero")
    assert divergent.explain("ky-fan") == "the largest singular values of a dual point beside the margins"
    assert squared.explain("hearsay") == "hearsay"


# The convex problems --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (2, 3)])
def test_margins_that_are_put_right(shape):
    """Rows and columns off by a share e: what an entry may lose, twice, and the mass that may be added."""
    m, n = shape
    floor = np.ones(shape)
    for units_off in (0, 64, 512):
        e = units_off * UNIT
        share, mass = nonsymmetric._margin_correction(floor, floor * (1 + e))
        assert share == pytest.approx(2 * (e + 64 * UNIT + 32 * e * UNIT), rel=0.02, abs=0.0)
        assert mass == pytest.approx(2 * 2 * m * n * (e + 64 * UNIT), rel=0.02, abs=0.0)
    nonsymmetric._margin_correction(floor, floor * (1 + 1000 * UNIT))
    for Z in (floor * (1 + 1060 * UNIT), floor * (1 - 1060 * UNIT)):  # 16 times 64 units
        with pytest.raises(cvxnmf.CertificateError, match="margins"):
            nonsymmetric._margin_correction(floor, Z)
    one_row = floor.copy()
    one_row[-1] *= 1 + 2000 * UNIT
    with pytest.raises(cvxnmf.CertificateError, match="margins"):
        nonsymmetric._margin_correction(floor, one_row)
    with pytest.raises(cvxnmf.CertificateError, match="margins"):
        nonsymmetric._margin_correction(np.zeros(shape), np.zeros(shape))


@pytest.mark.parametrize("effects", [False, True])
@pytest.mark.parametrize("loss", ["kl", "mse"])
def test_nonsymmetric_bounds_at_the_data(loss, effects):
    """At ``Z = f`` the bound is 0 but for rounding: what it gives away is what sums and margins allow for."""
    A = np.full((2, 2), 2.0)
    floor = A if loss == "kl" else 0.5 * A * A  # both 2
    error = 4 * UNIT * 2 * 4.0 + (2 * 2 * 64 * UNIT * 4.0 + 2 * 2 * 8 * 64 * UNIT if effects else 0.0)
    tight = 0.5 * (error + 400 * UNIT * error)
    for trace, verdict in ((1.2 * tight, True), (0.8 * tight, False)):
        near = NonsymmetricStatement(loss, "nuclear", effects, trace)
        if verdict:
            assert near.prove(A, "dual", {"Z": floor}).rigorous
        else:
            with pytest.raises(cvxnmf.CertificateError, match="larger than the penalty"):
                near.prove(A, "dual", {"Z": floor})


@pytest.mark.parametrize("effects", [False, True])
@pytest.mark.parametrize("loss", ["kl", "mse"])
def test_nonsymmetric_bounds_of_two_blocks(loss, effects):
    A = np.array([[3.0, 1.0], [1.0, 3.0]])
    wide = NonsymmetricStatement(loss, "nuclear", effects, 10.0)
    floor = A if loss == "kl" else 0.5 * A * A
    Z = floor + 0.25 * np.array([[-1.0, 1.0], [1.0, -1.0]])
    proof = wide.prove(A, "dual", {"Z": Z})
    terms, weight, slope = cvxnmf.certificates.losses.LOSSES[loss].conjugate(A, Z)
    given = 64 * UNIT * weight.sum()
    shifted = 0.0
    if effects:
        share, mass = nonsymmetric._margin_correction(floor, Z)
        top = cvxnmf.certificates.losses.LOSSES[loss].conjugate(A.max(keepdims=True), Z.max(keepdims=True)).slope[0, 0]
        shifted = 2 * share * (Z * (np.abs(slope) + 1)).sum() + mass * (top + 1)
    assert proof.bound > 0
    assert (terms.sum() - proof.bound) / (given + shifted) == pytest.approx(1.0, abs=0.02)
    assert proof.spare == pytest.approx(given / 2, rel=0.02, abs=0.0)
    assert proof.scale == (8.0 if loss == "kl" else 20.0)


def test_nonsymmetric_points_are_nonnegative_and_of_the_data():
    A, statement = np.array([[3.0, 1.0], [1.0, 3.0]]), NonsymmetricStatement("kl", "nuclear", False, 10.0)
    assert statement.prove(A, "dual", {"Z": np.array([[0.0, 1.0], [1.0, 3.0]])}).rigorous
    for Z in (np.array([[-1e-9, 1.0], [1.0, 3.0]]), np.array([[3.0, 1.0], [1.0, -1.0]])):
        with pytest.raises(cvxnmf.CertificateError, match="leaves its domain"):
            statement.prove(A, "dual", {"Z": Z})


@pytest.mark.parametrize("effects", [False, True])
def test_rows_and_columns_without_data_take_no_part_where_effects_are_free(effects):
    part = np.array([[3.0, 1.0], [1.0, 3.0]])
    statement = NonsymmetricStatement("kl", "nuclear", effects, 10.0)
    for rows, columns in ((3, 2), (2, 3), (3, 3)):
        A = np.zeros((rows, columns))
        A[:2, :2] = part
        wanted, other = (part.shape, A.shape) if effects else (A.shape, part.shape)
        assert statement.prove(A, "dual", {"Z": part if effects else A}).rigorous
        with pytest.raises(cvxnmf.CertificateError, match="does not match"):
            statement.prove(A, "dual", {"Z": np.ones(other)})
        assert wanted != other


def test_shares_are_those_of_the_worst_margin():
    floor = np.array([[1.0, 1.0], [1.0, 1e-6]])
    Z = floor.copy()
    Z[1, 1] *= 1 + 2e5 * UNIT
    share, mass = nonsymmetric._margin_correction(floor, Z)
    residual = 1e-6 * 2e5 * UNIT
    assert share == pytest.approx(2 * (64 * UNIT + residual), rel=0.02, abs=0.0)
    assert mass == pytest.approx(4 * (64 * UNIT * (3 + 1e-6) + residual), rel=0.02, abs=0.0)
    small = np.array([[1.0, 1.0], [1e-6, 1e-6]])
    moved = small * np.array([[1.0], [1 + 900 * UNIT]])
    assert nonsymmetric._margin_correction(small, moved)[0] == pytest.approx(2 * 964 * UNIT, rel=0.02, abs=0.0)
    with pytest.raises(cvxnmf.CertificateError, match="margins"):
        nonsymmetric._margin_correction(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 0.0]]))


def test_the_penalty_of_the_paper():
    """One entry a with p = q: the point passes if ``|t - a| / 2p`` is below 1 by its rounding."""
    a, trace = 4.0, 1.0
    statement = NonsymmetricStatement("kl", "paper", False, trace)

    def prove(t, p, q):
        return statement.prove(np.array([[a]]), "dual", {"Z": np.array([[t]]), "p": np.array([p]), "q": np.array([q])})

    t, p = 2.0, 1.0  # |t - a| / 2 = p
    error = 2 * 8 * UNIT * (t + a) / p + 2 * 17 * UNIT * 2  # of pq: twice that of the quotient, and what contractions allow for
    for spared, verdict in ((0.95, False), (1.05, True)):
        if verdict:
            prove(t, p * (1 + spared * error), p)
            prove(t, p, p * (1 + spared * error))
        else:
            with pytest.raises(cvxnmf.CertificateError, match="not positive semidefinite"):
                prove(t, p * (1 + spared * error), p)
    proof = prove(t, 1.5, 1.25)
    terms = [a * np.log(a) - a + t - t * np.log(t), 1.5 - 1.5 * np.log(1.5), 1.25 - 1.25 * np.log(1.25)]
    size = [a * np.log(a) + a + t + t * np.log(t), 1.5 * (2 + np.log(1.5)), 1.25 * (2 + np.log(1.25))]
    assert (sum(terms) - proof.bound) / UNIT == pytest.approx(64 * sum(size), rel=0.01)
    assert proof.spare == pytest.approx(32 * UNIT * sum(size), rel=0.02, abs=0.0)
    for p, q in ((1e-121, 1.0), (1.0, 1e-121), (1e121, 1.0), (1.0, 1e121), (0.0, 1.0), (1.0, -1.0)):
        with pytest.raises(cvxnmf.CertificateError, match="moderate size"):
            prove(t, p, q)
    prove(a, 1e-120, 1e120)
    several = NonsymmetricStatement("kl", "paper", False, trace)
    with pytest.raises(cvxnmf.CertificateError, match="moderate size"):
        several.prove(np.ones((2, 1)), "dual", {"Z": np.ones((2, 1)), "p": np.array([1.0, 1e-121]), "q": np.ones(1)})
