"""Whether a matrix is symmetric up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

#: Differences of mirrored entries up to this share of the largest entry are rounding.
ASYMMETRY = 1e-10


def asymmetry(A: Any) -> float:
    """Largest difference of mirrored entries, ``max |a_ij - a_ji|``, of a square dense or sparse A.

    Mirrored entries that are both missing (NaN) or the same infinity do not differ.
    """
    if sp.issparse(A):
        return float(abs(A - A.T).max())
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(np.abs(A - A.T), initial=0.0))


def rounding_asymmetry(A: Any, dtype: Any = np.float64) -> float:
    """Largest :func:`asymmetry` of a nonnegative A that is rounding alone.

    Parameters
    ----------
    A : ndarray or sparse array of shape (n, n)
        The matrix; NaN where entries are missing.
    dtype : dtype
        The type that its entries had before they were converted: in single precision they may differ by more.
    """
    kind = np.dtype(dtype)
    share = 8 * float(np.finfo(np.float32).eps) if kind.kind == "f" and kind.itemsize <= 4 else ASYMMETRY
    return share * float(A.max() if sp.issparse(A) else np.nanmax(A, initial=0.0))
