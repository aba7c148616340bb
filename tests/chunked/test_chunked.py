"""Data in blocks of rows: in memory, in files and on a Dask cluster the same answer, in bounded memory."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster
from sklearn.base import clone

import cvxnmf
from builders import low_rank, random_factors
from cvxnmf import chunked as engine
from cvxnmf import cli, validation
from cvxnmf.chunked import cluster as cluster_blocks
from cvxnmf.chunked import connection, local, memory, rows
from cvxnmf.linalg.leading import krylov_pairs
from cvxnmf.nmf.descent import classical_nmf

ENOUGH = "64 GB"
SWEEPS = {"max_iter": 15, "tol": 0.0}


@pytest.fixture(scope="module")
def client():
    """Two worker processes, for all tests."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL) as two,
        Client(two, set_as_default=False) as found,
    ):
        yield found


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of a few rows, the last one shorter."""
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 8 * 24 * 20)
    monkeypatch.setattr(cluster_blocks, "LARGEST_BLOCK", 8 * 24 * 20)
    monkeypatch.setattr(memory, "SMALLEST_BLOCK", 8 * 24 * 20)


def planted(m=173, n=24, k=4, seed=0):
    return low_rank(m, n, k, seed, noise=0.2)


def counts(m=173, n=24, seed=0):
    return sp.csr_array(np.random.default_rng(seed).poisson(0.7, (m, n)).astype(float))


def mapped(tmp_path, A, **options):
    """A memory-mapped file."""
    if options.get("fortran_order"):
        file = np.lib.format.open_memmap(tmp_path / "a.npy", mode="w+", dtype=A.dtype, shape=A.shape, **options)
        file[:] = A
        file.flush()
    else:
        np.save(tmp_path / "a.npy", A)
    return np.load(tmp_path / "a.npy", mmap_mode="r")


def chunked(A, height=30):
    """A dask array of two columns of chunks, sparse if A is."""
    if not sp.issparse(A):
        return da.from_array(A, chunks=(height, 13))
    dense = da.from_array(A.toarray(), chunks=(height, 13))
    return dense.map_blocks(lambda block: sp.csr_array(block), meta=np.empty((0, 0)))


# --- the same answer everywhere -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("method", "loss"),
    [
        ("hals", "mse"),
        ("multiplicative", "mse"),
        ("als", "mse"),
        ("quasi-newton", "mse"),
        ("multiplicative", "kl"),
        ("hals", "kl"),
    ],
)
def test_memory_file_and_cluster_agree(method, loss, kind, client, tmp_path):
    A = planted() if kind == "dense" else counts()
    terms = {"method": method, "loss": loss, "init": random_factors(A.shape, 4), **SWEEPS}
    runs = [
        classical_nmf(A, 4, memory_limit=ENOUGH, **terms),
        classical_nmf(chunked(A), 4, **terms),
        classical_nmf(chunked(A), 4, client=client, **terms),
        classical_nmf(A, 4, client=client, **terms),
    ]
    if kind == "dense":
        runs.append(classical_nmf(mapped(tmp_path, A), 4, memory_limit=ENOUGH, **terms))
        runs.append(classical_nmf(mapped(tmp_path, A), 4, client=client, **terms))
    if (method, loss) != ("hals", "kl"):  # moves V by multiplication in blocks
        runs.append(classical_nmf(A, 4, **terms))
    assert [run.value for run in runs] == pytest.approx([runs[0].value] * len(runs), rel=1e-8)
    assert all(len(run.history) == SWEEPS["max_iter"] for run in runs)
    for run in runs:
        np.testing.assert_allclose(run.U, runs[0].U, rtol=1e-5, atol=1e-7)


def test_extrapolation_and_restarts_are_those_in_memory():
    A = planted(seed=3)
    terms = {"init": "nndsvd", "max_iter": 150, "tol": 0.0}
    whole, parts = classical_nmf(A, 4, **terms), classical_nmf(A, 4, memory_limit=ENOUGH, **terms)
    assert [i.value for i in parts.history] == pytest.approx([i.value for i in whole.history], rel=1e-8)


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_penalties(loss):
    A = planted()
    terms = {
        "method": "multiplicative",
        "loss": loss,
        "init": random_factors(A.shape, 3),
        "l1": (0.1, 0.2),
        "l2": (0.3, 0.4),
        **SWEEPS,
    }
    whole, parts = classical_nmf(A, 3, **terms), classical_nmf(A, 3, memory_limit=ENOUGH, **terms)
    assert parts.value == pytest.approx(whole.value, rel=1e-8)


@pytest.mark.parametrize("loss", ["mse", "kl"])
@pytest.mark.parametrize("method", ["hals", "multiplicative"])
def test_the_objective_never_rises(method, loss):
    values = [i.value for i in classical_nmf(counts(), 4, method, loss, memory_limit=ENOUGH, max_iter=80, tol=0.0).history]
    assert all(after <= before * (1 + 1e-12) for before, after in zip(values, values[1:], strict=False))


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_the_value_is_that_of_the_factors(loss):
    A = planted()
    run = classical_nmf(A, 4, loss=loss, memory_limit=ENOUGH, **SWEEPS)
    assert run.value == pytest.approx(cvxnmf.verify(A, run.U, run.V, loss, effort=0).value, rel=1e-12)


def test_exact_data_end_at_zero():
    rng = np.random.default_rng(0)
    A = rng.random((90, 2)) @ rng.random((2, 24))
    run = classical_nmf(A, 2, memory_limit=ENOUGH, max_iter=3000, tol=1e-8)
    assert run.value < 1e-10 * np.sum(A**2)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, bool])
@pytest.mark.parametrize("fortran_order", [False, True])
def test_files_of_any_type_and_order(dtype, fortran_order, tmp_path):
    A = (10 * planted()).astype(dtype) if dtype is not bool else planted() > 1.2
    file = mapped(tmp_path, A, fortran_order=fortran_order)
    terms = {"init": random_factors(A.shape, 3), **SWEEPS}
    whole, parts = classical_nmf(A, 3, **terms), classical_nmf(file, 3, memory_limit=ENOUGH, **terms)
    assert parts.U.dtype == whole.U.dtype == (np.float32 if dtype is np.float32 else np.float64)
    assert parts.value == pytest.approx(whole.value, rel=1e-6 if dtype is np.float32 else 1e-8)


@pytest.mark.parametrize("part", [np.s_[11:150], np.s_[::2], np.s_[5:, 3:20], np.s_[:, ::-1]])
def test_views_of_a_file(part, tmp_path):
    view = mapped(tmp_path, planted())[part]
    terms = {"init": random_factors(view.shape, 3), **SWEEPS}
    assert classical_nmf(view, 3, memory_limit=ENOUGH, **terms).value == pytest.approx(
        classical_nmf(np.array(view), 3, **terms).value, rel=1e-8
    )


def test_chunks_that_can_become_compressed_rows():
    class Coordinates:
        """What pydata's sparse arrays offer."""

        def __init__(self, block):
            self.block, self.shape, self.dtype, self.ndim = block, block.shape, block.dtype, 2

        def tocsr(self):
            return sp.csr_matrix(self.block)

    A = counts()
    found = engine.local.numbers(Coordinates(A.toarray()[:10]), engine.local.Place(0, 0), 24)
    assert sp.issparse(found)
    np.testing.assert_array_equal(found.toarray(), A.toarray()[:10])


