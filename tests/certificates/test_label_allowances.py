"""Bounds for labels at their limits: what they give away for rounding, to the unit, and numbers at the edge of 64 bits."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

from cvxnmf.certificates import CertificateError, LabelStatement, label_currents, label_routing, pair_objectives
from cvxnmf.certificates.label_currents import Currents, bound_by_currents
from cvxnmf.certificates.label_cuts import Cuts, case_bound
from cvxnmf.certificates.label_routing import Routing, bound_by_routing
from cvxnmf.certificates.pair_objectives import LARGEST_PAIR, LARGEST_SUM, PairObjective, pair_objective
from cvxnmf.certificates.rounding import UNIT

PATH = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
TRIANGLES = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
TRIANGLES[2, 3] = TRIANGLES[3, 2] = 1.0


# Witnesses ------------------------------------------------------------------------------------------------------------------


def plain_witness(n, **changes):
    """No cut and no case: the sum of all positive pairs."""
    empty = {f"cut_{name}": np.zeros(0) for name in Cuts._fields}
    witness = empty | {"cut_starts": np.zeros(1), "branches": np.zeros((0, 4)), "grain": np.array(1.0), "labels": np.zeros(n)}
    return witness | {name: np.asarray(value, dtype=float) for name, value in changes.items()}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"branches": np.zeros((0, 3))}, "wrong shapes"),
        ({"branches": np.zeros(4)}, "wrong shapes"),
        ({"grain": 0.0}, "at least 1"),
        ({"grain": -1.0}, "at least 1"),
        ({"grain": [1.0]}, "at least 1"),
        ({"grain": 1.5}, "whole numbers"),
        ({"labels": [0, 1, 2]}, "more clusters than it states"),
        ({"labels": [0, 1]}, "another number of nodes"),
        ({"labels": [0, 0, 2.0**53]}, "whole numbers"),
        ({"labels": [0, 0, -(2.0**53)]}, "whole numbers"),
    ],
)
def test_witnesses_of_cuts_that_are_not_as_they_must_be_are_refused(changes, sentence):
    statement = LabelStatement("modularity", 1.0, 2)
    assert statement.prove(PATH, "cuts", plain_witness(3, labels=[0, 0, 2.0**53 - 1])).bound > 0
    with pytest.raises(CertificateError, match=sentence):
        statement.prove(PATH, "cuts", plain_witness(3, **changes))


def test_there_are_no_more_clusters_than_nodes():
    LabelStatement("modularity", 1.0, 3).prove(PATH, "cuts", plain_witness(3))
    with pytest.raises(CertificateError, match="more clusters than there are nodes"):
        LabelStatement("modularity", 1.0, 4).prove(PATH, "cuts", plain_witness(3))


@pytest.mark.parametrize("region", [-1.0, 3.0])
def test_a_single_region_that_does_not_exist_is_refused(region):
    witness = {"labels": np.zeros(3), "conductances": np.ones(2), "flows": np.zeros(2), "own": np.ones(3)}
    statement = LabelStatement("modularity", 1.0)
    assert statement.prove(PATH, "currents", witness | {"regions": np.full(3, 2.0)}).bound >= 0
    with pytest.raises(CertificateError, match="do not exist"):
        statement.prove(PATH, "currents", witness | {"regions": np.array([2.0, 2.0, region])})


def test_pairs_that_are_decided_count_as_decided():
    """Node 1 and 2 of a path: together they count with their weight, apart with nothing; all other pairs as they are."""
    objective = pair_objective(PATH, "cpm", 0.5)
    L = objective.dense()
    none = Cuts(np.zeros(1, dtype=np.int64), *(np.zeros(0, dtype=np.int64) for _ in range(4)))
    for pair in ((0, 1), (1, 2), (0, 2)):
        rest = sum(max(L[i, j], 0) for i in range(3) for j in range(i + 1, 3) if (i, j) != pair)
        assert case_bound(objective, none, {pair: True}, 3, None) == rest + L[pair]
        assert case_bound(objective, none, {pair: False}, 3, None) == rest


# Routing and currents -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize(("length", "reached"), [(0.25, True), (0.5, False), (0.75, False)])
def test_what_a_routing_along_a_path_proves(rounds, length, reached):
    """The demand of the ends goes along both edges if that is shorter than 1."""
    objective, share = pair_objective(PATH, "cpm", 0.25), 0.5
    routing = Routing(np.zeros(3, dtype=np.int64), np.full((rounds, 1, 2), length), share)
    demand, capacity = 1.0, 3.0  # in units of a quarter
    load = share * demand if reached else 0.0
    rounding = (4 * 3 + 64 * rounds + 4096) * UNIT
    total = 2 * max(capacity, load)
    allowed = rounding * (total + load) + 64 * UNIT * load
    for entries in (1, 3, 1 << 20):
        bound = bound_by_routing(objective, routing, entries)
        assert float(bound.spare) == pytest.approx(allowed, rel=1e-9, abs=0.0)
        assert float(bound.total) == pytest.approx(-3.0 + 2 * (total - load + allowed), rel=1e-14, abs=0.0)


def test_loads_above_the_capacity_are_allowed_for():
    objective = pair_objective(PATH, "cpm", 0.75)  # capacities 1 and demand 3, in quarters
    bound = bound_by_routing(objective, Routing(np.zeros(3, dtype=np.int64), np.full((1, 1, 2), 0.25), 1.0))
    rounding = (4 * 3 + 64 + 4096) * UNIT
    total = 2 * 3.0 * (1 + rounding)
    assert float(bound.total) == pytest.approx(-9.0 + 2 * (total - 3.0 + rounding * 9.0 + 64 * UNIT * 3.0), abs=8 * UNIT)


def test_what_currents_along_an_edge_allow_for():
    """Of two nodes of equal size half of what either sends goes along the edge, and what is missing, 1.5 times 8 * 18 units."""
    region = label_currents.Region(np.arange(2), np.arange(1), np.array([0]), np.array([1]))
    for conductance in (1.0, 4.0):
        for entries in (1, 100):
            load = label_currents._loads(region, np.array([conductance]), np.ones(2), np.array([1.0, 3.0]), entries)
            assert load[0] == pytest.approx(2.0, rel=1e-12, abs=0.0)
            assert (load[0] / 2.0 - 1.0) / UNIT == pytest.approx(8 * 18 * 1.5, abs=12)
    for amounts in ([1.0, np.nan], [1.0, np.inf]):
        with pytest.raises(CertificateError, match="could not be computed"), np.errstate(all="ignore"):
            label_currents._loads(region, np.ones(1), np.ones(2), np.array(amounts), 100)
    with pytest.raises(CertificateError, match="could not be computed"):
        label_currents.laplacian_inverse(2, np.array([0]), np.array([1]), np.zeros(1))


def test_what_currents_through_two_regions_prove():
    """Two triangles and the edge between them, which carries a flow; nodes send a half of their own demands."""
    objective = pair_objective(TRIANGLES, "cpm", 0.25)  # capacities 3, demands 1, in quarters
    edges = label_routing.edges_of(objective)
    bridge = (edges.i == 2) & (edges.j == 3)
    regions, own = np.repeat([0, 1], 3), np.full(6, 0.5)
    currents = Currents(regions, np.ones(7), np.where(bridge, 2.0, 0.0), own)
    bound = bound_by_currents(objective, currents)
    sent = 0.5 * 0.5 * 3.0 * 6  # half a demand of 1 to three nodes, of six nodes, of which a half
    inside = sent - 0.25 * 6 - 0.25 * 12  # not to themselves and not to adjacent ones, of which all are
    routed = inside + 2.0 * (1 - 1e-9) - 2.0 / 9
    rounding = (64 * 6 + 4096) * UNIT
    total = 7 * 3.0  # no load exceeds a capacity
    allowed = rounding * (total + abs(routed)) + 64 * UNIT * (3 * sent + 2 * 2.0)
    assert float(bound.spare) == pytest.approx(allowed, rel=1e-9, abs=0.0)
    assert float(bound.total) == pytest.approx(-6.0 + 2 * (total - routed + allowed), rel=1e-12, abs=0.0)


def test_conductances_at_their_limits():
    objective = pair_objective(PATH, "cpm", 0.25)
    least = label_currents.LEAST_CONDUCTANCE
    make = lambda first: Currents(np.zeros(3, dtype=np.int64), np.array([first, 1.0]), np.zeros(2), np.zeros(3))  # noqa: E731
    for conductance in (least, 1 / least):
        bound_by_currents(objective, make(conductance))
    for conductance in (0.99 * least, 1.01 / least):
        with pytest.raises(CertificateError, match="out of range"):
            bound_by_currents(objective, make(conductance))


def test_small_demands_are_demands():
    A = 0.0003 * TRIANGLES
    objective = pair_objective(A, "modularity", 1.0)
    assert not objective.exact
    edges = label_routing.edges_of(objective)
    bridge = (edges.i == 2) & (edges.j == 3)
    flows = np.where(bridge, 1e-5, 0.0)
    bound_by_currents(objective, Currents(np.repeat([0, 1], 3), np.ones(7), flows, np.zeros(6)))


# Pair weights ---------------------------------------------------------------------------------------------------------------


def rounded(resolution=1.0, **changes):
    """Modularity of weights that are not whole: a star of four edges, one of them thrice as heavy."""
    A = np.zeros((5, 5))
    A[0, 1:] = A[1:, 0] = [0.1, 0.1, 0.1, 0.3]
    return dataclasses.replace(pair_objective(A, "modularity", resolution), **changes)


def test_pair_weights_are_rounded_up_by_their_allowance():
    """On a fine scale the allowance shows: ``4 longest row + 64`` units, and 1 on top."""
    objective = rounded(scale=2.0**60)
    i, j = np.array([0, 1]), np.array([4, 4])
    found = objective.of_weights(np.array([0.3, 0.3]), i, j)
    for value, a, b in zip(found.tolist(), i, j, strict=True):
        cost = objective.beta * objective.sizes[a] * objective.sizes[b]
        slack = (4 * 4 + 64) * UNIT * (0.3 + cost)
        assert (value / 2.0**60 - (0.3 - cost)) / slack == pytest.approx(1.0, abs=0.02)
    assert rounded(scale=1.0).of_weights(np.array([0.3]), i[:1], j[:1]).tolist() == [2]  # the least whole number, and 1
    assert rounded(scale=1.0).of_weights(np.array([0.0]), i[:1], j[:1]).tolist() == [0]  # but never above 0 without an entry


@pytest.mark.parametrize("offset", [0.0, 3.0, -3.0])
@pytest.mark.parametrize("total", [5, -5])
def test_qualities_are_rounded_up_by_their_allowance(total, offset):
    objective = rounded(offset=offset, scale=1.0, unit=1.0)
    excess = objective.quality(Fraction(total)) - Fraction(total) - Fraction(offset)
    assert float(excess) == pytest.approx((4 * 4 + 16) * UNIT * (abs(total + offset) + abs(offset)), rel=1e-12, abs=0.0)


def test_the_scale_divides_the_largest_weight_into_grains():
    objective = rounded()
    largest = 0.3 + objective.beta * 0.6**2
    assert pair_objectives.GRAINS / 2 < objective.scale * largest <= pair_objectives.GRAINS
    assert math.log2(objective.scale) % 1 == 0
    assert objective.beta == pytest.approx(1.0 / 1.2)


def test_no_pair_weight_is_larger():
    for objective, gain, cost in (
        (pair_objective(PATH, "modularity", 1.0), 4.0, 4.0),
        (pair_objective(np.zeros((2, 2)), "modularity", 1.0), 0.0, 0.0),
        (pair_objective(3 * PATH, "cpm", 0.5), 6.0, 1.0),
    ):
        assert objective.largest_pair() == math.ceil(1.001 * (gain + cost)) + 4
    objective = rounded()
    cost = objective.beta * 0.6**2
    assert objective.largest_pair() == math.ceil(1.001 * objective.scale * (0.3 + cost)) + 4


def test_steps_between_qualities():
    square = np.array([[0.0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    assert pair_objective(square, "modularity", 1.0).step() == 2 * math.gcd(8, 2**2)
    looped = 3 * square + np.eye(4)
    assert pair_objective(looped, "correlation", 1.0).step() == 6  # loops are in every partition
    assert pair_objective(3 * square, "correlation", 1.0).step() == 6
    assert pair_objective(0 * square, "correlation", 1.0).step() == 0


def test_graphs_without_edges_have_a_quality_of_0():
    objective = pair_objective(np.zeros((3, 3)), "modularity", 1.0)
    assert objective.value(np.zeros(3, dtype=np.int64)) == 0
    assert objective.diagonal().tolist() == [0, 0, 0]


def test_the_symmetric_part_counts():
    assert pair_objective([[0.0, 1.0], [-1.0, 0.0]], "correlation", 1.0).weights.size == 0
    assert pair_objective([[0.0, 3.0], [1.0, 0.0]], "cpm", 1.0).weights.tolist() == [2]


def test_data_at_the_limits():
    for largest, safe in ((1e100, False), (1e-100, False), (0.9e100, True), (1.1e-100, True)):
        A = np.array([[0.0, largest], [largest, 0.0]])
        if safe:
            assert pair_objective(A, "correlation", 1.0).n == 2
        else:
            with pytest.raises(CertificateError, match="so small or large"):
                pair_objective(A, "correlation", 1.0)
    A = np.array([[1e-150, 1.0], [1.0, 1e-150]])  # one large entry will do
    assert pair_objective(A, "correlation", 1.0).weights.max() == 1.0


@pytest.mark.parametrize("largest", [2.0**61, 1e30, 2.0**62 + 0.5])
def test_numbers_beyond_64_bits_are_not_whole(largest):
    for other in (1.0, 0.5):
        objective = pair_objective(np.array([[other, largest], [largest, 0.0]]), "correlation", 1.0)
        assert not objective.exact
        assert float(objective.value(np.zeros(2, dtype=np.int64))) == pytest.approx(2 * largest, rel=1e-12, abs=0.0)
    doubled = np.array([[2.0**-16, 2.0**50], [2.0**50, 0.0]])
    assert not pair_objective(doubled, "correlation", 1.0).exact


@pytest.mark.parametrize(
    ("alpha", "weights", "beta", "sizes", "fit"),
    [
        (1, [LARGEST_PAIR - 1], 1, [1], True),
        (1, [LARGEST_PAIR], 1, [1], False),
        (1, [-LARGEST_PAIR], 1, [1], False),
        (4, [LARGEST_PAIR // 4, 1], 1, [1], False),
        (1, [1], 1, [2**25 - 1], True),
        (1, [1], 1, [1, 2**25], False),
        (1, [1], 4, [2**24, 1], False),
        (1, [1], LARGEST_PAIR, [1], False),
        (1, [1], 3, [2**24], True),
        (2, [LARGEST_SUM // 2**14] * 2**12, 0, [1], False),
        (2, [LARGEST_SUM // 2**14 - 1] * 2**12, 0, [1], True),
        (2, [-(LARGEST_SUM // 2**14)] * 2**12, 0, [1], False),
        (1, [1], 2, [2**20] * 2**10, False),
        (1, [1], 2, [2**20] * (2**10 - 1), True),
        (1, [0], 2, [2**20] * 2**10, False),
    ],
)
def test_whole_numbers_that_fit(alpha, weights, beta, sizes, fit):
    count = len(weights)
    places = np.arange(count)
    numbers = (np.array(weights, dtype=np.int64), np.array(sizes, dtype=np.int64), alpha, beta, 0, 1, 1.0, True)
    assert pair_objectives._fits(PairObjective(count, places, places, *numbers)) is fit


def test_sums_of_64_bits_are_exact():
    for values in ([2**62, 2**62, 2**62], [-(2**62), -(2**62), -1], [2**62, -1, 2**33 + 5, -(2**31)]):
        assert pair_objectives.exact_sum(values) == sum(values)


def test_what_a_routing_can_spare_is_in_units_of_the_pair_weights():
    objective = pair_objective(0.1 * PATH, "modularity", 1.0)
    assert not objective.exact
    assert objective.scale > 1
    edges = label_routing.edges_of(objective)
    bound = label_routing.routing_bound(objective, edges, np.zeros(2), 0.0, 1.0, 0.0)
    assert bound.spare == Fraction(64 * UNIT) * Fraction(objective.scale)
