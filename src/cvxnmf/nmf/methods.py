"""What the names of methods stand for: update rules by loss; to add a method, add its rule and its name here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cvxnmf import validation
from cvxnmf.nmf.extrapolation import Extrapolation
from cvxnmf.nmf.loss_names import LOSSES
from cvxnmf.nmf.losses import NMFLoss
from cvxnmf.nmf.updates.beta_coordinates import BetaCoordinates
from cvxnmf.nmf.updates.gradient import Gradient, PositiveGradient, Sparseness
from cvxnmf.nmf.updates.hals import HALS
from cvxnmf.nmf.updates.kl_newton import KLNewton
from cvxnmf.nmf.updates.least_squares import LeastSquares, QuasiNewton
from cvxnmf.nmf.updates.multiplicative import Multiplicative
from cvxnmf.nmf.updates.rule import Rule
from cvxnmf.nmf.updates.symmetric import (
    SymmetricRule,
    symmetric_coordinates,
    symmetric_expectation,
    symmetric_least_squares,
    symmetric_multiplicative,
)
from cvxnmf.nmf.updates.volume import SimplexColumns, SimplexRows, SmallVolume, Volume


class Rules(NamedTuple):
    """The update rules of an alternating method, one for U and one for V.

    `later` ones come with extrapolation; `exact` ones take their place where descents are slow, which are those of badly
    conditioned data; `safe` ones step in where the others may let the value rise.
    """

    U: Rule[Any]
    V: Rule[Any]
    extrapolation: Extrapolation | None = None
    later: tuple[Rule[Any], Rule[Any]] | None = None
    exact: tuple[Rule[Any], Rule[Any]] | None = None
    safe: tuple[Rule[Any], Rule[Any]] | None = None


class Needs(NamedTuple):
    """What a method's rules are made for: sparseness, whether data can be read by columns, volume, rows of U that are shares.

    Starts that race take more sweeps and plain steps at first, which keep the basin of a start.
    """

    sparseness: Any = None
    in_memory: bool = True
    volume: Volume = Volume()
    sum_to_one: bool = False
    racing: bool = False


@dataclass(frozen=True)
class Method:
    """The update rules that the name of a method stands for, by kind of loss."""

    #: Rules for each kind of loss; fresh ones, since some keep a step length.
    make: dict[str, Callable[[Needs], Rules]]
    #: Symmetric rules for each kind of loss, where there are any.
    symmetric_rules: dict[str, SymmetricRule]
    #: Those of data in row chunks, where they are others.
    chunked_symmetric_rules: dict[str, SymmetricRule] = field(default_factory=dict)
    #: Whether the rule for U treats rows on their own, as data in row chunks need it.
    by_rows: bool = True
    #: Whether it takes a sparseness.
    constrained: bool = False
    #: Whether it asks for columns of V of little volume.
    least_volume: bool = False
    #: Kinds of losses under which rows of U can be made to sum to one.
    shares: tuple[str, ...] = ()

    def symmetric_rule(self, kind: str, in_memory: bool) -> SymmetricRule:
        """The symmetric rule for a kind of loss; exact coordinates go from row to row, which row chunks cannot."""
        rules = self.symmetric_rules if in_memory else self.symmetric_rules | self.chunked_symmetric_rules
        return rules[kind]


def _both(rule: Callable[[], Rule[Any]]) -> Callable[[Needs], Rules]:
    return lambda needs: Rules(rule(), rule())


def _min_volume(needs: Needs) -> Rules:
    if needs.sum_to_one:
        return Rules(SimplexRows(), SmallVolume(needs.volume))
    return Rules(HALS(4), SimplexColumns(needs.volume))


def _hals(needs: Needs) -> Rules:
    if needs.sum_to_one:
        return Rules(SimplexRows(), HALS(4))
    first, wait = (HALS(2), 5) if needs.racing else (HALS(1), 3)
    extrapolation = Extrapolation(wait=wait, weight=0.7, cautious=not needs.racing)
    return Rules(first, first, extrapolation, later=(HALS(4), HALS(4)), exact=(HALS(4), LeastSquares()))


def _kl_newton(needs: Needs) -> Rules:
    """The rules of Kullback-Leibler by Newton steps; in row chunks V by multiplication, since Newton would take many passes."""
    V = KLNewton(count=True) if needs.in_memory else Multiplicative()
    extrapolation = Extrapolation(wait=2, weight=0.3, keep=0.1)
    return Rules(KLNewton(count=False), V, extrapolation, safe=(Multiplicative(), Multiplicative()))


def _beta_coordinates(needs: Needs) -> Rules:
    """The rules of beta divergences by coordinates; multiplications first, which keep the basin of the start."""
    first, coordinates = (Multiplicative(), Multiplicative()), (BetaCoordinates(count=False), BetaCoordinates(count=True))
    return Rules(*first, Extrapolation(wait=6, weight=0.3, keep=0.1), coordinates, safe=first)


def _hoyer(needs: Needs) -> Rules:
    wanted = (None, None) if needs.sparseness is None else needs.sparseness
    if isinstance(wanted, str) or not isinstance(wanted, tuple | list) or len(wanted) != 2:
        validation.refuse(f"sparseness must be a pair (for U, for V) of numbers from 0 to 1 or None, not {wanted!r}.")
    for value in wanted:
        if value is not None and validation.number("sparseness", value, minimum=0.0) > 1.0:
            validation.refuse(f"sparseness must be from 0 to 1, not {value!r}.")
    U, V = wanted  # one side keeps its norms, or a penalty on the other could be escaped by scaling
    return Rules(
        HALS(1) if U is None else Sparseness(float(U), keep_norm=V is None),
        HALS(1) if V is None else Sparseness(float(V), keep_norm=True),
    )


METHODS: dict[str, Method] = {
    "hals": Method(
        {"mse": _hals, "kl": _kl_newton, "beta": _beta_coordinates},
        {"mse": symmetric_coordinates, "kl": symmetric_expectation},
        {"mse": symmetric_least_squares},
        shares=("mse",),
    ),
    "multiplicative": Method(
        {"mse": _both(Multiplicative), "kl": _both(Multiplicative), "beta": _both(Multiplicative)},
        {"mse": symmetric_multiplicative, "kl": symmetric_expectation},
    ),
    "gradient": Method(
        {"mse": _both(Gradient), "kl": _both(PositiveGradient), "beta": _both(PositiveGradient)}, {}, by_rows=False
    ),
    "als": Method({"mse": _both(LeastSquares)}, {}),
    "quasi-newton": Method({"mse": _both(QuasiNewton)}, {}),
    "sparse": Method({"mse": _hoyer}, {}, by_rows=False, constrained=True),
    "min-volume": Method({"mse": _min_volume}, {}, least_volume=True, shares=("mse",)),
}


def require_method(name: str, loss: NMFLoss, symmetric: bool, sparseness: Any, in_memory: bool, sum_to_one: bool = False) -> None:
    """Refuse a loss, symmetry, sparseness or row chunks that the method has no rule for, in one sentence."""
    method = METHODS[name]
    if sum_to_one and (symmetric or loss.kind not in method.shares):
        validation.refuse("sum_to_one is for method='hals' or 'min-volume' with loss='mse' and symmetric=False.")
    if symmetric and not method.symmetric_rules:
        known = " or ".join(repr(other) for other, kind in METHODS.items() if kind.symmetric_rules)
        validation.refuse(f"method={name!r} has no symmetric form; use {known}, or symmetric=False.")
    if symmetric and loss.kind not in method.symmetric_rules:
        known = " or ".join(map(repr, method.symmetric_rules))
        validation.refuse(f"loss={loss.name!r} has no symmetric form; use {known}, or symmetric=False.")
    if not symmetric and loss.kind not in method.make:
        known = ", ".join(repr(other) for other, kind in METHODS.items() if loss.kind in kind.make)
        validation.refuse(f"method={name!r} does not lower loss={loss.name!r}; use one of {known}.")
    if sparseness is not None and not method.constrained:
        validation.refuse(f"sparseness is a constraint of method='sparse', not of {name!r}; l1 works with every method.")
    if not in_memory and not loss.in_chunks:
        known = " and ".join(repr(other) for other, kind in LOSSES.items() if kind.in_chunks)
        validation.refuse(f"Data in blocks are factored by the losses {known}, not {loss.name!r}; use data in memory.")
    if not (in_memory or method.by_rows):
        known = ", ".join(repr(other) for other, kind in METHODS.items() if kind.by_rows and loss.kind in kind.make)
        validation.refuse(f"method={name!r} does not work on data in blocks; use one of {known}, or data in memory.")
