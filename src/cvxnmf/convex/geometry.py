"""What methods see of the set that X lies in: a cone of symmetric matrices, or all rectangular ones with a nuclear norm.

Both have positive weights `s` of the rows of v and W; with `free_effects` X may be changed by effects at no cost. Both offer

    scale, unscale                       S B S and S^-1 B S^-1 in the metric, in place
    total_weight                         the sum of the squared weights over all entries of X in the metric
    entries, matrix, entry_scales        the entries that make up X, as a vector; X from them, maybe in their memory; their scales
    point, canonical_factors             points of given factors; points in factors that are unique but for ties
    contains                             whether X lies in the set up to a tolerance
    project, project_scaled              argmin ||S(Y - X)S||^2 / 2 + threshold penalty(Y) in factors; from S X S, overwritten
    inner, penalty                       the penalty at a dense X; at a point in factors
    factor_penalty, penalty_gradient     a smooth function, whose minimum over all factors of X is the penalty; half its gradient
    penalised_part                       what the penalty sees of X, in the metric; X is overwritten
    factor_gradients                     half the gradient over v and W of a function whose gradient over X is G
    independent_effects, with_effects    effects of the best model without positions, by KL; X raised by effects, a new array
    margins, log_margins                 the sums of G that belong to the effects; logarithms of those of exp(X)
    scale_to_margins                     scale rows and columns of a nonnegative Z nearly to margins, in place
    effects_step                         Newton's step over the effects for curvature H, overwritten; may raise LinAlgError
    spectral_lack                        the largest multiple of a slope, up to 1, in the dual set; the matrix that clips it
    typical_multiplier                   the size of a dual matrix over that of X, for logarithms of the size of 1
"""

from __future__ import annotations

from cvxnmf.convex.cones import Cone
from cvxnmf.convex.nuclear import NuclearNorm

AnyGeometry = Cone | NuclearNorm
