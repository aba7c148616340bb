"""Symmetric factors of data in row chunks: the optima of memory, from files and on a Dask cluster."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from cvxnmf import cli
from cvxnmf.nmf.descent import classical_nmf
from cvxnmf.nmf.storage import ChunkedProducts
from cvxnmf.nmf.updates.symmetric import SymmetricTerms, symmetric_least_squares
from row_chunk_builders import ENOUGH, dask_chunks, in_chunks, mapped_file
from tiers import slow_but


def planted(n=120, k=4, seed=0):
    """A symmetric table of rank k with noise."""
    rng = np.random.default_rng(seed)
    U, noise = rng.random((n, k)) ** 3, 0.1 * rng.random((n, n))
    return U @ U.T + (noise + noise.T) / 2


def sparse_graph(n=120, seed=0):
    """A sparse graph with four groups and weights."""
    rng = np.random.default_rng(seed)
    same = np.equal.outer(np.arange(n) % 4, np.arange(n) % 4)
    upper = np.triu(rng.poisson(np.where(same, 0.5, 0.03)), 1).astype(float)
    return sp.csr_array(upper + upper.T)


def naive_loss(A, U, loss):
    """The loss of UU', entry by entry."""
    A, E = A.toarray() if sp.issparse(A) else A, U @ U.T
    if loss == "mse":
        return np.sum((A - E) ** 2)
    return np.sum(np.where(A > 0, A * np.log(np.where(A > 0, A, 1.0) / E), 0.0) - A + E)


