"""
How good is my NMF?
===================

Random restarts of NMF end in different places, and none says how far it is from the best
one. ``verify`` proves a number that no nonnegative factorisation of this rank can beat,
whoever computed it; here it judges scikit-learn's.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

import cvxnmf

A = load_digits().data[:300]
ranks = (2, 4, 8)
restarts, ours, proofs = [], [], []
for k in ranks:
    models = [NMF(k, init="random", random_state=seed, max_iter=2000) for seed in range(5)]
    factors = [(model.fit_transform(A), model.components_.T) for model in models]
    restarts.append([np.sum((A - U @ V.T) ** 2) for U, V in factors])
    best = factors[int(np.argmin(restarts[-1]))]
    proofs.append(cvxnmf.verify(A, *best))
    ours.append(cvxnmf.factorize(A, k).value)
    worst, proof = max(restarts[-1]), proofs[-1]
    print(f"k = {k}: restarts {proof.value:.0f} to {worst:.0f}, ours {ours[-1]:.0f}")
    print(f"   no NMF is below {proof.bound:.0f}: at most {proof.relative_gap:.1%} to save")

# %%
# The more components, the more room is left between the bound and what is reached: the
# bound knows the rank, not the nonnegative rank. It says at most how much could be gained,
# not that it can be.

figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
place = np.arange(len(ranks))
scale = np.array([proof.bound for proof in proofs])
axes.bar(
    place, np.ones(len(ranks)), width=0.5, color="#d7dce3", label="no NMF is here (proved)"
)
for runs, x, unit in zip(restarts, place, scale, strict=True):
    label = "scikit-learn, random starts" if x == 0 else None
    axes.plot(
        np.full(5, x - 0.08), np.array(runs) / unit, "o", color="#e08a1e", label=label
    )
axes.plot(
    place + 0.08, np.array(ours) / scale, "D", color="#2f6db5", label="cvxnmf.factorize"
)
axes.set_xticks(place, [f"k = {k}" for k in ranks])
axes.set_ylim(0.9, 1.2)
axes.set_ylabel("squared error over the bound")
axes.legend(frameon=False, loc="upper left")
figure.savefig("how-good.png", dpi=150)

# %%
# The bound can be checked by others, and the factors of ``factorize`` are the same every
# time.

print("proved anew:", proofs[-1].check(A) == proofs[-1].bound)
again = [cvxnmf.factorize(A, 4).U for _ in range(2)]
print("the same to the last bit:", np.array_equal(*again))
