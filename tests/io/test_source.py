"""Bytes of files and of standard input, packed or not."""

import gzip
import io

import numpy as np
import pytest
from files import TRIANGLE, dense, written

from cvxnmf.io import FileError, read_graph
from cvxnmf.io.source import unpack


@pytest.mark.parametrize("name", ["g.csv", "g.tsv", "g.txt", "g.edges", "g.edgelist", "g.dat", "g"])
@pytest.mark.parametrize("packed", [False, True])
def test_any_name_and_gzip(tmp_path, name, packed):
    text = b"\xef\xbb\xbf# a comment\n% another\n\n a\tb\nb\tc\n\na\tc"
    path = written(tmp_path, f"{name}.gz" if packed else name, gzip.compress(text) if packed else text)
    np.testing.assert_array_equal(dense(read_graph(path)), TRIANGLE)


def test_a_packed_file_is_recognised_under_any_name(tmp_path):
    assert read_graph(written(tmp_path, "g.csv", gzip.compress(b"a,b\n"))).nodes == ("a", "b")


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b\nb c\n")))
    assert read_graph("-").nodes == ("a", "b", "c")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(FileError, match="standard input is empty"):
        read_graph("-")


@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_what_unpacks_to_far_more_than_its_size_is_refused(size):
    packed = gzip.compress(b"a b\n" * (size // 4), mtime=0)
    if size < 100 * len(packed):
        assert len(unpack("g.txt.gz", packed, ".txt.gz", modest=1000).data) == size
    else:
        with pytest.raises(FileError, match="unpack it first if that is right"):
            unpack("g.txt.gz", packed, ".txt.gz", modest=1000)


def test_names_that_are_none(tmp_path):
    with pytest.raises(FileError, match="is not the name of a file"):
        read_graph("a\0b")
