"""Attacks on whole journeys: every method on one problem, frames and edge lists, lazy certificates, the command line."""

import contextlib
import io
import itertools
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

import cvxnmf
from campaigns import inputs
from campaigns.cases import random_problem
from cvxnmf import cli


def every_method(rng, folder):
    """All methods that can solve a problem agree up to their gaps, and every bound is below every value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            problem, A = random_problem(rng)
        except ValueError:  # data that a problem refuses, such as zero rows
            return
        answers = {method: cvxnmf.solve(problem, method, tol=1e-5, max_iter=40) for method in problem.methods}
    for (one, first), (other, second) in itertools.permutations(answers.items(), 2):
        allowed = 1e-11 * max(first.certificate.scale, first.value)
        assert first.certificate.bound <= second.value + allowed, f"the bound of {one} is above the value of {other}"
    for method, answer in answers.items():
        assert answer.certificate.check(A) <= answer.certificate.value, method
        assert not np.isnan(answer.X).any(), method


def lazy_certificates(rng, folder):
    """Certificates that are computed when they are first looked at hold for the data, after a round trip through a file too."""
    A = inputs.small_graph(rng, most=14)
    path = Path(folder) / "result.npz"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        if rng.random() < 0.5:
            k = int(rng.integers(1, 4)) if rng.random() < 0.5 else None
            result = cvxnmf.partition(sp.csr_array(A) if rng.random() < 0.5 else A, k)
            names = ["certificate", "rank_certificate"] if rng.random() < 0.5 else ["rank_certificate", "certificate"]
        else:
            result = cvxnmf.factorize(A, int(rng.integers(1, 4)), str(rng.choice(["mse", "kl"])))
            names = ["certificate"]
        bounds = [getattr(result, name).check(A) for name in names]
        cvxnmf.save(result, path)
        again = cvxnmf.load(path)
    assert bounds == [getattr(again, name).check(A) for name in names]
    for name in names:
        certificate = getattr(result, name)
        assert certificate.bound <= certificate.value


def odd_table(rng, folder):
    """Data for factors in any form that users have them in, and the same as a dense array."""
    m, n = (int(side) for side in rng.integers(2, 14, 2))
    A = rng.gamma(0.5, size=(m, n)) if rng.random() < 0.5 else rng.poisson(1.0, (m, n)).astype(float)
    change = rng.integers(6)
    if change == 0:
        A[rng.integers(m)] = A[:, rng.integers(n)] = 0.0
    elif change == 1:
        A[:] = rng.random()
    elif change == 2:
        A = np.outer(rng.random(m), rng.random(n))
    elif change == 3:
        A *= 10.0 ** rng.uniform(-40, 40)
    if not A.any():
        A[0, 0] = 1.0
    form = rng.integers(5)
    if form == 0:
        single = np.maximum(A / A.max(), 1e-30).astype(np.float32)
        return single, single.astype(float)
    if form == 1:  # every entry in two parts, and zeros among them
        i, j = np.indices(A.shape)
        parts = np.concatenate([0.25 * A.ravel(), 0.75 * A.ravel()]), (np.tile(i.ravel(), 2), np.tile(j.ravel(), 2))
        return sp.coo_array(parts, shape=A.shape), 0.25 * A + 0.75 * A
    if form == 2:
        path = Path(folder) / "table.npy"
        np.save(path, A)
        return np.load(path, mmap_mode="r"), A
    return (pd.DataFrame(A), A) if form == 3 else (A, A)


def factors_of_odd_data(rng, folder):
    """Whatever the data and their form, factors are finite and nonnegative, their value is theirs, and the proof holds."""
    data, A = odd_table(rng, folder)
    k, loss = int(rng.integers(1, 5)), str(rng.choice(["mse", "kl"]))
    estimated = rng.random() < 0.4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        try:
            if estimated:
                model = cvxnmf.NMF(k, beta_loss="frobenius" if loss == "mse" else "kullback-leibler")
                U, V, certificate = model.fit_transform(data), model.components_.T, model.certificate_
            else:
                found = cvxnmf.factorize(data, k, loss=loss, symmetric=False)
                U, V, certificate = found.U, found.V, found.certificate
        except ValueError as error:
            inputs.require_sentence(error)
            return
    X = np.asarray(U, dtype=float) @ np.asarray(V, dtype=float).T
    assert np.isfinite(X).all()
    assert U.min() >= 0
    assert V.min() >= 0
    scale = A.max()
    a, x = A / scale, X / scale
    logs = np.where(a > 0, a * np.log(np.where(a > 0, a, 1.0) / np.maximum(x, 1e-300)), 0.0) - a + x
    loss_of = float(np.sum((a - x) ** 2)) * scale**2 if loss == "mse" else float(np.sum(logs)) * scale
    assert certificate.bound <= loss_of * (1 + 1e-6) + 1e-6 * certificate.scale, f"{certificate.bound!r} is above {loss_of!r}"
    assert abs(certificate.value - loss_of) <= 1e-6 * max(certificate.scale, loss_of), f"{certificate.value!r}, not {loss_of!r}"
    assert certificate.check(data if hasattr(data, "shape") and not isinstance(data, pd.DataFrame) else A) <= certificate.value


def _frame(rng, folder):
    """A graph as a frame, and how many nodes and edges it has; None where no reading of it is unmistakable."""
    A = inputs.small_graph(rng)
    A = np.ceil(A * 3) if rng.random() < 0.5 else A
    n = len(A)
    names = [f"v{i}" for i in range(n)] if rng.random() < 0.7 else list(range(n))
    kind = rng.integers(5)
    if kind == 0:
        order = rng.permutation(n)
        return pd.DataFrame(A, names, names).iloc[:, order], n, A
    i, j = np.nonzero(np.triu(A))
    edges = pd.DataFrame({"source": [names[x] for x in i], "target": [names[x] for x in j], "weight": A[i, j]})
    if kind == 1:
        return edges, n, A
    if kind == 2:
        return edges[["source", "target"]], n, (A > 0) * 1.0
    if kind == 3:
        return pd.DataFrame(A, names, [f"w{i}" for i in range(n)]), None, None
    return edges[[*rng.permutation(edges.columns)]], None, A


def frames(rng, folder):
    """A frame is read as the graph that it is, or refused in a sentence; never as another one."""
    frame, n, A = _frame(rng, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            found = cvxnmf.partition(frame)
        except ValueError as error:
            assert n is None, f"an unmistakable frame is refused: {error}"
            inputs.require_sentence(error)
            return
    if A is not None:
        assert len(found.labels) == len(A), f"{len(found.labels)} nodes, not {len(A)}"
        assert found.certificate.check(A[np.ix_(order := _order(found), order)]) <= found.certificate.value


def _order(found):
    names = [str(node).removeprefix("v") for node in found.nodes]
    return np.array([int(name) for name in names])


COMMANDS = {
    "partition": [["-k", "2"], ["--tol", "0.1"], ["--objective", "modularity"], ["--json"], ["-k", "0"], ["--groups", "x"], []],
    "factorize": [["-k", "2"], ["-k", "1", "--loss", "kl"], ["-k", "99"], ["-k", "-1"], ["--json", "-k", "2"], []],
    "check": [[], ["--json"], ["{other}"]],
    "verify": [["{other}"], ["{other}", "--json"], []],
}


def command_line(rng, folder):
    """A command on damaged files and odd options ends with a number and a sentence, and never with a traceback."""
    paths = []
    for _ in range(2):
        name, content, _ = inputs.random_file(rng)
        path = Path(folder) / name
        path.write_bytes(inputs.mutated_bytes(rng, content) if rng.random() < 0.7 else content)
        paths.append(str(path))
    command = str(rng.choice(list(COMMANDS)))
    options = COMMANDS[command][rng.integers(len(COMMANDS[command]))]
    arguments = [command, paths[0], *(option.format(other=paths[1]) for option in options), "--quiet"]
    output = str(Path(folder) / str(rng.choice(["out.csv", "out.npz", "none/out.csv", "g.txt"])))
    arguments += ["--output", output] if rng.random() < 0.3 and command in ("partition", "factorize") else []
    said, printed = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        try:
            code = cli.main(arguments)
        except SystemExit as stopped:
            code = stopped.code
    assert code in (0, 1, 2, 3), f"{arguments}: {code}"
    assert "Traceback" not in said.getvalue(), said.getvalue()
    assert code == 0 or said.getvalue().strip() or printed.getvalue().strip(), f"{arguments}: {code} without a word"
