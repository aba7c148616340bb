"""Every script in examples/ runs and prints something."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cvxnmf

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
IMPORT = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)


def printed(script, folder):
    """What a script prints, run elsewhere with the package under test and warnings as errors."""
    path = os.pathsep.join(filter(None, [str(Path(cvxnmf.__file__).parent.parent), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "error", str(script)]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": path})
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_an_example_runs(script, tmp_path):
    for module in IMPORT.findall(script.read_text(encoding="utf8")):
        pytest.importorskip(module)
    lines = printed(script, tmp_path).splitlines()
    assert len(lines) >= 2
    assert not any("nan" in line.lower().split() for line in lines)


def test_kernel_features_say_how_good_they_are(tmp_path):
    pytest.importorskip("sklearn")
    output = printed(next(script for script in EXAMPLES if script.stem == "kernel_features"), tmp_path)
    assert "150 flowers" in output
    assert float(re.search(r"purity ([\d.]+)", output)[1]) >= 0.8
    assert all(float(error) <= 1e-2 for error in re.findall(r"([\d.e-]+) in norm>", output))
