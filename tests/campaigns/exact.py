"""A twin of the check in arithmetic of 60 digits, slow and for tiny problems: what a witness proves, or that it proves nothing.

Floats become numbers of 60 digits without rounding. The float check may claim less than the twin,
never more. Like the check, the twin puts row sums right that vanish only up to rounding, and looks at the corrected point.
"""

from fractions import Fraction
from math import gcd

import mpmath as mp
import numpy as np

import exact_labels
from cvxnmf.certificates import (
    DoublyNonnegativeStatement,
    GroupedStatement,
    LabelStatement,
    NonsymmetricStatement,
    RankStatement,
    SymmetricStatement,
    WeightedRankStatement,
    weights_digest,
)

mp.mp.dps = 60
#: Eigenvalues of matrices of 60 digits that are no lower than this count as 0.
ZERO = mp.mpf(10) ** -40
#: Row sums and margins are put right only where they differ by no more than this share.
ROUNDING = mp.mpf(10) ** -9


class RefutedError(AssertionError):
    """A witness that proves nothing."""


def require(condition, why):
    if not condition:
        raise RefutedError(why)


def exact_bound(A, statement, kind, witness):
    """The bound that the witness proves for the data in exact arithmetic; RefutedError if it proves none."""
    if isinstance(statement, LabelStatement):
        return label_bound(A, statement, kind, witness)
    if kind == "zero" and not isinstance(statement, GroupedStatement):
        return mp.mpf(0)
    data = matrix(A.toarray() if hasattr(A, "toarray") else A)
    return BOUNDS[type(statement)](data, statement, kind, witness)


def matrix(array):
    """A matrix of mpmath numbers with exactly the value of every float."""
    array = np.atleast_2d(np.asarray(array, dtype=np.float64))
    result = mp.matrix(*array.shape)
    for (i, j), value in np.ndenumerate(array):
        result[i, j] = mp.mpf(float(value))  # exact, as 60 digits hold the 53 bits
    return result


def entries(M):
    return [M[i, j] for i in range(M.rows) for j in range(M.cols)]


def part(M, rows, columns):
    result = mp.matrix(len(rows), len(columns))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            result[i, j] = M[row, column]
    return result


def row_sums(M):
    return [mp.fsum(M[i, j] for j in range(M.cols)) for i in range(M.rows)]


def xlogx(x):
    return x * mp.log(x) if x > 0 else mp.mpf(0)


def norm_squared(M):
    return mp.fsum(x * x for x in entries(M))


def eigenvalues(M):
    return sorted(entries(mp.eigsy((M + M.T) / 2, eigvals_only=True)), reverse=True)


def squared_singular_values(M):
    return eigenvalues(M.T * M if M.rows >= M.cols else M * M.T)


# Losses ---------------------------------------------------------------------------------------------------------------------


def minus_conjugate(loss, a, w):
    """``-phi*(w)`` of an entry a, w measured from 0."""
    if loss == "kl":
        require(w + a >= 0, "outside the domain")
        return xlogx(a) - a + (w + a) - xlogx(w + a)
    z = w + a * a / 2
    if loss == "mse-paper" and z < 0:
        require(a > 0, "outside the domain")
        return a * a / 4 - w * mp.log(a / 2)
    require(z >= 0, "outside the domain")
    u = (a + mp.sqrt(2 * z)) / 2
    return (u - a) ** 2 - (w * mp.log(u) if u > 0 else 0)


def floor_of(loss, a):
    return a if loss == "kl" else a * a / 2


# Forms ----------------------------------------------------------------------------------------------------------------------


