"""``python -m cvxnmf`` and the command ``cvxnmf``: the same."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; Ctrl-C ends it without a traceback even while it is being imported."""
    try:
        from cvxnmf import cli

        return cli.main()
    except KeyboardInterrupt:
        sys.stderr.write("cvxnmf: interrupted.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
