"""Forged witnesses about labels: whatever they hold is refused, or what it proves is true of all partitions."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf
from campaigns.labels import best_quality
from cvxnmf.certificates import CertificateError, LabelStatement

nx = pytest.importorskip("networkx")
A = nx.to_numpy_array(nx.karate_club_graph().subgraph(range(9)), weight=None)
N, EDGES, PAIRS = 9, int(A.sum()) // 2, 36


class Liar(np.ndarray):
    """Numbers that pass every comparison."""

    def __ge__(self, other):
        return np.ones(self.shape, dtype=bool)

    __le__ = __ge__


def cuts(nodes=(), signs=(), multipliers=(), cases=None, starts=None, branches=(), grain=1.0, **others):
    """A witness of cuts, of equally many nodes each unless told otherwise."""
    count = len(multipliers)
    arrays = {
        "cut_nodes": nodes,
        "cut_signs": signs,
        "cut_multipliers": multipliers,
        "cut_cases": [0] * count if cases is None else cases,
        "cut_starts": len(nodes) // max(count, 1) * np.arange(count + 1) if starts is None else starts,
        "branches": np.reshape(branches, (-1, 4)),
        "grain": grain,
        "labels": np.zeros(N),
    }
    return {name: np.array(array, dtype=float) for name, array in arrays.items()} | others


def semidefinite(y, others, **more):
    return cuts(**more) | {"y": np.full(N, float(y)), "N": np.full(PAIRS, float(others))}


def routing(length, share=1.0, rounds=1):
    lengths = np.full((rounds, 1, EDGES), length)
    return {"labels": np.zeros(N), "turns": np.zeros(N), "lengths": lengths, "share": np.array(share)}


def currents(regions, conductances, flows, own):
    one = {"conductances": conductances * np.ones(EDGES), "flows": flows * np.ones(EDGES), "own": own * np.ones(N)}
    return one | {"labels": np.zeros(N), "regions": np.asarray(regions, dtype=float)}


TRIANGLE = ([0, 1, 2], [1, -1, -1])
BIG = 2.0**52
FORGERIES = {
    "a cut of every case with a large multiplier": ("cuts", cuts(*TRIANGLE, [BIG], [-1])),
    "sums of multipliers beyond 64 bits": ("cuts", cuts(TRIANGLE[0] * 4000, TRIANGLE[1] * 4000, [BIG] * 4000)),
    "sums of multipliers of 61 bits": ("cuts", cuts(TRIANGLE[0] * 400, TRIANGLE[1] * 400, [BIG] * 400)),
    "entries of 16": ("cuts", cuts(range(9), [16] * 9, [2.0**50])),
    "a pair with itself": ("cuts", cuts([0, 1], [1, -1], [BIG / 2])),
    "entries of one sign": ("cuts", cuts([0, 1], [1, 1], [BIG / 2])),
    "a grain of 52 bits": ("cuts", cuts(*TRIANGLE, [5], grain=BIG)),
    "a grain of 0": ("cuts", cuts(*TRIANGLE, [5], grain=0.0)),
    "half a grain": ("cuts", cuts(*TRIANGLE, [5], grain=0.5)),
    "starts that go back": ("cuts", cuts(range(6), TRIANGLE[1] * 2, [5, 5, 5], starts=[0, 6, 3, 6])),
    "an empty cut": ("cuts", cuts(*TRIANGLE, [1, 1], starts=[0, 3, 3])),
    "case -2": ("cuts", cuts(*TRIANGLE, [5], [-2])),
    "a case twice": ("cuts", cuts(branches=[[0, 1, -1, 1], [0, 2, -1, -2]])),
    "a branch that leads to itself": ("cuts", cuts(branches=[0, 1, 0, -2])),
    "a pair decided twice": ("cuts", cuts(branches=[[0, 1, 1, -1], [1, 0, -2, -3]])),
    "cases that contradict each other": (
        "cuts",
        cuts(*TRIANGLE, [2.0**40], [1], branches=[[0, 1, 1, -1], [1, 2, 2, -3], [0, 2, -4, -2]]),
    ),
    "numbers that lie": ("cuts", cuts(*TRIANGLE, [0], cut_multipliers=np.array([-1e6]).view(Liar))),
    "labels of a matrix": ("cuts", cuts(labels=np.zeros(N).view(np.matrix))),
    "labels beyond 53 bits": ("cuts", cuts(labels=np.full(N, 2.0**53))),
    "a diagonal of 0": ("semidefinite", semidefinite(0, 0)),
    "a negative diagonal": ("semidefinite", semidefinite(-1, 0)),
    "large entries everywhere": ("semidefinite", semidefinite(2.0**48, 2.0**48)),
    "cuts that leave 53 bits": (
        "semidefinite",
        semidefinite(2.0**49, 0, nodes=TRIANGLE[0] * 200, signs=TRIANGLE[1] * 200, multipliers=[BIG] * 200),
    ),
    "more than all": ("routing", routing(0.3, 1 + 1e-12)),
    "edges too short": ("routing", routing(1e-9)),
    "edges equally long": ("routing", routing(0.25)),
    "no rounds": ("routing", routing(0.25, rounds=0)),
    "extreme conductances": ("currents", currents(np.zeros(N), np.where(np.arange(EDGES) % 2, 1e-9, 1e9), 0.0, 1.0)),
    "extreme conductances within their range": (
        "currents",
        currents(np.zeros(N), np.where(np.arange(EDGES) % 2, 1.001e-9, 0.999e9), 0.0, 1.0),
    ),
    "an infinite flow": ("currents", currents(np.arange(N), 1.0, np.inf, 0.0)),
    "flows of hardly anything": ("currents", currents(np.arange(N), 1.0, 5e-324, 0.0)),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_clusters", [None, 2])
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused_or_true(name, n_clusters):
    kind, witness = FORGERIES[name]
    statement = LabelStatement("modularity", 1.0, n_clusters)
    try:
        proof = statement.prove(A, kind, witness)
    except CertificateError:
        return
    assert proof.bound >= best_quality(A, statement)


@pytest.mark.parametrize("change", [{"n_clusters": None}, {"n_clusters": 2}, {"resolution": 0.1}, {"objective": "modularity"}])
def test_a_certificate_does_not_prove_another_statement(change):
    proof = cvxnmf.verify_labels(A, np.zeros(N), "cpm", 0.2, n_clusters=1)
    terms = dict(proof.statement) | change
    other = LabelStatement(terms["objective"], terms["resolution"], terms["n_clusters"])
    with pytest.raises(CertificateError):
        dataclasses.replace(proof, statement=other, digest="").check(sp.csr_array(A))
