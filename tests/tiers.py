"""Two tiers of tests: those of `make test`, and more of the same kind, at greater length, for `make test-all`."""

import pytest


def slow_but(always, values):
    """Parameters of a test, of which the ones in ``always`` belong to `make test` and the rest to `make test-all` alone."""
    values, always = list(values), list(always)
    assert all(value in values for value in always)
    return [value if value in always else _slow(value) for value in values]


def _slow(value):
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
