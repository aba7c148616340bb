"""Bounds for a graph whose nodes share positions in groups: those of its sums over pairs of groups, and a constant.

With positions that are the same within groups, effects ``v`` and their sums ``T_g = sum exp(v_i)``, the least of

    KL(A, E) = KL(sums of A, T_g T_h exp(w_g . w_h)) + constant,
    constant = sum A log A - sum S log S - 2 sum d log d + 2 sum D log D,

over effects with the same T has ``exp(v_i) = T_g d_i / D_g``; S are the sums of A over pairs of groups, d the degrees of nodes
and D those of groups. A bound for the sums, plus the constant, is one for all such models of the graph. The squared metric of a
group is the sum of those of its nodes, so that the penalty is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from cvxnmf.certificates.matrix_free import sparse_data
from cvxnmf.certificates.rounding import UNIT, UNITS_PER_TERM, Array, CertificateError, log, witness_arrays

#: Whole numbers up to this one are exact, and so are their sums.
LARGEST_WHOLE = 2.0**53


class Sums(NamedTuple):
    """The problem of the sums.

    Attributes
    ----------
    A : csr_array
        Sums of the data over pairs of groups.
    statement, witness : mapping
        Of the problem of the sums.
    constant, lost : float
        What its values are below those of the graph, and a bound on the rounding in that.
    exact : bool
        Whether no sum was rounded.
    """

    A: Any
    statement: dict[str, Any]
    witness: dict[str, Array]
    constant: float
    lost: float
    exact: bool


def summed(A: Any, statement: Mapping[str, Any], witness: Mapping[str, Array]) -> Sums:
    """Sum data over the groups of the witness; they must be those of KL on the conditional cone, in the degree metric."""
    terms = {"form": "symmetric", "loss": "kl", "cone": "conditional", "diagonal": "fit", "metric": "degree"}
    if any(statement.get(name, "symmetric" if name == "form" else None) != value for name, value in terms.items()):
        raise CertificateError("Groups of nodes are known for KL on the conditional cone in the degree metric only.")
    data = sparse_data(A)
    n = data.shape[0]
    groups, metric = witness_arrays(witness, "groups", "metric")
    count = statement["groups"]
    known = isinstance(count, int) and not isinstance(count, bool) and groups.shape == (n,)
    if not (known and 1 <= count <= n and np.array_equal(np.unique(groups), np.arange(count))):
        raise CertificateError("The groups of the witness do not match the data.")
    numbers = groups.astype(np.intp)
    degrees = np.asarray(data.sum(axis=1)).ravel()
    totals, squares = np.bincount(numbers, degrees), np.bincount(numbers, _squared_metric(degrees))
    if metric.shape != (count,) or not np.allclose(metric**2, squares, rtol=1e-12, atol=0.0):
        raise CertificateError("The metric of the witness is not that of the groups.")
    member = sp.csr_array((np.ones(n), numbers, np.arange(n + 1)), shape=(n, count))
    sums = sp.csr_array(member.T @ (data @ member))
    sums = sp.csr_array((sums + sums.T) / 2)
    parts: tuple[tuple[Any, float], ...] = ((data.data, 1.0), (sums.data, -1.0), (degrees, -2.0), (totals, 2.0))
    constant = float(sum(sign * np.sum(x * log(x)) for x, sign in parts))
    exact = bool(np.all(data.data == np.floor(data.data)) and float(degrees.sum()) < LARGEST_WHOLE)
    units = UNITS_PER_TERM if exact else UNITS_PER_TERM + n
    lost = units * UNIT * float(sum(abs(sign) * np.sum(np.abs(x * log(x)) + x) for x, sign in parts))
    inner = {name: array for name, array in witness.items() if name != "groups"}
    outer = {name: value for name, value in statement.items() if name != "groups"} | {"metric": "own"}
    return Sums(sums, outer, inner, constant, lost, exact)


def _squared_metric(degrees: Array) -> Array:
    raised = degrees + degrees.sum() / len(degrees)
    return np.asarray(raised / np.sqrt(raised.sum()))
