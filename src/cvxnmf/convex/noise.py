"""The spectrum of noise: its edge and dispersion, and the directions that stand out of it (docs/mathematics.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from scipy.optimize import brentq

from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.linalg.eigen import add_outer, eigenpairs_between
from cvxnmf.linalg.leading import FULL_GRAM, Pairs, lanczos_pairs, pairs_above
from cvxnmf.linalg.sparse_products import RankOneDowndate

#: Graphs with more nodes have their leading directions found by filtering.
LARGE = 5000
#: Eigenvalues below this share of what the data could have are rounding.
ROUNDING = 1e-9
#: Where fewer directions than wanted stand out of the noise, the penalty is this share of the last one's eigenvalue: that
#: direction enters, and hardly any other of the noise. As a start of a factorisation a lower share (0.5) was no better: what
#: else enters then is noise, and centres are sought among its positions.
ADMITTING_SHARE = 0.9


def _standardised_residual(A: Any, s: FloatArray) -> tuple[Any, FloatArray]:
    """``S^-1 A S^-1`` and the vector e for which ``S^-1 (A - dd'/1'd) S^-1`` is the first less ``ee'``; A is sparse."""
    degrees, inverse = np.asarray(A.sum(axis=1)).ravel(), sp.diags_array(1.0 / s)
    return inverse @ A @ inverse, degrees / s / np.sqrt(degrees.sum())


def leading_directions(A: Any, s: FloatArray, edge: float, count: int, report: Callable[[int], Any] | None = None) -> Pairs:
    """The largest eigenvalues of ``S^-1 (A - dd'/1'd) S^-1`` and their vectors, exact only above `edge`."""
    scaled, expected = _standardised_residual(A, s)
    residual = RankOneDowndate(sp.csr_array(scaled), expected)
    return pairs_above(residual, A.shape[0], edge, count, report)


def degree_metric(degrees: FloatArray) -> FloatArray:
    """The degree metric ``s_i^2 = (d_i + mean d) / sqrt(sum(d_j + mean d))``, in which noise is measured."""
    raised = degrees + degrees.mean()
    return np.asarray(np.sqrt(raised / np.sqrt(raised.sum())))


class Noise(NamedTuple):
    """The spectrum of the modularity matrix of pure noise, in the metric.

    It ends at `edge`, and for noise of dispersion 1 at `unit_edge`; the dispersion is the variance of an entry over its mean.
    """

    edge: float
    dispersion: float
    unit_edge: float


def noise_level(A: Any, s: FloatArray) -> Noise:
    """The noise edge (docs/mathematics.md) of A without empty rows in the metric s, times ``1 + n^(-2/3)``; the dispersion."""
    data = sp.csr_array(A)
    degrees, top = np.asarray(data.sum(axis=1)).ravel(), float(data.max())
    if np.all((data.data == 0) | (data.data == top)):
        return two_valued_noise(degrees, s, top)
    return dispersed_noise(degrees, s, lambda variance, edge: residual_dispersion(data, s, variance, edge))


def two_valued_noise(degrees: FloatArray, s: FloatArray, top: float) -> Noise:
    """The noise of a graph of given degrees whose edges all weigh `top`."""
    t = s * s
    dispersion = float(_two_valued_variance(degrees, top, np.ones(len(t))).sum() / float(degrees.sum()))
    edge = spectral_edge(_two_valued_variance(degrees, top, 1.0 / t) / t) * _evenness(degrees, dispersion)
    return _noise_with_margin(edge, dispersion, edge / np.sqrt(max(dispersion, np.finfo(np.float64).tiny)), len(t))


def dispersed_noise(degrees: FloatArray, s: FloatArray, measure: Callable[[FloatArray, float], float]) -> Noise:
    """The noise of a graph of given degrees, its dispersion measured from row sums of the model's variances and their edge."""
    t = s * s
    variance = degrees / t * float(np.sum(degrees / t)) / float(degrees.sum())
    unit_edge = spectral_edge(variance)
    dispersion = measure(variance, unit_edge)
    return _noise_with_margin(unit_edge * np.sqrt(dispersion), dispersion, unit_edge, len(t))


def _noise_with_margin(edge: float, dispersion: float, unit_edge: float, n: int) -> Noise:
    """The noise of n nodes, its spectral edges raised by what the largest eigenvalue varies."""
    raised = 1.0 + n ** (-2.0 / 3.0)
    return Noise(float(edge * raised), dispersion, float(unit_edge * raised))


