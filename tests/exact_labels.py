"""Twins of the label bounds in fractions, written from their formulas: no numpy in any sum, no rounding anywhere."""

from fractions import Fraction
from itertools import combinations


def pair_weights(A, objective, resolution):
    """Offset, ``C_ij`` of all ordered pairs, and unit: a quality is (offset + sum of C within clusters) over the unit."""
    n = len(A)
    B = [[Fraction(float(A[i][j])) for j in range(n)] for i in range(n)]
    g = Fraction(repr(float(resolution)))
    if objective == "modularity":
        d = [sum(row) for row in B]
        total = sum(d) or Fraction(1)
        return Fraction(0), [[(B[i][j] - g * d[i] * d[j] / total) for j in range(n)] for i in range(n)], total
    if objective == "cpm":
        return Fraction(0), [[B[i][j] - g for j in range(n)] for i in range(n)], Fraction(1)
    if objective == "performance":
        joined = [[Fraction(B[i][j] != 0) for j in range(n)] for i in range(n)]
        offset = n * n - sum(map(sum, joined))
        return Fraction(offset), [[2 * joined[i][j] - 1 for j in range(n)] for i in range(n)], Fraction(n * n)
    return Fraction(0), B, Fraction(1)


def quality(A, labels, objective, resolution):
    offset, C, unit = pair_weights(A, objective, resolution)
    n = len(C)
    return (offset + sum(C[i][j] for i in range(n) for j in range(n) if labels[i] == labels[j])) / unit


def partitions(n, k):
    """All partitions of n nodes into at most k clusters."""
    rows = [()]
    for _ in range(n):
        rows = [(*row, c) for row in rows for c in range(min(max(row, default=-1) + 2, k))]
    return rows


def optimum(A, objective, resolution, n_clusters):
    offset, C, unit = pair_weights(A, objective, resolution)
    n = len(C)
    pairs = [(i, j, C[i][j] + C[j][i]) for i, j in combinations(range(n), 2) if C[i][j]]
    alone = sum(C[i][i] for i in range(n))
    best = max(sum(c for i, j, c in pairs if z[i] == z[j]) for z in partitions(n, n_clusters or n))
    return (offset + alone + best) / unit


