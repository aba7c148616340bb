"""Parquet files and dask's own data frames of edges, which need pyarrow."""

import numpy as np
import pandas as pd
import pytest

import cvxnmf

pytest.importorskip("pyarrow")
ENOUGH = "32 GB"


@pytest.fixture(scope="module")
def frame():
    """Edges inside and between ten groups."""
    rng = np.random.default_rng(0)
    tails = rng.integers(0, 1000, 12_000)
    heads = np.where(rng.random(12_000) < 0.8, tails // 100 * 100 + rng.integers(0, 100, 12_000), rng.integers(0, 1000, 12_000))
    edges = pd.DataFrame({"source": tails, "target": heads, "weight": rng.integers(1, 5, 12_000) / 2})
    return edges[edges["source"] != edges["target"]].reset_index(drop=True)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_parquet_has_the_labels_of_memory(named, weighted, frame, tmp_path):
    edges = frame if weighted else frame.drop(columns="weight")
    if named:
        edges = edges.assign(source="é" + edges["source"].astype(str), target="é" + edges["target"].astype(str))
    edges.to_parquet(tmp_path / "edges.parquet", row_group_size=1000)
    found = cvxnmf.partition(tmp_path / "edges.parquet", memory_limit=ENOUGH)
    here = cvxnmf.partition(edges, memory_limit=ENOUGH)
    assert found.n_clusters == 10
    assert found.to_dict() == here.to_dict()


def test_broken_parquet_is_named(frame, tmp_path):
    path = tmp_path / "edges.parquet"
    frame.assign(weight=np.where(frame.index == 7000, -1.0, 1.0)).to_parquet(path)
    with pytest.raises(ValueError, match=r"edges\.parquet, row 7,000: the weight is -1"):
        cvxnmf.partition(path, memory_limit=ENOUGH)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"edges\.parquet cannot be read as a parquet file"):
        cvxnmf.partition(path, memory_limit=ENOUGH)
    frame.assign(source="x", weight=1.0).to_parquet(path)
    with pytest.raises(ValueError, match=r"edges\.parquet, row 0: names of nodes are numbers here and text before"):
        cvxnmf.partition(path, memory_limit=ENOUGH)
    frame.assign(source=frame["source"].where(frame.index != 5)).to_parquet(path)
    with pytest.raises(ValueError, match=r"edges\.parquet, row 5: a value is missing"):
        cvxnmf.partition(path, memory_limit=ENOUGH)


def test_a_data_frame_of_dask(frame):
    dataframe = pytest.importorskip("dask.dataframe")
    found = cvxnmf.partition(dataframe.from_pandas(frame, npartitions=3))
    assert found.to_dict() == cvxnmf.partition(frame, memory_limit=ENOUGH).to_dict()


@pytest.mark.parametrize("named", [False, True])
def test_labels_as_a_dask_series(named, frame):
    distributed, dd = pytest.importorskip("distributed"), pytest.importorskip("dask.dataframe")
    ends = {end: "é" + frame[end].astype(str) if named else frame[end] * 3 for end in ("source", "target")}
    edges = dd.from_pandas(frame.assign(**ends), npartitions=3)
    here = cvxnmf.partition(edges)
    with distributed.Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        found = cvxnmf.partition(edges, client=client)
        series = found.to_dask()
        for labels in (series.compute(), here.to_dask().compute()):
            assert (labels.name, labels.index.name, labels.dtype) == ("cluster", "node", np.int32)
            assert labels.to_dict() == here.to_dict()
        joined = edges.merge(series.to_frame(), left_on="source", right_index=True).compute()  # on the workers
    assert len(joined) == len(frame)
    assert joined["cluster"].tolist() == [here.to_dict()[node] for node in joined["source"]]
