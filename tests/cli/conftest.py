"""Files that the command line works on."""

import networkx as nx
import numpy as np
import pytest

import cvxnmf
from cvxnmf.linalg.compiler import announce


@pytest.fixture(scope="session", autouse=True)
def announced():
    """What is said on stderr does not depend on what was compiled before."""
    announce()


@pytest.fixture
def club(tmp_path):
    nx.write_gml(nx.karate_club_graph(), tmp_path / "karate.gml")
    return tmp_path / "karate.gml"


@pytest.fixture
def blocks(tmp_path):
    """Two clear blocks as an edge list with names."""
    A, labels = cvxnmf.block_graph(24, 0.1, 0.95)
    lines = [f"n{i},n{j}" for i, j in np.argwhere(np.triu(A))]
    (tmp_path / "blocks.csv").write_text("source,target\n" + "\n".join(lines))
    return tmp_path / "blocks.csv", {f"n{i}": int(label) for i, label in enumerate(labels)}


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    A = rng.random((12, 3)) @ rng.random((3, 8))
    np.save(tmp_path / "a.npy", A)
    return tmp_path / "a.npy"
