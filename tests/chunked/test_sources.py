"""Rows of files, of views of files and of dask chunks, also of files that change or break off."""

import os
import subprocess
import sys

import dask.array as da
import numpy as np
import pytest

import cvxnmf
from builders import random_factors
from cvxnmf.nmf.descent import classical_nmf
from row_chunk_builders import ENOUGH, mapped_file, planted_rows

SWEEPS = {"max_iter": 6, "tol": 0.0}


@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
@pytest.mark.parametrize("fortran_order", [False, True])
def test_files_of_any_type_and_order(dtype, fortran_order, tmp_path):
    A = (10 * planted_rows()).astype(dtype) if dtype is not bool else planted_rows() > 1.2
    file = mapped_file(tmp_path, A, fortran_order=fortran_order)
    terms = {"init": random_factors(A.shape, 3), **SWEEPS}
    whole, parts = classical_nmf(A, 3, **terms), classical_nmf(file, 3, memory_limit=ENOUGH, **terms)
    assert parts.U.dtype == whole.U.dtype == (np.float32 if dtype is np.float32 else np.float64)
    assert parts.value == pytest.approx(whole.value, rel=1e-6 if dtype is np.float32 else 1e-8)


@pytest.mark.parametrize("part", [np.s_[11:150], np.s_[::2], np.s_[5:, 3:20], np.s_[:, ::-1]])
def test_views_of_a_file(part, tmp_path):
    view = mapped_file(tmp_path, planted_rows())[part]
    terms = {"init": random_factors(view.shape, 3), **SWEEPS}
    assert classical_nmf(view, 3, memory_limit=ENOUGH, **terms).value == pytest.approx(
        classical_nmf(np.array(view), 3, **terms).value, rel=1e-8
    )


HEIGHTS = [(0, 1, 59), (30, 0, 30), (60, 0), (0, 60), (0, 0, 1, 0, 59, 0)]


def require_the_answers_of_memory(heights, **place):
    """Factors, values, bounds and checks of chunks of such heights are those of the array."""
    A = planted_rows(60)
    A[0] *= 10
    data, terms = da.from_array(A, chunks=(heights, (0, 13, 11))), {"init": random_factors(A.shape, 3), **SWEEPS}
    expected = classical_nmf(A, 3, **terms)
    run = classical_nmf(data, 3, **terms, **place)
    assert run.U.shape == expected.U.shape
    assert run.value == pytest.approx(expected.value, rel=1e-8)
    whole = cvxnmf.verify(A, expected.U, expected.V, effort=0)
    parts = cvxnmf.verify(data, expected.U, expected.V, **place)
    assert (parts.value, parts.bound) == pytest.approx((whole.value, whole.bound), rel=1e-9)
    assert parts.rigorous
    assert [parts.check(data), parts.check(A)] == pytest.approx([whole.bound] * 2, rel=1e-9)
    wide = cvxnmf.verify(data.T, expected.V, expected.U, **place)
    assert [wide.bound, wide.check(data.T)] == pytest.approx([whole.bound] * 2, rel=1e-9)


@pytest.mark.parametrize("heights", HEIGHTS)
def test_chunks_without_rows(heights):
    require_the_answers_of_memory(heights)


@pytest.mark.parametrize("heights", HEIGHTS)
def test_chunks_without_rows_on_a_cluster(heights, client):
    require_the_answers_of_memory(heights, client=client)


def test_a_file_that_is_cut_short_is_a_sentence(tmp_path, client):
    file = mapped_file(tmp_path, planted_rows())
    os.truncate(tmp_path / "a.npy", 20_000)
    for terms in ({"memory_limit": ENOUGH}, {"client": client}):
        with pytest.raises(ValueError, match=r"a\.npy ends before row \d+ of its 173 rows; it is incomplete"):
            classical_nmf(file, 3, **terms)
    (tmp_path / "a.npy").unlink()
    with pytest.raises(ValueError, match=r"a\.npy cannot be read: No such file"):
        classical_nmf(file, 3, memory_limit=ENOUGH)


