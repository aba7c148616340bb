"""Bounds for all factorisations of a rank: eigenvalues, and witnesses made to deceive the check."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from builders import prove
from cvxnmf import certificates


class TestForgeries:
    """Witnesses made to deceive the check."""

    A = np.random.default_rng(0).random((6, 5))

    def refused(self, witness, sentence, kind="dual", A=None, **statement):
        terms = {"form": "rank", "loss": "mse", "n_components": 2, "symmetric": False} | statement
        with pytest.raises(cvxnmf.CertificateError, match=sentence):
            prove(self.A if A is None else A, kind, terms, witness)

    def test_forged_witnesses(self):
        self.refused({"N": -np.ones((6, 5))}, "negative")
        self.refused({"N": np.ones((5, 6))}, "does not match")
        self.refused({"N": np.full((6, 5), np.inf)}, "not finite")
        self.refused({"rows": np.ones(3), "columns": np.ones(5)}, "do not match")
        self.refused({}, "not understood", n_components=0)
        self.refused({}, "not understood", loss="l1")
        self.refused({}, "kind 'dual' cannot be checked", loss="kl")
        self.refused({}, "rank one only", kind="independence", loss="kl")
        self.refused({}, "sparse", kind="lanczos")
        self.refused({}, "square matrix", symmetric=True)
        self.refused({}, "missing entries", A=np.where(self.A > 0.9, np.nan, self.A))
        self.refused({"N": np.triu(np.ones((5, 5)))}, "not symmetric", A=self.A[:5] + self.A[:5].T, symmetric=True)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_upper_bounds_on_eigenvalues(scale):
    rng = np.random.default_rng(0)
    M = rng.standard_normal((30, 30)) * scale
    M = M + M.T
    upper = certificates.rounding.largest_eigenvalues(M, 5)
    exact = np.linalg.eigvalsh(M)[::-1][:5]
    assert np.all(upper >= exact)
    np.testing.assert_allclose(upper, exact, rtol=1e-11)


def test_absurd_witnesses_are_refused():
    statement = {"form": "rank", "loss": "mse", "n_components": 2, "symmetric": False}
    A = np.random.default_rng(0).random((5, 6))
    for N in (np.full((5, 6), 1e200), np.full((5, 6), np.longdouble("1e400"))):
        with pytest.raises(cvxnmf.CertificateError):
            prove(A, "dual", statement, {"N": N})
    with pytest.raises(cvxnmf.CertificateError, match="not understood"):
        prove(A, "tail", {**statement, "n_components": 2.9}, {})


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(50, 20), (40, 200), (300, 120)])
def test_vectors_that_leave_out_leading_ones_prove_no_more(shape, seed):
    rng = np.random.default_rng(seed)
    A = rng.gamma(0.5, 1.0, (shape[0], 4)) @ rng.gamma(0.5, 1.0, (4, shape[1])) + 0.3 * rng.random(shape)
    values, right = np.linalg.svd(A, full_matrices=True)[1:]
    tail = float(np.sum(values[3:] ** 2))
    statement = {"form": "rank", "loss": "mse", "n_components": 3, "symmetric": False}
    honest = prove(A, "lanczos", statement, {"vectors": right[:3].T})
    assert honest.bound == pytest.approx(tail, rel=1e-6)
    for forged in (right[-3:], right[1:4], right[[0, 2, 3]], right[3:9]):
        proof = prove(A, "lanczos", statement, {"vectors": np.ascontiguousarray(forged.T)})
        assert not proof.rigorous
        assert proof.bound <= tail * (1 + 1e-9)


def test_vectors_of_data_whose_singular_values_are_equal():
    A = np.kron(np.eye(6), np.random.default_rng(0).random((7, 5)))
    right = np.linalg.svd(A)[2]
    statement = {"form": "rank", "loss": "mse", "n_components": 6, "symmetric": False}
    bounds = [prove(data, "lanczos", statement, {"vectors": right[:6].T}).bound for data in (A, sp.csr_array(A), A[::-1].copy())]
    assert bounds == pytest.approx([bounds[0]] * 3, abs=1e-11 * np.sum(A * A))
