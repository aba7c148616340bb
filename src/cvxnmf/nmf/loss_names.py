"""The losses by the names that users give them; to add one, add it here."""

from __future__ import annotations

import functools
import math

import numpy as np

from cvxnmf import validation
from cvxnmf.nmf.beta_divergence import BetaDivergence
from cvxnmf.nmf.losses import KullbackLeibler, NMFLoss, SquaredError

#: How the names of beta divergences other than these begin.
BETA = "beta="
#: How the names of losses with weights begin.
WEIGHTED = "weighted "
#: Losses that have a name of their own, and what the numbers of these are.
LOSSES: dict[str, NMFLoss] = {
    loss.name: loss for loss in (SquaredError(), KullbackLeibler(), BetaDivergence("itakura-saito", 0.0))
}
NUMBERS = {2.0: "mse", 1.0: "kl", 0.0: "itakura-saito"}


def find_loss(loss: object) -> NMFLoss:
    """The loss of a name that users give, or of a number, the beta of a beta divergence.

    Examples
    --------
    >>> find_loss("kl").name, find_loss(2).name, find_loss(0.5).name
    ('kl', 'mse', 'beta=0.5')
    """
    if isinstance(loss, str):
        return _loss_of_name(loss)
    if isinstance(loss, int | float | np.number) and not isinstance(loss, bool) and math.isfinite(loss):
        return _loss_of_beta(float(loss))
    return validation.refuse(f"loss={loss!r} is not known; {_choices()}.")


def _loss_of_name(name: str) -> NMFLoss:
    if name in LOSSES:
        return LOSSES[name]
    if name.startswith(WEIGHTED):
        plain = find_loss(name.removeprefix(WEIGHTED))
        if math.isnan(plain.beta):
            validation.refuse(f"loss={plain.name!r} takes no weights; only beta divergences, such as 'mse' and 'kl', do.")
        return BetaDivergence(name, plain.beta, plain.unit)
    try:
        beta = float(name.removeprefix(BETA))
    except ValueError:
        beta = math.nan
    return _loss_of_beta(beta) if math.isfinite(beta) else validation.refuse(f"loss={name!r} is not known; {_choices()}.")


@functools.cache
def _loss_of_beta(beta: float) -> NMFLoss:
    return LOSSES[NUMBERS[beta]] if beta in NUMBERS else BetaDivergence(f"{BETA}{beta:.17g}", beta)


def _choices() -> str:
    return f"choose one of {', '.join(map(repr, LOSSES))}, or the number beta of a beta divergence"
