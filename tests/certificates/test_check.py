"""The check itself, fact by fact, on statements whose proofs are made up; data and witnesses as it reads them; files."""

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf.certificates import Certificate, CertificateError, Proof, RankStatement, Statement, data, relative_gap
from cvxnmf.certificates.statement import Kind, is_count, is_weight

PROVED = Proof(10.0, True, 100.0, 1.0)


@dataclass(frozen=True, eq=False)
class MadeUp(Statement):
    """A statement that proves what it is told; the form of no problem."""

    number: float = 0.0
    form = "made-up"
    scope = "model"

    def is_understood(self):
        return True

    @property
    def kinds(self):
        return {"dual": Kind("nothing", lambda A, statement, witness: A)}

    def scale(self, A):
        return A.scale


class MadeUpHigh(MadeUp):
    sense = "max"


def certificate(statement=MadeUp, **facts):
    plain = {"value": 20.0, "bound": 10.0, "scope": "model", "kind": "dual", "rigorous": True, "restored": False, "scale": 100.0}
    return Certificate(**plain | facts, statement=statement(), witness={})


@pytest.mark.parametrize(
    ("facts", "proof", "found"),
    [
        ({}, PROVED, 10.0),
        ({"bound": 10.9}, PROVED, 10.0),
        ({"bound": 11.0}, PROVED, 10.0),
        ({"bound": 11.1}, PROVED, "not the stated"),
        ({"bound": 10.0 - 0.9e-9}, PROVED, 10.0 - 0.9e-9),
        ({"bound": 10.0 - 1.1e-9}, PROVED, "not the stated"),
        ({"bound": 10.0 - 0.9e-9, "scale": 0.1}, PROVED._replace(scale=0.1), "not the stated"),
        ({"bound": 1e3 - 0.9e-8, "value": 1e4}, PROVED._replace(bound=1e3), 1e3 - 0.9e-8),
        ({"bound": math.nan}, PROVED, "not the stated"),
        ({"scale": 100.0 + 0.9e-7}, PROVED, 10.0),
        ({"scale": 100.0 + 1.1e-7}, PROVED, "not that of these data"),
        ({}, PROVED._replace(rigorous=False), "not rigorous"),
        ({"rigorous": False}, PROVED, 10.0),
        ({"rigorous": False}, PROVED._replace(rigorous=False), 10.0),
        ({"rigorous": False, "probable": True}, PROVED._replace(rigorous=False), "no probability"),
        ({"rigorous": False, "probable": True}, PROVED._replace(rigorous=False, probable=True, estimate=15.0), 10.0),
        ({"rigorous": False, "probable": True}, PROVED, 10.0),
        ({"rigorous": False, "probable": True, "bound": 15.0}, PROVED._replace(probable=True, estimate=15.0), "not the stated"),
        ({"rigorous": False, "bound": 15.0}, PROVED._replace(rigorous=False, probable=True, estimate=15.0), 10.0),
        ({"rigorous": False, "bound": 16.5}, PROVED._replace(rigorous=False, probable=True, estimate=15.0), "not the stated"),
        ({"rigorous": False, "bound": 5.0}, PROVED._replace(rigorous=False, probable=True, estimate=15.0), 5.0),
        ({}, PROVED._replace(value=20.0), 10.0),
        ({"value": 20.0 + 1.9e-8}, PROVED._replace(value=20.0), 10.0),
        ({"value": 20.0 + 3e-8}, PROVED._replace(value=20.0), "not that of the witness"),
        ({"value": 20.0 + 0.9e-9, "bound": 0.0}, PROVED._replace(value=20.0, bound=0.0), 0.0),
        ({"value": 0.9e-9, "bound": 0.0}, PROVED._replace(value=0.0, bound=0.0), 0.0),
        ({"value": 1.1e-9, "bound": 0.0}, PROVED._replace(value=0.0, bound=0.0), "not that of the witness"),
        ({"value": 9.9}, PROVED, "exceeds the stated value"),
        ({"value": 10.0}, PROVED, 10.0),
        ({"value": math.nan}, PROVED, "exceeds the stated value"),
        ({"scope": "labels"}, PROVED, "scope"),
        ({"kind": "hearsay"}, PROVED, "cannot be checked"),
    ],
)
def test_facts_of_a_lower_bound(facts, proof, found):
    if isinstance(found, float):
        assert certificate(**facts).check(proof) == found
    else:
        with pytest.raises(CertificateError, match=found):
            certificate(**facts).check(proof)


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({}, 10.0),
        ({"bound": 9.1}, 10.0),
        ({"bound": 8.9}, "not the stated"),
        ({"bound": 10.0 + 0.9e-9}, 10.0 + 0.9e-9),
        ({"bound": 10.0 + 1.1e-9}, "not the stated"),
        ({"value": 10.1}, "is below the stated value"),
    ],
)
def test_facts_of_an_upper_bound(facts, found):
    stated = certificate(MadeUpHigh, **{"value": 5.0} | facts)
    if isinstance(found, float):
        assert stated.check(PROVED) == found
    else:
        with pytest.raises(CertificateError, match=found):
            stated.check(PROVED)


def test_gaps():
    assert (certificate().gap, certificate().relative_gap) == (10.0, 0.5)
    high = certificate(MadeUpHigh, value=5.0)
    assert (high.gap, high.relative_gap) == (5.0, 1.0)
    assert certificate(MadeUpHigh, value=-5.0).relative_gap == 3.0
    assert certificate(MadeUpHigh, value=0.0).relative_gap == pytest.approx(10.0 / 1e-7)
    assert certificate(MadeUpHigh, value=0.0, bound=0.0, scale=0.0).relative_gap == 0.0
    assert relative_gap(1e-8, 0.0, 100.0) == pytest.approx(0.1)
    assert relative_gap(0.0, 0.0, 0.0) == 0.0


