"""Certificates and their check: numpy and scipy only, no other module of this package.

One module per form of problem says what its witness proves; `rounding` holds what makes the proofs safe.
"""

from cvxnmf.certificates.certificate import NEGLIGIBLE, Certificate, prove, relative_gap
from cvxnmf.certificates.rounding import CertificateError, Proof

__all__ = ["NEGLIGIBLE", "Certificate", "CertificateError", "Proof", "prove", "relative_gap"]
