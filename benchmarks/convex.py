"""The convex problems: against cvxpy, in units of decompositions, their factors, their memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import cvxnmf
from benchmarks import child, datasets, objective, solvers
from benchmarks.report import Table, missing_row
from benchmarks.scale import Scale


def against_cvxpy(scale: Scale) -> list[Table]:
    """KL, psd cone, block graph, to a certified relative gap of 1e-6."""
    A = datasets.blocks(12 if scale.tiny else 80)
    problem = cvxnmf.symmetric(A, cone="psd", metric="uniform")
    header = ["solver", "seconds", "times ours", "certified gap"]
    works, missing = solvers.present(
        {
            "cvxnmf": lambda: solvers.ours(cvxnmf.symmetric(A, cone="psd", metric="uniform"), 1e-6).X,
            # the loosest power of ten at which SCS reaches the gap: 1e-4 does not
            "cvxpy + SCS": lambda: solvers.cvxpy_psd(A, "SCS", eps_abs=1e-5, eps_rel=1e-5),
            "cvxpy + Clarabel": lambda: solvers.cvxpy_psd(A, "CLARABEL"),
        }
    )
    slow = {name: works.pop(name) for name in ("cvxpy + Clarabel",) if name in works and not scale.full}
    times, answers = objective.interleaved(works, repeats=3)
    once, slow_answers = objective.interleaved(slow, repeats=1, warm_up=False)
    times, answers = times | once, answers | slow_answers
    rows = [
        [name, str(spent), objective.ratio(times, name, "cvxnmf"), f"{objective.certified_gap(problem, answers[name]):.1e}"]
        for name, spent in times.items()
    ]
    rows += [missing_row(name, reason, len(header)) for name, reason in missing.items()]
    note = (
        "SCS with eps 1e-5, the loosest power of ten that reaches the gap; Clarabel with its defaults. Gaps by `cvxnmf.certify`; "
        "one above 1e-6 means that a peer stopped short of the accuracy asked, which favours it in time. SCS brings a BLAS of "
        "its own, which runs on one thread."
    )
    return [Table(f"KL on the psd cone, block graph n = {len(A)}, gap 1e-6", header, rows, note)]


def real_graphs(scale: Scale) -> list[Table]:
    """Conditional cone, degree metric, trace="auto", to a certified 1e-4, certificates and set-up included."""
    rows = []
    for name, A in datasets.real_graphs(100 if scale.tiny else 500).items():
        works = objective.eigendecompositions(A) | {"ours": lambda A=A: solvers.ours(cvxnmf.symmetric(A, trace="auto"), 1e-4)}
        times, answers = objective.interleaved(works, repeats=1 if scale.tiny else 5)
        gap = objective.certified_gap(cvxnmf.symmetric(A, trace="auto"), answers["ours"].X)
        counts = [str(answers["ours"].n_iter), str(answers["ours"].rank)]
        rows.append(
            [
                name,
                str(len(A)),
                str(times["ours"]),
                objective.ratio(times, "ours", objective.faster(times)),
                f"{gap:.1e}",
                *counts,
            ]
        )
    header = ["graph", "n", "seconds", "in units of eigh", "certified gap", "steps", "rank"]
    return [Table('Small graphs: conditional cone, degree metric, trace="auto", gap 1e-4', header, rows)]


def hard_problems(scale: Scale) -> list[Table]:
    """The settings that ask for the most: no penalty, the psd cone, the paper's squared error, rectangles of a wide range."""
    rows = []
    for name, make, tol in _hard(scale):
        problem = make()
        A = problem.A
        works = objective.eigendecompositions(A) | {"ours": lambda make=make, tol=tol: solvers.ours(make(), tol)}
        times, answers = objective.interleaved(works, repeats=scale.pick(1, 3, 5), warm_up=not scale.tiny)
        solution = answers["ours"]
        gap = (solution.value - solution.certificate.check(A)) / solution.value
        unit = objective.ratio(times, "ours", objective.faster(times))
        rows.append([name, f"{tol:g}", str(times["ours"]), unit, f"{gap:.1e}", str(solution.n_iter), str(solution.rank)])
    header = ["problem", "gap asked for", "seconds", "in units of eigh or thin SVD", "certified gap", "steps", "rank"]
    return [Table("Hard convex problems", header, rows)]


def _hard(scale: Scale) -> list[tuple[str, Callable[[], cvxnmf.Problem], float]]:
    """Name, problem and gap, the cheap ones first."""
    counts, n = datasets.zipf_counts(30, 24) if scale.tiny else datasets.zipf_counts(300, 242), scale.pick(20, 500, 1000)
    graphs = {"Les Misérables": datasets.miserables()}
    found = {name: datasets.from_file(name) for name in ("polbooks", "netscience")[: scale.pick(0, 2, 2)]}
    graphs |= {name: A for name, A in found.items() if A is not None}
    cases: list[tuple[str, Callable[[], cvxnmf.Problem], float]] = []
    for name, A in graphs.items():
        gaps = (1e-3, 1e-4) if len(A) > 200 else (1e-4,)
        cases += [(f"KL, trace 0, {name}", partial(cvxnmf.symmetric, A), gap) for gap in gaps]
    cases.append((f"KL, trace 0, blocks n = {n}", partial(cvxnmf.symmetric, datasets.blocks(n)), 1e-4))
    cases.append((f"KL, psd cone, blocks n = {n}", partial(cvxnmf.symmetric, datasets.blocks(n), cone="psd"), 1e-4))
    for name, A in list(graphs.items())[: scale.pick(1, 2, 2)]:
        cases.append(
            (f"the paper's squared error, {name}", partial(cvxnmf.symmetric, A, "mse-paper"), 1e-2 if scale.tiny else 1e-4)
        )
    cases.append(("nonsymmetric KL, trace 1, Zipf counts", partial(cvxnmf.nonsymmetric, counts, trace=1.0), 1e-4))
    cases.append(("nonsymmetric MSE, trace 1, Zipf counts", partial(cvxnmf.nonsymmetric, counts, "mse", trace=1.0), 1e-3))
    cases += [(f"sparse, l1 = 0.1, blocks n = {n}", partial(cvxnmf.sparse, datasets.blocks(n), 0.1), tol) for tol in (1e-4, 1e-6)]
    return cases


