"""Bounds for nonsymmetric problems: witnesses made to deceive the check."""

import numpy as np
import pytest

import cvxnmf
from builders import count_table, prove


class TestForgeries:
    """Witnesses made to deceive the check."""

    def refused(self, A, witness, sentence, **statement):
        terms = {"form": "nonsymmetric", "loss": "kl", "penalty": "nuclear", "effects": False, "trace": 1.0} | statement
        with pytest.raises(cvxnmf.CertificateError, match=sentence):
            prove(A, "dual", terms, witness)

    def test_a_dual_point_that_is_too_large(self):
        A = count_table()
        self.refused(A, {"Z": A + 1.0}, "larger than the penalty")

    def test_a_spectral_norm_just_above_the_limit(self):
        A, rng = count_table(), np.random.default_rng(0)
        Y = np.abs(rng.standard_normal(A.shape))
        for excess in (1e-15, 1e-13, 1e-9, 1e-3):
            self.refused(A, {"Z": A + Y * (2.0 * (1 + excess) / np.linalg.norm(Y, 2))}, "larger than the penalty")

    def test_negative_entries_and_wrong_shapes(self):
        A = count_table()
        self.refused(A, {"Z": -A}, "leaves its domain")
        self.refused(A, {"Z": A.T.copy()}, "does not match")
        self.refused(A, {"Z": np.full(A.shape, np.nan)}, "not finite")
        self.refused(A, {}, "lacks its witness")

    def test_margins_that_do_not_match(self):
        A = count_table()
        Z = A.copy()
        Z[0, 0] += 1e-9
        self.refused(A, {"Z": Z}, "margins", effects=True)

    def test_a_penalty_without_weight(self):
        self.refused(count_table(), {"Z": count_table()}, "not understood", trace=0.0)
        self.refused(count_table(), {"Z": count_table()}, "not understood", trace=np.inf)
        self.refused(count_table(), {"Z": count_table()}, "not understood", penalty="paper", effects=True)

    def test_the_papers_witness(self):
        A = count_table()
        ones = {"p": np.ones(12), "q": np.ones(9)}
        self.refused(A, {"Z": A + 2.0, **ones}, "not positive semidefinite", penalty="paper")
        self.refused(A, {"Z": A, "p": np.zeros(12), "q": np.ones(9)}, "not positive", penalty="paper")
        self.refused(A, {"Z": A, "p": np.ones(3), "q": np.ones(9)}, "does not match", penalty="paper")
