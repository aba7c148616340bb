"""The whole document: template, style, script and data in one text."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from cvxnmf.display.page import colours, packing

#: The script in the order its parts build on one another.
SCRIPTS = ("core", "theme", "plot", "matrix", "heat", "graph", "table", "download")
#: Nothing may be fetched, and no script but the page's own may run.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def document(title: str, subtitle: str, body: str, payload: dict[str, Any]) -> str:
    """Return a page that needs nothing but itself.

    A policy inside the page lets only its own script run and nothing be fetched.
    """
    script = "(() => {\n'use strict';\n" + "\n".join(asset(f"{name}.js") for name in SCRIPTS) + "\n})();"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return Template(asset("page.html")).substitute(
        title=escape(packing.text(title)),
        subtitle=f"<p>{escape(subtitle)}</p>" if subtitle else "",
        policy=f"{POLICY}; script-src 'sha256-{digest}'",
        style=colours.stylesheet() + asset("page.css"),
        body=body,
        data=packing.block(payload),
        script=script,
    )


def asset(name: str) -> str:
    """Return a file that lies beside this package's modules."""
    return files("cvxnmf.display.page").joinpath("assets", name).read_text(encoding="utf-8")
