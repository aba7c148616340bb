"""Bounds for symmetric problems: weak duality, rounding, and witnesses made to deceive the check."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cvxnmf
import naive
from builders import altered, forged, point_in_cone, prove, random_counts, random_graph

FORMS = [
    {"loss": loss, "cone": cone, **rest}
    for loss in ("kl", "mse", "mse-paper")
    for cone in ("conditional", "psd")
    for rest in ({}, {"trace": 1.5}, {"trace": 1.5, "diagonal": "ignore"}, {"trace": 1.5, "metric": "uniform"})
]
PLAIN = {"form": "symmetric", "loss": "kl", "cone": "psd", "diagonal": "fit", "trace": 0.0, "metric": "uniform"}


def names(form):
    return "-".join(map(str, form.values()))


def bound_of(problem, certificate):
    """The bound by the plain formulas, on the nodes that carry data."""
    kept = problem.kept
    s, A = problem.metric[kept], problem.A[np.ix_(kept, kept)]
    return naive.bound(
        problem.statement.loss, A, certificate.witness["Z"], problem.statement.cone, s, problem.trace, problem.statement.diagonal
    )


@pytest.mark.parametrize("form", FORMS, ids=names)
@given(seed=st.integers(0, 10**6), spread=st.sampled_from([0.05, 0.5, 3.0, 30.0]))
@settings(max_examples=6, deadline=None)
def test_weak_duality(form, seed, spread):
    """The bound made from one point never exceeds the value at another, whatever the points."""
    rng = np.random.default_rng(seed)
    A = random_counts(7, seed) if seed % 2 else random_graph(7, seed)
    problem = cvxnmf.symmetric(A, **form)
    certificate = cvxnmf.certify(problem, point_in_cone(problem, rng, spread))
    assert 0 <= certificate.bound <= certificate.value
    if certificate.kind == "dual":
        assert certificate.bound == pytest.approx(max(0.0, bound_of(problem, certificate)), abs=1e-9 * certificate.scale)
    for other_spread in (0.05, 0.3, 1.0):
        other, _ = problem.components[0].restore(point_in_cone(problem, rng, other_spread))
        assert certificate.bound <= problem.value(other) * (1 + 1e-12)


@pytest.mark.parametrize("form", FORMS, ids=names)
@given(
    X=st.lists(st.floats(-60, 60), min_size=36, max_size=36).map(lambda x: np.array(x).reshape(6, 6)),
    size=st.sampled_from([1e-12, 1.0, 100.0, 1e12]),
)
@settings(max_examples=8, deadline=None)
def test_every_absurd_point_gets_an_honest_certificate(form, X, size):
    problem = cvxnmf.symmetric(random_graph(6, 1, weighted=True), **form)
    certificate = cvxnmf.certify(problem, size * (X + X.T))
    assert 0 <= certificate.bound <= certificate.value
    assert certificate.check(problem.A) == certificate.bound


@pytest.mark.parametrize("form", FORMS, ids=names)
def test_certificates_of_solutions_are_tight_rigorous_and_recomputed(form):
    A = random_counts(10, 5)
    problem = cvxnmf.symmetric(A, **form)
    solution = cvxnmf.solve(problem, tol=1e-6)
    own = solution.certificate
    assert own.relative_gap <= 1e-6
    assert own.rigorous
    assert own.value == pytest.approx(problem.value(solution.X), rel=1e-12)
    assert own.bound == pytest.approx(bound_of(problem, own), abs=1e-9 * own.scale)
    again = cvxnmf.certify(problem, solution.X)
    assert not again.restored
    assert again.relative_gap <= 1e-3  # the gradient at a point is as far off as the root of what its value is
    assert again.value == pytest.approx(own.value, rel=1e-12)


@pytest.mark.parametrize("form", FORMS, ids=names)
@pytest.mark.parametrize("factor", [1 + 1e-6, 0.9, 2.0])
def test_a_witness_changed_in_one_entry_fails(form, factor):
    A = random_counts(8, 3)
    certificate = cvxnmf.solve(cvxnmf.symmetric(A, **form)).certificate
    assert certificate.check(A) == certificate.bound
    pairs = [(0, 1), (7, 5)] if "diagonal" in form else [(0, 1), (7, 5), (2, 2)]
    for i, j in pairs:
        for both in (False, True):
            Z = certificate.witness["Z"].copy()
            Z[i, j] *= factor
            if both:
                Z[j, i] = Z[i, j]
            witness = {**certificate.witness, "Z": Z}
            with pytest.raises(cvxnmf.CertificateError, match="digest"):
                altered(certificate, witness=witness).check(A)
            with pytest.raises(cvxnmf.CertificateError, match=r"does not hold|not the stated"):
                forged(certificate, witness=witness).check(A)


@pytest.mark.parametrize("metric", ["degree", "uniform"])
@pytest.mark.parametrize("factor", [0.9, 1.001, 2.0])
def test_a_named_metric_is_recomputed_from_the_data(karate, metric, factor):
    certificate = cvxnmf.solve(cvxnmf.symmetric(karate, metric=metric, trace=3.0)).certificate
    s = certificate.witness["metric"].copy()
    s[5] *= factor
    with pytest.raises(cvxnmf.CertificateError, match="metric of these data|positive semidefinite"):
        forged(certificate, witness={**certificate.witness, "metric": s}).check(karate)


@pytest.mark.parametrize("shift", [0.0, 1e-13, 1e-9])
def test_the_cholesky_test_never_accepts_an_indefinite_matrix(shift):
    """At the edge of the cone the check may refuse, but it must not accept what lies outside."""
    rng = np.random.default_rng(0)
    A = random_counts(12, 0)
    B = rng.standard_normal((12, 11))
    Y = B @ B.T - shift * np.eye(12)
    Z = Y + A - min(0.0, (Y + A).min())
    lowest = np.linalg.eigvalsh(Z - A)[0]
    witness = {"Z": Z - (lowest + shift) * np.eye(12), "metric": np.ones(12)}
    with pytest.raises(cvxnmf.CertificateError, match="not positive semidefinite|leaves its domain"):
        prove(A, "dual", PLAIN, witness)
    witness["Z"] = witness["Z"] + (shift + 1e-9) * np.eye(12)
    if witness["Z"].min() >= 0:
        assert prove(A, "dual", PLAIN, witness).rigorous


class TestRounding:
    """Bounds and cone membership hold in exact arithmetic, not only in floating point."""

    @staticmethod
    def exact_bound(A, Z, conditional):
        """The KL bound of a witness in 60 digits, its row sums put right on the diagonal."""
        with localcontext() as context:
            context.prec = 60
            a = [[Decimal(x) for x in row] for row in A.tolist()]
            z = [[Decimal(x) for x in row] for row in Z.tolist()]
            if conditional:
                for i, row in enumerate(z):
                    row[i] -= sum(row) - sum(a[i])
            entropy = sum(x * x.ln() - x if x else Decimal(0) for row in a for x in row)
            return entropy - sum(x * x.ln() - x if x else Decimal(0) for row in z for x in row)

    @pytest.mark.parametrize("cone", ["psd", "conditional"])
    def test_the_bound_is_never_above_the_exact_one(self, cone):
        for seed in range(25):
            A = random_counts(6, seed) * 0.1 + 0.01 * random_counts(6, seed + 1)
            problem = cvxnmf.symmetric(A, cone=cone)
            certificate = cvxnmf.solve(problem, tol=1e-3).certificate
            exact = self.exact_bound(problem.A, certificate.witness["Z"], cone == "conditional")
            proved = prove(A, "dual", certificate.statement, certificate.witness).bound
            assert Decimal(proved) <= exact
            assert float(exact) - proved <= 1e-10 * certificate.scale

    def test_what_only_rounding_makes_definite_is_refused(self):
        """GG' with integers G of deficient rank is singular; one ulp less on the diagonal makes it indefinite."""
        n, missed = 30, 0
        A = np.zeros((n, n))
        A[0, 1] = A[1, 0] = 1.0
        for seed in range(60):
            G = np.random.default_rng(seed).integers(0, 2, (n, n - 1)).astype(float)
            Y = G @ G.T
            k = int(np.argmax(np.abs(np.linalg.svd(G.T)[2][-1])))  # z'Yz = 0 for this z, and z_k is not 0
            Y[k, k] = np.nextafter(Y[k, k], 0.0)
            try:
                np.linalg.cholesky(Y)
            except np.linalg.LinAlgError:
                continue
            missed += 1
            with pytest.raises(cvxnmf.CertificateError, match="semidefinite"):
                prove(A, "dual", PLAIN, {"Z": Y + A, "metric": np.ones(n)})
        assert missed > 0

    def test_tiny_entries_with_an_ignored_diagonal_are_not_called_rigorous(self):
        A = np.zeros((6, 6))
        A[:3, :3] = A[3:, 3:] = 1.0
        A[2, 3] = A[3, 2] = 1.0
        problem = cvxnmf.symmetric(A, trace=5.0, diagonal="ignore")
        position = np.array([[-6.0], [-6.0], [-6.0], [6.0], [6.0], [6.0]])
        far = cvxnmf.certify(problem, position @ position.T)
        assert far.kind == "dual"
        assert not far.rigorous
        assert cvxnmf.solve(problem).certificate.rigorous


