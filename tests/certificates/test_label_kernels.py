"""The arithmetic of label bounds on random witnesses against twins in fractions, and every limit of what they accept."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import exact_labels as exact
from cvxnmf.certificates import CertificateError, label_currents, label_routing
from cvxnmf.certificates.label_currents import Currents, bound_by_currents
from cvxnmf.certificates.label_cuts import LARGEST_EXACT, Branch, Cuts, bound_by_cases, check_cuts, enumerate_cases
from cvxnmf.certificates.label_routing import Routing, bound_by_routing
from cvxnmf.certificates.label_semidefinite import bound_by_semidefinite
from cvxnmf.certificates.pair_objectives import LARGEST_PAIR, pair_objective

NAMES = ("modularity", "cpm", "performance", "correlation")
RESOLUTIONS = {"modularity": 1.3, "cpm": 0.7}


def draw(seed, name=None):
    """A random graph as a quality, and its pair weights as fractions in the unit of the data; even seeds: of whole numbers."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    upper = np.triu((rng.random((n, n)) < 0.6) * (rng.integers(1, 5, (n, n)) if seed % 2 == 0 else rng.random((n, n)) + 0.1))
    upper[np.arange(n - 1), np.arange(1, n)] = 1.0
    name = name or NAMES[seed // 2 % 4]
    if name == "correlation":
        upper = upper * rng.choice([-1.0, 1.0, 1.0], (n, n))
    objective = pair_objective(upper + np.triu(upper, 1).T, name, RESOLUTIONS.get(name, 1.0))
    L, edges = objective.dense(), set(zip(objective.rows.tolist(), objective.columns.tolist(), strict=True))
    scale, beta = Fraction(objective.scale), Fraction(objective.beta)
    sizes = [Fraction(size) for size in objective.sizes.tolist()]
    V = [
        [
            Fraction(int(L[i, j])) / scale if i == j or (min(i, j), max(i, j)) in edges else -beta * sizes[i] * sizes[j]
            for j in range(n)
        ]
        for i in range(n)
    ]
    return rng, objective, V, sorted((i, j) for i, j in edges if i < j), sizes


def whole(objective):
    return [[Fraction(int(x)) for x in row] for row in objective.dense()]


def nearly_above(bound, true, scale):
    """Whether a bound is no lower than the true one, and higher by rounding only; half of what was added may be spared."""
    size = float(max(abs(true), 1)) * 1e-8
    assert true <= bound.total / Fraction(scale) <= true + Fraction(size)
    assert true <= (bound.total - bound.spare) / Fraction(scale)
    assert 0 < bound.spare <= Fraction(scale) * Fraction(size)


# Pair weights ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(16))
def test_pair_weights_are_those_of_the_data_or_rounded_up(seed):
    rng, objective, _, _, _ = draw(seed)
    L, n = objective.dense(), objective.n
    dense = np.zeros((n, n))
    dense[objective.rows, objective.columns] = dense[objective.columns, objective.rows] = objective.weights
    for i in range(n):
        for j in range(n):
            p, q = (Fraction(objective.sizes[node].item()) for node in (i, j))
            true = Fraction(objective.scale) * (
                Fraction(objective.alpha) * Fraction(dense[i, j]) - Fraction(objective.beta) * p * q
            )
            entry = int(L[i, j])
            assert entry == true if objective.exact else true <= entry <= true + 3 + Fraction(objective.largest_pair(), 2**35)
            assert abs(entry) <= objective.largest_pair()
    i, j = rng.integers(0, n, (2, 40))
    assert np.array_equal(objective.pairs(i, j), L[i, j])
    assert np.array_equal(objective.diagonal(), np.diag(L))
    assert np.array_equal(objective.edges(), L[objective.rows, objective.columns])


@pytest.mark.parametrize("seed", range(16))
def test_values_and_their_steps(seed):
    rng, objective, V, _, _ = draw(seed)
    n = objective.n
    values = set()
    for _ in range(20):
        labels = rng.integers(0, n, n)
        true = sum(V[i][j] for i in range(n) for j in range(n) if labels[i] == labels[j])
        value = objective.value(labels)
        assert float(value) == pytest.approx(
            float((Fraction(objective.offset) + true) / Fraction(objective.unit)), rel=1e-9, abs=1e-9
        )
        total = Fraction(objective.scale) * true
        assert objective.quality(total) >= value - Fraction(1, 10**9)
        if objective.exact:
            assert value == (objective.offset + true) / Fraction(objective.unit) == objective.quality(total)
            assert objective.highest_attainable(total) == total
            assert objective.highest_attainable(total + objective.step() - Fraction(1, 7)) == total
            values.add(int(total))
        else:
            assert objective.highest_attainable(total) == total
    assert objective.step() == 0 or len({value % objective.step() for value in values}) == 1
    assert objective.exact is (seed % 2 == 0 or objective.offset != 0)


@pytest.mark.parametrize("t", [0, 1, 16, 17])
def test_halves_and_quarters_are_whole_numbers_after_doubling(t):
    A = np.array([[0.0, 2.0**-t], [2.0**-t, 0.0]])
    objective = pair_objective(A, "correlation", 1.0)
    assert objective.exact is (t <= 16)
    assert objective.value(np.zeros(2, dtype=int)) == pytest.approx(2 * 2.0**-t, rel=1e-12)


def test_numbers_that_64_bits_may_not_hold_are_rounded():
    for weight, exact_one in ((2.0**49, True), (2.0**50, False), (2.0**70, False)):
        assert pair_objective(np.array([[0.0, weight], [weight, 0.0]]), "correlation", 1.0).exact is exact_one
    assert LARGEST_PAIR == 2**50
    assert not pair_objective(np.array([[0.0, 2.0**28], [2.0**28, 0.0]]), "modularity", 1.0).exact
    assert pair_objective(np.array([[0.0, 2.0**12], [2.0**12, 0.0]]), "modularity", 1.0).exact


def test_data_that_are_too_small_or_large_are_refused():
    for factor, safe in ((1e99, True), (1e-99, True), (1e101, False), (1e-101, False)):
        A = factor * (np.ones((3, 3)) - np.eye(3))
        if safe:
            assert pair_objective(A, "modularity", 1.0).n == 3
        else:
            with pytest.raises(CertificateError, match="rounding"):
                pair_objective(A, "modularity", 1.0)


# Cuts -----------------------------------------------------------------------------------------------------------------------


def random_cuts(rng, n, cases=1):
    lengths = rng.integers(2, 5, int(rng.integers(1, 7)))
    nodes = np.concatenate([rng.choice(n, length, replace=False) for length in lengths])
    signs = rng.choice([-3, -2, -1, 1, 2], len(nodes))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Cuts(starts, nodes, signs, rng.integers(0, 9, len(lengths)), rng.integers(-1, cases, len(lengths)))


def arrays(cuts):
    return {f"cut_{name}": part for name, part in cuts._asdict().items()}


@pytest.mark.parametrize("k", [None, 1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_cuts_and_cases_prove_what_their_twin_proves(seed, k):
    rng, objective, _, _, _ = draw(seed)
    n, branches = objective.n, [Branch(0, 2, 1, -1), Branch(3, 1, -3, -2)][: int(rng.integers(0, 3))]
    branches = [branch._replace(together=-2) for branch in branches] if len(branches) == 1 else branches
    cuts, grain = random_cuts(rng, n, len(branches) + 1), int(rng.integers(1, 6))
    check_cuts(cuts, objective, grain, len(branches) + 1)
    witness = arrays(cuts) | {"grain": grain, "branches": np.array(branches).reshape(-1, 4)}
    assert bound_by_cases(objective, cuts, branches, grain, k) == exact.cuts_bound(whole(objective), witness, k)


@pytest.mark.parametrize("k", [None, 1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_semidefinite_matrices_prove_what_their_twin_proves(seed, k):
    rng, objective, _, _, _ = draw(seed)
    n, grain = objective.n, int(rng.integers(1, 6))
    cuts, N = random_cuts(rng, n), rng.integers(0, 9, n * (n - 1) // 2)
    y = grain * 2 * np.abs(objective.dense()).sum(axis=1) + 10_000
    witness = arrays(cuts) | {"grain": grain, "y": y, "N": N}
    proved = bound_by_semidefinite(objective, cuts, y, N, grain, k)
    assert proved == exact.semidefinite_bound(whole(objective), witness, k)
    for wrong in ({"y": y[1:]}, {"N": N[1:]}, {"N": np.where(np.arange(len(N)) == 3, -1, N)}, {"y": -y}):
        parts = {"y": y, "N": N} | wrong
        with pytest.raises(CertificateError):
            bound_by_semidefinite(objective, cuts, parts["y"], parts["N"], grain, k)
    with pytest.raises(CertificateError, match="too large"):
        bound_by_semidefinite(objective, cuts, y + np.where(np.arange(n) == 1, LARGEST_EXACT // 4, 0), N, grain, k)
    with pytest.raises(CertificateError, match="too large"):
        bound_by_semidefinite(objective, cuts, y, N, LARGEST_EXACT // 4, k)
    heavy = cuts._replace(multipliers=cuts.multipliers + LARGEST_EXACT)
    with pytest.raises(CertificateError, match="semidefinite"):  # no entry of such a matrix is above those of its diagonal
        bound_by_semidefinite(objective, heavy, y, N, grain, k)


CUTS = Cuts(np.array([0, 2, 5]), np.array([0, 1, 1, 2, 3]), np.array([1, -1, 1, 16, -16]), np.array([2, 0]), np.array([0, 1]))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"starts": np.array([], dtype=int)}, "shapes"),
        ({"starts": np.array([1, 2, 5])}, "shapes"),
        ({"starts": np.array([0, 2, 4])}, "shapes"),
        ({"starts": np.array([0, 1, 5])}, "shapes"),
        ({"starts": np.array([0, 5])}, "shapes"),
        ({"signs": np.array([1, -1, 1, 16])}, "shapes"),
        ({"nodes": np.array([0, 1, 1, 2])}, "shapes"),
        ({"multipliers": np.array([2])}, "shapes"),
        ({"cases": np.array([0])}, "shapes"),
        ({"nodes": np.array([-1, 1, 1, 2, 3])}, "do not exist"),
        ({"nodes": np.array([0, 1, 1, 2, 4])}, "do not exist"),
        ({"cases": np.array([0, 2])}, "do not exist"),
        ({"cases": np.array([-2, 1])}, "do not exist"),
        ({"signs": np.array([1, -1, 1, 0, -16])}, "do not exist"),
        ({"nodes": np.array([0, 0, 1, 2, 3])}, "twice"),
        ({"multipliers": np.array([-1, 0])}, "multipliers"),
        ({"multipliers": np.array([LARGEST_EXACT + 1, 0])}, "multipliers"),
        ({"signs": np.array([1, -1, 1, 17, -16])}, "multipliers"),
        ({"signs": np.array([1, -1, 1, 16, -17])}, "multipliers"),
    ],
)
def test_cuts_that_are_not_as_they_must_be_are_refused(change, sentence):
    objective = pair_objective(np.ones((4, 4)), "cpm", 0.5)
    check_cuts(CUTS, objective, 1, 2)
    check_cuts(CUTS._replace(multipliers=np.array([LARGEST_EXACT, 0])), objective, 1, 2)
    with pytest.raises(CertificateError, match=sentence):
        check_cuts(CUTS._replace(**change), objective, 1, 2)


def test_sums_stay_within_64_bits():
    objective = pair_objective(np.ones((4, 4)), "cpm", 0.5)
    most = 2**62 // objective.largest_pair()
    check_cuts(CUTS, objective, most - 512, 2)
    for grain, multipliers in ((most + 1, [0, 0]), (most - 1, [2**40, 0])):
        with pytest.raises(CertificateError, match="too large"):
            check_cuts(CUTS._replace(multipliers=np.array(multipliers)), objective, grain, 2)
    many = Cuts(
        np.arange(0, 4200, 2), np.tile([0, 1], 2100)[:4198], np.ones(4198, int), np.full(2099, LARGEST_EXACT), np.zeros(2099, int)
    )
    with pytest.raises(CertificateError, match="too large"):
        check_cuts(many, objective, 1, 1)


@pytest.mark.parametrize(
    "branches",
    [
        [(0, 1, -1, -1)],  # one case twice
        [(0, 1, -1, -3)],  # no such case
        [(0, 1, -1, 1)],  # no such branch
        [(0, 1, 0, -1)],  # a circle
        [(0, 1, -1, -2), (0, 2, -3, -3)],  # a branch that nothing leads to
        [(0, 0, -1, -2)],  # a node with itself
        [(0, 4, -1, -2)],  # no such node
        [(-1, 2, -1, -2)],
        [(0, 1, 1, -3), (1, 0, -1, -2)],  # a pair that is decided
    ],
)
def test_cases_that_are_no_tree_are_refused(branches):
    assert len(enumerate_cases([Branch(0, 1, 1, -3), Branch(0, 3, -1, -2)], 4)) == 3
    assert enumerate_cases([], 4) == [(0, {})]
    with pytest.raises(CertificateError):
        enumerate_cases([Branch(*branch) for branch in branches], 4)


# Flows ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [1 << 20, 8])
@pytest.mark.parametrize("seed", range(12))
def test_routings_prove_what_their_twin_proves(seed, entries):
    rng, objective, V, edges, _ = draw(seed)
    n = objective.n
    lengths = rng.uniform(0.01, 0.7, (2, 3, len(edges)))
    routing = Routing(rng.integers(0, 3, n), lengths, float(rng.uniform(0.2, 1.0)))
    true = exact.routing_bound(V, edges, routing._asdict())
    nearly_above(bound_by_routing(objective, routing, entries), true, objective.scale)


def random_currents(rng, objective, V, edges):
    """Connected regions, conductances, flows that keep within demands, and parts of demands."""
    n = objective.n
    usable = np.array([V[i][j] > 0 for i, j in edges])
    regions = np.arange(n)
    for e in rng.permutation(len(edges))[: int(rng.integers(0, len(edges)))]:
        if usable[e]:
            regions[regions == regions[edges[e][1]]] = regions[edges[e][0]]
    between = np.array([regions[i] != regions[j] for i, j in edges]) & usable
    flows = rng.random(len(edges)) * between
    currents = Currents(regions, 10.0 ** rng.uniform(-3, 3, len(edges)), flows, rng.random(n))
    most = float(label_currents.demand_shares(objective, label_routing.edges_of(objective), currents)[0].max(initial=0.0))
    return currents._replace(flows=flows / most if 0 < most < np.inf else 0.0 * flows)


@pytest.mark.parametrize("entries", [1 << 20, 5])
@pytest.mark.parametrize("seed", range(24))
def test_currents_prove_what_their_twin_proves(seed, entries):
    rng, objective, V, edges, sizes = draw(seed)
    currents = random_currents(rng, objective, V, edges)
    true = exact.currents_bound(V, edges, sizes, Fraction(objective.beta), currents._asdict())
    nearly_above(bound_by_currents(objective, currents, entries), true, objective.scale)


@pytest.mark.parametrize("own", [0.3, 0.7, 0.9])
def test_what_cancels_in_the_sum_that_is_routed_is_allowed_for(own):
    """Two nodes in regions of their own route nothing, but only after what they send to themselves is taken off."""
    A = np.array([[1.03182128e-04, 1.07729966e-02], [1.07729966e-02, 1.07067711e05]])
    objective = pair_objective(A, "modularity", 1.0)
    bound = bound_by_currents(objective, Currents(np.array([1, 0]), np.ones(1), np.zeros(1), np.full(2, own)))
    assert bound.total - bound.spare >= sum(map(int, objective.diagonal())) + 2 * max(int(objective.dense()[0, 1]), 0)


def chain():
    """Five nodes in a row, in two regions, with a flow between them."""
    A = np.diag(np.ones(4), 1)
    objective = pair_objective(A + A.T, "modularity", 1.0)
    regions, between = np.array([1, 1, 1, 4, 4]), np.array([0.0, 0.0, 1.0, 0.0])
    return objective, Currents(regions, np.array([1e-9, 1e-9, 0.0, 0.99e9]), between, np.array([0.0, 1.0, 0.5, 0.2, 0.1]))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"regions": np.array([1, 1, 1, 4])}, "shapes"),
        ({"own": np.ones(4)}, "shapes"),
        ({"flows": np.zeros(3)}, "shapes"),
        ({"conductances": np.ones(3)}, "shapes"),
        ({"conductances": np.array([0.9e-9, 1.0, 0.0, 1.0])}, "out of range"),
        ({"conductances": np.array([1.0, 1.0, 0.0, 1.1e9])}, "out of range"),
        ({"flows": np.array([0.0, 0.0, -1e-300, 0.0])}, "below 0"),
        ({"own": np.array([0.0, 1.0, 0.5, 0.2, -1e-300])}, "from 0 to 1"),
        ({"own": np.array([0.0, 1.0 + 1e-15, 0.5, 0.2, 0.1])}, "from 0 to 1"),
        ({"flows": np.array([1e-300, 0.0, 0.0, 0.0])}, "inside a region"),
        ({"regions": np.array([1, 4, 1, 4, 4])}, "not connected"),
        ({"flows": np.array([0.0, 0.0, 15.0 * (1 + 2e-9), 0.0])}, "exceed a demand"),
    ],
)
def test_currents_that_are_not_as_they_must_be_are_refused(change, sentence):
    objective, currents = chain()
    assert objective.beta == 1
    assert bound_by_currents(objective, currents).total > 0
    assert bound_by_currents(objective, currents._replace(flows=np.array([0.0, 0.0, 15.0, 0.0]))).total > 0  # all of 5 x 3
    with pytest.raises(CertificateError, match=sentence):
        bound_by_currents(objective, currents._replace(**change))


def test_a_flow_along_an_edge_without_capacity_is_refused():
    A = np.diag([4.0, 4.0, 0.0]) + np.ones((3, 3)) - np.eye(3)
    objective = pair_objective(A, "modularity", 3.0)
    edges = label_routing.edges_of(objective)
    flat = edges.capacity == 0
    assert flat.any()
    currents = Currents(np.arange(3), np.ones(3), np.where(flat, 1e-6, 0.0), np.zeros(3))
    with pytest.raises(CertificateError, match="inside a region"):
        bound_by_currents(objective, currents)


def test_a_flow_where_nothing_is_demanded_is_refused():
    objective = pair_objective(np.array([[0.0, 1.0], [1.0, 0.0]]), "correlation", 1.0)
    currents = Currents(np.arange(2), np.ones(1), np.array([0.5]), np.zeros(2))
    assert bound_by_currents(objective, currents._replace(flows=np.zeros(1))).total >= 2
    with pytest.raises(CertificateError, match="exceed a demand"):
        bound_by_currents(objective, currents)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"turns": np.array([0, 1, 0, 1])}, "shapes"),
        ({"turns": np.array([0, 1, 0, 1, 2])}, "shapes"),
        ({"turns": np.array([0, 1, 0, 1, -1])}, "shapes"),
        ({"lengths": np.ones((1, 2, 3))}, "shapes"),
        ({"lengths": np.ones((0, 2, 4))}, "shapes"),
        ({"lengths": np.where(np.arange(8) == 5, 2.0**-10 * 0.999, 1.0).reshape(1, 2, 4)}, "out of range"),
        ({"lengths": np.where(np.arange(8) == 5, 16.001, 1.0).reshape(1, 2, 4)}, "out of range"),
        ({"share": -1e-300}, "from 0 to 1"),
        ({"share": 1 + 1e-15}, "from 0 to 1"),
    ],
)
def test_routings_that_are_not_as_they_must_be_are_refused(change, sentence):
    objective, _ = chain()
    lengths = np.where(np.arange(8) == 5, 2.0**-10, 16.0).reshape(1, 2, 4)
    routing = Routing(np.array([0, 1, 0, 1, 1]), lengths, 1.0)
    assert bound_by_routing(objective, routing).total > 0
    assert bound_by_routing(objective, routing._replace(share=0.0)).total > 0
    with pytest.raises(CertificateError, match=sentence):
        bound_by_routing(objective, routing._replace(**change))


def test_laplacians_of_matrices_in_any_form_are_read_alike():
    A = np.array([[1.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    first = pair_objective(A, "modularity", 1.0)
    for other in (sp.coo_array(A), sp.csc_array(A), A.astype(int), A.tolist(), np.array([[1, 4, 0], [0, 0, 1], [0, 1, 0]])):
        objective = pair_objective(other, "modularity", 1.0)
        assert np.array_equal(objective.dense(), first.dense())
    for wrong in (A[:2], -A, A * np.nan, [[1, 2], [3]], np.zeros((0, 0)), A[0]):
        with pytest.raises(CertificateError, match="square matrix"):
            pair_objective(wrong, "modularity", 1.0)
    assert pair_objective(-A, "correlation", 1.0).n == 3


def test_currents_of_a_region_in_two_pieces_are_refused():
    with pytest.raises(CertificateError, match="currents"):
        label_currents.laplacian_inverse(4, np.array([0, 2]), np.array([1, 3]), np.ones(2))


def test_a_resolution_of_no_size_is_refused():
    with pytest.raises(CertificateError, match="resolution"):
        pair_objective(sp.csr_array(np.array([[0.0, 0.3], [0.3, 0.0]])), "cpm", 5e-324)
