"""numpy's npy and npz, and scipy's sparse npz."""

import io
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf.io import FileError, map_matrix, read_matrix


def test_an_array_of_objects_is_to_be_saved_as_float(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([[1, None]], dtype=object), allow_pickle=True)
    for read in (read_matrix, map_matrix):
        with pytest.raises(FileError, match="save it as float"):
            read(tmp_path / "objects.npy")


def npy_header(shape, dtype="<f8"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"shape": shape, "fortran_order": False, "descr": dtype})
    return stream.getvalue()


@pytest.mark.parametrize("shape", [(10**7, 10**7), (10**30, 1), (-1, 5)])
@pytest.mark.parametrize("packed", [False, True])
def test_a_header_that_announces_more_than_there_is(tmp_path, shape, packed):
    content = npy_header(shape) + bytes(80)
    path = tmp_path / ("a.npz" if packed else "a.npy")
    if packed:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("A.npy", content)
    else:
        path.write_bytes(content)
    for read in (read_matrix,) if packed else (read_matrix, map_matrix):
        with pytest.raises(FileError, match="incomplete or damaged"):
            read(path)


def test_members_that_unpack_to_far_more_than_the_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("A.npy", npy_header((2, 2)) + bytes(32))
        archive.infolist()[0].file_size = 1 << 40
    with pytest.raises(FileError, match=r"announces 1 arrays, which take 1,024\.0 GiB, in \d+ bytes"):
        read_matrix(tmp_path / "a.npz")


def test_a_sparse_matrix_of_far_more_rows_than_entries(tmp_path):
    one = np.ones(1, dtype=np.int64)
    np.savez(tmp_path / "a.npz", format=b"coo", shape=[4 * 10**9, 3], data=one, row=one, col=one)
    with pytest.raises(FileError, match="announces 4,000,000,000 by 3 sparse rows and columns"):
        read_matrix(tmp_path / "a.npz")


@pytest.mark.parametrize(("name", "value"), [("indices", 99), ("indices", -1), ("indptr", 7)])
def test_indices_outside_of_a_sparse_matrix(tmp_path, name, value):
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(np.eye(4)))
    arrays = dict(np.load(tmp_path / "a.npz"))
    arrays[name][1] = value
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(FileError, match=r"cannot be read as a numpy \.npz file"):
        read_matrix(tmp_path / "a.npz")


@pytest.mark.parametrize("header", [b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2", b"{'descr': '<f8'}", b"\x00\xff"])
def test_headers_that_are_no_headers(tmp_path, header):
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64))
    for read in (read_matrix, map_matrix):
        with pytest.raises(FileError, match=r"cannot be read as a numpy \.npy file"):
            read(path)
