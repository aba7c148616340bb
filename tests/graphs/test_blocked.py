"""Graphs in blocks of rows: the same labels from memory, from files and in threads, and near those of graphs in memory."""

import gzip
import json
import os

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

import cvxnmf
from cvxnmf import cli
from cvxnmf.chunked.graphs import blocks
from cvxnmf.chunked.graphs.build import graph_of_matrix
from cvxnmf.chunked.graphs.open import READ_WHOLE
from cvxnmf.chunked.graphs.shelf import DiskShelf, MemoryShelf
from cvxnmf.chunked.graphs.text import TextEdges
from cvxnmf.convex.coarsening import coarsen
from cvxnmf.convex.noise import degree_metric
from cvxnmf.graphs.blocked import groups
from cvxnmf.graphs.blocked.description import describe_blocks
from cvxnmf.graphs.blocked.search import find_clusters
from cvxnmf.graphs.description_length import describe_graph
from cvxnmf.graphs.quality import modularity
from cvxnmf.io import read_graph, row_pieces
from cvxnmf.io.formats import ENDINGS
from tiers import slow_but

ENOUGH = "32 GB"


def planted(n=3000, k=6, degree=14, mix=0.25, seed=0):
    """Edges of a planted graph, each once and in any order, and the groups."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, k, n)
    order, starts = np.argsort(groups, kind="stable"), np.append(0, np.cumsum(np.bincount(groups)))
    tails, heads = rng.integers(0, n, (2, n * degree // 2))
    inside = rng.random(len(tails)) > mix
    first, stop = starts[groups[tails[inside]]], starts[groups[tails[inside]] + 1]
    heads[inside] = order[(first + rng.random(len(first)) * (stop - first)).astype(int)]
    pairs = np.unique(np.sort(np.column_stack([tails, heads])[tails != heads], axis=1), axis=0)
    return rng.permutation(pairs), groups


def matrix_of(pairs, n, weights=None):
    values = np.ones(len(pairs)) if weights is None else weights
    A = sp.coo_array((values, (pairs[:, 0], pairs[:, 1])), shape=(n, n)).tocsr()
    return sp.csr_array(A + A.T)


PAIRS, GROUPS = planted()
N = len(GROUPS)


@pytest.fixture(scope="module")
def expected():
    """The labels of the graph in memory, worked on in blocks."""
    return cvxnmf.partition(matrix_of(PAIRS, N), memory_limit=ENOUGH)


def written(folder, kind):
    """The edges in files of one kind, as partition takes them."""
    frame = pd.DataFrame(PAIRS, columns=["source", "target"])
    path = folder / f"edges.{kind}"
    if kind == "npy":
        np.save(path, PAIRS.astype(np.int32))
    elif kind == "csv.gz":
        frame.to_csv(path, index=False)
    elif kind == "folder":
        path.mkdir()
        for number, part in enumerate(np.array_split(PAIRS, 3)):
            np.savetxt(path / f"part-{number}.txt", part, fmt="%d")
    elif kind == "list":
        path = [folder / "a.tsv", folder / "b.tsv"]
        for name, part in zip(path, np.array_split(PAIRS, 2), strict=True):
            np.savetxt(name, part[:, ::-1], fmt="%d", delimiter="\t", comments="")
    elif kind == "npz":
        A = matrix_of(PAIRS, N)
        path = [folder / "rows-0.npz", folder / "rows-1.npz"]
        for name, part in zip(path, (A[:1000], A[1000:]), strict=True):
            sp.save_npz(name, part)
    else:
        frame.assign(note="x").to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "npy", "npz", "folder", "list"])
def test_files_have_the_labels_of_memory(kind, tmp_path, expected):
    found = cvxnmf.partition(written(tmp_path, kind), memory_limit=ENOUGH)
    assert np.array_equal(list(found.nodes), np.unique(PAIRS))
    assert np.array_equal(found.labels, expected.labels[np.unique(PAIRS)])
    assert found.modularity == pytest.approx(expected.modularity, abs=1e-12)


def test_arrays_and_frames_have_the_labels_of_memory(expected):
    frame = pd.DataFrame(PAIRS, columns=["source", "target"])
    for graph in (PAIRS, frame):
        found = cvxnmf.partition(graph, memory_limit=ENOUGH)
        assert np.array_equal(found.labels, expected.labels[list(found.nodes)])


def test_names_have_the_same_labels_whatever_the_pieces(tmp_path):
    frame = pd.DataFrame([[f"n {a}", f"n {b}"] for a, b in PAIRS], columns=["source", "target"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.sample(frac=1.0, random_state=0).to_csv(tmp_path / "b.csv", index=False)
    found = [cvxnmf.partition(graph, memory_limit=ENOUGH) for graph in (frame, tmp_path / "a.csv", tmp_path / "b.csv")]
    assert found[0].nodes[0] == found[1].nodes[0] == frame["source"][0]
    assert list(found[1].nodes)[7] == found[1].nodes[7]
    assert found[0].to_dict() == found[1].to_dict() == found[2].to_dict()
    assert found[0].n_clusters == 6


def test_clusters_are_as_good_as_in_memory(expected):
    A = matrix_of(PAIRS, N)
    usual = cvxnmf.partition(A)
    assert expected.n_clusters == usual.n_clusters == 6
    assert normalized_mutual_info_score(GROUPS, expected.labels) > normalized_mutual_info_score(GROUPS, usual.labels) - 0.01
    assert expected.modularity == pytest.approx(modularity(A, expected.labels), abs=1e-12)
    assert expected.performance == pytest.approx(cvxnmf.performance(A, expected.labels), abs=1e-12)
    assert expected.off_diagonal_performance == pytest.approx(cvxnmf.performance(A, expected.labels, diagonal=False), abs=1e-12)


def test_many_blocks_have_the_same_labels_in_any_threads_and_places():
    pairs, groups = planted(20_000, 8, 16)
    found = []
    for count, kept in ((2, MemoryShelf), (1, MemoryShelf), (2, DiskShelf)):
        graph = graph_of_matrix(matrix_of(pairs, len(groups)), kept(), count)
        assert len(graph.rows.bounds) > blocks.COLOURS
        found.append(find_clusters(describe_blocks(graph, True), lambda stage, share: None).labels)
    assert all(np.array_equal(labels, found[0]) for labels in found)
    assert normalized_mutual_info_score(groups, found[0]) > 0.98


def test_weights_of_files_and_of_memory(tmp_path):
    weights = np.random.default_rng(1).integers(1, 9, len(PAIRS)) / 4
    pd.DataFrame({"source": PAIRS[:, 0], "target": PAIRS[:, 1], "weight": weights}).to_csv(tmp_path / "w.csv", index=False)
    A = matrix_of(PAIRS, N, weights)
    found = [cvxnmf.partition(graph, memory_limit=ENOUGH) for graph in (tmp_path / "w.csv", A)]
    assert np.array_equal(found[0].labels, found[1].labels[list(found[0].nodes)])
    assert found[1].modularity == pytest.approx(modularity(A, found[1].labels), abs=1e-12)
    assert normalized_mutual_info_score(GROUPS, found[1].labels) > 0.9


def test_objectives_and_numbers_of_clusters():
    A = matrix_of(PAIRS, N)
    modular = cvxnmf.partition(A, objective="modularity", memory_limit=ENOUGH)
    assert modular.modularity > cvxnmf.partition(A, objective="modularity").modularity - 0.01
    assert cvxnmf.partition(A, 4, memory_limit=ENOUGH).n_clusters == 4
    with pytest.raises(ValueError, match="fewer than the 500 asked for"):
        cvxnmf.partition(A, 500, memory_limit=ENOUGH)


def test_nodes_without_edges_loops_and_repeated_edges(tmp_path, expected):
    A = sp.block_diag([matrix_of(PAIRS, N), sp.csr_array((2, 2))], format="csr")
    assert np.array_equal(cvxnmf.partition(A, memory_limit=ENOUGH).labels[:N], expected.labels)
    twice = np.concatenate([PAIRS, PAIRS[:50, ::-1], PAIRS[:9]])
    np.save(tmp_path / "e.npy", twice)
    found = cvxnmf.partition(tmp_path / "e.npy", memory_limit=ENOUGH)
    assert np.array_equal(found.labels, expected.labels[list(found.nodes)])
    looped = cvxnmf.partition(np.concatenate([PAIRS, [[0, 0]]]), memory_limit=ENOUGH)
    assert looped.A.nnz == 2 * len(PAIRS) + 1


def test_a_small_graph_in_blocks_can_be_looked_at():
    pairs, groups = planted(n=200, k=3)
    found = cvxnmf.partition(pairs, memory_limit=ENOUGH)
    assert "in blocks" in repr(found)
    assert "memberships, factors and proofs of the labels need it in memory" in str(found)
    assert "memberships, factors and proofs of the labels need it in memory" in found._repr_html_()
    assert "proved when certificate is asked for" in str(found)
    assert "Proved as soon as you look at it: .certificate<" in found._repr_html_()
    assert "proof when asked for" in repr(found)
    assert found.certificate.relative_gap < 1e-4
    assert "proved bound" in str(found)
    assert "The model behind them" in found._repr_html_()
    assert "OPTIMAL" in repr(found)
    assert found.to_frame().columns.tolist() == ["node", "cluster"]
    with pytest.raises(ValueError, match=r"to_frame\(\) and to_dask\(\) to keep them"):
        cvxnmf.save(found, os.devnull)


def test_labels_in_blocks_are_proved_by_the_graph_in_memory():
    pairs, groups = planted(n=200, k=3)
    A = matrix_of(pairs, 200)
    found = cvxnmf.partition(A, memory_limit=ENOUGH)
    certificate = cvxnmf.verify_labels(A, found, effort=0.01)
    assert certificate.value == pytest.approx(found.modularity)
    assert certificate.value <= certificate.check(A) == certificate.bound
    assert certificate.rigorous


@pytest.mark.parametrize("kind", slow_but(["csv", "npz"], ["csv", "npy", "npz", "list"]))
def test_files_have_the_certificate_of_memory(kind, tmp_path, expected):
    path = written(tmp_path, kind)
    found = cvxnmf.partition(path, memory_limit=ENOUGH)
    assert found.certificate.digest == expected.certificate.digest
    assert found.certificate.rigorous
    assert found.certificate.relative_gap < 1e-4
    assert found.certificate.check(row_pieces(path, memory_limit=ENOUGH)) == found.certificate.bound
    A = matrix_of(PAIRS, N)
    assert found.certificate.check(A) == found.certificate.bound
    (level,) = found.levels
    assert level.size == found.n_groups > 50
    assert level.words == "models of this form whose nodes share positions in groups"


@pytest.mark.slow
def test_groups_tell_more_than_clusters_and_most_of_what_positions_of_nodes_do(expected):
    A = matrix_of(PAIRS, N)
    kept = np.flatnonzero(np.diff(A.indptr))
    part, d = sp.csr_array(A[kept][:, kept]), A.sum(axis=1)[kept]
    clusters = coarsen(part, degree_metric(d), expected.labels[kept].astype(np.intp))
    alone = clusters.solve(expected.certificate.statement["trace"]).certificate
    usual = cvxnmf.partition(A)
    assert expected.certificate.statement["trace"] == pytest.approx(usual.noise_edge, rel=1e-12)
    without_positions = d.sum() * np.log(d.sum()) - 2 * np.sum(d * np.log(d))
    gains = [without_positions - certificate.value for certificate in (alone, expected.certificate, usual.certificate)]
    assert gains[0] < 0.8 * gains[2] < 0.85 * gains[2] < gains[1] < gains[2]
    assert np.all(expected.spectrum[:5] < usual.spectrum[:5])
    assert np.all(expected.spectrum[:5] > expected.noise_edge)


def test_names_are_listed_alike_in_the_certificate(tmp_path):
    frame = pd.DataFrame([[f"n {a}", f"n {b}"] for a, b in PAIRS], columns=["source", "target"])
    frame.to_csv(tmp_path / "named.csv", index=False)
    found = cvxnmf.partition(tmp_path / "named.csv", memory_limit=ENOUGH)
    in_memory = read_graph(tmp_path / "named.csv")
    assert tuple(found.nodes) == in_memory.nodes
    assert found.certificate.check(in_memory.A) == found.certificate.bound
    assert found.certificate.check(row_pieces(tmp_path / "named.csv")) == found.certificate.bound
    shuffled = frame.sample(frac=1.0, random_state=0)
    with pytest.raises(cvxnmf.CertificateError, match="metric|the stated"):
        found.certificate.check(row_pieces(shuffled, memory_limit=ENOUGH))  # its nodes are listed otherwise


@pytest.mark.parametrize("unit", slow_but([1], [1, 3]))
def test_weights_loops_and_nodes_without_edges_are_in_the_certificate(unit):
    weights = np.random.default_rng(1).integers(1, 9, len(PAIRS)) / unit
    A = matrix_of(PAIRS, N, weights)
    A = sp.csr_array(sp.block_diag([sp.csr_array((2, 2)), A + sp.diags_array(np.arange(N) % 3 * 1.0)], format="csr"))
    found = cvxnmf.partition(A, memory_limit=ENOUGH)
    assert found.certificate.rigorous is (unit == 1)  # sums of thirds are rounded
    assert found.certificate.relative_gap < 1e-4
    assert found.noise_edge == pytest.approx(cvxnmf.partition(A, n_groups=100).noise_edge, rel=0.03)
    for data in (A, row_pieces(A), [A[:1000], A[1000:]]):
        assert found.certificate.check(data) == pytest.approx(found.certificate.bound, rel=1e-12)


def test_pieces_of_any_size_are_the_graph(monkeypatch):
    A = sp.csr_array(matrix_of(PAIRS, N) + sp.diags_array(np.arange(N) % 2 * 1.0))
    monkeypatch.setattr("cvxnmf.chunked.graphs.row_pieces.ENTRIES", 1000)
    parts = list(row_pieces(A))
    assert len(parts) > 20
    assert np.array_equal(sp.vstack(parts).toarray(), A.toarray())
    found = [cvxnmf.partition(A, memory_limit=ENOUGH).certificate]
    monkeypatch.undo()
    found.append(cvxnmf.partition(A, memory_limit=ENOUGH).certificate)
    assert found[0].digest == found[1].digest


def test_clusters_that_nothing_tells_apart_have_a_certificate():
    pairs = np.column_stack([np.arange(60), (np.arange(60) + 1) % 60])
    for graph, k in ((pairs, None), (PAIRS, 1), ([(0, 1)], None)):
        found = cvxnmf.partition(graph, k, memory_limit=ENOUGH)
        assert found.n_groups >= 2
        assert found.certificate.check(row_pieces(graph)) == found.certificate.bound


def test_many_clusters_are_merged_for_the_model(monkeypatch, expected):
    monkeypatch.setattr("cvxnmf.graphs.blocked.partition.MOST_DIRECTIONS", 4)
    found = cvxnmf.partition(matrix_of(PAIRS, N), memory_limit=ENOUGH)
    assert np.array_equal(found.labels, expected.labels)
    assert found.solution.rank == 3 < expected.solution.rank
    assert found.certificate.bound > expected.certificate.value
    assert found.certificate.check(matrix_of(PAIRS, N)) == found.certificate.bound


def test_kinds_of_nodes_are_heaviest_first(monkeypatch):
    A = matrix_of(PAIRS, N)
    A = sp.csr_array(A[np.ix_(np.diff(A.indptr) > 0, np.diff(A.indptr) > 0)])
    graph, labels = graph_of_matrix(A, MemoryShelf(), 1), GROUPS[: A.shape[0]].astype(np.int32)
    monkeypatch.setattr(groups, "FEWEST_SHARES", 27)
    many, few = (groups.group_nodes(graph, labels, most) for most in (1000, 20))
    assert few.max() + 1 == 20
    assert len(np.unique(np.column_stack([few, labels]), axis=0)) == 20  # no group has nodes of two clusters
    links = A @ np.eye(6)[labels]
    own = links[np.arange(len(labels)), labels]
    share = np.minimum((27 * own / links.sum(axis=1)).astype(int), 26)
    links[np.arange(len(labels)), labels] = 0.0
    other = np.where(links.max(axis=1) > 0, links.argmax(axis=1), labels)
    kinds = np.unique(np.column_stack([labels, other, share]), axis=0, return_inverse=True)[1].ravel()
    assert len(np.unique(kinds)) == many.max() + 1 == len(np.unique(np.column_stack([kinds, many]), axis=0))
    weights = np.bincount(kinds, A.sum(axis=1))
    alone = [kind for kind in range(len(weights)) if len(np.unique(kinds[few == few[kinds == kind][0]])) == 1]
    assert set(np.argsort(-weights, kind="stable")[:14]) <= set(alone)


def test_what_a_graph_in_blocks_does_not_have(expected):
    assert "6 clusters" in repr(expected)
    with pytest.raises(ValueError, match="the graph must fit in memory"):
        _ = expected.memberships
    with pytest.raises(ValueError, match="Graphs in blocks .* have labels and the certificate of their model: leave out"):
        cvxnmf.partition(PAIRS, memory_limit=ENOUGH, prove=True)
    with pytest.raises(ValueError, match="Graphs in blocks .* have labels and the certificate of their model: leave out"):
        cvxnmf.partition(PAIRS, memory_limit=ENOUGH, start=expected.labels)
    with pytest.raises(ValueError, match=r"memory limit of 1 MB is too little.* give at least [\d,]+ MB"):
        cvxnmf.partition(PAIRS, memory_limit="1 MB")


BROKEN = [
    ("a,b\n", "1,2\n3,4\n5\n", r"line 4: 2 cells are expected"),
    ("source,target,weight\n", "1,2,1\n2,3,-1\n", r"line 3: the weight is -1; weights are finite and at least 0"),
    ("source,target,weight\n", "1,2,1\n2,3,x\n", r"line 3: expected a weight, found 'x'"),
    ("", "1 2\n" * 20_000 + "2 ann\n", r"line 20,001: the name 'ann' is no whole number, as all names before are"),
    ("", 'a,b\nb,"c\n', r"line 2: the quotation marks do not match"),
    ("", "a,b\nb,\n", r"line 2: a name is empty"),
    ("# nothing\n", "", r"has no edges"),
]


@pytest.mark.parametrize(("head", "lines", "sentence"), BROKEN)
def test_broken_text_is_named_by_its_line(head, lines, sentence, tmp_path):
    path = tmp_path / "e.csv"
    path.write_text(head + lines)
    with pytest.raises(ValueError, match=sentence):
        cvxnmf.partition(path, memory_limit=ENOUGH)


def test_broken_files_are_named(tmp_path):
    whole, short, packed, other = (tmp_path / name for name in ("whole.npy", "short.npy", "short.csv.gz", "text.csv"))
    np.save(whole, PAIRS)
    short.write_bytes(whole.read_bytes()[:-40])
    packed.write_bytes(gzip.compress(b"1,2\n" * 100_000)[:-30])
    other.write_text("ann,bob\n")
    rows, bad = tmp_path / "rows.npz", tmp_path / "bad.npz"
    sp.save_npz(rows, matrix_of(PAIRS, N)[:10])
    bad.write_bytes(rows.read_bytes()[:-50])
    for graph, sentence in [
        (short, r"short\.npy cannot be read as an \.npy file"),
        (packed, r"short\.csv\.gz is damaged or incomplete"),
        ([whole, other], r"text\.csv, line 1: names of nodes are text here and numbers before"),
        (tmp_path / "none.csv", "does not exist"),
        (rows, r"rows\.npz has 3,000 columns, but the rows of all pieces are 10"),
        (bad, r"bad\.npz cannot be read as a matrix of scipy\.sparse"),
        (np.column_stack([PAIRS, PAIRS]), "."),
    ]:
        with pytest.raises(ValueError, match=sentence):
            cvxnmf.partition(graph, memory_limit=ENOUGH)


def test_formats_that_are_read_as_a_whole_are_not_taken_for_text(tmp_path):
    """Lines of a Matrix Market file, its sizes among them, look like edges."""
    in_blocks = {".parquet", ".pq", ".npy", ".npz", ".edges", ".edgelist", ".el"}
    assert set(ENDINGS) - in_blocks == set(READ_WHOLE)
    path = tmp_path / "graph.mtx"
    scipy.io.mmwrite(path, matrix_of(PAIRS, N))
    with pytest.raises(ValueError, match=r"graph\.mtx cannot be read in blocks; give an edge list"):
        cvxnmf.partition(path, memory_limit=ENOUGH)


def test_temporary_files_go_when_the_work_is_interrupted(tmp_path, monkeypatch):
    def interrupt(iterate):
        if iterate.stage == "moves":
            raise KeyboardInterrupt

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        cvxnmf.partition(PAIRS[:2000], memory_limit=ENOUGH, callback=interrupt)
    assert not list(tmp_path.iterdir())


def test_temporary_files_go_with_the_result(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    found = cvxnmf.partition(PAIRS, memory_limit=ENOUGH)
    assert sum(len(files) for _, _, files in os.walk(tmp_path)) == 0
    del found
    assert list(tmp_path.iterdir()) == []


def test_lines_as_people_write_them(tmp_path):
    path = tmp_path / "e.txt"
    path.write_bytes(b'\xef\xbb\xbf# comment\r\n"a b"\tb\r\nb\t c \r\n\r\nc\t"a b"\r\nd\te\r\ne\tf\r\nf\td')
    found = cvxnmf.partition(path, memory_limit=ENOUGH)
    assert list(found.nodes) == ["a b", "b", "c", "d", "e", "f"]
    assert found.A.nnz == 12


def test_lines_are_whole_however_text_is_cut(tmp_path):
    path = tmp_path / "e.csv"
    np.savetxt(path, PAIRS, fmt="%d", delimiter=",")
    pieces = list(TextEdges(str(path), piece=1000).pieces())
    assert len(pieces) > 50
    assert np.array_equal(np.concatenate([np.column_stack([piece.tails, piece.heads]) for piece in pieces]), PAIRS)
    assert np.array_equal(np.concatenate([piece.place.numbers for piece in pieces]), 1 + np.arange(len(PAIRS)))
    assert pieces[-1].share == 1.0


def test_wedges_are_those_of_memory(expected):
    near = [np.column_stack([np.arange(N - step), np.arange(step, N)]) for step in (1, 2)]  # which close wedges
    A = matrix_of(PAIRS, N) + sum(matrix_of(pairs, N) for pairs in near)
    A = sp.csr_array((A > 0).astype(float))
    described = describe_blocks(graph_of_matrix(A, MemoryShelf(), 1), True)
    labels = (np.arange(N) // 500).astype(np.int64)
    assert describe_graph(A).tied_edges(labels) > 1.001
    assert described.tied_edges(labels) == pytest.approx(describe_graph(A).tied_edges(labels), rel=1e-12)


def test_the_command_line(tmp_path, capsys, expected):
    path, out = written(tmp_path, "csv"), tmp_path / "labels.csv"
    assert cli.main(["partition", str(path), "--memory-limit", "32GB", "--output", str(out), "--quiet"]) == 0
    assert f"edges.csv: {len(np.unique(PAIRS)):,} nodes, {len(PAIRS):,} edges, 6 clusters" in capsys.readouterr().out
    table = pd.read_csv(out)
    assert np.array_equal(table["cluster"], expected.labels[table["node"]])
    assert cli.main(["partition", str(path), "--memory-limit", "32GB", "--json", "--quiet"]) == 0
    assert '"n_clusters": 6' in capsys.readouterr().out
    proof, small = tmp_path / "proof.npz", tmp_path / "small.csv"
    command = ["partition", str(path), "--memory-limit", "32GB", "--json", "--quiet"]
    assert cli.main([*command, "--certificate", str(proof)]) == 0
    facts = json.loads(capsys.readouterr().out)["certificate"]
    assert (facts["bound"], facts["groups"]) == (expected.certificate.bound, expected.n_groups)
    for limit in (["--memory-limit", "32GB"], []):
        assert cli.main(["verify", str(path), str(proof), "--json", "--quiet", *limit]) == 0
        assert json.loads(capsys.readouterr().out)["checked_bound"] == facts["bound"]
    small.write_text("\n".join(path.read_text().splitlines()[:-1]))
    assert cli.main(["verify", str(small), str(proof), "--memory-limit", "32GB"]) == 1
    assert "does not hold for these data" in capsys.readouterr().err
    assert cli.main([*command, "--tol", "1e-16"]) == 3
    assert cli.main(["partition", str(path), "--memory-limit", "32GB", "--tol", "1e-3", "--quiet"]) == 0
    assert f"with these {expected.n_groups} groups of nodes" in capsys.readouterr().out
    assert cli.main(["partition", str(path), "--memory-limit", "32GB", "--prove"]) == 1
    assert "--prove needs the graph in memory" in capsys.readouterr().err


def named_edges(separator=",", quoted=False):
    """Lines of two triangles of people, who are joined once, with weights."""
    pairs = [("Ann", "Bob"), ("Bob", "Cal"), ("Ann", "Cal"), ("Dan", "Eve"), ("Eve", "Fay"), ("Dan", "Fay"), ("Cal", "Dan")]
    write = (lambda name: f'"{name}, Dr"') if quoted else str
    return [separator.join((write(a), write(b), str(weight))) for weight, (a, b) in enumerate(pairs, 1)]


@pytest.mark.parametrize("quoted", [False, True])
def test_headers_weights_and_quotes_are_read_as_in_memory(tmp_path, capsys, quoted):
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["author,coauthor,papers", *named_edges(quoted=quoted)]))
    in_memory = read_graph(path)
    found = cvxnmf.partition(path, memory_limit=ENOUGH)
    assert sorted(found.nodes) == sorted(in_memory.nodes)
    opened = [edge for piece in TextEdges(str(path)).pieces() for edge in piece.weights]
    assert sorted(opened) == sorted(sp.triu(in_memory.A).data)
    assert cli.main(["partition", str(path), "--memory-limit", "32GB"]) == 0
    said = capsys.readouterr().err
    assert "Line 1 is taken as a header" in said
    assert "third column is taken as weights" in said


def test_ways_of_reading_that_are_asked_for_are_taken(tmp_path, capsys):
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["u;v;9", *named_edges(";")]))
    for option, nodes in ((["--header"], 6), (["--no-header"], 8)):
        assert cli.main(["partition", str(path), "--memory-limit", "32GB", "--json", "--quiet", *option]) == 0
        assert f'"nodes": {nodes},' in capsys.readouterr().out
    assert cli.main(["partition", str(path), "--memory-limit", "32GB", "--separator", "tab"]) == 1
    assert "expected two names" in capsys.readouterr().err


def test_tables_and_broken_weights_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\n".join(",".join("123456") for _ in range(6)))
    with pytest.raises(ValueError, match="not clearly a list of edges"):
        cvxnmf.partition(path, memory_limit=ENOUGH)
    lines = ["author,coauthor,papers", *named_edges()]
    lines[4] = "Dan,Eve,many"
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match="line 5: expected a weight, found 'many'"):
        cvxnmf.partition(path, memory_limit=ENOUGH)
    path.write_text('"Ann,Bob\n')
    with pytest.raises(ValueError, match="quotation marks"):
        cvxnmf.partition(path, memory_limit=ENOUGH)


def test_pictures_of_a_graph_in_blocks_are_refused_in_a_sentence():
    found = cvxnmf.partition(PAIRS, memory_limit=ENOUGH)
    for show in (cvxnmf.report.html, cvxnmf.plots.graph):
        with pytest.raises(ValueError, match="the graph must fit in memory"):
            show(found)
