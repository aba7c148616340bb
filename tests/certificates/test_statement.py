"""Statements: what they hold, how they are read, and what is refused."""

import json
import re
from pathlib import Path

import pytest

import cvxnmf
from builders import forged
from cvxnmf import certificates
from cvxnmf.certificates import (
    DoublyNonnegativeStatement,
    GroupedStatement,
    LabelStatement,
    NonsymmetricStatement,
    Proof,
    RankStatement,
    Statement,
    SymmetricStatement,
    WeightedRankStatement,
    parse_statement,
    rank,
    weights_digest,
)
from cvxnmf.certificates.certificate import FORMS
from cvxnmf.certificates.losses import is_unbounded_loss
from cvxnmf.certificates.statement import ZERO, Kind

STATEMENTS = [
    SymmetricStatement("kl", "conditional", "fit", 1.5, "degree"),
    SymmetricStatement("mse-paper", "psd", "ignore", 0.0, "own"),
    GroupedStatement("kl", "conditional", "fit", 1.5, "degree", groups=7),
    NonsymmetricStatement("kl", "nuclear", True, 1.0),
    NonsymmetricStatement("kl", "paper", False, 1.0),
    DoublyNonnegativeStatement(0.1, 0.0),
    RankStatement("kl", 3, symmetric=False),
    RankStatement("mse", 3, symmetric=True, scaling="degree"),
    WeightedRankStatement("weighted kl", 3, False, weights_digest([1.0, 2.0])),
    LabelStatement("cpm", 0.5),
]


def name(statement):
    return "-".join(map(str, statement.values()))


@pytest.mark.parametrize("statement", STATEMENTS, ids=name)
def test_a_statement_goes_to_a_file_and_back(statement):
    again = parse_statement(json.loads(json.dumps(dict(statement))))
    assert type(again) is type(statement)
    assert again == statement


def test_every_form_is_tried():
    assert {type(statement) for statement in STATEMENTS} == set(FORMS)


@pytest.mark.parametrize("statement", STATEMENTS, ids=name)
def test_a_statement_lacks_no_term_and_has_no_other(statement):
    optional = {"scaling", "groups", "weights"}  # certificates of earlier versions do not name the weights
    for term in set(statement) - optional:
        with pytest.raises(cvxnmf.CertificateError, match="not understood"):
            parse_statement({key: value for key, value in statement.items() if key != term})
    with pytest.raises(cvxnmf.CertificateError, match="not understood"):
        parse_statement({**statement, "weights": "own"})


@pytest.mark.parametrize("statement", STATEMENTS, ids=name)
@pytest.mark.parametrize("wrong", [None, [], "another", -1.0, float("nan"), float("inf"), 1e200, {"a": 1}])
def test_terms_of_another_type_or_value_are_refused(statement, wrong):
    for term in set(statement) - {"scaling"}:
        with pytest.raises(cvxnmf.CertificateError):
            parse_statement({**statement, term: wrong})


@pytest.mark.parametrize("terms", [{}, None, [], "symmetric", {"form": "cubic"}, {"form": ["rank"]}, {1: 2}])
def test_what_is_no_statement_is_refused(terms):
    with pytest.raises(cvxnmf.CertificateError, match="not understood"):
        parse_statement(terms)


def test_terms_that_do_not_go_together_are_refused():
    for make in (
        lambda: RankStatement("kl", 3, symmetric=True, scaling="degree"),
        lambda: RankStatement("mse", 3, symmetric=False, scaling="degree"),
        lambda: RankStatement("mse", True, symmetric=False),
        lambda: RankStatement("mse-paper", 3, symmetric=False),
        lambda: NonsymmetricStatement("mse", "paper", False, 1.0),
        lambda: NonsymmetricStatement("kl", "nuclear", True, 0.0),
        lambda: DoublyNonnegativeStatement(True, 0.0),
    ):
        with pytest.raises(cvxnmf.CertificateError, match="not understood"):
            make()
    with pytest.raises(cvxnmf.CertificateError, match="Groups of nodes"):
        GroupedStatement("mse", "conditional", "fit", 1.0, "degree", groups=3)


def test_a_statement_reads_like_a_dictionary():
    statement = RankStatement("mse", 3, symmetric=False)
    assert statement["loss"] == "mse"
    assert statement.get("scaling") is None
    assert "scaling" not in statement
    assert {**statement} == {"form": "rank", "loss": "mse", "n_components": 3, "symmetric": False} == statement
    with pytest.raises(AttributeError):
        statement.loss = "kl"


@pytest.mark.parametrize("statement", STATEMENTS, ids=name)
def test_every_kind_of_bound_is_named_where_people_look(statement):
    page = (Path(__file__).parents[2] / "docs" / "certificates.md").read_text(encoding="utf8")
    assert [kind for kind in statement.kinds if f'``"{kind}"``' not in cvxnmf.Certificate.__doc__] == []
    assert [kind for kind in statement.kinds if f'`"{kind}"`' not in page] == []


def test_every_module_is_listed():
    modules = {path.stem for path in Path(certificates.__path__[0]).glob("*.py")} - {"__init__"}
    assert [name for name in modules if not re.search(rf"^    (\w+, )?{name}\b", certificates.__doc__, re.MULTILINE)] == []


@pytest.mark.parametrize("statement", STATEMENTS, ids=name)
def test_every_kind_of_bound_says_what_it_rests_on(statement):
    assert statement.sense == "max" or set(statement.kinds) & {"dual", "rectangles"}
    assert all(statement.explain(kind) for kind in statement.kinds)
    with pytest.raises(cvxnmf.CertificateError, match="kind 'guess'"):
        Statement.prove(statement, [[1.0]], "guess", {})


def test_a_certificate_takes_its_statement_as_a_dictionary(karate):
    certificate = cvxnmf.solve(cvxnmf.symmetric(karate, trace="auto")).certificate
    again = forged(certificate, statement=dict(certificate.statement))
    assert again.digest == certificate.digest
    assert isinstance(again.statement, SymmetricStatement)
    with pytest.raises(cvxnmf.CertificateError, match="not understood"):
        forged(certificate, statement={"form": "symmetric"})


def test_a_bound_for_another_loss_is_an_entry_of_the_table(monkeypatch):
    known, one = (
        RankStatement("itakura-saito", 2, symmetric=False),
        Kind("a test", lambda A, statement, witness: Proof(0.5, True, 1.0)),
    )
    assert known.explain("zero").startswith("no bound for this loss is known")
    monkeypatch.setitem(rank.KINDS, "itakura-saito", ZERO | {"one": one})
    assert known.prove([[1.0]], "one", {}).bound == 0.5
    assert (known.explain("one"), known.explain("zero")[:21]) == ("a test", "nothing better than 0")
    for other in ("beta=0.5", "weighted itakura-saito", "kl"):
        with pytest.raises(cvxnmf.CertificateError, match="kind 'one' cannot be checked"):
            RankStatement(other, 2, symmetric=False).prove([[1.0]], "one", {})


def test_losses_without_a_bound():
    known = {"itakura-saito": True, "beta=0.5": True, "beta=x": False, "beta=inf": False, "kl": False, "weighted kl": True}
    assert {name: is_unbounded_loss(name) for name in known} == known
    assert not is_unbounded_loss(3)
    assert is_unbounded_loss("weighted itakura-saito")
    assert not is_unbounded_loss("weighted other")