def test_certificates_of_proofs():
    for statement, value, bound in (
        (MadeUp(), 20.0, 10.0),
        (MadeUp(), 9.0, 9.0),
        (MadeUpHigh(), 5.0, 10.0),
        (MadeUpHigh(), 11.0, 11.0),
    ):
        made = Certificate.of_proof(value, "dual", PROVED, statement)
        assert (made.bound, made.restored, made.rigorous, made.probable, made.witness) == (bound, False, True, False, {})


def test_digests_are_those_of_earlier_versions():
    """Files that were saved keep their digests."""
    statement, witness = RankStatement("mse", 2, False), {"N": np.arange(4.0).reshape(2, 2)}
    facts = (3.0, 1.0, "rank-k", "dual", True, False, 9.0, statement, witness)
    assert Certificate(*facts).digest == "255942a2fd2287c301cf2bf0c6bb5355d8c44fa35a02a25750671d47aadad3ba"
    assert Certificate(*facts, probable=True).digest == "4fbed904e8759ce5499e7c5ef67a7cf3928e0196b1f9353d9a78b230626665ae"


# Files ----------------------------------------------------------------------------------------------------------------------


def saved(path, witness=None, **facts):
    made = Certificate(3.0, 1.0, "rank-k", "dual", True, False, 9.0, RankStatement("mse", 2, False), witness or {}, probable=True)
    meta = made.facts() | {"digest": made.digest} | facts
    arrays = {"meta": np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)} | (witness or {})
    np.savez_compressed(path, **arrays)
    return path


@pytest.mark.parametrize(
    "facts",
    [{"rigorous": 1}, {"restored": "no"}, {"scope": 1}, {"kind": None}, {"digest": 5}, {"probable": False}, {"probable": "yes"}],
)
def test_facts_of_other_types_are_refused(tmp_path, facts):
    assert Certificate.load(saved(tmp_path / "c.npz")).probable
    with pytest.raises(CertificateError, match="another type"):
        Certificate.load(saved(tmp_path / "c.npz", **facts))


def test_witnesses_are_no_pickled_objects(tmp_path):
    path = saved(tmp_path / "c.npz", witness={"N": np.array([[1.0, None]], dtype=object)})
    with pytest.raises(CertificateError, match="not a certificate file"):
        Certificate.load(path)


def test_a_witness_of_zeros_may_shrink_in_a_file(tmp_path):
    path = saved(tmp_path / "c.npz", witness={"N": np.zeros((1000, 1000))})
    assert path.stat().st_size * 100 < 8e6
    assert Certificate.load(path).witness["N"].shape == (1000, 1000)


# Data and witnesses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("place", [(0, 1), (2, 0)])
def test_one_bad_entry_is_refused(bad, place):
    A = np.ones((3, 3))
    A[place] = bad
    for form in (np.array, sp.csr_array):
        for read in (data.data_matrix, data.square_matrix, data.sparse_graph):
            with pytest.raises(CertificateError, match="nonnegative numbers"):
                read(form(A))
        if not np.isnan(bad):
            with pytest.raises(CertificateError, match="nonnegative numbers"):
                data.observed_matrix(form(A), False)
    both = A.copy()
    both[1, 1] = np.inf
    with pytest.raises(CertificateError, match="nonnegative numbers"):
        data.observed_matrix(both, False)


def test_graphs_without_entries_are_refused():
    for empty in (np.zeros((2, 2)), sp.csr_array((2, 2))):
        with pytest.raises(CertificateError, match="nonnegative numbers"):
            data.sparse_graph(empty)
    assert data.sparse_graph([[0.0, 0.0, 0.0], [0.0, 0.0, 4.0], [0.0, 2.0, 0.0]]).toarray().tolist() == [[0.0, 3.0], [3.0, 0.0]]


def test_matrices_are_made_symmetric():
    assert data.square_matrix([[0.0, 1.0], [3.0, 5.0]]).tolist() == [[0.0, 2.0], [2.0, 5.0]]
    assert data.observed_matrix([[0.0, 1.0], [3.0, 5.0]], True).tolist() == [[0.0, 2.0], [2.0, 5.0]]
    for read in (data.square_matrix, data.sparse_graph, lambda A: data.observed_matrix(A, True)):
        with pytest.raises(CertificateError, match="square matrix"):
            read(np.ones((2, 3)))


def test_every_array_of_a_witness_is_finite():
    witness = {
        "a": np.ones(2),
        "b": np.array([1.0, np.nan]),
        "c": np.array([np.inf]),
        "long": np.array([1e300], np.longdouble) ** 2,
    }
    assert data.witness_arrays(witness, "a")[0].tolist() == [1.0, 1.0]
    for names in (("b",), ("c",), ("a", "b"), ("b", "a"), ("a", "long"), ("long", "a")):
        with pytest.raises(CertificateError, match="not finite"):
            data.witness_arrays(witness, *names)
    with pytest.raises(CertificateError, match="not finite"):
        data.witness_array(witness, "b")


def test_statements_and_terms():
    assert MadeUp().explain("dual") == "nothing"
    assert MadeUp().explain("hearsay") == "hearsay"
    assert Proof(1.0, True, 2.0) == (1.0, True, 2.0, 0.0, None, False, -math.inf)
    assert [is_weight(x) for x in (0.0, 1e120, 1.1e120, -1e-9, True, "1", math.nan)] == [True, True, *[False] * 5]
    assert [is_weight(x, positive=True) for x in (0.0, 1e-300)] == [False, True]
    assert [is_count(x) for x in (1, 0, True, 1.0)] == [True, False, False, False]
