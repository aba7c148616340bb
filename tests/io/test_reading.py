"""Graphs, matrices and factors in any format: round trips, and one sentence for any broken file."""

import gzip
import io

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from files import dense, sentence_of, written
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxnmf.io import FORMATS, FileError, networks, read_graph, read_matrix, reading
from cvxnmf.io.reading import read_factors


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("g.txt", b"", "is empty"),
        ("g.txt", b"\n \n", "is empty"),
        ("g.txt", b"# only comments\n", "only comments"),
        ("g.csv", b"source,target\n", "a header and no edges"),
        ("g.txt", b"a\0b\n", "neither text nor in a format known"),
        ("g.txt", b"\xff\xfea", "UTF-8"),
        ("g.xlsx", b"PK", "save the sheet as CSV"),
        ("g.txt.gz", b"a b\n", "not packed with gzip"),
        ("g.txt.gz", gzip.compress(b"a b\n" * 1000, mtime=0)[:-9], "damaged or incomplete gzip"),
        ("g.npy", b"a b\n", "does not begin like one"),
        ("g.npz", b"a b\n", "does not begin like one"),
        ("g.mtx", b"a b\n", "does not begin like one"),
        ("g.gml", b"graph [ node [ id 1 ]", "a GML file"),
        ("g.gml", b"graph [\nnode [\nid 1\nla", ", line 4: cannot be read as a GML file"),
        ("g.gml", b"graph [\nnode [\nid 1\nla", "; is the file cut off?"),
        ("g.gml", b"graph [\nnode [\nid : 1\n]\n]\n", ", line 3: cannot be read as a GML file"),
        ("g.mat", b"MATLAB 5.0 MAT-file\0", "scipy.io.loadmat"),
        ("g.gml", b"graph [ ]", "no nodes"),
        ("g.graphml", b"<graphml><graph>", "a GraphML file"),
        ("g.graphml", b"<graphml></graphml>", "a GraphML file"),
        ("g.mtx", b"%%MatrixMarket matrix coordinate real general\n9 9 999999999\n1 1 1\n", "999999999 entries"),
        ("g.mtx", b"%%MatrixMarket matrix coordinate real general\nx\n", ", line 2: expected 3 sizes, found 'x'."),
        ("g.mtx", b"%%MatrixMarket matrix coordinate real general\n", "no line of sizes"),
        ("g.mtx", b"%%MatrixMarket matrix coordinate complex general\n1 1 0\n", "complex"),
        ("g.mtx", b"%%MatrixMarket vector\n1 1 0\n", ", line 1: expected"),
        (
            "g.mtx",
            b"%%MatrixMarket matrix coordinate real general\n% c\n2 2 2\n1 1 1\n% c\n1 y 1\n",
            ", line 6: expected numbers",
        ),
        ("g.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n", "outside of its 2 rows"),
        ("g.mtx", b"%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n", "is square"),
        ("g.npy", b"\x93NUMPY\x01\x00", "a numpy .npy file"),
        ("g.npz", b"PK\x03\x04junk", "a numpy .npz file"),
    ],
)
def test_broken_files_are_one_sentence(tmp_path, name, content, words):
    assert words in sentence_of(written(tmp_path, name, content))