def test_a_file_that_is_cut_short_in_mid_run(tmp_path):
    file = mapped_file(tmp_path, planted_rows())

    def cut(iterate):
        if iterate.iteration == 3:
            os.truncate(tmp_path / "a.npy", 20_000)

    with pytest.raises(ValueError, match="it is incomplete"):
        classical_nmf(file, 3, memory_limit=ENOUGH, callback=cut, **SWEEPS)


@pytest.mark.parametrize("mode", ["c", "r+", "w+"])
def test_changes_of_a_mapped_file_are_seen(mode, tmp_path, client):
    A = planted_rows()
    mapped_file(tmp_path, A)
    file = np.load(tmp_path / "a.npy", mmap_mode="c" if mode == "c" else "r+")
    if mode == "w+":
        file = np.memmap(tmp_path / "b.bin", dtype=A.dtype, mode=mode, shape=A.shape)
    file[:] = 2 * A
    file[0, 0] = 50.0
    changed = np.array(file)
    U, V = random_factors(A.shape, 3)
    whole = cvxnmf.verify(changed, U, V, effort=0)
    for place in ({"memory_limit": ENOUGH}, {"client": client}):
        parts = cvxnmf.verify(file, U, V, **place)
        assert (parts.value, parts.bound) == pytest.approx((whole.value, whole.bound), rel=1e-9)
        assert [parts.check(file), parts.check(changed)] == pytest.approx([whole.bound] * 2, rel=1e-9)
    np.testing.assert_array_equal(file, changed)


def test_a_file_that_is_replaced_is_read_as_it_was_mapped(tmp_path, client):
    A = planted_rows()
    U, V = random_factors(A.shape, 3)
    whole = cvxnmf.verify(A, U, V, effort=0)
    for other in (3 * A, A[:20]):
        file = mapped_file(tmp_path, A)
        np.save(tmp_path / "b.npy", other)
        os.replace(tmp_path / "b.npy", tmp_path / "a.npy")
        for place in ({"memory_limit": ENOUGH}, {"client": client}):
            parts = cvxnmf.verify(file, U, V, **place)
            assert (parts.value, parts.bound) == pytest.approx((whole.value, whole.bound), rel=1e-9)
            assert parts.check(file) == pytest.approx(whole.bound, rel=1e-9)


def test_a_file_that_is_replaced_in_mid_run(tmp_path):
    file = mapped_file(tmp_path, planted_rows())

    def replace(iterate):
        if iterate.iteration == 3:
            np.save(tmp_path / "b.npy", planted_rows(seed=1))
            os.replace(tmp_path / "b.npy", tmp_path / "a.npy")

    with pytest.raises(ValueError, match=r"a\.npy was replaced by another file while it was read; open it again\."):
        classical_nmf(file, 3, memory_limit=ENOUGH, callback=replace, **SWEEPS)


TRUNCATED = """
import os, sys, numpy as np, cvxnmf
def cut(iterate):
    if iterate.iteration == 3:
        os.truncate(sys.argv[1], 20_000)
for view in (lambda A: A[::-1], lambda A: A[:, ::2], lambda A: A[::2, ::-1].T, np.asarray):
    np.save(sys.argv[1], np.random.default_rng(0).random((173, 24)))
    A = view(np.load(sys.argv[1], mmap_mode="r"))
    try:
        cvxnmf.classical_nmf(A, 3, memory_limit="64 GB", max_iter=15, tol=0.0, callback=cut)
    except ValueError as error:
        print(error)
"""


def test_views_of_a_file_that_is_cut_short_in_mid_run(tmp_path):
    path = str(tmp_path / "a.npy")
    answer = subprocess.run([sys.executable, "-c", TRUNCATED, path], capture_output=True, text=True, timeout=60)
    assert answer.stdout.splitlines() == [f"{path} is incomplete, so fetch or write it again."] * 4
    assert answer.returncode == 0
