"""Code blocks of the README run, and print what stands below them."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def test_the_readme_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf8"))
    for code, expected in blocks:
        out = StringIO()
        with redirect_stdout(out):
            exec(code, names)
        assert out.getvalue().strip() == expected.strip()
    assert len(blocks) >= 3


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/mathematics.md", "docs/paper.md", "paper/README.md"]
)
def test_links_inside_the_project_resolve(page):
    folder = (ROOT / page).parent
    for target in LINK.findall((ROOT / page).read_text(encoding="utf8")):
        assert (folder / target).exists(), target
