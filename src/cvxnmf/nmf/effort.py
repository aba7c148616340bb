"""The effort of a race, counted in steps and never clocked, so that the same data give the same factors on any machine."""

from __future__ import annotations

import numpy as np

from cvxnmf.nmf.data_matrix import MemoryMatrix
from cvxnmf.nmf.losses import NMFLoss

#: Coarse descents that the whole race may take as long as, in steps on all rows, and fewer where entries are missing.
DESCENTS, INCOMPLETE_DESCENTS = 12.0, 4.0
#: What a race may take more where its rows are not sampled: all of its starts descend on all rows.
UNSAMPLED = 1.3
#: Seconds that a race may take in any case, about, with long registers; without them it is a quarter more.
SHORT = 0.17
#: Seconds of a step on the squared error, as it was measured: calls, a stored entry and a row for each component, components
#: that an entry costs in any case, and how much dearer it is in sparse data.
CALLS, STORED, ROWS, FIXED, SPARSE = 3.3e-5, 5.5e-11, 4e-9, 5.0, 5.0
#: Seconds of an exact update of V, for each of its rows and pair of components.
EXACT = 4e-9
#: Steps that a contender may take though the effort is spent.
FEWEST_LEFT = 40


class Effort:
    """Work of a race in steps on all data: how much was spent, and how much may be."""

    def __init__(self, data: MemoryMatrix, k: int, loss: NMFLoss, max_iter: int, sampled: bool) -> None:
        stored = data.storage.entries.size * (SPARSE if data.storage.sparse else 1.0)
        work = STORED * stored * (k + FIXED) + ROWS * sum(data.shape) * k
        filling = len(data.missing.rows) * (12.0 + 1.5 * k)
        seconds = CALLS + loss.step_cost * work + filling / 1e9  # of a step, about, on any machine
        self.exact_step = 1.0 + EXACT * data.shape[1] * k * k / seconds
        self.short, self.share_of_all = SHORT / seconds, min(1.0, max_iter / 200)
        steps, more = loss.race_steps
        self.limit = max((steps + more * k) * (1.0 if sampled else UNSAMPLED), self.short) * self.share_of_all
        self.descents = DESCENTS if data.complete else INCOMPLETE_DESCENTS
        self.spent = 0.0

    def restrict(self, steps: float) -> None:
        """Restrict the effort of a race to some descents of so many steps: where these are short, no user expects to wait."""
        self.limit = min(self.limit, max(self.descents * steps, self.short) * self.share_of_all)

    def exhausted(self, share: float = 1.0) -> bool:
        """Whether a share of the race's effort is spent."""
        return self.spent >= share * self.limit

    @property
    def share(self) -> float:
        """Share of the race's effort that is spent, above 0; polishing the winner then takes about a twentieth."""
        return float(np.clip(0.95 * self.spent / self.limit, 1e-3, 0.95))

    def steps_left(self) -> int:
        """Steps on all data that a contender of the race may still take, some in any case."""
        return int(np.clip(self.limit - self.spent, FEWEST_LEFT, 200))
