"""``make bench``: all tables, printed and written to RESULTS.md; with ``--full`` the slow cases too, to RESULTS-full.md."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    communities,
    convex,
    datasets,
    families,
    huge,
    labels,
    nmf_limits,
    one_fit,
    out_of_core,
    rank_k,
    rank_k_peers,
    report,
    scaling,
    startup,
)
from benchmarks.report import Table
from benchmarks.scale import Scale

TABLES: dict[str, Callable[[Scale], list[Table]]] = {
    "cvxpy": convex.against_cvxpy,
    "large-graphs": scaling.large_graphs,
    "growth": scaling.growth,
    "huge-graphs": huge.growth,
    "against-leiden": huge.against_leiden,
    "partition": communities.speed,
    "real-quality": communities.real_quality,
    "planted-quality": communities.planted_quality,
    "families": families.families,
    "labels": labels.proofs,
    "small-graphs": convex.real_graphs,
    "hard-problems": convex.hard_problems,
    "nonsymmetric": convex.nonsymmetric,
    "doubly-nonnegative": convex.doubly_nonnegative,
    "exp-factor": convex.factors,
    "one-fit": one_fit.default,
    "one-fit-cd": one_fit.single_descent,
    "nmf-threads": nmf_limits.threads,
    "nmf-kernels": nmf_limits.kernels,
    "nmf-races": nmf_limits.races,
    "nmf-proofs": nmf_limits.proofs,
    "rank-k-speed": rank_k.speed,
    "rank-k-symmetric": rank_k.symmetric,
    "rank-k-quality": rank_k.quality,
    "rank-k-peers": rank_k_peers.same_start,
    "out-of-core": out_of_core.sweeps,
    "karateclub": rank_k_peers.symmetric_peer,
    "start-up": startup.imports,
    "first-calls": startup.first_calls,
    "memory": convex.memory,
}


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the slow cases too, and peers in environments of their own")
    parser.add_argument("--only", nargs="+", choices=list(TABLES), help="some tables only; nothing is written")
    return parser.parse_args(words)


def measured(names: list[str], scale: Scale) -> list[Table]:
    """The tables asked for, each printed as soon as it is known."""
    found = []
    for name in names:
        began, worked = time.perf_counter(), sum(os.times()[:4])
        tables = TABLES[name](scale)
        for table in tables:
            print(table.markdown(), flush=True)
        spent, worked = time.perf_counter() - began, sum(os.times()[:4]) - worked
        print(f"{name}: {spent:.1f} s, {worked:.1f} s of processors", file=sys.stderr, flush=True)
        found += tables
    return found


def main() -> None:
    """Measure, print, write."""
    asked = arguments()
    scale = Scale.FULL if asked.full else Scale.QUICK
    facts = report.machine()  # before peers bring libraries of their own
    print(f"{facts}\n", flush=True)
    began = time.perf_counter()
    tables = measured(asked.only or list(TABLES), scale)
    spent = time.perf_counter() - began
    print(f"All in {spent:.0f} s.", file=sys.stderr)
    if asked.only is None:
        write(tables, scale, f"It took {spent:.0f} s. {facts}", Path(__file__).parent)


def write(tables: list[Table], scale: Scale, facts: str, folder: Path) -> None:
    """The report and its pictures beside this file."""
    suffix = "-full" if scale.full else ""
    pictures = f"pictures{suffix}"
    report.save_pictures(tables, folder / pictures)
    text = report.document(tables, scale.value, facts, pictures, datasets.absent_files())
    (folder / f"RESULTS{suffix}.md").write_text(text, encoding="utf8")


if __name__ == "__main__":
    main()
