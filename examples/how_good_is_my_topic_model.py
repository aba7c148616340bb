"""
How good is my topic model?
===========================

Topics are found by NMF of word counts with the Kullback-Leibler divergence, and no fit says
how much better another one could be. ``verify`` proves a number that no topics can beat,
and ``uniqueness`` whether others fit exactly as well.

The documents are the help texts of four parts of scipy.
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import CountVectorizer

import cvxnmf

parts = (scipy.linalg, scipy.signal, scipy.special, scipy.stats)
texts = [
    inspect.getdoc(getattr(part, name))
    for part in parts
    for name in sorted(part.__all__)
    if not inspect.ismodule(getattr(part, name)) and inspect.getdoc(getattr(part, name))
]
words = CountVectorizer(
    stop_words="english", token_pattern="[a-z]{4,}", max_df=0.3, max_features=150
)
counts = words.fit_transform(texts).toarray().astype(float)
counts = counts[counts.sum(axis=1) > 0]
names = words.get_feature_names_out()
print(f"{len(counts)} texts, {len(names)} words")

ranks = (1, 2, 3, 4, 6)
found = {k: cvxnmf.factorize(counts, n_components=k, loss="kl") for k in ranks}
for k, result in found.items():
    proof = result.certificate
    print(f"{k} topics: {proof.value:.0f}, no {k} topics below {proof.bound:.0f}")

# %%
# The topics by their words, and whether others would give the same expected counts.

best = found[4]
for component in range(4):
    strongest = np.argsort(-best.V[:, component])[:6]
    print(", ".join(names[word] for word in strongest))
print(best.uniqueness.status)

# %%
# scikit-learn's topics of the same rank, judged by the same bound.

model = NMF(4, beta_loss="kullback-leibler", solver="mu", init="random", random_state=1)
documents = model.fit_transform(counts)
judged = cvxnmf.verify(counts, documents, model.components_.T, loss="kl")
print(f"scikit-learn, one random start: {judged.value:.0f}")
print(f"no four topics can save more than {judged.relative_gap:.1%} of it")

# %%
# The more topics, the less is proved: what is left of the counts is noise, and the bound
# must allow for topics that fit noise.

figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
bounds = [found[k].certificate.bound for k in ranks]
values = [found[k].value for k in ranks]
axes.fill_between(ranks, bounds, color="#d7dce3", label="no topic model is here (proved)")
axes.plot(ranks, values, "D-", color="#2f6db5", label="cvxnmf.factorize")
axes.plot(4, judged.value, "o", color="#e08a1e", label="scikit-learn, one random start")
axes.set_xlabel("topics")
axes.set_ylabel("divergence")
axes.set_ylim(0)
axes.legend(frameon=False, loc="lower left")
figure.savefig("how-good-topics.png", dpi=150)
