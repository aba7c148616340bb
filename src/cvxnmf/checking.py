"""Certificates and their check: numpy and scipy only, no other module of this package.

What is proved (docs/mathematics.md). For X in the cone K and any W with ``Y = W + trace N`` in the dual
cone of K, Fenchel's inequality ``phi(x) + phi*(w) >= x w`` gives

    loss(X) + trace <N, X>  >=  <W, X> - sum phi*(W) + trace <N, X>  =  <Y, X> - sum phi*(W)
                            >=  - sum phi*(W).

The witness is ``Z = W + f``, W measured from the edge of its domain: ``f = A`` for KL and ``f = A∘A/2`` for
squared error. The check recomputes the right-hand side from the data and Z, and proves that Y lies in the dual cone:
PSD for K = S+, and PSD with ``Y1 = 0`` for the conditionally PSD cone. Everything is safe against
rounding. Positive semidefiniteness rests on Rump's criterion: if the floating-point Cholesky
factorisation of ``M - c I`` runs through, with c a bound on its backward error, then M is PSD. Row sums
that vanish only up to rounding are put right, in thought, on the diagonal of W; what that may change is
taken off the bound.
"""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

Array = NDArray[np.float64]

UNIT = float(np.finfo(np.float64).eps)  # twice the unit roundoff: every error bound below is generous
#: Elementary functions and pairwise sums are off by at most this many units per term.
UNITS_PER_TERM = 64
#: A trace, and the entries of a metric and their inverses, may not exceed this: no product below overflows.
LARGEST = 1e120
#: Entries that are worked on at a time.
BLOCK_ENTRIES = 1 << 16
#: Values below this share of the data's scale count as zero in a relative gap.
NEGLIGIBLE = 1e-9


