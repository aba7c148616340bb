"""Doubly nonnegative matrices of rank two, factored by rotating their rows into the orthant; the paper's factors made of them."""

from __future__ import annotations

import warnings

import numpy as np

from cvxnmf import validation
from cvxnmf.cp.hadamard_exponential import Features, HadamardExponential
from cvxnmf.cp.lattice import lattice_features
from cvxnmf.cp.series import multiply_features
from cvxnmf.linalg.arrays import FloatArray
from cvxnmf.results import CPFactor, Point
from cvxnmf.typing import MatrixLike

#: The pieces of the rank-two method are approximated from features of this accuracy.
RANK_TWO_PRECISION = 1e-10


def rank_two_features(target: HadamardExponential, tol: float, max_columns: int) -> Features:
    """The paper's 2^r columns; a piece whose best approximation of rank two has a negative entry gets a grid instead."""
    if not target.symmetric:
        validation.refuse("method='rank-two' is for symmetric solutions; use method='lattice' for a rectangular one.")
    pieces, refused = [], 0
    for column in target.left.W.T:
        half = Point(np.zeros(len(column)), column[:, None])
        single = HadamardExponential(half, half)
        left, values, _ = np.linalg.svd(lattice_features(single, RANK_TWO_PRECISION, max_columns).left, full_matrices=False)
        rotated = rotate_into_orthant(left[:, :2] * values[:2])
        if rotated is None:
            refused += 1
            pieces.append(lattice_features(single, tol / target.rank, max_columns))
        else:
            pieces.append(Features(rotated, rotated))
    if refused:
        warnings.warn(
            f"{refused} of {len(pieces)} rank-two pieces have negative entries; a grid takes their place.", stacklevel=5
        )
    return multiply_features(target, pieces, max_columns)


def rotate_into_orthant(half: FloatArray) -> FloatArray | None:
    """Rotate the rows of a rank-two factor into the nonnegative quadrant; None if they span more than a right angle."""
    if half.shape[1] < 2:
        half = np.column_stack([half, np.zeros((len(half), 2 - half.shape[1]))])
    mean = half.sum(axis=0)
    angles = np.arctan2(half[:, 1], half[:, 0]) - np.arctan2(mean[1], mean[0])
    angles = (angles + np.pi) % (2.0 * np.pi) - np.pi
    length = np.linalg.norm(half, axis=1)
    angles[length <= 1e-14 * length.max(initial=0.0)] = 0.0
    if angles.max() - angles.min() > 0.5 * np.pi + 1e-9:
        return None
    rotated = angles - angles.min() + max(0.0, 0.25 * np.pi - 0.5 * (angles.max() - angles.min()))
    return np.asarray(np.maximum(0.0, np.column_stack([length * np.cos(rotated), length * np.sin(rotated)])))


def factor_rank_two(A: MatrixLike) -> CPFactor:
    """Factor a doubly nonnegative matrix of rank at most two exactly: its rows are rotated into the quadrant.

    Parameters
    ----------
    A : array-like of shape (n, n)
        Nonnegative, positive semidefinite, of rank one or two up to rounding.

    Returns
    -------
    CPFactor

    Examples
    --------
    >>> import numpy as np, cvxnmf
    >>> C = np.array([[1.0, 0.0], [2.0, 1.0], [1.0, 3.0]])
    >>> factor = cvxnmf.factor_rank_two(C @ C.T)
    >>> bool(factor.U.min() >= 0), bool(factor.frobenius_error < 1e-12)
    (True, True)
    """
    matrix = validation.symmetric_matrix(A)
    validation.magnitude(matrix, "mse")
    values, vectors = np.linalg.eigh(matrix)
    rounding = 1e-10 * len(matrix) * float(np.abs(values).max())
    if values[0] < -rounding:
        validation.refuse(f"A is not positive semidefinite: its smallest eigenvalue is {values[0]:g}.")
    if len(values) > 2 and values[-3] > rounding:
        validation.refuse(f"A has rank above two: its third eigenvalue is {values[-3]:g}; use a factorisation of higher rank.")
    U = rotate_into_orthant(vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0)))
    if U is None:
        validation.refuse("The rows of A span more than a right angle, which a nonnegative matrix of rank two does not do.")
    difference = np.abs(U @ U.T - matrix)
    relative = float(np.max(difference[matrix > 0] / matrix[matrix > 0], initial=0.0))
    return CPFactor(U, relative, float(np.linalg.norm(difference) / np.linalg.norm(matrix)))
