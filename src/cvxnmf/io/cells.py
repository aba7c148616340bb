"""Single cells: AnnData in, and factors back into it."""

from __future__ import annotations

from typing import Any

from cvxnmf import validation
from cvxnmf.nmf.consensus import consensus
from cvxnmf.nmf.factorize import factorize
from cvxnmf.results import Factorization


def factorize_cells(
    adata: Any,
    n_components: int | None = None,
    loss: str | float = "kl",
    *,
    layer: str | None = None,
    n_starts: int | None = None,
    key: str = "nmf",
    **options: Any,
) -> Factorization:
    """Factor the counts of an AnnData, cells by genes, and put the result into it.

    Writes the usages U, cells by components, to ``adata.obsm["X_nmf"]``, the programs V, genes by components, to
    ``adata.varm["nmf"]``, and the numbers, with what is proved, to ``adata.uns["nmf"]``.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells by genes. In a backed one (``anndata.read_h5ad(path, backed="r")``) X is read in row chunks and never loaded as a
        whole; so is an X that is a dask array, as of zarr.
    n_components : int, optional
        Number of programs, see :func:`factorize`.
    loss : {"kl", "mse", "itakura-saito"} or float
        Kullback-Leibler is made for counts.
    layer : str, optional
        The layer that holds the counts; left out, X.
    n_starts : int, optional
        Take the consensus over so many random starts (:func:`consensus`); silhouette and tightness go to `uns`, too.
    key : str
        The name under which results are put.
    options
        Further ones of :func:`factorize`, or of :func:`consensus` if `n_starts` is given.

    Returns
    -------
    Factorization
        Cells and genes by their names.

    Examples
    --------
    >>> import anndata, numpy, cvxnmf  # doctest: +SKIP
    >>> cells = anndata.read_h5ad("counts.h5ad")  # doctest: +SKIP
    >>> cvxnmf.factorize_cells(cells, 10, layer="counts").top(5)  # doctest: +SKIP
    """
    if not all(hasattr(adata, name) for name in ("obs_names", "var_names", "obsm", "varm", "uns", "layers")):
        validation.refuse(f"adata must be an AnnData, not {type(adata).__name__}; use factorize for other data.")
    if layer is not None and layer not in adata.layers:
        known = ", ".join(map(repr, adata.layers)) or "none"
        validation.refuse(f"layer={layer!r} is not in adata.layers; there are: {known}.")
    counts = adata.X if layer is None else adata.layers[layer]
    if counts is None:
        validation.refuse("adata has no X; name the layer that holds the counts.")
    names: dict[str, Any] = {"row_names": tuple(adata.obs_names), "column_names": tuple(adata.var_names)}
    facts: dict[str, Any] = {"loss": str(loss), "layer": layer or "X"}
    if n_starts is None:
        result = factorize(counts, n_components, loss, False, **names, **options)
    else:
        if n_components is None:
            validation.refuse("A consensus needs n_components; choose_rank(adata, ranks) can find it.")
        found = consensus(counts, n_components, loss, n_starts=n_starts, **names, **options)
        result = found.result
        facts |= {"silhouette": found.silhouette, "tightness": list(found.tightness), "kept": found.kept}
    proof = result.certificate
    facts |= {"value": result.value, "bound": proof.bound, "relative_gap": proof.relative_gap, "trust": proof.trust}
    adata.obsm[f"X_{key}"], adata.varm[key], adata.uns[key] = result.U, result.V, facts
    return result
