"""How the documentation is built: ``make docs`` writes it to build/docs."""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

import cvxnmf  # noqa: E402

project = "cvxnmf"
author = "The cvxnmf developers"
copyright = "the cvxnmf developers"
version = release = cvxnmf.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "mathml",
]
templates_path = ["_templates"]
nitpicky = True
# Types in docstrings are words, such as "ndarray of shape (n, k)", not names to look up.
nitpick_ignore_regex = [("py:class", r"(?!cvxnmf\.).*"), ("py:class", r"cvxnmf\.[a-z_]+\..*"), ("py:obj", r".*")]

myst_enable_extensions = ["dollarmath", "attrs_inline", "attrs_block", "colon_fence"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say more
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = f"cvxnmf {release}"
html_static_path = ["_static"]
html_css_files = ["own.css"]
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

# An example without its data has no picture; what an earlier build left of it goes too.
LEFT_OUT = [] if Path(os.environ.get("CVXNMF_DATA", "no-folder"), "samson.mat").exists() else ["hyperspectral_unmixing"]
for stem in LEFT_OUT:
    for stale in HERE.glob(f"gallery/**/*{stem}*"):
        stale.unlink()

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": "|".join([r"__init__\.py", *LEFT_OUT]),
    "image_scrapers": ("saved_pictures.scraper",),
    "within_subsection_order": "saved_pictures.sort_key",
    "reset_modules": (),
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "abort_on_example_error": True,
}
suppress_warnings = ["myst.header"]  # the results of the benchmark have two levels of headings


def mended(app, what, name, obj, options, lines):
    """Keep types such as ``(n, n_clusters_)`` from being read as links, and attributes that share a line together."""
    section = ""
    for place, line in enumerate(lines):
        if place + 1 < len(lines) and lines[place + 1].strip().startswith("---"):
            section = line.strip()
        if re.match(r"\s*\w+(, \w+)* : ", line):
            line = re.sub(r"(?<=\w)_(?=[,)])", r"\\_", line)
            names, _, kind = line.partition(" : ")
            if section == "Attributes":
                names = re.sub(r"_(?=,|$)", r"\\_", names.replace(", ", ",\u200b"))
            lines[place] = f"{names} : {kind}"


def setup(app):
    """Register the hook before napoleon's."""
    app.connect("autodoc-process-docstring", mended, priority=100)
