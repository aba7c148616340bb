"""
Single cells, from h5ad to a page
=================================

Counts of genes in cells are read from an .h5ad file, the number of programs is chosen by
predicting hidden counts, many random starts are brought to a consensus, and the result goes
back into the file and onto a page. The counts are made on the spot: four programs of genes
that overlap, in cells that use one or two of them. It needs
``pip install 'cvxnmf[app,bio]'``, and says so without.
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import cvxnmf

ready = find_spec("anndata") is not None
if not ready:
    print("There is no anndata to read and write cells with.")
    print("Install it with: pip install 'cvxnmf[app,bio]'")
folder = Path(tempfile.mkdtemp())

# %%
# The file: 300 cells, 120 genes, half of the counts zero.

rng = np.random.default_rng(0)
programs = rng.gamma(0.15, size=(4, 120))
programs /= programs.sum(axis=1, keepdims=True)
usage = rng.dirichlet(np.full(4, 0.25), 300)
depth = rng.lognormal(5.5, 0.3, size=(300, 1))
counts = sp.csr_matrix(rng.poisson(depth * (usage @ programs)).astype(np.float32))

if ready:
    import anndata

    made = anndata.AnnData(counts)
    made.obs_names = [f"cell {number}" for number in range(300)]
    made.var_names = [f"gene {number}" for number in range(120)]
    made.write_h5ad(folder / "cells.h5ad")
    cells = anndata.read_h5ad(folder / "cells.h5ad")
    print(
        cells.shape, f"{counts.nnz / np.prod(counts.shape):.0%} of the counts are not zero"
    )

# %%
# How many programs? Counts that were hidden are predicted best with as many as there are.

if ready:
    choice = cvxnmf.choose_rank(cells, range(2, 8), loss="kl")
    print(choice.reason)
    cvxnmf.plots.ranks(choice).savefig("single_cells.png")

# %%
# The consensus of ten starts, in the file and on a page. The silhouette is 1 where all
# starts find the same programs.

if ready:
    result = cvxnmf.factorize_cells(cells, choice.n_components, n_starts=10)
    print(f"silhouette {cells.uns['nmf']['silhouette']:.2f}")
    print(result.top(3))
    cells.write_h5ad(folder / "cells.h5ad")
    cvxnmf.report.write(result, folder / "cells.html", title="Programs of genes")
    print(
        sorted(cells.obsm),
        sorted(cells.varm),
        sorted(path.name for path in folder.iterdir()),
    )

# %%
# The programs that were planted, beside those that were found.

if ready:
    found = result.V / np.linalg.norm(result.V, axis=0)
    cosines = (programs / np.linalg.norm(programs, axis=1, keepdims=True)) @ found
    print(
        "cosine of each planted program with the best found:", cosines.max(axis=1).round(3)
    )
