"""Places of nodes in a drawing."""

import numpy as np
import pytest
import scipy.sparse as sp

from builders import stochastic_block_graph
from cvxnmf.display.layout import spring_positions


def test_the_layout_is_finite_and_keeps_clusters_together():
    A = sp.csr_array(stochastic_block_graph(60, 3, 0.5, 0.02))
    labels = np.random.default_rng(0).integers(0, 3, 60)
    spots = spring_positions(A, labels)
    assert np.isfinite(spots).all()
    assert np.abs(spots).max() == pytest.approx(1.0)
    centres = np.array([spots[labels == c].mean(axis=0) for c in range(3)])
    assert len(np.unique(np.round(spots, 6), axis=0)) == 60
    assert np.linalg.norm(centres[:, None] - centres, axis=2).max() > 0.1
