import re

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import cvxnmf
from builders import random_graph
from cvxnmf import validation

A6 = random_graph(6, 0)


def changed(i, j, value):
    A = A6.copy()
    A[i, j] = value
    return A


BAD_DATA = {
    "nan": (changed(1, 2, np.nan), "NaN at row 1, column 2"),
    "inf": (changed(3, 0, np.inf), "infinite entry at row 3, column 0"),
    "minus inf": (changed(3, 0, -np.inf), "infinite entry at row 3, column 0"),
    "negative": (changed(0, 1, -1.0), "Negative values in data: A is -1 at row 0, column 1"),
    "rectangular": (A6[:4], "must be square, not 4 by 6"),
    "asymmetric": (changed(0, 3, 9.0), r"A\[0, 3\] and A\[3, 0\] differ by \d"),
    "empty": (np.zeros((0, 0)), "empty"),
    "no columns": (np.zeros((3, 0)), "empty"),
    "one by one": ([[2.0]], "1 by 1"),
    "zeros": (np.zeros((4, 4)), "all zeros"),
    "strings": ([["a", "b"], ["b", "a"]], "not numbers"),
    "objects": (np.array([[1, None], [None, 1]], dtype=object), "NaN|not numbers"),
    "numbers as strings": (np.array([["1", "2"], ["2", "1"]], dtype=object), "not numbers"),
    "integers beyond floats": ([[1, 10**400], [10**400, 1]], "not numbers"),
    "half precision": (changed(0, 3, 1.007).astype(np.float16), "differ by"),
    "dates": (np.zeros((2, 2), dtype="datetime64[D]"), "not numbers"),
    "complex": (A6 * (1 + 0j), "complex"),
    "vector": (np.ones(4), "two-dimensional"),
    "tensor": (np.ones((2, 2, 2)), "two-dimensional"),
    "scalar": (3.0, "must be a matrix"),
    "nothing": (None, "must be a matrix"),
    "file name": ("karate.gml", "read the file"),
    "graph": (nx.karate_club_graph(), "to_scipy_sparse_array"),
    "ragged": ([[1.0, 2.0], [1.0]], "same length"),
    "masked": (np.ma.masked_less(A6, 0.5), "masked"),
    "sparse nan": (sp.csr_array(changed(1, 2, np.nan)), "NaN at row 1, column 2"),
    "sparse negative": (sp.coo_array(changed(0, 1, -1.0)), "Negative values in data"),
    "sparse complex": (sp.csr_array(A6 * 1j), "complex"),
    "huge": (A6 * 1e200, "rescale A"),
    "tiny": (A6 * 1e-300, "rescale A"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_get_one_sentence(case):
    data, sentence = BAD_DATA[case]
    with pytest.raises(ValueError, match=sentence) as caught:
        cvxnmf.symmetric(data)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) < 260


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": "l1"}, "'kl', 'mse', 'mse-paper'"),
        ({"loss": 3}, "loss=3 is not known"),
        ({"cone": "soc"}, "'conditional', 'psd'"),
        ({"metric": "euclid"}, "'degree', 'uniform'"),
        ({"metric": [1.0, 2.0]}, "6 positive finite numbers"),
        ({"metric": -np.ones(6)}, "6 positive finite numbers"),
        ({"metric": np.ones(6) * 1j}, "6 positive finite numbers"),
        ({"diagonal": "drop"}, "'fit', 'ignore'"),
        ({"diagonal": "ignore"}, "needs trace > 0"),
        ({"trace": -1.0}, "trace must be a finite number of at least 0"),
        ({"trace": np.nan}, "trace must be a finite number"),
        ({"trace": "best"}, "'auto' or a number"),
        ({"trace": 1e300}, "too large"),
        ({"trace": None}, "trace must be a finite number"),
        ({"trace": True}, "trace must be a finite number"),
    ],
)
def test_bad_options_name_the_valid_ones(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.symmetric(A6, **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "newton"}, "'accelerated'"),
        ({"method": "splitting"}, "cannot solve this problem"),
        ({"tol": -1}, "tol must be a finite number of at least 0"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"max_iter": 2.5}, "max_iter must be an integer"),
        ({"start": np.zeros((3, 3))}, re.escape("it must be (6, 6)")),
        ({"start": (np.zeros(6), np.zeros((5, 2)))}, "with 6 rows"),
        ({"start": np.full((6, 6), np.nan)}, "start has NaN"),
        ({"start": "warm"}, "start must be a real matrix"),
        ({"start": np.zeros((6, 6)) * 1j}, "start must be a real matrix"),
        ({"start": (["a"] * 6, np.zeros((6, 2)))}, "with 6 rows"),
        ({"callback": 3}, "callback must be a function"),
    ],
)
def test_bad_solver_options(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.solve(cvxnmf.symmetric(A6), **options)


def test_not_every_method_meets_the_papers_constraint():
    with pytest.raises(ValueError, match="choose 'factored' or 'splitting'"):
        cvxnmf.solve(cvxnmf.symmetric(A6, loss="mse-paper"), method="accelerated")


@pytest.mark.parametrize("call", [cvxnmf.solve, lambda A: cvxnmf.path(A, [1.0]), lambda A: cvxnmf.certify(A, A)])
def test_a_matrix_is_not_a_problem(call):
    with pytest.raises(ValueError, match=r"must come from cvxnmf.symmetric.*not from ndarray"):
        call(A6)


@pytest.mark.parametrize("traces", ["auto", 1.0, ["best"], [None]])
def test_bad_traces_of_a_path(traces):
    with pytest.raises(ValueError, match="trace"):
        cvxnmf.path(cvxnmf.symmetric(A6), traces)


def test_an_empty_off_diagonal_is_refused():
    with pytest.raises(ValueError, match="no entries off the diagonal"):
        cvxnmf.symmetric(np.eye(4), trace=1.0, diagonal="ignore")


@pytest.mark.parametrize("kind", [MemoryError, ValueError])
def test_what_cannot_fit_is_refused_with_its_size(kind):
    huge = sp.eye_array(3_000_000, format="csr")
    needed = validation.WORKING_ARRAYS * 8 * 3_000_000**2 / 2**30
    with pytest.raises(kind, match=f"3,000,000 nodes needs about {needed:,.1f} GiB"):
        cvxnmf.symmetric(huge)


def test_single_small_entries_work():
    A = changed(0, 5, 1e-300)
    A[5, 0] = 1e-300
    for loss in ("kl", "mse"):
        solution = cvxnmf.solve(cvxnmf.symmetric(A, loss=loss, trace=0.5))
        assert solution.status is cvxnmf.Status.OPTIMAL


@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_extreme_but_accepted_scales_are_solved(size):
    solution = cvxnmf.solve(cvxnmf.symmetric(A6 * size), tol=1e-4)
    plain = cvxnmf.solve(cvxnmf.symmetric(A6), tol=1e-4)
    assert solution.value == pytest.approx(size * plain.value, rel=1e-3)


@pytest.mark.filterwarnings("ignore:Mirrored entries of A differ")
@given(
    arrays(
        dtype=st.sampled_from([np.float64, np.float32, np.int32, np.complex128, "U3"]),
        shape=array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
    )
)
@settings(max_examples=200, deadline=None)
def test_any_array_is_solved_or_refused_with_a_sentence(A):
    try:
        problem = cvxnmf.symmetric(A, cone="psd")
    except ValueError as error:
        assert str(error).endswith(".")
        return
    solution = cvxnmf.solve(problem, max_iter=50)
    assert np.isfinite(solution.value)
    assert solution.certificate.bound <= solution.value


def test_generator_accepts_seed_or_generator():
    rng = np.random.default_rng(3)
    assert validation.generator(rng) is rng
    assert validation.generator(3).random() == np.random.default_rng(3).random()
    with pytest.raises(ValueError, match="rng must be a seed"):
        validation.generator("now")


SINGLE = cvxnmf.block_graph(12, 0.3, 0.7)[0] * (1 + 1e-7 * np.triu(np.ones((12, 12))))


@pytest.mark.parametrize(
    "call",
    [
        cvxnmf.symmetric,
        lambda A: cvxnmf.symmetric(sp.csr_array(A)),
        lambda A: cvxnmf.sparse(A, 0.1),
        lambda A: cvxnmf.verify(A, np.ones((12, 2))),
        lambda A: cvxnmf.partition(A, 2),
        lambda A: cvxnmf.SymmetricNMF(2).fit(A),
    ],
)
def test_similarities_of_single_precision_are_symmetric_with_one_warning(call):
    with pytest.warns(
        UserWarning, match="differ by up to 1e-07, as after work in single precision; their mean is taken"
    ) as caught:
        call(SINGLE)
    assert len([warning for warning in caught if "single precision" in str(warning.message)]) == 1


@pytest.mark.parametrize("A", [SINGLE * (1 + 1e-4 * np.triu(np.ones((12, 12)))), np.triu(SINGLE)])
def test_what_differs_by_more_is_not_symmetric(A):
    for call in (cvxnmf.symmetric, lambda A: cvxnmf.factorize(A, 2, symmetric=True), cvxnmf.SymmetricNMF(2).fit):
        with pytest.raises(ValueError, match=r"is not symmetric: \w\[\d+, \d+\] and \w\[\d+, \d+\] differ by"):
            call(A)


def test_rounding_of_double_precision_is_averaged_in_silence():
    A = SINGLE.T * SINGLE.T
    A = (A + A.T) / 2 * (1 + 1e-14 * np.triu(np.ones((12, 12))))
    assert np.array_equal(validation.symmetrise(A), validation.symmetrise(A).T)
    assert not np.array_equal(A, A.T)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("entry", "sentence"), [(-3.0, "A is -3"), (np.inf, "infinite entry"), (-np.inf, "infinite entry")])
