"""Single cells: AnnData in memory, backed by a file and through Dask; results go back into it."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxnmf

anndata = pytest.importorskip("anndata", reason="single cells need anndata")
pytestmark = pytest.mark.filterwarnings("ignore")  # of other packages about one another


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    rates = 8 * rng.gamma(0.3, size=(90, 3)) @ rng.gamma(0.3, size=(3, 40))
    counts = rng.poisson(rates + 0.05).astype(np.float32)
    found = anndata.AnnData(sp.csr_matrix(counts), layers={"counts": sp.csr_matrix(counts)})
    found.obs_names, found.var_names = [f"cell{i}" for i in range(90)], [f"gene{j}" for j in range(40)]
    return found


def test_results_go_back_into_the_data(cells, tmp_path):
    result = cvxnmf.factorize_cells(cells, 3, layer="counts")
    assert result.row_names[0] == "cell0"
    assert result.top(1)[0].columns[0].name.startswith("gene")
    np.testing.assert_array_equal(cells.obsm["X_nmf"], result.U)
    np.testing.assert_array_equal(cells.varm["nmf"], result.V)
    assert cells.uns["nmf"]["bound"] <= cells.uns["nmf"]["value"]
    cells.write_h5ad(tmp_path / "cells.h5ad")
    assert anndata.read_h5ad(tmp_path / "cells.h5ad").uns["nmf"]["loss"] == "kl"


def test_factorize_and_choose_rank_take_names_from_the_data(cells):
    assert cvxnmf.factorize(cells, 3, loss="kl").column_names[0] == "gene0"
    assert cvxnmf.choose_rank(cells, [2, 3, 4], loss="kl").n_components == 3


@pytest.mark.parametrize("form", [sp.csr_matrix, np.asarray])
def test_a_backed_file_is_read_in_chunks(cells, tmp_path, form):
    dense = cells.X.toarray()
    anndata.AnnData(form(dense), obs=cells.obs, var=cells.var).write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    result = cvxnmf.factorize_cells(backed, 3, loss="mse")
    assert result.column_names[0] == "gene0"
    whole = cvxnmf.factorize(dense, 3)
    assert result.value <= 1.01 * whole.value
    backed.file.close()


def test_zarr_through_dask(cells, tmp_path):
    array = pytest.importorskip("dask.array")
    zarr = pytest.importorskip("zarr")
    store = zarr.create_array(store=str(tmp_path / "x.zarr"), shape=cells.shape, chunks=(30, 40), dtype="f4")
    store[:] = cells.X.toarray()
    lazy = anndata.AnnData(array.from_zarr(str(tmp_path / "x.zarr")), obs=cells.obs, var=cells.var)
    direct = cvxnmf.factorize(store, 3, column_names=cells.var_names)
    assert cvxnmf.factorize_cells(lazy, 3, loss="mse").value == pytest.approx(direct.value, rel=1e-3)


def test_a_consensus_reports_as_cnmf_does(cells):
    cvxnmf.factorize_cells(cells, 3, n_starts=6, key="consensus")
    facts = cells.uns["consensus"]
    assert facts["silhouette"] > 0.9
    assert min(facts["tightness"]) > 0.95
    assert facts["kept"] > 0.8


def test_what_cannot_be_factored_is_said_in_a_sentence(cells):
    negative = cells.copy()
    negative.X = negative.X.toarray() - 1.0
    for call, sentence in (
        (lambda: cvxnmf.factorize_cells(negative, 3), "Negative values in data"),
        (lambda: cvxnmf.factorize_cells(cells, 3, layer="raw"), "there are: 'counts'"),
        (lambda: cvxnmf.factorize_cells(cells.X, 3), "must be an AnnData"),
        (lambda: cvxnmf.factorize_cells(cells, n_starts=5), "needs n_components"),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
    cells.var_names = ["same"] * 40
    with pytest.raises(ValueError, match="'same' more than once"):
        cvxnmf.factorize_cells(cells, 3)