def test_missing_files_folders_and_pickles(tmp_path):
    assert "does not exist" in sentence_of(tmp_path / "none.csv")
    assert "is a folder" in sentence_of(tmp_path)
    np.save(tmp_path / "o.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    assert "holds Python objects" in sentence_of(tmp_path / "o.npy")


def matrix_files(folder, A):
    """The same matrix in every format that holds matrices."""
    np.save(folder / "a.npy", A)
    np.savez(folder / "a.npz", A)
    np.savez_compressed(folder / "named.npz", A=A, other=np.eye(2))
    sp.save_npz(folder / "sparse.npz", sp.csr_array(A))
    sp.save_npz(folder / "coo.npz", sp.coo_array(A))
    scipy.io.mmwrite(folder / "a.mtx", sp.coo_array(A))
    scipy.io.mmwrite(folder / "dense.mtx", A)
    (folder / "packed.mtx.gz").write_bytes(gzip.compress((folder / "a.mtx").read_bytes()))
    np.savetxt(folder / "a.csv", A, delimiter=",")
    np.savetxt(folder / "a.tsv", A, delimiter="\t")
    np.savetxt(folder / "a.txt", A)
    return sorted(folder.iterdir())


def test_matrices_round_trip_in_every_format(tmp_path):
    A = np.random.default_rng(0).integers(0, 5, (6, 4)) / 4
    for path in matrix_files(tmp_path, A):
        matrix = read_matrix(path).A
        np.testing.assert_array_equal(matrix.toarray() if sp.issparse(matrix) else matrix, A, err_msg=str(path))


def test_adjacency_matrices_in_every_format(tmp_path):
    A = nx.to_numpy_array(nx.karate_club_graph())
    for path in matrix_files(tmp_path, A):
        graph = read_graph(path)
        assert graph.nodes == tuple(map(str, range(34)))
        np.testing.assert_array_equal(dense(graph), A, err_msg=str(path))
    np.testing.assert_array_equal(dense(read_graph(tmp_path / "a.csv", weights=False)), A > 0)


def test_adjacency_matrices_with_names(tmp_path):
    import pandas as pd

    names = ["x", "y", "z", "w"]
    frame = pd.DataFrame(np.ones((4, 4)) - np.eye(4), index=names, columns=names)
    frame.to_csv(tmp_path / "a.csv")
    graph = read_graph(tmp_path / "a.csv")
    assert graph.nodes == tuple(names)
    np.testing.assert_array_equal(dense(graph), frame.to_numpy())
    assert "adjacency matrix" in graph.notes[-1]


def test_columns_of_an_adjacency_matrix_are_taken_by_name(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(np.arange(16.0).reshape(4, 4) + 1.0, index=list("xyzw"), columns=list("xyzw"))
    frame[list("wzyx")].to_csv(tmp_path / "a.csv")
    np.testing.assert_array_equal(dense(read_graph(tmp_path / "a.csv")), frame.to_numpy())
    frame.set_axis(range(4)).to_csv(tmp_path / "b.csv")
    assert read_graph(tmp_path / "b.csv").nodes == tuple("xyzw")
    frame.rename(columns={"x": "q"}).to_csv(tmp_path / "c.csv")
    assert "has a row 'x' and no column of this name" in sentence_of(tmp_path / "c.csv")


def test_graphs_are_square_and_matrices_are_matrices(tmp_path):
    np.save(tmp_path / "r.npy", np.ones((2, 3)))
    assert "2 by 3" in sentence_of(tmp_path / "r.npy")
    np.save(tmp_path / "v.npy", np.ones(3))
    assert "shape (3,)" in sentence_of(tmp_path / "v.npy", read_matrix)
    np.savez(tmp_path / "m.npz", p=np.eye(2), q=np.eye(3))
    assert "the matrices in it are: p, q" in sentence_of(tmp_path / "m.npz", read_matrix)


def test_matrices_of_graph_files(tmp_path):
    graph = nx.karate_club_graph()
    nx.write_gml(graph, tmp_path / "g.gml")
    matrix = read_matrix(tmp_path / "g.gml")
    np.testing.assert_array_equal(matrix.A.toarray(), nx.to_numpy_array(graph))
    assert matrix.rows == matrix.columns == tuple(map(str, graph))
    assert read_matrix(written(tmp_path, "g.txt", "a b\n"), "edges").A.shape == (2, 2)


def test_certificates_are_no_matrices(tmp_path, karate):
    import cvxnmf

    cvxnmf.verify(karate, np.ones((34, 1))).save(tmp_path / "c.npz")
    assert "is a Certificate written by cvxnmf" in sentence_of(tmp_path / "c.npz", read_matrix)
    assert "is a Certificate" in sentence_of(tmp_path / "c.npz", read_factors)


@pytest.mark.parametrize("start", [" " * 3000, "\n" * 3000, " \n" * 1500, "Creator x\n" * 400, "# \n " * 900])
def test_any_beginning_is_recognised(tmp_path, start):
    assert read_graph(written(tmp_path, "g.edges", f"{start}a b\n"), header=False).nodes[-2:] == ("a", "b")


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.binary(max_size=200), st.text(max_size=80).map(str.encode)),
    st.sampled_from(["csv", "gml", "graphml", "mtx", "npy", "npz", "gz", "x"]),
)
def test_junk_is_read_or_refused_in_a_sentence(folder, junk, ending):
    check_read_or_refused(folder / f"g.{ending}", junk)


