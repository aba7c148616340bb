"""Files: graphs and matrices read from them, labels and factors written to them."""

from cvxnmf.chunked.graphs.lines import SEPARATORS
from cvxnmf.graphs.blocked.rows import row_pieces
from cvxnmf.io.adjacency import GraphFile
from cvxnmf.io.arrays import map_matrix
from cvxnmf.io.formats import FORMATS
from cvxnmf.io.reading import read_graph, read_matrix
from cvxnmf.io.source import FileError
from cvxnmf.io.tables import MatrixFile

__all__ = [
    "FORMATS",
    "SEPARATORS",
    "FileError",
    "GraphFile",
    "MatrixFile",
    "map_matrix",
    "read_graph",
    "read_matrix",
    "row_pieces",
]
