"""The gallery: pictures that an example saves are shown below the code that saved them; examples in order."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst

#: The order of the examples, the simplest first.
ORDER = (
    "karate_club",
    "les_miserables",
    "number_of_clusters",
    "how_good_is_my_nmf",
    "how_good_is_my_leiden",
    "how_good_is_my_topic_model",
    "digits",
    "missing_values",
    "hyperspectral_unmixing",
    "single_cells",
    "kernel_features",
    "paper_figure_1",
)


def scraper(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any], **_: Any) -> str:
    """Move the pictures that a block saved beside its example to the gallery."""
    shown = []
    saved = Path(block_vars["src_file"]).parent.glob("*.png")
    for picture in sorted(saved, key=lambda path: path.stat().st_mtime_ns):
        place = next(block_vars["image_path_iterator"])
        shutil.move(picture, place)
        shown.append(place)
    return str(figure_rst(shown, gallery_conf["src_dir"]))


def sort_key(file_name: str) -> int:
    """Return the place of an example, which must be listed above."""
    return ORDER.index(Path(file_name).stem)
