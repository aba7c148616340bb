"""Results in files: what is saved comes back, and files of strangers are checked like data of users."""

import dataclasses
import io
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import cvxnmf
from builders import random_counts, random_graph
from cvxnmf.certificates import LabelStatement
from cvxnmf.results.hierarchy import Code


def results():
    A, table = random_graph(12, 0), random_counts(9, 0)[:, :6]
    two = np.kron(np.eye(2), np.ones((4, 4)))
    yield cvxnmf.solve(cvxnmf.symmetric(A, trace="auto")), A
    yield cvxnmf.solve(cvxnmf.symmetric(two)), two
    yield cvxnmf.solve(cvxnmf.nonsymmetric(table, trace=2.0)), table
    yield cvxnmf.solve(cvxnmf.sparse(A, 0.1)), A
    yield cvxnmf.recursive(table[:6] @ table[:6].T, n_stages=2), table[:6] @ table[:6].T
    yield cvxnmf.factorize(table.astype(np.float32), 2), table.astype(np.float32)
    yield cvxnmf.exp_factor(cvxnmf.solve(cvxnmf.symmetric(A, trace="auto"))), None
    yield cvxnmf.exp_factor(cvxnmf.solve(cvxnmf.nonsymmetric(table, trace=4.0))), None


@pytest.mark.parametrize("number", range(8))
def test_what_comes_back_is_what_was_saved(number, tmp_path):
    result, A = list(results())[number]
    cvxnmf.save(result, tmp_path / "result.npz")
    again = cvxnmf.load(tmp_path / "result.npz")
    assert type(again) is type(result)
    assert repr(again) == repr(result)
    for name in ("U", "V", "X", "v", "W"):
        if hasattr(result, name):
            assert np.array_equal(getattr(again, name), getattr(result, name))
            assert getattr(again, name).dtype == getattr(result, name).dtype
    if hasattr(result, "V"):
        assert (again.V is again.U) == (result.V is result.U)
    if A is not None:
        assert again.status is result.status
        assert again.history == result.history
        assert again.certificate.check(A) == result.certificate.bound


def test_bad_files_and_objects(tmp_path):
    (tmp_path / "text.npz").write_text("no result")
    with pytest.raises(ValueError, match=r"is not a result file written by cvxnmf\.save"):
        cvxnmf.load(tmp_path / "text.npz")
    with pytest.raises(FileNotFoundError):
        cvxnmf.load(tmp_path / "absent.npz")
    with pytest.raises(ValueError, match="A path is needed"):
        cvxnmf.load(3)
    with pytest.raises(ValueError, match="can be saved, not dict"):
        cvxnmf.save({}, tmp_path / "result.npz")
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(ValueError, match="is not a result file"):
        cvxnmf.load(tmp_path / "other.npz")


