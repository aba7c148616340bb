"""Fixtures that several rooms share."""

import networkx as nx
import pytest
from hypothesis import settings

#: The same examples every time; the campaigns look for new ones.
settings.register_profile("same", derandomize=True)
settings.load_profile("same")

#: They hold fixtures and no tests of their own; collected as modules they would all have the same name.
collect_ignore_glob = ["*conftest.py"]


def pytest_collection_modifyitems(items):
    """Campaigns call everything, so they come last: by then it is compiled, and not by two processes at a time."""
    items.sort(key=lambda item: "campaigns" in item.path.parts)


@pytest.fixture(scope="session")
def karate():
    return nx.to_numpy_array(nx.karate_club_graph(), weight=None)


@pytest.fixture(scope="session")
def miserables():
    return nx.to_numpy_array(nx.les_miserables_graph())
