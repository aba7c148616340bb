"""The same factors and certificates in memory, from files and on a Dask cluster."""

import os

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import cvxnmf
from builders import random_factors
from cvxnmf.nmf.descent import classical_nmf
from cvxnmf.nmf.loss_names import LOSSES
from cvxnmf.nmf.methods import METHODS
from row_chunk_builders import ENOUGH, dask_chunks, in_chunks, mapped_file, planted_rows, sparse_counts
from tiers import slow_but

#: Methods that work on data in row chunks, and the losses that each of them lowers.
BY_ROWS = [
    (name, loss)
    for name, method in METHODS.items()
    for loss in method.make
    if method.by_rows and loss in LOSSES and LOSSES[loss].in_chunks
]
EVERY_WAY = [(*way, kind) for way in BY_ROWS for kind in ("dense", "sparse")]
#: Of sparse chunks, the method of most users.
ALWAYS = [*((*way, "dense") for way in BY_ROWS), ("hals", "mse", "sparse"), ("hals", "kl", "sparse")]
SWEEPS = {"max_iter": 4, "tol": 0.0}


@pytest.mark.parametrize(("method", "loss", "kind"), slow_but(ALWAYS, EVERY_WAY))
def test_memory_file_and_cluster_agree(method, loss, kind, client, tmp_path):
    A = planted_rows() if kind == "dense" else sparse_counts()
    terms = {"method": method, "loss": loss, "init": random_factors(A.shape, 4), **SWEEPS}
    forms = [(A, None), (dask_chunks(A), client)]
    if method == "hals":  # how chunks are read does not depend on the method
        forms += [(dask_chunks(A), None), (A, client)]
        forms += [(mapped_file(tmp_path, A), place) for place in (None, client) if kind == "dense"]
    runs = []
    for form, place in forms:
        with in_chunks(form, place) as matrix:
            runs.append(classical_nmf(matrix, 4, **terms))
    if (method, loss) != ("hals", "kl"):  # updates V by multiplication in chunks
        runs.append(classical_nmf(A, 4, **terms))
    assert [run.value for run in runs] == pytest.approx([runs[0].value] * len(runs), rel=1e-8)
    assert all(len(run.history) == SWEEPS["max_iter"] for run in runs)
    for run in runs:
        np.testing.assert_allclose(run.U, runs[0].U, rtol=1e-5, atol=1e-7)


def test_extrapolation_and_restarts_are_those_in_memory():
    A = planted_rows(seed=3)
    terms = {"init": "nndsvd", "max_iter": 100, "tol": 0.0}
    with in_chunks(A) as matrix:
        whole, parts = classical_nmf(A, 4, **terms), classical_nmf(matrix, 4, **terms)
    assert [i.value for i in parts.history] == pytest.approx([i.value for i in whole.history], rel=1e-8)


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_penalties(loss):
    A = planted_rows()
    terms = {
        "method": "multiplicative",
        "loss": loss,
        "init": random_factors(A.shape, 3),
        "l1": (0.1, 0.2),
        "l2": (0.3, 0.4),
        **SWEEPS,
    }
    with in_chunks(A) as matrix:
        whole, parts = classical_nmf(A, 3, **terms), classical_nmf(matrix, 3, **terms)
    assert parts.value == pytest.approx(whole.value, rel=1e-8)


@pytest.mark.parametrize("loss", ["mse", "kl"])
@pytest.mark.parametrize("method", ["hals", "multiplicative"])
def test_the_objective_never_rises(method, loss):
    with in_chunks(sparse_counts()) as matrix:
        values = [i.value for i in classical_nmf(matrix, 4, method, loss, max_iter=80, tol=0.0).history]
    assert all(after <= before * (1 + 1e-12) for before, after in zip(values, values[1:], strict=False))


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_the_value_is_that_of_the_factors(loss):
    A = planted_rows()
    with in_chunks(A) as matrix:
        run = classical_nmf(matrix, 4, loss=loss, **SWEEPS)
    assert run.value == pytest.approx(cvxnmf.verify(A, run.U, run.V, loss, effort=0).value, rel=1e-12)


def test_exact_data_end_at_zero():
    rng = np.random.default_rng(0)
    A = rng.random((90, 2)) @ rng.random((2, 24))
    with in_chunks(A) as matrix:
        run = classical_nmf(matrix, 2, max_iter=3000, tol=1e-8)
    assert run.value < 1e-10 * np.sum(A**2)


