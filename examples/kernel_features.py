"""
Nonnegative features of a kernel
================================

The Gaussian kernel ``exp(-|x_i - x_j|^2 / 2s^2)`` is written as ``UU'`` with ``U >= 0``.
Divided by its sum, row i of U says how much point i belongs to each column, and every
column is a region of the data: soft memberships that reproduce the kernel.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

import cvxnmf

flowers = load_iris()
points = StandardScaler().fit_transform(flowers.data)
width = 2.0
squares = np.sum(points**2, axis=1)
log_kernel = (2.0 * points @ points.T - squares[:, None] - squares[None, :]) / (
    2.0 * width**2
)

plain = cvxnmf.exp_factor(log_kernel, tol=1e-2)
light = cvxnmf.exp_factor(log_kernel, tol=5e-2, reduce="weights")
print(f"{len(points)} flowers, every entry of the kernel within 1%: {plain}")
print(f"the kernel within 1% in norm, from fitted weights: {light}")

# %%
# The fewer columns are enough to see the species, which nobody told.

memberships = light.U / light.U.sum(axis=1, keepdims=True)
groups = memberships.argmax(axis=1)
right = sum(
    np.bincount(flowers.target[groups == group]).max() for group in np.unique(groups)
)
print(f"{len(np.unique(groups))} columns are some flower's first")
print(f"purity {right / len(points):.2f}")

# %%
# The kernel, its nonnegative factors, and what they give back.

figure, axes = plt.subplots(
    1, 3, figsize=(8.4, 3.2), layout="constrained", width_ratios=[1, 0.7, 1]
)
pictures = (np.exp(log_kernel), light.U, light.U @ light.U.T)
for panel, picture, title in zip(axes, pictures, ("kernel", "U", "UU'"), strict=True):
    panel.imshow(picture, cmap="Blues", aspect="auto")
    panel.set_title(title, loc="left", fontsize=10)
    panel.set_xticks([])
    panel.set_yticks([])
figure.savefig("kernel.png", dpi=150)
