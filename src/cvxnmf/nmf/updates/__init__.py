"""Update rules of the descent, one family per file.

A rule takes the objective in one factor, the other fixed, and returns a factor at which it is lower:

multiplicative     Lee & Seung's products of ratios; all losses
gradient           projected gradient with backtracking, all losses; also onto columns of a given sparseness
hals               coordinate descent on the squared error
kl_newton          coordinate descent on the Kullback-Leibler divergence
beta_coordinates   coordinate descent on a beta divergence
least_squares      alternating least squares by block principal pivoting, or by projected steps with a regularised Hessian
volume             least squares with columns of V near one another, or with rows of U that sum to one
symmetric          rules for ``A ≈ UU'``
"""
