"""Bounds for the doubly nonnegative problem: witnesses made to deceive the check."""

import numpy as np
import pytest

import cvxnmf
from builders import prove, random_graph


class TestForgeries:
    """Witnesses made to deceive the check."""

    A = random_graph(6, 0)

    def refused(self, witness, sentence, **statement):
        terms = {"form": "doubly-nonnegative", "l1": 0.0, "trace": 0.0} | statement
        with pytest.raises(cvxnmf.CertificateError, match=sentence):
            prove(self.A, "dual", terms, witness)

    def test_forged_parts(self):
        zero, one = np.zeros((6, 6)), np.eye(6)
        self.refused({"S": -one, "N": zero}, "not positive semidefinite")
        self.refused({"S": one, "N": -one}, "negative entry")
        self.refused({"S": np.triu(np.ones((6, 6))), "N": zero}, "not symmetric")
        self.refused({"S": one[:5, :5], "N": zero}, "does not match")
        self.refused({"S": np.full((6, 6), np.inf), "N": zero}, "not finite")
        self.refused({"S": one}, "lacks its witness")
        self.refused({"S": one, "N": zero}, "not understood", l1=-1.0)
        self.refused({"S": one, "N": zero}, "not understood", trace=np.nan)

    def test_a_smallest_eigenvalue_of_rounding(self):
        rng = np.random.default_rng(0)
        Q, _ = np.linalg.qr(rng.standard_normal((6, 6)))
        for lowest in (-1e-14, -1e-16):
            S = (Q * np.array([lowest, 1, 2, 3, 4, 5])) @ Q.T
            self.refused({"S": (S + S.T) / 2, "N": np.zeros((6, 6))}, "not positive semidefinite")
