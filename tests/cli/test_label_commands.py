"""``cvxnmf verify`` for clusters, and ``cvxnmf partition`` for other objectives."""

import json

import networkx as nx
import numpy as np
import pytest
from running import one_sentence

from cvxnmf import Certificate
from cvxnmf.cli import main
from cvxnmf.io.reading import read_labels
from cvxnmf.io.source import FileError


@pytest.fixture
def karate_file(tmp_path):
    path = tmp_path / "karate.csv"
    path.write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in nx.karate_club_graph().edges))
    return path


def test_the_optimum_is_found_proved_and_verified(karate_file, tmp_path, capsys):
    labels, kept = tmp_path / "labels.csv", tmp_path / "proof.npz"
    code = main(
        [
            "partition",
            str(karate_file),
            "--objective",
            "modularity",
            "--prove",
            "--output",
            str(labels),
            "--quiet",
            "--no-factors",
        ]
    )
    shown = capsys.readouterr().out
    assert code == 0
    assert "No partition of this graph has a modularity above 0.4197896; this one has 0.4197896: it is optimal." in shown
    assert (
        main(["verify", str(karate_file), str(labels), "--objective", "modularity", "--json", "--save", str(kept), "--quiet"])
        == 0
    )
    facts = json.loads(capsys.readouterr().out)
    assert facts["value"] == facts["bound"] == pytest.approx(0.419789612, abs=1e-9)
    assert facts["clusters"] == 4
    assert Certificate.load(kept).scope == "labels"


def test_a_loose_bound_exits_with_3(karate_file, tmp_path, capsys):
    labels = tmp_path / "one.txt"
    labels.write_text("".join(f"{node} a\n" for node in range(34)))
    assert main(["verify", str(karate_file), str(labels), "--objective", "modularity", "--tol-gap", "0.01", "--quiet"]) == 3
    assert "No partition of this graph has a modularity above" in capsys.readouterr().out


def test_a_graph_and_clusters_are_recognised_without_an_objective(karate_file, tmp_path, capsys):
    graph = nx.karate_club_graph()
    labels = tmp_path / "clubs.csv"
    labels.write_text("member,club\n" + "".join(f"{node},{graph.nodes[node]['club']}\n" for node in graph))
    nx.write_gml(graph, tmp_path / "karate.gml")
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("".join(f"{node} {int(node > 9)}\n" for node in graph))
    for data, clusters in ((karate_file, labels), (tmp_path / "karate.gml", labels), (karate_file, numbers)):
        assert main(["verify", str(data), str(clusters), "--effort", "1"]) == 0
        out, err = capsys.readouterr()
        assert "No partition of this graph has a modularity above" in out
        assert f"read as a graph, and {clusters} as its clusters" in err


def test_clusters_of_nodes_with_numbers_are_no_factors(karate_file, tmp_path, capsys):
    """Tables of numbers could be factors: what names clusters, or the nodes, or is a partition that was saved, is not."""
    graph = nx.karate_club_graph()
    nx.write_gml(graph, tmp_path / "karate.gml")
    np.save(tmp_path / "karate.npy", nx.to_numpy_array(graph))
    main(["partition", str(karate_file), "--output", str(tmp_path / "own.csv"), "--quiet"])
    main(["partition", str(karate_file), "--output", str(tmp_path / "own.npz"), "--quiet"])
    (tmp_path / "two.csv").write_text("".join(f"{node},{int(node > 9)}\n" for node in graph))
    (tmp_path / "one.txt").write_text("".join(f"{int(node > 9)}\n" for node in graph))
    capsys.readouterr()
    for data in ("karate.gml", "karate.npy"):
        for clusters in ("own.csv", "own.npz", "two.csv", "one.txt"):
            assert main(["verify", str(tmp_path / data), str(tmp_path / clusters), "--effort", "1", "--quiet"]) == 0
            assert "No partition of this graph has a modularity above" in capsys.readouterr().out, (data, clusters)
    (tmp_path / "factor.csv").write_text("node,weight\n" + "".join(f"{node},0.5\n" for node in graph))
    assert main(["verify", str(tmp_path / "karate.gml"), str(tmp_path / "factor.csv"), "--quiet"]) == 0
    assert "No symmetric nonnegative factorisation" in capsys.readouterr().out


