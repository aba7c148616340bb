"""Matrix Market files."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from cvxnmf.io import FileError, read_matrix

MARKET = [(s, f, d) for s in ("general", "symmetric", "skew-symmetric") for f in ("real", "integer") for d in (True, False)]


@pytest.mark.parametrize(("symmetry", "field", "sparse"), [*MARKET, ("general", "pattern", True), ("symmetric", "pattern", True)])
def test_matrix_market_is_read_as_scipy_reads_it(tmp_path, symmetry, field, sparse):
    A = np.random.default_rng(1).integers(0, 3, (5, 5))
    A = A if symmetry == "general" else A + A.T if symmetry == "symmetric" else A - A.T
    kind = float if field == "real" else int
    matrix = sp.coo_array(A.astype(kind)) if sparse else A.astype(kind)
    scipy.io.mmwrite(tmp_path / "a.mtx", matrix, field=field, symmetry=symmetry, comment="a comment")
    expected, found = scipy.io.mmread(tmp_path / "a.mtx"), read_matrix(tmp_path / "a.mtx").A
    expected = expected.toarray() if sparse else expected
    np.testing.assert_array_equal(found.toarray() if sparse else found, expected)


def test_a_matrix_of_far_more_rows_than_entries(tmp_path):
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix coordinate real general\n400000000 400000000 1\n1 1 1\n")
    with pytest.raises(FileError, match="announces 400,000,000 by 400,000,000 sparse rows and columns"):
        read_matrix(tmp_path / "a.mtx")