@pytest.mark.parametrize("with_factors", [False, True])
def test_partitions_come_back_with_their_proofs(with_factors, tmp_path):
    graph = nx.relabel_nodes(nx.barbell_graph(5, 0), {0: "a", 1: ("a", "pair"), 2: 2.5})
    found = cvxnmf.partition(graph, 2)
    if with_factors:
        assert found.rank_certificate.bound <= found.rank_certificate.value
    cvxnmf.save(found, tmp_path / "partition.npz")
    again = cvxnmf.load(tmp_path / "partition.npz")
    assert again.nodes[:3] == ("a", "('a', 'pair')", 2.5)
    for name in ("labels", "memberships", "order", "spectrum"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    assert repr(again) == repr(found)
    assert again.certificate.check(again.A) == found.certificate.bound
    assert again.rank_certificate.bound == found.rank_certificate.bound
    np.testing.assert_array_equal(again.U, found.U)


@pytest.mark.parametrize("prove", [False, True])
def test_partitions_keep_their_objective_and_what_is_proved_of_it(prove, tmp_path):
    found = cvxnmf.partition(nx.cycle_graph(7), objective="cpm", resolution=0.3, n_clusters=4, prove=prove)
    cvxnmf.save(found, tmp_path / "partition.npz")
    again = cvxnmf.load(tmp_path / "partition.npz")
    assert (again.label_certificate_at_hand is not None) == prove
    assert again.several_optimal == found.several_optimal
    assert dict(again.label_certificate.statement) == dict(found.label_certificate.statement)
    assert again.label_certificate.digest == found.label_certificate.digest
    if found.other_optimum is not None:
        np.testing.assert_array_equal(again.other_optimum, found.other_optimum)


# --- files of earlier versions ---------------------------------------------------------------------------------------------

SAVED = Path(__file__).parent.parent / "data" / "saved"
FACTS = json.loads((SAVED / "facts.json").read_text(encoding="utf8"))
INPUTS = dict(np.load(SAVED / "inputs.npz"))


@pytest.mark.parametrize("name", [name for name in FACTS if name.startswith("result")])
def test_results_saved_by_earlier_versions_load_and_check(name):
    facts, result = FACTS[name], cvxnmf.load(SAVED / f"{name}.npz")
    assert type(result).__name__ == facts["type"]
    assert repr(result) == facts["repr"]
    if hasattr(result, "certificate"):
        assert result.certificate.check(INPUTS[facts["data"]]) == pytest.approx(result.certificate.bound, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in FACTS if name.startswith("certificate")])
def test_certificates_saved_by_earlier_versions_load_and_check(name):
    facts, certificate = FACTS[name], cvxnmf.Certificate.load(SAVED / f"{name}.npz")
    for fact in ("value", "bound", "kind", "scope", "rigorous"):
        assert getattr(certificate, fact) == facts[fact]
    assert certificate.check(INPUTS[facts["data"]]) == pytest.approx(facts["bound"], rel=1e-9)


# --- files of strangers ----------------------------------------------------------------------------------------------------


def tampered(name, **changes):
    """The bytes of a saved result with some arrays or facts replaced by what a function makes of them."""
    arrays = dict(np.load(SAVED / f"result-{name}.npz"))
    facts = json.loads(bytes(arrays["meta"]).decode())
    for key, change in changes.items():
        kept = arrays if key in arrays else facts
        kept[key] = change(kept[key].copy() if isinstance(kept[key], np.ndarray) else kept[key])
    arrays["meta"] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def entry(value, place=0):
    def change(array):
        array.flat[place] = value
        return array

    return change


