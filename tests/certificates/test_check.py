from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cvxnmf
import naive
from builders import altered, forged, prove, random_counts, random_graph
from cvxnmf.convex import certify
from cvxnmf.convex.effects import balancing_effects
from cvxnmf.results import MatrixPoint

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


def in_cone(problem, rng, spread):
    n = problem.size
    W = spread * rng.standard_normal((n, 3))
    v = spread * rng.standard_normal(n) if problem.statement.cone == "conditional" else np.zeros(n)
    return v[:, None] + v[None, :] + W @ W.T


@pytest.mark.parametrize("form", FORMS, ids=names)
@given(seed=st.integers(0, 10**6), spread=st.sampled_from([0.05, 0.5, 3.0, 30.0]))
@settings(max_examples=6, deadline=None)
def test_weak_duality(form, seed, spread):
    """The bound made from one point never exceeds the value at another, whatever the points."""
    rng = np.random.default_rng(seed)
    A = random_counts(7, seed) if seed % 2 else random_graph(7, seed)
    problem = cvxnmf.symmetric(A, **form)
    certificate = cvxnmf.certify(problem, in_cone(problem, rng, spread))
    assert 0 <= certificate.bound <= certificate.value
    if certificate.kind == "dual":
        assert certificate.bound == pytest.approx(max(0.0, bound_of(problem, certificate)), abs=1e-9 * certificate.scale)
    for other_spread in (0.05, 0.3, 1.0):
        other, _ = problem.components[0].restore(in_cone(problem, rng, other_spread))
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
    assert again.relative_gap <= 1e-5
    assert again.value == pytest.approx(own.value, rel=1e-12)


def test_gap_identity_of_the_kullback_leibler_dual():
    """Gap of any feasible pair = KL(Z || E) + <X, Y>."""
    A = random_graph(9, 2)
    for cone in ("conditional", "psd"):
        problem = cvxnmf.symmetric(A, cone=cone, trace=0.7)
        X = in_cone(problem, np.random.default_rng(0), 0.4)
        certificate = cvxnmf.certify(problem, X)
        Z, E = certificate.witness["Z"], np.exp(X)
        Y = Z - A + 0.7 * naive.penalty_matrix(cone, problem.metric)
        identity = np.sum(np.where(Z > 0, Z * np.log(np.where(Z > 0, Z, 1) / E), 0) - Z + E) + np.sum(X * Y)
        assert certificate.gap == pytest.approx(identity, rel=1e-10)


def test_a_point_outside_the_cone_is_restored():
    problem = cvxnmf.symmetric(random_graph(8, 0), cone="psd", metric="uniform")
    certificate = cvxnmf.certify(problem, -np.eye(8))
    assert certificate.restored
    assert certificate.value == pytest.approx(problem.value(np.zeros((8, 8))))
    assert not cvxnmf.certify(problem, np.eye(8)).restored


def test_the_papers_constraint_is_restored_too():
    problem = cvxnmf.symmetric(5 * np.ones((4, 4)), loss="mse-paper", cone="psd", metric="uniform")
    certificate = cvxnmf.certify(problem, np.eye(4))
    assert certificate.restored
    assert certificate.value == pytest.approx(problem.value(np.eye(4) + np.log(2.5)))


def test_rounding_does_not_count_as_outside():
    problem = cvxnmf.symmetric(random_graph(8, 0), cone="psd")
    solution = cvxnmf.solve(problem)
    assert not cvxnmf.certify(problem, solution.X - 1e-16).restored


def test_a_contradiction_is_loud():
    problem = cvxnmf.symmetric(random_graph(8, 0), cone="psd")
    dual = problem.components[0].dual_point(MatrixPoint(np.zeros((8, 8))))
    with pytest.raises(cvxnmf.CertificateError, match="report this as a bug"):
        certify.assemble(problem, 0.5 * dual.bound, [dual])


@pytest.fixture
def certified(karate):
    return karate, cvxnmf.solve(cvxnmf.symmetric(karate, trace="auto"), tol=1e-6).certificate


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