@pytest.mark.parametrize("where", ["local", "cluster"])
@pytest.mark.parametrize("heights", [(0, 1, 59), (30, 0, 30), (60, 0), (0, 60), (0, 0, 1, 0, 59, 0)])
def test_chunks_without_rows(heights, where, request):
    A = planted(60)
    A[0] *= 10
    data, terms = da.from_array(A, chunks=(heights, (0, 13, 11))), {"init": random_factors(A.shape, 3), **SWEEPS}
    place = {"client": request.getfixturevalue("client")} if where == "cluster" else {}
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


def test_same_bits_whatever_the_threads(client):
    A = planted()
    with engine.opened(A, 3, ENOUGH) as matrix:
        runs = []
        for threads in (1, 2, 5):
            matrix.blocks.threads = threads
            runs.append(classical_nmf(matrix, 3, **SWEEPS))
    twice = [classical_nmf(chunked(A), 3, client=client, **SWEEPS) for _ in range(2)]
    assert all(np.array_equal(run.U, runs[0].U) for run in runs)
    assert np.array_equal(twice[0].U, twice[1].U)
    assert np.array_equal(twice[0].V, twice[1].V)


def test_data_are_not_changed():
    A = planted()
    before = A.copy()
    classical_nmf(A, 3, memory_limit=ENOUGH, **SWEEPS)
    np.testing.assert_array_equal(A, before)


# --- the protocol ---------------------------------------------------------------------------------------------------------------


def test_results_come_in_order_and_errors_come_through():
    def slow(number):
        time.sleep(0.02 if number == 0 else 0.0)
        return number

    assert list(local.in_order(slow, 9, 3)) == list(range(9))

    def broken(number):
        if number == 4:
            raise ValueError("four")
        return number

    with pytest.raises(ValueError, match="four"):
        list(local.in_order(broken, 9, 3))


