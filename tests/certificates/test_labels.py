"""Certificates about labels: what they prove, and forgeries that they refuse."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from cvxnmf.certificates import Certificate, CertificateError, LabelStatement
from cvxnmf.certificates.label_cuts import least_squares
from cvxnmf.certificates.pair_objectives import exact_sum, pair_objective
from cvxnmf.graphs.label_bounds.verify import LabelBounds

nx = pytest.importorskip("networkx")
A = nx.to_scipy_sparse_array(nx.karate_club_graph(), weight=None)


@pytest.fixture(scope="module", params=["by_cuts", "by_semidefinite", "by_routing", "by_currents"])
def certificate(request):
    bounds = LabelBounds(A, np.zeros(34, dtype=np.int64), LabelStatement("modularity", 1.0, 4), 0.01, None)
    getattr(bounds, request.param)()
    return bounds.found


def forged(certificate, **change):
    """The certificate with other entries, and a digest that fits them."""
    witness = dict(certificate.witness) | change.pop("witness", {})
    return dataclasses.replace(certificate, witness=witness, digest="", **change)


def test_larger_is_better(certificate):
    assert certificate.scope == "labels"
    assert certificate.sense == "max"
    assert certificate.bound >= 0.419789612
    assert certificate.gap == certificate.bound - certificate.value > 0
    assert certificate.check(A) == certificate.bound


def test_files_round_trip(certificate, tmp_path):
    certificate.save(tmp_path / "labels.npz")
    again = Certificate.load(tmp_path / "labels.npz")
    assert again.check(A) == certificate.bound
    assert again.digest == certificate.digest
    assert str(again) == str(certificate)


def test_another_graph_is_refused(certificate):
    other = nx.to_scipy_sparse_array(nx.les_miserables_graph(), weight=None)
    with pytest.raises(CertificateError):
        certificate.check(other)


def test_every_array_of_the_witness_matters(certificate):
    for name, array in certificate.witness.items():
        for change in ({name: array[..., :0] if array.ndim else np.zeros(2)}, {name: np.full_like(array, np.nan)}):
            if array.size:
                with pytest.raises(CertificateError):
                    forged(certificate, witness=change).check(A)
        with pytest.raises(CertificateError):
            Certificate(**_entries(certificate) | {"witness": {k: v for k, v in certificate.witness.items() if k != name}}).check(
                A
            )


def _entries(certificate):
    return {field.name: getattr(certificate, field.name) for field in dataclasses.fields(certificate)} | {"digest": ""}


@pytest.mark.parametrize("name", ["cut_multipliers", "N", "flows", "own", "conductances", "regions", "lengths", "share"])
def test_negative_weights_are_refused(certificate, name):
    if name not in certificate.witness:
        pytest.skip("not in this witness")
    with pytest.raises(CertificateError):
        forged(certificate, witness={name: -np.abs(certificate.witness[name]) - 1}).check(A)


def test_a_lower_bound_than_proved_is_refused(certificate):
    with pytest.raises(CertificateError, match="proves the bound"):
        forged(certificate, bound=certificate.bound - 0.01).check(A)


def test_a_better_value_than_the_labels_have_is_refused(certificate):
    with pytest.raises(CertificateError):
        forged(certificate, value=0.4).check(A)


@pytest.mark.parametrize(
    "change", [("cut_nodes", 99), ("cut_nodes", -1), ("cut_nodes", 0.5), ("cut_cases", 7), ("cut_starts", 2)]
)
def test_wrong_nodes_cases_and_pieces_are_refused(certificate, change):
    name, entry = change
    if name not in certificate.witness or not len(certificate.witness["cut_multipliers"]):
        pytest.skip("not in this witness")
    array = certificate.witness[name].copy()
    array[0] = entry
    with pytest.raises(CertificateError):
        forged(certificate, witness={name: array}).check(A)


def test_a_node_twice_in_a_cut_is_refused(certificate):
    if "cut_nodes" not in certificate.witness:
        pytest.skip("not in this witness")
    nodes = certificate.witness["cut_nodes"].copy()
    nodes[1] = nodes[0]
    with pytest.raises(CertificateError, match="twice"):
        forged(certificate, witness={"cut_nodes": nodes}).check(A)


@pytest.mark.parametrize(
    "branches",
    [[[0, 1, -1, -1]], [[0, 1, -1, 0]], [[0, 0, -1, -2]], [[0, 99, -1, -2]], [[0, 1, 1, -1], [0, 1, -2, -3]], [[0, 1, -1, -3]]],
)
def test_cases_that_are_no_tree_are_refused(branches):
    bounds = LabelBounds(A, np.zeros(34, dtype=np.int64), LabelStatement("modularity", 1.0), 0.01, None)
    with pytest.raises(CertificateError):
        forged(bounds.found, witness={"branches": np.array(branches, dtype=float)}).check(A)


HALVES = np.array([0.0 if node in nx.bfs_tree(nx.karate_club_graph(), 0, depth_limit=1) else 1.0 for node in range(34)])
CURRENTS = {"conductances": np.ones(78), "own": np.zeros(34), "flows": np.zeros(78), "regions": np.zeros(34)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"regions": HALVES}, "not connected"),
        ({"flows": np.ones(78)}, "inside a region"),
        ({"regions": np.arange(34.0), "flows": 1e4 * (np.arange(78) == 0)}, "exceed a demand"),
        ({"own": np.full(34, 1.01)}, "from 0 to 1"),
        ({"conductances": np.zeros(78)}, "out of range"),
        ({"regions": np.full(34, 34.0)}, "do not exist"),
        ({"regions": np.full(34, 0.5)}, "whole numbers"),
    ],
)
def test_forged_currents_are_refused(change, message):
    statement = LabelStatement("modularity", 1.0)
    labels = {"labels": np.zeros(34)}
    statement.prove(A, "currents", CURRENTS | labels)
    with pytest.raises(CertificateError, match=message):
        statement.prove(A, "currents", CURRENTS | labels | change)


def test_the_least_sum_of_squares_by_enumeration():
    for total in range(-6, 7):
        for k in range(1, 5):
            grid = np.indices((19,) * k).reshape(k, -1) - 9
            best = (grid**2).sum(axis=0)[grid.sum(axis=0) == total].min()
            assert least_squares(np.array([total]), k)[0] == best
        assert least_squares(np.array([total]), None)[0] == abs(total)


def test_exact_sums_do_not_overflow():
    assert exact_sum(np.full(8, 2**62)) == 2**65
    assert exact_sum(np.full(8, -(2**62))) == -(2**65)


def test_qualities_agree_with_their_formulas():
    labels = np.arange(34) % 3
    same = labels[:, None] == labels[None, :]
    d = A.sum(axis=0)
    dense = A.toarray()
    expected = {
        ("modularity", 0.7): ((dense - 0.7 * np.outer(d, d) / d.sum()) * same).sum() / d.sum(),
        ("cpm", 0.3): ((dense - 0.3) * same).sum(),
        ("performance", 1.0): cvxnmf.performance(dense, labels),
        ("correlation", 1.0): (dense * same).sum(),
    }
    for (name, resolution), value in expected.items():
        exact, rounded = (pair_objective(matrix, name, resolution) for matrix in (dense, dense * (1 + 1e-14)))
        assert exact.exact
        assert float(exact.value(labels)) == pytest.approx(value)
        assert float(rounded.value(labels)) == pytest.approx(value)


def test_weights_that_are_not_whole_are_rounded_up():
    rng = np.random.default_rng(0)
    B = rng.random((9, 9)) * (rng.random((9, 9)) < 0.5)
    B = (B + B.T) / 2
    objective = pair_objective(B, "modularity", 1.0)
    exact = [[Fraction(float(x)) for x in row] for row in B]
    d = [sum(row) for row in exact]
    total = sum(d)
    assert not objective.exact
    for i, row in enumerate(objective.dense().tolist()):
        for j, rounded in enumerate(row):
            assert 0 <= rounded / Fraction(objective.scale) - (exact[i][j] - d[i] * d[j] / total) < 1e-11


def test_whole_numbers_give_the_exact_optimum():
    two = sp.block_diag([np.ones((3, 3)) - np.eye(3)] * 2)
    certificate = cvxnmf.verify_labels(two, [0, 0, 0, 1, 1, 1])
    assert certificate.value == certificate.bound == float(Fraction(1, 2))


def test_of_whole_numbers_nothing_between_two_steps_is_proved(certificate):
    lower = np.nextafter(certificate.bound, -np.inf)
    with pytest.raises(CertificateError, match="proves the bound"):
        forged(certificate, bound=lower).check(A)


@pytest.mark.parametrize("way", ["by_routing", "by_currents"])
def test_no_more_is_spared_than_was_added_for_rounding(way):
    """Far more pairs than edges: the spare goes by the loads of the edges, not by the size of all pairs."""
    B = sp.csr_array(A * 0.1)
    bounds = LabelBounds(B, np.zeros(34, dtype=np.int64), LabelStatement("cpm", 1e6), 0.003, None)
    getattr(bounds, way)()
    proof = bounds.found.statement.prove(B, bounds.found.kind, bounds.found.witness)
    assert proof.spare <= 1e-12 * float(B.sum())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("change", [lambda M: M * 1j, lambda M: np.ma.masked_array(M, M > 1), lambda M: M.astype(str)])
def test_data_that_are_no_real_numbers_are_refused(certificate, change):
    with pytest.raises(CertificateError, match="square matrix"):
        certificate.check(change(A.toarray()))


def test_a_graph_without_edges_has_a_rounded_bound_too():
    A = np.zeros((3, 3))
    certificate = cvxnmf.verify_labels(A, [0, 1, 2], objective="cpm", resolution=np.pi / 10)
    assert certificate.value <= certificate.check(A) == certificate.bound <= certificate.value + 1e-9
