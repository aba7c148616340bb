"""Files: graphs and matrices read from them, labels and factors written to them."""

from cvxnmf.files.formats import FORMATS
from cvxnmf.files.graph import GraphFile
from cvxnmf.files.mapped import map_matrix
from cvxnmf.files.reading import read_graph, read_matrix
from cvxnmf.files.separated import SEPARATORS
from cvxnmf.files.source import FileError
from cvxnmf.files.tables import MatrixFile

__all__ = ["FORMATS", "SEPARATORS", "FileError", "GraphFile", "MatrixFile", "map_matrix", "read_graph", "read_matrix"]