def nonsymmetric(scale: Scale) -> list[Table]:
    """Digits, KL with effects, trace="auto", to a certified 1e-3, against thin SVDs and random starts of scikit-learn's NMF."""
    A = datasets.digits()[: 100 if scale.tiny else None]
    works = {
        "one thin SVD": objective.thin_svd(A),
        "cvxnmf": lambda: solvers.ours(cvxnmf.nonsymmetric(A, trace="auto"), 1e-3),
        "scikit-learn NMF, k = 10, 10 random starts": lambda: solvers.sklearn_random(A, 10, 10),
    }
    times, answers = objective.interleaved(works, repeats=3 if scale.full else 1)
    gap = objective.certified_gap(cvxnmf.nonsymmetric(A, trace="auto"), answers["cvxnmf"].X)
    rows = [
        [name, str(spent), objective.ratio(times, name, "one thin SVD"), f"{gap:.1e}" if name == "cvxnmf" else ""]
        for name, spent in times.items()
    ]
    rank = answers["cvxnmf"].rank
    title = f'nonsymmetric(A, trace="auto"), digits {A.shape[0]} x {A.shape[1]}, gap 1e-3, rank {rank}'
    note = "scikit-learn's NMF (its defaults) solves another problem, of fixed rank and without a bound; it is here for its time."
    return [Table(title, ["what", "seconds", "in units of one thin SVD", "certified gap"], rows, note)]


def doubly_nonnegative(scale: Scale) -> list[Table]:
    """The sparse problem, to a certified 1e-4."""
    rows, n = [], scale.pick(20, 250, 1000)
    for name, A in {"blocks": datasets.blocks(n), "points in a square": datasets.near_points(n)}.items():
        for l1, trace in ((0.0, 0.0), (0.1, 0.0), (0.5, 1.0)):
            ours = lambda A=A, l1=l1, trace=trace: solvers.ours(cvxnmf.sparse(A, l1, trace), 1e-4)  # noqa: E731
            works = objective.eigendecompositions(A) | {"ours": ours}
            times, answers = objective.interleaved(works, repeats=1, warm_up=scale.full)
            gap = objective.certified_gap(cvxnmf.sparse(A, l1, trace), answers["ours"].X)
            units = objective.ratio(times, "ours", objective.faster(times))
            rows.append([name, f"{l1:g}", f"{trace:g}", str(times["ours"]), units, f"{gap:.1e}", str(answers["ours"].n_iter)])
    header = [f"graph, n = {n}", "l1", "trace", "seconds", "in units of eigh", "certified gap", "steps"]
    return [Table("sparse(A, l1, trace), gap 1e-4", header, rows)]


def factors(scale: Scale) -> list[Table]:
    """Nonnegative factors of exp(X): columns, errors, seconds, and memory in a process of its own."""
    rows = []
    cases = [(150, 3, 0.5, 1e-2), (2000, 3, 0.5, 1e-2), (2000, 2, 1.0, 1e-3)]
    for n, rank, sigma, tol in cases[: scale.pick(1, 2, 3)]:
        W = datasets.positions(n, rank, sigma)
        spent, factor = objective.seconds(lambda W=W, tol=tol: cvxnmf.exp_factor(W @ W.T, tol=tol))
        told = None if scale.tiny else child.ask("factor", n=n, rank=rank, sigma=sigma, tol=tol)
        errors = [f"{factor.max_relative_error:.1e}", f"{factor.frobenius_error:.1e}"]
        peak = _told(told, 1e6, 0)
        rows.append([str(n), str(rank), f"{sigma:g}", f"{tol:g}", str(factor.U.shape[1]), *errors, f"{spent:.2f}", peak])
    header = ["n", "rank", "spread", "tol", "columns", "largest relative error", "error in norm", "seconds", "peak memory, MB"]
    return [Table("exp_factor(WW'), the default lattice", header, rows)]


SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("factored", {"trace": "auto"}),
    ("accelerated", {"cone": "psd"}),
    ("factored", {"trace": 0.0}),
    ("accelerated", {"trace": "auto"}),
    ("projected-gradient", {"trace": "auto"}),
    ("factored", {"trace": 5.0, "diagonal": "ignore"}),
    ("factored", {"trace": 50.0, "loss": "mse"}),
    ("splitting", {"trace": 50.0, "loss": "mse-paper"}),
]


def memory(scale: Scale) -> list[Table]:
    """Peak memory of a few steps on a block graph, in dense n-by-n arrays."""
    rows, n = [], scale.pick(60, 1200, 1200)
    for method, terms in SETTINGS[: scale.pick(1, 1, len(SETTINGS))]:
        words = ", ".join(f"{name}={value!r}" for name, value in terms.items())
        told = child.ask("dense_solve", n=n, method=method, terms=terms)
        rows.append([method, words, _told(told, 8 * n * n, 1)])
    note = "Growth of the peak during two steps, each in a process of its own."
    return [Table(f"Peak memory at n = {n}, in dense n-by-n float64 arrays", ["method", "problem", "arrays"], rows, note)]


def _told(answer: dict[str, Any] | None, unit: float, places: int) -> str:
    return "not told by this system" if answer is None else f"{answer['peak'] / unit:.{places}f}"
