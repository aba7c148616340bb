"""The house: who may import whom, and what a public name needs."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cvxnmf

ROOMS = [
    "certificates",
    "linalg",
    "results",
    "validation",
    "convex",
    "cp",
    "chunked",
    "nmf",
    "graphs",
    "estimators",
    "io",
    "display",
    "plots",
    "report",
    "paper",
    "cli",
]
SOURCE = Path(cvxnmf.__file__).parent
#: Methods that put a result into something to look at.
SHOWING = re.compile("__str__|_repr_html_|to_[a-z]+|history_frame")


def files(room):
    """The files of a room: one module, or all modules of a package."""
    return sorted((SOURCE / room).rglob("*.py")) or [SOURCE / f"{room}.py"]


def imports(room):
    """Rooms of this package that a room imports when it is loaded, itself left out; display also from inside functions.

    Results and certificates may show themselves: ``__str__``, ``_repr_html_`` and ``to_...`` import display when they are called.
    """
    for path in files(room):
        tree = ast.parse(path.read_text(encoding="utf8"))
        skipped = {
            id(node)
            for block in ast.walk(tree)
            if (isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING")
            or (isinstance(block, ast.FunctionDef) and room in ("certificates", "results") and SHOWING.fullmatch(block.name))
            for node in ast.walk(block)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and id(node) not in skipped and (node.module or "").startswith("cvxnmf"):
                inside = node.module.removeprefix("cvxnmf").removeprefix(".")
                found = [inside.split(".")[0]] if inside else [alias.name for alias in node.names if alias.name in ROOMS]
                yield from (other for other in found if other != room)


def test_every_module_has_its_place():
    modules = {path.stem for path in SOURCE.glob("*.py")} | {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert modules - {"__init__", "__main__"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_stands_above_it(room):
    assert all(ROOMS.index(other) < ROOMS.index(room) for other in imports(room))


def test_the_check_shares_nothing_with_the_rest():
    assert list(imports("certificates")) == []


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "cli"])
def test_only_the_command_line_prints(room):
    trees = [ast.parse(path.read_text(encoding="utf8")) for path in files(room)]
    assert not [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "print"]


@pytest.mark.parametrize("name", cvxnmf.__all__)
def test_public_names_exist_and_explain_themselves(name):
    assert getattr(cvxnmf, name).__doc__
    assert name in dir(cvxnmf)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nmff'"):
        _ = cvxnmf.nmff


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, cvxnmf.cli; print(sorted({'numpy', 'scipy', 'pandas', 'networkx'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
