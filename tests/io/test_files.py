"""Reading graphs and matrices: every format round trip, every mistake one sentence."""

import csv
import gzip
import io
import time

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxnmf.io import FileError, map_matrix, read_graph, read_matrix
from cvxnmf.io.edge_lists import read_edges
from cvxnmf.io.reading import read_factors
from cvxnmf.io.source import read_source
from cvxnmf.io.writing import write_with


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def dense(graph):
    return graph.A.toarray() if sp.issparse(graph.A) else np.asarray(graph.A)


def sentence_of(path, read=read_graph, **options):
    """The one sentence that reading raises; it names the file."""
    with pytest.raises(FileError) as caught:
        read(path, **options)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert text.endswith((".", "?"))
    assert "\n" not in text
    return text


TRIANGLE = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0.0]])


@pytest.mark.parametrize("separator", [",", "\t", ";", " ", "   ", " \t ", ", "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_separators_and_line_ends(tmp_path, separator, end, last):
    lines = [separator.join(pair) for pair in (("a", "b"), ("b", "c"), ("a", "c"))]
    path = written(tmp_path, "edges.txt", end.join(lines) + (end if last else ""))
    graph = read_graph(path)
    assert graph.nodes == ("a", "b", "c")
    assert graph.notes == ()
    np.testing.assert_array_equal(dense(graph), TRIANGLE)


@pytest.mark.parametrize("name", ["g.csv", "g.tsv", "g.txt", "g.edges", "g.edgelist", "g.dat", "g"])
@pytest.mark.parametrize("packed", [False, True])
def test_any_name_and_gzip(tmp_path, name, packed):
    text = b"\xef\xbb\xbf# a comment\n% another\n\n a\tb\nb\tc\n\na\tc"
    path = written(tmp_path, f"{name}.gz" if packed else name, gzip.compress(text) if packed else text)
    np.testing.assert_array_equal(dense(read_graph(path)), TRIANGLE)


def test_a_packed_file_is_recognised_under_any_name(tmp_path):
    assert read_graph(written(tmp_path, "g.csv", gzip.compress(b"a,b\n"))).nodes == ("a", "b")


def test_unusual_names(tmp_path):
    text = '"Smith, J.",Müller\nMüller,"say ""hi"""\n"Smith, J.",  New York \n007,7\n'
    graph = read_graph(written(tmp_path, "g.csv", text))
    assert graph.nodes == ("Smith, J.", "Müller", 'say "hi"', "New York", "007", "7")


def test_quoted_names_between_blanks(tmp_path):
    assert read_graph(written(tmp_path, "g.txt", '"New York" Rome\nRome  "Los  Angeles"\n')).nodes == (
        "New York",
        "Rome",
        "Los  Angeles",
    )


def test_names_keep_the_blanks_of_other_scripts(tmp_path):
    assert read_graph(written(tmp_path, "g.txt", "a\u00a0b 東\u3000京\n")).nodes == ("a\u00a0b", "東\u3000京")


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("id_1,id_2\n0,1\n", True),
        ("Source,Target\na,b\n", True),
        ("person,friend,strength\na,b,2\n", True),
        ("n,m\n1,2\n", True),
        ("a,b\nb,c\n", False),
        ("a,b\n1,2\nx,y\n", False),
        ("1,2\n3,4\n", False),
        ("from,b\nb,c\n", False),
    ],
)
def test_headers_are_recognised(tmp_path, text, header):
    graph = read_graph(written(tmp_path, "g.csv", text))
    assert any("header" in note for note in graph.notes) is header
    assert (text.split(",")[0] in graph.nodes) is not header


def test_a_header_may_be_asked_for_or_denied(tmp_path):
    path = written(tmp_path, "g.csv", "source,target\na,b\n")
    assert read_graph(path, header=False).nodes == ("source", "target", "a", "b")
    assert read_graph(written(tmp_path, "h.csv", "who,whom\na,b\n"), header=True).nodes == ("a", "b")


