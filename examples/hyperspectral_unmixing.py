"""
Hyperspectral unmixing
======================

Every pixel of a hyperspectral image is a mixture of materials. Three nonnegative factors of
the Samson scene (156 bands, 95 by 95 pixels) are soil, trees and water. The scene is not
part of this package: the example reads ``samson.mat`` (variables ``Y`` and ``S_GT``) from
the folder in ``CVXNMF_DATA``, and says so where there is none.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.io import loadmat

import cvxnmf

file = Path(os.environ.get("CVXNMF_DATA", "no-folder"), "samson.mat")
if not file.exists():
    print("There is no samson.mat to unmix.")
    print("Set the environment variable CVXNMF_DATA to a folder that has it.")

# %%
# Many triples of spectra explain the pixels about as well. Unmixing asks for the one whose
# spectra lie nearest to one another: ``method="min-volume"``. It starts from pixels that
# stick out, and ``shares`` are what each material contributes to a pixel, bright or dark.


def angles(spectra, experts):
    """Angles in degrees between the columns of two matrices."""
    cosines = (spectra / np.linalg.norm(spectra, axis=0)).T @ (
        experts / np.linalg.norm(experts, axis=0)
    )
    return np.degrees(np.arccos(np.clip(cosines, -1, 1)))


if file.exists():
    scene = loadmat(file)
    result = cvxnmf.classical_nmf(scene["Y"].T, 3, method="min-volume")
    shares = result.shares()
    between = angles(result.V, scene["GT"].T)
    print("angles to the experts' spectra in degrees:", between.min(axis=0).round(1))
    print(f"mean {between.min(axis=0).mean():.1f}")

# %%
# How good is the fit? The certificate of the squared error says what any three nonnegative
# spectra could save of it.

if file.exists():
    proof = cvxnmf.verify(scene["Y"].T, result.U, result.V, effort=0)
    print(f"other spectra could save at most {proof.relative_gap:.0%} of the squared error")

# %%
# The maps beside those that experts drew.

if file.exists():
    maps = shares.reshape(95, 95, 3).transpose(1, 0, 2)
    experts = scene["S_GT"]
    alike = np.corrcoef(maps.reshape(-1, 3).T, experts.reshape(-1, 3).T)[:3, 3:]
    match = alike.argmax(axis=0)
    print("correlation with the experts' maps:", alike.max(axis=0).round(2))
    error = np.sqrt(np.mean((maps[:, :, match] - experts) ** 2))
    print(f"root mean squared error of the shares: {error:.3f}")
    figure, axes = plt.subplots(2, 3, figsize=(7.2, 4.8), layout="constrained")
    for column in range(3):
        for row, picture in enumerate((maps[:, :, match[column]], experts[:, :, column])):
            axes[row, column].imshow(picture, cmap="Blues", vmin=0)
            axes[row, column].set_title(("found", "experts")[row], loc="left", fontsize=9)
            axes[row, column].axis("off")
    figure.savefig("samson.png", dpi=150)
