"""Results in, one self-contained page out."""

from cvxnmf.display.page import html, write

__all__ = ["html", "write"]
