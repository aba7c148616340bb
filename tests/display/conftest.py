"""Results that the tests of cards, pictures and pages look at."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
from strange_results import NAMES

import cvxnmf


@pytest.fixture(scope="session")
def club():
    return cvxnmf.partition(nx.karate_club_graph(), 2)


@pytest.fixture(scope="session")
def attacked(club):
    nodes = (*NAMES, *club.nodes[len(NAMES) :])
    return dataclasses.replace(club, nodes=nodes, factors=lambda: club.factorization)


@pytest.fixture(scope="session")
def factors():
    rng = np.random.default_rng(0)
    return cvxnmf.factorize(rng.random((30, 4)) @ rng.random((4, 20)), 3)