@pytest.mark.parametrize("where", ["memory", "cluster"])
def test_a_block_matrix_multiplies_like_a_matrix(where, client):
    A = planted()
    V, U = random_factors(A.shape[::-1], 3)
    with engine.opened(A, 3, ENOUGH if where == "memory" else None, client if where == "cluster" else None) as matrix:
        np.testing.assert_allclose(matrix @ V, A @ V)
        np.testing.assert_allclose(matrix.T @ U, A.T @ U)
        np.testing.assert_array_equal(matrix[np.array([5, 100])], A[[5, 100]])
        np.testing.assert_array_equal(matrix.T[np.array([2, 3])], A.T[[2, 3]])
        np.testing.assert_allclose(matrix.gram(), A.T @ A)
        np.testing.assert_allclose(matrix.gram_product(V), A.T @ (A @ V))
        assert matrix.energy == pytest.approx(np.sum(A**2), rel=1e-14)
        assert (matrix.mean(), matrix.max()) == pytest.approx((A.mean(), A.max()))
        assert matrix.entropy == pytest.approx(np.sum(A * np.log(A) - A))


def test_each_block_is_read_once_per_sweep(tmp_path, monkeypatch):
    file, reads, real = mapped(tmp_path, planted()), [], rows.FileRows.read
    monkeypatch.setattr(rows.FileRows, "read", lambda self, first, stop: reads.append(first) or real(self, first, stop))
    terms = {"method": "multiplicative", "init": random_factors(file.shape, 3), "tol": 0.0, "memory_limit": ENOUGH}
    numbers = []
    for sweeps in (5, 15):
        reads.clear()
        classical_nmf(file, 3, max_iter=sweeps, **terms)
        numbers.append(len(reads))
    count = len(set(reads))
    assert count == 9
    assert numbers[1] - numbers[0] == 10 * count
    assert numbers[0] == (5 + 3) * count  # the survey, the value of the start and that of the result


def test_leading_pairs_by_few_products():
    A = np.random.default_rng(0).random((300, 80)) * np.linspace(1, 0.1, 80) ** 4
    gram = A.T @ A
    values, vectors = krylov_pairs(lambda X: gram @ X, 80, 3)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(gram)[::-1][:3], rtol=1e-9)
    np.testing.assert_allclose(gram @ vectors, vectors * values, atol=1e-4 * values[0])


# --- memory ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "size"),
    [
        ("2 GB", 2 * 10**9),
        ("500MiB", 500 << 20),
        ("1.5k", 1500),
        (" 70000 b ", 70_000),
        (12345, 12345),
        ("3G", 3 * 10**9),
        ("1e3 MB", 10**9),
        ("1.5E+9", 1_500_000_000),
    ],
)
def test_sizes(words, size):
    assert memory.limit_in_bytes(words) == size


@pytest.mark.parametrize(
    ("words", "meant"), [(4, "4 GB"), ("4", "4 GB"), (0.5, "0.5 GB"), ("16 b", "16 GB"), (2000, "2000 MB"), ("8e3", "8000 MB")]
)
def test_a_few_bytes_were_meant_in_another_unit(words, meant):
    with pytest.raises(ValueError, match=rf"memory_limit=.* bytes; did you mean '{meant}'\?"):
        classical_nmf(planted(), 3, memory_limit=words)


@pytest.mark.parametrize("words", ["much", "2 XB", "-1", "", "1 i", "1e", "1e999 GB", float("inf"), -5, float("nan"), True, [3]])
def test_sizes_that_are_none(words):
    with pytest.raises(ValueError, match="memory_limit"):
        memory.limit_in_bytes(words)


def test_too_little_memory_is_refused_with_what_is_needed(tmp_path):
    file = mapped(tmp_path, planted())
    with pytest.raises(ValueError, match=r"A memory limit of 1 MB is too little.* give at least [\d,]+ MB\.") as refused:
        classical_nmf(file, 3, memory_limit="1 MB")
    needed = str(refused.value).split("at least ")[1].removesuffix(".").replace(",", "")
    classical_nmf(file, 3, memory_limit=f"{int(needed.split()[0]) + 20} MB", max_iter=1)  # the process has grown a little


def test_a_plan_keeps_to_the_limit(monkeypatch):
    monkeypatch.setattr(memory, "resident", lambda: 0)
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 8 << 20)
    limit = 300 << 20
    plan = memory.planned((10**6, 1000), 8, 2, limit, 4)
    used = plan.threads * plan.height * 1000 * 40 + 16 * (8 * 10**6 + 12 * 1000) + memory.RESERVE
    assert used <= limit
    assert plan.threads >= 1
    small = memory.planned((10**6, 1000), 8, 2, used - plan.threads * plan.height * 40000 + (4 << 20), 4)
    assert small.threads * small.height < plan.threads * plan.height
    assert not memory.gram_fits(1000, small.room)


