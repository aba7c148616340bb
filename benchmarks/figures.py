"""The figures of the pages, taken from the files of results: ``python -m benchmarks.figures`` writes them anew.

They come from ``benchmarks/RESULTS.md``, or from ``prose.json`` and ``RESULTS-full.md`` where that has them not. A figure stands
between two pieces of text of its page; the table of the README is written as a whole, and tables between marks are copied. The
tests compare what the pages say with what would be written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import prose, sentences

ROOT = Path(__file__).parent.parent
#: A table of the results file with its note, by the beginning of its heading, and the pages that have such copies.
COPY = re.compile(r"(<!-- from benchmarks/RESULTS.md: (.+?) -->\n).*?(<!-- end of the copy -->)", re.DOTALL)
COPYING = ("docs/scale.md", "docs/certificates.md")
BEGIN, END = "<!-- figures: written by python -m benchmarks.figures -->\n", "<!-- end of figures -->"


class Results:
    """The tables of a results file: rows as dictionaries, by the beginning of their heading."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sections = dict(re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", text, re.DOTALL | re.MULTILINE))

    def section(self, heading: str) -> str:
        """Return what stands under the one heading that begins so."""
        (body,) = (body for name, body in self.sections.items() if name.startswith(heading))
        return body.strip()

    def rows(self, heading: str) -> list[dict[str, str]]:
        """Return the rows of the one table whose heading begins so."""
        header, _, *lines = (line for line in self.section(heading).splitlines() if line.startswith("|"))
        names = [cell.strip() for cell in header.strip("|").split("|")]
        return [dict(zip(names, (cell.strip() for cell in line.strip("|").split("|")), strict=True)) for line in lines]

    def number(self, heading: str, column: str, *cells: str) -> float:
        """Return the first number in a column of the one row that has these cells."""
        rows = (row for row in self.rows(heading) if set(cells) <= set(row.values()))
        return float(re.search(r"-?[\d.]+(?:e-?\d+)?", next(rows)[column].replace(",", ""))[0])  # type: ignore[index]

    def seconds(self, heading: str, column: str, *cells: str) -> float:
        """Return the number in brackets of the one row that has these cells."""
        rows = (row for row in self.rows(heading) if set(cells) <= set(row.values()))
        return float(re.search(r"\(([\d.]+)\)", next(rows)[column])[1])  # type: ignore[index]


class Figure(NamedTuple):
    """A figure on a page: the text before and after it, and what it is."""

    page: str
    before: str
    after: str
    value: Callable[[Results], str]


def share(value: float) -> str:
    """Return a number below one as tables have it, .885."""
    return f"{value:.3f}".removeprefix("0")


def rounded(value: float) -> str:
    """Return a number to two digits, for words such as "some 45 times"."""
    return f"{float(f'{value:.2g}'):g}"


def best(*values: float, show: Callable[[float], str] = share, least: bool = False) -> list[str]:
    """Return numbers as text, the best ones bold."""
    top = (min if least else max)(values)
    return [f"**{show(value)}**" if value == top else show(value) for value in values]


OURS, GIVEN, LEIDEN, SPECTRAL = "cvxnmf, k found", "cvxnmf, k given", "leidenalg", "SpectralClustering"
PLANTED, REAL, FAMILIES = "Agreement with planted", "Agreement with the labels", "Clusters by family"
THOUSAND, CONVEX, DEFAULT = "Partition of a planted graph, n = 1,000", "KL on the psd cone", "NMF default against"


def comparison(results: Results) -> Iterator[str]:
    """Yield the lines of the README's table."""
    yield "| | cvxnmf | others |"
    yield "|---|---|---|"
    yield "| same answer every time | yes | with a seed |"
    yield "| bound for *any* partition | yes | no |"
    yield "| bound for *any* NMF of rank k | yes (loose for many components) | no |"
    yield "| number of clusters | found or given | Leiden: found; spectral: given |"
    for kind in ("even", "heavy-tailed"):
        means = [
            results.number(PLANTED, "mean ARI", f"n = 500, k = 5, {kind} degrees", name) for name in (OURS, LEIDEN, SPECTRAL)
        ]
        ours, leiden, spectral = best(*means)
        yield f"| planted groups, {kind} degrees (ARI) | {ours} | Leiden {leiden}, spectral {spectral} |"
    for graph in ("karate, 34 nodes", "polbooks, 105 nodes", "football, 115 nodes"):
        ours, leiden = best(*(results.number(REAL, "ARI", graph, name) for name in (OURS, LEIDEN)))
        yield f"| {graph}, number found (ARI) | {ours} | Leiden {leiden} |"
    for size in ("small", "large"):
        family = f"LFR, n = 1,000, {size} communities"
        ours, leiden = best(*(results.number(FAMILIES, "AMI (seconds)", family, name) for name in (OURS, LEIDEN)))
        yield f"| LFR graphs, {size} communities (AMI) | {ours} | Leiden {leiden} |"
    ours, leiden = best(
        *(results.number(FAMILIES, "AMI (seconds)", "noise", name) for name in (OURS, LEIDEN)), show="{:.0%}".format
    )
    yield f"| pure noise left in one piece | {ours} | Leiden {leiden} |"
    names = ("cvxnmf.partition, k found", LEIDEN, SPECTRAL)
    times = (results.number(THOUSAND, "seconds", "all", name) for name in names)
    ours, leiden, spectral = best(*times, show="{:.2f} s".format, least=True)
    yield f"| graph of 1,000 nodes | {ours} | Leiden {leiden}, spectral {spectral} |"
    loss, fits = (results.number(DEFAULT, column, "digits", "10", "MSE") for column in ("loss / one fit", "fits"))
    ours = best(loss, 1.0, least=True)[0]
    yield f"| digits, 10 components: loss of the default NMF | {ours} in {fits:.1f} fits | scikit-learn 1 in 1 fit |"
    times = (results.number(CONVEX, "seconds", name) for name in ("cvxnmf", "cvxpy + SCS"))
    ours, peer = best(*times, show="{:.2g} s".format, least=True)
    yield f"| the paper's convex problem, n = 80 | {ours} | cvxpy + SCS {peer} |"
    yield "| missing values, weights | yes | scikit-learn: no |"
    yield "| every beta divergence, streams | yes | scikit-learn: yes |"
    yield "| millions of nodes or rows | [in memory, from files, on Dask](docs/scale.md) | Leiden, `MiniBatchNMF`: yes |"


