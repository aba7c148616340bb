"""A certificate for anybody's factors."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxnmf import chunked, validation
from cvxnmf.certificates import Certificate
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.nmf.bounds import rank_certificate, weighted_certificate
from cvxnmf.nmf.chunked_data import ChunkedData
from cvxnmf.nmf.data_matrix import NO_PENALTY
from cvxnmf.nmf.loss_names import WEIGHTED, find_loss
from cvxnmf.nmf.open import open_data
from cvxnmf.nmf.row_names import in_order, separate_names
from cvxnmf.nmf.storage import storage_of
from cvxnmf.nmf.weights import checked_weights
from cvxnmf.results import Factorization
from cvxnmf.typing import ClientLike, FactorsLike, MatrixLike, MemoryLimit

#: Share of the loss below which the transpose of a square V is likely to be what was meant.
TRANSPOSED = 0.5


def verify(
    A: MatrixLike,
    U: FactorsLike,
    V: MatrixLike | None = None,
    loss: str | float = "mse",
    effort: int | None = None,
    *,
    weights: ArrayLike | None = None,
    memory_limit: MemoryLimit = None,
    client: ClientLike | None = None,
) -> Certificate:
    """Certify anybody's nonnegative factors: their exact loss, and a bound that no factorisation of this rank can beat.

    Parameters
    ----------
    A : array-like, scipy.sparse matrix, numpy.memmap or dask array of shape (m, n)
        Nonnegative; NaN stands for missing entries, which data in row chunks cannot have.
    U : array-like of shape (m, k), or Factorization
        Nonnegative. Where A and a factor are pandas frames with names, rows of the factor are taken by name.
    V : array-like of shape (n, k), optional
        Nonnegative, ``A ≈ UV'`` (the transpose of scikit-learn's ``components_``). Left out, ``A ≈ UU'`` and the bound is about
        symmetric factorisations.
    loss : {"mse", "kl", "itakura-saito"} or float
        ``||A - UV'||^2`` (no half), or Kullback-Leibler, whose bound is close where few components explain much; or another beta
        divergence by its number, see :func:`classical_nmf`, for which no bound better than 0 is known.
    effort : int, optional
        Most singular value decompositions to spend on the bound; 0 takes the singular values of A alone, and so does squared
        error of data in row chunks. Left out, as many as pay, at most 150, and sparse data are not made dense unless they are
        small: their largest singular values are found by Lanczos iterations, which is not rigorous.
    weights : array-like of shape (m,) or (m, n), optional
        Weights of the rows or of the entries in the loss, see :func:`classical_nmf`; data in memory and factors U and V only.
    memory_limit, client
        Work on data in row chunks, from files or on a Dask cluster; see :func:`classical_nmf`.

    Returns
    -------
    Certificate
        Of scope "rank-k"; ``certificate.kind`` tells which bound it is.

    Raises
    ------
    Interrupted
        On Ctrl-C; a KeyboardInterrupt whose `solution` is the certificate with the best bound so far.

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> U, V = np.eye(4)[:, :2] + 0.1, np.ones((3, 2))
    >>> certificate = cvxnmf.verify(U @ V.T + 0.01, U, V)
    >>> bool(certificate.bound <= certificate.value)
    True
    """
    loss = find_loss(loss).name
    effort = None if effort is None else validation.integer("effort", effort, minimum=0)
    if isinstance(U, Factorization):
        given = U
        U, V = given.U, None if given.V is given.U else given.V
    named = separate_names(A)
    A, U, weights = named.A, in_order(U, named.rows, "U"), named.weights(weights)
    V = None if V is None else in_order(V, named.columns, "V")
    place = memory_limit, client
    in_memory = not chunked.needs_chunks(A, *place)
    if weights is not None and not in_memory:
        validation.refuse("Data in blocks cannot be verified with weights; give data in memory.")
    if weights is not None and V is None:
        validation.refuse("Factors UU' cannot be verified with weights; give V as well.")
    if weights is not None or not in_memory:
        return _verify_opened(A, U, V, loss, effort, weights, place)
    data = validation.partial_matrix(A)
    validation.magnitude(data, loss)
    U, V = validation.nonnegative_factors(U, V, data.shape)
    symmetric = V is U
    if symmetric:
        validation.require_symmetric(data)
    value = factor_loss(data, U, V, loss)
    if not symmetric and V.shape[0] == V.shape[1] and factor_loss(data, U, np.ascontiguousarray(V.T), loss) < TRANSPOSED * value:
        said = "V is taken with a row for each column of A, but V.T fits far better; scikit-learn's components_ are transposed."
        warnings.warn(said, UserWarning, stacklevel=2)
    return rank_certificate(data, U.shape[1], value, loss, symmetric, effort)


def _verify_opened(A: Any, U: Any, V: Any, loss: str, effort: int | None, weights: Any, place: tuple[Any, Any]) -> Certificate:
    """The certificate of anybody's factors of data in row chunks, or in a loss with weights."""
    U, V = validation.nonnegative_factors(U, V, chunked.matrix_shape(A))
    known = find_loss(loss if weights is None else f"{WEIGHTED}{loss}")
    with open_data(A, U.shape[1], known, V is U, weights, place) as (given, data), np.errstate(all="ignore"):
        value = data.loss_value(known, data.hold(U, NO_PENALTY), V)
        if weights is None:
            return rank_certificate(given, U.shape[1], value, loss)
        return weighted_certificate(given, U.shape[1], value, known.name, checked_weights(weights, data.shape), effort)


@functools.singledispatch
def factor_loss(A: Any, U: FloatArray, V: FloatArray, loss: str) -> float:
    """The loss of ``UV'`` over the observed entries of an array with NaN, a sparse array or a ChunkedMatrix; in doubles."""
    in_single = isinstance(A, np.ndarray) and A.dtype == np.float32  # its entries are taken in double precision part by part
    with np.errstate(all="ignore"):
        return find_loss(loss).value(storage_of(A if in_single else A.astype(np.float64, copy=False)), U, V)


@factor_loss.register
def _(A: chunked.ChunkedMatrix, U: FloatArray, V: FloatArray, loss: str) -> float:
    """The loss of anybody's factors by a pass over the row chunks."""
    data = ChunkedData(A)
    return data.loss_value(find_loss(loss), data.hold(U, NO_PENALTY), V)
