"""Names and graphs that try to break what is shown."""

import dataclasses

import numpy as np
import scipy.sparse as sp

ATTACK = "</script><script>window.hacked = 1</script>"
NAMES = [
    ATTACK,
    '<img src=x onerror="window.hacked=1">',
    "say \"hi\", 'you'",
    "Åsa 数学 🧮",
    "",
    "\ud800 lone",
    "a\nb",
    "‮turn",
    "&lt;b&gt;",
]


def hand_made(club, A, labels, k):
    """A partition of any graph, with the proofs of another."""
    n, labels = len(labels), np.asarray(labels, dtype=np.intp)
    changes = {
        "nodes": tuple(range(n)),
        "labels": labels,
        "memberships": np.eye(k)[labels],
        "order": np.argsort(labels, kind="stable"),
        "A": sp.csr_array(A),
    }
    return dataclasses.replace(club, **changes, factors=lambda: club.factorization)
