"""``python -m cvxnmf``."""

import sys

from cvxnmf.cli import main

sys.exit(main())
