"""Products of shapes at which libraries are slow: thin ones, and single entries of ``UV'``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.linalg.compiled import compiled

#: Columns up to which the compiled loop beats the library's matrix product.
THIN = 4


@compiled
def thin_product(A: Any, H: Any) -> Any:
    """``A H'`` for H with at most four rows, in one pass over A; library products are slow at such shapes."""
    m, n = A.shape
    k = H.shape[0]
    result = np.empty((m, k))
    h0, h1, h2, h3 = H[0], H[min(1, k - 1)], H[min(2, k - 1)], H[min(3, k - 1)]
    for i in range(m):
        a = A[i]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        if k == 4:
            for j in range(n):
                s0 += a[j] * h0[j]
                s1 += a[j] * h1[j]
                s2 += a[j] * h2[j]
                s3 += a[j] * h3[j]
        elif k == 3:
            for j in range(n):
                s0 += a[j] * h0[j]
                s1 += a[j] * h1[j]
                s2 += a[j] * h2[j]
        else:
            for j in range(n):
                s0 += a[j] * h0[j]
                s1 += a[j] * h1[j]
        result[i, 0] = s0
        if k > 1:
            result[i, 1] = s1
        if k > 2:
            result[i, 2] = s2
        if k > 3:
            result[i, 3] = s3
    return result


@compiled
def product_entries(rows: Any, columns: Any, U: Any, V: Any) -> Any:
    """``(UV')_ij`` at the listed places."""
    result = np.empty(len(rows))
    for e in range(len(rows)):
        u, v = U[rows[e]], V[columns[e]]
        total = 0.0
        for r in range(U.shape[1]):
            total += u[r] * v[r]
        result[e] = total
    return result
