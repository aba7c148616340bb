"""Limits of the work in row chunks, in one place: sizes of chunks, Gram matrices, and the patience with a cluster."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Limits that users never change and tests do."""

    #: Bytes of a float64 chunk beyond which caches do not hold it, and below which calls cost more than work.
    largest_chunk: int = 4 << 20
    smallest_chunk: int = 1 << 16
    #: Up to this many columns the Gram matrix of the data is formed.
    largest_gram: int = 3000
    #: Calls of `map_reduce` after which the state is fetched and sent anew, so that a lost worker has little to compute again.
    longest_lineage: int = 200
    #: Bytes of broadcast arguments that the scheduler remembers at most, unless the state is larger.
    lineage_bytes: int = 1 << 26
    #: How long a scheduler may take to answer, and how long a cluster may be without any worker.
    answer_seconds: float = 10
    workerless_seconds: float = 30
    #: Time between looks at the state of the cluster while it works.
    poll_seconds: float = 2.0


DEFAULTS = Settings()
