"""Certificates and forgeries of every form whose verdicts are known: from exact arithmetic, or because they must be refused.

`make_cases` uses the whole library and the exact twin; `verdicts` only the trusted kernel, so that a mutant of it is judged fast.
"""

import dataclasses
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

getcontext().prec = 50
FACTS = ("value", "bound", "scope", "kind", "rigorous", "restored", "scale", "probable")


@dataclasses.dataclass
class Case:
    """Data, the contents of a certificate, and the bound of exact arithmetic as digits; None if it must be refused."""

    name: str
    A: object
    facts: dict
    statement: dict
    witness: dict
    exact: str | None
    margin: float = 0.0
    lost: float = 0.0
    seal: bool = True

    @property
    def sign(self):
        """1 if the bound is below the value, -1 if it is above."""
        return -1 if self.statement["form"] == "labels" else 1


def make_cases(kinds_wanted=100, last_seed=400):
    """Honest certificates of every form, and forgeries of each."""
    from campaigns import exact
    from campaigns.cases import random_certificate

    cases, seed, kinds = [], 0, {}
    while len(kinds) < kinds_wanted and seed < last_seed:
        seed += 1
        found = random_certificate(np.random.default_rng(seed))
        if found is None or found[1].trust == "unproved":
            continue
        A, certificate = found
        terms = dict(certificate.statement).values()
        kind = (certificate.kind, *(str(value > 0 if isinstance(value, float) else value) for value in terms))
        if kinds.get(kind, 0) >= 2 or (certificate.kind == "zero" and len(kinds) > 10):
            continue
        kinds[kind] = kinds.get(kind, 0) + 1
        proof = certificate.statement.prove(A, certificate.kind, certificate.witness)
        bound = exact.exact_bound(A, certificate.statement, certificate.kind, certificate.witness)
        digits = _digits(bound if certificate.sense == "max" else max(0, bound))
        case = _case(f"{seed} {'/'.join(kind)}", A, certificate, digits, proof.spare)
        case.lost = case.sign * float(Decimal(digits) - Decimal(proof.bound))
        if case.lost > 1e-9 * max(certificate.scale, proof.bound):
            assert certificate.kind in ("routing", "lanczos", "ky-fan"), (
                case.name
            )  # trees that are not unique, and spaces that may miss much
            continue
        cases.append(case)
    return [*cases, *(forgery for case in _one_of_each(cases) for forgery in forgeries(case))]


def _one_of_each(cases):
    """One certificate of every form and kind, loss and cone, or objective."""
    names = ("loss", "cone", "penalty", "effects", "symmetric", "objective", "groups")
    found = {
        (case.statement["form"], case.facts["kind"], *(str(case.statement.get(name)) for name in names)): case for case in cases
    }
    return [case for case in found.values() if not sp.issparse(case.A)]


def _digits(number):
    """A number of 60 digits or a fraction as digits."""
    import mpmath as mp

    return str(Decimal(number.numerator) / number.denominator) if isinstance(number, Fraction) else mp.nstr(mp.mpf(number), 40)


def _case(name, A, certificate, bound, margin):
    facts = {fact: getattr(certificate, fact) for fact in FACTS}
    return Case(name, A, facts, dict(certificate.statement), dict(certificate.witness), bound, margin)


def forgeries(case):
    """What a check must refuse, whatever the certificate."""

    def forge(why, A=None, seal=True, statement=None, witness=None, **facts):
        data = case.A if A is None else A
        return dataclasses.replace(
            case,
            name=f"{case.name}: {why}",
            A=data,
            facts=case.facts | facts,
            statement=case.statement | (statement or {}),
            witness=case.witness if witness is None else witness,
            exact=None,
            seal=seal,
        )

    bound, scale, margin, sign = case.facts["bound"], case.facts["scale"], case.margin, case.sign
    row = np.full((1, case.A.shape[1]), 1.0 + np.nanmax(case.A))
    beyond = bound + sign * 4 * max(margin, 1e-13 * scale)
    yield forge("more than is proved", bound=beyond, value=max(beyond, case.facts["value"]) if sign > 0 else case.facts["value"])
    if case.facts["rigorous"]:
        yield forge("less than is proved", bound=bound - sign * 1e-8 * max(scale, abs(bound)))
    yield forge("value beyond the bound", value=bound - sign * 1e-8 * max(scale, abs(bound)))
    yield forge("value is NaN", value=float("nan"))
    yield forge("scale doubled", scale=2 * scale)
    yield forge("scale moved", scale=scale * (1 + 1e-8))
    yield forge("other scope", scope="rank-k" if sign < 0 else "labels")
    yield forge("unknown kind", kind="hearsay")
    yield forge("not sealed", seal=False, value=case.facts["value"] + 1.0)
    if case.statement.get("objective") != "correlation":
        yield forge("negative data", A=np.where(np.arange(case.A.size).reshape(case.A.shape) == 0, -1.0, case.A))
    yield forge("infinite data", A=np.where(np.arange(case.A.size).reshape(case.A.shape) == 1, np.inf, case.A))
    yield forge("complex data", A=case.A * 1j)
    yield forge("masked data", A=np.ma.masked_array(case.A, case.A > 1e300))
    yield forge("a vector", A=case.A.ravel())
    yield forge("nothing", A=np.zeros((0, 0)))
    yield forge("huge data", A=case.A * 1e200)
    yield forge("tiny data", A=case.A * 1e-200)
    yield forge("a row more", A=np.vstack([case.A, row]))
    yield forge("sparse data of a row more", A=sp.csr_array(np.vstack([np.nan_to_num(case.A), row])))
    yield from _forged_statements(case, forge)
    if case.facts["kind"] == "dual" or sign < 0:
        yield from _forged_witnesses(case, forge)


