"""Positive semidefiniteness of ``B + share E``, with all rounding: B sparse, ``E_ij = exp(v_i + v_j + w_i'w_j) / s_i s_j``.

E is positive semidefinite whatever v, W and s are. So for the columns C of some nodes, the pivots, with K their own rows of C,
and for any T (Nystrom; equality on the pivots for ``T = inv(K) C'``)

    E  >=  C T + T'C' - T'K T  >=  F F' - error,    K = R'R,   F = C inv(R).

Most nodes of B are eliminated, ``B = L Diag(D, S) L'`` with ``D > 0`` diagonal and S the dense rest on a core of nodes. With
``sqrt(share) F = L Y`` what is left to prove is ``S + Y_c inv(I + Y_e'inv(D) Y_e) Y_c' >= 0``, e the eliminated nodes and c the
core.

Nothing here relies on how factors were found: residuals are formed and bounded, and together they may not exceed a shift of B.
Norms are those of Frobenius, or largest sums of absolute values in a row.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.sparse.linalg import splu, spsolve_triangular

from cvxnmf.certificates.rounding import UNIT, is_psd, row_slices
from cvxnmf.certificates.statement import Array, CertificateError

#: Squares of degrees, summed over the eliminated nodes: the work of finding an order, and the entries of the rest.
MOST_WORK = 1 << 25
#: The core is dense: it has no more nodes than a dense proof may have, and below a few hundred nothing is gained.
LARGEST_CORE, SMALLEST_CORE = 8000, 500
#: How often nodes whose pivot is not positive join the core.
ROUNDS = 8
#: What rounding of norms and of sums of errors may add.
GENEROUS = 1 + 1e-6
#: Columns that are solved for, and entries of the core that are formed, at once.
COLUMNS, ENTRIES_AT_ONCE = 256, 1 << 22


class Model(NamedTuple):
    """The model E of a matrix-free dual point by its factors, and a bound on the relative error of its computed entries."""

    v: Array
    W: Array
    s: Array
    accuracy: float

    def columns(self, pivots: Any) -> Array:
        """Columns at the pivots of the model E, for elimination."""
        exponents = self.W @ self.W[pivots].T + self.v[:, None] + self.v[pivots]
        return np.asarray(np.exp(exponents) / self.s[:, None] / self.s[pivots])

    def diagonal(self) -> Array:
        """The diagonal of the model E of a matrix-free dual point."""
        return np.asarray(np.exp(2 * self.v + np.sum(self.W * self.W, axis=1)) / self.s**2)


def eliminated_nodes(B: Any, work: float = MOST_WORK, core: int = SMALLEST_CORE) -> list[int]:
    """Nodes to eliminate, in the order of least degree, as long as little work fills the rest of the sparse matrix."""
    rows = sp.csr_array(B)
    near = [set(part.tolist()) - {i} for i, part in enumerate(np.split(rows.indices, rows.indptr[1:-1]))]
    queue = [(len(nodes), i) for i, nodes in enumerate(near)]
    order: list[int] = []
    heapq.heapify(queue)
    while len(order) < len(near) - min(core, len(near) // 2):
        degree, node = heapq.heappop(queue)
        clique = near[node]
        if degree != len(clique):
            heapq.heappush(queue, (len(clique), node))
            continue
        work -= degree * degree
        if work < 0:
            break
        order.append(node)
        for i in clique:
            near[i] |= clique
            near[i] -= {i, node}
        near[node] = set()
    return order


class Eliminated(NamedTuple):
    """Elimination ``B = L Diag(D, S) L'`` up to an error in norm: nodes in order, first the eliminated; L is 0 beside them."""

    order: Array
    L: Any
    D: Array
    S: Array
    error: float

    def solve(self, G: Array) -> tuple[Array, float]:
        """Y with ``LY = G`` for the L of the elimination, up to an error in norm; L is the unit matrix on the core."""
        kept, size = len(self.D), abs(self.L)
        above = spsolve_triangular(self.L[:kept], G[:kept], lower=True, unit_diagonal=True)
        Y = np.vstack([above, G[kept:] - self.L[kept:] @ above])
        product, sizes = self.L @ above, size @ np.abs(above)
        product[kept:] += Y[kept:]
        sizes[kept:] += np.abs(Y[kept:])
        return Y, _norm(product - G) + _units(self.L) * (_norm(sizes) + _norm(G))


def eliminate(B: Any, nodes: list[int], largest: int = LARGEST_CORE) -> Eliminated:
    """Eliminate these nodes from a sparse B, symmetric up to rounding, but for those whose pivots are not positive."""
    for _ in range(ROUNDS):
        beside = np.setdiff1d(np.arange(B.shape[0]), nodes)
        if not 0 < len(beside) <= largest or not nodes:
            break
        order = np.concatenate([np.array(nodes), beside])
        ordered, kept = sp.csc_array(B[order][:, order]), len(nodes)
        options = {"SymmetricMode": True}
        factors = splu(ordered[:kept, :kept], permc_spec="NATURAL", diag_pivot_thresh=0.0, options=options)
        D = factors.U.diagonal()
        if np.array_equal(factors.perm_r, np.arange(kept)) and D.min() > 0:
            return with_core(ordered, order, sp.csr_array(factors.L), D)
        nodes = [node for node, pivot in zip(nodes, D, strict=True) if pivot > 0]
    raise CertificateError("The graph cannot be eliminated to a core of moderate size.")


