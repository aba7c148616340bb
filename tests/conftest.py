"""Fixtures that several rooms share."""

import gc
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import settings

#: The same examples every time; the campaigns look for new ones.
settings.register_profile("same", derandomize=True)
settings.load_profile("same")

#: Cycles are looked for seldom: thousands of tests and compilers hold much that never goes.
gc.set_threshold(50_000, 20, 20)

#: They hold fixtures and no tests of their own; collected as modules they would all have the same name.
collect_ignore_glob = ["*conftest.py"]


#: Of two processes, one begins with the first room and one in the middle: one compiles loops of factors, one those of graphs, and
#: later tests find both. Campaigns call everything, so they come last.
ORDER = ["nmf", "estimators", "convex", "cp", "linalg", "io", "paper", "display", "graphs", "chunked", "", "campaigns"]


def pytest_collection_modifyitems(items):
    """Sort by room, so that what is compiled is not compiled by two processes at a time."""
    folder = Path(__file__).parent
    rooms = {item: item.path.parent.name if item.path.is_relative_to(folder) else "" for item in items}
    items.sort(key=lambda item: ORDER.index(rooms[item] if rooms[item] in ORDER else ""))
    gc.freeze()


@pytest.fixture(scope="session")
def karate():
    return nx.to_numpy_array(nx.karate_club_graph(), weight=None)


@pytest.fixture(scope="session")
def miserables():
    return nx.to_numpy_array(nx.les_miserables_graph())