def test_columns_are_found_by_their_headings(tmp_path):
    graph = read_graph(written(tmp_path, "g.csv", "Weight,Type,Target,Source\n2,x,b,a\n3,x,c,b\n"))
    assert graph.nodes == ("a", "b", "c")
    np.testing.assert_array_equal(dense(graph), [[0, 2, 0], [2, 0, 3], [0, 3, 0]])
    assert any("1 further column is ignored" in note for note in graph.notes)


def test_weights_and_what_is_none(tmp_path):
    weighted = read_graph(written(tmp_path, "w.txt", "a b 2\nb c 0.5\nc c 4\n"))
    np.testing.assert_array_equal(dense(weighted), [[0, 2, 0], [2, 0, 0.5], [0, 0.5, 4]])
    labelled = read_graph(written(tmp_path, "l.txt", "a b 2\nb c friend\n"))
    np.testing.assert_array_equal(dense(labelled), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert "line 2" in labelled.notes[0]
    ignored = read_graph(written(tmp_path, "i.txt", "a b -2\nb c nan\n"), weights=False)
    np.testing.assert_array_equal(dense(ignored), dense(labelled))


def test_weights_with_a_decimal_comma(tmp_path):
    np.testing.assert_array_equal(dense(read_graph(written(tmp_path, "w.csv", "a;b;1,5\n"))), [[0, 1.5], [1.5, 0]])


def test_repeated_edges_without_weights_count_once(tmp_path):
    graph = read_graph(written(tmp_path, "g.txt", "a b\nb a\na b\nb b\nb b\n"))
    np.testing.assert_array_equal(dense(graph), [[0, 1], [1, 1]])
    assert "3 of 5 edges are repeated" in graph.notes[0]
    assert "1 of 2 edges is repeated or stands" in read_graph(written(tmp_path, "h.txt", "a b\nb a\n")).notes[0]


def test_repeated_edges_with_weights_add_up(tmp_path):
    graph = read_graph(written(tmp_path, "g.txt", "a b 1\nb a 2\na b 4\nb b 8\nb b 8\n"))
    np.testing.assert_array_equal(dense(graph), [[0, 7], [7, 16]])
    assert "third column is taken as weights" in graph.notes[0]
    assert "3 of 5 weighted edges" in graph.notes[1]


def test_edges_listed_both_ways_with_equal_weights_count_once(tmp_path):
    graph = read_graph(written(tmp_path, "g.txt", "a b 1\nb a 1\nb c 3\nc b 3\nc c 2\n"))
    np.testing.assert_array_equal(dense(graph), [[0, 1, 0], [1, 0, 3], [0, 3, 2]])
    assert "both directions" in graph.notes[1]


def test_edges_of_weight_zero_are_left_out_and_their_nodes_kept(tmp_path):
    graph = read_graph(written(tmp_path, "g.txt", "a b 1\nb c 0\n"))
    assert graph.nodes == ("a", "b", "c")
    assert graph.A.nnz == 2
    assert graph.notes[1:] == ("1 edge has weight 0 and is left out.",)


@pytest.mark.parametrize("write", [nx.write_edgelist, nx.write_weighted_edgelist])
@pytest.mark.parametrize("delimiter", [" ", ",", "\t"])
def test_what_networkx_writes(tmp_path, write, delimiter):
    miserables = nx.les_miserables_graph()
    graph = nx.relabel_nodes(miserables, {node: node.replace(" ", "_") for node in miserables})
    write(graph, tmp_path / "g.edgelist", delimiter=delimiter)
    back = read_graph(tmp_path / "g.edgelist")
    expected = nx.to_numpy_array(graph, nodelist=back.nodes)
    np.testing.assert_array_equal(dense(back), expected)


def test_plain_dictionaries_of_networkx(tmp_path):
    nx.write_edgelist(nx.path_graph(4), tmp_path / "g.txt")
    assert dense(read_graph(tmp_path / "g.txt")).sum() == 6


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a,b\nb,c\na\n", 3, "expected two node names and perhaps a weight, found 'a'."),
        ("# hi\n\na\n", 3, "expected two node names and perhaps a weight, found 'a'."),
        ("a b\na b c d\n", 2, "expected 2 columns"),
        ("a,b\n,c\n", 2, "found an empty name"),
        ("a b 1\nb c -1\n", 2, "the weight is -1"),
        ("a b 1\nb c nan\n", 2, "the weight is nan"),
        ("a b 1\nb c inf\n", 2, "the weight is inf"),
        ("source,target,weight\na,b,x\n", 2, "expected a number in the column of weights, found 'x'"),
        ('a,b\n"c,d\ne,f\n', 2, "quotation marks"),
        ('a,b\n"c"d,e\n', 2, "quotation marks"),
        (b"a b\nc \xe9\n", 2, "0xe9 is not UTF-8"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, text, line, words):
    sentence = sentence_of(written(tmp_path, "g.csv", text))
    assert f", line {line}: " in sentence
    assert words in sentence


@pytest.mark.parametrize("number", [5, 1999, 2000, 2001, 4500])
def test_line_numbers_hold_in_long_files(tmp_path, number):
    lines = [f"{i} {i + 1}" if i % 7 else "# comment" for i in range(1, 5001)]
    lines[number - 1] = "alone"
    assert f", line {number}: " in sentence_of(written(tmp_path, "g.txt", "\n".join(lines)))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("g.txt", b"", "is empty"),
        ("g.txt", b"\n \n", "is empty"),
        ("g.txt", b"# only comments\n", "only comments"),
        ("g.csv", b"source,target\n", "a header and no edges"),
        ("g.txt", b"a\0b\n", "neither text nor in a format known"),
        ("g.txt", "a b\n".encode("utf-16"), "UTF-16"),
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


def test_gml_by_labels_ids_and_twice_the_same_edge(tmp_path):
    nodes = 'node [ id 3 label "é" ] node [ id 5 label "b" ]'
    assert read_graph(written(tmp_path, "a.gml", f"graph [ {nodes} edge [ source 3 target 5 ] ]")).nodes == ("é", "b")
    same = nodes.replace('"b"', '"é"')
    graph = read_graph(written(tmp_path, "b.gml", f"graph [ {same} edge [ source 3 target 5 ] ]"))
    assert graph.nodes == ("3", "5")
    assert "ids" in graph.notes[0]
    bare = "node [ id 3 ] node [ id 5 ]"
    edge = "edge [ source 3 target 5 value 2 ]"
    graph = read_graph(written(tmp_path, "c.gml", f'Creator "me"\ngraph\n[\n  {bare} {edge} {edge} ]'))
    assert graph.nodes == ("3", "5")
    np.testing.assert_array_equal(dense(graph), [[0, 4], [4, 0]])
    assert any("'value'" in note for note in graph.notes)


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("ending", ["gml", "graphml"])
def test_networkx_round_trip(tmp_path, ending, packed):
    graph = nx.les_miserables_graph()
    getattr(nx, f"write_{ending}")(graph, tmp_path / f"g.{ending}{packed}")
    back = read_graph(tmp_path / f"g.{ending}{packed}")
    assert back.nodes == tuple(graph)
    np.testing.assert_array_equal(dense(back), nx.to_numpy_array(graph))


def test_a_directed_graph_keeps_its_directions(tmp_path):
    nx.write_graphml(nx.DiGraph([("a", "b"), ("b", "c")]), tmp_path / "d.graphml")
    np.testing.assert_array_equal(dense(read_graph(tmp_path / "d.graphml")), [[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_edges_with_impossible_weights_are_named(tmp_path):
    nx.write_gml(nx.Graph([("a", "b", {"weight": -1})]), tmp_path / "g.gml")
    assert "'a' and 'b' of weight -1" in sentence_of(tmp_path / "g.gml")
    assert dense(read_graph(tmp_path / "g.gml", weights=False)).sum() == 2


MARKET = [(s, f, d) for s in ("general", "symmetric", "skew-symmetric") for f in ("real", "integer") for d in (True, False)]


@pytest.mark.parametrize(("symmetry", "field", "sparse"), [*MARKET, ("general", "pattern", True), ("symmetric", "pattern", True)])
def test_matrix_market_is_read_as_scipy_reads_it(tmp_path, symmetry, field, sparse):
    A = np.random.default_rng(1).integers(0, 3, (5, 5))
    A = A if symmetry == "general" else A + A.T if symmetry == "symmetric" else A - A.T
    kind = float if field == "real" else int
    matrix = sp.coo_array(A.astype(kind)) if sparse else A.astype(kind)
    scipy.io.mmwrite(tmp_path / "a.mtx", matrix, field=field, symmetry=symmetry, comment="a comment")
    expected, found = scipy.io.mmread(tmp_path / "a.mtx"), read_matrix(tmp_path / "a.mtx").A
    expected = expected.toarray() if sparse else expected
    np.testing.assert_array_equal(found.toarray() if sparse else found, expected)


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


def test_graphs_are_square_and_matrices_are_matrices(tmp_path):
    np.save(tmp_path / "r.npy", np.ones((2, 3)))
    assert "2 by 3" in sentence_of(tmp_path / "r.npy")
    np.save(tmp_path / "v.npy", np.ones(3))
    assert "shape (3,)" in sentence_of(tmp_path / "v.npy", read_matrix)
    np.savez(tmp_path / "m.npz", p=np.eye(2), q=np.eye(3))
    assert "the matrices in it are: p, q" in sentence_of(tmp_path / "m.npz", read_matrix)


@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [
        ("1,2\n3,4\n", None, None),
        ("p,q\n1,2\n3,4\n", None, ("p", "q")),
        ("x,1,2\ny,3,4\n", ("x", "y"), None),
        ("name,p,q\nx,1,2\ny,3,4\n", ("x", "y"), ("p", "q")),
        (",0,1\n0,1,2\n1,3,4\n", ("0", "1"), ("0", "1")),
        ("p q\nx 1 2\ny 3 4\n", ("x", "y"), ("p", "q")),
        ("1;2,0\n3;4\n", None, None),
    ],
)
def test_tables_with_and_without_names(tmp_path, text, rows, columns):
    table = read_matrix(written(tmp_path, "t.csv", text))
    np.testing.assert_array_equal(table.A, [[1, 2], [3, 4]])
    assert (table.rows, table.columns) == (rows, columns)


def test_missing_entries_of_tables_are_nan(tmp_path):
    table = read_matrix(written(tmp_path, "t.csv", "a,b,c\n1,,NA\nnan,2,?\n"))
    np.testing.assert_array_equal(table.A, [[1, np.nan, np.nan], [np.nan, 2, np.nan]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,2\n3\n", ", line 2: expected 2 columns, found 1."),
        ("1,2\n3,x\n", ", line 2: expected a number in column 2, found 'x'."),
        ("a,1,2\nb,3,1_0\n", ", line 2: expected a number in column 3, found '1_0'."),
        ("1,x\n3,4\n", ", line 1: expected a number in column 2, found 'x'."),
        ("1,x,2\n3,4,5\n", ", line 1: expected a number in column 2, found 'x'."),
        ("p,q\n", "a header and no numbers"),
        ("p\nq\nr\n", "names and no numbers"),
        ("# nothing\n", "only comments"),
    ],
)
def test_malformed_tables_are_named(tmp_path, text, words):
    assert words in sentence_of(written(tmp_path, "t.csv", text), read_matrix)


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


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b\nb c\n")))
    assert read_graph("-").nodes == ("a", "b", "c")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(FileError, match="standard input is empty"):
        read_graph("-")


def test_files_take_their_place_only_when_complete(tmp_path):
    path = written(tmp_path, "out.txt", "before")

    def fill(name):
        (tmp_path / name).write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match="cannot be written: No space left on device"):
        write_with(fill, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_names_that_look_like_comments_are_pointed_out(tmp_path):
    graph = read_graph(written(tmp_path, "g.csv", '# edges\ncats,dogs\n\n#cats,#birds\n"#cats",birds\n%x,y\n'))
    assert graph.nodes == ("cats", "dogs", "#cats", "birds")
    assert graph.notes == ("2 lines from 4 on begin with # or % and are skipped; quote names that begin so.",)


@pytest.mark.parametrize("start", [" " * 3000, "\n" * 3000, " \n" * 1500, "Creator x\n" * 400, "# \n " * 900])
def test_no_beginning_takes_long_to_recognise(tmp_path, start):
    began = time.perf_counter()
    assert read_graph(written(tmp_path, "g.edges", f"{start}a b\n"), header=False).nodes[-2:] == ("a", "b")
    assert time.perf_counter() - began < 2.0


def test_large_edge_lists_are_read_at_speed(tmp_path):
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 20_000, (100_000, 2))
    np.savetxt(tmp_path / "g.csv", ends, fmt="%d", delimiter=",")
    began = time.perf_counter()
    graph = read_graph(tmp_path / "g.csv")
    assert time.perf_counter() - began < 3.0
    assert graph.A.nnz == len({(*pair,) for u, v in ends.tolist() for pair in ((u, v), (v, u))})


# --- attacks -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One place that all examples of an attack share."""
    return tmp_path_factory.mktemp("attacks")


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(lambda t: t.strip(" ") == t)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(NAMES, NAMES, st.integers(0, 9)), min_size=1, max_size=8), st.sampled_from(",;\t"), st.booleans())
def test_any_quoted_edge_list_reads_back(folder, listed, separator, weighted):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows(edge if weighted else edge[:2] for edge in listed)
    path = folder / "g.csv"
    path.write_text(text.getvalue(), encoding="utf8")
    graph = read_graph(path, "edges", separator={",": "comma", ";": "semicolon", "\t": "tab"}[separator], header=False)
    assert graph.nodes == tuple(dict.fromkeys(name for edge in listed for name in edge[:2]))
    A = dense(graph)
    np.testing.assert_array_equal(A, A.T)
    if not weighted:
        assert {frozenset(edge[:2]) for edge in listed} == {
            frozenset((graph.nodes[i], graph.nodes[j])) for i, j in np.argwhere(A)
        }


