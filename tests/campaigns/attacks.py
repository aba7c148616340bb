"""The campaigns: each attack is a function of a random source and a folder that raises where it succeeds."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import mpmath as mp
import numpy as np

import cvxnmf
from campaigns import exact, inputs
from campaigns.cases import random_certificate, reseal
from campaigns.journeys import command_line, every_method, factors_of_odd_data, frames, lazy_certificates
from campaigns.labels import labels_by_enumeration
from cvxnmf.certificates import CertificateError
from cvxnmf.io import FileError
from cvxnmf.io.writing import write_with
from cvxnmf.linalg.uniqueness import factor_uniqueness
from exact_rays import exactly_scattered


def exact_twin(rng, folder):
    """A certificate, honest or pushed by a hair, that the check accepts is confirmed in exact arithmetic."""
    case = random_certificate(rng)
    if case is None:
        return
    A, certificate = case
    if rng.random() < 0.7:
        certificate = _pushed(rng, A, certificate)
    try:
        certificate.check(A)
    except CertificateError:
        return
    if certificate.trust == "unproved":
        return
    proved = exact.exact_bound(A, certificate.statement, certificate.kind, certificate.witness)
    if certificate.sense == "max":  # a bound that an integral quality meets is rounded to the nearest number
        assert certificate.bound in (float(proved), max(certificate.bound, proved)), f"{certificate.bound!r}, not {proved!r}"
    else:
        true = mp.nstr(proved, 30)
        assert mp.mpf(certificate.bound) <= max(mp.mpf(0), proved), f"{certificate.bound!r} is stated, {true} is true"


def _pushed(rng, A, certificate):
    """The certificate with its bound raised, or its witness moved, by a share from rounding to a thousandth."""
    share = 10.0 ** rng.uniform(-17, -3)
    if certificate.sense == "max":
        return _pushed_labels(rng, A, certificate, share)
    if rng.random() < 0.5 or not certificate.witness:
        bound = certificate.bound + share * max(certificate.scale, certificate.bound)
        return reseal(certificate, bound=bound, value=max(bound, certificate.value))
    witness = {name: np.array(part) for name, part in certificate.witness.items()}
    name = str(rng.choice(sorted(witness)))
    moved = witness[name] * (1 + share * rng.standard_normal(witness[name].shape))
    if moved.ndim == 2 and moved.shape[0] == moved.shape[1]:
        moved = (moved + moved.T) / 2
    witness[name] = moved
    try:
        proof = certificate.statement.prove(A, certificate.kind, witness)
    except CertificateError:
        return reseal(certificate, witness=witness)
    bound = proof.bound + rng.choice([0.0, 0.9]) * proof.spare
    return reseal(certificate, witness=witness, bound=bound, value=max(bound, certificate.value))


def _pushed_labels(rng, A, certificate, share):
    """The certificate with its bound lowered, or an array of its witness moved, whole numbers by 1."""
    if rng.random() < 0.5:
        return reseal(certificate, bound=max(certificate.value, certificate.bound - share * certificate.scale))
    witness = {name: np.array(part, dtype=float) for name, part in certificate.witness.items()}
    name = str(rng.choice([name for name, part in witness.items() if part.size and name != "labels"]))
    whole = np.all(witness[name] % 1 == 0)
    steps = rng.integers(-1, 2, witness[name].shape) if whole else share * rng.standard_normal(witness[name].shape)
    witness[name] = witness[name] + steps * (1 if whole else witness[name])
    try:
        proof = certificate.statement.prove(A, certificate.kind, witness)
    except CertificateError:
        return reseal(certificate, witness=witness)
    bound = max(certificate.value, proof.bound - rng.choice([0.0, 0.9]) * proof.spare)
    return reseal(certificate, witness=witness, bound=bound)


def weak_duality(rng, folder):
    """No admissible point of a tiny problem is below its bound."""
    A = inputs.small_graph(rng)
    problem = cvxnmf.symmetric(
        A, loss=str(rng.choice(["kl", "mse"])), cone=str(rng.choice(["psd", "conditional"])), trace=float(rng.choice([0.1, 1.0]))
    )
    solution = cvxnmf.solve(problem, max_iter=100)
    for _ in range(5):
        W = rng.standard_normal((len(A), 2)) * rng.choice([0.1, 1.0])
        X = solution.X + 10.0 ** rng.uniform(-6, 0) * W @ W.T
        value = problem.value(X)
        assert value >= solution.certificate.bound - 1e-12 * max(1.0, value), f"{value!r} is below {solution.certificate.bound!r}"


def unique_factors(rng, folder):
    """Uniqueness is proved where all extreme rays in exact arithmetic say so, refuted by other factors; scales change nothing."""
    k = int(rng.integers(2, 5))
    U, V = (rng.integers(0, 4, (int(rng.integers(k, 3 * k + 1)), k)) * (rng.random((1, k)) < 0.95) * 1.0 for _ in range(2))
    V = U if rng.random() < 0.5 else V
    found = factor_uniqueness(U, V)
    if V is U and found.status != "refuted" and np.linalg.matrix_rank(U) == k:
        assert found.status == ("proved" if exactly_scattered(U[U.any(axis=1)]) else "unknown")
    elif V is not U:
        scales = 2.0 ** rng.integers(-3, 4, k)
        assert factor_uniqueness(U * scales, V / scales).status == found.status
    if found.alternative is not None:
        other_U, other_V = found.alternative
        assert min(other_U.min(), other_V.min()) >= 0
        assert np.allclose(other_U @ other_V.T, U @ V.T, rtol=1e-12, atol=1e-12 * (U @ V.T).max())


def mutated_certificates(rng, folder):
    """A certificate with anything in any of its parts is refused in one sentence, or still holds."""
    case = random_certificate(rng)
    if case is None:
        return
    A, certificate = case
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            forged = inputs.mutated_certificate(rng, certificate)
            bound = forged.check(A if rng.random() < 0.8 else inputs.odd_value(rng))
        except CertificateError:
            return
    assert bound <= forged.value if forged.sense == "min" else bound >= forged.value
    same = forged.kind == certificate.kind and certificate.witness
    assert not same or forged.rigorous <= certificate.rigorous, "more is claimed than was proved"


def mutated_files(rng, folder):
    """A damaged file of any format is read, or refused in one sentence."""
    name, content, read = inputs.random_file(rng)
    path = Path(folder) / name
    path.write_bytes(inputs.mutated_bytes(rng, content))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            read(path)
        except (FileError, CertificateError):
            pass
        except ValueError as error:
            inputs.require_sentence(error)


def random_calls(rng, folder):
    """A public function with odd arguments answers, or refuses them with a ValueError of one sentence."""
    function, arguments = inputs.random_call(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        try:
            function(**arguments)
        except ValueError as error:
            inputs.require_sentence(error)


def _hear_signals():
    """Shells turn off the first in the background, and nohup the other."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def signals(rng, folder):
    """A program that gets a signal at any moment ends at once, and its file is whole or is not there."""
    graph, output = Path(folder) / "graph.txt", Path(folder) / "labels.csv"
    n = int(rng.integers(50, 2500))
    np.savetxt(graph, rng.integers(0, n, (8 * n, 2)), fmt="%d")
    mine = Path(f"{output}.part")
    mine.write_text("of somebody else")
    arguments = [sys.executable, "-m", "cvxnmf", "partition", str(graph), "--tol", "0", "--output", str(output)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(arguments, preexec_fn=_hear_signals, **pipes) as process:
        time.sleep(rng.uniform(0.05, 4.0))
        process.send_signal(int(rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])))
        began = time.monotonic()
        _, said = process.communicate(timeout=60)
    assert time.monotonic() - began < 30.0, "it did not end"
    if "_get_module_details" not in said and "runpy" not in said:  # else Python itself, which has not come to us yet
        assert process.returncode in (0, 3, 130, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT), (process.returncode, said)
        assert "Traceback" not in said, said
    if output.exists():
        lines = output.read_text().splitlines()
        assert lines[0] == "node,cluster,membership"
        assert len(set(map(len, (line.split(",") for line in lines)))) == 1, "half a file"
    assert mine.read_text() == "of somebody else"
    assert not list(Path(folder).glob(".cvxnmf-*")), "an unfinished file is left"