MEASURED = """
import sys, re, numpy as np, cvxnmf
path, limit, call = sys.argv[1], int(sys.argv[2]), sys.argv[3]
A = np.load(path, mmap_mode="r")
if call == "factorize":
    run = cvxnmf.factorize(A, 4, max_iter=2, memory_limit=limit)
    run.certificate.check(A)
else:
    cvxnmf.NMF(4, solver="cd", tol=0, max_iter=2, memory_limit=limit).fit(A)
print(1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is told on Linux only")
@pytest.mark.parametrize("call", ["factorize", "estimator"])
def test_the_peak_stays_below_the_limit_on_a_larger_file(call, tmp_path_factory):
    path, limit = tmp_path_factory.getbasetemp() / "large.npy", 380_000_000
    if not path.exists():
        file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(90_000, 600))
        rng = np.random.default_rng(0)
        for first in range(0, len(file), 15_000):
            file[first : first + 15_000] = rng.random((15_000, 600))
        file.flush()
    assert path.stat().st_size > limit
    answer = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path), str(limit), call], capture_output=True, text=True, check=True, timeout=300
    )
    assert int(answer.stdout) < limit


WIDE = """
import sys, re, numpy as np, cvxnmf
cvxnmf.factorize(np.load(sys.argv[1], mmap_mode="r"), 8, loss=sys.argv[3], max_iter=3, memory_limit=int(sys.argv[2]))
print(1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is told on Linux only")
@pytest.mark.parametrize(("loss", "limit"), [("mse", 330_000_000), ("kl", 340_000_000)])
def test_the_peak_stays_below_the_limit_on_a_wide_file(loss, limit, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "wide.npy"
    if not path.exists():
        np.save(path, np.random.default_rng(0).random((1500, 20_000), dtype=np.float32))
    answer = subprocess.run(
        [sys.executable, "-c", WIDE, str(path), str(limit), loss], capture_output=True, text=True, check=True, timeout=300
    )
    assert int(answer.stdout) < limit


def test_a_file_too_large_for_the_machine_goes_in_blocks(tmp_path, monkeypatch):
    file = mapped(tmp_path, planted())
    assert not engine.wanted(file)
    monkeypatch.setattr(validation, "physical_memory", lambda: 100.0)
    assert engine.wanted(file)
    monkeypatch.setattr(validation, "physical_memory", lambda: 5.9 * 8 * file.size)
    assert engine.wanted(file)
    assert not engine.wanted(np.array(file))


# --- factorize, verify, certificates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "file", "chunks", "cluster"])
def test_factorize_is_certified(where, client, tmp_path):
    A = planted()
    data = {"memory": A, "file": mapped(tmp_path, A)}.get(where, chunked(A))
    terms = {"memory": {"memory_limit": ENOUGH}, "file": {"memory_limit": ENOUGH}, "cluster": {"client": client}}.get(where, {})
    result, whole = cvxnmf.factorize(data, 4, max_iter=25, **terms), cvxnmf.factorize(A, 4, max_iter=25, effort=0)
    assert result.value <= whole.value * 1.01
    certificate = result.certificate
    assert (certificate.kind, certificate.rigorous) == ("tail", True)
    assert certificate.bound == pytest.approx(whole.certificate.bound, rel=1e-9)
    assert certificate.bound <= min(result.value, whole.value)
    for form in (A, data, mapped(tmp_path, A), chunked(A), sp.csr_array(A)):
        assert certificate.check(form) == pytest.approx(certificate.bound, abs=1e-11 * np.sum(A**2))
    with pytest.raises(cvxnmf.CertificateError):
        certificate.check(mapped(tmp_path, A * 1.001))


def test_sparse_chunks_are_certified(client):
    A = counts()
    result = cvxnmf.factorize(chunked(A), 3, client=client, max_iter=20)
    assert result.certificate.check(A) == pytest.approx(result.certificate.bound, rel=1e-9)
    assert result.certificate.check(chunked(A)) == pytest.approx(result.certificate.bound, rel=1e-9)


@pytest.mark.parametrize("loss", ["mse", "kl"])
@pytest.mark.parametrize("turned", [False, True])
def test_verify_in_blocks(loss, turned, tmp_path, client):
    A = planted().T.copy() if turned else planted()
    U, V = random_factors(A.shape, 3)
    whole = cvxnmf.verify(A, U, V, loss, effort=0)
    for found in (
        cvxnmf.verify(mapped(tmp_path, A), U, V, loss, memory_limit=ENOUGH),
        cvxnmf.verify(da.from_array(A, chunks=(7, 24)), U, V, loss, client=client),
    ):
        assert (found.value, found.bound) == pytest.approx((whole.value, whole.bound), rel=1e-10)
        assert found.kind == whole.kind
        assert found.check(mapped(tmp_path, A)) == pytest.approx(found.bound, rel=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_no_factorisation_is_below_a_bound_from_blocks(seed):
    A = planted(60, 24, 3, seed)
    certificate = cvxnmf.verify(A, *random_factors(A.shape, 3), memory_limit=ENOUGH)
    best = np.sum(np.linalg.svd(A, compute_uv=False)[3:] ** 2)
    assert certificate.bound <= best
    assert certificate.bound == pytest.approx(best, rel=1e-8)


def test_wide_and_tall_data_without_room_for_a_gram_matrix(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "LARGEST_GRAM", 10)
    A = planted()
    U, V = random_factors(A.shape, 3)
    found = cvxnmf.verify(A, U, V, memory_limit=ENOUGH)
    assert (found.kind, found.rigorous) == ("lanczos", False)
    assert found.bound == pytest.approx(cvxnmf.verify(A, U, V, effort=0).bound, rel=1e-3)
    for form in (A, mapped(tmp_path, A), chunked(A), chunked(counts() * 0 + sp.csr_array(A))):
        assert found.check(form) == pytest.approx(found.bound, rel=1e-9)
    spoilt = {"vectors": found.witness["vectors"] * 2.0}
    with pytest.raises(cvxnmf.CertificateError, match="orthonormal"):
        cvxnmf.certificates.prove(A, "lanczos", found.statement, spoilt)
    result = cvxnmf.factorize(A, 3, memory_limit=ENOUGH)
    assert result.certificate.kind == "lanczos"
    assert result.value <= cvxnmf.factorize(A, 3, effort=0).value * 1.01


def test_a_check_refuses_files_and_chunks_that_are_wrong(tmp_path):
    A = planted()
    certificate = cvxnmf.verify(A, *random_factors(A.shape, 3), effort=0)
    for value in (-1.0, np.inf, np.nan):
        wrong = A.copy()
        wrong[70, 3] = value
        for form in (mapped(tmp_path, wrong), chunked(wrong)):
            with pytest.raises(cvxnmf.CertificateError):
                certificate.check(form)
    file = mapped(tmp_path, A)
    os.truncate(tmp_path / "a.npy", 5000)
    with pytest.raises(cvxnmf.CertificateError, match="incomplete"):
        certificate.check(file)


def test_a_start_is_never_worsened():
    A = planted()
    first = cvxnmf.factorize(A, 3, memory_limit=ENOUGH, max_iter=20)
    again = cvxnmf.factorize(A, start=first, memory_limit=ENOUGH)
    assert again.n_components == 3
    assert again.value <= first.value


def test_stopping_and_interrupts_keep_the_best(client):
    A = planted()
    stopped = cvxnmf.factorize(chunked(A), 3, client=client, callback=lambda iterate: iterate.iteration == 3)
    assert stopped.status is cvxnmf.Status.INTERRUPTED
    assert len(stopped.history) == 3

    def interrupt(iterate):
        if iterate.iteration == 5:
            raise KeyboardInterrupt

    with pytest.raises(cvxnmf.Interrupted) as caught:
        cvxnmf.factorize(A, 3, memory_limit=ENOUGH, callback=interrupt)
    assert caught.value.solution.value < np.sum(A**2)


# --- the estimator --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_the_estimator_in_blocks(loss, tmp_path, client):
    X, terms = planted(), {"solver": "mu", "beta_loss": loss, "max_iter": 20, "tol": 0.0}
    whole = cvxnmf.NMF(4, **terms)
    W = whole.fit_transform(X)
    in_file = cvxnmf.NMF(4, memory_limit=ENOUGH, **terms)
    np.testing.assert_allclose(in_file.fit_transform(mapped(tmp_path, X)), W, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(in_file.transform(X), in_file.transform(mapped(tmp_path, X)))
    with client.as_current():
        on_cluster = cvxnmf.NMF(4, **terms).fit(chunked(X))
        np.testing.assert_allclose(on_cluster.transform(chunked(X)), W, rtol=1e-6, atol=1e-9)
    for model in (in_file, on_cluster):
        assert model.n_features_in_ == 24
        assert model.reconstruction_err_ == pytest.approx(whole.reconstruction_err_, rel=1e-9)
        assert model.certificate_.bound == pytest.approx(whole.certificate_.bound, rel=1e-9)
        assert model.certificate_.check(X) == pytest.approx(model.certificate_.bound, rel=1e-9)


def test_the_estimator_keeps_its_parameters():
    model = cvxnmf.NMF(3, memory_limit="2 GB")
    assert clone(model).get_params()["memory_limit"] == "2 GB"
    model.fit(planted())
    assert model.get_params() == clone(model).get_params()
    default = cvxnmf.NMF(3, memory_limit=ENOUGH).fit(planted().astype(np.float32))
    assert default.components_.dtype == np.float32
    with pytest.raises(ValueError, match="24 features"):
        model.transform(planted()[:, :20])


def test_the_number_of_components_of_blocks_must_be_given():
    for call in (
        lambda: cvxnmf.factorize(planted(), memory_limit=ENOUGH),
        lambda: cvxnmf.NMF(memory_limit=ENOUGH).fit(planted()),
    ):
        with pytest.raises(ValueError, match="number of components of data in blocks must be given"):
            call()


# --- what is refused ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (np.nan, r"Block 3 of A \(rows 90 to 119\) has NaN at row 97, column 4; data in blocks cannot have missing entries"),
        (np.inf, r"Block 3 of A \(rows 90 to 119\) has an infinite entry at row 97, column 4; replace it"),
        (-1.0, r"Block 3 of A \(rows 90 to 119\) has a negative entry at row 97, column 4; only nonnegative"),
    ],
)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_wrong_entries_are_named_by_block(value, sentence, kind, client, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_BLOCK", 8 * 24 * 30)
    A = planted()
    A[97, 4] = value
    data = chunked(A if kind == "dense" else sp.csr_array(A))
    calls = [lambda: classical_nmf(data, 3), lambda: cvxnmf.factorize(data, 3, client=client)]
    if kind == "dense":
        file = mapped(tmp_path, A)
        calls.append(lambda: classical_nmf(file, 3, memory_limit=ENOUGH))
        calls.append(lambda: cvxnmf.verify(file, *random_factors(A.shape, 3), memory_limit=ENOUGH))
    for call in calls:
        with pytest.raises(ValueError, match=sentence):
            call()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda A: classical_nmf(A, 3, "gradient", memory_limit=ENOUGH),
            "'gradient' does not work on data in blocks; use one of",
        ),
        (lambda A: classical_nmf(A, 3, "sparse", memory_limit=ENOUGH), "'sparse' does not work on data in blocks"),
        (lambda A: classical_nmf(A, 3, symmetric=True, memory_limit=ENOUGH), "cannot be factored as UU'; use symmetric=False"),
        (lambda A: cvxnmf.factorize(A, 3, symmetric=True, memory_limit=ENOUGH), "cannot be factored as UU'; use symmetric=False"),
        (lambda A: cvxnmf.verify(A, A[:, :3], memory_limit=ENOUGH), "cannot be verified as UU'; give V"),
        (lambda A: classical_nmf(A, 3, init="convex", memory_limit=ENOUGH), "init='convex' is not known; choose one of 'nndsvd'"),
        (lambda A: classical_nmf(A, 3, init=3, memory_limit=ENOUGH), "init must be one of 'nndsvd', 'random' or a pair"),
        (lambda A: classical_nmf(A[0], 3, memory_limit=ENOUGH), "two-dimensional"),
        (lambda A: classical_nmf(A[:0], 3, memory_limit=ENOUGH), "is empty"),
        (lambda A: classical_nmf(A * 0, 3, memory_limit=ENOUGH), "all zeros"),
        (lambda A: classical_nmf(A * 1e60, 3, memory_limit=ENOUGH), "rescale A"),
        (lambda A: classical_nmf(A.astype(complex), 3, memory_limit=ENOUGH), "not real numbers"),
        (lambda A: classical_nmf(A.astype(object), 3, memory_limit=ENOUGH), "not real numbers"),
        (lambda A: classical_nmf(np.ma.masked_greater(A, 1.0), 3, memory_limit=ENOUGH), "masked"),
        (lambda A: classical_nmf(A, 300, memory_limit=ENOUGH), "larger than both sides"),
        (lambda A: classical_nmf(A, 3, client=5), "client must be a distributed.Client or the address"),
        (lambda A: classical_nmf(chunked(A)[chunked(A)[:, 0] > 0.5], 3), "compute_chunk_sizes"),
    ],
)
def test_what_cannot_be_done_in_blocks_is_said_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(planted())