class TestForgeries:
    """Witnesses made to deceive the check."""

    def refused(self, A, witness, **statement):
        terms = PLAIN | {"metric": "own"} | statement
        with pytest.raises(cvxnmf.CertificateError):
            prove(A, "dual", terms, witness)

    def test_a_penalty_that_overflows(self):
        A = np.array([[1, 1, 1], [1, 0.9, 0.1], [1, 0.1, 0.9]])
        self.refused(A, {"Z": np.ones((3, 3)), "metric": np.array([1e160, 1.0, 1.0])}, trace=1e-3)
        self.refused(A, {"Z": np.ones((3, 3)), "metric": np.ones(3)}, trace=np.inf)
        self.refused(A, {"Z": np.ones((3, 3)), "metric": np.ones(3)}, trace=np.nan)

    @pytest.mark.parametrize("power", [-290, -100, 0, 100, 290])
    def test_a_metric_that_overflows_or_vanishes(self, power):
        A = np.array([[3, 1, 0.1], [1, 3, 0.1], [0.1, 0.1, 3.0]])
        d, s = A.sum(axis=1), np.array([1, 1.0, 30.0]) * 2.0**power
        witness = {"Z": np.outer(d, d) / d.sum(), "metric": s}
        self.refused(A, witness, cone="conditional", trace=0.1 * 2.0 ** (-2 * power))

    def test_a_subnormal_entry(self):
        tiny = 5e-324
        A = np.array([[0.5, tiny], [tiny, 0.5]])
        witness = {"Z": np.array([[1.125, -1], [-1, 1.125]]), "metric": np.ones(2)}
        terms = {
            "form": "symmetric",
            "loss": "mse-paper",
            "cone": "conditional",
            "diagonal": "fit",
            "trace": 0.0,
            "metric": "own",
        }
        assert prove(A, "dual", terms, witness).bound == 0.0

    def test_nan_and_other_types(self):
        A, Z, s = np.eye(3) + 1, np.ones((3, 3)), np.ones(3)
        self.refused(A, {"Z": np.full((3, 3), np.nan), "metric": s})
        self.refused(A, {"Z": Z * 1j, "metric": s})
        self.refused(A, {"Z": Z, "metric": np.array([1.0, np.nan, 1.0])})
        self.refused(A, {"Z": "Z", "metric": s})
        self.refused(A, None)
        for data in (A * 1j, np.ma.masked_greater(A, 1.5), "A", None, [[1.0], [1.0, 2.0]], -A, np.zeros((0, 0))):
            self.refused(data, {"Z": Z, "metric": s})
        for statement in ({"trace": None}, {"trace": -5.0}, {"diagonal": "drop"}, {"loss": ["kl"]}):
            self.refused(A, {"Z": Z, "metric": s}, **statement)
