"""The demo: its table, its page, its exit codes."""

import json
import sys

import networkx as nx
import numpy as np
from running import one_sentence

from cvxnmf import cli
from cvxnmf.cli.demo import karate_club


def test_the_club_is_that_of_networkx():
    np.testing.assert_array_equal(karate_club(), nx.to_numpy_array(nx.karate_club_graph(), weight=None))


def test_a_plain_install_runs_the_demo_without_a_page(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cvxnmf.display.page.document.PACKAGES", ("no_such_package",))
    for name in ("networkx", "jinja2", "matplotlib", "rich"):
        monkeypatch.setitem(sys.modules, name, None)
    assert cli.main(["demo", "--size", "20"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Zachary's karate club: 34 nodes, 78 edges, 2 clusters")
    assert "no page was written: pages need no_such_package; install with: pip install no_such_package." in err
    assert cli.main(["demo", "--size", "20", "--report", "page.html"]) == 1
    assert "pages need no_such_package" in one_sentence(capsys)
    assert not list(tmp_path.iterdir())


def test_the_demo_shows_clusters_a_certified_table_and_a_page(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--size", "40"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Zachary's karate club: 34 nodes, 78 edges, ")
    assert "proved bound" in out
    assert out.count("karate club ") >= 3
    assert out.count(" yes") == 6
    assert "977.0" in out  # the optimum is 977.07, and the tolerance 1e-4
    assert "solving: karate club" in err
    assert str(tmp_path / "cvxnmf-demo.html") in out
    assert "<html" in (tmp_path / "cvxnmf-demo.html").read_text(encoding="utf8")


def test_the_demo_as_json_is_quiet_and_complete(capsys):
    assert cli.main(["demo", "--size", "30", "--json", "--quiet", "--no-report"]) == 0
    out, err = capsys.readouterr()
    facts = json.loads(out)
    assert err == ""
    assert len(facts["solves"]) == 6
    assert facts["report"] is None
    assert facts["partition"]["nodes"] == 34
    for row in facts["solves"]:
        assert row["bound"] <= row["value"]
        assert row["relative_gap"] <= 1e-4
        assert row["checked"] is True


def test_the_demo_above_tolerance_exits_with_three(capsys):
    assert cli.main(["demo", "--size", "20", "--tol", "0", "--quiet", "--no-report"]) == 3
    assert "blocks, n = 20" in capsys.readouterr().out


def test_the_demo_refuses_what_does_not_fit(capsys):
    assert cli.main(["demo", "--quiet", "--no-report", "--json", "--size", "9000000"]) == 1
    assert "GiB of memory" in one_sentence(capsys)


def test_the_demo_writes_its_page_where_asked(capsys, tmp_path):
    assert cli.main(["demo", "--size", "20", "--quiet", "--report", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").exists()
    capsys.readouterr()
    assert cli.main(["demo", "--report", str(tmp_path / "none" / "page.html")]) == 1
    assert "there is no folder" in one_sentence(capsys)
