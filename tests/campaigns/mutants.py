"""Mutation testing of the trusted kernel: ``python -m campaigns.mutants --seconds 600 [modules]``, from the folder `tests`.

Every comparison, sign, factor, number, condition and refusal of the kernel is changed in turn. Each mutant is judged in a forked
process, which shares all imports, by the cases of the battery and the tests that run the changed line, those that killed others
and the fastest first. Survivors are shown, but for those that `MUTANTS.md` explains.
"""

import argparse
import ast
import copy
import gc
import importlib
import os
import pickle
import random
import resource
import signal
import sys
import time
import types
from collections import Counter
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))
os.environ.setdefault("DASK_SCHEDULER", "synchronous")  # threads do not outlive a fork

from campaigns.battery import make_cases, verdicts  # noqa: E402

KERNEL = Path(importlib.import_module("cvxnmf.certificates").__file__).parent
#: The modules as they were imported.
TEXTS = {path.stem: path.read_text() for path in sorted(KERNEL.glob("*.py")) if path.stem != "__init__"}
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
#: Tests that judge, beside the battery.
JUDGES = ("certificates", "campaigns/test_kernel.py")
#: A mutant may take this many seconds of the processor, and this many bytes.
LIMITS = ((resource.RLIMIT_CPU, 120), (resource.RLIMIT_AS, 8 << 30))
#: After so many seconds a process that waits for another is given up, and its mutant survives.
ASLEEP = 60
#: Parts of the tree that say something, or name types, and take no part in a proof.
SILENT = (ast.JoinedStr, ast.FormattedValue)
#: Parts of an expression that are shown with what is around them.
PARTS = (ast.Constant, ast.Name, ast.Attribute, ast.UnaryOp, ast.keyword, ast.Slice, ast.Tuple)
#: Arguments that save time, or assert what the code around them makes true.
MATTERLESS = ("strict", "overwrite_a", "check_finite", "copy")


# Mutants --------------------------------------------------------------------------------------------------------------------


def mutations(tree):
    """The places that can be changed, in order, with the ways to do it and the lines of the statement around them."""
    silent = {id(inner) for node in ast.walk(tree) for part in _unspoken(node) for inner in ast.walk(part)}
    spans = {id(inner): span for node, span in _statements(tree) for inner in ast.walk(node)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) not in silent:
            for change in _changes(node):
                yield number, change, spans.get(id(node), (0, 0))


def _unspoken(node):
    """Messages, decorators and annotations."""
    if isinstance(node, SILENT):
        return [node]
    if isinstance(node, ast.keyword) and node.arg in MATTERLESS:
        return [node]
    parts = [*getattr(node, "decorator_list", []), getattr(node, "annotation", None), getattr(node, "returns", None)]
    return [part for part in parts if part is not None]


