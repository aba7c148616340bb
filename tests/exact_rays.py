"""Cones of whole-number rows by all of their extreme rays, in exact arithmetic."""

import itertools
import math
from fractions import Fraction

import numpy as np


def extreme_rays(F):
    """Whole-number vectors without a common factor that are normal to k - 1 independent rows and have no negative product."""
    k, rays = F.shape[1], set()
    for rows in itertools.combinations(np.unique(F, axis=0).astype(int).tolist(), k - 1):
        minors = [(-1) ** j * _determinant([row[:j] + row[j + 1 :] for row in rows]) for j in range(k)]
        if any(minors):
            products = [sum(int(x) * y for x, y in zip(row, minors, strict=True)) for row in F]
            for sign in (1, -1):
                if min(sign * product for product in products) >= 0:
                    rays.add(tuple(sign * entry // math.gcd(*minors) for entry in minors))
    return rays


def _determinant(rows):
    table, product = [[Fraction(entry) for entry in row] for row in rows], Fraction(1)
    for c in range(len(table)):
        pivot = next((r for r in range(c, len(table)) if table[r][c]), None)
        if pivot is None:
            return 0
        if pivot != c:
            table[c], table[pivot], product = table[pivot], table[c], -product
        product *= table[c][c]
        for r in range(c + 1, len(table)):
            share = table[r][c] / table[c][c]
            table[r] = [x - share * y for x, y in zip(table[r], table[c], strict=True)]
    return int(product)


def exactly_scattered(F):
    """Whether all extreme rays have ``1'y > |y|``, but for the axes."""
    inside = {ray: sum(ray) ** 2 - sum(entry * entry for entry in ray) for ray in extreme_rays(F)}
    return all(sum(ray) > 0 and (c > 0 or (c == 0 and np.count_nonzero(ray) == 1)) for ray, c in inside.items())
