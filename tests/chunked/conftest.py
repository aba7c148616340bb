"""A Dask cluster for the tests of this folder."""

import logging

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="session")
def client():
    """Two worker processes."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL) as two,
        Client(two, set_as_default=False) as found,
    ):
        yield found
