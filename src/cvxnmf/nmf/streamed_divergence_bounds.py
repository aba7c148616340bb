"""The rule of the Ky Fan bound for data in row chunks, learnt from some of the rows (docs/mathematics.md).

Where the splitting of `divergence_bounds` ends, what it draws, ``T``, has the singular vectors of ``G`` beside the margins:
``T = G D D'`` with as many directions D as it draws, and the best y of any other row follows from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates import RankStatement
from cvxnmf.certificates.row_chunks import row_chunks
from cvxnmf.chunked import ChunkedMatrix
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import eigenpairs
from cvxnmf.linalg.threads import single_thread
from cvxnmf.nmf.bound_goal import Found, Limits, prove_witness
from cvxnmf.nmf.divergence_bounds import MOST_STEPS, STEP, Splitting, project_to_capped_simplex

#: Rows that the rule is learnt from: at least so many, more for every column, and entries at most.
ROWS, ROWS_PER_COLUMN, MOST_ENTRIES = 2000, 8, 4_000_000
#: Shares of what a step may draw that count as nothing.
NEGLIGIBLE = 1e-6


def streamed_divergence_bounds(A: ChunkedMatrix, statement: RankStatement, limits: Limits) -> Iterator[Found]:
    """The divergence bound of a rule for streamed rows, where a matrix of the columns fits and can be decomposed."""
    k, (m, n) = statement.n_components, A.shape
    rows = min(m, max(ROWS, ROWS_PER_COLUMN * n), MOST_ENTRIES // n)
    steps = min(limits.decompositions((rows, n), None), MOST_STEPS)
    if not A.gram_fits or m < n or rows < n or (k > 1 and not steps):
        return
    witness = {"centre": np.ones(n), "directions": np.zeros((n, 1))}
    if k > 1:
        sample = _sample(A.given, np.linspace(0, m - 1, rows).astype(np.intp))
        kept = sample.any(axis=0)
        if np.count_nonzero(kept) < k:
            return
        with single_thread(n):
            centre, directions = learnt_rule(sample[np.ix_(sample.any(axis=1), kept)], k, steps)
        witness["directions"] = np.zeros((n, max(1, directions.shape[1])))
        witness["centre"][kept], witness["directions"][kept, : directions.shape[1]] = centre, directions
    yield from prove_witness(A.given, statement, "ky-fan", witness)


def _sample(given: Any, rows: Any) -> FloatArray:
    """A dense sample of rows by a pass over the streamed data, to learn the rule of the bound from."""
    parts, first = [], 0
    for chunk in row_chunks(given):
        part = chunk[rows[(first <= rows) & (rows < first + chunk.shape[0])] - first]
        parts.append(np.asarray(part.toarray() if sp.issparse(part) else part))
        first += chunk.shape[0]
    return np.concatenate(parts)


def learnt_rule(A: FloatArray, k: int, steps: int) -> tuple[FloatArray, FloatArray]:
    """Centre and directions of the rule for streamed rows, by the splitting on data without empty rows and columns."""
    splitting = Splitting(A, k, False)
    for _ in range(steps):
        splitting.step()
    G = splitting.entries()
    M = splitting.beside(2.0 * G - splitting.V)
    squares, vectors = eigenpairs(M.T @ M, overwrite=True)
    values = np.sqrt(np.maximum(squares, 0.0))
    drawn = project_to_capped_simplex(values, k - 1)
    left = values - drawn  # singular values of G
    kept = (drawn > NEGLIGIBLE * STEP) & (left > 0)
    return splitting.u @ G, vectors[:, kept] * np.sqrt(drawn[kept] / STEP / left[kept])