def _cuts(witness, case, k):
    """Of the cuts of a case: nodes, entries of b, multipliers, right sides."""
    starts, nodes, signs = ([int(x) for x in witness[f"cut_{name}"]] for name in ("starts", "nodes", "signs"))
    found = []
    for c, (multiplier, own) in enumerate(zip(witness["cut_multipliers"], witness["cut_cases"], strict=True)):
        if int(own) not in (case, -1):
            continue
        support, b = nodes[starts[c] : starts[c + 1]], signs[starts[c] : starts[c + 1]]
        assert len(set(support)) == len(support)
        assert multiplier >= 0
        total = abs(sum(b))
        parts = total if k is None else min(k, total) or 1
        least = sum((total // parts + (p < total % parts)) ** 2 for p in range(parts)) if total else 0
        found.append((support, b, Fraction(float(multiplier)), Fraction(sum(x * x for x in b) - least, 2)))
    return found


def _reduced(C, cuts, grain):
    """``C + sum m bb'`` off the diagonal, and the sum of multipliers times right sides."""
    R = [row[:] for row in C]
    for support, b, m, _ in cuts:
        for (i, x), (j, y) in combinations(zip(support, b, strict=True), 2):
            R[i][j] += m * x * y / grain
            R[j][i] += m * x * y / grain
    return R, sum(m * side for _, _, m, side in cuts) / grain


def _cases(branches):
    """The cases of a tree of branches, with the pairs that are decided in them."""
    todo, found = [(0 if len(branches) else -1, {})], []
    while todo:
        place, fixed = todo.pop()
        if place < 0:
            found.append((-1 - place, fixed))
        else:
            i, j, together, apart = (int(x) for x in branches[place])
            todo += [(together, {**fixed, (min(i, j), max(i, j)): True}), (apart, {**fixed, (min(i, j), max(i, j)): False})]
    return found


def cuts_bound(C, witness, k):
    """Bound on the sum of C over pairs in one cluster; C whole, in the unit of the multipliers."""
    n, grain, bounds = len(C), Fraction(float(witness["grain"])), []
    for case, fixed in _cases(witness["branches"]):
        R, sides = _reduced(C, _cuts(witness, case, k), grain)
        pairs = sum(
            R[i][j] if fixed.get((i, j)) else 0 if (i, j) in fixed else max(R[i][j], 0) for i, j in combinations(range(n), 2)
        )
        bounds.append(sum(C[i][i] for i in range(n)) + 2 * (pairs + sides))
    return max(bounds)


def is_psd(S):
    """Whether a symmetric matrix of fractions is positive semidefinite, by elimination."""
    S = [row[:] for row in S]
    for p in range(len(S)):
        if S[p][p] < 0 or (S[p][p] == 0 and any(S[p][p + 1 :])):
            return False
        for i in range(p + 1, len(S)):
            factor = S[i][p] / S[p][p] if S[p][p] else 0
            S[i] = [a - factor * b for a, b in zip(S[i], S[p], strict=True)]
    return True


def semidefinite_bound(C, witness, k):
    n, grain = len(C), Fraction(float(witness["grain"]))
    R, sides = _reduced(C, _cuts(witness, 0, k), grain)
    y = [Fraction(float(x)) / grain for x in witness["y"]]
    N = dict(zip(combinations(range(n), 2), (Fraction(float(x)) / grain for x in witness["N"]), strict=True))
    assert all(x >= 0 for x in N.values())
    S = [[y[i] - C[i][i] if i == j else -R[i][j] - N[min(i, j), max(i, j)] for j in range(n)] for i in range(n)]
    assert is_psd(S)
    return sum(y) + 2 * sides - (sum(map(sum, S)) / k if k else 0)


def solve(M, b):
    """The solution of a regular system."""
    rows = [[*row, x] for row, x in zip(M, b, strict=True)]
    for p in range(len(rows)):
        pivot = next(i for i in range(p, len(rows)) if rows[i][p])
        rows[p], rows[pivot] = rows[pivot], rows[p]
        rows[p] = [x / rows[p][p] for x in rows[p]]
        for i in range(len(rows)):
            if i != p and rows[i][p]:
                rows[i] = [a - rows[i][p] * b for a, b in zip(rows[i], rows[p], strict=True)]
    return [row[-1] for row in rows]


def routing_bound(C, edges, witness):
    """Demands along trees of shortest paths in exact arithmetic; paths as long as others, up to rounding, tell nothing."""
    n, lengths = len(C), [[[Fraction(float(x)) for x in turn] for turn in turns] for turns in witness["lengths"]]
    part = Fraction(float(witness["share"])) / len(lengths)
    load, routed, close = [Fraction(0)] * len(edges), Fraction(0), Fraction(1, 10**12)
    for turns in lengths:
        for source in range(n):
            length = turns[int(witness["turns"][source])]
            roads = [(i, j, e) for e, (i, j) in enumerate(edges) if C[i][j] > 0]
            far, came = {source: Fraction(0)}, {}
            for _ in range(n):  # Bellman and Ford
                for i, j, e in roads:
                    for a, b in ((i, j), (j, i)):
                        if a in far and (b not in far or far[a] + length[e] < far[b]):
                            far[b], came[b] = far[a] + length[e], (a, e)
            for i, j, e in roads:
                for a, b in ((i, j), (j, i)):
                    tied = a in far and b != source and came[b][1] != e and far[a] + length[e] < far[b] + close
                    if tied or (b in far and abs(far[b] - 1) < close):
                        return None
            for node in far:
                demand = max(-C[source][node], Fraction(0)) / 2 if node != source and far[node] < 1 else Fraction(0)
                routed += part * demand
                while node != source:
                    node, e = came[node]
                    load[e] += part * demand
    capacity = sum(max(C[i][j], x, 0) for (i, j), x in zip(edges, load, strict=True))
    return sum(C[i][i] for i in range(n)) + 2 * (capacity - routed)


def currents_bound(C, edges, sizes, beta, witness):
    """Currents in exact arithmetic: every demand is sent and none exceeded."""
    n = len(C)
    regions = [int(r) for r in witness["regions"]]
    wires, flows, own = ([Fraction(float(x)) for x in witness[name]] for name in ("conductances", "flows", "own"))
    load, volume = list(flows), {r: sum(sizes[v] for v in range(n) if regions[v] == r) for r in regions}
    sent = [beta * own[u] * sizes[u] * volume[regions[u]] / 2 for u in range(n)]
    for (i, j), f in zip(edges, flows, strict=True):
        sent[i], sent[j] = sent[i] + f, sent[j] + f
    usable = [C[i][j] > 0 and regions[i] == regions[j] for i, j in edges]
    for u in range(n):
        nodes = [v for v in range(n) if regions[v] == regions[u]]
        if len(nodes) == 1 or not sent[u]:
            continue
        at = {v: p for p, v in enumerate(nodes[1:])}  # the first node has potential 0
        L = [[Fraction(0)] * len(at) for _ in at]
        for (i, j), w, use in zip(edges, wires, usable, strict=True):
            if use and regions[i] == regions[u]:
                for a, b in ((i, j), (j, i)):
                    if a in at:
                        L[at[a]][at[a]] += w
                        if b in at:
                            L[at[a]][at[b]] -= w
        potential = dict(zip(at, solve(L, [Fraction(v == u) - sizes[v] / volume[regions[u]] for v in at]), strict=True))
        for e, (i, j) in enumerate(edges):
            if usable[e] and regions[i] == regions[u]:
                load[e] += sent[u] * wires[e] * abs(potential.get(i, 0) - potential.get(j, 0))
    share = {}
    for (i, j), f in zip(edges, flows, strict=True):
        pair = frozenset((regions[i], regions[j]))
        share[pair] = share.get(pair, 0) + (f / (volume[regions[i]] * volume[regions[j]]) if f else 0)
    assert all(x <= beta * (1 + Fraction(1, 10**9)) for x in share.values())
    routed = 0
    for i, j in combinations(range(n), 2):
        if (i, j) not in set(edges):
            same = regions[i] == regions[j]
            part = beta * (own[i] + own[j]) / 2 if same else share.get(frozenset((regions[i], regions[j])), 0)
            routed += part * sizes[i] * sizes[j]
    capacity = sum(max(C[i][j], x, 0) for (i, j), x in zip(edges, load, strict=True))
    return sum(C[i][i] for i in range(n)) + 2 * (capacity - routed)
