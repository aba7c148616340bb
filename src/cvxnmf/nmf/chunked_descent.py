"""Classical factorisation of data in blocks of rows: U lives with the blocks, V and all sums in this process.

One pass over the data per sweep: in each block U is updated by its rule, extrapolated, and the sums that the other half needs are
taken; V's half is then a matter of small matrices. The step, its waiting, extrapolation and restarts are those of
:class:`Alternating`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf import validation
from cvxnmf.chunked import ChunkedMatrix, Maximum, transposed_product
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf import initialise, kernels
from cvxnmf.nmf.evaluation import block_loss
from cvxnmf.nmf.methods import StartOptions, own_pair
from cvxnmf.nmf.movers import Ahead, Alternating, Rules
from cvxnmf.nmf.objectives import CANCELLING, TINY, Entropy, Penalty, Problem, Quadratic
from cvxnmf.nmf.rules import Hals, LeastSquares, Multiplicative, Newton, QuasiNewton, Rule

Factors = tuple[FloatArray, FloatArray]


def _newton() -> Rules:
    """U by Newton steps; V by multiplication, since Newton's steps on V would need one pass each."""
    return Rules(
        Newton(count=False), Multiplicative(), Ahead(wait=2, weight=0.3, keep=0.1), safe=(Multiplicative(), Multiplicative())
    )


#: Methods whose rule for U treats rows on their own, by loss.
METHODS: dict[str, dict[str, Any]] = {
    "mse": {
        "hals": lambda: Rules(Hals(1), Hals(1), Ahead(wait=10, weight=0.7), (Hals(4), Hals(4))),
        "multiplicative": lambda: Rules(Multiplicative(), Multiplicative()),
        "als": lambda: Rules(LeastSquares(), LeastSquares()),
        "quasi-newton": lambda: Rules(QuasiNewton(), QuasiNewton()),
    },
    "kl": {"hals": _newton, "multiplicative": lambda: Rules(Multiplicative(), Multiplicative())},
}
#: Starts that a few passes over the data give.
STARTS: dict[str, Any] = {
    "nndsvd": lambda A, k, options: initialise.nndsvd(A, k),
    "random": lambda A, k, options: initialise.random(A, k, validation.generator(options.rng)),
}


def rules_for(method: str, loss: str) -> Rules:
    """Fresh rules of a method, or a refusal that names those that work in blocks."""
    if method not in METHODS[loss]:
        known = ", ".join(map(repr, METHODS[loss]))
        validation.refuse(f"method={method!r} does not work on data in blocks; use one of {known}, or data in memory.")
    rules: Rules = METHODS[loss][method]()
    return rules


def starting_point(A: ChunkedMatrix, k: int, init: Any, rng: Any) -> Factors:
    """A start by name, or the user's own, copied."""
    if isinstance(init, str):
        U, V = STARTS[validation.choice("init", init, STARTS)](A, k, StartOptions(False, rng))
        return U, V
    return own_pair(init, A.shape, k, STARTS)


class Factor(NamedTuple):
    """A factor that lives with the blocks, and its largest entry."""

    kept: Any
    top: float


class Terms(NamedTuple):
    """What a block needs to know to move its rows of U."""

    rule: Rule
    l1: float
    l2: float
    ahead: Ahead | None
    top: float


class Sums(NamedTuple):
    """What a pass brings back: ``A'U`` or ``(A / UV')'U``, ``U'U``, column sums and largest entry of U, ``sum A log UV'``."""

    products: FloatArray
    gram: FloatArray
    sums: FloatArray
    top: float
    logarithms: float


class BlockProblem(Problem):
    """Data in blocks, loss and penalties; subclasses know the function of a block and V's half."""

    move: Any

    def __init__(self, data: ChunkedMatrix, penalty: Penalty) -> None:
        self.data: Any = data
        self.penalty = penalty

    def half_of_V(self, sums: Sums, V: FloatArray) -> Any:
        """The objective in V, the moved U fixed."""
        raise NotImplementedError

    def penalty_of_U(self, sums: Sums) -> float:
        """The penalty on U from its sums."""
        return self.penalty.l1[0] * float(sums.sums.sum()) + self.penalty.l2[0] * float(np.trace(sums.gram))

    def evaluate(self, U: Any, V: FloatArray) -> float:
        """The objective by a pass over the data, entry by entry."""
        kept = U.kept if isinstance(U, Factor) else self.data.chunks.scatter(U)
        _, (loss, sums, squares) = self.data.chunks.map_reduce(block_loss, kept, V, self.name)
        on_U = self.penalty.l1[0] * sums + self.penalty.l2[0] * squares
        return float(loss + on_U + self.penalty.value(V, 1))

    def whole(self, U: Any) -> FloatArray:
        """U in this process."""
        return np.asarray(self.data.chunks.gather(U.kept))


class BlockSquaredError(BlockProblem):
    """``||A - UV'||²``."""

    name = "mse"

    @property
    def scale(self) -> float:  # type: ignore[override]
        """``||A||²``."""
        return float(self.data.energy)

    @staticmethod
    def move(block: Any, kept: Any, V: FloatArray, terms: Terms) -> tuple[Any, tuple[Any, ...]]:
        """Move the rows of a block: ``P_b = A_b V``, the rule, then ``A_b' U_b`` and ``U_b' U_b``."""
        U, new = _moved(Quadratic(block, V, terms.l1, terms.l2, 0.0), kept, terms)
        return (U, new), (transposed_product(block, U), U.T @ U, U.sum(axis=0), Maximum(U.max()), 0.0)

    def half_of_V(self, sums: Sums, V: FloatArray) -> Quadratic:
        """From ``A'U`` and ``U'U``."""
        return Quadratic.of_products(sums.products, sums.gram.copy(), self.penalty.l1[1], self.penalty.l2[1], self.scale)