def with_core(B: Any, order: Array, L: Any, D: Array, entries: int = ENTRIES_AT_ONCE) -> Eliminated:
    """Elimination with its core: the rows of L there, the Schur complement S, and how far all of it is from B."""
    kept, n = len(D), B.shape[0]
    sides = []
    for first in range(kept, n, COLUMNS):
        above = B[:kept, first : first + COLUMNS].toarray()
        sides.append(sp.csr_array(spsolve_triangular(L, above, lower=True, unit_diagonal=True) / D[:, None]))
    full = sp.csr_array(sp.vstack([L, sp.hstack(sides).T]))
    scaled = sp.csr_array((full @ sp.diags_array(D)).T)
    apart = abs(B[:, :kept] - full @ scaled[:, :kept])
    formed = _units(full) * (abs(full) @ (abs(scaled) @ np.ones(n)) + abs(B) @ np.ones(n))
    residual = np.asarray(apart.sum(axis=1))
    residual[:kept] += apart[kept:].sum(axis=0)
    S, core = np.empty((n - kept, n - kept)), full[kept:]
    for rows in row_slices(n - kept, n - kept, entries):
        whole = slice(kept + rows.start, kept + rows.stop)
        S[rows] = B[whole, kept:].toarray() - (core[rows] @ scaled[:, kept:]).toarray()
    return Eliminated(order, full, D, S, float((residual + formed).max()))


def lower_factor(model: Model, pivots: Any) -> tuple[Array, float]:
    """Factor F of the model at the pivots, and an error in norm, with ``E >= FF' - error``."""
    C = model.columns(pivots)
    K, terms = C[pivots], 2 * (len(pivots) + 16) * UNIT
    try:
        R = sl.cholesky(K, check_finite=False)
    except sl.LinAlgError:
        raise CertificateError("The pivots of the witness are not independent.") from None
    F = sl.solve_triangular(R, C.T, trans="T", check_finite=False)
    T = sl.solve_triangular(R, F, check_finite=False)
    columns, own, by_R, by_T = (_norm(part) for part in (C, K, R, T))
    solved = _norm(R @ T - F) + terms * (by_R * by_T + _norm(F))
    shared = _norm(C - F.T @ R) + terms * (by_R * _norm(F) + columns) + model.accuracy * columns
    rooted = _norm(K - R.T @ R) + terms * (by_R**2 + own) + model.accuracy * own
    return F.T, 2 * shared * by_T + solved**2 + rooted * by_T**2


def is_psd_with_model(B: Any, error: float, room: float, nodes: list[int], model: Model, share: float, pivots: Any) -> bool:
    """Whether ``B + share E`` is positive semidefinite, by elimination; B, off by `error`, is lowered by `room` for errors."""
    F, lost = lower_factor(model, pivots)
    parts = eliminate(B - room * sp.eye_array(B.shape[0]), nodes)
    G = np.sqrt(share) * F[parts.order]
    Y, apart = parts.solve(G)
    changed = (2 * _norm(G) + apart) * apart + 8 * UNIT * _norm(G) ** 2  # between GG', LYY'L' and share FF'
    if not GENEROUS * (error + parts.error + share * lost + changed) <= room:
        return False
    return is_psd_up_to(*core_matrix(parts, Y))


def is_psd_up_to(M: Array, error: float) -> bool:
    """Whether a symmetric M, which is overwritten, is positive semidefinite even if it is off by an error in norm."""
    M.flat[:: len(M) + 1] -= GENEROUS * error
    return is_psd(M, np.abs(M).sum(axis=1))


def core_matrix(parts: Eliminated, Y: Array) -> tuple[Array, float]:
    """Core of an elimination up to an error: ``Diag(D, S) + YY'`` is PSD if ``M = S + ZX + X'Z' - X'KX`` is, for any X.

    Z is Y on the core, and K is ``I + Y'inv(D) Y`` of the eliminated nodes. S is overwritten.
    """
    kept, p = len(parts.D), Y.shape[1]
    above, Z = Y[:kept], Y[kept:]
    K = np.eye(p) + (above / parts.D[:, None]).T @ above
    X = np.linalg.solve(K, Z.T)
    H = (Z - 0.5 * X.T @ K) @ X
    size = _norm(X) * (2 * _norm(Z) + _norm(X) * _norm(K)) + _norm(parts.S)
    error = 2 * UNIT * ((2 * p + 16) * size + (kept + p + 16) * float(np.trace(K)) * _norm(X) ** 2)
    M = parts.S
    M += H
    M += H.T
    return M, error


def _units(L: Any) -> float:
    """Bounds the relative rounding of products with the rows of an elimination's L."""
    return 2 * (int(np.diff(L.indptr).max()) + 16) * UNIT


def _norm(M: Any) -> float:
    return float(np.linalg.norm(M))