def concurrent_writers(rng, folder):
    """Of several processes that write one file, one wins, and the file is whole and keeps its mode; one may be killed."""
    path, size = Path(folder) / "result.csv", int(10.0 ** rng.uniform(1, 7))
    path.write_text("before")
    path.chmod(0o640)
    delays = rng.exponential(3e-3, 4)

    def write(letter, delay):
        time.sleep(delay)
        write_with(lambda name: Path(name).write_text(letter * size), str(path))

    fork = multiprocessing.get_context("fork")
    running = [fork.Process(target=write, args=job) for job in zip("abcd", delays, strict=True)]
    for process in running:
        process.start()
    if rng.random() < 0.5:
        time.sleep(rng.exponential(5e-3))
        running[0].kill()
    for process in running:
        process.join()
    assert all(process.exitcode == 0 for process in running[1:])
    content = path.read_text()
    assert len(content) == size, "half a file"
    assert len(set(content)) == 1, "a mixture"
    assert os.stat(path).st_mode & 0o777 == 0o640
    for left in Path(folder).glob(f".cvxnmf-{running[0].pid}-*"):  # the one that was killed could not tidy up
        assert running[0].exitcode != 0, "an unfinished file is left"
        left.unlink()
    assert not list(Path(folder).glob(".cvxnmf-*"))


CAMPAIGNS = {
    attack.__name__.replace("_", "-"): attack
    for attack in (
        exact_twin,
        weak_duality,
        labels_by_enumeration,
        unique_factors,
        mutated_certificates,
        mutated_files,
        random_calls,
        every_method,
        lazy_certificates,
        factors_of_odd_data,
        frames,
        command_line,
        signals,
        concurrent_writers,
    )
}
