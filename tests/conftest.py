"""Fixtures that several rooms share."""

import networkx as nx
import pytest


@pytest.fixture(scope="session")
def karate():
    return nx.to_numpy_array(nx.karate_club_graph(), weight=None)


@pytest.fixture(scope="session")
def miserables():
    return nx.to_numpy_array(nx.les_miserables_graph())
