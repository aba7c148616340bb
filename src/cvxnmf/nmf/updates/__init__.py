"""Update rules of the descent, one family per file.

A rule takes the objective in one factor, the other fixed, and returns a factor at which it is lower:

multiplicative   Lee & Seung's products of ratios; both losses
gradient         projected gradient with backtracking, both losses; also onto columns of a given sparseness
hals             coordinate descent on the squared error
kl_newton        coordinate descent on the Kullback-Leibler divergence
least_squares    alternating least squares by block principal pivoting, or by projected steps with a regularised Hessian
symmetric        rules for ``A ≈ UU'``
"""
