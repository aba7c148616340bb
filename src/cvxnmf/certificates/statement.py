"""What a bound is about: the base of all statements, the kinds of bounds, and what a check hands back.

A statement is a frozen dataclass, one class per form of problem, that knows what differs between the forms: the scope of its
bounds, the scale of the data, and the kinds of bounds with the functions that prove them. A new form of problem is a module with
its class and an entry in ``certificate.FORMS``; a new kind of bound is a function and an entry in the `kinds` of its form.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Witness = Mapping[str, Array]

#: A weight, and the entries of a metric and their inverses, may not exceed this: no product in a proof overflows.
LARGEST = 1e120


class CertificateError(ValueError):
    """A certificate does not prove what it states.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.2, 0.8)
    >>> certificate = cvxnmf.partition(A).certificate
    >>> try:
    ...     certificate.check(A + 1)  # of other data
    ... except cvxnmf.CertificateError:
    ...     print("not proved")
    not proved
    """


class Proof(NamedTuple):
    """What a check has proved: no admissible point of the stated problem has a better value than `bound`.

    `rigorous`: that holds including all rounding errors. `scale` is the size of the data. The bound is proved even if stated
    higher by `spare`, a part of what was taken off for rounding: another machine, whose sums are rounded otherwise, can then
    confirm the bound that is stated. `value` is that of the certified point, where the witness holds it. A bound that is not
    rigorous may be `probable`, true with a probability of at least 1 - 1e-12 over the random start of its iterations; `estimate`
    is then what they found, all that certificates which claim no probability are held to.
    """

    bound: float
    rigorous: bool
    scale: float
    spare: float = 0.0
    value: float | None = None
    probable: bool = False
    estimate: float = -math.inf


class Kind(NamedTuple):
    """A kind of bound: what it rests on in a few words, and who proves it, given data, statement and witness."""

    basis: str
    prove: Callable[[Any, Any, Witness], Proof]


@dataclass(frozen=True, eq=False)
class Statement(Mapping[str, Any]):
    """A statement: the problem that a bound is about, checked when it is made.

    It also reads like the dictionary that a saved file holds, as in ``statement["loss"]``; terms that are None are left out.
    """

    form: ClassVar[str]
    scope: ClassVar[str]
    #: Whether "min" or "max" is wanted of the value: a bound is below it, or above.
    sense: ClassVar[str] = "min"

    def __post_init__(self) -> None:
        plain = all(isinstance(getattr(self, field.name), str | int | float | np.floating | None) for field in fields(self))
        if not (plain and self.is_understood()):
            raise not_understood()

    @abstractmethod
    def is_understood(self) -> bool:
        """Whether every term of a statement has a type and a value that the proofs know."""

    @property
    @abstractmethod
    def kinds(self) -> dict[str, Kind]:
        """The kinds of bounds that can be proved for a statement of this form, by name."""

    @abstractmethod
    def scale(self, A: Any) -> float:
        """Size of the data of a statement, against which rounding is judged."""

    @property
    def has_scale(self) -> bool:
        """Whether the scale of a statement is in the units of the value, so that small values count as zero beside it."""
        return True

    def prove(self, A: Any, kind: str, witness: Witness) -> Proof:
        """Return the bound that the witness proves for a statement and its data, or raise CertificateError."""
        kinds = self.kinds
        if kind not in kinds:
            raise CertificateError(f"Certificates of kind {kind!r} cannot be checked here.")
        if not isinstance(witness, Mapping):
            raise CertificateError("The certificate lacks its witness.")
        with np.errstate(all="ignore"):  # every test fails on what is not finite
            return kinds[kind].prove(A, self, witness)

    def explain(self, kind: str) -> str:
        """What a bound of this kind rests on, for statements of this form."""
        return self.kinds[kind].basis if kind in self.kinds else kind

    @classmethod
    def has_terms(cls, names: set[str]) -> bool:
        """Whether these are the names of all terms of a statement, and of no others; those with a default may be left out."""
        needed = {field.name for field in fields(cls) if field.default is MISSING}
        return needed <= names <= {field.name for field in fields(cls)}

    @cached_property
    def _terms(self) -> dict[str, Any]:
        terms = {"form": self.form} | {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in terms.items() if value is not None}

    def __getitem__(self, name: str) -> Any:
        return self._terms[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)


def not_understood() -> CertificateError:
    """The error for a statement that is not one of the forms known here."""
    return CertificateError("The certificate's statement of the problem is not understood.")


def is_weight(value: object, positive: bool = False) -> bool:
    """Whether a term of a statement is a number from 0, or above it, to the largest weight."""
    real = isinstance(value, int | float | np.floating) and not isinstance(value, bool)
    return real and (0 < value if positive else 0 <= value) and value <= LARGEST  # type: ignore[operator]


def is_count(value: object) -> bool:
    """Whether a term of a statement is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


#: The bound that every loss has.
ZERO = {"zero": Kind("the loss cannot be negative", lambda A, statement, witness: Proof(0.0, True, statement.scale(A)))}