class CertificateError(ValueError):
    """A certificate does not prove what it states."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """How far an answer can be from the best one, and why.

    ``check(A)`` proves the bound anew. It cannot recompute `value`, since the certificate does not hold the point itself;
    a digest of all its entries shows whether any was altered after the certificate was made.

    Attributes
    ----------
    value, bound : float
        Objective at the certified point, and a number no admissible point can beat.
    scope : str
        ``"model"``: nothing of the form ``exp_H(X)``, X in this cone, is lower.
    kind : str
        ``"dual"`` (a dual point is the witness) or ``"zero"`` (the loss cannot be negative).
    rigorous : bool
        Whether the bound holds including all rounding errors. It may not with an ignored diagonal on the
        conditional cone, when entries of the dual point are as small as rounding.
    restored : bool
        Whether the point lay outside the cone and was projected first.
    scale : float
        Size of the data, for the relative gap of vanishing values.
    statement : mapping
        The problem the bound is about: loss, cone, diagonal, trace, metric ("degree", "uniform" or "own").
    witness : mapping of arrays
        The dual point ``Z`` and the metric, on the nodes that carry data.
    digest : str
        SHA-256 over everything above.
    """

    value: float
    bound: float
    scope: str
    kind: str
    rigorous: bool
    restored: bool
    scale: float
    statement: Mapping[str, Any] = field(repr=False)
    witness: Mapping[str, Array] = field(repr=False)
    digest: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.digest:
            object.__setattr__(self, "digest", self._computed_digest())

    def _facts(self) -> dict[str, Any]:
        """Everything but the arrays and the digest."""
        names = ("value", "bound", "scope", "kind", "rigorous", "restored", "scale")
        return {name: getattr(self, name) for name in names} | {"statement": dict(self.statement)}

    def _computed_digest(self) -> str:
        seal = hashlib.sha256(json.dumps(self._facts(), sort_keys=True, default=str).encode())
        for name in sorted(self.witness):
            array = np.ascontiguousarray(self.witness[name])
            seal.update(f"{name} {array.dtype.str} {array.shape}".encode())
            seal.update(array.data if array.dtype.kind == "f" else repr(array).encode())
        return seal.hexdigest()

    @property
    def gap(self) -> float:
        """``value - bound``, never negative."""
        return self.value - self.bound

    @property
    def relative_gap(self) -> float:
        """Gap over the value (over a billionth of the data's scale where the value vanishes)."""
        return relative_gap(self.value, self.bound, self.scale)

    def __str__(self) -> str:
        """Value, bound and gap in a few words."""
        rigour = "" if self.rigorous else ", not safe against rounding"
        return (
            f"  value        {self.value:.8g}{' (after projection on the cone)' if self.restored else ''}\n"
            f"  proved bound {self.bound:.8g}   (relative gap {self.relative_gap:.1e}{rigour})"
        )

    def check(self, A: Any) -> float:
        """Recompute the bound from the data and the witness alone.

        Parameters
        ----------
        A : array-like or scipy.sparse matrix of shape (n, n)
            The data the certificate was made for.

        Returns
        -------
        float
            The bound, proved anew.

        Raises
        ------
        CertificateError
            If the witness does not prove the stated bound for these data.
        """
        if self.digest != self._computed_digest():
            raise CertificateError("The certificate was altered after it was made: its digest does not match.")
        try:
            proof = prove(A, self.kind, self.statement, self.witness)
        except CertificateError as error:
            raise CertificateError(f"The certificate does not hold for these data. {error}") from None
        if not abs(proof.bound - self.bound) <= 1e-11 * max(proof.scale, abs(proof.bound)):
            raise CertificateError(
                f"The witness proves the bound {proof.bound:.12g}, not the stated {self.bound:.12g}; "
                "the certificate was altered or belongs to other data."
            )
        if self.rigorous and not proof.rigorous:
            raise CertificateError("The certificate states a rigorous bound, but its witness is not rigorous.")
        if not self.bound <= self.value:
            raise CertificateError(f"The stated bound {self.bound:.12g} exceeds the stated value {self.value:.12g}.")
        if self.scope != "model":
            raise CertificateError(f"A witness of this kind cannot prove anything of scope {self.scope!r}.")
        return min(proof.bound, self.bound)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the certificate to one file of numpy's npz format: arrays, and JSON for the rest; no pickle.

        The witness is a dense matrix of the size of the data.
        """
        meta = self._facts() | {"digest": self.digest}
        text = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
        with open(path, "wb") as file:
            arrays: dict[str, Any] = {"meta": text, **self.witness}
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Certificate:
        """Read a certificate written by :meth:`save`."""
        if not isinstance(path, str | PathLike):
            raise CertificateError(f"A path is needed to load a certificate, not {path!r}.")
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            meta = json.loads(bytes(arrays.pop("meta")).decode())
            numbers: dict[str, Any] = {name: float(meta.pop(name)) for name in ("value", "bound", "scale")}
            return cls(**numbers, **meta, witness=arrays)
        except FileNotFoundError:
            raise
        except (ValueError, KeyError, TypeError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise CertificateError(f"{path} is not a certificate file written by Certificate.save.") from error


def relative_gap(value: float, bound: float, scale: float) -> float:
    """Gap over the value, or over the least value that counts for data of this scale."""
    if value == math.inf:
        return math.inf
    return (value - bound) / max(value, NEGLIGIBLE * scale, np.finfo(np.float64).tiny)


class Proof(NamedTuple):
    """A bound recomputed by the check, and the size of the data."""

    bound: float
    rigorous: bool
    scale: float


def prove(A: Any, kind: str, statement: Mapping[str, Any], witness: Mapping[str, Array]) -> Proof:
    """Return the bound that `witness` proves for `A`, or raise CertificateError."""
    data, terms = _data(A), _terms(statement)
    if kind == "zero":
        return Proof(0.0, True, terms.scale(data))
    if kind != "dual":
        raise CertificateError(f"Certificates of kind {kind!r} cannot be checked here.")
    try:
        arrays = [np.asarray(witness[name]) for name in ("Z", "metric")]
    except (KeyError, TypeError, ValueError):
        raise CertificateError("The certificate lacks its dual point or its metric.") from None
    if any(array.dtype.kind != "f" for array in arrays):
        raise CertificateError("The dual point and the metric must be arrays of real numbers.")
    with np.errstate(all="ignore"):  # every test below fails on what is not finite
        dual = _DualPoint(data, terms, arrays[0].astype(np.float64, copy=False), arrays[1].astype(np.float64))
        dual.in_domain()
        dual.in_dual_cone()
        return Proof(dual.bound(), dual.rigorous, terms.scale(data))


class _Terms(NamedTuple):
    """The problem that a bound is about."""

    loss: str
    cone: str
    trace: float
    fits_diagonal: bool
    metric: str

    def scale(self, A: Array) -> float:
        """Size of the data, against which rounding is judged."""
        counted = A if self.fits_diagonal else A - np.diag(np.diag(A))
        return float(counted.sum() if self.loss == "kl" else np.vdot(counted, counted))


def _terms(statement: Mapping[str, Any]) -> _Terms:
    try:
        fits, metric = statement["diagonal"] == "fit", statement["metric"]
        terms = _Terms(statement["loss"], statement["cone"], float(statement["trace"]), fits, metric)
        known = terms.loss in ("kl", "mse", "mse-paper") and terms.cone in ("psd", "conditional")
        known = known and metric in ("degree", "uniform", "own")
        if known and 0 <= terms.trace <= LARGEST and statement["diagonal"] in ("fit", "ignore"):
            return terms
    except (KeyError, TypeError, ValueError):
        pass
    raise CertificateError("The certificate's statement of the problem is not understood.")


def _data(A: Any) -> Array:
    try:
        raw = A.toarray() if sp.issparse(A) else np.asarray(A)
        real = raw.dtype.kind in "fiubO" and not isinstance(A, np.ma.MaskedArray)
        dense = np.asarray(raw, dtype=np.float64) if real else np.full((1, 1), np.nan)
    except (TypeError, ValueError):
        dense = np.full((1, 1), np.nan)
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1] or not dense.size or not (_is_finite(dense) and dense.min() >= 0):
        raise CertificateError("The data must be a square matrix of finite nonnegative numbers.")
    return dense if np.array_equal(dense, dense.T) else (dense + dense.T) / 2


def _named_metric(name: str, A: Array) -> Array:
    """The metric s that a name stands for."""
    if name == "uniform":
        return np.ones(len(A))
    raised = A.sum(axis=1) + A.sum() / len(A)
    return np.asarray(np.sqrt(raised / np.sqrt(raised.sum())))


def _is_finite(values: Array) -> bool:
    return bool(np.isfinite(values.min(initial=0.0)) and np.isfinite(values.max(initial=0.0)))


class _DualPoint:
    """The witness of a model bound, seen against its data: ``W = Z - f``, its diagonal kept apart.

    Only one further matrix, Y, is formed; everything else is taken in blocks of rows.
    """

    def __init__(self, A: Array, terms: _Terms, Z: Array, metric: Array) -> None:
        self.loss, self.cone, self.trace, self.fits_diagonal, metric_name = terms
        if not self.fits_diagonal and np.diag(A).any():
            A = A - np.diag(np.diag(A))
        kept = A.any(axis=1) if self.cone == "conditional" else np.ones(len(A), dtype=bool)
        self.A = A if kept.all() else A[np.ix_(kept, kept)]
        self.s, self.Z = metric, Z
        n = len(self.A)
        if Z.shape != (n, n) or metric.shape != (n,) or n == 0:
            raise CertificateError(f"The witness of shape {Z.shape} does not match the data, where {n} nodes carry entries.")
        if not (_is_finite(Z) and np.array_equal(Z, Z.T) and np.all((metric >= 1 / LARGEST) & (metric <= LARGEST))):
            raise CertificateError("The witness is not a finite symmetric matrix with a positive metric of moderate size.")
        if metric_name != "own" and not np.allclose(metric, _named_metric(metric_name, self.A), rtol=1e-9, atol=0.0):
            raise CertificateError(f"The metric is not the {metric_name!r} metric of these data.")
        self.diagonal = np.diag(Z).copy()  # of Z, once its row sums are put right
        self.slack = np.zeros(n)  # bounds the error that the mended row sums leave in an entry of W
        self.rigorous = True
        self._sum_rows()
        if not self.fits_diagonal and (self.diagonal != self._floor(np.diag(self.A))).any():
            raise CertificateError("The diagonal is ignored, so the dual point must vanish there.")
        if self.cone == "conditional":
            self._absorb_row_sums()

    def _floor(self, A: Array) -> Array:
        """The edge f of the domain, rounded.

        Where ``Z - f`` is computed as 0, W is read as exactly 0, elsewhere as ``Z`` less the exact edge: both lie in the
        domain, and within the rounding that is allowed for below.
        """
        return A if self.loss == "kl" else 0.5 * A * A

    def _blocks(self) -> Iterator[tuple[slice, Array, Array]]:
        """Blocks of rows: which rows, their data, and Z with the mended diagonal."""
        n = len(self.A)
        height = max(1, BLOCK_ENTRIES // n)
        for first in range(0, n, height):
            rows = slice(first, min(n, first + height))
            Z = self.Z[rows].copy()
            Z[np.arange(len(Z)), np.arange(n)[rows]] = self.diagonal[rows]
            yield rows, self.A[rows], Z

    def _sum_rows(self) -> None:
        """Row sums of W, and of the absolute values behind them."""
        self.row_sums, self.rows = np.zeros(len(self.A)), np.zeros(len(self.A))
        for rows, A, Z in self._blocks():
            floor = self._floor(A)
            W = Z - floor
            self.row_sums[rows] = W.sum(axis=1)
            self.rows[rows] = np.abs(W).sum(axis=1) + 2 * floor.sum(axis=1)

    def _absorb_row_sums(self) -> None:
        """Make the rows of W sum to zero; ``N1 = 0`` already."""
        n, residual = len(self.A), self.row_sums
        rounding = (n + 16) * UNIT * self.rows
        if not np.all(np.abs(residual) <= 16 * rounding):
            worst = int(np.argmax(np.abs(residual) - 16 * rounding))
            raise CertificateError(f"The rows of the dual point do not sum to zero (row {worst}).")
        if self.fits_diagonal:
            self.slack = rounding
            self.diagonal -= residual
        else:  # no weight on the diagonal: a tiny x_i + x_j off the diagonal would put the rows right
            self.slack = np.full(n, 2.0 * (np.abs(residual) + rounding).max() / max(n - 2, 1))

    def in_domain(self) -> None:
        """The conjugate must be finite at every entry of W, and stay so within the slack."""
        smallest = np.inf
        for rows, A, Z in self._blocks():
            if self.loss == "mse-paper":
                Z[A > 0] = np.inf
            on_diagonal = (np.arange(len(Z)), np.arange(len(self.A))[rows])
            Z[on_diagonal] = Z[on_diagonal] - 2 * self.slack[rows] if self.fits_diagonal else np.inf
            smallest = min(smallest, float(Z.min()))
            if not smallest >= 0:
                i, j = np.unravel_index(int(np.argmin(Z)), Z.shape)
                raise CertificateError(f"The dual point leaves its domain at row {rows.start + i}, column {j}.")
        if not self.fits_diagonal and self.cone == "conditional":
            self.rigorous = bool(smallest > 4 * self.slack[0])

    def in_dual_cone(self) -> None:
        """``Y = W + trace N`` must be PSD; ``Y1 = 0`` holds on the conditional cone by now."""
        Y, size = self._dual_matrix()
        groups = self._groups(Y)
        for nodes in groups:
            square = np.ix_(nodes, nodes)
            if not self._is_psd(Y[square] if len(groups) > 1 else Y, size[nodes]):
                raise CertificateError("The dual point is not positive semidefinite.")

    def _dual_matrix(self) -> tuple[Array, Array]:
        """Y, and for each row a bound on the sum of absolute values that rounding acted on."""
        t = self.s**2
        size = self.rows + 2 * self.trace * t
        Y = np.empty_like(self.Z)
        for rows, A, Z in self._blocks():
            Y[rows] = Z - self._floor(A)
            if self.cone == "conditional" and self.trace:
                Y[rows] -= np.outer(self.trace * t[rows], t / t.sum())
        Y.flat[:: len(Y) + 1] += self.trace * t
        return Y, size

    def _groups(self, Y: Array) -> list[NDArray[np.intp]]:
        """Blocks of Y: without a penalty, separate components of the data stay separate."""
        if self.cone == "psd" or self.trace:
            return [np.arange(len(Y))]
        count, labels = connected_components(sp.csr_array(Y != 0), directed=False)
        return [np.flatnonzero(labels == c) for c in range(count)]

    def _is_psd(self, M: Array, size: Array) -> bool:
        """Rump's criterion on M scaled to unit diagonal by powers of two; M is overwritten."""
        n = len(M)
        if n == 1 and self.cone == "conditional":
            return True  # a 1-by-1 matrix with row sum zero is zero
        diagonal = np.diag(M).copy()
        if not diagonal.min() > 0:
            return False
        scaling = np.exp2(-np.round(0.5 * np.log2(diagonal)))
        M *= scaling[:, None]
        M *= scaling[None, :]
        lifted = 0.0
        if self.cone == "conditional":  # the direction 1 has eigenvalue zero by construction; lift it
            z = 1.0 / scaling
            z /= np.linalg.norm(z)
            lifted = float(np.trace(M)) / n
            M += lifted * np.outer(z, z)
        formed = 8 * UNIT * float((scaling**2 * size).max())  # norm of a nonnegative matrix, weighted row sums
        off_diagonal = float((scaling**2).max() * self.slack.max() * n) if not self.fits_diagonal else 0.0
        absorbed = 2 * (n + 16) * UNIT * float((scaling**2 * size).max()) + off_diagonal
        backward = 4 * (n + 16) * UNIT * (float(np.trace(M)) + lifted)
        M.flat[:: n + 1] -= formed + absorbed + backward
        if not _is_finite(M):
            return False
        try:
            factor = sl.cholesky(M.T, overwrite_a=True, check_finite=False)
        except sl.LinAlgError:
            return False
        return bool(np.all(np.diag(factor) > 0))

    def bound(self) -> float:
        """``-sum phi*(W)``, lowered by all that rounding may have added, and never below 0."""
        total, rounding, moved, n = 0.0, 0.0, 0.0, len(self.A)
        for rows, A, Z in self._blocks():
            terms, weight, slope = self._conjugate_terms(A, Z)
            on_diagonal = (np.arange(len(Z)), np.arange(n)[rows])
            if self.fits_diagonal:
                raised = self._conjugate_terms(A[on_diagonal], Z[on_diagonal] + self.slack[rows])[2]
                steepest = np.maximum(np.abs(slope[on_diagonal]), np.abs(raised)) + 1.0
                moved += float(np.sum(self.slack[rows] * steepest))
            else:
                terms[on_diagonal] = weight[on_diagonal] = 0.0
                if self.cone == "conditional":
                    moved += float(2 * self.slack[0] * (np.abs(slope) + 1.0).sum())
            total += float(terms.sum())
            rounding += UNITS_PER_TERM * UNIT * float(weight.sum())
        result = total - rounding - moved
        if not abs(result) < math.inf:
            raise CertificateError("The bound is not a finite number.")
        return max(0.0, result)

    def _conjugate_terms(self, A: Array, Z: Array) -> tuple[Array, Array, Array]:
        """``-phi*(w)`` entrywise, the size of what was summed in it, and the derivative of phi*."""
        W = Z - self._floor(A)
        Z = np.maximum(Z, 0.0)
        if self.loss == "kl":
            log_A, log_Z = _log(A), _log(Z)
            return A * log_A - A + Z - Z * log_Z, np.abs(A * log_A) + A + Z + np.abs(Z * log_Z), log_Z
        u = 0.5 * (A + np.sqrt(2.0 * Z))  # Z < 0 only under the constraint X >= log(A/2), where u stays A/2
        log_u = np.where((Z == 0) & (A > 0), _log(A) - math.log(2.0), _log(u))  # A/2 may underflow
        terms = (u - A) ** 2 - W * log_u
        return terms, (np.abs(W) + A * A) * (np.abs(log_u) + 1.0) + (u - A) ** 2, log_u


def _log(values: Array) -> Array:
    """Logarithm with log 0 read as 0, for products ``0 log 0``."""
    return np.asarray(np.log(np.where(values > 0, values, 1.0)))