def test_other_alterations_fail(certified):
    A, certificate = certified
    s = certificate.witness["metric"]
    other = A.copy()
    other[0, 33] = other[33, 0] = 1.0
    with pytest.raises(cvxnmf.CertificateError):
        certificate.check(other)
    with pytest.raises(cvxnmf.CertificateError):
        certificate.check(A[:20, :20])
    for changes in (
        {"bound": certificate.bound * 1.001},
        {"bound": certificate.bound * 0.999},
        {"value": certificate.bound * 0.9},
        {"witness": {**certificate.witness, "metric": 0.99 * s}},
        {"witness": {"Z": certificate.witness["Z"]}},
        {"statement": {**certificate.statement, "trace": certificate.statement["trace"] * 0.99}},
        {"statement": {**certificate.statement, "loss": "l1"}},
        {"statement": {}},
        {"kind": "zero"},
        {"kind": "guess"},
    ):
        for make in (altered, forged):
            with pytest.raises(cvxnmf.CertificateError):
                make(certificate, **changes).check(A)


@pytest.mark.parametrize("factor", [0.5, 1 + 1e-12, 2.0])
def test_any_altered_entry_is_noticed(certified, factor):
    A, certificate = certified
    s = certificate.witness["metric"].copy()
    s[5] *= factor
    statement = {**certificate.statement, "trace": certificate.statement["trace"] * factor}
    for changes in (
        {"value": certificate.value * factor},
        {"statement": statement},
        {"witness": {**certificate.witness, "metric": s}},
        {"scale": certificate.scale * factor},
        {"scope": "rank-k"},
        {"restored": True},
    ):
        with pytest.raises(cvxnmf.CertificateError, match="digest"):
            altered(certificate, **changes).check(A)


@pytest.mark.parametrize("metric", ["degree", "uniform"])
@pytest.mark.parametrize("factor", [0.9, 1.001, 2.0])
def test_a_named_metric_is_recomputed_from_the_data(karate, metric, factor):
    certificate = cvxnmf.solve(cvxnmf.symmetric(karate, metric=metric, trace=3.0)).certificate
    s = certificate.witness["metric"].copy()
    s[5] *= factor
    with pytest.raises(cvxnmf.CertificateError, match="metric of these data|positive semidefinite"):
        forged(certificate, witness={**certificate.witness, "metric": s}).check(karate)


def test_saved_loaded_and_checked_the_bound_is_the_same(certified, tmp_path):
    A, certificate = certified
    file = tmp_path / "proof.npz"
    certificate.save(file)
    loaded = cvxnmf.Certificate.load(file)
    assert loaded.digest == certificate.digest
    assert repr(loaded) == repr(certificate)
    for name, array in certificate.witness.items():
        np.testing.assert_array_equal(loaded.witness[name], array)
    assert loaded.check(A) == certificate.bound
    with np.load(file, allow_pickle=False) as content:
        assert set(content.files) == {"meta", "Z", "metric"}


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04broken"])
def test_a_broken_file_is_refused_with_a_sentence(content, tmp_path):
    file = tmp_path / "broken.npz"
    file.write_bytes(content)
    with pytest.raises(cvxnmf.CertificateError, match="is not a certificate file"):
        cvxnmf.Certificate.load(file)


def test_zero_is_always_a_bound():
    problem = cvxnmf.symmetric(random_graph(6, 0), cone="psd")
    certificate = cvxnmf.certify(problem, 1e4 * np.eye(6))
    assert (certificate.value, certificate.bound, certificate.kind) == (np.inf, 0.0, "zero")
    assert certificate.check(problem.A) == 0.0


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
        problem = cvxnmf.symmetric(A, trace=0.5, diagonal="ignore")
        position = np.array([[-6.0], [-6.0], [-6.0], [6.0], [6.0], [6.0]])
        far = cvxnmf.certify(problem, position @ position.T)
        assert far.kind == "dual"
        assert not far.rigorous
        assert cvxnmf.solve(problem).certificate.rigorous


