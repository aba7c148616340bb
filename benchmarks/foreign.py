"""Run by a peer's own interpreter: arrays from a file, one peer's factors and seconds to a file. Needs numpy and the peer."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np


def nimfa(data: Any, max_iter: int) -> tuple[Any, Any]:
    """Multiplicative updates from the start given; `method` names the model."""
    import nimfa as peer

    update = {"mse": ("euclidean", "fro"), "kl": ("divergence", "div")}[str(data["loss"])]
    options = {"seed": None, "W": data["U"].copy(), "H": data["V"].T.copy(), "rank": data["U"].shape[1], "max_iter": max_iter}
    if str(data["method"]) == "lsnmf":
        fit = peer.Lsnmf(data["A"], **options)()
    else:
        fit = peer.Nmf(data["A"], update=update[0], objective=update[1], **options)()
    return np.asarray(fit.basis()), np.asarray(fit.coef()).T


def torchnmf(data: Any, max_iter: int) -> tuple[Any, Any]:
    """Multiplicative updates in single precision, its only one, to its own tolerance, from the start given."""
    import torch
    from torchnmf.nmf import NMF

    torch.set_num_threads(1)
    A, U, V = (torch.tensor(data[name], dtype=torch.float32) for name in ("A", "U", "V"))
    model = NMF(W=V, H=U)
    model.fit(A, beta={"mse": 2, "kl": 1}[str(data["loss"])], max_iter=max_iter)
    return model.H.detach().numpy().astype(float), model.W.detach().numpy().astype(float)


def karateclub(data: Any, max_iter: int) -> tuple[Any, Any]:
    """SymmNMF of a graph with its own seed."""
    import networkx as nx
    from karateclub import SymmNMF

    model = SymmNMF(dimensions=int(data["k"]), iterations=max_iter, rho=float(data["rho"]))
    model.fit(nx.from_numpy_array(data["A"]))
    return model.get_embedding(), model.get_embedding()


def main() -> None:
    """Run once briefly, so that nothing is loaded on the clock, then in earnest."""
    peer, given, answer = sys.argv[1:]
    work = {"nimfa": nimfa, "torchnmf": torchnmf, "karateclub": karateclub}[peer]
    with np.load(given) as stored:
        data = dict(stored)
    work(data, 2)
    began = time.perf_counter()
    U, V = work(data, int(data["max_iter"]))
    np.savez(answer, U=U, V=V, seconds=time.perf_counter() - began)


if __name__ == "__main__":
    main()
