"""The paper reproduced: its figures, and the study of its rank-two factors that it left for later.

figure1         a block graph before and after its clusters are put together
figure2-left    steps to a certified gap against the size of the graph
figure2-right   performance against the spectral methods, from near-bipartite graphs to clear clusters
rank-two        how precise the paper's 2^r columns are, beside its series and the lattice
"""

from cvxnmf.paper.experiment import Experiment, Reproduction
from cvxnmf.paper.running import EXPERIMENTS, reproduce

__all__ = ["EXPERIMENTS", "Experiment", "Reproduction", "reproduce"]
