"""``make bench``: the tables, as ratios measured in one run."""

from __future__ import annotations

import platform
from importlib.metadata import version

import cvxnmf
from benchmarks import datasets, objective, rank_k, solvers


def table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def against_cvxpy() -> None:
    """KL, psd cone, block graph n = 80, to a certified relative gap of 1e-6."""
    A = datasets.blocks(80)
    problem = cvxnmf.symmetric(A, cone="psd", metric="uniform")
    works = {
        "cvxnmf": lambda: solvers.ours(cvxnmf.symmetric(A, cone="psd", metric="uniform"), 1e-6),
        # the loosest power of ten at which SCS reaches the gap: 1e-4 does not
        "cvxpy + SCS": lambda: solvers.cvxpy_psd(A, "SCS", eps_abs=1e-5, eps_rel=1e-5),
    }
    times, answers = objective.interleaved(works, repeats=3)
    times["cvxpy + Clarabel"], answers["cvxpy + Clarabel"] = objective.seconds(lambda: solvers.cvxpy_psd(A, "CLARABEL"))
    rows = [
        [name, f"{spent:.3f}", f"{spent / times['cvxnmf']:.0f}", f"{objective.certified_gap(problem, answers[name]):.1e}"]
        for name, spent in times.items()
    ]
    table("KL on the psd cone, block graph n = 80, gap 1e-6", ["solver", "seconds", "times ours", "certified gap"], rows)


def against_eigendecompositions() -> None:
    """Conditional cone, degree metric, trace="auto", to a certified 1e-4, certificates and set-up included."""
    rows = []
    for name, A in datasets.real_graphs().items():
        works = {
            "eigh": objective.eigendecomposition(A),
            "ours": lambda A=A: solvers.ours(cvxnmf.symmetric(A, trace="auto"), 1e-4),
        }
        times, answers = objective.interleaved(works, repeats=3 if len(A) > 1000 else 5)
        solution = answers["ours"]
        rows.append(
            [
                name,
                str(len(A)),
                f"{times['ours']:.3f}",
                f"{times['ours'] / times['eigh']:.1f}",
                f"{solution.certificate.relative_gap:.1e}",
                str(solution.n_iter),
                str(solution.rank),
            ]
        )
    header = ["graph", "n", "seconds", "in units of eigh", "certified gap", "steps", "rank"]
    table('Conditional cone, degree metric, trace="auto", gap 1e-4', header, rows)


def without_penalty() -> None:
    """Conditional cone with trace = 0, to a certified 1e-4."""
    rows = []
    for name, A in datasets.real_graphs().items():
        if len(A) < 200:
            spent, solution = objective.seconds(lambda A=A: solvers.ours(cvxnmf.symmetric(A), 1e-4))
            gap = f"{solution.certificate.relative_gap:.1e}"
            rows.append([name, f"{spent:.2f}", f"{solution.value:.3f}", gap, str(solution.n_iter), str(solution.rank)])
    table("Conditional cone, trace = 0, gap 1e-4", ["graph", "seconds", "value", "certified gap", "steps", "rank"], rows)


def nonsymmetric() -> None:
    """Digits, KL with effects, trace="auto", to a certified 1e-3, against thin SVDs and random starts of scikit-learn's NMF."""
    A = datasets.digits()
    works = {
        "one thin SVD": objective.thin_svd(A),
        "cvxnmf": lambda: solvers.ours(cvxnmf.nonsymmetric(A, trace="auto"), 1e-3),
        "scikit-learn NMF, k = 10, 10 random starts": lambda: solvers.sklearn_restarts(A, 10, 10),
    }
    times, answers = objective.interleaved(works, repeats=3)
    gap = f"{answers['cvxnmf'].certificate.relative_gap:.1e}"
    rows = [
        [name, f"{spent:.3f}", f"{spent / times['one thin SVD']:.1f}", gap if name == "cvxnmf" else ""]
        for name, spent in times.items()
    ]
    title = f'nonsymmetric(A, trace="auto"), digits {A.shape[0]} x {A.shape[1]}, gap 1e-3, rank {answers["cvxnmf"].rank}'
    table(title, ["what", "seconds", "in units of one thin SVD", "certified gap"], rows)


