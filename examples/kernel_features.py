"""Explicit nonnegative features of a Gaussian kernel: soft memberships that reproduce it.

``exp(-|x_i - x_j|^2 / 2s^2)`` is written as ``UU'`` with ``U >= 0``. Divided by its sum, row i of U says how much point i
belongs to each column, and every column is a region of the data.
"""

# ruff: noqa: T201
import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

import cvxnmf

WIDTH = 2.0


def log_kernel(points):
    """Minus the squared distances, over twice the squared width."""
    squares = np.sum(points**2, axis=1)
    return (2.0 * points @ points.T - squares[:, None] - squares[None, :]) / (2.0 * WIDTH**2)


def purity(groups, species):
    """Share of the flowers that are of their group's most frequent species."""
    return sum(np.bincount(species[groups == group]).max() for group in np.unique(groups)) / len(species)


def main():
    """Factor the kernel of the iris flowers and look at the columns."""
    flowers = load_iris()
    X = log_kernel(StandardScaler().fit_transform(flowers.data))
    plain = cvxnmf.exp_factor(X, tol=1e-2)
    light = cvxnmf.exp_factor(X, tol=5e-2, reduce="weights")
    print(f"{len(X)} flowers, every entry of the kernel within 1%: {plain}")
    print(f"the kernel within 1% in norm, from fitted weights: {light}")

    memberships = light.U / light.U.sum(axis=1, keepdims=True)
    groups = memberships.argmax(axis=1)
    print(f"{len(np.unique(groups))} columns are some flower's first; purity {purity(groups, flowers.target):.2f}")
    for column in np.bincount(groups).argsort()[::-1][:3]:
        names = flowers.target_names[flowers.target[groups == column]]
        print(f"column {column}: " + ", ".join(f"{np.sum(names == name)} {name}" for name in np.unique(names)))


if __name__ == "__main__":
    main()
