"""Data in blocks of rows: one protocol (map and sum), in this process, from files, or on a Dask cluster."""

from cvxnmf.chunked.matrix import BlockMatrix, Turned, turned_product
from cvxnmf.chunked.opening import dimensions, opened, wanted
from cvxnmf.chunked.protocol import Blocks, Largest

__all__ = ["BlockMatrix", "Blocks", "Largest", "Turned", "dimensions", "opened", "turned_product", "wanted"]