def rank_bound(A, statement, kind, witness):
    k, n = statement.n_components, A.rows
    if statement.symmetric:
        A = (A + A.T) / 2
    if statement.scaling:
        d = [x if x > 0 else mp.mpf(1) for x in row_sums(A)]
        A = mp.matrix([[A[i, j] / mp.sqrt(d[i] * d[j]) for j in range(n)] for i in range(n)])
    if kind == "rectangles":
        return rectangles_bound(A, statement, witness)
    if "rows" in witness:
        A = part(A, *(np.flatnonzero(np.asarray(witness[name]) > 0).tolist() for name in ("rows", "columns")))
    require(not any(mp.isnan(x) for x in entries(A)), "missing entries")
    if kind == "independence":
        require(k == 1 and statement.loss == "kl", "only for KL of rank one")
        sums = [entries(A), row_sums(A), row_sums(A.T), [mp.fsum(entries(A))]]
        return mp.fsum(sign * mp.fsum(map(xlogx, x)) for sign, x in zip((1, -1, -1, 1), sums, strict=True))
    if kind in DIVERGENCE_BOUNDS:
        require(statement.loss == "kl", "only for KL")
        return DIVERGENCE_BOUNDS[kind](A, statement, witness)
    require(statement.loss == "mse", "only for squared error")
    require(kind in SPECTRAL_BOUNDS, f"no exact form of {kind!r}")
    N = matrix(witness["N"]) if kind == "dual" and "N" in witness else A * 0
    require((N.rows, N.cols) == (A.rows, A.cols) and all(x >= 0 for x in entries(N)), "N is negative or of another shape")
    if statement.symmetric:
        require(N == N.T, "N is not symmetric")
        leading = [x * x for x in eigenvalues(A + N)[:k] if x > 0]
    else:
        leading = squared_singular_values(A + N)[:k]
    return norm_squared(A) - mp.fsum(leading)


def filled(A, witness, name):
    """Data and a matrix of the witness on the rows and columns that carry data, with the margins; transposed if asked for."""
    A = A.T if "transposed" in witness else A
    W = matrix(witness[name]) if name in witness else A * 0
    if name in witness and np.ndim(witness[name]) == 1:  # given on the entries of sparse data, row by row
        places = [(i, j) for i in range(A.rows) for j in range(A.cols) if A[i, j] > 0]
        require(len(places) == len(witness[name]), "the witness is of another length")
        W = A * 0
        for place, value in zip(places, witness[name], strict=True):
            W[place] = mp.mpf(float(value))
    require((W.rows, W.cols) == (A.rows, A.cols), "the witness is of another shape")
    kept = [[i for i, x in enumerate(row_sums(M)) if x > 0] for M in (A, A.T)]
    A = part(A, *kept)
    return A, part(W, *kept), row_sums(A), row_sums(A.T)


def beside(M, u):
    """``(I - uu') M``."""
    return M - u * (u.T * M)


def ky_fan_bound(A, statement, witness):
    A, y, r, c = filled(A, witness, "y")
    total = mp.fsum(r)
    for a, each in zip(entries(A), entries(y), strict=True):
        require(each >= 0 and (each > 0 or a == 0), "y is negative, or zero where the data are not")
    u, v = (mp.matrix([mp.sqrt(x / total) for x in sums]) for sums in (r, c))
    G = mp.matrix([[u[i] * y[i, j] * v[j] for j in range(A.cols)] for i in range(A.rows)])
    T = beside(beside(G, u).T, v).T
    if statement.symmetric:
        leading = [x for x in eigenvalues((T + T.T) / 2) if x > 0]
    else:
        leading = [mp.sqrt(x) if x > 0 else mp.mpf(0) for x in squared_singular_values(T)]
    logs = mp.fsum(a * mp.log(each) for a, each in zip(entries(A), entries(y), strict=True) if a > 0)
    return logs + total * (1 - (u.T * G * v)[0] - mp.fsum(leading[: statement.n_components - 1]))


def subspace_bound(A, statement, witness):
    A, Y, r, _ = filled(A, witness, "Y")
    k, total = statement.n_components, mp.fsum(r)
    for j in range(Y.cols):
        require(mp.fsum(Y[i, j] ** 2 for i in range(Y.rows)) <= 1, "a column of Y is longer than 1")
    B = beside(scaled_rows(A, r), mp.matrix([mp.sqrt(x / total) for x in r]))
    M = B * Y.T
    R = mp.fsum(x * y for x, y in zip(entries(B), entries(Y), strict=True)) - mp.fsum(
        x for x in eigenvalues((M + M.T) / 2)[: k - 1] if x > 0
    )
    largest = mp.fsum(max(A[i, j] / r[i] for i in range(A.rows)) for j in range(A.cols))
    return mp.mpf(3) / 2 * max(R, 0) ** 2 / (largest + 2 * k)


def pinsker_bound(A, statement, witness):
    A, N, r, _ = filled(A, witness, "N")
    require(all(x >= 0 for x in entries(N)), "N is negative")
    B = scaled_rows(A, r)
    return norm_squared(B) - mp.fsum(squared_singular_values(B + N)[: statement.n_components])


