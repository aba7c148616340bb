"""The README for PyPI: its links become absolute once ``address`` in pyproject.toml says where the sources are."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: Links and pictures of Markdown and HTML that lead to files of the project.
RELATIVE = re.compile(r"""(\]\(|(?:src|srcset|href)=")(?!https?:|mailto:|#)""")


class ReadmeHook(MetadataHookInterface):
    """Hands over the README with links that lead somewhere from anywhere."""

    def update(self, metadata):
        """Set the readme; without an address its links stay relative."""
        text = Path(self.root, "README.md").read_text(encoding="utf8")
        address = self.config.get("address", "").rstrip("/")
        if address:
            text = RELATIVE.sub(lambda found: f"{found[1]}{address}/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
