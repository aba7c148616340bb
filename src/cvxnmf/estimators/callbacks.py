"""scikit-learn's callbacks, where its version has them: every iteration of a fit is a task that they are told of."""

from __future__ import annotations

from typing import Any

__all__ = ["CallbackSupportMixin", "FitTasks", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks  # type: ignore[import-untyped]
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """An empty base class of estimators: this version of scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the fit method of an estimator unchanged: this version of scikit-learn has no callbacks."""
        return method


class FitTasks:
    """The fit of an estimator and its iterations as tasks that scikit-learn's callbacks are told of, if there are any."""

    def __init__(self, estimator: Any, X: Any, sample_weight: Any = None) -> None:
        self.estimator, self.context = estimator, None
        self.told: dict[str, Any] = {"estimator": estimator, "X": X}
        if sample_weight is not None:
            self.told["metadata"] = {"sample_weight": sample_weight}
        if getattr(estimator, "_skl_callbacks", None):
            self.context = estimator._init_callback_context(max_subtasks=None).call_on_fit_task_begin(**self.told)

    @property
    def listener(self) -> Any:
        """A callback for the solver that tells scikit-learn's callbacks of every iteration; None if nobody listens."""
        return None if self.context is None else lambda iterate: self.iteration()

    def iteration(self, fitted: Any = None) -> bool:
        """Tell scikit-learn's callbacks of an iteration, with fitted attributes where known; return whether one asks to stop."""
        if self.context is None:
            return False
        task = self.context.subcontext(task_name="iteration").call_on_fit_task_begin(**self.told)
        return bool(task.call_on_fit_task_end(**self.told, reconstruction_attributes=fitted))

    def end(self) -> None:
        """Tell scikit-learn's callbacks that the estimator is fitted."""
        if self.context is not None:
            self.context.call_on_fit_task_end(**self.told, reconstruction_attributes=dict)
