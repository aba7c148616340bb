"""Certificates and their check: numpy and scipy only, no other module of this package.

One module per form of problem holds its statement and says what its witness proves; `statement` is what they have in common,
`losses` how a loss enters a proof, `data` what the check accepts, `rounding` what makes the proofs safe.
"""

from cvxnmf.certificates.certificate import NEGLIGIBLE, Certificate, parse_statement, relative_gap
from cvxnmf.certificates.doubly_nonnegative import DoublyNonnegativeStatement
from cvxnmf.certificates.grouped import GroupedStatement
from cvxnmf.certificates.labels import LabelStatement
from cvxnmf.certificates.nonsymmetric import NonsymmetricStatement
from cvxnmf.certificates.rank import RankStatement
from cvxnmf.certificates.statement import CertificateError, Proof, Statement
from cvxnmf.certificates.symmetric import SymmetricStatement, metric_digest
from cvxnmf.certificates.weighted import WeightedRankStatement, weights_digest

__all__ = [
    "NEGLIGIBLE",
    "Certificate",
    "CertificateError",
    "DoublyNonnegativeStatement",
    "GroupedStatement",
    "LabelStatement",
    "NonsymmetricStatement",
    "Proof",
    "RankStatement",
    "Statement",
    "SymmetricStatement",
    "WeightedRankStatement",
    "metric_digest",
    "parse_statement",
    "relative_gap",
    "weights_digest",
]