@pytest.mark.parametrize("where", ["memory", "file", "chunks", "cluster"])
def test_factorize_is_certified(where, client, tmp_path):
    A = planted_rows()
    data = {"memory": A, "file": mapped_file(tmp_path, A)}.get(where, dask_chunks(A))
    with in_chunks(data, client if where == "cluster" else None) as matrix:
        result, whole = cvxnmf.factorize(matrix, 4, max_iter=25), cvxnmf.factorize(A, 4, max_iter=25, effort=0)
    assert result.value <= whole.value * 1.01
    certificate = result.certificate
    assert (certificate.kind, certificate.rigorous) == ("tail", True)
    assert certificate.bound == pytest.approx(whole.certificate.bound, rel=1e-9)
    assert certificate.bound <= min(result.value, whole.value)
    for form in (A, data, mapped_file(tmp_path, A), dask_chunks(A), sp.csr_array(A)):
        assert certificate.check(form) == pytest.approx(certificate.bound, abs=1e-11 * np.sum(A**2))
    with pytest.raises(cvxnmf.CertificateError):
        certificate.check(mapped_file(tmp_path, A * 1.001))


def test_sparse_chunks_are_certified(client):
    A = sparse_counts()
    result = cvxnmf.factorize(dask_chunks(A), 3, client=client, max_iter=4)
    assert result.certificate.check(A) == pytest.approx(result.certificate.bound, rel=1e-9)
    assert result.certificate.check(dask_chunks(A)) == pytest.approx(result.certificate.bound, rel=1e-9)


