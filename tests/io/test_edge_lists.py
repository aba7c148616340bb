"""Edge lists: separators, headers, weights, and a sentence for every malformed line."""

import csv
import io
import itertools
import sys

import networkx as nx
import numpy as np
import pytest
from files import TRIANGLE, dense, sentence_of, written
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxnmf.chunked.graphs.lines import is_number
from cvxnmf.io import FileError, read_graph
from cvxnmf.io.edge_lists import read_edges
from cvxnmf.io.source import read_source


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
    ("text", "header", "told"),
    [
        ("id_1,id_2\n0,1\n", True, False),
        ("Source,Target\na,b\n", True, False),
        ("person,friend,strength\na,b,2\n", True, True),
        ("n,m\n1,2\n", True, True),
        ("a,b\nb,c\n", False, False),
        ("a,b\n1,2\nx,y\n", False, False),
        ("1,2\n3,4\n", False, False),
        ("from,b\nb,c\n", False, False),
    ],
)
def test_headers_are_recognised_and_told_unless_they_are_well_known(tmp_path, text, header, told):
    graph = read_graph(written(tmp_path, "g.csv", text))
    assert any("header" in note for note in graph.notes) is told
    assert (text.split(",")[0] in graph.nodes) is not header


def test_a_header_may_be_asked_for_or_denied(tmp_path):
    path = written(tmp_path, "g.csv", "source,target\na,b\n")
    assert read_graph(path, header=False).nodes == ("source", "target", "a", "b")
    assert read_graph(written(tmp_path, "h.csv", "who,whom\na,b\n"), header=True).nodes == ("a", "b")


def test_a_table_of_many_columns_is_no_edge_list_unless_that_is_said(tmp_path):
    rows = "\n".join("1,0,2,1,3" for _ in range(9))
    for name, heading in (("words.csv", "w0,w1,w2,w3,w4\n"), ("plain.txt", "")):
        path = written(tmp_path, name, heading + rows)
        with pytest.raises(FileError, match="has 5 columns and is neither a square table nor clearly an edge list"):
            read_graph(path)
        assert len(read_graph(path, "edges").nodes) == 2
    assert len(read_graph(written(tmp_path, "named.csv", f"source,target,a,b,c\n{rows}")).nodes) == 2
    assert len(read_graph(written(tmp_path, "named.edges", rows)).nodes) == 2


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
    for names in ("a;b;1,5\nb;c;2,5\nc;d;3,5\n", "1;2;1,5\n2;3;2,5\n3;4;3,5\n"):
        graph = read_graph(written(tmp_path, "w.csv", names))
        assert (len(graph.nodes), graph.A.sum()) == (4, 15.0)


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


def test_names_that_look_like_comments_are_pointed_out(tmp_path):
    graph = read_graph(written(tmp_path, "g.csv", '# edges\ncats,dogs\n\n#cats,#birds\n"#cats",birds\n%x,y\n'))
    assert graph.nodes == ("cats", "dogs", "#cats", "birds")
    assert graph.notes == ("2 lines from 4 on begin with # or % and are skipped; quote names that begin so.",)


@pytest.mark.parametrize(
    ("first", "name", "packages"),
    [(0, "{}", True), (10**17, "{}", True), (0, "0{}", True), (0, "n{}", True), (0, "node {}", True), (0, "n{}", False)],
)
def test_large_edge_lists_are_parsed_as_a_whole(tmp_path, monkeypatch, first, name, packages):
    if not packages:
        monkeypatch.setitem(sys.modules, "pandas", None)
    ends = first + np.random.default_rng(0).integers(0, 300, (2000, 2))
    names = [tuple(map(name.format, pair)) for pair in ends.tolist()]
    path = written(tmp_path, "g.csv", "# a graph - of mine\n" + "".join(f"{u},{v}\n" for u, v in names))
    graph = read_edges(read_source(path), header=False, large=0)
    listed = dict.fromkeys(itertools.chain(*names))
    assert graph.nodes == tuple(sorted(listed, key=int) if name == "{}" else listed)  # whole numbers rise
    joined = {(graph.nodes[i], graph.nodes[j]) for i, j in np.argwhere(dense(graph))}
    assert joined == {pair for u, v in names for pair in ((u, v), (v, u))}
    weighted = written(tmp_path, "w.csv", "".join(f"{u},{v},0.05\n" for u, v in names))
    assert read_edges(read_source(weighted), large=0).A.max() >= 0.05


def is_plain(name):
    """Whether a name has no blanks around it and is no decimal number, which in the first column is a weight."""
    return name.strip(" ") == name and (name.isdecimal() or not is_number(name))


NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(is_plain)


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


ODD = st.sampled_from(["", "\u00a0", "\x1c", "#", "x#", "a b", '"a"', "long name", "1_0", "0.5", "nan"])


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


@pytest.mark.parametrize(
    "text",
    [
        "w,a,b\n2,x,y\n3,y,z\n",
        "weight,from,to\n2,x,y\n3,y,z\n",
        "2,x,y\n3,y,z\n",
        "2.0 x y\n3.0 y z\n",
        "x,y,2\ny,z,3\n",
        "a,b,w\nx,y,2\ny,z,3\n",
        "a,w,b\nx,2,y\ny,3,z\n",
    ],
)
def test_weights_in_any_column(tmp_path, text):
    graph = read_graph(written(tmp_path, "g.csv", text))
    assert graph.nodes == ("x", "y", "z")
    assert graph.origin == "an edge list"
    np.testing.assert_array_equal(dense(graph), [[0, 2, 0], [2, 0, 3], [0, 3, 0]])


def test_weights_before_numbered_nodes(tmp_path):
    assert read_graph(written(tmp_path, "g.csv", "0.5,1,2\n0.25,2,3\n")).nodes == ("1", "2", "3")
    assert read_graph(written(tmp_path, "g.csv", "1,2,0.5\n2,3,0.25\n")).nodes == ("1", "2", "3")
    assert read_graph(written(tmp_path, "g.csv", "1,2,5\n2,3,7\n")).nodes == ("1", "2", "3")


def test_one_broken_weight_does_not_make_an_edge_of_the_header(tmp_path):
    path = tmp_path / "papers.csv"
    lines = ["author,coauthor,papers", "Ann,Bob,1", "Bob,Cal,2", "Cal,Ann,3", "Cal,Dan,many"]
    path.write_text("\n".join(lines))
    with pytest.raises(FileError, match="line 5: expected a number in the column of weights, found 'many'"):
        read_graph(path)
    assert read_graph(path, weights=False).nodes == ("Ann", "Bob", "Cal", "Dan")


def test_a_heading_over_numbers_and_a_pair_that_nobody_knows_are_told(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("score,p,q\n" + "".join(f"{i}.5,a{i},b{i}\n" for i in range(6)))
    read = read_graph(path)
    assert len(read.nodes) == 12
    assert "The first column is taken as weights" in " ".join(read.notes)
    path.write_text("u,v\n" + "".join(f"n{i},n{i + 1}\n" for i in range(12)))
    assert "Line 1 is taken as an edge; say --header" in " ".join(read_graph(path).notes)
    assert len(read_graph(path, header=True).nodes) == 13


def test_a_node_that_is_called_as_missing_values_are_is_told(tmp_path):
    assert read_graph(written(tmp_path, "g.csv", "inf,1\n1,2\n")).notes == (
        "A node is called inf; if that stands for a missing name, leave its lines out.",
    )
    assert read_graph(written(tmp_path, "h.csv", "infinity,nancy\n")).notes == ()