class BlockKullbackLeibler(BlockProblem):
    """``sum A log(A/UV') - A + UV'``."""

    name = "kl"

    @property
    def scale(self) -> float:  # type: ignore[override]
        """Sum of A."""
        return float(self.data.total)

    def positive(self, X: FloatArray) -> FloatArray:
        """Lifted off zero."""
        return np.asarray(np.maximum(X, TINY * X.max()))

    @staticmethod
    def move(block: Any, kept: Any, V: FloatArray, terms: Terms) -> tuple[Any, tuple[Any, ...]]:
        """Move the rows of a block, then ``(A_b / U_b V')' U_b`` and the logarithms."""
        U, new = _moved(Entropy(block, V, terms.l1, terms.l2, 0.0), kept, terms)
        pulled, logarithms = _pulled(block, U, V)
        return (U, new), (pulled, U.T @ U, U.sum(axis=0), Maximum(U.max()), logarithms)

    def half_of_V(self, sums: Sums, V: FloatArray) -> Counted:
        """At V, the only place where a pass tells of it."""
        return Counted(sums, V, self.penalty.l1[1], self.penalty.l2[1], float(self.data.entropy))


class Counted:
    """``sum A log(A/UX') - A + UX' + l1 sum(X) + l2 ||X||²`` at the X = V of the last pass over the data.

    Its value is that at V, whichever X is asked for: an upper bound after a multiplicative update of V.
    """

    top: float | None = None

    def __init__(self, sums: Sums, V: FloatArray, l1: float, l2: float, constant: float) -> None:
        self.sums, self.V, self.l1, self.l2, self.constant = sums, V, l1, l2, constant

    def value(self, X: FloatArray) -> float:
        """The objective at V."""
        penalty = self.l1 * float(self.V.sum()) + self.l2 * float(np.vdot(self.V, self.V))
        return self.constant + float(self.sums.sums @ self.V.sum(axis=0)) - self.sums.logarithms + penalty

    def ratio(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``(A / UV')' U`` and ``sum(U) + l1 + 2 l2 V``."""
        return self.sums.products, np.asarray(self.sums.sums + self.l1 + 2.0 * self.l2 * X)


class Spread(Alternating):
    """U block by block, then V; the step is that of :class:`Alternating`."""

    problem: BlockProblem
    U: Any

    def __init__(self, problem: BlockProblem, rules: Rules, U: FloatArray, V: FloatArray) -> None:
        self.problem, self.rules, self.ahead = problem, rules, rules.ahead
        U, self.V = problem.positive(U), problem.positive(V)
        self.U = Factor(problem.data.chunks.scatter(U), float(U.max()))
        self.value = problem.evaluate(self.U, self.V)
        self.steps = 0
        self._reset()

    def _reset(self) -> None:
        """Start anew from the point: nothing is extrapolated."""
        self.last_V, self.next_V = self.V, self.V

    def _move(self, rules: Any, ahead: Ahead | None) -> float:
        """Put the next point in `candidate`, and return its value (for Kullback-Leibler that before V is moved)."""
        problem, penalty, before = self.problem, self.problem.penalty, self.next_V
        terms = Terms(rules[0], penalty.l1[0], penalty.l2[0], ahead, self.U.top)
        kept, total = problem.data.chunks.map_reduce(problem.move, self.U.kept, before, terms)
        sums = Sums(*total)
        half = problem.half_of_V(sums, before)
        V = rules[1].update(half, before)
        self.candidate = Factor(kept, float(sums.top)), V
        self.next_V, self.last_V = V if ahead is None else ahead.point(V, self.last_V), V
        value = half.value(V)
        if value - penalty.value(V, 1) < CANCELLING * max(problem.scale, abs(half.constant)):
            return problem.evaluate(*self.candidate)
        return float(value) + problem.penalty_of_U(sums)


PROBLEMS: dict[str, type[BlockProblem]] = {"mse": BlockSquaredError, "kl": BlockKullbackLeibler}


def _moved(half: Any, kept: Any, terms: Terms) -> Factors:
    """The rows of a block after the rule, extrapolated if that is asked for, and before extrapolation."""
    U, last = kept if isinstance(kept, tuple) else (kept, kept)
    half.top = terms.top
    new = terms.rule.update(half, U)
    return (new if terms.ahead is None else terms.ahead.point(new, last)), new


def _pulled(block: Any, U: FloatArray, V: FloatArray) -> tuple[FloatArray, float]:
    """``(A / UV')' U`` and ``sum A log UV'`` of a block."""
    if sp.issparse(block):
        rows = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
        model = kernels.entries(rows, block.indices, U, V)
        positive = block.data > 0
        logarithms = float(np.vdot(block.data, np.log(np.where(positive, model, 1.0))))
        ratio = np.where(positive, block.data / np.where(positive, model, 1.0), 0.0)
        return np.asarray(sp.csr_array((ratio, block.indices, block.indptr), shape=block.shape).T @ U), logarithms
    W = np.maximum(U @ V.T, np.finfo(np.float64).tiny)
    logarithms = float(kernels.weighted_logarithms(block, W))
    return transposed_product(np.divide(block, W, out=W), U), logarithms