def doubly_nonnegative() -> None:
    """The sparse problem at n = 1000, to a certified 1e-4."""
    rows = []
    for name, A in {"blocks": datasets.blocks(1000), "points in a square": datasets.near_points(1000)}.items():
        for l1, trace in ((0.0, 0.0), (0.1, 0.0), (0.5, 1.0)):
            works = {
                "eigh": objective.eigendecomposition(A),
                "ours": lambda A=A, l1=l1, trace=trace: solvers.ours(cvxnmf.sparse(A, l1, trace), 1e-4),
            }
            times, answers = objective.interleaved(works, repeats=1)
            solution = answers["ours"]
            units = times["ours"] / times["eigh"]
            gap = f"{solution.certificate.relative_gap:.1e}"
            rows.append([name, f"{l1:g}", f"{trace:g}", f"{times['ours']:.1f}", f"{units:.0f}", gap, str(solution.n_iter)])
    header = ["graph, n = 1000", "l1", "trace", "seconds", "in units of eigh", "certified gap", "steps"]
    table("sparse(A, l1, trace), gap 1e-4", header, rows)


def factors() -> None:
    """Nonnegative factors of exp(X): columns, errors, seconds, and memory in a process of its own."""
    rows = []
    for n, rank, sigma, tol in ((150, 3, 0.5, 1e-2), (2000, 3, 0.5, 1e-2), (2000, 2, 1.0, 1e-3)):
        W = datasets.positions(n, rank, sigma)
        spent, factor = objective.seconds(lambda W=W, tol=tol: cvxnmf.exp_factor(W @ W.T, tol=tol))
        peak = objective.peak_of_factor(n, rank, sigma, tol)
        told = "not told by this system" if peak is None else f"{peak:.0f}"
        errors = [f"{factor.max_relative_error:.1e}", f"{factor.frobenius_error:.1e}"]
        rows.append([str(n), str(rank), f"{sigma:g}", f"{tol:g}", str(factor.U.shape[1]), *errors, f"{spent:.2f}", told])
    header = ["n", "rank", "spread", "tol", "columns", "largest relative error", "error in norm", "seconds", "peak memory, MB"]
    table("exp_factor(WW'), the default lattice", header, rows)


def memory() -> None:
    """Peak memory of a few steps at n = 1200, in dense n-by-n arrays."""
    rows = []
    settings: list[tuple[str, dict[str, object]]] = [
        ("factored", {"trace": "auto"}),
        ("accelerated", {"trace": "auto"}),
        ("projected-gradient", {"trace": "auto"}),
        ("factored", {"trace": 0.0}),
        ("accelerated", {"cone": "psd"}),
        ("factored", {"trace": 5.0, "diagonal": "ignore"}),
        ("factored", {"trace": 50.0, "loss": "mse"}),
        ("splitting", {"trace": 50.0, "loss": "mse-paper"}),
    ]
    for method, terms in settings:
        arrays = objective.peak_arrays(1200, method, terms)
        words = ", ".join(f"{name}={value!r}" for name, value in terms.items())
        rows.append([method, words, "not told by this system" if arrays is None else f"{arrays:.1f}"])
    table("Peak memory at n = 1200, in dense n-by-n float64 arrays", ["method", "problem", "arrays"], rows)


def main() -> None:
    """Print every table."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "cvxpy", "clarabel", "scs", "scikit-learn"))
    print(f"cvxnmf {cvxnmf.__version__}, Python {platform.python_version()}, {packages}")
    against_cvxpy()
    against_eigendecompositions()
    without_penalty()
    nonsymmetric()
    doubly_nonnegative()
    factors()
    memory()
    rank_k.main(table)


if __name__ == "__main__":
    main()