def rectangles_bound(A, statement, witness, limits=None):
    A = A.T if "transposed" in witness else A
    sets, weights = matrix(witness["sets"]), matrix(witness["weights"])
    require((sets.rows, sets.cols) == (weights.cols, A.cols) and weights.rows == A.rows, "the rectangles are of another shape")
    require(all(x >= 0 for x in entries(weights) + entries(sets)), "weights are negative")
    load = weights * sets
    for i in range(A.rows):
        for j in range(A.cols):
            most = 1 if limits is None else limits[j, i] if "transposed" in witness else limits[i, j]
            require(load[i, j] <= most, "an entry is counted more than its weight")
    total, first = mp.mpf(0), 0
    for b in range(sets.rows):
        columns, rows = ([i for i, x in enumerate(side) if x > 0] for side in (entries(sets[b, :]), entries(weights[:, b])))
        last = first + len(columns)
        if rows and columns:
            points = {name: np.asarray(witness[name])[rows, first:last] for name in ("N", "y", "Y") if name in witness}
            B = mp.matrix([[weights[i, b] * sets[b, j] for j in columns] for i in rows])
            total += max(0, rectangle_bound(part(A, rows, columns), B, statement, points))
        first = last
    return total


def rectangle_bound(A, weights, statement, points):
    require(not any(mp.isnan(x) for x in entries(A)), "missing entries")
    if not any(entries(A)):
        return mp.mpf(0)
    k, squared = statement.n_components, statement.loss.endswith("mse")
    B = mp.matrix([[(mp.sqrt(w) if squared else w) * a for w, a in zip(*rows, strict=True)] for rows in paired_rows(weights, A)])
    if not squared:
        kind = "ky-fan" if "y" in points else "subspace" if "Y" in points else "pinsker"
        return DIVERGENCE_BOUNDS[kind](B, RankStatement("kl", k, False), points)
    N = matrix(points["N"]) if "N" in points else B * 0
    require(all(x >= 0 for x in entries(N)), "N is negative")
    return norm_squared(B) - mp.fsum(squared_singular_values(B + N)[:k])


def paired_rows(M, N):
    return [(entries(M[i, :]), entries(N[i, :])) for i in range(M.rows)]


def weighted_bound(A, statement, kind, witness):
    W = np.asarray(witness["W"], dtype=np.float64)
    require(weights_digest(W) == statement.weights and (W >= 0).all(), "the weights are others, or negative")
    return rectangles_bound(A, statement, witness, matrix(np.broadcast_to(W, (A.rows, A.cols))))


def scaled_rows(A, r):
    return mp.matrix([[A[i, j] / mp.sqrt(r[i]) for j in range(A.cols)] for i in range(A.rows)])


SPECTRAL_BOUNDS = ("dual", "tail", "lanczos")
DIVERGENCE_BOUNDS = {"ky-fan": ky_fan_bound, "subspace": subspace_bound, "pinsker": pinsker_bound}


def symmetric_bound(A, statement, kind, witness, squared_metric=None):
    A = (A + A.T) / 2
    loss, n, free = statement.loss, A.rows, statement.cone == "conditional"
    fit = statement.diagonal == "fit"
    if not fit:
        for i in range(n):
            A[i, i] = mp.mpf(0)
    kept = [i for i in range(n) if any(A[i, j] for j in range(n))] if free else list(range(n))
    A, n = part(A, kept, kept), len(kept)
    W = matrix(witness["Z"])
    require((W.rows, W.cols) == (n, n) and W == W.T, "Z is of another shape, or not symmetric")
    for i in range(n):
        for j in range(n):
            W[i, j] -= floor_of(loss, A[i, j]) if fit or i != j else W[i, i]
    if free:
        balance(W, A, loss, fit)
    t = squared_metric or [x * x for x in metric_of(A, statement, witness)]
    Y = W.copy()
    for i in range(n):
        for j in range(n):
            Y[i, j] += statement.trace * ((t[i] if i == j else 0) - (t[i] * t[j] / mp.fsum(t) if free else 0))
    scale = max(1, max(map(abs, entries(Y))))
    require(eigenvalues(Y)[-1] >= -ZERO * scale, "not positive semidefinite")
    return mp.fsum(minus_conjugate(loss, A[i, j], W[i, j]) for i in range(n) for j in range(n) if fit or i != j)


