"""A package as people install it: everyday calls find their compiled code, wherever new code is kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CALLS = """
import sys, warnings
import networkx as nx
from sklearn.datasets import load_digits
import cvxnmf
assert cvxnmf.__file__.startswith(sys.argv[1])
warnings.simplefilter("ignore")
A, graph = load_digits().data[:300], nx.les_miserables_graph()
cvxnmf.NMF(10).fit(A).certificate_
cvxnmf.NMF(10, beta_loss="kullback-leibler", solver="mu").fit(A)
cvxnmf.factorize(A, 5, loss="kl")
best = cvxnmf.partition(graph, objective="modularity", prove=True)
cvxnmf.partition(graph).certificate
cvxnmf.report.write(best, sys.argv[2])
"""


@pytest.mark.skipif(not (ROOT / "build_hooks").exists(), reason="needs the sources")
def test_everyday_calls_of_an_installation_compile_nothing(tmp_path):
    pytest.importorskip("hatchling")
    site, kept = tmp_path / "site", tmp_path / "kept"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--disable-pip-version-check", "--target", site, ROOT], check=True)
    assert len(list(site.rglob("*.nbc"))) > 50
    assert (site / "cvxnmf" / "py.typed").exists()
    environment = os.environ | {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(kept)}
    subprocess.run([sys.executable, "-c", CALLS, site, tmp_path / "page.html"], check=True, env=environment, cwd=tmp_path)
    assert [path.name for path in kept.rglob("*.nbc")] == []
