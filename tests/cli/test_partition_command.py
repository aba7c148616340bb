"""Graphs on the command line: labels, pages, certificates, notes and refusals."""

import csv
import json
import subprocess
from pathlib import Path

import networkx as nx
import pytest
from running import PROGRAM, one_sentence

import cvxnmf
from cvxnmf import cli
from tiers import slow_but


def test_partition_prints_a_summary(club, capsys):
    assert cli.main(["partition", str(club)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("karate.gml: 34 nodes, 78 edges, ")
    assert "modularity 0." in out
    assert "Nothing is proved yet; --prove proves how good the model, its 2 factors and the labels are." in out
    assert "solving: " in err


def test_nothing_is_proved_unless_it_is_asked_for(club, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("cvxnmf.graphs.convex_model.ConvexModel.solution", property(lambda _: 1 / 0))
    monkeypatch.setattr("cvxnmf.graphs.partition.factors_of", None)
    assert cli.main(["partition", str(club), "--quiet", "--json", "--output", str(tmp_path / "labels.csv")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["n_clusters"] == len(facts["sizes"])
    assert not any(facts[name] for name in ("certificate", "rank_certificate", "label_certificate", "status", "seconds"))
    assert (tmp_path / "labels.csv").read_text().count("\n") == 35


def test_prove_proves_model_factors_and_labels(club, capsys):
    assert cli.main(["partition", str(club), "--prove", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "The model: No model of this kind can fit better than" in out
    assert "Its 2 factors: " in out
    assert "Its labels: No partition of this graph has a modularity above" in out
    assert "Nothing is proved yet" not in out


@pytest.mark.parametrize("asking", [["--tol", "1e-3"], ["--groups", "20"], ["--trace", "5"]])
def test_terms_of_the_model_ask_for_its_proof_alone(club, capsys, asking):
    assert cli.main(["partition", str(club), *asking, "--quiet", "--json"]) in (0, 3)
    facts = json.loads(capsys.readouterr().out)
    assert facts["certificate"]["bound"] <= facts["certificate"]["value"]
    assert facts["rank_certificate"] is facts["label_certificate"] is None


def test_partition_finds_the_blocks_under_their_names(blocks, capsys):
    path, truth = blocks
    assert cli.main(["partition", str(path), "-k", "2", "--json", "--quiet", "--tol", "1e-4"]) == 0
    out, err = capsys.readouterr()
    facts = json.loads(out)
    assert err == ""
    assert facts["n_clusters"] == 2
    assert sorted(facts["sizes"]) == [12, 12]
    assert set(facts["labels"]) == set(truth)
    assert len({(facts["labels"][name], label) for name, label in truth.items()}) == 2
    assert facts["certificate"]["bound"] <= facts["certificate"]["value"]


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt"])
def test_partition_writes_labels_as_text(blocks, tmp_path, ending, capsys):
    path, truth = blocks
    target = tmp_path / f"labels.{ending}"
    assert cli.main(["partition", str(path), "-k", "2", "--quiet", "--output", str(target)]) == 0
    with open(target, newline="", encoding="utf8") as file:
        rows = list(csv.DictReader(file, delimiter="," if ending == "csv" else "\t"))
    assert {row["node"] for row in rows} == set(truth)
    assert all(0 < float(row["membership"]) <= 1 for row in rows)
    assert len({(row["cluster"], truth[row["node"]]) for row in rows}) == 2


def test_partition_writes_json_arrays_page_and_certificate(blocks, tmp_path, capsys):
    path, truth = blocks
    target, page, proof = tmp_path / "labels.json", tmp_path / "page.html", tmp_path / "proof.npz"
    options = ["--quiet", "--report", str(page), "--certificate", str(proof)]
    assert cli.main(["partition", str(path), "-k", "2", "--output", str(target), *options]) == 0
    assert set(json.loads(target.read_text())["labels"]) == set(truth)
    assert "blocks.csv" in page.read_text(encoding="utf8")
    A = cvxnmf.io.read_graph(path).A
    certificate = cvxnmf.Certificate.load(proof)
    assert certificate.check(A) == certificate.bound
    assert cli.main(["partition", str(path), "-k", "2", "--quiet", "--output", str(tmp_path / "all.npz")]) == 0
    assert "factorization" in vars(cvxnmf.load(tmp_path / "all.npz"))
    assert not list(tmp_path.glob("*.part"))


def test_unusual_names_come_back_as_they_are(tmp_path, capsys):
    names = ["a,b", 'say "hi"', "Ünï", "new york", "-1", "=1+1"]
    with open(tmp_path / "g.csv", "w", newline="", encoding="utf8") as file:
        csv.writer(file).writerows((a, b) for i, a in enumerate(names) for b in names[i + 1 :])
    assert cli.main(["partition", str(tmp_path / "g.csv"), "-k", "1", "--quiet", "--output", str(tmp_path / "o.csv")]) in (0, 3)
    with open(tmp_path / "o.csv", newline="", encoding="utf8") as file:
        assert [row["node"] for row in csv.DictReader(file)] == names


def test_names_cannot_command_the_terminal(tmp_path, capsys):
    (tmp_path / "g.txt").write_text("\x1b[31mred b\nb c\nc \x1b[31mred\nc d\n")
    assert cli.main(["partition", str(tmp_path / "g.txt"), "-k", "1", "--quiet"]) in (0, 3)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[31mred" in out


def test_above_tolerance_exits_with_three(club, capsys):
    assert cli.main(["partition", str(club), "--tol", "0", "--quiet", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["certificate"]["relative_gap"] > 0


def test_the_papers_own_formulation(club, capsys):
    assert cli.main(["partition", str(club), "--paper", "-k", "2", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_clusters"] == 2


def test_notes_on_reading_stand_on_stderr(tmp_path, capsys):
    for heading, told in (("source,target", False), ("one,another", True)):
        (tmp_path / "g.csv").write_text(f"{heading}\n1,2\n2,1\n2,3\n3,4\n4,1\n")
        assert cli.main(["partition", str(tmp_path / "g.csv"), "-k", "1"]) in (0, 3)
        err = capsys.readouterr().err
        assert ("g.csv: Line 1 is taken as a header" in err) is told
        assert "g.csv: 1 of 5 edges" in err


def test_warnings_are_sentences(tmp_path, capsys):
    graph = nx.DiGraph(nx.karate_club_graph().edges)
    nx.write_graphml(graph, tmp_path / "d.graphml")
    assert cli.main(["partition", str(tmp_path / "d.graphml"), "-k", "2", "--quiet"]) == 0
    err = capsys.readouterr().err
    assert all(line.startswith("cvxnmf: ") for line in err.splitlines())
    assert "Warning" not in err
    assert "made undirected" in err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\nc\n", "g.csv, line 2: expected two node names and perhaps a weight, found 'c'."),
        ("", "is empty"),
        ("a,b,-1\n", "line 1: the weight is -1"),
        ("a\0b", "neither text"),
    ],
)
def test_broken_files_are_one_sentence_and_exit_with_one(tmp_path, capsys, content, words):
    (tmp_path / "g.csv").write_text(content)
    assert cli.main(["partition", str(tmp_path / "g.csv")]) == 1
    assert words in one_sentence(capsys)


def test_a_missing_file_is_one_sentence(tmp_path, capsys):
    assert cli.main(["partition", str(tmp_path / "none.csv")]) == 1
    assert "does not exist" in one_sentence(capsys)


@pytest.mark.parametrize("option", ["--output", "--report", "--certificate"])
def test_places_that_cannot_be_written_are_told_before_any_work(club, tmp_path, capsys, option, monkeypatch):
    monkeypatch.setattr("cvxnmf.io.read_graph", None)
    ending = {"--output": "csv", "--report": "html", "--certificate": "npz"}[option]
    (tmp_path / f"folder.{ending}").mkdir()
    for path in ("none/x." + ending, "x.unknown", f"folder.{ending}"):
        assert cli.main(["partition", str(club), option, str(tmp_path / path)]) == 1
        assert path.split("/")[-1] in one_sentence(capsys)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no files even from root")
def test_only_writing_tells_what_can_be_written(club, capsys):
    assert cli.main(["partition", str(club), "--output", "/proc/labels.csv"]) == 1
    assert "/proc/labels.csv cannot be written" in one_sentence(capsys)


@pytest.mark.parametrize("closed", slow_but(["2>&- >&-"], ["2>&-", ">&-", "2>&- >&-"]))
def test_closed_streams_are_no_trouble(club, closed):
    program = " ".join([*PROGRAM, "partition", str(club)])
    answer = subprocess.run(f"{program} {closed}", shell=True, capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 0
    assert "Traceback" not in answer.stderr
    assert "cvxnmf:" not in answer.stdout


def test_the_data_are_never_overwritten(blocks, capsys):
    path, _ = blocks
    before = path.read_bytes()
    assert cli.main(["partition", str(path), "--output", str(path)]) == 1
    assert "would overwrite the data" in one_sentence(capsys)
    assert path.read_bytes() == before


def test_unexpected_errors_are_one_sentence_too(club, capsys, monkeypatch):
    monkeypatch.setattr("cvxnmf.graphs.partition.partition", lambda *_, **__: 1 / 0)
    assert cli.main(["partition", str(club), "--quiet"]) == 1
    assert "unexpected ZeroDivisionError" in one_sentence(capsys)
    monkeypatch.setenv("CVXNMF_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(["partition", str(club), "--quiet"])


def test_an_interrupted_answer_is_kept(blocks, tmp_path, capsys, monkeypatch):
    path, truth = blocks
    found = cvxnmf.partition(cvxnmf.io.read_graph(path).A, 2)

    def interrupted(*_, **__):
        raise cvxnmf.Interrupted(found)

    monkeypatch.setattr("cvxnmf.graphs.partition.partition", interrupted)
    target = tmp_path / "best.csv"
    assert cli.main(["partition", str(path), "--quiet", "--output", str(target)]) == 130
    err = one_sentence(capsys)
    assert "interrupted; the best answer so far" in err
    assert f"is in {target}." in err
    assert target.read_text().count("\n") == len(truth) + 1
    assert cli.main(["partition", str(path), "--quiet"]) == 130
    assert "no --output was given" in one_sentence(capsys)


def test_labels_are_kept_when_the_proof_of_the_factors_is_interrupted(blocks, tmp_path, capsys, monkeypatch):
    path, truth = blocks

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("cvxnmf.graphs.partition.factors_of", interrupted)
    target = tmp_path / "best.npz"
    assert cli.main(["partition", str(path), "--quiet", "--output", str(target)]) == 130
    assert f"is in {target}." in one_sentence(capsys)
    assert set(cvxnmf.load(target).nodes) == set(truth)
    assert cli.main(["partition", str(path), "--quiet", "--no-factors", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rank_certificate"] is None


def test_labels_go_to_standard_output_and_come_back_from_json(blocks, tmp_path, capsys):
    path, labels = blocks
    assert cli.main(["partition", str(path), "--quiet", "--output", "-"]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["node", "cluster", "membership"]
    assert {row[0] for row in rows[1:]} == set(labels)
    assert cli.main(["partition", str(path), "--output", str(tmp_path / "l.json"), "--top", "2"]) == 0
    shown, said = capsys.readouterr()
    assert ", …" in shown
    assert f"wrote {tmp_path / 'l.json'}." in said
    assert cli.main(["verify", str(path), str(tmp_path / "l.json"), "--objective", "modularity", "--quiet"]) == 0
    assert "No partition of this graph" in capsys.readouterr().out


def test_nodes_without_neighbours_are_told(tmp_path, capsys):
    (tmp_path / "g.json").write_text(
        '{"nodes": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "links": [{"source": "a", "target": "b"}]}'
    )
    assert cli.main(["partition", str(tmp_path / "g.json"), "--quiet"]) == 0
    assert "3 nodes (1 without neighbours), 1 edge," in capsys.readouterr().out


def test_a_page_asks_for_its_packages_before_any_work(blocks, tmp_path, capsys, monkeypatch):
    from cvxnmf.display.page import document

    monkeypatch.setattr(document, "find_spec", lambda name: None)
    assert cli.main(["partition", str(blocks[0]), "--report", str(tmp_path / "p.html")]) == 1
    assert "pip install jinja2 matplotlib" in capsys.readouterr().err


def test_partition_starts_from_clusters_of_before(tmp_path, capsys):
    graph, saved = nx.karate_club_graph(), tmp_path / "before.npz"
    before = cvxnmf.partition(graph, 4)
    cvxnmf.save(before, saved)
    graph.add_edges_from([("new", 0), ("new", 1), ("new", 3)])
    nx.write_edgelist(graph, tmp_path / "after.edges", data=False)
    asked = ["partition", str(tmp_path / "after.edges"), "-k", "4", "--json", "--quiet", "--start"]
    assert cli.main([*asked, str(saved)]) == 0
    labels = json.loads(capsys.readouterr().out)["labels"]
    assert sum(labels[str(node)] == label for node, label in zip(before.nodes, before.labels, strict=True)) > 25
    cvxnmf.save(before.factorization, saved)
    assert cli.main([*asked, str(saved)]) == 1
    assert "holds no clusters to start from; give an .npz file" in one_sentence(capsys)