def balance(W, A, loss, fit):
    """Make the rows of W sum to zero: on the diagonal, or with ``x_i + x_j`` off it."""
    n, residual = W.rows, row_sums(W)
    for i in range(n):
        size = mp.fsum(abs(W[i, j]) + 2 * floor_of(loss, A[i, j]) for j in range(n))
        require(abs(residual[i]) <= ROUNDING * size, "rows do not sum to zero")
        if fit:
            W[i, i] -= residual[i]
    if not fit and n > 2:
        total = -mp.fsum(residual) / (2 * n - 2)
        x = [(-r - total) / (n - 2) for r in residual]
        for i in range(n):
            for j in range(n):
                W[i, j] += x[i] + x[j] if i != j else 0


def metric_of(A, statement, witness):
    if statement.metric == "own":
        return entries(matrix(witness["metric"]))
    n, d = A.rows, row_sums(A)
    if statement.metric == "uniform":
        return [mp.mpf(1)] * n
    raised = [x + mp.fsum(d) / n for x in d]
    return [mp.sqrt(x / mp.sqrt(mp.fsum(raised))) for x in raised]


def grouped_bound(A, statement, kind, witness):
    """The bound of the sums over pairs of groups, and KL of the graph less KL of the sums."""
    A = (A + A.T) / 2
    kept = [i for i in range(A.rows) if any(A[i, j] for j in range(A.cols))]
    A, groups, count = part(A, kept, kept), [int(g) for g in witness["groups"]], statement.groups
    require(len(groups) == len(kept) and set(groups) == set(range(count)), "the groups are not those of the nodes")
    d, S = row_sums(A), mp.matrix(count, count)
    for i, g in enumerate(groups):
        for j, h in enumerate(groups):
            S[g, h] += A[i, j]
    mean, root = mp.fsum(d) / len(d), mp.sqrt(2 * mp.fsum(d))
    t = [mp.fsum((d[i] + mean) / root for i, g in enumerate(groups) if g == group) for group in range(count)]
    constant = mp.fsum(
        sign * mp.fsum(map(xlogx, x)) for sign, x in ((1, entries(A)), (-1, entries(S)), (-2, d), (2, row_sums(S)))
    )
    return constant + (0 if kind == "zero" else max(mp.mpf(0), symmetric_bound(S, statement, kind, witness, t)))


def nonsymmetric_bound(A, statement, kind, witness):
    loss, trace, Z = statement.loss, mp.mpf(statement.trace), matrix(witness["Z"])
    if statement.effects:
        rows = [i for i in range(A.rows) if any(A[i, j] for j in range(A.cols))]
        A = part(A, rows, [j for j in range(A.cols) if any(A[i, j] for i in range(A.rows))])
    require((Z.rows, Z.cols) == (A.rows, A.cols) and all(x >= 0 for x in entries(Z)), "Z is negative or of another shape")
    floor = A.apply(lambda a: floor_of(loss, a))
    if statement.penalty == "paper":
        p, q = (entries(matrix(witness[name])) for name in ("p", "q"))
        require(all(x > 0 for x in (*p, *q)), "the diagonal is not positive")
        R = mp.matrix([[(Z[i, j] - A[i, j]) / (2 * mp.sqrt(p[i] * q[j])) for j in range(A.cols)] for i in range(A.rows)])
        require(squared_singular_values(R)[0] <= 1 + ZERO, "not positive semidefinite")
        diagonal = mp.fsum(x - x * mp.log(x / trace) for x in (*p, *q))
        return diagonal + mp.fsum(minus_conjugate("kl", a, z - a) for a, z in zip(entries(A), entries(Z), strict=True))
    Z = with_margins(Z, floor) if statement.effects else Z
    largest = mp.sqrt(max(mp.mpf(0), squared_singular_values(Z - floor)[0]))
    require(largest <= 2 * trace * (1 + ZERO), "larger than the penalty allows")
    return mp.fsum(minus_conjugate(loss, a, w) for a, w in zip(entries(A), entries(Z - floor), strict=True))


