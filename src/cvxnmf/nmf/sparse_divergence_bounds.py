"""The dual point of the Ky Fan bound for large sparse data: y is zero off the entries of A, so that nothing is filled.

Steps are those of `divergence_bounds.ky_fan_point`. What they subtract is of low rank and kept as two factors; singular vectors
are those of the step before, improved by products with blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.krylov import random_source
from cvxnmf.linalg.arrays import FloatArray, csr_without_zeros
from cvxnmf.linalg.sparse_products import csr_product_entries
from cvxnmf.nmf.bound_goal import Found, Goal
from cvxnmf.nmf.divergence_bounds import entries_maximised, project_to_capped_simplex

#: Singular vectors beyond twice the rank, and products with the block in every step.
EXCESS, PRODUCTS = 10, 2
#: Steps after which the bound hardly gains.
MOST_STEPS = 40


def sparse_divergence_bounds(goal: Goal) -> Iterator[Found]:
    """The divergence bound of a sparse dual point, where sparse data are not filled."""
    if goal.may_fill or goal.is_full_rank(goal.A) or goal.effort == 0 or np.isnan(goal.A.data).any():
        return
    A = csr_without_zeros((goal.A + goal.A.T) / 2 if goal.statement.symmetric else goal.A)
    if A.nnz:
        steps = MOST_STEPS if goal.effort is None else min(goal.effort, MOST_STEPS)
        y = sparse_ky_fan_point(A, goal.statement.n_components, steps)
        yield from goal.prove_bound("ky-fan", {"y": y})


class LowRank(NamedTuple):
    """A low-rank matrix ``left @ right.T`` beside the sparse dual point."""

    left: FloatArray
    right: FloatArray


def sparse_ky_fan_point(A: Any, k: int, steps: int) -> FloatArray:
    """The y of the Ky Fan bound on the entries of a sparse A, in their order; compressed rows without zeros."""
    shares = np.asarray(A.sum(axis=1)).ravel() / A.sum(), np.asarray(A.sum(axis=0)).ravel() / A.sum()
    u, v = np.sqrt(shares[0]), np.sqrt(shares[1])
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    P, base = A.data / A.sum(), u[rows] * v[A.indices]
    width = min(2 * k + EXCESS, *A.shape)
    block = random_source(np.array(A.shape)).standard_normal((A.shape[1], width))
    V, drawn = 0.5 * (P / base + base), LowRank(np.zeros((A.shape[0], 1)), np.zeros((A.shape[1], 1)))
    for _ in range(steps):
        G = entries_maximised(V, P, base)
        rest = sp.csr_array((2 * G - V - csr_product_entries(A, *drawn), A.indices, A.indptr), shape=A.shape)
        drawn, block = _leading_part(rest, drawn, (u, v), block, k - 1)
        V = G - csr_product_entries(A, *drawn)
    return np.asarray(entries_maximised(V, P, base) / base)


def _leading_part(
    S: Any, L: LowRank, margins: tuple[FloatArray, FloatArray], block: FloatArray, count: int
) -> tuple[LowRank, FloatArray]:
    """The projected leading part of ``S + L`` beside the margins, as a product, and the block of right singular vectors."""
    u, v = margins
    transposed = S.T.tocsr()
    for _ in range(PRODUCTS):
        Q = np.linalg.qr(_beside(v, block))[0]
        image = _beside(u, S @ Q + L.left @ (L.right.T @ Q))
        Q = np.linalg.qr(image)[0]
        block = _beside(v, transposed @ Q + L.right @ (L.left.T @ Q))
    turn, values, right = np.linalg.svd(block.T, full_matrices=False)
    left = Q @ turn
    kept = project_to_capped_simplex(values, count)
    return LowRank(left * kept, right.T), right.T


def _beside(unit: FloatArray, X: FloatArray) -> FloatArray:
    """The part ``(I - uu') X`` beside a margin of sparse data in the Ky Fan bound."""
    return X - np.outer(unit, unit @ X)
