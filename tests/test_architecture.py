"""The house: who may import whom, and what a public name needs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cvxnmf

ROOMS = [
    "checking",
    "views",
    "points",
    "results",
    "validation",
    "losses",
    "spectra",
    "streaming",
    "edges",
    "blocks",
    "cones",
    "effects",
    "problems",
    "certificates",
    "methods",
    "solvers",
    "coarsening",
    "completely_positive",
    "kernels",
    "starts",
    "classical",
    "block_factorization",
    "stages",
    "recursion",
    "factorization",
    "graphs",
    "saving",
    "files",
    "codes",
    "estimators",
    "report",
    "plots",
    "reproduction",
    "cli",
]
SOURCE = Path(cvxnmf.__file__).parent


def files(room):
    """The files of a room: one module, or all modules of a package."""
    return sorted((SOURCE / room).glob("*.py")) or [SOURCE / f"{room}.py"]


def imports(room):
    """Rooms of this package that a room imports when it runs (not only for type checks), itself left out."""
    for path in files(room):
        tree = ast.parse(path.read_text(encoding="utf8"))
        typing_only = {
            id(node)
            for block in ast.walk(tree)
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
            for node in ast.walk(block)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and id(node) not in typing_only and (node.module or "").startswith("cvxnmf"):
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
    assert list(imports("checking")) == []


def test_losses_and_cones_do_not_know_each_other():
    assert "cones" not in list(imports("losses"))
    assert "losses" not in list(imports("cones"))


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "cli"])
def test_only_the_command_line_prints(room):
    trees = [ast.parse(path.read_text(encoding="utf8")) for path in files(room)]
    assert not [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "print"]


@pytest.mark.parametrize("name", cvxnmf.__all__)
def test_public_names_exist_and_explain_themselves(name):
    assert getattr(cvxnmf, name).__doc__
    assert name in dir(cvxnmf)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nmf'"):
        _ = cvxnmf.nmf


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, cvxnmf.cli; print(sorted({'numpy', 'scipy', 'pandas', 'networkx'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
