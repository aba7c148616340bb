"""Graphs on a Dask cluster: the labels of memory, whoever works on the blocks."""

import time

import numpy as np
import pandas as pd
import pytest
from distributed import Client

import cvxnmf
from cvxnmf import cli
from cvxnmf.chunked.conductor import Conducted
from cvxnmf.chunked.dask_connection import open_connection
from cvxnmf.chunked.graphs import worker_labels
from cvxnmf.chunked.graphs.build import graph_of_edges, graph_of_matrix
from cvxnmf.chunked.graphs.on_dask import Workers, sent_graph
from cvxnmf.chunked.graphs.pieces import FrameEdges
from cvxnmf.chunked.graphs.shelf import MemoryShelf
from cvxnmf.chunked.memory import Settings
from cvxnmf.graphs.blocked import search
from cvxnmf.graphs.blocked.description import describe_blocks
from cvxnmf.graphs.blocked.search import find_clusters
from cvxnmf.io import row_pieces
from dask_graphs import ENOUGH, PAIRS, N, Partitions, matrix
from tiers import slow_but


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


def frame_of_names(named, late=True):
    """The edges as a table; some nodes come late."""
    table = pd.DataFrame(PAIRS[np.argsort(PAIRS.max(axis=1))] if late else PAIRS, columns=["source", "target"])
    return "node " + table.astype(str) if named else table


@pytest.mark.parametrize("named", slow_but([True], [False, True]))
def test_labels_and_names_stay_on_the_workers_until_they_are_looked_at(named, client, monkeypatch, expected):
    monkeypatch.setattr(worker_labels, "NODES_OF_A_PART", 250)
    fetched, fetch = [], Conducted.fetch
    monkeypatch.setattr(Conducted, "fetch", lambda self, *field: fetched.append(field[0]) or fetch(self, *field))
    found = cvxnmf.partition(Partitions(frame_of_names(named), 3), client=client)
    here = cvxnmf.partition(frame_of_names(named), memory_limit=ENOUGH)
    assert (len(found.nodes), found.n_clusters, found.sizes.tolist()) == (N, 16, np.bincount(here.labels).tolist())
    assert (found.modularity, found.alternatives, str(found)) == (here.modularity, here.alternatives, str(here).replace(*ORIGINS))
    parts = found.series.__self__.label_parts()
    assert len(parts) == 4
    labels = pd.concat(client.gather(client.compute(parts)))
    assert fetched == ["sentence", "summary", "named"]  # nothing as long as there are nodes
    assert (labels.name, labels.index.name, labels.dtype) == ("cluster", "node", np.int32)
    assert labels.to_dict() == found.to_dict() == here.to_dict()
    assert (found.nodes[7], found.nodes[-1]) == (here.nodes[7], here.nodes[-1])
    assert set(fetched) == {"sentence", "summary", "named", "labels", "nodes"}
    assert found.certificate.digest == here.certificate.digest


ORIGINS = "a data frame of edges", "a dask data frame of edges"


def test_labels_on_workers_of_a_closed_client_are_refused_in_a_sentence(client, expected):
    with Client(client.scheduler.address, set_as_default=False) as other:
        found = cvxnmf.partition(Partitions(frame_of_names(False), 3), client=other)
        nodes = list(found.nodes)
    assert found.n_clusters == 16
    with pytest.raises(ConnectionError, match="a Dask client that is closed; look at them while it is open"):
        _ = found.labels
    by_address = cvxnmf.partition(Partitions(frame_of_names(False), 3), client=client.scheduler.address)  # fetched at the end
    assert np.array_equal(by_address.labels, expected.labels[nodes])


def test_nobody_conducts_a_search_that_was_given_up(client):
    def stop(iterate):
        raise KeyboardInterrupt

    before = searches_on(client)
    with pytest.raises(KeyboardInterrupt):
        cvxnmf.partition(Partitions(frame_of_names(True), 3), client=client, callback=stop)
    until = time.monotonic() + 30
    while any(client.processing().values()) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(client.processing().values())
    assert searches_on(client) <= before
    found = cvxnmf.partition(Partitions(frame_of_names(False), 3), client=client)
    assert len(searches_on(client)) > 0
    del found
    time.sleep(1)
    assert searches_on(client) <= before  # workers keep nothing longer than the result is kept


def searches_on(client):
    """What is kept on the workers of searches."""
    return {key for keys in client.has_what().values() for key in keys if key.startswith("cvxnmf-search")}


def test_a_slice_of_names():
    frame = frame_of_names(True)
    pieces = [FrameEdges(*(part[end].to_numpy() for end in ("source", "target"))) for part in (frame[:3000], frame[3000:])]
    nodes = graph_of_edges(pieces, MemoryShelf(), 1, lambda stage, share: None).nodes
    assert nodes.are_text
    for first, stop in ((0, len(nodes)), (0, 3), (300, 700), (len(nodes) - 1, len(nodes)), (5, 5)):
        assert list(nodes.between(first, stop)) == list(nodes)[first:stop]