@pytest.mark.parametrize(
    ("method", "loss", "kind"),
    slow_but(
        [("hals", "mse", "dense"), ("hals", "mse", "sparse"), ("multiplicative", "mse", "dense"), ("hals", "kl", "sparse")],
        [(*way, kind) for way in (("hals", "mse"), ("multiplicative", "mse"), ("hals", "kl")) for kind in ("dense", "sparse")],
    ),
)
def test_file_and_cluster_have_the_same_factors(method, loss, kind, client, tmp_path):
    A = planted() if kind == "dense" else sparse_graph()
    start = np.random.default_rng(1).random((120, 4)) + 0.1
    forms = [(A, None), (dask_chunks(A), None), (dask_chunks(A), client)]
    forms += [(mapped_file(tmp_path, A), None)] if kind == "dense" else []
    runs = []
    for form, place in forms:
        with in_chunks(form, place) as matrix:
            runs.append(classical_nmf(matrix, 4, method, loss, start, symmetric=True, max_iter=6, tol=0.0))
    for run in runs:
        assert run.V is run.U
        assert len(run.history) == 6
        np.testing.assert_allclose(run.U, runs[0].U, rtol=1e-6, atol=1e-8)
        assert run.value == pytest.approx(naive_loss(A, run.U, loss), rel=1e-9)
    if (method, loss) != ("hals", "mse"):  # goes from row to row in memory
        whole = classical_nmf(A, 4, method, loss, start, symmetric=True, max_iter=6, tol=0.0)
        np.testing.assert_allclose(runs[0].U, whole.U, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", slow_but([0], range(4)))
@pytest.mark.parametrize("make", [planted, sparse_graph])
def test_least_squares_end_where_coordinates_end(make, seed):
    A = make(seed=seed)
    whole = classical_nmf(A, 4, symmetric=True, max_iter=2000, tol=1e-9)
    with in_chunks(A) as matrix:
        parts = classical_nmf(matrix, 4, symmetric=True, init="nndsvd", max_iter=2000, tol=1e-9)
    assert parts.value <= whole.value * 1.001


@pytest.mark.parametrize("penalties", [{}, {"l1": 0.2, "l2": 0.1}])
@pytest.mark.parametrize("method", ["hals", "multiplicative"])
@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_the_objective_never_rises_and_is_that_of_the_factor(loss, method, penalties):
    A = sparse_graph()
    with in_chunks(A) as matrix:
        run = classical_nmf(matrix, 3, method, loss, symmetric=True, max_iter=60, tol=0.0, **penalties)
    values = [iterate.value for iterate in run.history]
    assert all(after <= before * (1 + 1e-12) for before, after in zip(values, values[1:], strict=False))
    penalty = 2 * sum(weight * np.sum(run.U**power) for weight, power in zip(penalties.values(), (1, 2), strict=False))
    assert run.value == pytest.approx(naive_loss(A, run.U, loss) + penalty, rel=1e-9)


def test_a_step_is_the_best_on_its_line_and_takes_one_pass():
    A, U, passes = planted(), np.random.default_rng(0).random((120, 4)), []
    with in_chunks(A) as matrix:
        inner = matrix.chunks.map_reduce
        matrix.chunks.map_reduce = lambda function, *rest: (passes.append(function), inner(function, *rest))[1]
        products = ChunkedProducts(matrix)
        terms = SymmetricTerms(products, 0.3, 0.2)
        products.times(U)
        new = symmetric_least_squares(terms, U, 0.5)
        np.testing.assert_allclose(products.times(new), A @ new, rtol=1e-12)
    assert len(passes) == 2

    def value(X):
        return naive_loss(A, X, "mse") + 0.3 * X.sum() + 0.2 * np.sum(X**2)

    on_the_line = [value(np.maximum(U + t * (new - U), 0.0)) for t in (0.0, 0.5, 0.9, 0.99, 1.01, 1.1)]
    assert value(new) <= min(on_the_line)


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_factorize_is_certified_out_of_core_and_on_a_cluster(loss, client, tmp_path):
    A = planted()
    whole = cvxnmf.factorize(A, 4, loss, symmetric=True)
    forms = ((mapped_file(tmp_path, A), {"memory_limit": ENOUGH}, 100), (dask_chunks(A), {"client": client}, 10))
    for data, place, most in forms:  # the factors on a cluster are those of the file, by the test above
        result = cvxnmf.factorize(data, 4, loss, symmetric=True, max_iter=most, **place)
        assert result.V is result.U
        if most == 100:
            assert result.value <= whole.value * (1.1 if loss == "kl" else 1.01)  # expectation is slow: thousands of passes
        assert 0.0 <= result.certificate.bound <= min(result.value, whole.value)
        assert result.certificate.bound > 0 or loss == "kl"  # of row chunks little is known for KL
        assert result.certificate.check(A) == pytest.approx(result.certificate.bound, rel=1e-9)
        again = cvxnmf.verify(data, result, loss=loss, **place)
        assert again.value == pytest.approx(result.value, rel=1e-12)
    place = {"memory_limit": ENOUGH}
    better = cvxnmf.factorize(mapped_file(tmp_path, A), loss=loss, symmetric=True, start=whole, max_iter=20, **place)
    assert better.value <= whole.value * (1 + 1e-12)


def test_data_that_are_not_symmetric_are_refused(tmp_path):
    A = planted()
    A[17, 5] += 0.01
    with pytest.raises(ValueError, match=r"A is not symmetric: row 5 is not column 5; use symmetric=False"):
        cvxnmf.factorize(mapped_file(tmp_path, A), 3, symmetric=True, memory_limit=ENOUGH)
    with pytest.raises(ValueError, match="symmetric must be True, False or None"):
        cvxnmf.factorize(A, 3, symmetric="yes", memory_limit=ENOUGH)
    assert cvxnmf.factorize(planted(), 3, memory_limit=ENOUGH).V is not None


def test_the_command_line_in_blocks(tmp_path, capsys):
    A, path, factors = planted(), tmp_path / "a.npy", tmp_path / "f.npz"
    np.save(path, A)
    where = ["--memory-limit", "64GB", "--json", "--quiet"]
    assert cli.main(["factorize", str(path), "-k", "4", "--symmetric", "--output", str(factors), *where]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["symmetric"]
    U = np.load(factors)["U"]
    assert facts["value"] == pytest.approx(naive_loss(A, U, "mse"), rel=1e-9)
    assert cli.main(["verify", str(path), str(factors), *where]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(facts["value"], rel=1e-9)