def with_margins(Z, floor):
    """Z with the margins of the floor: rows, then columns, that are too heavy scaled down, and the rest added as rank one."""
    for _ in range(2):
        for i, (found, wanted) in enumerate(zip(row_sums(Z), row_sums(floor), strict=True)):
            require(abs(found - wanted) <= ROUNDING * wanted, "the margins differ")
            for j in range(Z.cols):
                Z[i, j] *= min(mp.mpf(1), wanted / found) if found else 1
        Z, floor = Z.T, floor.T
    rows = [wanted - found for found, wanted in zip(row_sums(Z), row_sums(floor), strict=True)]
    columns = [wanted - found for found, wanted in zip(row_sums(Z.T), row_sums(floor.T), strict=True)]
    total = mp.fsum(rows)
    for i in range(Z.rows):
        for j in range(Z.cols):
            Z[i, j] += rows[i] * columns[j] / total if total > 0 else 0
    return Z


def doubly_nonnegative_bound(A, statement, kind, witness):
    A, S, N = (A + A.T) / 2, matrix(witness["S"]), matrix(witness["N"])
    require(all(x >= 0 for x in entries(N)) and N == N.T and S == S.T, "S or N is not as it must be")
    require(eigenvalues(S)[-1] >= -ZERO * max(1, max(map(abs, entries(S)))), "S is not positive semidefinite")
    B = A.copy()
    for i in range(A.rows):
        for j in range(A.cols):
            B[i, j] -= mp.mpf(statement.l1) / 2 + (mp.mpf(statement.trace) / 2 if i == j else 0)
    return norm_squared(A) - norm_squared(B + S + N)


def label_bound(A, statement, kind, witness):
    """The highest quality that the witness leaves to any partition, in fractions."""
    A = np.asarray(A.toarray() if hasattr(A, "toarray") else A)
    A = (A + A.T) / 2 if (A != A.T).any() else A
    offset, C, unit = exact_labels.pair_weights(A, statement.objective, statement.resolution)
    pairs, n, k = statement.objective_of(A), len(C), statement.n_clusters
    ratio = Fraction(pairs.unit) / unit
    ratio = ratio if pairs.exact else round(ratio) * Fraction(pairs.scale)
    L = [[Fraction(int(x)) for x in row] for row in pairs.dense()]
    for row, true in zip(L, C, strict=True):
        for x, c in zip(row, true, strict=True):
            require(x == ratio * c if pairs.exact else x >= ratio * c, "pair weights are not those of the data, or below them")
    if kind in ("cuts", "semidefinite"):
        bound = exact_labels.cuts_bound if kind == "cuts" else exact_labels.semidefinite_bound
        total = bound(L, witness, k)
    else:
        total = flow_bound(L, C, ratio, pairs, kind, witness)
        if total is None:  # the trees are not unique: their bound is at least what a partition has
            return exact_labels.optimum(A, statement.objective, statement.resolution, k)
    if pairs.exact:
        alone, step = sum(L[i][i] for i in range(n)), 2 * gcd(*(int(L[i][j]) for i in range(n) for j in range(i)))
        total = alone + step * ((total - alone) // step) if step else alone
    return (offset + total / ratio) / unit


def flow_bound(L, C, ratio, pairs, kind, witness):
    """The bound of demands along edges, in their unit; the pair weights of edges were rounded, those of other pairs were not."""
    edges, scale, n = [(int(i), int(j)) for i, j in zip(pairs.rows, pairs.columns, strict=True)], Fraction(pairs.scale), len(C)
    V = [
        [(L[i][j] if (min(i, j), max(i, j)) in edges or i == j else ratio * C[i][j]) / scale for j in range(n)] for i in range(n)
    ]
    edges = [(i, j) for i, j in edges if i < j]
    if kind == "routing":
        total = exact_labels.routing_bound(V, edges, witness)
    else:
        sizes = [Fraction(x.item()) for x in pairs.sizes]
        total = exact_labels.currents_bound(V, edges, sizes, Fraction(pairs.beta), witness)
    return None if total is None else scale * total


BOUNDS = {
    RankStatement: rank_bound,
    WeightedRankStatement: weighted_bound,
    SymmetricStatement: symmetric_bound,
    GroupedStatement: grouped_bound,
    NonsymmetricStatement: nonsymmetric_bound,
    DoublyNonnegativeStatement: doubly_nonnegative_bound,
}