def _evenness(degrees: FloatArray, dispersion: float) -> float:
    """The factor by which the noise edge is lower where degrees vary less than independent edges would make them.

    In a regular graph of degree d noise reaches ``2 sqrt(d - 1)`` and not ``2 sqrt(d)`` (Kesten & McKay): the row sums are known.
    """
    missing = max(0.0, dispersion - float(degrees.var() / degrees.mean()))
    return float(np.sqrt(max(0.0, 1.0 - missing / float(degrees.mean()))))


def _two_valued_variance(degrees: FloatArray, top: float, weights: FloatArray) -> FloatArray:
    """``sum_j V_ij weights_j`` of the variances ``V = top M (1 - M/top)_+``, ``M = dd'/1'd``, by sums over sorted degrees."""
    total = float(degrees.sum())
    order = np.argsort(degrees, kind="stable")
    first, second = (np.append(0.0, np.cumsum((degrees**power * weights)[order])) for power in (1, 2))
    count = np.searchsorted(degrees[order], top * total / degrees, side="left")  # entries of the model below the top
    return np.asarray(top * degrees / total * (first[count] - degrees / (top * total) * second[count]))


def spectral_edge(variance: FloatArray) -> float:
    """Largest eigenvalue that pure noise can show, from the row sums of the matrix of entry variances (docs/mathematics.md).

    For a symmetric random matrix whose entries have variance close to ``a_i a_j`` the spectrum ends at the minimum over
    ``t > max a`` of ``t sqrt(sum_j a_j / (t - a_j))``, a root of the derivative. With row sums r, ``a = r / sqrt(sum r)``.
    """
    total = float(variance.sum())
    if total == 0:
        return 0.0
    a = variance / np.sqrt(total)
    top = float(a.max())

    def slope(t: float) -> float:
        q = a / (t - a)
        return float(np.sum(q * q) - np.sum(q))

    high = 2.0 * top
    while slope(high) > 0:
        high *= 2.0
    t = brentq(slope, top * (1.0 + 1e-12), high, xtol=1e-13 * top)
    return float(t * np.sqrt(np.sum(a / (t - a))))


def residual_dispersion(A: Any, s: FloatArray, variance: FloatArray, unit_edge: float) -> float:
    """Dispersion: noise variance per unit of model variance, from the energy of the residual outside the signal.

    Eigenvalues of the standardised residual ``S^-1 (A - dd'/1'd) S^-1`` above ``unit_edge * sqrt(phi)`` are signal. The rest is
    compared with what noise of variance ``phi a_i a_j`` leaves outside the signal's directions, ``phi (sum_i a_i (1 - p_i))^2``
    with their leverages p; down to the fixed point. Without the leverages a strong signal takes the noise with it.

    The row sums of the model's variances are `variance`, ``a = variance / sqrt(sum variance)``, and its noise edge `unit_edge`.
    """
    n, energy = A.shape[0], _modularity_energy(A, s)
    a = variance / np.sqrt(variance.sum())
    values, vectors, count = np.empty(0), np.empty((n, 0)), 0
    phi = energy / float(a.sum()) ** 2
    while count < n:
        threshold = unit_edge * np.sqrt(phi)
        while len(values) < n and (not len(values) or values[-1] > threshold):
            wanted = min(max(16, 2 * len(values)), n)
            values, vectors = leading_directions(A, s, threshold, wanted) if n > LARGE else modularity_pairs(A, s, wanted)
        more = int(np.count_nonzero(values > threshold))
        if more <= count:
            break
        leverages = np.sum(vectors[:, :more] ** 2, axis=1)
        room = float(a @ (1.0 - np.minimum(leverages, 1.0))) ** 2
        smaller = max(0.0, energy - float(np.sum(values[:more] ** 2))) / max(room, 1e-6 * float(a.sum()) ** 2)
        if not smaller < phi:
            break
        phi, count = smaller, more
    return phi


def _modularity_energy(A: Any, s: FloatArray) -> float:
    """The energy ``||S^-1 (A - dd'/1'd) S^-1||^2`` of signal and noise together, of a sparse A."""
    scaled, expected = _standardised_residual(A, s)
    entries = scaled.tocoo()
    there = expected[entries.row] * expected[entries.col]
    return float(np.sum((entries.data - there) ** 2) + max(0.0, float(expected @ expected) ** 2 - float(np.sum(there * there))))


def modularity_pairs(A: Any, s: FloatArray, count: int) -> Pairs:
    """The largest eigenvalues of ``S^-1 (A - dd'/1'd) S^-1``, in decreasing order, and their vectors; A is sparse."""
    n = A.shape[0]
    scaled, expected = _standardised_residual(A, s)
    if n <= FULL_GRAM or 5 * count >= n:
        B = scaled.toarray()
        add_outer(B, -expected, expected)
        values, vectors = eigenpairs_between(B, n - count, n - 1)
        return values[::-1], vectors[:, ::-1]
    operator = spl.LinearOperator((n, n), matvec=lambda x: scaled @ x - expected * (expected @ x), dtype=np.float64)
    return lanczos_pairs(operator, count, np.random.default_rng(0).standard_normal(n))


