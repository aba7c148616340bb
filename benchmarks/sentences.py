"""Sentences and a table of the pages that are written as a whole from ``prose.json`` and other files of results."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from benchmarks import graph_sizes, prose

#: Where such text stands on a page, and which one it is.
MARKED = re.compile(
    r"(<!-- (lastfm|changed|blocks|dask): written by python -m benchmarks\.figures -->).*?(<!-- end of \2 -->)", re.DOTALL
)
FULL = Path(__file__).with_name("RESULTS-full.md")


def _short(value: float) -> str:
    """Return a share as tables have it, .885."""
    return f"{value:.3f}".removeprefix("0")


def _peer(name: str) -> str:
    """Return what the last full run has of a peer on lastfm."""
    pattern = rf"^\| lastfm, 7,624 nodes \| {name} \| ([\d.]+) \| \d+ \| ([\d.]+) \| ([\d.]+) \|$"
    ((seconds, ari, nmi),) = re.findall(pattern, FULL.read_text(encoding="utf8"), re.MULTILINE)
    return f"{name} ARI {_short(float(ari))} and NMI {_short(float(nmi))} in {seconds} s"


def lastfm() -> str:
    """Return how well and how fast the countries of lastfm are found, ours and the peers'."""
    found, given = (prose.results()["lastfm"][name] for name in ("found", "given"))
    ours = [
        ", ".join(f"{words} {_short(run[words.lower()])}" for words in ("ARI", "NMI", "modularity")) for run in (found, given)
    ]
    return (
        f"`partition` finds {found['clusters']} clusters ({ours[0]}) in {found['seconds']:.1f} s of the processor, and "
        f"with k = {given['clusters']} given ({ours[1]}) in {given['seconds']:.1f} s (`python -m benchmarks.prose lastfm`). "
        f"The peers, in the last full run: {_peer('SpectralClustering')}, {_peer('leidenalg')}."
    )


def changed() -> str:
    """Return what a search from the clusters of before takes."""
    small, modularity, large = (prose.results()["changed"][name] for name in ("small", "modularity", "large"))
    return (
        f"\nWith 3,000 nodes and a fiftieth of the edges replaced it took {small['ratio']:.0%} of the time of a new search, and "
        f'{modularity["ratio"]:.0%} with `objective="modularity"`. With 100,000 nodes and a hundredth of the edges replaced '
        f"it took {large['ratio']:.0%} of the time; {large['moved']:.2%} of the labels changed, while a new search numbers the "
        "clusters anew (`python -m benchmarks.prose changed`).\n"
    )


def blocks() -> str:
    """Return the table of graphs that are worked on in blocks, beside the same graphs in memory."""
    header = "| graph | nodes | edges | clusters | seconds | peak, limit | NMI in blocks, in memory |"
    rows = ["", header, "|---|---|---|---|---|---|---|"]
    for name, run in prose.results()["blocks"].items():
        case, whole = graph_sizes.CASES[name], graph_sizes.results()[name]["ours"]
        words = f"{'LFR' if case.lfr else 'planted'}, {case.mixing:.0%} across"
        sizes = f"{run['nodes']:,} | {run['edges']:,} | {run['clusters']:,} of {run['groups']:,}"
        memory = f"{run['peak'] / 1e6:.0f} MB, {run['limit']} MB"
        rows.append(f"| {words} | {sizes} | {run['processor']:.0f} | {memory} | {run['nmi']:.4f}, {whole['nmi']:.4f} |")
    return "\n".join([*rows, ""])


def dask() -> str:
    """Return the table of graphs in dask data frames, with the peaks of those who take part."""
    header = "| nodes | edges | clusters | seconds | NMI | client, before and at its peak | scheduler | workers |"
    rows = ["", header, "|---|---|---|---|---|---|---|---|"]
    for run in prose.results()["dask"].values():
        sizes = f"{run['nodes']:,} | {run['edges']:,} | {run['clusters']:,} of {run['groups']:,}"
        names = ("before", "client", "scheduler")
        before, client, scheduler, *workers = (f"{peak / 1e6:.0f}" for peak in (*map(run.get, names), *run["workers"]))
        memory = f"{before}, {client} MB | {scheduler} MB | {', '.join(workers)} MB"
        rows.append(f"| {sizes} | {run['seconds']:.0f} | {run['nmi']:.4f} | {memory} |")
    return "\n".join([*rows, ""])


TEXTS: dict[str, Callable[[], str]] = {"lastfm": lastfm, "changed": changed, "blocks": blocks, "dask": dask}


def written(page: str) -> str:
    """Return a page with its marked text as it should be."""
    return MARKED.sub(lambda found: f"{found[1]}{TEXTS[found[2]]()}{found[3]}", page)
