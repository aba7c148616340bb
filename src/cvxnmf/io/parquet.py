"""Parquet files, read as the same table in text: a list of edges, or a table of numbers."""

from __future__ import annotations

import io

from cvxnmf.io.source import Source


def text_of_parquet(source: Source) -> Source:
    """The table of a parquet file as text between commas, with a header and, where they are named, the names of its rows."""
    try:
        import pandas
        import pyarrow.parquet
    except ImportError:
        source.refuse("is a parquet file, which needs pandas and pyarrow; install them with: pip install pandas pyarrow.")
    with source.parsed_as("a parquet file"):
        described = pyarrow.parquet.read_metadata(io.BytesIO(source.data))
        cells = described.num_rows * described.num_columns
        source.must_announce_modestly(8 * cells, f"{described.num_rows:,} rows and {described.num_columns:,} columns")
        frame = pandas.read_parquet(io.BytesIO(source.data))
        text = frame.to_csv(index=not isinstance(frame.index, pandas.RangeIndex))
    return Source(source.name, text.encode(), ".csv")