def test_a_file_that_is_cut_short_is_a_sentence(tmp_path, client):
    file = mapped(tmp_path, planted())
    os.truncate(tmp_path / "a.npy", 20_000)
    for terms in ({"memory_limit": ENOUGH}, {"client": client}):
        with pytest.raises(ValueError, match=r"a\.npy ends before row \d+ of its 173 rows; it is incomplete"):
            classical_nmf(file, 3, **terms)
    (tmp_path / "a.npy").unlink()
    with pytest.raises(ValueError, match=r"a\.npy cannot be read: No such file"):
        classical_nmf(file, 3, memory_limit=ENOUGH)


def test_a_file_that_is_cut_short_in_mid_run(tmp_path):
    file = mapped(tmp_path, planted())

    def cut(iterate):
        if iterate.iteration == 3:
            os.truncate(tmp_path / "a.npy", 20_000)

    with pytest.raises(ValueError, match="it is incomplete"):
        classical_nmf(file, 3, memory_limit=ENOUGH, callback=cut, **SWEEPS)


@pytest.mark.parametrize("mode", ["c", "r+", "w+"])
def test_changes_of_a_mapped_file_are_seen(mode, tmp_path, client):
    A = planted()
    mapped(tmp_path, A)
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
    A = planted()
    U, V = random_factors(A.shape, 3)
    whole = cvxnmf.verify(A, U, V, effort=0)
    for other in (3 * A, A[:20]):
        file = mapped(tmp_path, A)
        np.save(tmp_path / "b.npy", other)
        os.replace(tmp_path / "b.npy", tmp_path / "a.npy")
        for place in ({"memory_limit": ENOUGH}, {"client": client}):
            parts = cvxnmf.verify(file, U, V, **place)
            assert (parts.value, parts.bound) == pytest.approx((whole.value, whole.bound), rel=1e-9)
            assert parts.check(file) == pytest.approx(whole.bound, rel=1e-9)


