"""The pages: code runs and prints what stands below it, commands are understood, links lead somewhere, the site can be built."""

import ast
import inspect
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as xml
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import cvxnmf
from cvxnmf import cli, plots, report
from cvxnmf.io.formats import WORDS
from cvxnmf.io.networks import READERS

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "paper/README.md", "benchmarks/RESULTS.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
BLOCK = re.compile(r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
UNRUN = re.compile(r"^```py\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"""(?:\]\(|src="|srcset="|href="|^```\{image\} )(?!https?:|mailto:|#)([^)"\s]+)""", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
#: Gaps that are nothing but rounding, or nearly.
TINY = re.compile(r"\b\d(?:\.\d+)?e-(?:0[6-9]|[1-9]\d)\b")
#: Made when the site is built.
BUILT = ("gallery/",)


def text(page):
    return page.read_text(encoding="utf8")


def name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(text(page))], ids=name)
def test_a_page_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code, expected in BLOCK.findall(text(page)):
        out = StringIO()
        with redirect_stdout(out):
            exec(compile(code, name(page), "exec"), names)
        assert shown(out.getvalue()) == shown(expected)


def shown(printed):
    """The lines as a person reads them; what is below a millionth differs from machine to machine."""
    return [TINY.sub("tiny", line.rstrip()) for line in printed.strip().splitlines()]


def test_the_pages_have_code():
    assert sum(len(BLOCK.findall(text(page))) for page in PAGES) >= 20


@pytest.mark.parametrize("page", [page for page in PAGES if UNRUN.search(text(page))], ids=name)
def test_code_that_is_not_run_is_python(page):
    for code in UNRUN.findall(text(page)):
        ast.parse(code)


@pytest.mark.parametrize("page", [page for page in PAGES if SHELL.search(text(page))], ids=name)
def test_commands_are_understood(page):
    targets = set(re.findall(r"^([a-z-]+):", text(ROOT / "Makefile"), re.MULTILINE))
    lines = [line for block in SHELL.findall(text(page)) for line in block.splitlines() if line.strip()]
    for line in lines:
        program, *arguments = shlex.split(line, comments=True)
        if program == "cvxnmf":
            cli._parser().parse_args(arguments)  # exits where it does not understand
        elif program == "make":
            assert set(arguments) <= targets
        elif program == "python" and arguments[0].endswith(".py"):
            assert (ROOT / arguments[0]).exists()
        else:
            assert program in {"python", "pip", "git"}


def anchors(page):
    """Names of the headings as GitHub and the site make them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(text(page))}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_inside_the_project_resolve(page):
    for target in LINK.findall(text(page)):
        path, _, anchor = target.partition("#")
        if path.startswith(BUILT):
            continue
        found = page.parent / path
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_every_page_is_in_the_contents():
    listed = set(re.findall(r"^([a-z-]+)$", text(ROOT / "docs/index.md"), re.MULTILINE))
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"} <= listed


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "get-started.md"], ids=name)
def test_every_format_of_graphs_is_named(page):
    words = [WORDS[kind].removesuffix(" file").split()[-1] for kind in READERS]
    assert [word for word in words if word not in text(page)] == []


def test_every_public_name_is_in_the_reference():
    import cvxnmf

    reference = text(ROOT / "docs/api.md").split()
    assert [public for public in cvxnmf.__all__ if not any(line.split(".")[0] == public for line in reference)] == []


def test_the_citation_has_the_version_of_the_package():
    import cvxnmf

    assert f"\nversion: {cvxnmf.__version__}\n" in text(ROOT / "CITATION.cff")


def test_the_picture_is_drawn_by_its_script(tmp_path):
    pytest.importorskip("networkx")
    script = ROOT / "docs/pictures/idea.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    for picture in ("idea-light.svg", "idea-dark.svg"):
        drawn, kept = (xml.fromstring(text(folder / picture)) for folder in (tmp_path, script.parent))
        assert ["".join(part.itertext()) for part in drawn] == ["".join(part.itertext()) for part in kept]
        assert (script.parent / picture).stat().st_size < 40_000


