"""The negative part of a symmetric matrix that changes little from call to call."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import eigenpairs

#: Up to this many rows, and from this share of negative eigenvalues on, everything is decomposed.
SMALL, MANY = 150, 0.25
#: Degree of the polynomial that damps the positive part, columns beyond those wanted, and calls between full decompositions.
DEGREE, SPARE, CALLS = 8, 12, 60


class NegativePart:
    """The negative part of a matrix: eigenpairs below 0, from the last subspace filtered by a polynomial of Chebyshev."""

    def __init__(self) -> None:
        self.basis: FloatArray | None = None
        self.top: FloatArray | None = None
        self.calls = 0

    def __call__(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The negative part of V: its negative eigenvalues in increasing order, and their vectors."""
        self.calls += 1
        if self.basis is None or self.calls % CALLS == 0:
            return self._decompose(V)
        values, Q = self._filter(V, self.basis)
        count = int(np.searchsorted(values, 0.0))
        wanted = count + SPARE
        more = wanted - Q.shape[1]
        self.basis = Q[:, :wanted] if more <= 0 else np.hstack([Q, self._fresh(len(V), more)])
        return values[:count], Q[:, :count]

    def _decompose(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        n = len(V)
        if n <= SMALL:
            values, Q = eigenpairs(V)
            count = int(np.searchsorted(values, 0.0))
            return values[:count], Q[:, :count]
        values, Q = sl.eigh(V, driver="evr", subset_by_value=(-np.inf, 0.0), check_finite=False)
        self.basis = None if len(values) > MANY * n else np.hstack([Q, self._fresh(n, SPARE + len(values) // 5)])
        return values, Q

    def _fresh(self, n: int, count: int) -> FloatArray:
        """Random columns of about unit length that join the subspace of a negative part."""
        return np.asarray(np.random.default_rng(self.calls).standard_normal((n, count)) / np.sqrt(n))

    def _filter(self, V: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ritz pairs of the negative part's subspace after damping eigenvalues from 0 to the top of the spectrum."""
        half = 0.5 * self._largest(V)
        before, current = basis, V @ basis / half - basis
        for _ in range(DEGREE - 1):
            before, current = current, 2.0 * (V @ current / half - current) - before
        Q, _ = np.linalg.qr(current / np.linalg.norm(current, axis=0))
        H = Q.T @ (V @ Q)
        values, B = np.linalg.eigh((H + H.T) / 2)
        return values, Q @ B

    def _largest(self, V: FloatArray) -> float:
        """About the largest eigenvalue, a little more, by power iterations from the last call, for the negative part's filter."""
        x = self._fresh(len(V), 1)[:, 0] if self.top is None else self.top
        length = 1.0
        for _ in range(4):
            x = V @ x
            length = float(np.linalg.norm(x))
            x /= length
        self.top = x
        return 1.05 * length
