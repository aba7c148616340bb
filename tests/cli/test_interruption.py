"""The program in its shell: pipes, full disks, Ctrl-C, and work that is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from running import PROGRAM, run

from tiers import slow_but


@pytest.fixture(autouse=True)
def heard():
    """Shells turn SIGINT off in the background, and nohup SIGHUP: what is started here would not hear them, and hang."""
    known = [getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]
    ignored = [number for number in known if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.default_int_handler)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def test_a_closed_pipe_is_no_error_message(club):
    with subprocess.Popen(
        [*PROGRAM, "partition", str(club), "--quiet", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""


def test_standard_input_is_a_file(blocks):
    path, _ = blocks
    answer = run("partition", "-", "-k", "2", "--json", "--quiet", input=path.read_text())
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["nodes"] == 24


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(club):
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [*PROGRAM, "partition", str(club), "--quiet"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert answer.returncode == 1
    assert answer.stderr == "cvxnmf: No space left on device.\n"


def large_graph(path, n):
    rng = np.random.default_rng(0)
    np.savetxt(path, rng.integers(0, n, (10 * n, 2)), fmt="%d")
    return path


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("wait", "number"),
    slow_but(
        [(0.5, "SIGINT"), (1.2, "SIGTERM")],
        [(0.1, "SIGINT"), (0.5, "SIGINT"), (1.8, "SIGINT"), (1.2, "SIGTERM"), (0.3, "SIGHUP")],
    ),
)
def test_a_signal_keeps_the_best_answer_or_says_that_it_is_lost(tmp_path, wait, number):
    path = large_graph(tmp_path / "g.txt", 3000)
    arguments = [*PROGRAM, "partition", str(path), "--tol", "0", "--output", str(tmp_path / "o.csv")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(wait)
        process.send_signal(getattr(signal, number))
        out, err = process.communicate(timeout=60)
    if wait < 0.5 and (process.returncode < 0 or "cvxnmf" not in err):  # before the program begins, the signal just ends Python
        return
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert "cvxnmf: interrupted" in err
    assert (tmp_path / "o.csv").exists() is (f"is in {tmp_path / 'o.csv'}" in err)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("command", ["factorize t.npy -k 40 --output o.csv", "verify g.txt labels.txt --save p.npz"])
@pytest.mark.parametrize("number", slow_but(["SIGTERM"], ["SIGTERM", "SIGHUP"]))
def test_every_command_hears_signals_and_says_what_is_kept(tmp_path, command, number):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "t.npy", rng.random((900, 700)))
    large_graph(tmp_path / "g.txt", 600)
    np.savetxt(tmp_path / "labels.txt", np.column_stack([np.arange(600), rng.integers(0, 5, 600)]), fmt="%d")
    arguments = [*PROGRAM, *command.split()]
    with subprocess.Popen(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("solving"):
                break
        began = time.monotonic()
        process.send_signal(getattr(signal, number))
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - began < 20  # a busy machine; a second on a free one
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("cvxnmf: interrupted")
    assert any(words in last for words in ("nothing was written", "was not written", "is in o-U.csv and o-V.csv"))
    assert bool(list(tmp_path.glob("o-*.csv"))) is ("is in o-U.csv" in last)


def test_arguments_are_read_without_numpy():
    commands = ["partition g", "factorize t", "factorize t --loss kl", "factorize t --loss 0.5", "verify a b", "demo"]
    code = "import sys\nfrom cvxnmf.cli import _parser\n"
    code += "for command in sys.argv[1:]:\n  _parser().parse_args(command.split())\n  print(command, 'numpy' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code, *commands], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == [f"{command} False" for command in commands]


def test_where_nothing_is_forked_signals_are_heard_too():
    code = "import numpy, os, signal, sys, time\nfrom cvxnmf.cli.interruption import supervise\n"
    code += "def work():\n  try:\n    os.kill(os.getpid(), signal.SIGTERM); time.sleep(20)\n"
    code += "  except KeyboardInterrupt:\n    return 7\n"
    code += "code = supervise(work, [])\nprint(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)\nsys.exit(code)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (answer.returncode, answer.stdout) == (7, "True\n")


SLEEPER = """
import os, sys, time
from pathlib import Path
from cvxnmf.cli.interruption import supervise

def work():
    Path(sys.argv[1]).write_text("done")
    from cvxnmf.certificates.whole_files import temporary_file
    temporary_file(sys.argv[2]).close()
    Path(sys.argv[2] + ".part").write_text("of somebody else")
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass

sys.exit(supervise(work, sys.argv[1:]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_work_that_does_not_hear_is_ended_and_what_is_kept_is_said(tmp_path):
    kept, lost = str(tmp_path / "kept.csv"), str(tmp_path / "lost.csv")
    with subprocess.Popen([sys.executable, "-c", SLEEPER, kept, lost], stderr=subprocess.PIPE, text=True) as process:
        while not Path(f"{lost}.part").exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
    assert process.returncode == 130
    rest = f"{lost} was not written; what was finished before is in {kept}."
    assert err == f"cvxnmf: interrupted in a step too long to wait for; {rest}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.csv", "lost.csv.part"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_work_that_crashes_is_a_sentence():
    code = "import os, signal, sys\nfrom cvxnmf.cli.interruption import supervise\n"
    code += "sys.exit(supervise(lambda: os.kill(os.getpid(), signal.SIGKILL), []))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 1
    assert answer.stderr == "cvxnmf: the work was ended by SIGKILL, perhaps for want of memory.\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_worker_does_not_outlive_the_program(tmp_path):
    path = large_graph(tmp_path / "g.txt", 2000)
    with subprocess.Popen([*PROGRAM, "partition", str(path), "--tol", "0", "--quiet"], stdout=subprocess.PIPE) as process:
        time.sleep(1.5)
        process.terminate()
        assert process.stdout.read() == b""
    assert process.returncode == 130


DEAF = """
import ctypes, os, signal, sys, time
from cvxnmf.cli.interruption import supervise

def work():
    callback = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT) or time.sleep(0.01))
    try:
        callback()
        time.sleep(30)
    except KeyboardInterrupt:
        return 130
    return 0

sys.exit(supervise(work, []))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_interrupt_inside_a_compiled_callback_is_not_lost():
    answer = subprocess.run([sys.executable, "-c", DEAF], capture_output=True, text=True, timeout=20, check=False)
    assert (answer.returncode, answer.stderr) == (130, "")