def test_a_node_in_two_clusters_is_refused(tmp_path):
    (tmp_path / "twice.csv").write_text("a,x\nb,y\na,x\n")
    assert read_labels(tmp_path / "twice.csv", ["a", "b"]).labels == ["x", "y"]
    (tmp_path / "twice.csv").write_text("a,x\nb,y\na,y\n")
    with pytest.raises(FileError, match="has the node 'a' in two clusters, x and y"):
        read_labels(tmp_path / "twice.csv", ["a", "b"])


def test_files_that_are_neither_say_what_to_give(karate_file, tmp_path, capsys):
    (tmp_path / "few.csv").write_text("0,a\n1,b\n")
    assert main(["verify", str(karate_file), str(tmp_path / "few.csv"), "--quiet"]) == 1
    assert "give the other factor, or, for a graph with clusters, add --objective modularity." in one_sentence(capsys)
    assert main(["verify", str(tmp_path / "none.csv"), str(tmp_path / "few.csv"), "--quiet"]) == 1
    assert "does not exist" in one_sentence(capsys)


def test_labels_are_read_from_text(tmp_path):
    path = tmp_path / "labels.txt"
    for text in (
        "node;weight;cluster\na;1;x\nb;2;y\n",
        "a,x\nb,y\n",
        "b\ty\na\tx\n",
        "x\ny\n",
        "cluster\nx\ny\n",
        "b y\na x\n",
        "vertex,leiden\na,x\nb,y\n",
    ):
        path.write_text(text)
        assert read_labels(path, ["a", "b"]).labels == ["x", "y"], text


