"""The whole document: templates filled by jinja2, with style, script and data inside."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from cvxnmf.display import palette
from cvxnmf.display.page.payload import encodable

#: The script in the order its parts build on one another.
SCRIPTS = ("core", "theme", "plot", "matrix", "heat", "graph", "table", "pinned", "download", "pictures")
#: What pages need beyond a plain installation.
PACKAGES = ("jinja2", "matplotlib")
#: Nothing may be fetched, and no script but the page's own may run.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render(template: str, data: dict[str, Any], **context: Any) -> str:
    """Return a self-contained HTML document: a template that shows the context, and data for its script, as JSON.

    A policy inside the page lets only its own script run and nothing be fetched.
    """
    environment, script = _environment(), _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = f"{POLICY}; script-src 'sha256-{digest}'"
    text: str = environment.get_template(template).render(policy=policy, script=script, data=data, **context)
    return text


def require_packages() -> None:
    """Say at once which packages that the page's document needs are not installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise ImportError(f"pages need {' and '.join(missing)}; install with: pip install {' '.join(missing)}.")


@cache
def _environment() -> Any:
    """Return jinja2's environment for the document: all is escaped but what a template marks as safe; no name may be missing."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("cvxnmf.display.page")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters["encodable"] = encodable
    names: dict[str, Any] = {"css_colour": palette.css_colour, "mark_path": palette.mark_path, "colours": palette.css_variables()}
    environment.globals.update(names)
    return environment


def _script() -> str:
    """Return the parts of the document's script as one JavaScript function."""
    folder = files("cvxnmf.display.page").joinpath("scripts")
    parts = (folder.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    return "(() => {\n'use strict';\n" + "\n".join(parts) + "\n})();"
