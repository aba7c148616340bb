"""The linear program over co-memberships with cuts, its columns and rows made when they are needed.

maximise ``sum_{i<j} L_ij x_ij`` over ``0 <= x <= 1`` and cuts. A pair that no cut uses is 1 if its weight is positive and 0
otherwise, so that only pairs in cuts become columns (HiGHS, warm-started dual simplex).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxnmf.certificates.label_cuts import Cuts
from cvxnmf.certificates.pair_objectives import Integers, PairObjective
from cvxnmf.graphs.label_bounds.separation import cut_rows, join_cuts, no_cuts
from cvxnmf.linalg.arrays import FloatArray

#: Multipliers are whole numbers of a grain such that the largest pair weight has this many bits.
BITS = 40
#: A cut is slack beyond this.
SLACK = 1e-4
#: Iterations of the simplex method that a solve gets whatever work is left.
LEAST_ITERATIONS = 100
#: The largest entry of a ray, in whole numbers.
RAY = 2**10


class CutProgram:
    """The linear program over co-memberships, its cuts so far, and pairs that are decided.

    Attributes
    ----------
    cuts : Cuts
        With the multipliers of the last solve.
    X : ndarray of shape (n, n)
        Co-memberships of the last solve.
    grain : int
        Parts of a unit of pair weight in which multipliers are counted.
    work : float
        What the solves have cost, in rows and columns times simplex iterations.
    """

    def __init__(self, objective: PairObjective, n_clusters: int | None) -> None:
        self.objective, self.n_clusters, self.n = objective, n_clusters, objective.n
        self.L = objective.dense()
        self.grain = 2 ** max(0, BITS - objective.largest_pair().bit_length())
        self.cuts, self.work = no_cuts(), 0.0
        self.column = np.full((self.n, self.n), -1, dtype=np.int32)
        self.pairs = np.zeros((0, 2), dtype=np.int64)
        self.unit = float(objective.largest_pair())
        import highspy  # takes long, and most of what imports this module does without

        self.highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        options: dict[str, Any] = {
            "output_flag": False,
            "threads": 1,
            "solver": "simplex",
            "presolve": "off",
            "dual_feasibility_tolerance": 1e-9,
        }
        for name, setting in options.items():
            self.highs.setOptionValue(name, setting)
        self.highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self.X = self._without_cuts()

    def _without_cuts(self) -> FloatArray:
        X = (self.L > 0).astype(np.float64)
        np.fill_diagonal(X, 1.0)
        return X

    def add(self, cuts: Cuts) -> None:
        """Add cuts to the linear program, and columns for their pairs that have none yet."""
        i, j, coefficients, starts = cut_rows(cuts)
        self._add_columns(i, j)
        sides, first = cuts.right_sides(self.n_clusters).astype(np.float64), starts[:-1].astype(np.int32)
        indices, values = self.column[i, j], coefficients.astype(np.float64)
        self.highs.addRows(len(sides), np.full(len(sides), -np.inf), sides, len(indices), first, indices, values)
        self.cuts = join_cuts([self.cuts, cuts])

    def _add_columns(self, i: Integers, j: Integers) -> None:
        keys = np.unique((i * self.n + j)[self.column[i, j] < 0])
        if not len(keys):
            return
        a, b = keys // self.n, keys % self.n
        numbers = (len(self.pairs) + np.arange(len(keys))).astype(np.int32)
        self.column[a, b], self.column[b, a] = numbers, numbers
        self.pairs = np.concatenate([self.pairs, np.column_stack([a, b])])
        none = np.zeros(0, dtype=np.int32)
        costs = self.L[a, b] / self.unit
        self.highs.addCols(len(keys), costs, np.zeros(len(keys)), np.ones(len(keys)), 0, none, none, np.zeros(0))

    def decide(self, i: int, j: int, together: bool | None) -> None:
        """Fix two nodes together or apart in the linear program, or leave it open again."""
        self._add_columns(np.array([min(i, j)]), np.array([max(i, j)]))
        low, high = (0.0, 1.0) if together is None else (float(together), float(together))
        self.highs.changeColBounds(int(self.column[i, j]), low, high)

    def solve(self, work: float) -> bool:
        """Solve the linear program, or come as far as the work allows; whether it may have a solution.

        Multipliers and co-memberships are then updated. Those of a program that is not solved to the end prove a bound too.
        """
        iterations = LEAST_ITERATIONS + work / (len(self.cuts.multipliers) + 100.0)
        self.highs.setOptionValue("simplex_iteration_limit", int(min(iterations, 2.0**30)))
        self.highs.run()
        info = self.highs.getInfo()
        self.work += (info.simplex_iteration_count + 1.0) * (len(self.cuts.multipliers) + 100.0)
        if self.highs.getModelStatus().name == "kInfeasible":
            return False
        solution = self.highs.getSolution()
        self._set_multipliers(np.array(solution.row_dual) * self.unit)
        self.X = self._without_cuts()
        a, b = self.pairs.T
        self.X[a, b] = self.X[b, a] = np.clip(solution.col_value, 0.0, 1.0)
        return True

    def _set_multipliers(self, duals: FloatArray) -> None:
        whole = np.rint(np.maximum(duals, 0.0) * self.grain).astype(np.int64)
        self.cuts = self.cuts._replace(multipliers=whole)

    def infeasible_cuts(self) -> Cuts | None:
        """A dual ray of an infeasible linear program: any multiple of it, added to other multipliers, lowers a bound."""
        _, present, ray = self.highs.getDualRay()
        largest = float(np.abs(ray).max(initial=0.0)) if present else 0.0
        if not largest > 0:
            return None
        whole = np.rint(np.abs(ray) / largest * RAY).astype(np.int64)
        return self.cuts._replace(multipliers=whole).select(whole > 0)

    def drop_slack(self) -> None:
        """Drop cuts of the linear program that its last solution satisfies with room to spare, if they are many."""
        activities = np.array(self.highs.getSolution().row_value)
        slack = self.cuts.right_sides(self.n_clusters) - activities > SLACK
        if slack.sum() < 100 + len(slack) // 10:
            return
        which = np.flatnonzero(slack).astype(np.int32)
        self.highs.deleteRows(len(which), which)
        self.cuts = self.cuts.select(~slack)

    def active_cuts(self) -> Cuts:
        """The cuts of the linear program with multipliers above 0."""
        return self.cuts.select(self.cuts.multipliers > 0)
