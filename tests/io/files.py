"""Files to read, and what reading them gives."""

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf.io import FileError, read_graph


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