def rectangular_spectral_edge(row_variance: FloatArray, column_variance: FloatArray) -> float:
    """Largest singular value that pure noise can show, from row and column sums of the entry variances (docs/mathematics.md).

    For entry variances close to ``a_i b_j`` it is the least ``sqrt(q t u)`` over q > 0, where t and u solve
    ``sum a_i / (t - a_i) = q`` and ``sum b_j / (u - b_j) = q``; found as the root of the derivative.
    """
    total = float(row_variance.sum())
    if total == 0:
        return 0.0
    a, b = row_variance / np.sqrt(total), column_variance / np.sqrt(total)

    def inverse(q: float, x: FloatArray) -> float:
        top = float(x.max())
        low, high = top * (1.0 + (1.0 - 1e-9) / q), top + float(x.sum()) * (1.0 + 1e-9) / q
        return float(brentq(lambda t: np.sum(x / (t - x)) - q, low, high, xtol=1e-14 * top))

    def decline(log_q: float) -> float:
        q, share = np.exp(log_q), 1.0
        for x in (a, b):
            t = inverse(q, x)
            share -= q / (t * float(np.sum(x / (t - x) ** 2)))
        return share

    low, high = -1.0, 1.0
    while decline(low) > 0:
        low -= 2.0
    while decline(high) < 0:
        high += 2.0
    q = float(np.exp(brentq(decline, low, high, xtol=1e-12)))
    return float(np.sqrt(q * inverse(q, a) * inverse(q, b)))


def rectangular_residual_dispersion(
    B: FloatArray, row_variance: FloatArray, column_variance: FloatArray, unit_edge: float
) -> float:
    """Noise variance per unit of model variance, from the energy of the residual `B` outside the signal.

    Singular values above ``unit_edge * sqrt(phi)`` are signal. The rest is compared with what noise of variance ``phi a_i b_j``
    leaves outside the signal's rows and columns, ``phi sum_i a_i (1 - p_i) sum_j b_j (1 - q_j)`` with their leverages p and q;
    down to the fixed point. Without the leverages a few strong directions in a thin matrix take the noise with them.
    """
    total = np.sqrt(float(row_variance.sum()))
    left, values, right = sl.svd(B, full_matrices=False, check_finite=False)
    signal, phi = 0, np.inf
    while signal < len(values):
        rows = float(row_variance @ (1.0 - np.sum(left[:, :signal] ** 2, axis=1))) / total
        columns = float(column_variance @ (1.0 - np.sum(right[:signal] ** 2, axis=0))) / total
        smaller = float(np.sum(values[signal:] ** 2)) / max(rows * columns, np.finfo(np.float64).tiny)
        more = int(np.count_nonzero(values > unit_edge * np.sqrt(smaller)))
        if not smaller < phi or more <= signal:
            return float(min(phi, smaller))
        signal, phi = more, smaller
    return 0.0


def rectangular_noise_edge(A: FloatArray) -> float:
    """The noise edge of a rectangular A without empty rows and columns, raised by the factor ``1 + min(m, n)^(-2/3)``."""
    rows, columns = A.sum(axis=1), A.sum(axis=0)
    model = np.outer(rows, columns / rows.sum())
    top = float(A.max())
    if np.all((A == 0) | (A == top)):
        variance = top * model * np.maximum(0.0, 1.0 - model / top)
        edge = rectangular_spectral_edge(variance.sum(axis=1), variance.sum(axis=0))
    else:
        edge = rectangular_spectral_edge(rows, columns)
        edge *= np.sqrt(rectangular_residual_dispersion(A - model, rows, columns, edge))
    return float(edge * (1.0 + min(A.shape) ** (-2.0 / 3.0)))


def admitting_trace(edge: float, spectrum: FloatArray, k: int, most: int | None = None) -> float:
    """The penalty that lets k - 1 directions in: the noise edge, or less where fewer stand out of the noise.

    The spectrum holds the traces at which directions enter, decreasing; only positive ones can be let in, and at most `most`.
    """
    if most is not None and len(spectrum) > most:
        edge = max(edge, float(spectrum[most]))
    wanted = spectrum[spectrum > ROUNDING * max(edge, float(np.abs(spectrum).max()))][: k - 1]
    return edge if not len(wanted) or wanted[-1] > edge else float(ADMITTING_SHARE * wanted[-1])
