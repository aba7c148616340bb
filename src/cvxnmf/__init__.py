"""Nonnegative matrix factorisation with a proof: deterministic, globally solved, certified."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as type checkers know it; importing it takes time in which a Ctrl-C would show a traceback
if TYPE_CHECKING:
    from typing import Any

    from cvxnmf import plots, report
    from cvxnmf.certificates import Certificate, CertificateError
    from cvxnmf.convex.certify import certify
    from cvxnmf.convex.doubly_nonnegative import sparse
    from cvxnmf.convex.problem import Problem
    from cvxnmf.convex.rectangular import nonsymmetric
    from cvxnmf.convex.solve import path, solve
    from cvxnmf.convex.symmetric import symmetric
    from cvxnmf.cp.exp_factor import exp_factor
    from cvxnmf.cp.rank_two import factor_rank_two
    from cvxnmf.cp.recursion import recursive
    from cvxnmf.estimators import NMF, GraphPartitioner, MiniBatchNMF, SymmetricNMF, non_negative_factorization
    from cvxnmf.graphs.block_graph import block_graph
    from cvxnmf.graphs.cocluster import cocluster
    from cvxnmf.graphs.label_bounds.verify import verify_labels
    from cvxnmf.graphs.partition import partition
    from cvxnmf.graphs.quality import performance
    from cvxnmf.io.cells import factorize_cells
    from cvxnmf.io.results import load, save
    from cvxnmf.nmf.consensus import consensus
    from cvxnmf.nmf.descent import classical_nmf
    from cvxnmf.nmf.factorize import factorize
    from cvxnmf.nmf.rank_choice import choose_rank
    from cvxnmf.nmf.verify import verify
    from cvxnmf.results import (
        CoClusters,
        ComponentTop,
        Consensus,
        CPFactor,
        Factorization,
        Hierarchy,
        Interrupted,
        Iterate,
        Level,
        Partition,
        RankChoice,
        Solution,
        Status,
        Top,
    )

__version__ = "0.1.0"

__all__ = [
    "CPFactor",
    "Certificate",
    "CertificateError",
    "CoClusters",
    "ComponentTop",
    "Consensus",
    "Factorization",
    "GraphPartitioner",
    "Hierarchy",
    "Interrupted",
    "Iterate",
    "Level",
    "MiniBatchNMF",
    "NMF",
    "Partition",
    "Problem",
    "RankChoice",
    "Solution",
    "Status",
    "SymmetricNMF",
    "Top",
    "block_graph",
    "certify",
    "choose_rank",
    "classical_nmf",
    "cocluster",
    "consensus",
    "exp_factor",
    "factor_rank_two",
    "factorize",
    "factorize_cells",
    "load",
    "non_negative_factorization",
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
    "verify_labels",
]

_ROOMS = {
    "results": (
        "CPFactor",
        "CoClusters",
        "ComponentTop",
        "Consensus",
        "Factorization",
        "Hierarchy",
        "Interrupted",
        "Iterate",
        "Level",
        "Partition",
        "RankChoice",
        "Solution",
        "Status",
        "Top",
    ),
    "certificates": ("Certificate", "CertificateError"),
    "convex.problem": ("Problem",),
    "convex.symmetric": ("symmetric",),
    "convex.rectangular": ("nonsymmetric",),
    "convex.doubly_nonnegative": ("sparse",),
    "convex.certify": ("certify",),
    "convex.solve": ("path", "solve"),
    "cp.exp_factor": ("exp_factor",),
    "cp.rank_two": ("factor_rank_two",),
    "cp.recursion": ("recursive",),
    "nmf.verify": ("verify",),
    "nmf.descent": ("classical_nmf",),
    "nmf.factorize": ("factorize",),
    "nmf.consensus": ("consensus",),
    "io.cells": ("factorize_cells",),
    "nmf.rank_choice": ("choose_rank",),
    "io.results": ("load", "save"),
    "graphs.block_graph": ("block_graph",),
    "graphs.cocluster": ("cocluster",),
    "graphs.label_bounds.verify": ("verify_labels",),
    "graphs.partition": ("partition",),
    "graphs.quality": ("performance",),
    "estimators": ("NMF", "GraphPartitioner", "MiniBatchNMF", "SymmetricNMF", "non_negative_factorization"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}
_MODULES = ("plots", "report")


def _import_public_name(name: str) -> Any:
    """Import a public name when it is first used, so that the command line starts at once."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # type checkers know the names above, and no others
    __getattr__ = _import_public_name


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
