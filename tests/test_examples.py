"""Every script in examples/ runs, prints something and saves a picture."""

import os
import re
import runpy
from pathlib import Path

import pytest

from tiers import slow_but

EXAMPLES = {script.stem: script for script in sorted((Path(__file__).parent.parent / "examples").glob("*.py"))}
IMPORT = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)
#: Needs a file that is not part of the package.
NEEDS_DATA = {"hyperspectral_unmixing": "samson.mat"}
#: Need a package that is not among the dependencies of the tests, and say so without.
NEEDS_PACKAGE = {"single_cells": "anndata"}

#: Take two seconds or more each; the site's gallery runs them, too.
LONG = {"number_of_clusters", "how_good_is_my_topic_model", "how_good_is_my_leiden", "hyperspectral_unmixing"}


def kernel_features_are_good(output):
    assert "150 flowers" in output
    assert float(re.search(r"purity ([\d.]+)", output)[1]) >= 0.8
    assert all(float(error) <= 1e-2 for error in re.findall(r"([\d.e-]+) in norm>", output))


#: What the printed figures of an example must be.
FIGURES = {"kernel_features": kernel_features_are_good}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run an example in a folder of its own, and return what it prints; warnings are errors."""

    def printed(name):
        needed = [NEEDS_PACKAGE[name]] if name in NEEDS_PACKAGE else []
        for module in [*needed, *IMPORT.findall(EXAMPLES[name].read_text(encoding="utf8"))]:
            pytest.importorskip(module)
        monkeypatch.setenv("MPLBACKEND", "agg")
        monkeypatch.chdir(tmp_path)
        runpy.run_path(str(EXAMPLES[name]), run_name="__main__")
        return capsys.readouterr().out

    return printed


@pytest.mark.parametrize("name", slow_but(set(EXAMPLES) - LONG, EXAMPLES))
def test_an_example_prints_numbers_and_saves_a_picture(name, run, tmp_path):
    image = pytest.importorskip("PIL.Image")
    lines = run(name).splitlines()
    data = Path(os.environ.get("CVXNMF_DATA", "no-folder"), NEEDS_DATA.get(name, ""))
    if name in NEEDS_DATA and not data.exists():
        pytest.skip(f"needs {NEEDS_DATA[name]} in CVXNMF_DATA")
    assert len(lines) >= 2
    assert re.search(r"\d", "".join(lines))
    assert not any("nan" in line.lower().split() for line in lines)
    pictures = list(tmp_path.glob("*.png"))
    assert pictures
    for picture in pictures:
        with image.open(picture) as drawn:
            assert min(drawn.size) >= 200
            assert drawn.convert("RGB").getcolors(20) is None  # more than 20 colours: something is drawn
    if name in FIGURES:
        FIGURES[name]("\n".join(lines))


def test_an_example_without_its_data_says_so(run, tmp_path, monkeypatch):
    monkeypatch.setenv("CVXNMF_DATA", str(tmp_path))
    assert "CVXNMF_DATA" in run("hyperspectral_unmixing")


def test_every_example_has_its_place_in_the_gallery():
    order = (EXAMPLES["digits"].parent.parent / "docs/_extensions/saved_pictures.py").read_text(encoding="utf8")
    assert all(f'"{name}"' in order for name in EXAMPLES)
