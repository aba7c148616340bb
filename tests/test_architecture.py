"""The house: who may import whom, and what a public name needs."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import cvxnmf

ROOMS = [
    "certificates",
    "linalg",
    "results",
    "typing",
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
#: Most lines of a module, and of a function's body.
LARGEST_MODULE, LARGEST_FUNCTION = 400, 50
#: Methods that put a result into something to look at.
SHOWING = re.compile("__str__|__repr__|_sizes?|_repr_html_|to_[a-z]+|history_frame")
#: Participles that name functions: decorators, which stand above what they compile, and the transpose, as the field calls it.
PARTICIPLES = {"compiled", "inlined", "transposed"}


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf8"))


def files(room):
    """The files of a room: one module, or all modules of a package."""
    return sorted((SOURCE / room).rglob("*.py")) or [SOURCE / f"{room}.py"]


def imports(room):
    """Rooms of this package that a room imports when it is loaded, itself left out; display also from inside functions.

    Results and certificates may show themselves: ``__str__``, ``__repr__``, ``_repr_html_`` and ``to_...`` import it.
    """
    for path in files(room):
        tree = parsed(path)
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


def test_types_are_shipped():
    assert (SOURCE / "py.typed").exists()


def test_the_tree_shows_the_architecture():
    folders = [path for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"]
    loose = {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"}
    assert len(folders) <= 16
    assert len(loose) <= 4


MODULES = sorted(SOURCE.rglob("*.py"))


def code_lines(function):
    """Lines of a function's body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_modules_and_functions_are_short_and_named_for_what_they_do():
    for path in MODULES:
        text = path.read_text(encoding="utf8")
        functions = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)]
        assert len(text.splitlines()) <= LARGEST_MODULE, path
        assert [function.name for function in functions if code_lines(function) > LARGEST_FUNCTION] == [], path
        assert path.stem not in {"utils", "util", "helpers", "misc", "common"}


def is_bare_participle(function):
    """Whether a name is a single participle; what answers yes or no may be one, as in ``budget.exhausted``."""
    name, answers = function.name.strip("_"), ast.unparse(function.returns) if function.returns else ""
    return re.fullmatch("[a-z]+[^e]ed", name) is not None and name not in PARTICIPLES and answers != "bool"


def test_functions_say_what_they_do_or_return():
    """``_moved`` leaves open what has moved, and whether it has: `move_nodes` and `nodes_by_cluster` say it."""
    functions = [(path, node) for path in MODULES for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)]
    assert [f"{path.relative_to(SOURCE)}: {node.name}" for path, node in functions if is_bare_participle(node)] == []


def test_losses_are_compared_by_name_nowhere():
    """What differs between losses is known by the loss; a name is looked up in a table."""
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Compare) and ast.unparse(node.left).split(".")[-1] == "loss":
                assert not any(isinstance(other, ast.Constant) and isinstance(other.value, str) for other in node.comparators), (
                    path
                )


def test_the_check_shares_nothing_with_the_rest():
    assert list(imports("certificates")) == []


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "cli"])
def test_only_the_command_line_prints(room):
    trees = [parsed(path) for path in files(room)]
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
