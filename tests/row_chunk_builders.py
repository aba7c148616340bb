"""Data in row chunks, from memory, files and dask arrays."""

import dask.array as da
import numpy as np
import scipy.sparse as sp

from builders import low_rank
from cvxnmf import chunked
from cvxnmf.chunked.memory import Settings

#: A memory limit that nothing here exceeds.
ENOUGH = "64 GB"
#: Bytes of chunks of 20 rows of 24 numbers.
SMALL_CHUNK = 8 * 24 * 20


def planted_rows(m=173, n=24, k=4, seed=0):
    """A dense table of rank k with noise."""
    return low_rank(m, n, k, seed, noise=0.2)


def sparse_counts(m=173, n=24, seed=0):
    """A sparse table of counts."""
    return sp.csr_array(np.random.default_rng(seed).poisson(0.7, (m, n)).astype(float))


def mapped_file(folder, A, **options):
    """A memory-mapped file."""
    if options.get("fortran_order"):
        file = np.lib.format.open_memmap(folder / "a.npy", mode="w+", dtype=A.dtype, shape=A.shape, **options)
        file[:] = A
        file.flush()
    else:
        np.save(folder / "a.npy", A)
    return np.load(folder / "a.npy", mmap_mode="r")


def dask_chunks(A, height=30):
    """A dask array of two columns of chunks, sparse if A is."""
    if not sp.issparse(A):
        return da.from_array(A, chunks=(height, 13))
    dense = da.from_array(A.toarray(), chunks=(height, 13))
    return dense.map_blocks(lambda chunk: sp.csr_array(chunk), meta=np.empty((0, 0)))


def in_chunks(A, client=None, k=4, **settings):
    """The data opened in chunks of 20 rows or so, the last one shorter."""
    settings = {"largest_chunk": SMALL_CHUNK, "smallest_chunk": SMALL_CHUNK} | settings
    return chunked.open_chunked(A, k, None if client is not None else ENOUGH, client, Settings(**settings))