def samples():
    graph, A = nx.karate_club_graph(), nx.to_numpy_array(nx.karate_club_graph())
    arrays = {}
    for name, save in {
        "a.npy": lambda f: np.save(f, A),
        "a.npz": lambda f: np.savez(f, A),
        "s.npz": lambda f: sp.save_npz(f, sp.csr_array(A)),
        "a.mtx": lambda f: scipy.io.mmwrite(f, sp.coo_array(A)),
        "g.graphml": lambda f: nx.write_graphml(graph, f),
        "g.gml": lambda f: nx.write_gml(graph, f),
    }.items():
        stream = io.BytesIO()
        save(stream)
        arrays[name] = stream.getvalue()
    text = "\n".join(nx.generate_edgelist(graph, delimiter=",", data=["weight"]))
    return arrays | {"g.csv": text.encode(), "g.csv.gz": gzip.compress(text.encode(), mtime=0)}


SAMPLES = samples()


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_damaged_files_are_read_or_refused_in_a_sentence(folder, name, data):
    content = bytearray(SAMPLES[name])
    if data.draw(st.booleans(), "cut"):
        content = content[: data.draw(st.integers(0, len(content)), "length")]
    for _ in range(data.draw(st.integers(0, 3), "changes") if content else 0):
        content[data.draw(st.integers(0, len(content) - 1), "place")] = data.draw(st.integers(0, 255), "byte")
    check_read_or_refused(folder / name, bytes(content))


def check_read_or_refused(path, content):
    path.write_bytes(content)
    for read in (read_graph, read_matrix):
        try:
            found = read(path)
        except FileError as error:
            assert str(error).startswith(str(path))
            assert "\n" not in str(error)
        except MemoryError:
            pass
        else:
            assert found.A.ndim == 2
            if read is read_graph:
                assert found.A.shape == (len(found.nodes), len(found.nodes))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_text_with_a_byte_order_mark_is_read(tmp_path, encoding):
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path = written(tmp_path, "g.csv", f"{mark}source,target\nÄnne,Bo\nBo,Cy\n".encode(encoding))
    assert read_graph(path).nodes == ("Änne", "Bo", "Cy")


def test_parquet_holds_edges_or_a_table(tmp_path):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "weight": [1.5, 2.0]}).to_parquet(tmp_path / "g.parquet")
    np.testing.assert_array_equal(dense(read_graph(tmp_path / "g.parquet")), [[0, 1.5, 0], [1.5, 0, 2], [0, 2, 0]])
    pandas.DataFrame({"who": ["x", "y"], "p": [0.1, 0.2], "q": [3.0, 4.0]}).to_parquet(tmp_path / "t.parquet")
    table = read_matrix(tmp_path / "t.parquet")
    assert (table.rows, table.columns) == (("x", "y"), ("p", "q"))
    np.testing.assert_array_equal(table.A, [[0.1, 3.0], [0.2, 4.0]])


def test_every_format_has_a_reader_and_is_named():
    assert {*networks.READERS, *reading.READERS, "edges", "table", "parquet"} == set(FORMATS)
    assert [name for name in FORMATS if f'"{name}"' not in read_graph.__doc__] == []
