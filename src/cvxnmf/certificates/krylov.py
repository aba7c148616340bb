"""Upper bounds on the leading eigenvalues of a large symmetric operator M that hold with a stated probability.

Orthonormal vectors Q, from whatever source, split M into ``T = Q'MQ``, a residual ``R = MQ - QT``, and the deflated operator
``C = (I - QQ')M(I - QQ')``. For every ``g > 0``

    M  <=  [T + R'R / g] on the span of Q  +  [C + g] beside it,

so that the eigenvalues of M are at most those of ``T + R'R / g`` together with ``top + g``, repeated, once ``C <= top``.

How large C can be is asked of a block of random vectors (Kuczynski and Wozniakowski 1992, here for blocks; docs/mathematics.md).
Let x be the largest Rayleigh quotient of a positive semidefinite C in the Krylov space of q products with p Gaussian vectors.
With the polynomial of Chebyshev of degree ``2q - 1`` as the trial vector, ``(1 - e) max C > x`` is possible only if the top
eigenvector has less than the share ``1 / cosh^2((2q - 1) artanh sqrt e)`` of the best combination of the p vectors, and that
share has the beta distribution with ``p / 2`` and ``(n - 1) / 2``. Starts are random in the sense that the SHA-256 of the data,
or of the vectors Q, seeds them: the same data give the same answer.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv

from cvxnmf.certificates.rounding import is_finite
from cvxnmf.certificates.statement import Array, CertificateError

Product = Callable[[Array], Array]
#: A bound may fail with this probability over the random start.
FAILURE = 1e-12
#: Inner products of vectors that count as orthonormal may be off by this much.
ORTHONORMAL = 1e-10
#: Deeper spaces have no more entries than this.
MOST_ENTRIES = 1 << 27
#: How many weights g are tried, over so many powers of ten below the largest eigenvalue.
WEIGHTS, DECADES = 80, 13


class Krylov(NamedTuple):
    """A Krylov space of a random block: `width` vectors, `depth` products; `semidefinite`: M has no eigenvalue below 0."""

    width: int
    depth: int
    semidefinite: bool


class Deflated(NamedTuple):
    """A deflated operator: a probable upper bound on its eigenvalues, its Ritz values, increasing, and their Krylov space."""

    top: float
    values: Array
    basis: Array
    turn: Array

    def vectors_above(self, value: float, count: int) -> Array:
        """Ritz vectors of the Krylov space whose values are above a given one, at most `count`, of the largest."""
        least = max(int(np.searchsorted(self.values, value, side="right")), len(self.values) - count)
        return self.basis @ self.turn[:, least:]


class Leading(NamedTuple):
    """Leading eigenvalues in decreasing order: probable upper bounds by Krylov spaces, and the values that were found."""

    upper: Array
    found: Array


def leading_eigenvalues(
    product: Product,
    Q: Array,
    source: np.random.RandomState,
    spaces: list[Krylov],
    count: int,
    cost: Callable[[Array], float],
    failure: float = FAILURE,
) -> Iterator[Leading]:
    """Bound the `count` largest eigenvalues by one random Krylov space after the other; what Q had missed joins it.

    `cost` is what bounds are wanted to be low in; all of them together may fail with the probability `failure`.
    """
    for space in spaces:
        image = finite(product(Q))
        ritz = np.linalg.eigvalsh(Q.T @ image)[::-1]
        beside = deflate(product, Q, source, space, failure / len(spaces))
        upper = eigenvalue_bounds(Q, image, beside.top, count, cost)
        yield Leading(upper, np.sort(np.append(ritz, beside.values))[::-1][:count])
        missed = beside.vectors_above(float(ritz[count - 1]) if len(ritz) >= count else -np.inf, count)
        Q = np.linalg.qr(np.column_stack([Q, missed]))[0] if missed.size else Q


def spaces_in_turn(n: int, width: int, depths: tuple[int, ...], semidefinite: bool) -> list[Krylov]:
    """Krylov spaces to try in turn: the first one, and deeper ones of moderate size."""
    moderate = [depth for depth in depths[1:] if width * depth * n <= MOST_ENTRIES]
    return [Krylov(width, depth, semidefinite) for depth in (depths[0], *moderate)]


def random_source(*parts: Any) -> np.random.RandomState:
    """Random numbers for Krylov spaces, seeded by the bytes of arrays; the stream is the same for all versions of numpy."""
    seal = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        seal.update(f"{array.dtype.str} {array.shape}".encode())
        seal.update(array.data if array.size else b"")
    return np.random.RandomState(np.frombuffer(seal.digest(), dtype="<u4"))  # noqa: NPY002


def missed_share(n: int, width: int, steps: int, failure: float) -> float:
    """Share e missed by a Krylov space: with probability ``1 - failure`` no eigenvalue exceeds the Ritz value over ``1 - e``.

    `steps` is ``2q - 1`` for q products with a block of so many random vectors.
    """
    share = float(betaincinv(0.5 * width, 0.5 * max(n - 1, 1), failure))
    return math.tanh(math.acosh(1.0 / math.sqrt(share)) / steps) ** 2


def deflate(product: Product, Q: Array, source: np.random.RandomState, space: Krylov, failure: float) -> Deflated:
    """Bound an operator beside the orthonormal vectors Q by the Krylov space of a random block."""
    n, room = len(Q), len(Q) - Q.shape[1]
    if not room:
        return Deflated(0.0, np.zeros(0), np.zeros((n, 0)), np.zeros((0, 0)))
    width = min(space.width, room)
    depth = min(space.depth, -(-room // width))
    basis, T, below = _block_lanczos(product, Q, source.standard_normal((n, width)), depth)
    values, turn = np.linalg.eigh(T)
    found, complete = float(values[-1]), basis.shape[1] == room
    least = 0.0  # C is at least -least: by the norm, which the squares of C bound in depth steps
    if not space.semidefinite:
        norm = float(np.linalg.norm(np.vstack([T, below]), 2))
        steps = depth - 1 + depth % 2  # of the square, whose Krylov space has half the depth
        least = norm if complete else norm / math.sqrt(1.0 - missed_share(n, width, steps, failure / 2))
    share = 0.0 if complete else missed_share(n, width, 2 * depth - 1, failure / 2)
    return Deflated(found + (found + least) * share / (1.0 - share), values, basis, turn)


def _block_lanczos(product: Product, Q: Array, start: Array, depth: int) -> tuple[Array, Array, Array]:
    """Block Lanczos: an orthonormal basis of the Krylov space beside Q, the operator in it, and the part of the image outside.

    Vectors of a space that is exhausted are replaced by others: a larger space only raises the bound.
    """
    n, room, width = len(Q), len(Q) - Q.shape[1], start.shape[1]
    size = min(room, width * depth)
    basis = np.empty((n, Q.shape[1] + size), order="F")
    basis[:, : Q.shape[1]] = Q
    first = stop = Q.shape[1]
    T, fresh = np.zeros((size, size)), start
    while stop < basis.shape[1]:
        newest = _orthonormal_beside(basis[:, :stop], fresh)[:, : basis.shape[1] - stop]
        first, stop = stop, stop + newest.shape[1]
        basis[:, first:stop] = newest
        fresh = finite(product(newest))
        T[: stop - Q.shape[1], first - Q.shape[1] : stop - Q.shape[1]] = basis[:, Q.shape[1] : stop].T @ fresh
    if not float(np.abs(basis.T @ basis - np.eye(basis.shape[1])).max()) < ORTHONORMAL:
        raise CertificateError("The iterations lost their orthogonality.")
    outside = fresh - basis @ (basis.T @ fresh)
    below = np.zeros((newest.shape[1], size))
    below[:, first - Q.shape[1] :] = np.linalg.qr(outside)[1]
    return basis[:, Q.shape[1] :], np.triu(T) + np.triu(T, 1).T, below


def _orthonormal_beside(basis: Array, block: Array) -> Array:
    """An orthonormal basis of a block beside a Krylov basis; once or twice would lose orthogonality in an exhausted space."""
    scale = float(np.abs(block).max())
    block = block / scale if scale > 0 else block
    for _ in range(3):
        block = np.linalg.qr(block - basis @ (basis.T @ block))[0]
    return block


def eigenvalue_bounds(Q: Array, image: Array, top: float, count: int, cost: Callable[[Array], float]) -> Array:
    """Upper bounds on the `count` largest eigenvalues, from ``image = MQ`` and ``C <= top``: those of the g of least cost."""
    T = Q.T @ image
    residual = image - Q @ T
    R, T = residual.T @ residual, (T + T.T) / 2
    scale = max(float(np.abs(T).max(initial=0.0)), abs(top), np.finfo(np.float64).tiny)
    best: Array | None = None
    for g in scale * np.logspace(-DECADES, 0.0, WEIGHTS):
        values = np.append(np.linalg.eigvalsh(finite(T + R / g)), np.full(count, top + g))
        values = np.sort(values)[::-1][:count]
        if best is None or cost(values) < cost(best):
            best = values
    assert best is not None
    return best


def finite(X: Array) -> Array:
    """The array itself if it is finite; otherwise an error that Krylov iterations do not work on missing or too large data."""
    if not is_finite(X):
        raise CertificateError("The data have missing entries, or are too large.")
    return X