@pytest.mark.parametrize("number", [1, 3, 5])
def test_the_table_of_hard_problems_is_what_its_script_writes(number):
    plt, script = pytest.importorskip("matplotlib.pyplot"), runpy.run_path(str(ROOT / "docs/pictures/solving.py"))
    figure, panels = plt.subplots(1, 2)
    drawn = script["row_of_table"](script["problems"]()[number], *panels)
    plt.close(figure)
    kept = text(ROOT / "docs/pictures/solving-table.txt").splitlines()[2 + number]
    (name, *numbers), (same, *others) = (line.strip("| ").split(" | ") for line in (drawn, kept))
    assert name == same
    for ours, theirs in zip(numbers[:4], others[:4], strict=True):  # the order of magnitude, whatever the machine rounds
        assert float(theirs) / 4 <= float(ours) <= 4 * float(theirs)


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    for package in ("sphinx", "myst_parser", "sphinx_gallery", "sphinx_copybutton", "furo"):
        pytest.importorskip(package)
    for folder in ("docs", "examples", "benchmarks", "paper"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("api", "gallery", "__pycache__", ".envs"))
    for page in ROOT.glob("*.md"):
        shutil.copy(page, tmp_path)
    # The gallery's examples have tests of their own and are not run here.
    options = ["-W", "--keep-going", "-q", "-D", "sphinx_gallery_conf.plot_gallery=0", "-d", str(tmp_path / "trees")]
    command = [sys.executable, "-m", "sphinx", "-b", "html", *options, str(tmp_path / "docs"), str(tmp_path / "site")]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= 40
    outside = re.compile(r"""<(?:script|link|img|source)[^>]+(?:src|href|srcset)="(?:https?:)?//""")
    assert [page.name for page in pages if outside.search(text(page))] == []


def test_the_recipe_of_conda_needs_what_the_package_needs():
    """The packages, those of the extras as limits for whoever has them, the version of Python, and the command."""
    project, recipe = tomllib.loads(text(ROOT / "pyproject.toml"))["project"], text(ROOT / "recipe/meta.yaml")
    (least,) = re.findall(r'set python_min = "(.+)"', recipe)
    listed = set(re.findall(r"^    - (\S+ >=\S+)$", recipe.replace("{{ python_min }}", least), re.MULTILINE))
    extras = [needed for name in ("app", "dask", "bio") for needed in project["optional-dependencies"][name]]
    others = {"matplotlib": "matplotlib-base", "dask": "dask-core"}
    for requirement in [*project["dependencies"], *extras, f"python{project['requires-python']}"]:
        name, version = re.sub(r"\[.*\]", "", requirement).split(">=")
        assert f"{others.get(name, name)} >={version}" in listed
    assert all(f"- {name} = {place}\n" in recipe for name, place in project["scripts"].items())
    assert f'set version = "{cvxnmf.__version__}"' in recipe


def test_every_function_of_the_reference_has_an_example():
    import cvxnmf

    functions = [getattr(cvxnmf, name) for name in cvxnmf.__all__] + [
        getattr(module, name) for module in (cvxnmf.plots, cvxnmf.report) for name in module.__all__
    ]
    assert [made.__name__ for made in functions if inspect.isfunction(made) and ">>>" not in made.__doc__] == []


def test_every_public_name_has_an_example():
    """The page of the API reference of each class and function begins with its docstring."""
    things = {name: getattr(cvxnmf, name) for name in cvxnmf.__all__}
    things |= {f"{module.__name__}.{name}": getattr(module, name) for module in (plots, report) for name in module.__all__}
    without = [name for name, thing in things.items() if callable(thing) and ">>>" not in (thing.__doc__ or "")]
    assert without == []
