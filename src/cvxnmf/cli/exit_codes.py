"""Exit codes of the program; argparse answers bad usage with 2."""

CERTIFIED, ERROR, USAGE, ABOVE_TOLERANCE = 0, 1, 2, 3
