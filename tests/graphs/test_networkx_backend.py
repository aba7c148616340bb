"""The backend of networkx, as networkx finds it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import networkx as nx
import pytest

import cvxnmf
from cvxnmf.graphs.networkx_backend import FUNCTIONS, Backend, backend_info

CALL = """
import networkx as nx
G = nx.karate_club_graph()
found = nx.community.louvain_communities(G, weight=None, seed=3, backend="cvxnmf")
print(len(found), round(nx.community.modularity(G, found, weight=None), 4))
"""


def test_networkx_hands_its_functions_over(tmp_path):
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text(encoding="utf8"))["project"]
    points = project["entry-points"]
    info = tmp_path / "announced-1.dist-info"  # stands for the metadata of an installed package
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: announced\nVersion: 1\n")
    lines = [f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in points[group].items()) for group in points]
    (info / "entry_points.txt").write_text("\n".join(lines))
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, *{sys.path!r}]\n{CALL}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4", "0.4198"]


def test_networkx_loads_no_compiler_at_its_import():
    code = "import sys, cvxnmf.graphs.networkx_backend; print(sorted({'numpy', 'numba', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_communities_are_sets_of_nodes():
    graph = nx.relabel_nodes(nx.ring_of_cliques(5, 4), {node: f"node {node}" for node in range(20)})
    for name in FUNCTIONS:
        found = getattr(Backend, name)(graph)
        assert nx.community.is_partition(graph, found)
        assert len(found) == 5
    assert Backend.leiden_communities(nx.empty_graph(2)) == [{0}, {1}]
    assert set(backend_info()["functions"]) == set(FUNCTIONS)


@pytest.mark.parametrize("resolution", [0.5, 3.0])
def test_the_resolution_is_that_of_networkx(resolution):
    graph = nx.les_miserables_graph()
    ours = nx.community.modularity(graph, Backend.louvain_communities(graph, resolution=resolution), resolution=resolution)
    theirs = nx.community.modularity(
        graph, nx.community.louvain_communities(graph, resolution=resolution, seed=0), resolution=resolution
    )
    assert ours >= theirs - 1e-9


@pytest.mark.parametrize("weight", ["weight", None])
def test_loops_count_as_networkx_counts_them(weight):
    graph = nx.karate_club_graph()
    for node in (0, 33, 5):
        graph.add_edge(node, node, weight=6)
    found = Backend.leiden_communities(graph, weight)
    theirs = [nx.community.louvain_communities(graph, weight, seed=seed) for seed in range(10)]
    best = max(nx.community.modularity(graph, communities, weight) for communities in theirs)
    assert nx.community.modularity(graph, found, weight) >= best - 1e-9
    with pytest.warns(UserWarning, match="count once in degrees here, and twice"):
        cvxnmf.verify_labels(graph, found, effort=0.0)
