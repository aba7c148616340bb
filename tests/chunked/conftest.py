"""Dask clusters for the tests of this folder."""

import logging
from contextlib import contextmanager

import dask
import pytest


@contextmanager
def two_workers(processes):
    """A cluster of two workers with a thread each, and its client."""
    from distributed import Client, LocalCluster

    terms = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),
        LocalCluster(processes=processes, **terms) as two,
        Client(two, set_as_default=False) as found,
    ):
        yield found


@pytest.fixture(scope="package", params=["threads", pytest.param("processes", marks=pytest.mark.slow)])
def client(request):
    """Workers in this process, where what processes would load anew is loaded; with the slow tests also in processes."""
    with two_workers(processes=request.param == "processes") as found:
        yield found


@pytest.fixture(scope="module")
def processes():
    """Workers in processes of their own, for what only these show; closed early: even idle ones take a seventh of a core."""
    with two_workers(processes=True) as found:
        yield found