def _statements(tree):
    """Statements, outer ones first, with the lines of their heads; those of definitions and classes are no code that runs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            first = getattr(node, "body", None)
            yield node, (node.lineno, max(node.lineno, first[0].lineno - 1) if isinstance(first, list) else node.end_lineno)


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
    """A copy of the tree with one change, and the change in words."""
    tree = copy.deepcopy(tree)
    node = list(ast.walk(tree))[number]
    shown = node
    while isinstance(shown, PARTS):  # which say little alone
        inner = shown
        shown = next(up for up in ast.walk(tree) if any(child is inner for child in ast.iter_child_nodes(up)))
    before = _words(shown)
    if change == "skip":
        for parent in ast.walk(tree):
            for block in (getattr(parent, field, None) for field in ("body", "orelse", "handlers")):
                if isinstance(block, list) and node in block:
                    block[block.index(node)] = ast.Pass()
        return ast.fix_missing_locations(tree), f"without {before}"
    if change.startswith("compare"):
        index = int(change.split()[1])
        node.ops[index] = SWAPS[type(node.ops[index])]()
    elif change == "operator":
        node.op = SWAPS[type(node.op)]()
    elif change == "drop":
        node.operand = ast.UnaryOp(node.op, node.operand)
    elif change in ("zero", "one"):
        node.value = type(node.value)(change == "one")
    elif change == "negate":
        node.value = not node.value
    else:
        name = "id" if isinstance(node, ast.Name) else "attr"
        setattr(node, name, TWINS[getattr(node, name)])
    return ast.fix_missing_locations(tree), f"{before} -> {_words(shown)}"


def _words(node):
    return " ".join(ast.unparse(node).split()).replace("|", "&#124;")[:110]


# Putting a mutant in the place of what was imported --------------------------------------------------------------------------

#: All functions of the kernel, those within others among them, once it is imported.
FUNCTIONS = []


def find_functions():
    """Find them, and let forked processes share the memory of everything."""
    gc.unfreeze()  # tests freeze what they have collected, and frozen objects are not listed
    gc.collect()
    here = [each for each in gc.get_objects() if isinstance(each, types.FunctionType)]
    FUNCTIONS[:] = [each for each in here if Path(each.__code__.co_filename).parent == KERNEL]
    assert FUNCTIONS, "no function of the kernel was found, so that no mutant could be installed"
    gc.freeze()


def install(name, tree):
    """Replace the code and the numbers of a module that was imported by those of a changed tree."""
    module = sys.modules[f"cvxnmf.certificates.{name}"]
    path = module.__file__
    new = types.ModuleType(module.__name__)
    new.__dict__.update(__file__=path, __package__=module.__package__)
    code = compile(tree, path, "exec")
    original = dict(_codes(compile(TEXTS[name], path, "exec")))
    changed = dict(_codes(code))
    exec(code, new.__dict__)
    for function in FUNCTIONS:
        place = next((place for place, one in original.items() if one == function.__code__), None)
        if place in changed and function.__globals__ is vars(module):
            function.__code__ = changed[place]
    _copy_values(vars(module), vars(new))


def _codes(code, place=()):
    """All code objects within one, by their places."""
    for index, inner in enumerate(code.co_consts):
        if isinstance(inner, types.CodeType):
            yield (*place, index, inner.co_name), inner
            yield from _codes(inner, (*place, index, inner.co_name))


def _copy_values(old, new):
    """Numbers, tuples of them and default arguments; those that other modules imported too."""
    for name, value in list(new.items()):
        was = old.get(name)
        if name.startswith("__") or was is value:
            continue
        if isinstance(value, types.FunctionType) and isinstance(was, types.FunctionType):
            was.__defaults__, was.__kwdefaults__ = value.__defaults__, value.__kwdefaults__
        elif isinstance(value, type) and isinstance(was, type) and value.__module__ == was.__module__:
            _copy_class(was, value)
        elif isinstance(value, int | float | tuple | str) and value != was:
            for module in [each for title, each in list(sys.modules.items()) if title.startswith("cvxnmf")]:
                if vars(module).get(name) is was or vars(module) is old:
                    setattr(module, name, value)


def _copy_class(was, value):
    for name, attribute in vars(value).items():
        before = vars(was).get(name)
        attribute, before = (getattr(each, "__func__", each) for each in (attribute, before))
        if isinstance(attribute, types.FunctionType) and isinstance(before, types.FunctionType):
            before.__defaults__, before.__kwdefaults__ = attribute.__defaults__, attribute.__kwdefaults__
        elif isinstance(attribute, bool | int | float | str) and not name.startswith("_"):
            setattr(was, name, attribute)
    if issubclass(was, tuple) and hasattr(value.__new__, "__defaults__"):
        was.__new__.__defaults__ = value.__new__.__defaults__


# Judges ---------------------------------------------------------------------------------------------------------------------


class Trial:
    """A test, or a case of the battery: `passes`, the lines of the kernel that it runs, and how long it takes."""

    def __init__(self, name, passes):
        self.name, self.passes, self.lines, self.seconds = name, passes, set(), 0.0

    def is_fit(self):
        """Whether it passes as things are; its lines are then known."""
        files, lines = {str(path): path.stem for path in KERNEL.glob("*.py")}, self.lines

        def line(frame, event, _):
            if event == "line":
                lines.add((files[frame.f_code.co_filename], frame.f_lineno))
            return line

        sys.settrace(lambda frame, event, _: line if frame.f_code.co_filename in files else None)
        try:
            began = time.process_time()
            passed = self.passes()
        finally:
            sys.settrace(None)
        self.seconds = time.process_time() - began
        return passed and lines


def of_case(case):
    return Trial(case.name, lambda: next(verdicts([case]), None) is None)


def of_item(item):
    def passes():
        reports = runtestprotocol(item, log=False, nextitem=None)
        return not any(report.failed for report in reports)

    return Trial(item.nodeid, passes)


def killer(name, tree, trials):
    """The trial that kills a mutant, in a process of its own: its number, -1 for a mutant that ends it, None if none does."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        for which, most in LIMITS:
            resource.setrlimit(which, (most, most))
        signal.alarm(ASLEEP)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        try:
            install(name, tree)
            found = next((number for number, trial in enumerate(trials) if not trial.passes()), None)
            os.write(write, pickle.dumps(found))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return None
    return pickle.loads(said) if said else -1