def test_a_file_that_is_replaced_in_mid_run(tmp_path):
    file = mapped(tmp_path, planted())

    def replace(iterate):
        if iterate.iteration == 3:
            np.save(tmp_path / "b.npy", planted(seed=1))
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


# --- clusters that fail ---------------------------------------------------------------------------------------------------------


def test_a_killed_worker_costs_a_recomputation_and_not_the_answer(client, caplog, monkeypatch):
    monkeypatch.setattr(cluster_blocks, "LARGEST_BLOCK", 1 << 20)
    A = planted(4000, 200, 4)
    data, terms = da.from_array(A, chunks=(500, 200)), {"method": "multiplicative", "max_iter": 60, "tol": 0.0}
    began = time.perf_counter()
    undisturbed = classical_nmf(data, 4, client=client, **terms)
    calm, pids = time.perf_counter() - began, client.run(os.getpid)

    def kill(iterate):
        if iterate.iteration == 30:
            os.kill(min(pids.values()), signal.SIGKILL)

    began = time.perf_counter()
    with caplog.at_level(logging.INFO):
        disturbed = classical_nmf(data, 4, client=client, callback=kill, **terms)
    spent = time.perf_counter() - began
    client.wait_for_workers(2, timeout=60)
    assert set(client.run(os.getpid).values()) != set(pids.values())
    assert np.array_equal(disturbed.U, undisturbed.U)
    assert disturbed.value == undisturbed.value
    assert spent <= 3 * calm
    assert not [r for r in caplog.records if r.name.startswith("distributed") and r.levelno >= logging.WARNING]


