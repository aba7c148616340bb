"""The certificate: what it states, how it is kept, and its check."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from types import ModuleType
from typing import Any

import numpy as np

from cvxnmf.certificates import coarse, doubly_nonnegative, nonsymmetric, rank, symmetric
from cvxnmf.certificates.rounding import Array, CertificateError, Proof, safe_bound

#: What reading a file that is not a certificate may raise.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, EOFError, OSError, RuntimeError)
#: Values below this share of the data's scale count as zero in a relative gap.
NEGLIGIBLE = 1e-9
#: Who proves what: each module has a scope, ``scale(A, statement)`` and for every kind of bound ``prove(A, statement, witness)``.
FORMS: dict[str, ModuleType] = {
    "symmetric": symmetric,
    "nonsymmetric": nonsymmetric,
    "doubly-nonnegative": doubly_nonnegative,
    "rank": rank,
}
#: What the kinds of bounds rest on.
KINDS = {
    "zero": "the loss cannot be negative",
    "dual": "a dual point",
    "tail": "the singular values that no matrix of this rank can have",
    "lanczos": "singular values found by Lanczos iterations, which might miss one",
    "independence": "the best model of rank one is the product of the margins",
}


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
        ``"model"``: no admissible point of the stated problem is lower; ``"rank-k"``: no nonnegative factorisation of
        this rank is.
    kind : str
        What the bound rests on: ``"dual"`` (a dual point is the witness), ``"zero"`` (the loss cannot be negative), and of
        scope "rank-k" also ``"tail"`` (singular values of the data), ``"lanczos"`` (the same, not rigorous) and
        ``"independence"`` (KL of rank one).
    rigorous : bool
        Whether the bound holds including all rounding errors. It may not with an ignored diagonal on the
        conditional cone, when entries of the dual point are as small as rounding.
    restored : bool
        Whether the point lay outside the cone and was projected first.
    scale : float
        Size of the data, for the relative gap of vanishing values.
    statement : mapping
        The problem the bound is about: its form ("symmetric", "nonsymmetric" or "doubly-nonnegative") and its terms.
    witness : mapping of arrays
        The dual point, on the nodes that carry data: ``Z`` and the metric; ``Z`` (and ``p``, ``q`` for the paper's penalty) for
        nonsymmetric problems; ``S`` and ``N`` for doubly nonnegative ones.
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

    @property
    def explanation(self) -> str:
        """What the bound rests on, or why there is none better than 0."""
        if self.kind == "zero" and self.scope == "rank-k":
            if self.statement.get("loss") == "kl":
                return "for KL of a rank above one no bound better than 0 is known"
            return "nothing better than 0 is known: the rank reaches a side of the data, or of their fully observed part"
        groups = self.statement.get("groups")
        return KINDS.get(self.kind, self.kind) + (f", for positions that nodes share in {groups:,} groups" if groups else "")

    def __str__(self) -> str:
        """Value, bound and gap in a few words."""
        rigour = "" if self.rigorous else ", not rigorous"
        return (
            f"  value        {self.value:.8g}{' (after projection on the cone)' if self.restored else ''}\n"
            f"  proved bound {self.bound:.8g}   (relative gap {self.relative_gap:.1e}{rigour}; {self.explanation})"
        )

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        from cvxnmf.display.cards import certificate_card

        return certificate_card(self)

    def check(self, A: Any) -> float:
        """Recompute the bound from the data and the witness alone.

        Parameters
        ----------
        A : array-like or scipy.sparse matrix of shape (m, n)
            The data the certificate was made for. Memory-mapped files and dask arrays are looked at piece by piece where the
            witness is not as large as they are.

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
        if not math.isclose(self.scale, proof.scale, rel_tol=1e-9):
            raise CertificateError(f"The stated scale {self.scale:.12g} is not that of these data, {proof.scale:.12g}.")
        if self.rigorous and not proof.rigorous:
            raise CertificateError("The certificate states a rigorous bound, but its witness is not rigorous.")
        if not self.bound <= self.value:
            raise CertificateError(f"The stated bound {self.bound:.12g} exceeds the stated value {self.value:.12g}.")
        if self.scope != FORMS[self.statement.get("form", "symmetric")].SCOPE:
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
        except (*UNREADABLE, zipfile.BadZipFile, zlib.error) as error:
            raise CertificateError(f"{path} is not a certificate file written by Certificate.save.") from error


def relative_gap(value: float, bound: float, scale: float) -> float:
    """Gap over the value, or over the least value that counts for data of this scale."""
    if value == math.inf:
        return math.inf
    return (value - bound) / max(value, NEGLIGIBLE * scale, np.finfo(np.float64).tiny)


def prove(A: Any, kind: str, statement: Mapping[str, Any], witness: Mapping[str, Array]) -> Proof:
    """Return the bound that `witness` proves for `A`, or raise CertificateError."""
    form = statement.get("form", "symmetric") if isinstance(statement, Mapping) else None
    if not isinstance(form, str) or form not in FORMS:
        raise CertificateError("The certificate's statement of the problem is not understood.")
    if "groups" in statement:
        return _prove_grouped(A, kind, statement, witness)
    room = FORMS[form]
    with np.errstate(all="ignore"):  # every test fails on what is not finite
        if kind == "zero":
            return Proof(0.0, True, room.scale(A, statement))
        if kind not in room.KINDS:
            raise CertificateError(f"Certificates of kind {kind!r} cannot be checked here.")
        proof: Proof = room.KINDS[kind](A, statement, witness)
        return proof


def _prove_grouped(A: Any, kind: str, statement: Mapping[str, Any], witness: Mapping[str, Array]) -> Proof:
    """The bound of the sums of the data over groups, and the constant that makes it one of the data."""
    with np.errstate(all="ignore"):
        sums = coarse.summed(A, statement, witness)
    proof = prove(sums.A, kind, sums.statement, sums.witness)
    bound = safe_bound(proof.bound + sums.constant, sums.lost)
    return Proof(bound, proof.rigorous and sums.exact, proof.scale)
