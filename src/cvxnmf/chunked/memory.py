"""Limits of the work in row chunks; how much memory there is, and how it is shared out: factors, Gram matrices, row chunks."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from cvxnmf import validation
from cvxnmf.linalg.leading import KRYLOV_EXCESS, KRYLOV_PRODUCTS

#: Bytes that libraries, compiled loops and the allocator may take on top of what is planned.
RESERVE = 72 << 20
#: Copies of U and of V that a descent and its result hold at most.
COPIES_OF_U, COPIES_OF_V = 8, 12
#: Float64 arrays of the size of a chunk that work on it holds at most, beside the chunk as it is stored.
COPIES_OF_CHUNK = 4
#: Copies of the Gram matrix beside those of the threads: its sum, its eigenvectors, and what their check needs.
COPIES_OF_GRAM = 6
#: Copies of one product of the Krylov space beside the space itself.
COPIES_OF_KRYLOV = 4

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
SIZE = re.compile(r"\s*((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?)\s*([kmgt]?i?)b?\s*", re.IGNORECASE)
#: A limit of fewer bytes was meant in another unit.
FEW_BYTES = 10_000


@dataclass(frozen=True)
class Settings:
    """Limits of memory, time and tasks in row chunks that users never change and tests do."""

    #: Bytes of a float64 chunk beyond which caches do not hold it, and below which calls cost more than work.
    largest_chunk: int = 4 << 20
    smallest_chunk: int = 1 << 16
    #: Up to this many columns the Gram matrix of the data is formed.
    largest_gram: int = 3000
    #: Calls of `map_reduce` after which the state is fetched and sent anew, so that a lost worker has little to compute again.
    longest_lineage: int = 200
    #: Bytes of broadcast arguments that the scheduler remembers at most, unless the state is larger.
    lineage_bytes: int = 1 << 26
    #: Entries of a graph that the client works on by itself, because messages would take longer.
    few_entries: int = 1 << 22
    #: How long a scheduler may take to answer, and how long a cluster may be without any worker.
    answer_seconds: float = 10
    workerless_seconds: float = 30
    #: Time between looks at the state of the cluster while it works.
    poll_seconds: float = 2.0


DEFAULTS = Settings()


def limit_in_bytes(memory_limit: Any) -> int:
    """Bytes of a memory limit given as a number or as words such as "2 GB" or "500MiB"."""
    found = SIZE.fullmatch(memory_limit) if isinstance(memory_limit, str) else None
    if found is not None and found[2].lower() in UNITS:
        size, bare = float(found[1]) * UNITS[found[2].lower()], not found[2]
    elif isinstance(memory_limit, str):
        validation.refuse(f"memory_limit={memory_limit!r} is not understood; give bytes, or words such as '2 GB' or '500 MiB'.")
    else:
        size, bare = validation.number("memory_limit", memory_limit, minimum=0.0), True
    if not math.isfinite(size):
        validation.refuse(f"memory_limit={memory_limit!r} is no amount of memory; give bytes, or words such as '2 GB'.")
    if bare and 0 < size < FEW_BYTES:
        unit = "GB" if size < 1000 else "MB"
        validation.refuse(f"memory_limit={memory_limit!r} is {size:g} bytes; did you mean '{size:g} {unit}'?")
    return int(size)


def resident_bytes() -> int:
    """Bytes of memory that this process holds now; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0


class Plan(NamedTuple):
    """Memory plan for data in row chunks: rows of a chunk, chunks at a time, and bytes of room for Gram matrices."""

    height: int
    threads: int
    room: float


def unlimited_plan(shape: tuple[int, int], threads: int, settings: Settings = DEFAULTS) -> Plan:
    """The plan for row chunks where memory does not matter."""
    height = max(1, min(shape[0], settings.largest_chunk // (8 * shape[1])))
    return Plan(height, threads, math.inf)


def gram_fits(side: int, room: float, threads: int = 1, settings: Settings = DEFAULTS) -> bool:
    """Whether a Gram matrix of this side fits into the memory that there is room for, by threads that each sum one."""
    return side <= settings.largest_gram and _gram_bytes(side, threads) <= room


def _gram_bytes(side: int, threads: int) -> int:
    """Bytes of memory that work with a Gram matrix holds at most."""
    return (COPIES_OF_GRAM + 2 * threads) * 8 * side * side


def memory_plan(
    shape: tuple[int, int],
    itemsize: int,
    k: int,
    limit: int,
    threads: int,
    height: int | None = None,
    settings: Settings = DEFAULTS,
    resident: int | None = None,
) -> Plan:
    """The plan for row chunks that keeps the process below a memory limit, or a refusal that says how much is needed.

    The shape and the size of an item are those of the data as stored, and where these come in chunks, `height` is given. At most
    `threads` chunks are worked on at a time. What the process holds already is asked of the system if left out.
    """
    m, n = shape
    held = (resident_bytes() if resident is None else resident) + RESERVE
    width = min(n, k + KRYLOV_EXCESS)
    part = 8 * n * width  # of which each thread forms one while another waits for its turn
    krylov = 8 * n * min(n, width * KRYLOV_PRODUCTS) + COPIES_OF_KRYLOV * part
    factors = 8 * k * (COPIES_OF_U * m + COPIES_OF_V * n) + krylov
    row = n * (itemsize + 8 * COPIES_OF_CHUNK) + 8 * k * 8
    least = height or max(1, min(m, settings.smallest_chunk // (8 * n)))
    smallest = least * row + 2 * part
    needed = held + factors + smallest
    if needed > limit:
        validation.refuse(
            f"A memory limit of {_megabytes(limit)} is too little: the program itself takes {_megabytes(held)}, what stays in "
            f"memory {_megabytes(factors)} and the smallest block of rows {_megabytes(smallest)}; give at least "
            f"{_megabytes(needed, up=True)}."
        )
    spare = limit - held - factors
    room = spare - threads * smallest
    for side, several in ((n, threads), (m, 1)):
        if gram_fits(side, room, several, settings):
            spare -= _gram_bytes(side, several)
            break
    threads = max(1, min(threads, spare // smallest))
    spare -= 2 * threads * part
    if height is None:
        height = max(least, min(m, settings.largest_chunk // (8 * n), spare // (threads * row)))
    return Plan(height, threads, room)


def _megabytes(size: int, up: bool = False) -> str:
    """A size of memory in MB; rounded up where it is a demand."""
    return f"{-(-size // 10**6) if up else round(size / 1e6):,} MB"