def test_what_is_kept_is_sent_anew_when_its_past_is_long(client, monkeypatch):
    A = planted()
    calm = classical_nmf(chunked(A), 3, client=client, **SWEEPS)
    monkeypatch.setattr(cluster_blocks, "LONGEST_PAST", 4)
    renewed, real = [], cluster_blocks.ClusterBlocks._sent
    monkeypatch.setattr(cluster_blocks.ClusterBlocks, "_sent", lambda self, parts: renewed.append(1) or real(self, parts))
    assert np.array_equal(classical_nmf(chunked(A), 3, client=client, **SWEEPS).U, calm.U)
    assert len(renewed) >= SWEEPS["max_iter"] // 4


def test_an_address_that_does_not_answer(monkeypatch):
    monkeypatch.setattr(connection, "ANSWER", 1)
    began = time.perf_counter()
    with pytest.raises(ConnectionError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9 within 1 seconds"):
        cvxnmf.factorize(planted(), 3, client="tcp://127.0.0.1:9")
    assert time.perf_counter() - began < 10


def test_something_else_answers_at_the_address(monkeypatch):
    monkeypatch.setattr(connection, "ANSWER", 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        def reply():
            other, _ = server.accept()
            with other:
                other.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                other.recv(1000)

        threading.Thread(target=reply, daemon=True).start()
        with pytest.raises(ConnectionError, match="No Dask scheduler answers at"):
            classical_nmf(planted(), 3, client=address)


@pytest.mark.parametrize("address", ["nowhere", "http://x:1", ""])
def test_what_is_no_address(address):
    with pytest.raises(ValueError, match="is not the address of a Dask scheduler .* it looks like tcp://host:8786"):
        classical_nmf(planted(), 3, client=address)


def test_a_cluster_without_workers(monkeypatch):
    monkeypatch.setattr(connection, "ANSWER", 0.3)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as nobody,
        Client(nobody, set_as_default=False) as empty,
    ):
        with pytest.raises(ConnectionError, match="has no workers"):
            classical_nmf(planted(), 3, client=empty)


def test_a_cluster_that_loses_all_workers(monkeypatch):
    monkeypatch.setattr(connection, "WITHOUT_WORKERS", 0.2)
    monkeypatch.setattr(connection, "LOOK", 0.2)
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as one, Client(one, set_as_default=False) as single:

        def retire(iterate):
            if iterate.iteration == 2:
                one.scale(0)

        with pytest.raises(ConnectionError, match="no workers for"):
            classical_nmf(planted(), 3, client=single, callback=retire, **SWEEPS)


def test_a_cluster_that_is_closed_in_mid_run_and_its_client():
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as one, Client(one, set_as_default=False) as single:

        def close(iterate):
            if iterate.iteration == 2:
                one.close()
                until = time.monotonic() + 10
                while single.status == "running" and time.monotonic() < until:
                    time.sleep(0.05)

        with pytest.raises(ConnectionError, match="The Dask scheduler is gone, and with its workers the factors so far"):
            classical_nmf(planted(), 3, client=single, callback=close, **SWEEPS)
        single.close()
        for call in (classical_nmf, cvxnmf.factorize):
            with pytest.raises(ConnectionError, match=r"The Dask client is closed; open a new one, Client\(address\)\."):
                call(planted(), 3, client=single)


def test_workers_that_die_on_every_attempt():
    def deadly(block):
        os.kill(os.getpid(), signal.SIGKILL)
        return block

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL) as one,
        Client(one, set_as_default=False) as single,
    ):
        one.scheduler.allowed_failures = 0
        data = chunked(planted()).map_blocks(deadly, meta=np.empty((0, 0)))
        with pytest.raises(ConnectionError, match="died again and again"):
            classical_nmf(data, 3, client=single)


