"""Files take their place when they are complete, and nothing else is touched."""

import dataclasses
import os
from pathlib import Path

import pytest
from files import written

import cvxnmf
from cvxnmf.io import FileError
from cvxnmf.io.writing import check_writable, whole_file, write_with


def test_files_take_their_place_only_when_complete(tmp_path):
    path = written(tmp_path, "out.txt", "before")

    def fill(name):
        (tmp_path / name).write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match="cannot be written: No space left on device"):
        write_with(fill, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_no_file_of_the_user_is_touched(tmp_path):
    path, other = written(tmp_path, "out.csv", "before"), written(tmp_path, "out.csv.part", "mine")
    check_writable(str(path))
    write_with(lambda name: Path(name).write_text("after"), path)
    assert (path.read_text(), other.read_text()) == ("after", "mine")
    assert sorted(tmp_path.iterdir()) == [path, other]


def test_a_file_that_is_replaced_keeps_its_mode_and_its_links(tmp_path):
    path = written(tmp_path, "out.csv", "before")
    path.chmod(0o640)
    (tmp_path / "link.csv").symlink_to(path)
    write_with(lambda name: Path(name).write_text("after"), tmp_path / "link.csv")
    assert path.read_text() == "after"
    assert path.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link.csv").is_symlink()


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    write_with(lambda name: Path(name).write_text("new"), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").stat().st_mode == written(tmp_path, "other.csv", "").stat().st_mode


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_written_in_place(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with whole_file(pipe) as name:
        assert name == str(pipe)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "out.csv"
    with whole_file(path) as first, whole_file(path) as second:
        Path(first).write_text("first")
        Path(second).write_text("second")
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_paths_that_cannot_be_written_are_refused_before_the_work(tmp_path):
    for path, words in (
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "out.csv", "there is no folder"),
        (tmp_path / "out.doc", r"must end in \.csv or \.npz"),
    ):
        with pytest.raises(FileError, match=words):
            check_writable(str(path), () if path == tmp_path else (".csv", ".npz"))
    check_writable("/dev/null")
    assert list(tmp_path.iterdir()) == []


def test_results_and_certificates_replace_a_file_when_they_are_complete(tmp_path):
    A, _ = cvxnmf.block_graph(12, 0.2, 0.8)
    solution = cvxnmf.solve(cvxnmf.symmetric(A, trace=1.0))
    for write, read in ((solution.certificate.save, cvxnmf.Certificate.load), (lambda p: cvxnmf.save(solution, p), cvxnmf.load)):
        path = written(tmp_path, "kept.npz", "of before")
        path.chmod(0o640)
        write(path)
        assert path.stat().st_mode & 0o777 == 0o640
        assert read(path) is not None
        assert list(tmp_path.iterdir()) == [path]
        with pytest.raises(FileNotFoundError):
            write(tmp_path / "none" / "kept.npz")


def test_a_certificate_that_cannot_be_written_leaves_the_file_of_before(tmp_path):
    A, _ = cvxnmf.block_graph(12, 0.2, 0.8)
    certificate = cvxnmf.solve(cvxnmf.symmetric(A, trace=1.0)).certificate
    broken = dataclasses.replace(certificate, witness={"Z": object()}, digest="none")
    path = written(tmp_path, "kept.npz", "of before")

    class Refusing:
        def __array__(self, *args, **kwargs):
            raise RuntimeError("no array")

    broken.witness["Z"] = Refusing()
    with pytest.raises(RuntimeError, match="no array"):
        broken.save(path)
    assert path.read_text() == "of before"
    assert list(tmp_path.iterdir()) == [path]
