"""A Dask cluster for the tests of this folder."""

import logging

import dask
import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="package")
def client():
    """Two worker processes, closed after the last test of this folder: even idle ones take a seventh of a core."""
    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL) as two,
        Client(two, set_as_default=False) as found,
    ):
        yield found
