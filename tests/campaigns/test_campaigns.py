"""A short slice of every campaign, and finds of earlier ones."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from tiers import slow_but

pytest.importorskip("mpmath")

import cvxnmf
from campaigns.attacks import CAMPAIGNS
from campaigns.inputs import FILES, require_sentence
from cvxnmf.io.formats import ENDINGS
from cvxnmf.io.networks import READERS

#: Trials of each campaign; those that start programs are tested in tests/cli and take long.
SLICES = {
    "exact-twin": 60,
    "weak-duality": 20,
    "labels-by-enumeration": 2,
    "unique-factors": 40,
    "mutated-certificates": 40,
    "mutated-files": 150,
    "random-calls": 60,
    "every-method": 3,
    "lazy-certificates": 3,
    "factors-of-odd-data": 25,
    "frames": 6,
    "command-line": 20,
}


def test_files_of_every_format_of_graphs_are_damaged():
    assert {ENDINGS.get(Path(name).suffix) for name in FILES} >= set(READERS)


@pytest.mark.parametrize("name", slow_but(set(SLICES) - {"labels-by-enumeration"}, sorted(SLICES)))
def test_a_short_slice(name, tmp_path):
    for seed in range(SLICES[name]):
        CAMPAIGNS[name](np.random.default_rng(seed), tmp_path)


FINDS = [
    lambda: cvxnmf.partition([(0, float("nan")), (1, 2)]),
    lambda: cvxnmf.partition([(0, 1), (None, 2), (1, 2)]),
    lambda: cvxnmf.factor_rank_two(np.zeros((3, 3))),
    lambda: cvxnmf.factor_rank_two(np.full((3, 3), 1e300)),
    lambda: cvxnmf.exp_factor(np.array(1.0)),
    lambda: cvxnmf.exp_factor(np.zeros((0, 0))),
    lambda: cvxnmf.exp_factor([[1.0, 2.0], [3.0]]),
    lambda: cvxnmf.exp_factor(sp.csr_array(np.eye(3))),
    lambda: cvxnmf.verify_labels(np.ones((2, 2)), [[1, 2], [3]]),
    lambda: cvxnmf.partition(np.ones((3, 3)), resolution=sp.csr_array(np.eye(3))),
    lambda: cvxnmf.partition(np.full((3, 3), 1e-300)),
    lambda: cvxnmf.factorize(np.ones((2, 2)), start=np.array(1.0)),
    lambda: cvxnmf.factorize(np.ones((2, 2)), start=(), symmetric=False),
    lambda: cvxnmf.factorize(np.ones((2, 2)), start={}, symmetric=False),
    lambda: cvxnmf.factorize(np.ones((2, 2)), 2, start=1j * np.ones((2, 2))),
    lambda: cvxnmf.factorize(np.ones((2, 2)), 2, loss=np.ones((40, 40))),
    lambda: cvxnmf.performance([["a", "b"], ["c", "d"]], [0, 1]),
    lambda: cvxnmf.performance(np.array([[object(), 1], [1, 2]], dtype=object), [0, 1]),
    lambda: cvxnmf.performance(1j * np.ones((2, 2)), [0, 1]),
    lambda: cvxnmf.performance([[1.0, 2.0], [3.0]], [0, 1]),
    lambda: cvxnmf.certificates.parse_statement({"form": np.ones(3)}),
    lambda: cvxnmf.certificates.RankStatement(np.ones(2), 1, False),
    lambda: cvxnmf.partition(np.ones((3, 3)), prove=np.ones(2)),
    lambda: cvxnmf.partition([(0, 1), (1, 2)], weight=np.ones(2)),
    lambda: cvxnmf.partition(np.ones((2, 2)), start=[[1.0, 2.0], [3.0]]),
    lambda: cvxnmf.partition(np.ones((3, 3)), start=[[1.0, 2.0], [3.0]]),
    lambda: cvxnmf.cocluster(np.ones((2, 2)), weight=np.ones(2)),
    lambda: cvxnmf.cocluster(np.full((2, 2), 1e300)),
    lambda: cvxnmf.factorize(np.ones((2, 2)), 2, row_names=np.array(1.0)),
    lambda: cvxnmf.factorize(np.ones((2, 2)), 2, row_names=np.ones((2, 2))),
    lambda: cvxnmf.factorize([[1.0, 2.0], [3.0]], 2, row_names=["a", "b"]),
    lambda: cvxnmf.factorize(np.ones((2, 2)), 2, weights=1j * np.ones((2, 2))),
    lambda: cvxnmf.choose_rank(np.ones((2, 2)), ranks=np.array(1.0)),
    lambda: CAMPAIGNS["random-calls"](np.random.default_rng(3908976), None) or cvxnmf.exp_factor(None),
    lambda: cvxnmf.certificates.SymmetricStatement("kl", "psd", "fit", sp.csr_array(np.eye(2)), "uniform"),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("call", FINDS)
def test_finds_of_earlier_campaigns_are_one_sentence(call):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call()
    require_sentence(caught.value)


# What campaigns found in answers, not in errors -------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_constant_data_are_certified(loss):
    found = cvxnmf.factorize(np.full((6, 5), 0.3), 3, loss=loss)
    assert found.certificate.check(np.full((6, 5), 0.3)) <= found.value < 1e-9


@pytest.mark.parametrize("scale", [1e-35, 1e35])
def test_data_beyond_single_precision_are_factored(scale):
    A = np.random.default_rng(0).gamma(0.5, size=(7, 6))
    plain, scaled = cvxnmf.factorize(A, 4), cvxnmf.factorize(scale * A, 4)
    assert np.isfinite(scaled.U).all()
    assert scaled.value / scale**2 == pytest.approx(plain.value, rel=0.2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(6))
def test_values_of_data_in_single_precision_are_not_below_their_optimum(seed):
    A = np.random.default_rng(seed).gamma(0.5, size=(10, 10)).astype(np.float32)
    model = cvxnmf.NMF(1, beta_loss="kullback-leibler").fit(A)
    assert model.certificate_.relative_gap < 1e-9
    assert model.certificate_.kind == "independence"


@pytest.mark.filterwarnings("error")
def test_consensus_of_zeros_in_the_data_is_silent():
    path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    assert cvxnmf.consensus(path, 2, 0.5, n_starts=3).result.value >= 0.0
