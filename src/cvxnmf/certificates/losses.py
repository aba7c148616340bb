"""The losses that bounds are about, and how they enter a proof.

For a loss ``sum phi(X_ij)`` of ``E = exp(X)`` every bound rests on ``- sum phi*(W)`` with Fenchel's conjugate

    KL:             phi*(w) = z log z - z - a log a + a,     z = w + a,
    squared error:  phi*(w) = w log u - (u - a)^2,           z = w + a^2 / 2,   u = (a + sqrt(2 z)) / 2,

which is finite where z, the distance of w from the edge -f of its domain, is not negative.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from cvxnmf.certificates.statement import Array, CertificateError


class Conjugate(NamedTuple):
    """The conjugate of a loss, entry by entry ``-phi*(w)``, the absolute values summed in it, and the derivative of phi*."""

    terms: Array
    size: Array
    slope: Array


class Loss(ABC):
    """What a proof of a bound asks of a loss."""

    #: Data whose largest entry is above this, or below its inverse, are refused: products would overflow or vanish unnoticed.
    largest_entry: float

    @abstractmethod
    def magnitudes(self, A: Array) -> Array:
        """Entries whose sum is the scale of the data under the loss."""

    @abstractmethod
    def domain_edge(self, A: Array) -> Array:
        """The edge f of the dual domain of the loss, rounded: ``w >= -f``.

        Where ``Z - f`` is computed as 0, W is read as exactly 0, elsewhere as ``Z`` less the exact edge: both lie in the
        domain, and within the rounding that the proofs allow for.
        """

    @abstractmethod
    def conjugate(self, A: Array, Z: Array) -> Conjugate:
        """The conjugate of the loss at ``w = Z - f``."""

    def inside_domain(self, A: Array, Z: Array) -> Array:
        """How far entries lie inside the dual domain of the loss; Z may be overwritten."""
        return Z


class KullbackLeibler(Loss):
    """Kullback-Leibler loss ``a log(a / e) - a + e`` for proofs of bounds."""

    largest_entry = 1e100

    def magnitudes(self, A: Array) -> Array:
        """The entries, whose sum is the scale of the data under the KL loss."""
        return A

    def domain_edge(self, A: Array) -> Array:
        """Edge of the dual domain of the KL loss: ``f = A``."""
        return A

    def conjugate(self, A: Array, Z: Array) -> Conjugate:
        """Conjugate of the KL loss: ``a log a - a + z - z log z``."""
        Z = np.maximum(Z, 0.0)
        log_A, log_Z = log(A), log(Z)
        size = np.abs(A * log_A) + A + Z + np.abs(Z * log_Z)
        return Conjugate(A * log_A - A + Z - Z * log_Z, size, log_Z)


class SquaredError(Loss):
    """Squared error ``(a - e)^2`` as a loss for proofs of bounds."""

    largest_entry = 1e50

    def magnitudes(self, A: Array) -> Array:
        """The squares of the entries, whose sum is the scale of the data under squared error."""
        return A * A

    def domain_edge(self, A: Array) -> Array:
        """Edge of the dual domain of the squared error loss: ``f = A∘A / 2``."""
        return 0.5 * A * A

    def conjugate(self, A: Array, Z: Array) -> Conjugate:
        """Conjugate of the squared error loss: ``(u - a)^2 - w log u``."""
        W = Z - self.domain_edge(A)
        Z = np.maximum(Z, 0.0)
        u = 0.5 * (A + np.sqrt(2.0 * Z))  # Z < 0 only under the constraint X >= log(A/2), where u stays A/2
        log_u = np.where((Z == 0) & (A > 0), log(A) - math.log(2.0), log(u))  # A/2 may underflow
        size = (np.abs(W) + A * A) * (np.abs(log_u) + 1.0) + (u - A) ** 2
        return Conjugate((u - A) ** 2 - W * log_u, size, log_u)


class ConstrainedSquaredError(SquaredError):
    """Squared error under the paper's constraint ``X >= log(A/2)``, which makes the conjugate finite wherever ``A > 0``."""

    def inside_domain(self, A: Array, Z: Array) -> Array:
        """Z where A vanishes: the constrained squared error has no edge of its dual domain elsewhere."""
        Z[A > 0] = np.inf
        return Z


KL, SQUARED_ERROR = KullbackLeibler(), SquaredError()
#: The losses by their names in statements, and those of factors U and V.
LOSSES: dict[str, Loss] = {"kl": KL, "mse": SQUARED_ERROR, "mse-paper": ConstrainedSquaredError()}
FACTOR_LOSSES = ("kl", "mse")
#: The losses for which nothing better than 0 is proved: their names, or how names with a number begin.
UNBOUNDED_LOSSES, BETA, WEIGHTED = ("itakura-saito",), "beta=", "weighted "


def is_unbounded_loss(name: object) -> bool:
    """Whether a loss is one for which no bound but 0 is known, or one whose weights are not stated.

    Examples
    --------
    >>> is_unbounded_loss("itakura-saito"), is_unbounded_loss("beta=0.5"), is_unbounded_loss("kl")
    (True, True, False)
    """
    if isinstance(name, str) and name.startswith(WEIGHTED):
        plain = name.removeprefix(WEIGHTED)
        return plain in FACTOR_LOSSES or is_unbounded_loss(plain)
    if not isinstance(name, str) or not name.startswith(BETA):
        return isinstance(name, str) and name in UNBOUNDED_LOSSES
    try:
        return math.isfinite(float(name.removeprefix(BETA)))
    except ValueError:
        return False


def require_moderate_size(A: Array, loss: Loss) -> None:
    """Refuse data so small or large that products of them in a loss would vanish or overflow unnoticed."""
    largest, limit = float(np.nanmax(A, initial=0.0)), loss.largest_entry
    if not 1 / limit <= largest <= limit:
        raise CertificateError(f"The largest entry of the data is {largest:g}, where no bound is safe against rounding.")


def log(values: Array) -> Array:
    """Logarithm for losses, with log 0 read as 0, for products ``0 log 0``."""
    return np.asarray(np.log(np.where(values > 0, values, 1.0)))
