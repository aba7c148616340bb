"""Row chunks cover all rows once, within the budget."""

import pytest

from cvxnmf.linalg.row_chunks import row_chunks


@pytest.mark.parametrize("n_rows", [0, 1, 7, 100])
@pytest.mark.parametrize("entries_per_row", [0, 1, 30, 1000])
@pytest.mark.parametrize("budget", [1, 64, 1 << 18])
def test_chunks_cover_all_rows_once_within_the_budget(n_rows, entries_per_row, budget):
    chunks = list(row_chunks(n_rows, entries_per_row, budget))
    assert [row for chunk in chunks for row in range(chunk.start, chunk.stop)] == list(range(n_rows))
    assert all(chunk.stop - chunk.start == 1 or (chunk.stop - chunk.start) * entries_per_row <= budget for chunk in chunks)
