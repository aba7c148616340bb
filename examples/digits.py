"""
Digits: how many parts are there?
=================================

Images of handwritten digits are sums of strokes. The convex problem says how many
directions stand out of the noise, with a proof that its model is the best of its kind;
``factorize`` then finds as many parts.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import cvxnmf

A = load_digits().data[:400]
solution = cvxnmf.solve(cvxnmf.nonsymmetric(A, trace="auto"), tol=1e-3)
print(solution)

# %%
# Pixels are not independent counts, so the noise model is only a guide. Still it is a rank
# that nobody chose. The fit is proved: no model ``exp(a_i + b_j + w_i . x_j)`` with the
# same penalty does better than the bound.

k = solution.rank + 1
result = cvxnmf.factorize(A, k)
left, least = (number / (A**2).sum() for number in (result.value, result.certificate.bound))
print(
    f"{k} parts leave {left:.1%} of the squares; no NMF of this rank less than {least:.1%}"
)

# %%
# The parts, the heaviest first.

figure, axes = plt.subplots(
    3, -(-k // 3), figsize=(7, 3.6), layout="constrained", squeeze=False
)
for place, panel in enumerate(axes.flat):
    panel.axis("off")
    if place < k:
        panel.imshow(result.V[:, place].reshape(8, 8), cmap="Blues")
figure.savefig("digits.png", dpi=150)
