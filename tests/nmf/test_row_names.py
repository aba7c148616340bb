"""Names that come in with the data go out with the result."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf

ROWS, COLUMNS = tuple("abcdef"), tuple("vwxyz")


def data():
    rng = np.random.default_rng(3)
    return rng.random((6, 2)) @ rng.random((2, 5))


def pandas_frame(A):
    return pytest.importorskip("pandas").DataFrame(A, index=list(ROWS), columns=list(COLUMNS))


def polars_frame(A):
    return pytest.importorskip("polars").DataFrame({"name": list(ROWS)} | dict(zip(COLUMNS, A.T, strict=True)))


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame])
@pytest.mark.parametrize("factor", [cvxnmf.factorize, cvxnmf.classical_nmf])
def test_frames_give_their_names_and_the_same_factors(frame, factor):
    A = data()
    named, plain = factor(frame(A), 2), factor(A, 2)
    assert (named.row_names, named.column_names) == (ROWS, COLUMNS)
    assert (plain.row_names, plain.column_names) == (None, None)
    np.testing.assert_array_equal(named.U, plain.U)
    assert list(named.to_frame("V").index) == list(COLUMNS)
    assert factor(frame(A.astype(np.float32)), 2).U.dtype == np.float32


def test_default_numbering_of_pandas_is_no_names():
    pandas = pytest.importorskip("pandas")
    result = cvxnmf.factorize(pandas.DataFrame(data()), 2)
    assert not result.named
    assert "\n" not in repr(result)


def test_names_are_given_to_sparse_data_and_replace_those_of_a_frame():
    result = cvxnmf.factorize(sp.csr_array(data()), 2, row_names=ROWS, column_names=np.array(COLUMNS))
    assert (result.row_names, result.column_names) == (ROWS, COLUMNS)
    assert cvxnmf.factorize(pandas_frame(data()), 2, row_names=range(6)).row_names == tuple(range(6))


def test_symmetric_factors_have_one_set_of_names():
    A = np.kron(np.eye(2), np.ones((3, 3)))
    result = cvxnmf.factorize(A, 2, column_names=ROWS)
    assert result.row_names == result.column_names == ROWS
    assert {frozenset(item.name for item in part.rows) for part in result.top(3)} == {frozenset("abc"), frozenset("def")}
    assert all(part.columns == () for part in result.top())


def test_top_is_the_largest_entries_in_order():
    result = cvxnmf.factorize(pandas_frame(data()), 2)
    for number, part in enumerate(result.top(3)):
        expected = np.argsort(-result.V[:, number], kind="stable")[:3]
        assert [item.name for item in part.columns] == [COLUMNS[place] for place in expected]
        assert [item.weight for item in part.columns] == result.V[expected, number].tolist()
    assert sum(part.share for part in result.top()) == pytest.approx(1.0)
    assert len(result.top(2).to_frame()) == 8


def test_distinct_prefers_what_is_strong_in_one_component_alone():
    U = np.array([[3.0, 3.0], [2.0, 0.0], [0.0, 2.0]])
    result = cvxnmf.classical_nmf(U @ np.eye(2, 4), 2, init=(U, np.eye(4, 2)), max_iter=1)
    by_weight, distinct = result.top(1), result.top(1, by="distinct")
    assert {part.rows[0].name for part in by_weight} == {0}
    assert {part.rows[0].name for part in distinct} == {1, 2}


def test_names_are_shown_kept_and_pickled(tmp_path):
    result = cvxnmf.factorize(pandas_frame(data()), 2)
    name = result.top(1)[0].columns[0].name
    assert name in repr(result).splitlines()[1]
    assert name in str(result)
    assert name in result._repr_html_()
    assert name in result.top()._repr_html_()
    cvxnmf.save(result, tmp_path / "result.npz")
    for again in (cvxnmf.load(tmp_path / "result.npz"), pickle.loads(pickle.dumps(result))):
        assert (again.row_names, again.column_names) == (ROWS, COLUMNS)


def test_the_proof_waits_until_somebody_looks():
    result = cvxnmf.factorize(pandas_frame(data()), 2)
    assert callable(vars(result)["certificate"])


def test_the_estimator_names_its_features():
    model = cvxnmf.NMF(2).fit(pandas_frame(data()))
    assert model.top(1)[0].columns[0].name == COLUMNS[int(np.argmax(model.components_[0]))]
    assert len(str(model.top(2)).splitlines()) == 2


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ({"row_names": ["a"] * 6}, "more than once"),
        ({"column_names": ["a"]}, "1 names, but A has 5 columns"),
        ({"row_names": "abcdef"}, "must be a sequence"),
        ({"row_names": 3}, "must be a sequence"),
    ],
)
def test_names_that_do_not_fit_are_refused(names, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.factorize(data(), 2, **names)


def test_names_of_the_data_that_occur_twice_are_worth_a_warning():
    frame = pandas_frame(data()).set_axis(["a"] * 6)
    with pytest.warns(UserWarning, match="'a' names several rows"):
        assert cvxnmf.factorize(frame, 2).row_names == ("a",) * 6


def test_frames_without_numbers_are_refused():
    polars = pytest.importorskip("polars")
    frame = polars_frame(data()).with_columns(polars.lit("x").alias("kind"))
    with pytest.raises(ValueError, match="several columns of text"):
        cvxnmf.factorize(frame, 2)
    with pytest.raises(ValueError, match="lazy"):
        cvxnmf.factorize(polars_frame(data()).lazy(), 2)


@pytest.mark.parametrize(("terms", "sentence"), [({"n": 0}, "at least 1"), ({"by": "size"}, "not known")])
def test_top_refuses_what_makes_no_sense(terms, sentence):
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.factorize(data(), 2).top(**terms)


def test_a_single_column_of_text_names_the_rows_of_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": ["Ann", "Bob", "Cy"], "x": [1.0, 2, 3], "y": [3, 2, 1.0]})
    result = cvxnmf.factorize(frame, 1)
    assert (result.row_names, result.column_names) == (("Ann", "Bob", "Cy"), ("x", "y"))
    with pytest.raises(ValueError, match="'who', 'city'"):
        cvxnmf.factorize(frame.assign(city=["a", "b", "c"]), 1)
    with pytest.raises(ValueError, match=r"not numbers \('city'\)"):
        cvxnmf.factorize(frame.assign(city=["a", "b", "c"]).set_index("who"), 1)


def test_factors_and_weights_with_names_are_taken_by_name():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    A = pd.DataFrame(rng.random((20, 6)), [f"r{i}" for i in range(20)], list("abcdef"))
    rows, W, found = rng.permutation(20), pd.DataFrame(rng.random((20, 6)), A.index, A.columns), cvxnmf.factorize(A, 2)
    U, V, w = pd.DataFrame(found.U, A.index), pd.DataFrame(found.V, A.columns), pd.Series(rng.random(20), A.index)
    value = cvxnmf.verify(A, found.U, found.V).value
    assert cvxnmf.verify(A, U.iloc[rows], V.iloc[::-1]).value == value
    assert cvxnmf.verify(A.to_numpy(), U, V).value == value
    assert cvxnmf.verify(A, U.iloc[rows], V, weights=W.iloc[rows, ::-1]).value == cvxnmf.verify(A, U, V, weights=W).value
    assert cvxnmf.factorize(A, 2, weights=w.iloc[rows]).value == cvxnmf.factorize(A, 2, weights=w.to_numpy()).value
    assert cvxnmf.classical_nmf(A, 2, weights=W.iloc[rows, ::-1]).value == cvxnmf.classical_nmf(A, 2, weights=W).value


@pytest.mark.parametrize("change", [lambda U: U.rename({"r0": "x"}), lambda U: U.rename({"r0": "r1"}), lambda U: U.iloc[:-1]])
def test_factors_with_other_names_are_refused(change):
    pd = pytest.importorskip("pandas")
    A = pd.DataFrame(np.ones((20, 6)), [f"r{i}" for i in range(20)])
    with pytest.raises(ValueError, match="U has names, but not 'r"):
        cvxnmf.verify(A, change(pd.DataFrame(np.ones((20, 1)), A.index)), np.ones((6, 1)))


@pytest.mark.parametrize("kind", ["Int64", "Float64", object])
def test_missing_entries_of_pandas_are_missing(kind):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.random.default_rng(0).integers(1, 9, (20, 6)).astype(float), columns=list("abcdef"))
    frame.iloc[2, 2] = np.nan
    other = frame.astype(kind)
    other.iloc[2, 2] = None
    assert cvxnmf.factorize(other, 2).value == cvxnmf.factorize(frame, 2).value
    assert cvxnmf.factorize(other, 2).column_names == tuple("abcdef")