TAMPERED = {
    "an index outside": ("partition", {"A.indices": entry(10**9)}, "A.indices is out of range"),
    "a negative index": ("partition", {"A.indices": entry(-5)}, "A.indices is out of range"),
    "rows that run backwards": ("partition", {"A.indptr": entry(150, 3)}, "non-decreasing"),
    "rows beyond the entries": ("partition", {"A.indptr": entry(10**6, -1)}, "should be"),
    "indices that are no integers": ("partition", {"A.indices": lambda a: a.astype(float)}, "A.indices is malformed"),
    "a shape of another matrix": ("partition", {"A.shape": entry(10**12)}, "index pointer size"),
    "a negative weight": ("partition", {"A.data": entry(-1.0)}, "Negative values in data"),
    "weights of one direction": ("partition", {"A.data": entry(9.0)}, "not symmetric"),
    "a label of -7": ("partition", {"labels": entry(-7)}, "labels is out of range"),
    "a label beyond the clusters": ("partition", {"labels": entry(2)}, "labels is out of range"),
    "labels that are no integers": ("partition", {"labels": lambda a: a + 0.5}, "labels is malformed"),
    "too few labels": ("partition", {"labels": lambda a: a[1:]}, "labels is malformed"),
    "labels of other memberships": ("partition", {"labels": lambda a: 1 - a}, "labels are not those of its memberships"),
    "an order out of range": ("partition", {"order": entry(34)}, "order is out of range"),
    "an order that repeats a node": ("partition", {"order": lambda a: entry(a[1])(a)}, "its order is not one of the nodes"),
    "a membership that is NaN": ("partition", {"memberships": entry(np.nan)}, "memberships is malformed"),
    "memberships that are no shares": ("partition", {"memberships": lambda a: 2 * a}, "not shares"),
    "a modularity of other labels": (
        "partition",
        {"modularity": lambda value: value + 0.1},
        "modularity is not that of its labels",
    ),
    "a performance that is NaN": ("partition", {"performance": lambda value: float("nan")}, "performance is malformed"),
    "nodes of the same name": ("partition", {"nodes": lambda names: [names[1], *names[1:]]}, "one name each"),
    "names that are no names": ("partition", {"nodes": lambda names: [[1], *names[1:]]}, "one name each"),
    "factors of another graph": ("partition", {"factorization/U": lambda a: a[1:]}, "factors are those of another graph"),
    "a point of another graph": ("partition", {"solution/point.v": lambda a: a[1:]}, "its point is malformed"),
    "weights of another scale": ("partition", {"A.data": lambda a: 2 * a}, "its solution is one of another graph"),
    "weights beyond all numbers": ("partition", {"A.data": lambda a: 1e300 * a}, "is not a result file"),
    "an infinite spectrum": ("partition", {"spectrum": entry(np.inf)}, "its spectrum is not one of the graph"),
    "a spectrum of more nodes": ("partition", {"spectrum": lambda a: np.ones(99)}, "its spectrum is not one of the graph"),
    "a noise edge below 0": ("partition", {"noise_edge": lambda value: -1.0}, "noise_edge is malformed"),
    "a noise edge that is true": ("partition", {"noise_edge": lambda value: True}, "noise_edge is malformed"),
    "an infinite time": ("solution-symmetric", {"seconds": lambda value: float("inf")}, "seconds is malformed"),
    "a history that is none": ("solution-symmetric", {"history": lambda lines: {}}, "its history is malformed"),
    "a factor of zeros": ("factorization", {"U": lambda a: 0 * a}, "its factors are too small"),
    "a factor of almost nothing": ("factorization", {"U": lambda a: 1e-9 * a}, "its factors are too small"),
    "fewer components": (
        "factorization",
        {"U": lambda a: a[:, 1:], "V": lambda a: a[:, 1:]},
        "its certificate is about another number of components",
    ),
    "a factor that is NaN": ("factorization", {"U": entry(np.nan)}, "U is malformed"),
    "a negative factor": ("factorization", {"V": entry(-1.0)}, "not finite and nonnegative"),
    "factors of integers": ("factorization", {"U": lambda a: a.astype(int)}, "U is malformed"),
    "factors of different ranks": ("factorization", {"V": lambda a: a[:, 1:]}, "do not belong together"),
    "another value": ("factorization", {"value": lambda value: 0.5 * value}, "its value is not that of its certificate"),
    "an infinite factor": ("factors", {"U": entry(np.inf)}, "not finite and nonnegative"),
    "an error that is NaN": ("factors", {"frobenius_error": lambda value: float("nan")}, "frobenius_error is malformed"),
    "a position that is infinite": ("solution-symmetric", {"point.W": entry(np.inf)}, "its point is malformed"),
    "more rows than nodes": ("solution-nonsymmetric", {"point.n_rows": lambda n: 99}, "its point is malformed"),
    "a matrix that is not symmetric": ("solution-sparse", {"point.matrix": entry(9.0, 1)}, "not finite and symmetric"),
    "another status": ("solution-symmetric", {"status": lambda name: "PERFECT"}, "is not a result file"),
    "another witness": ("solution-symmetric", {"witness.Z": entry(9.0)}, "its certificate was altered"),
    "a newer format": ("solution-symmetric", {"format": lambda number: 2}, "newer format"),
    "an unknown kind": ("solution-symmetric", {"kind": lambda name: "Proof"}, "is not a result file"),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_result_that_was_tampered_with_is_refused(case, tmp_path):
    name, changes, sentence = TAMPERED[case]
    (tmp_path / "tampered.npz").write_bytes(tampered(name, **changes))
    with pytest.raises(ValueError, match=r"is not a result file written by cvxnmf\.save") as caught:
        cvxnmf.load(tmp_path / "tampered.npz")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_any_change_after_saving_is_noticed(tmp_path):
    result = cvxnmf.load(SAVED / "result-factorization.npz")
    cvxnmf.save(result, tmp_path / "result.npz")
    arrays = dict(np.load(tmp_path / "result.npz"))
    arrays["U"] *= 0.5
    np.savez(tmp_path / "result.npz", **arrays)
    with pytest.raises(ValueError, match="it was changed after it was written"):
        cvxnmf.load(tmp_path / "result.npz")


@pytest.mark.parametrize("name", ["partition", "factorization", "solution-symmetric"])
def test_damaged_results_are_loaded_or_refused_in_a_sentence(name, tmp_path):
    whole, rng = (SAVED / f"result-{name}.npz").read_bytes(), np.random.default_rng(0)
    for _ in range(60):
        content = bytearray(whole)
        for place in rng.integers(0, len(content), 3):
            content[place] = rng.integers(0, 256)
        path = tmp_path / "damaged.npz"
        path.write_bytes(bytes(content[: rng.integers(1, len(content)) if rng.random() < 0.3 else None]))
        try:
            cvxnmf.load(path)
        except ValueError as error:
            assert str(error).startswith(f"{path} is not a result file")


@pytest.mark.parametrize("share", [0.0, 1e-9, 0.1])
def test_factors_that_are_too_small_for_their_divergence_are_refused(share, tmp_path):
    found = cvxnmf.factorize(np.random.default_rng(0).random((8, 6)) + 0.1, 2, loss="kl")
    cvxnmf.save(dataclasses.replace(found, U=share * found.U), tmp_path / "small.npz")
    with pytest.raises(ValueError, match="its factors are too small for its value"):
        cvxnmf.load(tmp_path / "small.npz")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"several_optimal": 1}, "several_optimal is malformed"),
        ({"several_optimal": False}, "do not belong together"),
        ({"other_optimum": np.zeros(7, dtype=int)}, "its other optimum is none"),
        ({"label_statement": LabelStatement("modularity", 1.0, 1)}, "its number of clusters is not that of its labels"),
        ({"label_statement": LabelStatement("modularity", 1.0, 9)}, "its number of clusters is not that of its labels"),
        ({"alternatives": ((99, 1.0),)}, "its numbers of clusters are malformed"),
        ({"code": Code(0.0, True)}, "dispersion is malformed"),
        ({"code": Code(1.0, 2)}, "even is malformed"),
    ],
)
def test_claims_about_labels_that_do_not_hold_are_refused(changes, sentence, tmp_path):
    ring = cvxnmf.partition(nx.cycle_graph(7), objective="modularity", prove=True)
    assert ring.several_optimal
    cvxnmf.save(ring, tmp_path / "ring.npz")
    assert np.array_equal(cvxnmf.load(tmp_path / "ring.npz").other_optimum, ring.other_optimum)
    cvxnmf.save(ring.with_changes(**{"proved_labels": None} | changes), tmp_path / "ring.npz")
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.load(tmp_path / "ring.npz")


def test_description_lengths_are_told_by_the_code_that_was_saved(tmp_path):
    found = cvxnmf.partition(nx.karate_club_graph())
    cvxnmf.save(found, tmp_path / "club.npz")
    assert cvxnmf.load(tmp_path / "club.npz").hierarchy.lengths == pytest.approx(found.hierarchy.lengths)


def test_results_are_saved_under_paths_only():
    with pytest.raises(ValueError, match="A path is needed to save a result, not 77"):
        cvxnmf.save(cvxnmf.load(SAVED / "result-factors.npz"), 77)
