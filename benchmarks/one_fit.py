"""The default NMF, its proof and a single descent, each against one default fit of scikit-learn, in turns and on all threads."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn import decomposition

import cvxnmf
from benchmarks import child, datasets, objective, solvers
from benchmarks.report import Table
from benchmarks.scale import Scale

#: Fits of scikit-learn that the default may take, and seconds that it may take in any case.
ALLOWED_FITS, ALLOWED_SECONDS = 3.0, 0.2


#: Entries times components from which one run has to do.
LARGE = 100_000_000


class Case(NamedTuple):
    """Data of the table, and for which losses they are measured."""

    name: str
    A: Any
    k: int
    losses: tuple[str, ...] = ("mse", "kl")

    @property
    def large(self) -> bool:
        """Whether one run has to do."""
        return self.A.shape[0] * self.A.shape[1] * self.k > LARGE


def _cases(scale: Scale) -> list[Case]:
    digits = datasets.digits()
    if scale.tiny:
        return [Case("digits, 100 rows", digits[:100], 5), Case("topics 80 x 60", datasets.topic_counts(80, 60, 3, 30, 3), 3)]
    cases = [
        Case("digits", digits, 10),
        Case("digits", digits, 30),
        Case("dense 500 x 300", datasets.mixture(500, 300, 8, 0.1, 11), 8),
        Case("topics 2,000 x 1,000", datasets.topic_counts(2000, 1000, 10, 60, 3), 10),
        Case("topics 20,000 x 8,000", datasets.topic_counts(20_000, 8_000, 20, 80, 4), 20),
        Case("dense 200,000 x 100", datasets.mixture(200_000, 100, 10, 0.2, 12), 10, ("mse",)),
    ]
    faces = datasets.from_mat("cbcl_faces", "M")
    cases += [] if faces is None else [Case("CBCL faces", faces, 49)]
    if not scale.full:
        return cases
    cases.append(Case("breast cancer, scaled", _scaled_cancer(), 8))
    cases.append(Case("counts 400 x 150", datasets.dense_counts(), 12))
    return cases


def _scaled_cancer() -> np.ndarray:
    from sklearn.datasets import load_breast_cancer

    X = load_breast_cancer().data
    return np.asarray(X / X.std(axis=0))


def default_fit(A: Any, k: int, loss: str) -> Any:
    """One default fit of scikit-learn, from the same singular vectors every time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that few iterations are few
        solver = "cd" if loss == "mse" else "mu"
        beta_loss = solvers.BETA[loss]
        return decomposition.NMF(k, init="nndsvda", solver=solver, beta_loss=beta_loss, random_state=0).fit(A)


