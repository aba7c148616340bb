"""Factorisations and their verification on the command line."""

import json

import numpy as np
import pytest
from running import one_sentence

import cvxnmf
from cvxnmf import cli


def test_edges_with_names_are_told_what_to_ask(blocks, capsys):
    assert cli.main(["factorize", str(blocks[0]), "-k", "2"]) == 1
    assert "if these are the edges of a graph, ask cvxnmf partition, or add --format edges." in one_sentence(capsys)


def test_factorize_and_verify_agree(table, tmp_path, capsys):
    out = tmp_path / "factors.npz"
    assert cli.main(["factorize", str(table), "-k", "2", "--json", "--quiet", "--output", str(out)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["columns"], facts["n_components"], facts["symmetric"]) == (12, 8, 2, False)
    assert facts["certificate"]["bound"] <= facts["value"]
    assert cli.main(["verify", str(table), str(out), "--json", "--quiet", "--save", str(tmp_path / "proof.npz")]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["value"] == pytest.approx(facts["value"])
    assert checked["uniqueness"]["status"] in ("proved", "refuted")  # two components are always decided
    assert checked["relative_gap"] == pytest.approx(facts["certificate"]["relative_gap"], abs=1e-3)
    certificate = cvxnmf.Certificate.load(tmp_path / "proof.npz")
    assert certificate.check(np.load(table)) == certificate.bound


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_factors_as_text_round_trip(table, tmp_path, ending, capsys):
    out = tmp_path / f"f.{ending}"
    assert cli.main(["factorize", str(table), "-k", "3", "--quiet", "--output", str(out)]) == 0
    text = capsys.readouterr().out
    assert "12 by 8 matrix, 3 components, A = UV', squared error" in text
    U, V = tmp_path / f"f-U.{ending}", tmp_path / f"f-V.{ending}"
    assert cli.main(["verify", str(table), str(U), str(V), "--quiet"]) == 0
    text = capsys.readouterr().out
    assert "The fit is exact" in text
    assert "Are these the only factors of their product? " in text


def test_verify_takes_components_of_scikit_learn(table, tmp_path, capsys):
    from sklearn.decomposition import NMF

    model = NMF(2, init="nndsvda", random_state=0, max_iter=2000)
    np.save(tmp_path / "U.npy", model.fit_transform(np.load(table)))
    np.save(tmp_path / "H.npy", model.components_)
    assert cli.main(["verify", str(table), str(tmp_path / "U.npy"), str(tmp_path / "H.npy"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["value"] == pytest.approx(model.reconstruction_err_**2)
    assert "2 by 8, like scikit-learn's components_; it is transposed" in err


def test_a_gap_may_be_asked_for(table, tmp_path, capsys):
    arguments = ["factorize", str(table), "-k", "2", "--quiet"]
    assert cli.main([*arguments, "--tol-gap", "1"]) == 0
    assert cli.main([*arguments, "--loss", "kl", "--tol-gap", "0.5"]) == 3
    assert "can save more than 67% of the loss" in capsys.readouterr().out


def test_names_of_rows_and_columns_are_kept(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("who,p,q,r\nx,1,2,3\ny,2,4,6\nz,1,1,1\n")
    arguments = ["factorize", str(tmp_path / "t.csv"), "-k", "1", "--quiet", "--output", str(tmp_path / "f.csv")]
    assert cli.main(arguments) == 0
    assert [line.split(",")[0] for line in (tmp_path / "f-U.csv").read_text().split()[1:]] == ["0", "x", "y", "z"]
    assert cvxnmf.io.read_matrix(tmp_path / "f-V.csv").rows == ("p", "q", "r")


def test_symmetric_or_general(club, capsys):
    for option, symmetric in (("--symmetric", True), ("--general", False)):
        assert cli.main(["factorize", str(club), "-k", "2", option, "--effort", "0", "--json", "--quiet"]) == 0
        assert json.loads(capsys.readouterr().out)["symmetric"] is symmetric


def test_a_graph_is_no_factor(club, capsys):
    assert cli.main(["verify", str(club), str(club), "--quiet"]) == 1
    assert "is a GML file, not a factor" in one_sentence(capsys)


@pytest.mark.parametrize(
    ("factor", "words"),
    [(-np.ones((12, 2)), "nonnegative"), (np.ones((5, 2)), "12 rows"), (np.ones(12), "shape (12,)")],
)
def test_factors_that_do_not_fit_are_one_sentence(table, tmp_path, capsys, factor, words):
    np.save(tmp_path / "U.npy", factor)
    np.save(tmp_path / "V.npy", np.ones((8, 2)))
    assert cli.main(["verify", str(table), str(tmp_path / "U.npy"), str(tmp_path / "V.npy"), "--quiet"]) == 1
    assert words in one_sentence(capsys)


def test_an_exact_fit_is_said_once(tmp_path, capsys):
    np.savetxt(tmp_path / "exact.csv", np.outer([1.0, 2, 3], [1.0, 2, 4, 8]), delimiter=",")
    assert cli.main(["factorize", str(tmp_path / "exact.csv"), "-k", "1", "--quiet", "--top", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["The fit is exact but for rounding, so nothing can be gained."]


def test_names_of_a_table_are_shown_with_the_strongest(tmp_path, capsys):
    table = tmp_path / "wine.csv"
    table.write_text("who,red,dry,white,sweet\nAna,9,8,0,1\nBen,7,9,1,0\nEva,0,1,8,8\nTom,1,0,6,7\n")
    page = tmp_path / "wine.html"
    assert cli.main(["factorize", str(table), "-k", "2", "--quiet", "--top", "2", "--report", str(page), "--shape", "2x2"]) == 0
    shown = capsys.readouterr().out
    assert "Eva, Tom" in shown.replace("Tom, Eva", "Eva, Tom")
    assert "Ana" in page.read_text(encoding="utf8")
    assert cli.main(["factorize", str(table), "-k", "2", "--quiet", "--json", "--top", "1"]) == 0
    assert {part["columns"][0]["name"] for part in json.loads(capsys.readouterr().out)["top"]} <= {"red", "dry", "white", "sweet"}


def test_a_shape_that_does_not_fit_is_one_sentence(tmp_path, capsys):
    table = tmp_path / "wine.csv"
    table.write_text("1,2\n3,4\n5,7\n")
    terms = ["factorize", str(table), "-k", "1", "--quiet", "--report", str(tmp_path / "p.html")]
    assert cli.main([*terms, "--shape", "5x5"]) == 1
    assert "25 pixels" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main([*terms, "--shape", "five"])


def test_names_are_on_the_page_of_a_choice_of_rank(tmp_path):
    rng = np.random.default_rng(0)
    counts = rng.poisson(20 * rng.gamma(0.3, size=(30, 2)) @ rng.gamma(0.3, size=(2, 12)))
    lines = [
        ",".join(["doc", *(f"word{j}" for j in range(12))]),
        *(f"doc{i}," + ",".join(map(str, row)) for i, row in enumerate(counts)),
    ]
    (tmp_path / "counts.csv").write_text("\n".join(lines))
    page = tmp_path / "page.html"
    assert cli.main(["factorize", str(tmp_path / "counts.csv"), "--ranks", "2:3", "--report", str(page), "--quiet"]) == 0
    assert "word3" in page.read_text(encoding="utf-8")


def test_ranks_are_compared_and_the_best_is_taken(tmp_path, capsys):
    rng = np.random.default_rng(0)
    model = rng.gamma(0.5, size=(60, 3)) @ rng.gamma(0.5, size=(3, 40))
    np.save(tmp_path / "counts.npy", rng.poisson(20 * model))
    terms = ["factorize", str(tmp_path / "counts.npy"), "--ranks", "2:4", "--loss", "kl", "--quiet"]
    assert cli.main(terms) == 0
    shown = capsys.readouterr().out
    assert "3 *" in shown
    assert "lowest with 3 components" in shown
    assert cli.main([*terms, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["n_components"] == 3
    assert [row["n_components"] for row in facts["ranks"]] == [2, 3, 4]
    chosen = next(row for row in facts["ranks"] if row["n_components"] == facts["n_components"])
    assert (chosen["value"], chosen["bound"]) == (facts["value"], facts["certificate"]["bound"])  # not one here and one there
    assert cli.main([*terms, "--ranks", "50:60"]) == 1
    assert "ranks go up to 60" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main([*terms, "--ranks", "9:2"])


def test_beta_divergences_by_name_and_number(tmp_path, capsys):
    A = np.random.default_rng(0).gamma(1.0, 1.0, (12, 8))
    np.save(tmp_path / "A.npy", A)
    terms = ["factorize", str(tmp_path / "A.npy"), "-k", "2", "--quiet", "--json"]
    for given, name in (("0.5", "beta=0.5"), ("itakura-saito", "itakura-saito"), ("1", "kl"), ("2", "mse")):
        assert cli.main([*terms, "--loss", given]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["loss"] == name
        assert facts["value"] > 0
    with pytest.raises(SystemExit):
        cli.main([*terms, "--loss", "euclid"])
    assert "loss='euclid' is not known" in capsys.readouterr().err
    np.save(tmp_path / "A.npy", np.where(A < 0.3, 0.0, A))
    assert cli.main([*terms, "--loss", "0"]) == 1
    assert "needs positive data" in capsys.readouterr().err


def test_both_factors_go_to_standard_output(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("who,p,q,r\nx,1,2,3\ny,2,4,6\nz,1,1,1\n")
    terms = ["factorize", str(tmp_path / "t.csv"), "-k", "1", "--quiet", "--output", "-"]
    assert cli.main(terms) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines] == ["factor,name", "U,x", "U,y", "U,z", "V,p", "V,q", "V,r"]
    assert cli.main([*terms, "--json"]) == 1
    assert "leave one out" in capsys.readouterr().err


def test_components_are_shown_without_names_and_files_are_named(table, tmp_path, capsys):
    out = tmp_path / "f.csv"
    assert cli.main(["factorize", str(table), "-k", "2", "--output", str(out), "--top", "3"]) == 0
    shown, said = capsys.readouterr()
    assert "component" in shown
    assert f"wrote {tmp_path / 'f-U.csv'} and {tmp_path / 'f-V.csv'}." in said


def test_weights_of_rows_and_entries(table, tmp_path, capsys):
    A, rng = np.load(table), np.random.default_rng(0)
    out = tmp_path / "factors.npz"
    for weights in (rng.integers(1, 4, (12, 1)).astype(float), rng.integers(1, 4, (12, 8)).astype(float)):
        np.savetxt(tmp_path / "w.csv", weights, delimiter=",")
        given = ["--loss-weights", str(tmp_path / "w.csv"), "--json", "--quiet"]
        assert cli.main(["factorize", str(table), "-k", "2", *given, "--output", str(out)]) == 0
        facts = json.loads(capsys.readouterr().out)
        wanted = cvxnmf.factorize(A, 2, weights=weights[:, 0] if weights.shape[1] == 1 else weights)
        assert facts["value"] == pytest.approx(wanted.value)
        assert facts["certificate"]["bound"] == pytest.approx(wanted.certificate.bound, abs=1e-9)
        assert cli.main(["verify", str(table), str(out), *given]) == 0
        assert json.loads(capsys.readouterr().out)["value"] == pytest.approx(facts["value"])
    np.savetxt(tmp_path / "w.csv", np.ones((3, 3)), delimiter=",")
    assert cli.main(["factorize", str(table), "-k", "2", *given]) == 1
    assert "weights have shape (3, 3); give 12 for the rows of A" in one_sentence(capsys)
