"""The compiled exponential beside numpy's, in both precisions."""

import numpy as np

from cvxnmf.linalg.exponential import exponential, exponential_single


def test_the_exponential_is_exact_to_two_units_over_its_whole_range():
    x = np.concatenate([np.linspace(-708.0, 709.0, 400_001), np.random.default_rng(0).normal(0.0, 5.0, 100_000)])
    y = x.copy()
    exponential(y, np.empty_like(y))
    assert np.max(np.abs(y / np.exp(x) - 1.0)) <= 2 * np.finfo(float).eps


def test_the_exponential_keeps_what_is_not_finite():
    x = np.array([np.nan, np.inf, -np.inf, 710.0, -1000.0, 0.0, -0.0, 1e300, -1e300])
    exponential(x, np.empty_like(x))
    assert np.isnan(x[0])
    assert np.isposinf(x[[1, 3, 7]]).all()
    assert (x[[2, 4, 8]] < 1e-300).all()
    np.testing.assert_array_equal(x[[5, 6]], 1.0)


def test_the_exponential_in_single_precision():
    x = np.concatenate([np.linspace(-87.0, 88.0, 200_001), np.random.default_rng(0).normal(0.0, 5.0, 100_000)]).astype(np.float32)
    y = x.copy()
    exponential_single(y, np.empty_like(y))
    assert np.max(np.abs(y / np.exp(x.astype(float)) - 1.0)) <= 8 * np.finfo(np.float32).eps
    odd = np.array([np.nan, np.inf, -np.inf, 89.0, -100.0, 0.0], dtype=np.float32)
    exponential_single(odd, np.empty_like(odd))
    assert np.isnan(odd[0])
    assert np.isposinf(odd[[1, 3]]).all()
    assert (odd[[2, 4]] < 1e-37).all()
    assert odd[5] == 1.0
