"""The function form of :class:`NMF`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxnmf import validation
from cvxnmf.estimators.nmf import NMF
from cvxnmf.typing import MatrixLike


def non_negative_factorization(
    X: MatrixLike,
    W: ArrayLike | None = None,
    H: ArrayLike | None = None,
    n_components: int | str | None = "auto",
    *,
    init: str | None = None,
    update_H: bool = True,
    solver: str = "cd",
    beta_loss: str | float = "frobenius",
    tol: float = 1e-4,
    max_iter: int = 200,
    alpha_W: float = 0.0,
    alpha_H: float | str = "same",
    l1_ratio: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
    shuffle: bool = False,
) -> tuple[Any, Any, int]:
    """Factor nonnegative data, ``X ≈ WH``, with scikit-learn's parameters; or find the best W for a given H.

    Parameters
    ----------
    X : array-like or scipy.sparse matrix of shape (n_samples, n_features)
        Nonnegative; NaN stands for missing entries.
    W, H : array-like, optional
        The start for ``init="custom"``; with ``update_H=False`` H is what W is found for.
    n_components : int, "auto" or None
        Number of components; "auto" takes it from W or H where they are used, and keeps all features otherwise.
    update_H : bool
        Whether to look for H as well.
    init, solver, beta_loss, tol, max_iter, alpha_W, alpha_H, l1_ratio, random_state, verbose, shuffle
        As in :class:`NMF`.

    Returns
    -------
    W : ndarray of shape (n_samples, n_components)
        Codes.
    H : ndarray of shape (n_components, n_features)
        Components.
    n_iter : int
        Iterations taken.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxnmf import non_negative_factorization
    >>> X = np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 1.2], [4.0, 1.0], [5.0, 0.8], [6.0, 1.0]])
    >>> W, H, n_iter = non_negative_factorization(X, n_components=2, tol=1e-8, max_iter=2000)
    >>> bool(np.abs(X - W @ H).max() < 0.05)
    True
    >>> bool(np.allclose(non_negative_factorization(X, H=H, update_H=False)[0], W))
    True
    """
    model = NMF(
        n_components,
        init=init if update_H else "custom",
        solver=solver,
        beta_loss=beta_loss,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        alpha_W=alpha_W,
        alpha_H=alpha_H,
        l1_ratio=l1_ratio,
        verbose=verbose,
        shuffle=shuffle,
    )
    if update_H:
        codes = model.fit_transform(X, W=W, H=H)
        return codes, model.components_, int(model.n_iter_)
    if W is not None:
        words = "When update_H=False, the provided initial W is not used; the best W for H is found."
        warnings.warn(words, RuntimeWarning, stacklevel=2)
    codes = model._fix_components(X, _components(H, n_components)).transform(X)  # of our own class
    return codes, model.components_, 1


def _components(H: Any, n_components: Any) -> Any:
    """Check the components H that the function form of NMF is given with ``update_H=False``."""
    if H is None:
        validation.refuse("update_H=False needs H, the components that W is found for.")
    H = np.asarray(H)
    if H.ndim != 2 or (isinstance(n_components, int) and len(H) != n_components):
        validation.refuse(f"H has shape {H.shape}, but must have a row for each of the {n_components} components.")
    return validation.nonnegative_factors(H.T, None, H.T.shape)[0].T.astype(H.dtype if H.dtype == np.float32 else np.float64)
