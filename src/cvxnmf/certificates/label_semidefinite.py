"""Upper bounds for partitions from a positive semidefinite matrix, in whole numbers but for one Cholesky factorisation.

The co-membership matrix X of a partition is positive semidefinite and nonnegative with ``X_ii = 1``, and ``k X - 11'`` is
positive semidefinite for at most k clusters. With ``R = L + sum m bb'`` off the diagonal from cuts (see `label_cuts`), any y
and ``N >= 0`` for which ``S = Diag(y - L_ii) - R - N`` is positive semidefinite prove

    sum_{i ~ j} L_ij <= sum y + 2 sum m side - 1'S1 / k,

because ``<S, X> >= 1'S1 / k`` (0 for any number of clusters), ``<N, X> >= 0``, and cuts hold. S is a matrix of whole numbers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from cvxnmf.certificates.label_cuts import LARGEST_EXACT, Cuts
from cvxnmf.certificates.pair_objectives import Integers, PairObjective, exact_sum
from cvxnmf.certificates.rounding import is_psd
from cvxnmf.certificates.statement import CertificateError


def bound_by_semidefinite(
    objective: PairObjective, cuts: Cuts, y: Integers, N: Integers, grain: int, n_clusters: int | None
) -> Fraction:
    """The semidefinite label bound on the sum of L over pairs in one cluster; N holds entries above the diagonal, row by row."""
    n = objective.n
    if y.shape != (n,) or N.shape != (n * (n - 1) // 2,):
        raise CertificateError("The witness has the shape of other data.")
    if np.any(N < 0):
        raise CertificateError("The certificate has multipliers below 0.")
    if grain * objective.largest_pair() + max(int(np.abs(y).max()), int(N.max(initial=0))) >= LARGEST_EXACT // 4:
        raise CertificateError("The numbers of the certificate are too large.")
    S = semidefinite_matrix(objective, cuts, y, N, grain)
    if not is_psd(S.astype(np.float64), np.zeros(n)):
        raise CertificateError("The matrix of the certificate is not positive semidefinite.")
    total = Fraction(exact_sum(y) + 2 * cuts.total_side(n_clusters))
    if n_clusters is not None:
        total -= Fraction(exact_sum(S), n_clusters)
    return total / grain


def semidefinite_matrix(objective: PairObjective, cuts: Cuts, y: Integers, N: Integers, grain: int) -> Integers:
    """The matrix S of a semidefinite label bound, exactly, which must be positive semidefinite."""
    R = grain * objective.dense()
    i, j, change = cuts.pairs()
    np.add.at(R, (i, j), change)
    upper = np.triu_indices(objective.n, 1)
    S = np.zeros_like(R)
    S[upper] = -R[upper] - N
    S += S.T
    S.flat[:: objective.n + 1] = y - grain * objective.diagonal()
    return S