def _ours(case: Case, loss: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cvxnmf.NMF(case.k, beta_loss=solvers.BETA[loss]).fit(case.A)


def _loss(model: Any, loss: str) -> float:
    """The loss of a fitted model, from scikit-learn's error."""
    return float(model.reconstruction_err_**2 / (1.0 if loss == "mse" else 2.0))


def default(scale: Scale) -> list[Table]:
    """Time and loss of `NMF(k).fit`, and the time of its certificate, in fits of scikit-learn."""
    rows = []
    for case in _cases(scale):
        for loss in case.losses:
            rows.append([case.name, str(case.k), loss.upper(), *_default_row(case, loss, scale)])
    header = [
        "data",
        "k",
        "loss",
        "scikit-learn, s",
        "ours, s",
        "fits",
        "loss / one fit",
        "loss / best of 10",
        "certificate, fits",
    ]
    note = (
        f"Default settings on both sides (scikit-learn from nndsvda), all threads, in turns. Allowed: {ALLOWED_FITS:g} fits, or "
        f"{ALLOWED_SECONDS} s where that is more, and 1.001 of the best of ten random fits (tol 1e-6, 2,000 iterations; full "
        "runs only); the certificate at most 10 fits more. *: not kept."
    )
    return [Table("NMF default against one fit of scikit-learn", header, rows, note)]


def _default_row(case: Case, loss: str, scale: Scale) -> list[str]:
    works = {"theirs": lambda: default_fit(case.A, case.k, loss), "ours": lambda: _ours(case, loss)}
    times, models = objective.interleaved(works, repeats=1 if scale.tiny or case.large else 3, warm_up=not case.large)
    theirs, ours = times["theirs"].median, times["ours"].median
    fits = f"{ours / theirs:.2f}{'*' if ours > max(ALLOWED_FITS * theirs, ALLOWED_SECONDS) else ''}"
    single, best = _loss(models["ours"], loss) / _loss(models["theirs"], loss), "not run"
    if scale.full or scale.tiny:
        runs = solvers.sklearn_random(
            case.A, case.k, 2 if scale.tiny else 10, tol=1e-6, max_iter=2000, solver="cd" if loss == "mse" else "mu",
            beta_loss=solvers.BETA[loss],
        )  # fmt: skip
        ratio = _loss(models["ours"], loss) / min(objective.factor_loss(case.A, *factors, loss) for factors in runs)
        best = f"{ratio:.5f}{'*' if ratio > 1.001 else ''}"
    proving, _ = objective.seconds(lambda: models["ours"].certificate_)
    proof = f"{proving / theirs:.2f}{'*' if proving > 10.0 * theirs else ''}"
    return [str(times["theirs"]), str(times["ours"]), fits, f"{single:.4f}", best, proof]


def single_descent(scale: Scale) -> list[Table]:
    """Time of a single descent to the loss of scikit-learn's default fit, and what it adds to the memory."""
    rows = []
    for case in _cases(scale):
        for loss in case.losses:
            target = _loss(default_fit(case.A, case.k, loss), loss) * (1.0 + 1e-9)
            reached = lambda line, target=target: line.value <= target  # noqa: E731
            options: dict[str, Any] = {"loss": loss, "max_iter": 2000, "tol": 0.0, "callback": reached}
            works = {
                "theirs": lambda case=case, loss=loss: default_fit(case.A, case.k, loss),
                "ours": lambda case=case, options=options: cvxnmf.classical_nmf(case.A, case.k, **options),
            }
            times, answers = objective.interleaved(works, 1 if scale.tiny or case.large else 3, not case.large)
            share = times["ours"].median / times["theirs"].median
            kept = answers["ours"].value <= target and share <= 0.5
            words = f"{share:.2f}{'' if kept else '*'}" if answers["ours"].value <= target else "not reached*"
            rows.append([case.name, str(case.k), loss.upper(), str(times["theirs"]), str(times["ours"]), words])
    header = ["data", "k", "loss", "scikit-learn, s", "ours to its loss, s", "share"]
    note = "All threads, in turns, each from its own nndsvd; allowed: half of scikit-learn's time. *: not kept."
    tables = [Table('solver="cd" to the loss of one fit of scikit-learn', header, rows, note)]
    return tables if scale.tiny else [*tables, _memory()]


def _memory() -> Table:
    """Growth of the peak of memory in processes of their own, compiled code and imports not counted."""
    rows = []
    for name, rows_, columns, k, sparse in MEMORY_CASES:
        grown = [child.ask("one_fit", library=library, rows=rows_, columns=columns, k=k, sparse=sparse) for library in LIBRARIES]
        if None in grown:
            continue
        theirs, ours = (found["grown"] / 1e6 for found in grown if found is not None)
        rows.append([name, f"{theirs:.0f}", f"{ours:.0f}", f"{ours / theirs:.2f}{'*' if ours > 1.2 * theirs else ''}"])
    header = ["data", "scikit-learn, MB", "ours, MB", "ratio"]
    return Table('Memory that solver="cd" adds to the data', header, rows, "Allowed: 1.2. *: not kept.")


LIBRARIES = ("sklearn", "cvxnmf")
#: Name, rows, columns, components, whether sparse.
MEMORY_CASES = (("dense 20,000 x 500", 20_000, 500, 10, False), ("topics 20,000 x 8,000", 20_000, 8_000, 20, True))
