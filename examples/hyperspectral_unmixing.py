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
# Spectra are learned from every ninth pixel; then all pixels are explained by them. The
# model has scikit-learn's face, and a certificate: no three nonnegative spectra leave a
# smaller error on the pixels it learned from.


def unmixed(scene):
    """Learn three spectra; return them, the shares of all pixels, and the proof."""
    pixels = scene["Y"].T
    model = cvxnmf.NMF(3, tol=1e-6, max_iter=1000).fit(pixels[::9])
    shares = model.transform(pixels)
    return model.components_, shares / shares.sum(axis=1, keepdims=True), model.certificate_


if file.exists():
    scene = loadmat(file)
    spectra, shares, certificate = unmixed(scene)
    print(f"other spectra could save at most {certificate.relative_gap:.3%} of the error")

# %%
# The maps beside those that experts drew.

if file.exists():
    maps = shares.reshape(95, 95, 3).transpose(1, 0, 2)
    experts = scene["S_GT"]
    alike = np.corrcoef(maps.reshape(-1, 3).T, experts.reshape(-1, 3).T)[:3, 3:]
    match = alike.argmax(axis=0)
    print("correlation with the experts' maps:", alike.max(axis=0).round(2))
    figure, axes = plt.subplots(2, 3, figsize=(7.2, 4.8), layout="constrained")
    for column in range(3):
        for row, picture in enumerate((maps[:, :, match[column]], experts[:, :, column])):
            axes[row, column].imshow(picture, cmap="Blues", vmin=0)
            axes[row, column].set_title(("found", "experts")[row], loc="left", fontsize=9)
            axes[row, column].axis("off")
    figure.savefig("samson.png", dpi=150)
