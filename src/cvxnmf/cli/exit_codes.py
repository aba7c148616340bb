"""Exit codes of the program; argparse answers bad usage with 2, and 130 is what shells expect after Ctrl-C."""

CERTIFIED, ERROR, USAGE, ABOVE_TOLERANCE, INTERRUPTED = 0, 1, 2, 3, 130


def exit_code(relative_gap: float, tolerance: float | None) -> int:
    """Return the exit code 0, or 3 if a gap was asked for and not reached."""
    return CERTIFIED if tolerance is None or relative_gap <= tolerance else ABOVE_TOLERANCE