def _forged_statements(case, forge):
    for name, value in case.statement.items():
        yield forge(f"{name} is nonsense", statement={name: "nonsense"})
        yield forge(f"{name} is an array", statement={name: np.ones(2)})
        if isinstance(value, float):
            yield forge(f"{name} is negative", statement={name: -1.0})
            yield forge(f"{name} is infinite", statement={name: float("inf")})
            yield forge(f"{name} is NaN", statement={name: float("nan")})
        if isinstance(value, int) and not isinstance(value, bool):
            yield forge(f"{name} is 0", statement={name: 0})
            yield forge(f"{name} is True", statement={name: True})
    yield forge("a term too many", statement={"colour": "red"})


def _forged_witnesses(case, forge):
    for name, part in ((name, part) for name, part in case.witness.items() if part.size):
        rest = {other: array for other, array in case.witness.items() if other != name}
        yield forge(f"without {name}", witness=rest) if name not in ("N",) or "S" in rest else forge("x", kind="x")
        for what, array in (
            ("whole numbers", part.astype(int)),
            ("infinite", np.where(np.arange(part.size).reshape(part.shape) == 0, np.inf, part)),
            ("NaN", np.where(np.arange(part.size).reshape(part.shape) == 0, np.nan, part)),
            *([("a row less", part[:-1])] if part.ndim and name != "lengths" else []),
            ("a dimension more", part[None]),
            *([] if case.sign < 0 else [("negative", -part - 1.0)]),
        ):
            yield forge(f"{name} {what}", witness=rest | {name: array})
    if "Z" in case.witness:
        Z = np.array(case.witness["Z"])
        moved = Z.copy()
        moved[0, -1] += 1e-3 * (1 + abs(Z).max())
        yield forge("Z not symmetric or of other sums", witness=dict(case.witness) | {"Z": moved})
    if "metric" in case.witness and case.statement.get("metric") != "own":
        yield forge("another metric", witness=dict(case.witness) | {"metric": case.witness["metric"] * (1 + 1e-11)})


def verdicts(cases):
    """Names of the cases on which the kernel is wrong: a bound that is not proved, a forgery accepted, an honest one refused."""
    from cvxnmf.certificates import Certificate, CertificateError, parse_statement

    for case in cases:
        try:
            certificate = Certificate(**case.facts, statement=parse_statement(case.statement), witness=case.witness)
            if not case.seal:
                object.__setattr__(certificate, "digest", "0" * 64)
            proof = certificate.statement.prove(case.A, certificate.kind, certificate.witness)
            certificate.check(case.A)
        except CertificateError:
            if case.exact is not None:
                yield f"refused: {case.name}"
            continue
        except Exception as error:
            yield f"{type(error).__name__}: {case.name}"
            continue
        if case.exact is None:
            yield f"accepted: {case.name}"
        else:
            yield from _wrong_proofs(case, proof)


def _wrong_proofs(case, proof):
    """What is wrong with the proof of an honest certificate: it claims too much, or gives away far more than rounding."""
    lost = case.sign * (Decimal(case.exact) - Decimal(proof.bound))
    nearest = case.sign < 0 and proof.bound == float(
        Decimal(case.exact)
    )  # a quality that is met is rounded to the nearest number
    if lost < Decimal(proof.spare) and not nearest:
        yield f"too much: {case.name}"
    if lost > Decimal(2 * abs(case.lost) + case.margin):
        yield f"too little: {case.name}"
    if not case.margin / 1.5 <= proof.spare <= 1.5 * case.margin:
        yield f"another margin: {case.name}"
    if (proof.rigorous, proof.probable) != (case.facts["rigorous"], case.facts["probable"]):
        yield f"another level: {case.name}"
