"""Tables of numbers in text."""

import numpy as np
import pytest
from files import sentence_of, written

from cvxnmf.io import read_matrix


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [
        ("1,2\n3,4\n", None, None),
        ("p,q\n1,2\n3,4\n", None, ("p", "q")),
        ("x,1,2\ny,3,4\n", ("x", "y"), None),
        ("name,p,q\nx,1,2\ny,3,4\n", ("x", "y"), ("p", "q")),
        (",0,1\n0,1,2\n1,3,4\n", ("0", "1"), ("0", "1")),
        ("p q\nx 1 2\ny 3 4\n", ("x", "y"), ("p", "q")),
        ("1;2,0\n3;4\n", None, None),
    ],
)
def test_tables_with_and_without_names(tmp_path, text, rows, columns):
    table = read_matrix(written(tmp_path, "t.csv", text))
    np.testing.assert_array_equal(table.A, [[1, 2], [3, 4]])
    assert (table.rows, table.columns) == (rows, columns)


def test_missing_entries_of_tables_are_nan(tmp_path):
    table = read_matrix(written(tmp_path, "t.csv", "a,b,c\n1,,NA\nnan,2,?\n"))
    np.testing.assert_array_equal(table.A, [[1, np.nan, np.nan], [np.nan, 2, np.nan]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,2\n3\n", ", line 2: expected 2 columns, found 1."),
        ("1,2\n3,x\n", ", line 2: expected a number in column 2, found 'x'."),
        ("a,1,2\nb,3,1_0\n", ", line 2: expected a number in column 3, found '1_0'."),
        ("1,x\n3,4\n", ", line 1: expected a number in column 2, found 'x'."),
        ("1,x,2\n3,4,5\n", ", line 1: expected a number in column 2, found 'x'."),
        ("p,q\n", "a header and no numbers"),
        ("p\nq\nr\n", "names and no numbers"),
        ("# nothing\n", "only comments"),
    ],
)
def test_malformed_tables_are_named(tmp_path, text, words):
    assert words in sentence_of(written(tmp_path, "t.csv", text), read_matrix)


@pytest.mark.parametrize(("heading", "told"), [("who,a,b", False), (",a,b", False), (",0,1", True), ("who,2019,2020", True)])
def test_only_a_header_that_may_be_numbers_is_told(tmp_path, heading, told):
    (tmp_path / "t.csv").write_text(f"{heading}\nAna,1,2\nBen,3,4\n")
    table = read_matrix(tmp_path / "t.csv", header=True)
    assert table.A.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert bool(table.notes) is told