def test_components_are_respected_when_a_solution_is_certified_elsewhere():
    A = np.kron(np.eye(2), random_graph(6, 0))
    solution = cvxnmf.solve(cvxnmf.symmetric(A))
    joint = cvxnmf.symmetric(A, trace=0.3)
    by_solution, by_matrix = cvxnmf.certify(joint, solution), cvxnmf.certify(joint, solution.X)
    assert by_solution.restored
    assert by_solution.value == by_matrix.value


def test_margins_are_matched_by_the_effects(karate):
    solution = cvxnmf.solve(cvxnmf.symmetric(karate, trace="auto"))
    np.testing.assert_allclose(np.exp(solution.X).sum(axis=1), karate.sum(axis=1), rtol=1e-10)


def test_balancing_effects_survive_absurd_points():
    problem = cvxnmf.symmetric(random_graph(9, 0))
    X = in_cone(problem, np.random.default_rng(0), 8.0)
    v = balancing_effects(problem.components[0].loss, problem.components[0].cone, X)
    np.testing.assert_allclose(np.exp(X + v[:, None] + v[None, :]).sum(axis=1), problem.A.sum(axis=1), rtol=1e-6)


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

    def test_a_forged_scale_does_not_widen_the_tolerance(self, certified):
        A, certificate = certified
        with pytest.raises(cvxnmf.CertificateError, match="not the stated"):
            forged(certificate, scale=1e30, bound=certificate.value * 0.9).check(A)
        with pytest.raises(cvxnmf.CertificateError, match="scope"):
            forged(certificate, scope="rank-k").check(A)

    def test_corrupted_files_never_pass(self, certified, tmp_path):
        A, certificate = certified
        file = tmp_path / "proof.npz"
        certificate.save(file)
        whole = file.read_bytes()
        rng = np.random.default_rng(0)
        for _ in range(60):
            broken = bytearray(whole)
            broken[rng.integers(len(broken))] ^= int(rng.integers(1, 256))
            file.write_bytes(bytes(broken))
            try:
                loaded = cvxnmf.Certificate.load(file)
                assert loaded.check(A) == certificate.bound
            except cvxnmf.CertificateError:
                continue


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        cvxnmf.Certificate.load(tmp_path / "nowhere.npz")
    with pytest.raises(cvxnmf.CertificateError, match="A path is needed"):
        cvxnmf.Certificate.load(None)


def test_infinite_values_have_infinite_gaps():
    problem = cvxnmf.symmetric(np.full((3, 3), 1e10), cone="psd", metric="uniform")
    for X in (np.full((3, 3), 1e300), np.diag([1e308, 1, 1]), np.full((3, 3), 800.0)):
        certificate = cvxnmf.certify(problem, X)
        assert certificate.value == certificate.relative_gap == np.inf
        assert certificate.check(problem.A) == certificate.bound


def test_cut_off_entries_count_as_restored():
    problem = cvxnmf.symmetric(np.array([[1, 1, 0], [1, 1, 0.5], [0, 0.5, 1.0]]))
    certificate = cvxnmf.certify(problem, np.full((3, 3), -np.inf))
    assert certificate.restored
    assert np.isfinite(certificate.value)


def test_a_solution_of_another_problem_is_certified_as_a_matrix():
    A = random_graph(8, 0)
    solution = cvxnmf.solve(cvxnmf.symmetric(A))
    for other in (cvxnmf.symmetric(A, cone="psd"), cvxnmf.symmetric(A, loss="mse-paper")):
        certificate = cvxnmf.certify(other, solution)
        assert certificate.bound <= certificate.value
    with pytest.raises(ValueError, match="Solution of another problem"):
        cvxnmf.certify(cvxnmf.symmetric(random_graph(9, 0)), solution)


def test_a_certificate_prints_itself(certified):
    _, certificate = certified
    assert "proved bound" in str(certificate)
