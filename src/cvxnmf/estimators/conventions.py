"""scikit-learn's conventions: names of losses, scales of objectives, progress and warnings."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from cvxnmf import validation
from cvxnmf.certificates import Certificate, Proof, RankStatement
from cvxnmf.nmf.bounds import ProofLater, rank_certificate
from cvxnmf.nmf.loss_names import find_loss
from cvxnmf.nmf.progress import shown
from cvxnmf.results import Factorization, Iterate, Status

#: Our names of the losses by scikit-learn's.
BETA_LOSSES = {"frobenius": "mse", "kullback-leibler": "kl", "itakura-saito": "itakura-saito"}
#: Steps that tell whether a descent was still going when it stopped.
LAST_STEPS = 10


def loss_name(beta_loss: Any) -> str:
    """Our name of the loss that scikit-learn calls `beta_loss`."""
    if isinstance(beta_loss, str) and beta_loss in BETA_LOSSES:
        return BETA_LOSSES[beta_loss]
    if not isinstance(beta_loss, int | float | np.number) or isinstance(beta_loss, bool) or not np.isfinite(beta_loss):
        listed = ", ".join(map(repr, BETA_LOSSES))
        validation.refuse(f"beta_loss={beta_loss!r} is not known; choose one of {listed}, or a number beta.")
    return find_loss(beta_loss).name


def require_nonnegative(X: Any, name: str) -> None:
    """Refuse data of an estimator with negative entries, missing ones aside."""
    lowest = np.nanmin(X.data if sp.issparse(X) else X, initial=0.0)
    if lowest < 0:
        validation.refuse(f"Negative values in data passed to {name}, down to {lowest:g}; only nonnegative ones can be factored.")


def require_positive(X: Any, beta_loss: Any) -> None:
    """Refuse zeros in an estimator's data where `beta_loss` needs positive ones."""
    entries = X.data if sp.issparse(X) else X
    if find_loss(loss_name(beta_loss)).needs_positive_data and np.prod(X.shape) > np.count_nonzero(entries):
        validation.refuse(
            f"When beta_loss <= 0 and X contains zeros, the solver may diverge. beta_loss={beta_loss!r} compares ratios and "
            "needs positive data; add a small value to X, mark zeros as missing with NaN, or use a positive beta_loss."
        )


def check_start(factor: Any, shape: tuple[Any, ...], name: str) -> None:
    """Refuse an estimator's custom start that does not fit, in the words that scikit-learn's begin with."""
    found, whom = np.shape(factor), f"passed to NMF (input {name})"
    if len(found) != 2:
        validation.refuse(f"Array {whom} has {len(found)} dimensions; give a matrix of shape {shape}.")
    for side, (word, wanted) in enumerate(zip(("first", "second"), shape, strict=True)):
        if found[side] != wanted:
            validation.refuse(f"Array with wrong {word} dimension {whom}: {found[side]} in place of {wanted}; give {shape}.")
    lowest, largest = np.min(factor), np.max(factor)
    if lowest < 0:
        validation.refuse(f"Negative values in data {whom}, down to {lowest:g}; a start is nonnegative.")
    if not largest > 0:
        validation.refuse(f"Array {whom} is full of zeros, which no update leaves; give positive entries.")


def zero_certificate(k: int, loss: str) -> Certificate:
    """The certificate of an estimator whose data are all zero: the loss is 0."""
    return Certificate.of_proof(0.0, "zero", Proof(0.0, True, 0.0), RankStatement(loss, k, False))


def progress_reporter(estimator: Any, listener: Any = None) -> AbstractContextManager[Callable[[Iterate], Any] | None]:
    """A callback that shows progress of a verbose estimator and calls the listener; None if there is nobody to tell."""
    return shown(estimator.verbose, type(estimator).__name__, getattr(estimator, "max_iter", 1000), listener)


class ProvedLater:
    """An estimator whose `certificate_` is proved when first looked at, or pickled, from the data as they were."""

    _proof: Any  # the certificate, or what proves it

    @property
    def certificate_(self) -> Certificate:
        """The loss at the factors, and a bound that no nonnegative factorisation with as many components can beat."""
        check_is_fitted(self)
        if callable(self._proof):
            self._proof = self._proof()
        return cast(Certificate, self._proof)

    def __copy__(self) -> Any:
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)  # what is proved later is still proved later
        return other

    def __getstate__(self) -> Any:
        if "_proof" in vars(self):
            _ = self.certificate_  # a pickled estimator does not hold the data
        return super().__getstate__()

    def _prove_later(
        self, data: Any, k: int, value: float, loss: str, symmetric: bool, effort: int | None, in_memory: bool = True
    ) -> None:
        """Remember what the estimator's certificate shall be about; data in row chunks are proved at once, and then closed."""
        prove = functools.partial(rank_certificate, data, k, value, loss, symmetric, effort)
        later = in_memory and self.certificate != "now"  # type: ignore[attr-defined]
        self._proof = ProofLater(data, prove) if later else prove()


def reconstruction_error(value: float, loss: str) -> float:
    """The reconstruction error in scikit-learn's convention: the root of twice its objective, which halves the squared error."""
    return float(np.sqrt(2.0 / find_loss(loss).unit * max(0.0, value)))


def warn_if_unfinished(result: Factorization, max_iter: int, tol: float, stacklevel: int = 3) -> None:
    """Warn, by scikit-learn's measure, if the last steps were still worth more than the tolerance of the first value."""
    values = [iterate.value for iterate in result.history]
    falling = len(values) < 2 or values[-min(len(values), LAST_STEPS + 1)] - values[-1] > tol * values[0]
    if result.status is Status.MAX_ITER and tol > 0 and falling:
        warnings.warn(convergence_message(max_iter), ConvergenceWarning, stacklevel=stacklevel)


def convergence_message(max_iter: int) -> str:
    """The warning that an estimator had too few iterations, in scikit-learn's words."""
    return f"Maximum number of iterations {max_iter} reached. Increase it to improve convergence."