def test_without_dask_a_client_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'cvxnmf\[dask\]'"):
        classical_nmf(planted(), 3, client="tcp://127.0.0.1:9")


def test_the_data_are_forgotten_by_the_workers(client):
    classical_nmf(chunked(planted()), 3, client=client, **SWEEPS)
    until = time.monotonic() + 10
    while time.monotonic() < until and any(client.has_what().values()):
        time.sleep(0.05)
    assert not any(client.has_what().values())


# --- the command line -----------------------------------------------------------------------------------------------------------


def told(capsys):
    """The one sentence on stderr, beside an empty stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cvxnmf: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("where", ["memory-limit", "dask"])
def test_the_command_line_in_blocks(where, client, tmp_path, capsys):
    A = planted()
    path = tmp_path / "a.npy"
    np.save(path, A)
    scale = ["--memory-limit", "64GB"] if where == "memory-limit" else ["--dask", client.scheduler.address]
    command = [
        "factorize",
        str(path),
        "-k",
        "3",
        "--max-iter",
        "30",
        "--json",
        "--quiet",
        "--output",
        str(tmp_path / "f.npz"),
        *scale,
    ]
    assert cli.main(command) == 0
    facts = json.loads(capsys.readouterr().out)
    expected = cvxnmf.factorize(A, 3, memory_limit=ENOUGH, max_iter=30)
    assert facts["value"] == pytest.approx(expected.value, rel=1e-8)
    assert facts["certificate"]["kind"] == "tail"
    assert cli.main(["verify", str(path), str(tmp_path / "f.npz"), "--json", "--quiet", *scale]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(expected.value, rel=1e-8)


def test_the_command_line_says_what_is_wrong_with_large_data(tmp_path, capsys, monkeypatch):
    path, table = tmp_path / "a.npy", tmp_path / "a.csv"
    np.save(path, planted())
    np.savetxt(table, planted(), delimiter=",")
    for words, sentence in [
        ([path, "-k", "3", "--memory-limit", "many"], "memory_limit='many' is not understood"),
        ([path, "-k", "3", "--memory-limit", "1MB"], "give at least"),
        ([path, "--memory-limit", "9GB"], "must be given; set n_components (-k)"),
        ([table, "-k", "3", "--memory-limit", "9GB"], "is not a numpy .npy file; only .npy files are read in blocks"),
        (["-", "-k", "3", "--memory-limit", "9GB"], "Standard input cannot be read in blocks"),
        ([tmp_path, "-k", "3", "--memory-limit", "9GB"], "is a folder"),
        ([tmp_path / "b.npy", "-k", "3", "--memory-limit", "9GB"], "does not exist"),
        ([path, "-k", "3", "--symmetric", "--memory-limit", "9GB"], "cannot be factored as UU'"),
    ]:
        assert cli.main(["factorize", "--quiet", *map(str, words)]) == 1
        assert sentence in told(capsys)
    monkeypatch.setattr(connection, "ANSWER", 1)
    assert cli.main(["factorize", "--quiet", str(path), "-k", "3", "--dask", "tcp://127.0.0.1:9"]) == 1
    assert "No Dask scheduler answers" in told(capsys)


@pytest.mark.parametrize("size", [20_000, 100, 7, 0])
def test_the_command_line_and_a_file_that_is_cut_short(size, tmp_path):
    np.save(tmp_path / "a.npy", planted())
    os.truncate(tmp_path / "a.npy", size)
    words = ["factorize", str(tmp_path / "a.npy"), "-k", "3", "--memory-limit", "9GB", "--quiet"]
    answer = subprocess.run([sys.executable, "-m", "cvxnmf", *words], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 1
    assert answer.stderr.startswith("cvxnmf: ")
    assert answer.stderr.count("\n") == 1
    assert "a.npy is" in answer.stderr
