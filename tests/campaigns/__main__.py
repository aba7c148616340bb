"""Run campaigns: ``python -m campaigns --seconds 60 --seed 0 [names]``, from the folder `tests`."""

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaigns.attacks import CAMPAIGNS


def run(name, seconds, first):
    """Run trials with seeds from `first` on until the time is over; return how many there were and the seeds that failed."""
    attack, began, seed, failed = CAMPAIGNS[name], time.monotonic(), first, []
    while time.monotonic() - began < seconds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                attack(np.random.default_rng(seed), folder)
            except Exception:  # whatever it is, it is a find
                failed.append(seed)
                print(f"{name}: seed {seed}\n{traceback.format_exc()}", file=sys.stderr)  # noqa: T201
        seed += 1
    return seed - first, failed


def main():
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CAMPAIGNS)}; left out, all")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each campaign")
    parser.add_argument("--seed", type=int, default=0, help="of the first trial; a trial that failed says its own")
    options = parser.parse_args()
    found = 0
    for name in options.names or CAMPAIGNS:
        count, failed = run(name, options.seconds, options.seed)
        found += len(failed)
        print(f"{name:24} {count:8,} tried, {len(failed)} failed {failed[:10] or ''}", flush=True)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
