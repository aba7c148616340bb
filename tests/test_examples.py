"""Every script in examples/ runs, prints something and saves a picture."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cvxnmf

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
IMPORT = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)


#: Needs a file that is not part of the package.
NEEDS_DATA = {"hyperspectral_unmixing": "samson.mat"}


def printed(script, folder, **variables):
    """What a script prints, run elsewhere with the package under test and warnings as errors."""
    path = os.pathsep.join(filter(None, [str(Path(cvxnmf.__file__).parent.parent), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "error", str(script)]
    surroundings = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg", **variables}
    answer = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=surroundings)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_an_example_runs_and_saves_a_picture(script, tmp_path):
    for module in IMPORT.findall(script.read_text(encoding="utf8")):
        pytest.importorskip(module)
    lines = printed(script, tmp_path).splitlines()
    assert len(lines) >= 2
    assert not any("nan" in line.lower().split() for line in lines)
    data = Path(os.environ.get("CVXNMF_DATA", "no-folder"), NEEDS_DATA.get(script.stem, ""))
    pictures = list(tmp_path.glob("*.png"))
    assert pictures or (script.stem in NEEDS_DATA and not data.exists())
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)


def test_an_example_without_its_data_says_so(tmp_path):
    pytest.importorskip("matplotlib")
    script = next(script for script in EXAMPLES if script.stem == "hyperspectral_unmixing")
    assert "CVXNMF_DATA" in printed(script, tmp_path, CVXNMF_DATA=str(tmp_path))


def test_every_example_has_its_place_in_the_gallery():
    order = (EXAMPLES[0].parent.parent / "docs/_extensions/saved_pictures.py").read_text(encoding="utf8")
    assert all(f'"{script.stem}"' in order for script in EXAMPLES)


def test_kernel_features_say_how_good_they_are(tmp_path):
    pytest.importorskip("matplotlib")
    output = printed(next(script for script in EXAMPLES if script.stem == "kernel_features"), tmp_path)
    assert "150 flowers" in output
    assert float(re.search(r"purity ([\d.]+)", output)[1]) >= 0.8
    assert all(float(error) <= 1e-2 for error in re.findall(r"([\d.e-]+) in norm>", output))