def _cell(heading: str, column: str, *cells: str) -> Callable[[Results], str]:
    """Return a number as the table has it."""
    return lambda results: f"{results.number(heading, column, *cells):g}"


def most_fits(results: Results) -> str:
    """Return the longest time of the default NMF in units of one fit of scikit-learn."""
    return f"{max(float(row['fits'].rstrip('*')) for row in results.rows(DEFAULT)):.1f}"


def minutes(results: Results) -> str:
    """Return how many minutes the run took."""
    return f"{int(re.findall('It took ([0-9]+) s', results.text)[0]) / 60:.0f}"


def times_leiden(results: Results) -> str:
    """Return how many times longer the real graphs take than with leidenalg."""
    ours, leiden = (results.seconds(FAMILIES, "AMI (seconds)", "real graphs with labels", name) for name in (OURS, LEIDEN))
    return rounded(ours / leiden)


FOUND, KNOWN, UNITS = "cvxnmf.partition, k found", "cvxnmf.partition, k given", "in units of SpectralClustering"
COMING, BENCHMARKS, README = "docs/coming-from.md", "docs/benchmarks.md", "README.md"
PROOF = "The certificate of a default NMF"
FIGURES = (
    Figure(COMING, "At n = 80 cvxnmf is ", " times faster than SCS", _cell(CONVEX, "times ours", "cvxpy + SCS")),
    Figure(COMING, "faster than SCS and ", " times faster than Clarabel", _cell(CONVEX, "times ours", "cvxpy + Clarabel")),
    Figure(COMING, "with 1,000 nodes it takes ", " times as long with the number found", _cell(THOUSAND, UNITS, FOUND, "all")),
    Figure(COMING, "with the number found, and ", " times with the number given", _cell(THOUSAND, UNITS, KNOWN, "all")),
    Figure(BENCHMARKS, "at n = 1,000 it takes ", " times as long as spectral clustering", _cell(THOUSAND, UNITS, FOUND, "all")),
    Figure(BENCHMARKS, "with the number found, ", " times with the number given", _cell(THOUSAND, UNITS, KNOWN, "all")),
    Figure(BENCHMARKS, "and Leiden ", " times; both prove nothing", _cell(THOUSAND, UNITS, LEIDEN, "all")),
    Figure(
        BENCHMARKS,
        "The bound of a general NMF is loose**: ",
        "% with 6 components of the digits",
        lambda results: f"{results.number('factorize against the best of 10', 'certified gap', 'digits', '6'):.0f}",
    ),
    *(
        Figure(page, before, "% ", lambda results: f"{results.number(PROOF, 'certified gap', 'digits', '10'):.0f}")
        for page, before in ((README, "with ten components leaves "), (BENCHMARKS, "with 6 components of the digits, "))
    ),
    Figure(README, "spectra of the Samson image to ", " degrees", lambda _: f"{prose.results()['samson']['degrees']:.1f}"),
    Figure(BENCHMARKS, "`make bench` (", " minutes", minutes),
    Figure(BENCHMARKS, "or lower, in at most ", " times", most_fits),
    Figure("README.md", "on the real graphs of the benchmark it is ", " times faster", times_leiden),
    Figure(COMING, "on the real graphs of the benchmark it is ", " times faster", times_leiden),
)


def written_with(figures: Sequence[Figure], results: Results) -> dict[str, str]:
    """Return the pages of these figures with what they should say."""
    written = {page: (ROOT / page).read_text(encoding="utf8") for page in {figure.page for figure in figures}}
    for figure in figures:
        pattern = re.compile(f"({re.escape(figure.before)})\\S+?({re.escape(figure.after)})")
        if len(pattern.findall(written[figure.page])) != 1:
            raise ValueError(f"{figure.page} must say {figure.before!r}, a figure and {figure.after!r} once.")
        value = figure.value(results)
        written[figure.page] = pattern.sub(lambda found, value=value: f"{found[1]}{value}{found[2]}", written[figure.page])
    return written


def pages(results: Results) -> dict[str, str]:
    """Return all pages with their figures as they should be, the README with its table."""
    written = written_with(FIGURES, results)
    before, _, rest = written["README.md"].partition(BEGIN)
    written["README.md"] = f"{before}{BEGIN}" + "\n".join(comparison(results)) + f"\n{END}{rest.partition(END)[2]}"
    for page in COPYING:
        text = written.get(page) or (ROOT / page).read_text(encoding="utf8")
        written[page] = COPY.sub(lambda found: f"{found[1]}{results.section(found[2])}\n{found[3]}", text)
    return {page: sentences.written(text) for page, text in written.items()}


def read_results() -> Results:
    """Return the tables of the last run."""
    return Results((ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf8"))


if __name__ == "__main__":
    for page, text in pages(read_results()).items():
        (ROOT / page).write_text(text, encoding="utf8")
