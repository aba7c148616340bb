"""Update rules of the descent, one algorithm per file.

A rule takes the objective in one factor, the other fixed, and returns a factor at which it is lower:

multiplicative   Lee & Seung's products of ratios; both losses
gradient         projected gradient with backtracking; both losses
hals             coordinate descent on the squared error
kl_newton        coordinate descent on the Kullback-Leibler divergence
least_squares    alternating least squares by block principal pivoting
quasi_newton     projected step with a regularised Hessian
sparseness       projected gradient on columns of a given sparseness
symmetric        rules for ``A ≈ UU'``
"""
