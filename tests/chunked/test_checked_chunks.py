"""A chunk becomes checked numbers, or a sentence that names the chunk, the row and the column."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf.chunked.checked_chunks import Place, float64_chunk
from row_chunk_builders import dask_chunks, in_chunks, mapped_file, planted_rows, sparse_counts


def test_chunks_that_can_become_compressed_rows():
    class Coordinates:
        """What pydata's sparse arrays offer."""

        def __init__(self, block):
            self.block, self.shape, self.dtype, self.ndim = block, block.shape, block.dtype, 2

        def tocsr(self):
            return sp.csr_matrix(self.block)

    A = sparse_counts()
    found = float64_chunk(Coordinates(A.toarray()[:10]), Place(0, 0), 24)
    assert sp.issparse(found)
    np.testing.assert_array_equal(found.toarray(), A.toarray()[:10])


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (np.nan, r"Block 3 of A \(rows 90 to 119\) has NaN at row 97, column 4; data in blocks cannot have missing entries"),
        (np.inf, r"Block 3 of A \(rows 90 to 119\) has an infinite entry at row 97, column 4; replace it"),
        (-1.0, r"Block 3 of A \(rows 90 to 119\) has a negative entry at row 97, column 4; only nonnegative"),
    ],
)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_wrong_entries_are_named_by_chunk(value, sentence, kind, client, tmp_path):
    A = planted_rows()
    A[97, 4] = value
    data = dask_chunks(A if kind == "dense" else sp.csr_array(A))
    forms = [(data, None), (data, client)]
    if kind == "dense":
        forms.append((mapped_file(tmp_path, A), None))
    for form, place in forms:
        with pytest.raises(ValueError, match=sentence):
            in_chunks(form, place, largest_chunk=8 * 24 * 30)
