"""How good is an NMF? The same bound judges scikit-learn's factors and ours.

`verify` proves a number that no nonnegative factorisation of this rank can beat, whoever computed it.
"""

# ruff: noqa: T201
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

import cvxnmf


def main():
    """Compare random restarts of scikit-learn with the deterministic factorisation, on 300 digits."""
    A = load_digits().data[:300]
    print("k   random restarts, worst / best   ours   no rank-k NMF is below   could be saved at most")
    for k in (2, 4, 8):
        runs = [NMF(k, init="random", random_state=seed, max_iter=2000).fit(A) for seed in range(5)]
        losses = [run.reconstruction_err_**2 for run in runs]
        ours = cvxnmf.factorize(A, k)
        proof = ours.certificate
        restarts = f"{max(losses):8.0f} / {min(losses):8.0f}"
        print(f"{k}   {restarts}   {ours.value:8.0f}   {proof.bound:8.0f}   {100 * proof.relative_gap:.1f}%")
    assert proof.check(A) <= ours.value
    same = np.array_equal(cvxnmf.factorize(A, 4).U, cvxnmf.factorize(A, 4).U)
    print(f"Run twice, the factors are the same to the last bit: {same}")


if __name__ == "__main__":
    main()