@pytest.mark.parametrize("loss", ["mse", "kl"])
@pytest.mark.parametrize("turned", [False, True])
def test_verify_in_chunks(loss, turned, tmp_path, client):
    A = planted_rows().T.copy() if turned else planted_rows()
    U, V = random_factors(A.shape, 3)
    whole = cvxnmf.verify(A, U, V, loss, effort=0)
    for found in (
        cvxnmf.verify(mapped_file(tmp_path, A), U, V, loss, memory_limit=ENOUGH),
        cvxnmf.verify(da.from_array(A, chunks=(7, 24)), U, V, loss, client=client),
    ):
        assert found.value == pytest.approx(whole.value, rel=1e-10)
        if loss == "mse":
            assert found.bound == pytest.approx(whole.bound, rel=1e-10)
            assert found.kind == whole.kind
        else:  # of row chunks nothing better than 0 is known for KL
            assert found.bound == 0 < whole.bound
        assert found.check(mapped_file(tmp_path, A)) == pytest.approx(found.bound, rel=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_no_factorisation_is_below_a_bound_from_chunks(seed):
    A = planted_rows(60, 24, 3, seed)
    with in_chunks(A) as matrix:
        certificate = cvxnmf.verify(matrix, *random_factors(A.shape, 3))
    best = np.sum(np.linalg.svd(A, compute_uv=False)[3:] ** 2)
    assert certificate.bound <= best
    assert certificate.bound == pytest.approx(best, rel=1e-8)


def test_wide_and_tall_data_without_room_for_a_gram_matrix(tmp_path):
    A = planted_rows()
    U, V = random_factors(A.shape, 3)
    with in_chunks(A, largest_gram=10) as matrix:
        found, result = cvxnmf.verify(matrix, U, V), cvxnmf.factorize(matrix, 3)
    assert (found.kind, found.rigorous) == ("lanczos", False)
    assert found.bound == pytest.approx(cvxnmf.verify(A, U, V, effort=0).bound, rel=1e-3)
    for form in (A, mapped_file(tmp_path, A), dask_chunks(A), dask_chunks(sparse_counts() * 0 + sp.csr_array(A))):
        assert found.check(form) == pytest.approx(found.bound, rel=1e-9)
    spoilt = {"vectors": found.witness["vectors"] * 2.0}
    with pytest.raises(cvxnmf.CertificateError, match="orthonormal"):
        found.statement.prove(A, "lanczos", spoilt)
    assert result.certificate.kind == "lanczos"
    assert result.value <= cvxnmf.factorize(A, 3, effort=0).value * 1.01


def test_a_check_refuses_files_and_chunks_that_are_wrong(tmp_path):
    A = planted_rows()
    certificate = cvxnmf.verify(A, *random_factors(A.shape, 3), effort=0)
    for value in (-1.0, np.inf, np.nan):
        wrong = A.copy()
        wrong[70, 3] = value
        for form in (mapped_file(tmp_path, wrong), dask_chunks(wrong)):
            with pytest.raises(cvxnmf.CertificateError):
                certificate.check(form)
    file = mapped_file(tmp_path, A)
    os.truncate(tmp_path / "a.npy", 5000)
    with pytest.raises(cvxnmf.CertificateError, match="incomplete"):
        certificate.check(file)


def test_a_start_is_never_worsened():
    A = planted_rows()
    first = cvxnmf.factorize(A, 3, memory_limit=ENOUGH, max_iter=20)
    again = cvxnmf.factorize(A, start=first, memory_limit=ENOUGH)
    assert again.n_components == 3
    assert again.value <= first.value


def test_stopping_and_interrupts_keep_the_best(client):
    A = planted_rows()
    stopped = cvxnmf.factorize(dask_chunks(A), 3, client=client, callback=lambda iterate: iterate.iteration == 3)
    assert stopped.status is cvxnmf.Status.INTERRUPTED
    assert len(stopped.history) == 3

    def interrupt(iterate):
        if iterate.iteration == 5:
            raise KeyboardInterrupt

    with pytest.raises(cvxnmf.Interrupted) as caught:
        cvxnmf.factorize(A, 3, memory_limit=ENOUGH, callback=interrupt)
    assert caught.value.solution.value < np.sum(A**2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda A: classical_nmf(A, 3, "gradient", memory_limit=ENOUGH),
            "'gradient' does not work on data in blocks; use one of",
        ),
        (lambda A: classical_nmf(A, 3, "sparse", memory_limit=ENOUGH), "'sparse' does not work on data in blocks"),
        (lambda A: classical_nmf(A, 3, symmetric=True, memory_limit=ENOUGH), "must be square for symmetric factors"),
        (lambda A: cvxnmf.factorize(A, 3, symmetric=True, memory_limit=ENOUGH), "must be square for symmetric factors"),
        (lambda A: cvxnmf.verify(A, A[:, :3], memory_limit=ENOUGH), "must be square"),
        (lambda A: classical_nmf(A, 3, init="convex", memory_limit=ENOUGH), "init='convex' is not known; choose one of 'nndsvd'"),
        (lambda A: classical_nmf(A, 3, init=3, memory_limit=ENOUGH), "init must be one of 'nndsvd', 'spa', 'random' or a pair"),
        (lambda A: classical_nmf(A[0], 3, memory_limit=ENOUGH), "two-dimensional"),
        (lambda A: classical_nmf(A[:0], 3, memory_limit=ENOUGH), "is empty"),
        (lambda A: classical_nmf(A * 0, 3, memory_limit=ENOUGH), "all zeros"),
        (lambda A: classical_nmf(A * 1e60, 3, memory_limit=ENOUGH), "rescale A"),
        (lambda A: classical_nmf(A.astype(complex), 3, memory_limit=ENOUGH), "not real numbers"),
        (lambda A: classical_nmf(A.astype(object), 3, memory_limit=ENOUGH), "not real numbers"),
        (lambda A: classical_nmf(np.ma.masked_greater(A, 1.0), 3, memory_limit=ENOUGH), "masked"),
        (lambda A: classical_nmf(A, 300, memory_limit=ENOUGH), "larger than both sides"),
        (lambda A: classical_nmf(A, 3, client=5), "client must be a distributed.Client or the address"),
        (lambda A: classical_nmf(dask_chunks(A)[dask_chunks(A)[:, 0] > 0.5], 3), "compute_chunk_sizes"),
    ],
)
def test_what_cannot_be_done_in_chunks_is_said_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(planted_rows())


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_the_estimator_in_chunks(loss, tmp_path, client):
    X, terms = planted_rows(), {"solver": "mu", "beta_loss": loss, "max_iter": 6, "tol": 0.0}
    whole = cvxnmf.NMF(4, **terms)
    W = whole.fit_transform(X)
    in_file = cvxnmf.NMF(4, memory_limit=ENOUGH, **terms)
    np.testing.assert_allclose(in_file.fit_transform(mapped_file(tmp_path, X)), W, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(in_file.transform(X), in_file.transform(mapped_file(tmp_path, X)))
    with client.as_current():
        on_cluster = cvxnmf.NMF(4, **terms).fit(dask_chunks(X))
        np.testing.assert_allclose(on_cluster.transform(dask_chunks(X)), W, rtol=1e-6, atol=1e-9)
    for model in (in_file, on_cluster):
        assert model.n_features_in_ == 24
        assert model.reconstruction_err_ == pytest.approx(whole.reconstruction_err_, rel=1e-9)
        if loss == "frobenius":
            assert model.certificate_.bound == pytest.approx(whole.certificate_.bound, rel=1e-9)
        assert model.certificate_.bound <= whole.certificate_.bound * (1 + 1e-9)
        assert model.certificate_.check(X) == pytest.approx(model.certificate_.bound, rel=1e-9)


def test_the_estimator_keeps_its_parameters():
    model = cvxnmf.NMF(3, memory_limit=ENOUGH)
    assert clone(model).get_params()["memory_limit"] == ENOUGH
    model.fit(planted_rows())
    assert model.get_params() == clone(model).get_params()
    default = cvxnmf.NMF(3, memory_limit=ENOUGH).fit(planted_rows().astype(np.float32))
    assert default.components_.dtype == np.float32
    with pytest.raises(ValueError, match="24 features"):
        model.transform(planted_rows()[:, :20])


def test_the_number_of_components_in_chunks_must_be_given():
    for call in (
        lambda: cvxnmf.factorize(planted_rows(), memory_limit=ENOUGH),
        lambda: cvxnmf.NMF("convex", memory_limit=ENOUGH).fit(planted_rows()),
    ):
        with pytest.raises(ValueError, match="number of components of data in blocks must be given"):
            call()