class Run:
    """The plugin that takes the place of pytest's loop over tests."""

    def __init__(self, options):
        self.options, self.kills = options, Counter()

    def pytest_runtestloop(self, session):
        """Try the mutants of all modules."""
        began = time.monotonic()
        cases = make_cases(self.options.kinds, self.options.seeds)
        self.trials = [trial for trial in [*map(of_case, cases), *map(of_item, session.items)] if trial.is_fit()]
        print(f"{len(self.trials)} trials, {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201
        self.explained = explanations()
        find_functions()
        for name in self.options.modules or TEXTS:
            print(f"{name:20} " + self.try_module(name), flush=True)  # noqa: T201
        return True

    def try_module(self, name):
        """Try the mutants of a module in random order; say how many there are, were tried, and survive."""
        tree, until = ast.parse(TEXTS[name]), time.monotonic() + self.options.seconds
        jobs, tried, explained, left = list(mutations(tree)), 0, 0, 0
        random.Random(self.options.seed).shuffle(jobs)
        for number, change, span in jobs:
            if time.monotonic() > until:
                break
            mutant, words = mutate(tree, number, change)
            if self.options.again and f"{name}:{words}" not in self.options.again:
                continue
            tried += 1
            if (name, words) in self.explained:
                explained += 1
                continue
            chosen = self.choose(name, span)
            found = killer(name, mutant, chosen) if chosen else None
            if found is None:
                left += 1
                print(f"{name}:{words}    line {span[0]}, {len(chosen)} trials", flush=True)  # noqa: T201
            elif found >= 0:
                self.kills[chosen[found].name] += 1
        killed = tried - explained - left
        return f"{len(jobs):4} mutants, {tried:4} tried, {killed:4} killed, {explained:3} explained, {left:3} survive"

    def choose(self, name, span):
        """Trials that run the lines; all of the module where none does, as for numbers that are set once."""
        lines = {(name, line) for line in range(span[0], span[1] + 1)}
        touching = [trial for trial in self.trials if trial.lines & lines]
        touching = touching or [trial for trial in self.trials if any(name == of for of, _ in trial.lines)]
        touching.sort(key=lambda trial: trial.seconds / (1 + self.kills[trial.name]))
        chosen, seconds = [], 0.0
        for trial in touching:
            seconds += trial.seconds
            if seconds < self.options.patience:
                chosen.append(trial)
        return chosen


def explanations():
    """The mutants that change nothing, as the table says: module and words."""
    rows = [line.split("|") for line in (Path(__file__).parent / "MUTANTS.md").read_text().splitlines() if line.startswith("|")]
    return {(row[1].strip(), row[2].strip().strip("`")) for row in rows if len(row) == 5}


def main():
    parser = argparse.ArgumentParser(prog="python -m campaigns.mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", help="of the kernel; left out, all")
    parser.add_argument("--seconds", type=float, default=600.0, help="for each module")
    parser.add_argument("--seed", type=int, default=0, help="of the order of mutants")
    parser.add_argument("--patience", type=float, default=8.0, help="seconds that the trials of a mutant take together, at most")
    parser.add_argument("--kinds", type=int, default=200, help="of certificates in the battery")
    parser.add_argument("--seeds", type=int, default=900, help="that the battery is drawn from")
    parser.add_argument("--again", help="a file that an earlier run printed, whose survivors alone are tried")
    parser.add_argument("--tests", nargs="*", default=JUDGES, help="files of tests that judge")
    options = parser.parse_args()
    if options.again:
        options.again = {line.partition("    line ")[0] for line in Path(options.again).read_text().splitlines()}
    arguments = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--assert=plain",
        "-m",
        "",
        "-k",
        "not slow and not battery",
        *(str(TESTS / file) for file in options.tests),
    ]
    return pytest.main(arguments, plugins=[Run(options)])


if __name__ == "__main__":
    sys.exit(main())
