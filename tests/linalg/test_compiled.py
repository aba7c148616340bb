"""Compiled loops: loaded late, where nothing can be written, from other threads and processes."""

import os
import pickle
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import cvxnmf
from cvxnmf.linalg.compiled import Deferred, compile_with
from cvxnmf.linalg.compiler import _private_folder, announce

#: Root may write everywhere, unless this capability is taken from it.
AS_USER = (
    ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"] if os.name == "posix" and os.getuid() == 0 else []
)
CODE = """
import sys, numpy as np
from cvxnmf.linalg import compiler, products
assert sys.modules["cvxnmf"].__file__.startswith(sys.argv[1])
print(products.dense_times(np.eye(3), np.ones((3, 2))).sum(), compiler._has_cache())
"""


@pytest.mark.skipif(os.name != "posix" or (bool(AS_USER) and shutil.which("setpriv") is None), reason="needs setpriv")
def test_a_read_only_installation_without_a_home(tmp_path):
    site, home, scratch = tmp_path / "site", tmp_path / "home", tmp_path / "scratch"
    shutil.copytree(Path(cvxnmf.__file__).parent, site / "cvxnmf", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (home, scratch):
        folder.mkdir()
    closed = [path for path in (*site.rglob("*"), site, home) if path.is_dir()]
    for path in closed:
        path.chmod(0o555)
    environment = os.environ | {"PYTHONPATH": str(site), "HOME": str(home), "XDG_CACHE_HOME": str(home), "TMPDIR": str(scratch)}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [*AS_USER, sys.executable, "-W", "error", "-c", CODE, str(site)]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=home, timeout=120, check=False)
    for path in closed:
        path.chmod(0o755)
    assert (answer.stdout.split(), answer.stderr) == (["6.0", "True"], "")


@pytest.mark.skipif(os.name != "posix", reason="needs modes of files")
def test_code_is_never_loaded_from_a_folder_that_others_can_write(tmp_path):
    assert _private_folder(str(tmp_path / "own")) == str(tmp_path / "own")
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o700
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    assert _private_folder(str(tmp_path / "shared")) is None
    assert _private_folder("/proc/nowhere") is None
    (tmp_path / "link").symlink_to(tmp_path / "own")
    assert _private_folder(str(tmp_path / "link")) is None


@pytest.mark.parametrize("shell", [None, object()])
def test_compilation_is_announced_once_as_a_warning_where_somebody_waits(caplog, monkeypatch, shell):
    announce.cache_clear()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(sys, "stderr", StringIO())
    for _ in range(2):
        announce()
    sentence = "Compiling once, up to half a minute; later calls and processes find the result."
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("INFO" if shell is None else "WARNING", sentence)
    ]


@compile_with(nogil=True)
def is_number(x):
    return x == x  # noqa: PLR0124


@compile_with(nogil=True, fastmath=True)
def is_number_in_fast_arithmetic(x):
    return is_number(x)


def test_functions_of_no_module_are_compiled_as_ever():
    """The announcement listens to whatever numba compiles."""
    names = {"__builtins__": {}}
    exec("def double(x): return x + x", names)  # noqa: S102
    assert names["double"].__module__ is None
    assert numba.njit(names["double"])(2) == 4


def test_a_loop_keeps_its_own_arithmetic_whoever_calls_it_first():
    assert not is_number_in_fast_arithmetic(np.nan)
    assert not is_number(np.nan)


PUBLIC = """
import sys, cvxnmf
for name in sys.argv[1:]:
    getattr(cvxnmf, name)
    print(name, "numba" in sys.modules)
"""


def test_the_compiler_is_not_loaded_before_it_is_needed():
    names = ["factorize", "solve", "partition", "verify_labels", "NMF", "SymmetricNMF", "MiniBatchNMF"]
    answer = subprocess.run([sys.executable, "-c", PUBLIC, *names], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == [f"{name} False" for name in names]


@compile_with(nogil=True)
def twice(x):
    return x + x


@compile_with(nogil=True)
def factorial(n):
    return twice(1) if n == 2 else n * factorial(n - 1)


def test_loops_that_call_loops_and_themselves_from_several_threads():
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(factorial, [2, 3, 4, 5] * 5)) == [2, 6, 24, 120] * 5


def test_a_loop_is_found_by_its_name_in_another_process():
    held = is_number
    assert pickle.loads(pickle.dumps(held))(1.0)
    assert held(1.0), "called, another object stands under the name"
    assert pickle.loads(pickle.dumps(held))(1.0)


CALLED = "from cvxnmf.linalg.compiled import compile_with\n@compile_with(nogil=True)\ndef called(x):\n    return x + {added}\n"
CALLING = """
from called import called
from cvxnmf.linalg.compiled import compile_with
FACTOR = {factor}
@compile_with(nogil=True)
def calling(x):
    return FACTOR * called(x)
"""


def test_code_beside_the_sources_is_found_unless_a_loop_that_is_called_or_a_constant_is_another(tmp_path):
    def answer_and_files(kept, added=1.0, factor=2.0):
        (tmp_path / "called.py").write_text(CALLED.format(added=added))
        (tmp_path / "calling.py").write_text(CALLING.format(factor=factor))
        environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        environment |= {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        environment |= {"NUMBA_CACHE_DIR": str(tmp_path / kept)} if kept else {}
        command = [sys.executable, "-c", "from calling import calling; print(calling(3.0))"]
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return float(answer.stdout), len(list((tmp_path / kept).rglob("calling.*.nbc")))

    assert answer_and_files("") == (8.0, 1)
    assert answer_and_files("same") == (8.0, 0)
    assert answer_and_files("callee", added=2.0) == (10.0, 1)
    assert answer_and_files("constant", factor=3.0) == (12.0, 1)


@pytest.mark.parametrize(
    ("error", "cause", "raised"),
    [
        (SystemError("returned a result with an exception set"), KeyboardInterrupt(), KeyboardInterrupt),
        (SystemError("returned a result with an exception set"), ValueError(), SystemError),
        (RuntimeError("no compiled object yet for <Library 'f'>"), None, KeyboardInterrupt),
        (RuntimeError("something else"), None, RuntimeError),
    ],
)
def test_an_interrupt_while_a_loop_is_compiled_or_hands_over_its_result_is_one(error, cause, raised):
    """Python raises SystemErrors for what comes up between a loop's end and its caller, numba a RuntimeError."""

    def interrupted():
        try:
            raise error from cause
        except SystemError as inner:
            raise SystemError("returned a result with an exception set") from inner

    with pytest.raises(raised):
        Deferred(lambda: interrupted)()