ODD = st.sampled_from(["", "#", "x#", "a b", '"a"', "long name", "1_0", "0.5", "nan"])
CELLS = st.one_of(st.text("ab1é", min_size=1, max_size=3), ODD)
WEIGHTS = st.sampled_from(["1", "0.5", "2e1"])
LINES = st.one_of(
    st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde"), WEIGHTS), max_size=9),
    st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6),
)
SEPARATED = st.sampled_from([",", ";", "\t", " ", "  "])
ENDS = st.sampled_from(["\n", "\r\n", "\n\n", "\r"])


@settings(max_examples=300, deadline=None)
@given(LINES, SEPARATED, ENDS, st.booleans(), st.integers(2, 3))
def test_reading_bytes_is_reading_lines(folder, lines, separator, end, marked, width):
    text = end.join(separator.join(line[:width]) for line in lines)
    path = written(folder, "g.txt", "\ufeff" * marked + text)
    outcomes = []
    for large in (0, 1 << 60):
        try:
            graph = read_edges(read_source(path), large=large)
            outcomes.append((graph.nodes, dense(graph).tolist(), graph.notes))
        except FileError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


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


def test_an_array_of_objects_is_to_be_saved_as_float(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([[1, None]], dtype=object), allow_pickle=True)
    for read in (read_matrix, map_matrix):
        with pytest.raises(FileError, match="save it as float"):
            read(tmp_path / "objects.npy")
