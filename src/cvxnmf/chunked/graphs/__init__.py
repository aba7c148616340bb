"""Graphs in blocks of rows: edges in pieces, sorted into rows, on disk or on a Dask cluster."""