def test_nodes_that_the_graph_does_not_have_are_left_out_with_a_sentence(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text("a,x\nb,y\nc,y\n")
    with pytest.warns(UserWarning, match="names a node that the graph does not have, 'c' for one; left out"):
        assert read_labels(path, ["a", "b"]).labels == ["x", "y"]


def test_what_was_decided_about_labels_is_told(tmp_path, capsys):
    graph, labels = tmp_path / "graph.csv", tmp_path / "labels.csv"
    graph.write_text("a,b\nb,c\na,c\nc,d\n")
    for text, said in (
        ("who,team\na,1\nb,1\nc,1\nd,2\n", "Line 1 is taken as a header"),
        ("1\n1\n1\n2\n", "order of the nodes: a, b, c, …"),
    ):
        labels.write_text(text)
        assert main(["verify", str(graph), str(labels), "--objective", "modularity"]) == 0
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("text", ["who,years,team\na,1,x\nb,2,y\n", "a,x\n", "x\ny\nz\n", "", "a,x\nb\n"])
def test_labels_that_do_not_fit_are_refused(tmp_path, text):
    path = tmp_path / "labels.txt"
    path.write_text(text)
    with pytest.raises(FileError):
        read_labels(path, ["a", "b"])


def test_a_certificate_that_somebody_sent_is_checked_against_the_data(karate_file, table, tmp_path, capsys):
    labels, proofs = tmp_path / "labels.csv", [tmp_path / f"{name}.npz" for name in ("model", "labels", "factors")]
    model, clusters, factors = map(str, proofs)
    main(["partition", str(karate_file), "--output", str(labels), "--certificate", model, "--quiet"])
    main(["verify", str(karate_file), str(labels), "--save", clusters, "--quiet"])
    main(["factorize", str(table), "-k", "2", "--certificate", factors, "--quiet"])
    capsys.readouterr()
    for data, proof in ((karate_file, model), (karate_file, clusters), (table, factors)):
        assert main(["verify", str(data), proof, "--quiet"]) == 0
        assert capsys.readouterr().out.startswith(f"The certificate holds for {data}: ")
    assert main(["verify", str(karate_file), clusters, "--quiet", "--json", "--tol-gap", "0"]) == 3
    assert json.loads(capsys.readouterr().out)["holds"]
    karate_file.write_text(karate_file.read_text().replace("0,1\n", "", 1))
    assert main(["verify", str(karate_file), clusters, "--quiet"]) == 1
    assert "altered or belongs to other data" in one_sentence(capsys)


def test_a_certificate_about_something_else_than_asked_is_refused(karate_file, table, tmp_path, capsys):
    labels, clusters, factors = (str(tmp_path / name) for name in ("labels.csv", "labels.npz", "factors.npz"))
    main(["partition", str(karate_file), "--output", labels, "--quiet"])
    main(["verify", str(karate_file), labels, "--effort", "1", "--save", clusters, "--quiet"])
    main(["factorize", str(table), "-k", "2", "--certificate", factors, "--quiet"])
    capsys.readouterr()
    for data, proof, asked, about in (
        (karate_file, clusters, ["--objective", "cpm"], "about --objective cpm, but about modularity"),
        (karate_file, clusters, ["--resolution", "3"], "about --resolution 3.0, but about 1.0"),
        (karate_file, clusters, ["-k", "3"], "about --clusters 3; leave the option out"),
        (table, factors, ["--loss", "kl"], "about --loss kl, but about mse"),
        (table, factors, ["--objective", "modularity"], "about --objective modularity; leave the option out"),
    ):
        assert main(["verify", str(data), proof, "--quiet", *asked]) == 1
        assert about in one_sentence(capsys)
    for data, proof, asked in ((karate_file, clusters, ["--objective", "modularity"]), (table, factors, ["--loss", "mse"])):
        assert main(["verify", str(data), proof, "--quiet", *asked]) == 0


def test_weights_of_a_certificate_must_be_those_of_whoever_checks_it(table, tmp_path, capsys):
    proof, rows = str(tmp_path / "proof.npz"), len(np.load(table))
    for name, weight in (("weights.csv", 2.0), ("others.csv", 3.0)):
        np.savetxt(tmp_path / name, np.full((rows, 1), weight))
    weights = ["--loss-weights", str(tmp_path / "weights.csv")]
    assert main(["factorize", str(table), "-k", "2", "--certificate", proof, "--quiet", *weights]) == 0
    capsys.readouterr()
    assert main(["verify", str(table), proof, "--quiet"]) == 1
    assert "name them with --loss-weights" in one_sentence(capsys)
    assert main(["verify", str(table), proof, "--quiet", "--loss-weights", str(tmp_path / "others.csv")]) == 1
    assert "about other weights than these" in one_sentence(capsys)
    assert main(["verify", str(table), proof, "--quiet", "--json", *weights]) == 0
    assert json.loads(capsys.readouterr().out)["statement"]["loss"] == "weighted mse"
    certificate = Certificate.load(proof)
    assert "(of the loss with weights)" in str(certificate)


def test_factors_from_files_are_taken_by_name_and_numbered_ones_as_they_stand(tmp_path, capsys):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    U, V, rows = rng.random((9, 2)), rng.random((6, 2)), rng.permutation(9)
    names, columns = [f"r{i}" for i in range(9)], list("abcdef")
    pd.DataFrame(U @ V.T, names, columns).to_csv(tmp_path / "A.csv")
    pd.DataFrame(U).to_csv(tmp_path / "U.csv")
    pd.DataFrame(U, names).iloc[rows].to_csv(tmp_path / "U_named.csv")
    pd.DataFrame(V.T).to_csv(tmp_path / "H.csv")
    pd.DataFrame(V.T, columns=columns).iloc[:, ::-1].to_csv(tmp_path / "H_named.csv", index=False)
    for left in ("U.csv", "U_named.csv"):
        for right in ("H.csv", "H_named.csv"):
            assert main(["verify", *(str(tmp_path / name) for name in ("A.csv", left, right)), "--json", "--quiet"]) == 0
            assert json.loads(capsys.readouterr().out)["value"] < 1e-12
    pd.DataFrame(U, [*names[:-1], "x"]).to_csv(tmp_path / "U.csv")
    assert main(["verify", *(str(tmp_path / name) for name in ("A.csv", "U.csv", "H.csv")), "--quiet"]) == 1
    assert "U.csv has names, but not 'r8', which A has" in one_sentence(capsys)
