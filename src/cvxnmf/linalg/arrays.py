"""The array type of the package, and sparse arrays in a common form."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def csr_without_zeros(A: Any) -> Any:
    """Return `A` as a new CSR array of float64, repeated entries added up and zeros left out."""
    matrix = sp.csr_array(A, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
