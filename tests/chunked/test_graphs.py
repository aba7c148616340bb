"""Graphs on a Dask cluster: the labels of memory, whoever works on the blocks."""

import numpy as np
import pandas as pd
import pytest

import cvxnmf
from cvxnmf import cli
from cvxnmf.chunked.connection import open_connection
from cvxnmf.chunked.graphs import series
from cvxnmf.chunked.graphs.build import graph_of_matrix
from cvxnmf.chunked.graphs.cluster import Workers, sent_graph
from cvxnmf.chunked.graphs.frames import Columns, graph_of_frame
from cvxnmf.chunked.graphs.shelf import MemoryShelf
from cvxnmf.chunked.memory import Settings
from cvxnmf.graphs.blocked import search
from cvxnmf.graphs.blocked.description import describe_blocks
from cvxnmf.graphs.blocked.search import find_clusters
from cvxnmf.io import row_pieces
from dask_graphs import ENOUGH, PAIRS, Partitions, matrix


@pytest.fixture(scope="module")
def expected():
    return cvxnmf.partition(matrix(), memory_limit=ENOUGH)


def test_a_dask_data_frame_has_the_labels_and_the_certificate_of_memory(client, expected):
    frame = Partitions(pd.DataFrame(PAIRS, columns=["source", "target"]), 5)
    found = cvxnmf.partition(frame, client=client)
    assert np.array_equal(found.labels, expected.labels[list(found.nodes)])
    there = found.certificate
    assert there.digest == expected.certificate.digest
    for graph in (frame, matrix()):
        assert there.check(row_pieces(graph, client=client)) == there.bound
    assert there.check(row_pieces(frame)) == there.bound


def test_a_certificate_of_names_and_whole_weights(client):
    weights = np.random.default_rng(0).integers(1, 20, len(PAIRS)) * 1.0
    names = pd.DataFrame([[f"node {a}", f"node {b}"] for a, b in PAIRS], columns=["source", "target"]).assign(weight=weights)
    found, here = (cvxnmf.partition(Partitions(names, 3), client=client), cvxnmf.partition(names, memory_limit=ENOUGH))
    assert list(found.nodes) == list(here.nodes)
    assert np.array_equal(found.labels, here.labels)
    assert found.certificate.digest == here.certificate.digest
    assert found.certificate.rigorous
    assert found.certificate.check(row_pieces(Partitions(names, 3), client=client)) == here.certificate.bound


def test_smaller_graphs_on_the_workers_have_the_same_labels(client):
    settings = Settings(few_entries=0)
    here = graph_of_matrix(matrix(), MemoryShelf(), 1)
    expected = find_clusters(describe_blocks(here, True), lambda stage, share: None).labels
    graph = sent_graph(Workers(open_connection(client, settings), settings), here)
    assert np.array_equal(find_clusters(describe_blocks(graph, True), lambda stage, share: None).labels, expected)
    graph.close()


@pytest.mark.slow
def test_averages_over_neighbours_on_the_workers_have_the_same_labels(client, monkeypatch):
    monkeypatch.setattr(search, "LOST", -np.inf)
    found = [cvxnmf.partition(matrix(), **place).labels for place in ({"memory_limit": ENOUGH}, {"client": client})]
    assert np.array_equal(*found)
    assert found[0].max() + 1 == 16


def test_a_dask_data_frame_without_a_cluster(expected):
    frame = Partitions(pd.DataFrame(PAIRS, columns=["source", "target"]), 5)
    found = cvxnmf.partition(frame)
    assert np.array_equal(found.labels, expected.labels[list(found.nodes)])


@pytest.mark.slow
def test_names_and_weights_of_a_dask_data_frame(client):
    weights = np.random.default_rng(0).integers(1, 20, len(PAIRS)) / 3.0
    names = pd.DataFrame([[f"node {a}", f"node {b}"] for a, b in PAIRS], columns=["source", "target"]).assign(weight=weights)
    found = cvxnmf.partition(Partitions(names, 3), client=client)
    here = cvxnmf.partition(names, memory_limit=ENOUGH)
    assert list(found.nodes) == list(here.nodes)
    assert np.array_equal(found.labels, here.labels)
    numbers = names.assign(source=PAIRS[:, 0], target=PAIRS[:, 1])
    found = cvxnmf.partition(Partitions(numbers, 4), client=client)
    assert np.array_equal(found.labels, cvxnmf.partition(matrix(weights), memory_limit=ENOUGH).labels[list(found.nodes)])


def test_what_is_wrong_with_a_partition_is_named(client):
    frame = pd.DataFrame(PAIRS, columns=["source", "target"]).assign(weight=1.0)
    frame.loc[len(frame) - 1, "weight"] = -2.0
    with pytest.raises(ValueError, match=r"partition 4 of the dask data frame, row [\d,]+: the weight is -2"):
        cvxnmf.partition(Partitions(frame, 5), client=client)
    with pytest.raises(ValueError, match=r"partition 4 of the dask data frame, row [\d,]+: the weight is -2"):
        cvxnmf.partition(Partitions(frame, 5))


def test_the_command_line_on_dask(client, tmp_path, expected):
    np.save(tmp_path / "edges.npy", PAIRS)
    command = ["partition", str(tmp_path / "edges.npy"), "--dask", client.scheduler.address, "--quiet"]
    assert cli.main([*command, "--output", str(tmp_path / "labels.csv")]) == 0
    table = pd.read_csv(tmp_path / "labels.csv")
    assert np.array_equal(table["cluster"], expected.labels[table["node"]])


@pytest.mark.parametrize("named", [False, True])
def test_workers_name_their_labels(named, client, monkeypatch):
    monkeypatch.setattr(series, "NODES_OF_A_PART", 250)
    table = pd.DataFrame(PAIRS[np.argsort(PAIRS.max(axis=1))], columns=["source", "target"])  # some nodes come late
    table = "node " + table.astype(str) if named else table
    workers = Workers(open_connection(client, Settings()), Settings())
    columns, silent = Columns("source", "target"), lambda stage, share: None
    built = graph_of_frame(workers, Partitions(table, 3), columns, MemoryShelf(), silent)
    labels = np.arange(len(built.nodes), dtype=np.int32)
    futures = built.names.label_futures(labels)
    assert len(futures) >= 4
    found = pd.concat(client.gather(futures))
    assert list(found.index) == list(built.nodes)
    assert found.tolist() == labels.tolist()
    built.graph.close()