def test_a_wrong_entry_is_named_by_its_place(form, entry, sentence):
    A = np.ones((3, 4))
    A[1, 2], A[2, 0] = entry, np.nan
    for share in (False, True):
        with pytest.raises(ValueError, match=f"{sentence} at row 1, column 2"):
            validation.partial_matrix(form(A), share=share)


def test_large_sparse_data_are_shared_where_that_is_asked_for_and_not_changed():
    A = sp.random_array((1100, 1000), density=1.0, rng=np.random.default_rng(0), format="csr")
    A.data[::1001] = np.nan
    before = A.data.copy()
    assert np.shares_memory(validation.partial_matrix(A, share=True).data, A.data)
    assert not np.shares_memory(validation.partial_matrix(A), A.data)
    cvxnmf.classical_nmf(A, 2, max_iter=1)
    np.testing.assert_array_equal(A.data, before)


@pytest.mark.parametrize("loss", ["mse", "kl", 0.5])
@pytest.mark.parametrize("missing", [False, True])
def test_dense_data_are_shared_where_that_is_asked_for_and_not_changed(loss, missing):
    A = np.random.default_rng(0).random((30, 20))
    if missing:
        A[3, 4] = np.nan
    assert validation.partial_matrix(A, share=True) is A
    assert not np.shares_memory(validation.partial_matrix(A), A)
    before = A.copy()
    A.flags.writeable = False
    cvxnmf.classical_nmf(A, 2, loss=loss, max_iter=5)
    np.testing.assert_array_equal(A, before)
