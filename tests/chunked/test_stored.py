"""Matrices in HDF5 files are read by slices."""

import numpy as np
import pytest

import cvxnmf
from cvxnmf.chunked.sources import StoredRows

h5py = pytest.importorskip("h5py")


def test_a_dataset_is_factored_like_the_array(tmp_path):
    rng = np.random.default_rng(0)
    A = rng.random((200, 3)) @ rng.random((3, 20)) + 0.1 * rng.random((200, 20))
    with h5py.File(tmp_path / "data.h5", "w") as file:
        stored = file.create_dataset("X", data=A)
        result = cvxnmf.factorize(stored, 3, column_names=range(20))
    assert result.value <= 1.01 * cvxnmf.factorize(A, 3).value
    assert result.certificate.bound <= result.value


def test_columns_cannot_be_read_in_rows():
    class ByColumns:
        format, shape, dtype = "csc", (3, 3), np.dtype(float)

    with pytest.raises(ValueError, match="store it as csr"):
        StoredRows(ByColumns())
