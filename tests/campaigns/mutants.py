"""Mutation testing of the trusted kernel: ``python -m campaigns.mutants --seconds 600 [modules]``, from the folder `tests`.

Every comparison, sign, factor, number, condition and refusal of the kernel is changed in turn; a mutant that gives the same
verdicts on the battery survives, and is shown. Mutants run in forked processes, which share the imports of numpy and scipy.
"""

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import os
import pickle
import random
import resource
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import numpy  # noqa: F401, ICN001
import pandas  # noqa: F401, ICN001
import pytest
import scipy.linalg
import scipy.sparse.csgraph
import scipy.sparse.linalg
import scipy.special  # noqa: F401

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))
KERNEL = Path(importlib.util.find_spec("cvxnmf").origin).parent / "certificates"
SWAPS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
TWINS = {"max": "min", "min": "max", "any": "all", "all": "any", "maximum": "minimum", "minimum": "maximum"}
#: A mutant may take this many seconds of the processor.
PATIENCE = 60
#: Modules of bounds for labels, which have cases of their own.
LABELS = ("label", "pair_")
LABEL_KERNELS = "certificates/test_label_kernels.py"
#: Tests that judge what the battery lets live, by how modules begin; none may take long.
TESTS_OF = {
    LABELS: ("certificates/test_labels.py",),
    ("krylov", "leading"): ("campaigns/test_kernel.py", "certificates/test_krylov.py"),
    ("matrix_free",): ("certificates/test_matrix_free_bounds.py",),
    ("row_chunks",): ("certificates/test_chunk_summaries.py",),
    ("grouped",): ("certificates/test_grouped_bounds.py",),
    ("",): (
        "campaigns/test_kernel.py",
        "certificates/test_rank_bounds.py",
        "certificates/test_nonsymmetric_bounds.py",
        "certificates/test_statement.py",
        "certificates/test_certificate.py",
    ),
}


def mutations(tree):
    """Functions that each change a tree in one place, with the line and what is changed."""
    for number, node in enumerate(ast.walk(tree)):
        for change in _changes(node):
            yield number, change, getattr(node, "lineno", 0)


def _changes(node):
    """The ways in which a node can be changed."""
    if isinstance(node, ast.Compare):
        return [f"compare {index}" for index, op in enumerate(node.ops) if type(op) in SWAPS]
    if isinstance(node, ast.BoolOp | ast.BinOp | ast.AugAssign) and type(node.op) in SWAPS:
        return ["operator"]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        return ["drop"]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return ["zero" if node.value else "one"]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return ["negate"]
    if isinstance(node, ast.Name | ast.Attribute) and (node.id if isinstance(node, ast.Name) else node.attr) in TWINS:
        return ["twin"]
    return ["skip"] if isinstance(node, ast.Raise) else []


def mutate(tree, number, change):
    """A copy of the tree with one change."""
    tree = copy.deepcopy(tree)
    node = list(ast.walk(tree))[number]
    if change.startswith("compare"):
        index = int(change.split()[1])
        node.ops[index] = SWAPS[type(node.ops[index])]()
    elif change == "operator":
        node.op = SWAPS[type(node.op)]()
    elif change == "drop":
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand, lineno=node.lineno, col_offset=0)
    elif change in ("zero", "one"):
        node.value = type(node.value)(change == "one")
    elif change == "negate":
        node.value = not node.value
    elif change == "twin":
        name = "id" if isinstance(node, ast.Name) else "attr"
        setattr(node, name, TWINS[getattr(node, name)])
    elif change == "skip":
        for parent in ast.walk(tree):
            for field in ("body", "orelse", "handlers"):
                block = getattr(parent, field, None)
                if isinstance(block, list) and node in block:
                    block[block.index(node)] = ast.Pass(lineno=node.lineno, col_offset=0)
    return ast.fix_missing_locations(tree)


