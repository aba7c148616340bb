"""Nonnegative matrix factorisation with a proof: deterministic, globally solved, certified."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cvxnmf import plots, report
    from cvxnmf.certificates import certify, verify
    from cvxnmf.checking import Certificate, CertificateError
    from cvxnmf.classical import classical_nmf
    from cvxnmf.completely_positive import exp_factor, factor_rank_two
    from cvxnmf.estimators import NMF, GraphPartitioner, SymmetricNMF
    from cvxnmf.factorization import factorize
    from cvxnmf.graphs import block_graph, partition, performance
    from cvxnmf.problems import Problem, nonsymmetric, sparse, symmetric
    from cvxnmf.recursion import recursive
    from cvxnmf.results import CPFactor, Factorization, Interrupted, Iterate, Level, Partition, Solution, Status
    from cvxnmf.saving import load, save
    from cvxnmf.solvers import path, solve

__version__ = "0.1.0"

__all__ = [
    "CPFactor",
    "Certificate",
    "CertificateError",
    "Factorization",
    "GraphPartitioner",
    "Interrupted",
    "Iterate",
    "Level",
    "NMF",
    "Partition",
    "Problem",
    "Solution",
    "Status",
    "SymmetricNMF",
    "block_graph",
    "certify",
    "classical_nmf",
    "exp_factor",
    "factor_rank_two",
    "factorize",
    "load",
    "nonsymmetric",
    "partition",
    "path",
    "performance",
    "plots",
    "recursive",
    "report",
    "save",
    "solve",
    "sparse",
    "symmetric",
    "verify",
]

_ROOMS = {
    "results": ("CPFactor", "Factorization", "Interrupted", "Iterate", "Level", "Partition", "Solution", "Status"),
    "checking": ("Certificate", "CertificateError"),
    "problems": ("Problem", "nonsymmetric", "sparse", "symmetric"),
    "certificates": ("certify", "verify"),
    "solvers": ("path", "solve"),
    "completely_positive": ("exp_factor", "factor_rank_two"),
    "classical": ("classical_nmf",),
    "factorization": ("factorize",),
    "recursion": ("recursive",),
    "saving": ("load", "save"),
    "graphs": ("block_graph", "partition", "performance"),
    "estimators": ("NMF", "GraphPartitioner", "SymmetricNMF"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}
_MODULES = ("plots", "report")


def _imported(name: str) -> Any:
    """Import a public name when it is first used, so that the command line starts at once."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # type checkers know the names above, and no others
    __getattr__ = _imported


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
