"""The certificate: what it states, how it is kept in a file, and its check."""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from cvxnmf.certificates.doubly_nonnegative import DoublyNonnegativeStatement
from cvxnmf.certificates.grouped import GroupedStatement
from cvxnmf.certificates.labels import LabelStatement
from cvxnmf.certificates.nonsymmetric import NonsymmetricStatement
from cvxnmf.certificates.rank import RankStatement
from cvxnmf.certificates.statement import CertificateError, Proof, Statement, Witness, not_understood
from cvxnmf.certificates.symmetric import SymmetricStatement
from cvxnmf.certificates.weighted import WeightedRankStatement, weights_digest
from cvxnmf.certificates.whole_files import whole_file

#: The forms of problems that bounds are known for.
FORMS: tuple[type[Statement], ...] = (
    SymmetricStatement,
    GroupedStatement,
    NonsymmetricStatement,
    DoublyNonnegativeStatement,
    RankStatement,
    WeightedRankStatement,
    LabelStatement,
)
#: What a file unpacks to may take this many bytes of memory, or this many times its own size.
MODEST, EXPANSION = 1 << 29, 100
#: Values below this share of the data's scale count as zero in a relative gap.
NEGLIGIBLE = 1e-9


def parse_statement(terms: object) -> Statement:
    """Read a statement from the dictionary that a file holds; the class is the one with this form and these very terms."""
    if isinstance(terms, Statement):
        return terms
    if isinstance(terms, Mapping):
        form, rest = terms.get("form"), {name: value for name, value in terms.items() if name != "form"}
        for statement in FORMS:
            if isinstance(form, str) and form == statement.form and statement.has_terms(set(rest)):
                return statement(**rest)
    raise not_understood()


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
        this rank is; ``"labels"``: no partition of the nodes has a higher quality.
    kind : str
        What the bound rests on: ``"dual"`` (a dual point is the witness), ``"zero"`` (the loss cannot be negative), and of
        scope "rank-k" also ``"tail"`` (singular values of the data), ``"lanczos"`` (the same by iterations, of large data),
        ``"rectangles"`` (missing entries or weights) and for KL ``"independence"`` (rank one), ``"ky-fan"``, ``"subspace"`` and
        ``"pinsker"``; of scope "labels" ``"cuts"``, ``"semidefinite"``, ``"routing"``, ``"currents"``.
    rigorous : bool
        Whether the bound holds including all rounding errors. It may not with an ignored diagonal on the
        conditional cone, when entries of the dual point are as small as rounding.
    probable : bool
        Whether a bound that is not rigorous holds with a probability of at least 1 - 1e-12 over the random start of its
        iterations, up to rounding. The SHA-256 of the data seeds the start, so that the same data give the same bound.
    trust : str
        The three levels in a word: ``"proved"`` (rigorous), ``"probable"``, or ``"unproved"``.
    restored : bool
        Whether the point lay outside the cone and was projected first.
    scale : float
        Size of the data, for the relative gap of vanishing values.
    statement : Statement
        The problem the bound is about: its form ("symmetric", "nonsymmetric", "doubly-nonnegative", "rank" or "labels") and
        its terms; reads like a dictionary, and may be given as one.
    witness : mapping of arrays
        The dual point, on the nodes that carry data: ``Z`` and the metric; ``Z`` (and ``p``, ``q`` for the paper's penalty) for
        nonsymmetric problems; ``S`` and ``N`` for doubly nonnegative ones. Of scope "labels" the labels themselves are part of
        it.
    digest : str
        SHA-256 over everything above.

    Examples
    --------
    >>> import cvxnmf
    >>> A, _ = cvxnmf.block_graph(20, 0.1, 0.9)
    >>> certificate = cvxnmf.solve(cvxnmf.symmetric(A)).certificate
    >>> certificate.scope, certificate.relative_gap < 1e-5, certificate.check(A) == certificate.bound
    ('model', True, True)
    """

    value: float
    bound: float
    scope: str
    kind: str
    rigorous: bool
    restored: bool
    scale: float
    statement: Statement = field(repr=False)
    witness: Witness = field(repr=False)
    digest: str = field(default="", repr=False)
    probable: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "statement", parse_statement(self.statement))
        if not self.digest:
            object.__setattr__(self, "digest", self._compute_digest())

    @classmethod
    def of_proof(
        cls, value: float, kind: str, proof: Proof, statement: Statement, witness: Witness | None = None, restored: bool = False
    ) -> Certificate:
        """The certificate of a value and what is proved about it; a bound beyond the value by rounding is set to it."""
        best = min if statement.sense == "min" else max
        bound, witness = best(proof.bound, value), {} if witness is None else witness
        facts = (statement.scope, kind, proof.rigorous, restored, proof.scale)
        return cls(value, bound, *facts, statement, witness, probable=proof.probable)

    def facts(self) -> dict[str, Any]:
        """All facts of a certificate but the arrays of its witness and its digest, as JSON keeps them."""
        names = ("value", "bound", "scope", "kind", "rigorous", "restored", "scale")
        level = {"probable": True} if self.probable else {}  # left out of files of earlier versions
        return {name: getattr(self, name) for name in names} | level | {"statement": dict(self.statement)}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any], witness: Witness) -> Certificate:
        """Read a certificate from its facts, its digest among them, and its arrays."""
        numbers: dict[str, Any] = {name: float(facts[name]) for name in ("value", "bound", "scale")}
        if not all(isinstance(facts[name], kind) for name, kind in FACTS.items()) or facts.get("probable") not in (None, True):
            raise CertificateError("The certificate holds entries of another type than it should.")
        return cls(**dict(facts) | numbers, witness=witness)

    def _compute_digest(self) -> str:
        seal = hashlib.sha256(json.dumps(self.facts(), sort_keys=True, default=str).encode())
        for name in sorted(self.witness):
            array = np.ascontiguousarray(self.witness[name])
            seal.update(f"{name} {array.dtype.str} {array.shape}".encode())
            seal.update(array.data if array.dtype.kind == "f" else repr(array).encode())
        return seal.hexdigest()

    @property
    def sense(self) -> str:
        """``"min"`` if lower values are better, and the bound is below; ``"max"`` if higher ones are, and it is above."""
        return self.statement.sense

    @property
    def trust(self) -> str:
        """How far the bound can be relied on: "proved", "probable" or "unproved"."""
        return "proved" if self.rigorous else "probable" if self.probable else "unproved"

    @property
    def gap(self) -> float:
        """Distance of value and bound, never negative."""
        return self.value - self.bound if self.sense == "min" else self.bound - self.value

    @property
    def relative_gap(self) -> float:
        """Gap over the size of the value (over a billionth of the data's scale, if that is known, where the value vanishes)."""
        scale = self.scale if self.statement.has_scale else 0.0
        if self.sense == "min":
            return relative_gap(self.value, self.bound, scale)
        return self.gap / max(abs(self.value), NEGLIGIBLE * scale, np.finfo(np.float64).tiny)

    @property
    def explanation(self) -> str:
        """What the bound rests on, or why there is none better than 0."""
        return self.statement.explain(self.kind)

    def __str__(self) -> str:
        """Value, bound and gap of the certificate in a few words."""
        rigour = {"proved": "", "probable": ", probable", "unproved": ", not rigorous"}[self.trust]
        about = " (after projection on the cone)" if self.restored else " (of the loss with weights)" if self._weights else ""
        return (
            f"  value        {self.value:.8g}{about}\n"
            f"  proved bound {self.bound:.8g}   (relative gap {self.relative_gap:.1e}{rigour}; {self.explanation})"
        )

    @property
    def _weights(self) -> str | None:
        """The digest of the weights of the certificate's loss, if it has any."""
        return self.statement.weights if isinstance(self.statement, WeightedRankStatement) else None

    def _repr_html_(self) -> str:
        from cvxnmf.display.cards import certificate_card

        return certificate_card(self)

    def check(self, A: Any, weights: Any = None) -> float:
        """Recompute the bound from the data and the witness alone.

        Parameters
        ----------
        A : array-like or scipy.sparse matrix of shape (m, n), or its rows in pieces
            The data the certificate was made for. Memory-mapped files and dask arrays are read in row chunks where the
            witness is not as large as they are. Of models whose nodes share positions in groups, the rows of the graph may come
            as a series of sparse matrices, from the first rows to the last, which are looked at one at a time.
        weights : array-like, optional
            Of a loss with weights those that you believe in, of every row or of every entry, as they were given for it: other
            ones are refused. Left out, the bound is about the weights that the certificate brings along.

        Returns
        -------
        float
            The bound, proved anew.

        Raises
        ------
        CertificateError
            If the witness does not prove the stated bound for these data.
        """
        if self.digest != self._compute_digest():
            raise CertificateError("The certificate was altered after it was made: its digest does not match.")
        if weights is not None and weights_digest(weights) != self._weights:
            loss = "other weights than these" if self._weights else "a loss without weights; leave them out"
            raise CertificateError(f"The certificate is about {loss}.")
        try:
            proof = self.statement.prove(A, self.kind, self.witness)
        except CertificateError as error:
            raise CertificateError(f"The certificate does not hold for these data. {error}") from None
        proved = proof.estimate if proof.probable and self.trust == "unproved" else proof.bound
        beyond = (self.bound - proved) * (1 if self.sense == "min" else -1)  # how much more is stated than proved
        lowest = -math.inf if proof.probable else -1e-11 * max(proof.scale, abs(proof.bound))
        if not lowest <= beyond <= proof.spare:
            raise CertificateError(
                f"The witness proves the bound {proof.bound:.12g}, not the stated {self.bound:.12g}; "
                "the certificate was altered or belongs to other data."
            )
        if not math.isclose(self.scale, proof.scale, rel_tol=1e-9):
            raise CertificateError(f"The stated scale {self.scale:.12g} is not that of these data, {proof.scale:.12g}.")
        if self.rigorous and not proof.rigorous:
            raise CertificateError("The certificate states a rigorous bound, but its witness is not rigorous.")
        if self.probable and not (proof.probable or proof.rigorous):
            raise CertificateError("The certificate states a probable bound, but its witness gives no probability.")
        if proof.value is not None and not math.isclose(self.value, proof.value, rel_tol=1e-9, abs_tol=1e-11 * proof.scale):
            raise CertificateError(f"The stated value {self.value:.12g} is not that of the witness, {proof.value:.12g}.")
        if not self.gap >= 0:
            verb = "exceeds" if self.sense == "min" else "is below"
            raise CertificateError(f"The stated bound {self.bound:.12g} {verb} the stated value {self.value:.12g}.")
        if self.scope != self.statement.scope:
            raise CertificateError(f"A witness of this kind cannot prove anything of scope {self.scope!r}.")
        return min(proof.bound, self.bound) if self.sense == "min" else max(proof.bound, self.bound)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the certificate to one file of numpy's npz format: arrays, and JSON for the rest; no pickle.

        The witness is a dense matrix of the size of the data.
        """
        if not isinstance(path, str | PathLike):
            raise CertificateError(f"A path is needed to save a certificate, not of type {type(path).__name__}.")
        meta = self.facts() | {"digest": self.digest}
        text = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
        with whole_file(path) as name, open(name, "wb") as file:
            arrays: dict[str, Any] = {"meta": text, **self.witness}
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Certificate:
        """Read a certificate written by :meth:`save`."""
        if not isinstance(path, str | PathLike):
            raise CertificateError(f"A path is needed to load a certificate, not of type {type(path).__name__}.")
        with open(path, "rb") as stream:
            try:
                with zipfile.ZipFile(stream) as archive:  # sizes first: a small file may unpack to anything
                    needed, held = sum(member.file_size for member in archive.infolist()), os.fstat(stream.fileno()).st_size
                if needed > max(MODEST, EXPANSION * held):
                    raise CertificateError(
                        f"{path} announces {needed / 2**30:,.1f} GiB in {held:,} bytes; it is damaged or forged."
                    )
                with np.load(stream, allow_pickle=False) as file:
                    arrays = {name: file[name] for name in file.files}
                return cls.from_facts(json.loads(bytes(arrays.pop("meta")).decode()), arrays)
            except CertificateError:
                raise
            except Exception as error:  # a file can be damaged or forged in any way
                raise CertificateError(f"{path} is not a certificate file written by Certificate.save.") from error


#: Types of the other entries of a file.
FACTS = {"scope": str, "kind": str, "rigorous": bool, "restored": bool, "digest": str}


def relative_gap(value: float, bound: float, scale: float) -> float:
    """Relative gap of a certificate: over the value, or over the least value that counts for data of this scale."""
    if value == math.inf:
        return math.inf
    return (value - bound) / max(value, NEGLIGIBLE * scale, np.finfo(np.float64).tiny)
