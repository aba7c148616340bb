"""scikit-learn's conventions: names of losses, scales of objectives, progress and warnings."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from cvxnmf import validation
from cvxnmf.certificates import Certificate
from cvxnmf.nmf.bounds import ProofLater, rank_certificate
from cvxnmf.nmf.loss_names import find_loss
from cvxnmf.nmf.progress import shown
from cvxnmf.results import Factorization, Iterate, Status

#: scikit-learn's names of the losses.
BETA_LOSSES = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}
#: Steps that tell whether a descent was still going when it stopped.
LAST_STEPS = 10


def loss_name(beta_loss: Any) -> str:
    """Our name of scikit-learn's loss."""
    number = BETA_LOSSES.get(beta_loss) if isinstance(beta_loss, str) else beta_loss
    if not isinstance(number, int | float | np.number) or isinstance(number, bool) or not np.isfinite(number):
        listed = ", ".join(map(repr, BETA_LOSSES))
        validation.refuse(f"beta_loss={beta_loss!r} is not known; choose one of {listed}, or a number beta.")
    return find_loss(number).name


def objective_ratio(loss: str) -> float:
    """Our objective over scikit-learn's, which halves the squared error."""
    return find_loss(loss).unit


def require_nonnegative(X: Any, name: str) -> None:
    """Refuse negative entries, missing ones aside."""
    lowest = np.nanmin(X.data if sp.issparse(X) else X, initial=0.0)
    if lowest < 0:
        validation.refuse(f"Negative values in data passed to {name}, down to {lowest:g}; only nonnegative ones can be factored.")


def progress_reporter(estimator: Any) -> Callable[[Iterate], Any] | None:
    """A callback that shows progress on the standard error stream, None if the estimator is not verbose."""
    return shown(estimator.verbose, type(estimator).__name__, getattr(estimator, "max_iter", 1000), None)


class ProvedLater:
    """An estimator whose `certificate_` is proved when it is first looked at, or pickled, from the data as they were."""

    _proof: Any  # the certificate, or what proves it

    @property
    def certificate_(self) -> Certificate:
        """The loss at the factors, and a bound that no nonnegative factorisation with as many components can beat."""
        check_is_fitted(self)
        if callable(self._proof):
            self._proof = self._proof()
        return cast(Certificate, self._proof)

    def __getstate__(self) -> Any:
        if "_proof" in vars(self):
            _ = self.certificate_  # a pickled estimator does not hold the data
        return super().__getstate__()

    def _prove_later(
        self, data: Any, k: int, value: float, loss: str, symmetric: bool, effort: int | None, in_memory: bool = True
    ) -> None:
        """Remember what the certificate shall be about; data in row chunks are closed afterwards, and proved at once."""
        prove = functools.partial(rank_certificate, data, k, value, loss, symmetric, effort)
        later = in_memory and self.certificate != "now"  # type: ignore[attr-defined]
        self._proof = ProofLater(data, prove) if later else prove()


def reconstruction_error(value: float, loss: str) -> float:
    """What scikit-learn calls the reconstruction error: the root of twice its own objective."""
    return float(np.sqrt(2.0 / objective_ratio(loss) * max(0.0, value)))


def warn_if_unfinished(result: Factorization, max_iter: int, tol: float, stacklevel: int = 3) -> None:
    """Warn if the last steps were still worth more than the tolerance of the first value, scikit-learn's measure."""
    values = [iterate.value for iterate in result.history]
    falling = len(values) < 2 or values[-min(len(values), LAST_STEPS + 1)] - values[-1] > tol * values[0]
    if result.status is Status.MAX_ITER and tol > 0 and falling:
        words = f"Stopped after max_iter={max_iter} iterations; increase it for more."
        warnings.warn(words, ConvergenceWarning, stacklevel=stacklevel)
