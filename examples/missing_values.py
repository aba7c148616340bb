"""
Missing values
==============

``NaN`` means "not known" in ``factorize``, ``classical_nmf``, ``NMF`` and ``verify``. A
table of low rank is filled in from a part of its entries.
"""

import matplotlib.pyplot as plt
import numpy as np

import cvxnmf

rng = np.random.default_rng(0)
truth = rng.gamma(0.6, size=(60, 4)) @ rng.gamma(0.6, size=(4, 40))
noisy = np.maximum(truth + 0.02 * rng.standard_normal(truth.shape), 0.0)
missing = rng.random(truth.shape) < 0.4
A = np.where(missing, np.nan, noisy)

result = cvxnmf.factorize(A, 4)
filled = result.U @ result.V.T
error = np.linalg.norm((filled - truth)[missing]) / np.linalg.norm(truth[missing])
print(f"{missing.mean():.0%} of the entries are missing; the fill is off by {error:.1%}")

# %%
# The certificate is about the entries that are known, and so is the loss. With holes
# everywhere the bound rests on a fully observed part of the table, which is small, and is
# far from tight; it says so. A relative gap of almost 1 does not mean a bad fit: on so
# small a part four components explain nearly everything, so the bound is nearly 0, while
# the loss counts the noise in all known entries.

print(result.certificate)

# %%
# What is known, and what comes out.

figure, axes = plt.subplots(1, 3, figsize=(8.4, 4), layout="constrained")
for panel, matrix, title in zip(
    axes, (A, filled, truth), ("known", "filled in", "the truth"), strict=True
):
    panel.imshow(matrix, cmap="Blues", vmin=0, vmax=np.quantile(truth, 0.98))
    panel.set_title(title, loc="left", fontsize=10)
    panel.set_xticks([])
    panel.set_yticks([])
    panel.set_facecolor("#f4d9a8")
figure.savefig("missing.png", dpi=150)
