"""Data that the check reads in row chunks: memory-mapped files and dask arrays."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import prove
from cvxnmf.certificates import row_chunks
from cvxnmf.certificates.losses import KL, SQUARED_ERROR

TERMS = {"form": "rank", "loss": "mse", "n_components": 2, "symmetric": False}


def mapped(A, path, mode="r"):
    """The array as a memory-mapped file."""
    np.save(path, A)
    return np.load(path, mmap_mode=mode)


@pytest.fixture(params=[(40, 7), (7, 40), (1, 5)])
def table(request):
    return np.random.default_rng(0).random(request.param)


def test_a_pass_over_a_file_tells_what_the_array_would(table, tmp_path):
    A = mapped(table, tmp_path / "A.npy")
    assert row_chunks.is_read_in_chunks(A)
    assert not row_chunks.is_read_in_chunks(table)
    assert not row_chunks.is_read_in_chunks(A[0])
    thin = table if table.shape[0] >= table.shape[1] else table.T
    for loss, total in ((KL, table.sum()), (SQUARED_ERROR, (table**2).sum())):
        summary = row_chunks.summarise(A, loss, gram=True)
        assert summary.total == pytest.approx(total, rel=1e-13)
        assert (summary.largest, summary.complete) == (table.max(), True)
        assert np.allclose(summary.gram, thin.T @ thin, rtol=1e-13)
    assert row_chunks.summarise(A, KL).gram is None
    assert np.array_equal(np.vstack(list(row_chunks.row_chunks(A))), table)
    assert np.array_equal(np.hstack([chunk.T for chunk in row_chunks.row_chunks(A, transposed=True)]), table)


def test_a_file_of_several_chunks(tmp_path):
    n = row_chunks.CHUNK_ENTRIES // 3 + 5
    table = np.random.default_rng(0).random((n, 3))
    A = mapped(table, tmp_path / "A.npy")
    assert [len(chunk) for chunk in row_chunks.row_chunks(A)] == [n - 5, 5]
    summary = row_chunks.summarise(A, SQUARED_ERROR, gram=True)
    assert summary.total == pytest.approx((table**2).sum(), rel=1e-13)
    assert summary.largest == table.max()
    assert np.allclose(summary.gram, table.T @ table, rtol=1e-12)


def test_missing_entries_are_told_and_others_refused(tmp_path):
    table = np.random.default_rng(0).random((6, 4))
    table[2, 1] = np.nan
    summary = row_chunks.summarise(mapped(table, tmp_path / "nan.npy"), KL)
    assert not summary.complete
    assert summary.total == pytest.approx(np.nansum(table), rel=1e-14)
    with pytest.raises(cvxnmf.CertificateError, match="missing"):
        prove(mapped(table, tmp_path / "tail.npy"), "tail", TERMS, {})
    for bad in (-1e-300, np.inf, -np.inf):
        table[3, 2] = bad
        with pytest.raises(cvxnmf.CertificateError, match="nonnegative"):
            list(row_chunks.row_chunks(mapped(table, tmp_path / "bad.npy")))
    for kind in (complex, "S3", "datetime64[s]"):
        with pytest.raises(cvxnmf.CertificateError, match="nonnegative"):
            list(row_chunks.row_chunks(mapped(np.zeros((3, 3), dtype=kind), tmp_path / "kind.npy")))
    for kind in (np.float32, int, np.uint8, bool):
        (chunk,) = row_chunks.row_chunks(mapped(np.ones((3, 3), dtype=kind), tmp_path / "kind.npy"))
        assert chunk.dtype == np.float64
        assert (chunk == 1.0).all()


def test_a_file_that_was_cut_is_refused(tmp_path):
    A = mapped(np.ones((3000, 3)), tmp_path / "A.npy")
    root = row_chunks.mapped_file(A[5:].T)
    assert root is A
    assert row_chunks.mapped_file(np.ones(3)) is None
    assert row_chunks.file_is_complete(A)
    with open(tmp_path / "A.npy", "r+b") as file:
        file.truncate(3000 * 24)  # the heading pushes the last rows out
    assert not row_chunks.file_is_complete(A)
    with pytest.raises(cvxnmf.CertificateError, match="incomplete"):
        list(row_chunks.row_chunks(A))


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_copies_of_parts(tmp_path, mode, order):
    table = np.asarray(np.random.default_rng(0).random((50, 30)), order=order)
    A = mapped(table, tmp_path / "A.npy", mode)
    if mode != "r":
        A[3, 4] = 7.0  # of a private map this is in memory only, and must stay
        table[3, 4] = 7.0
    for part, true in ((A, table), (A[::-1], table[::-1]), (A[5:9, 2:], table[5:9, 2:]), (A[:, ::2], table[:, ::2])):
        copy = row_chunks.copy_mapped(part, row_chunks.mapped_file(part))
        assert np.array_equal(copy, true)
        assert not isinstance(copy, np.memmap)
    assert A[3, 4] == table[3, 4]


def test_dask_arrays_are_read_in_their_own_chunks():
    array = pytest.importorskip("dask.array")
    table = np.random.default_rng(0).random((9, 5))
    A = array.from_array(table, chunks=((4, 3, 2), (2, 3)))
    assert row_chunks.is_dask(A)
    assert row_chunks.is_read_in_chunks(A)
    assert [chunk.shape for chunk in row_chunks.row_chunks(A)] == [(4, 5), (3, 5), (2, 5)]
    assert [chunk.shape for chunk in row_chunks.row_chunks(A, transposed=True)] == [(2, 9), (3, 9)]
    summary = row_chunks.summarise(A, SQUARED_ERROR, gram=True)
    assert np.allclose(summary.gram, table.T @ table, rtol=1e-13)
    unknown = A[A[:, 0] > 0.5]
    assert not row_chunks.is_read_in_chunks(unknown)
    assert prove(A, "tail", TERMS, {}).bound == pytest.approx(np.sum(np.linalg.svd(table)[1][2:] ** 2), rel=1e-10)


def test_dask_arrays_of_sparse_chunks():
    array = pytest.importorskip("dask.array")
    table = np.random.default_rng(0).random((8, 5)) * (np.random.default_rng(1).random((8, 5)) < 0.5)
    A = array.from_array(table, chunks=(4, 5)).map_blocks(sp.csr_matrix)
    summary = row_chunks.summarise(A, SQUARED_ERROR, gram=True)
    assert np.allclose(summary.gram, table.T @ table, rtol=1e-13)
    assert summary.total == pytest.approx((table**2).sum(), rel=1e-13)
    assert summary.largest == table.max()


def test_copies_of_maps_and_maps_without_a_file(tmp_path):
    opened = np.memmap(tmp_path / "a.bin", dtype=float, mode="w+", shape=(4, 3))
    assert row_chunks.mapped_file(opened[1:]) is opened
    assert row_chunks.mapped_file(opened.copy()) is None

    class Nameless:
        def size(self):
            raise OSError

        def __len__(self):
            return 96

    class Whole(Nameless):
        def size(self):
            return 96

    class Short(Nameless):
        def size(self):
            return 95

    for held, verdict in ((Nameless(), True), (Whole(), True), (Short(), False)):
        assert row_chunks.file_is_complete(SimpleNamespace(offset=0, _mmap=held)) is verdict


@pytest.mark.parametrize("bad", [-1.0, -1e-300, np.inf])
def test_a_single_bad_entry_among_good_ones_is_refused(bad, tmp_path):
    table = np.random.default_rng(0).random((6, 4))
    table[3, 2] = bad
    with pytest.raises(cvxnmf.CertificateError, match="nonnegative"):
        list(row_chunks.row_chunks(mapped(table, tmp_path / "bad.npy")))


def test_other_libraries_have_chunks_or_compute_too():
    assert not row_chunks.is_dask(SimpleNamespace(chunks=(2, 2)))
    assert not row_chunks.is_dask(SimpleNamespace(compute=list))