class Loader(importlib.abc.Loader, importlib.abc.MetaPathFinder):
    """Imports one module of the kernel from a changed tree."""

    def __init__(self, module, tree):
        self.module, self.tree = module, tree

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name == self.module else None

    def exec_module(self, module):
        exec(compile(self.tree, self.module, "exec"), module.__dict__)


def survives(module, tree, judge, bare=True):
    """Whether a judge finds nothing wrong with a mutant, in a process of its own; `bare`: with the kernel only."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        try:
            sys.meta_path.insert(0, Loader(module, tree))
            if bare:  # nothing else has to be imported
                sys.modules["cvxnmf"] = types.ModuleType("cvxnmf")
                sys.modules["cvxnmf"].__path__ = [str(KERNEL.parent)]
            os._exit(0 if judge() else 1)
        except BaseException:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def pass_tests(files, *options):
    """Whether tests pass."""
    files = [str(TESTS / file) for file in files]
    return pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--assert=plain", "-m", "", *options, *files]) == 0


def judges(name, cases):
    """Who looks for what is wrong with a module, the fastest first, and whether they need the kernel only."""
    from campaigns.battery import verdicts  # which imports the kernel in the processes of mutants only

    of_labels = name.startswith(LABELS)
    chosen = [case for case in cases if name in COMMON or (case.statement["form"] == "labels") is of_labels]
    yield lambda: next(verdicts(chosen), None) is None, True
    if of_labels:
        yield lambda: pass_tests([LABEL_KERNELS], "--noconftest", "-c", os.devnull), True
    files = next(files for beginnings, files in TESTS_OF.items() if name.startswith(beginnings))
    yield lambda: pass_tests(files), False


def run(name, cases, until, seed, with_tests):
    """Try the mutants of a module in random order; return how many there are, how many were tried, and how many survive."""
    text = (KERNEL / f"{name}.py").read_text()
    tree, module = ast.parse(text), f"cvxnmf.certificates.{name}"
    chosen = [judge for judge in judges(name, cases) if with_tests or judge[1]]
    assert module not in sys.modules, "mutants are of no effect where the kernel was imported before"
    if not all(survives(module, tree, *judge) for judge in chosen):
        raise SystemExit(f"{name} as it is fails the battery, or its tests, or they take too long.")
    jobs, tried, left = list(mutations(tree)), 0, 0
    random.Random(seed).shuffle(jobs)
    for number, change, line in jobs:
        if time.monotonic() > until:
            break
        tried += 1
        mutant = mutate(tree, number, change)
        if all(survives(module, mutant, *judge) for judge in chosen):
            left += 1
            print(f"{name}:{line} {change}: {text.splitlines()[line - 1].strip() if line else ''}", flush=True)  # noqa: T201
    return len(jobs), tried, left


def main():
    parser = argparse.ArgumentParser(prog="python -m campaigns.mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", help="of the kernel; left out, all")
    parser.add_argument("--seconds", type=float, default=600.0, help="for each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fast", action="store_true", help="judge by what needs the kernel only, which is fast")
    options = parser.parse_args()
    cases = load_cases()
    for name in options.modules or [path.stem for path in sorted(KERNEL.glob("*.py")) if path.stem != "__init__"]:
        count, tried, left = run(name, cases, time.monotonic() + options.seconds, options.seed, not options.fast)
        print(f"{name:20} {count:4} mutants, {tried:4} tried, {left:4} survive", flush=True)  # noqa: T201
    return 0


#: Parts of the kernel that certificates of all forms use.
COMMON = ("certificate", "statement", "data", "rounding")


def load_cases():
    """The battery, made by another process so that this one never imports the kernel."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.pickle"
        code = (
            "import pickle, sys; from campaigns.battery import make_cases as m; pickle.dump(m(200, 900), open(sys.argv[1], 'wb'))"
        )
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
        subprocess.run([sys.executable, "-c", code, str(path)], check=True, env=environment)
        return pickle.loads(path.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
