"""The certificate: its digest, its file, and what its check refuses."""

import zipfile

import numpy as np
import pytest

import cvxnmf
from builders import altered, forged


@pytest.fixture
def certified(karate):
    return karate, cvxnmf.solve(cvxnmf.symmetric(karate, trace="auto"), tol=1e-6).certificate


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


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        cvxnmf.Certificate.load(tmp_path / "nowhere.npz")
    with pytest.raises(cvxnmf.CertificateError, match="A path is needed"):
        cvxnmf.Certificate.load(None)


def test_a_certificate_prints_itself(certified):
    _, certificate = certified
    assert "proved bound" in str(certificate)


def test_a_forged_scale_does_not_widen_the_tolerance(certified):
    A, certificate = certified
    with pytest.raises(cvxnmf.CertificateError, match="not the stated"):
        forged(certificate, scale=1e30, bound=certificate.value * 0.9).check(A)
    with pytest.raises(cvxnmf.CertificateError, match="scope"):
        forged(certificate, scope="rank-k").check(A)


def test_corrupted_files_never_pass(certified, tmp_path):
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


def test_a_small_file_that_unpacks_to_much_is_refused_before_memory_is_taken(tmp_path):
    path = tmp_path / "bomb.npz"
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open("meta.npy", "w") as member:
        member.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        for _ in range(600):
            member.write(bytes(1 << 20))
    with pytest.raises(cvxnmf.CertificateError, match=r"announces 0\.6 GiB"):
        cvxnmf.Certificate.load(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"{'descr'", bytes(100)])
def test_files_of_all_sorts_are_one_sentence(tmp_path, content):
    (tmp_path / "c.npz").write_bytes(content)
    with pytest.raises(cvxnmf.CertificateError, match="not a certificate file"):
        cvxnmf.Certificate.load(tmp_path / "c.npz")


@pytest.mark.parametrize(
    "header", [b"{'descr': '<f8', 'shape': (", b"{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000000,)}"]
)
def test_damaged_headers_are_one_sentence(tmp_path, header):
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("meta.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(cvxnmf.CertificateError, match="not a certificate file"):
        cvxnmf.Certificate.load(tmp_path / "c.npz")


def test_a_certificate_is_saved_under_a_name_only(tmp_path):
    certificate = cvxnmf.verify(np.ones((2, 2)), np.ones((2, 1)), np.ones((2, 1)))
    with pytest.raises(cvxnmf.CertificateError, match="path is needed"):
        certificate.save(77)
