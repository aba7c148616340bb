"""Which format a file is in: by its content where that is plain, else by the ending of its name."""

from __future__ import annotations

import re

from cvxnmf.io.source import Source

#: Endings of names and the formats they stand for.
ENDINGS = {
    ".gml": "gml",
    ".graphml": "graphml",
    ".xml": "graphml",
    ".gexf": "gexf",
    ".net": "pajek",
    ".paj": "pajek",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".mtx": "mtx",
    ".mm": "mtx",
    ".npy": "npy",
    ".npz": "npz",
    ".edges": "edges",
    ".edgelist": "edges",
    ".el": "edges",
}
#: What ``--format`` takes, in words; "edges" and "table" are text.
WORDS = {
    "edges": "an edge list",
    "table": "a table of numbers",
    "gml": "a GML file",
    "graphml": "a GraphML file",
    "gexf": "a GEXF file",
    "pajek": "a Pajek file",
    "json": "node-link JSON",
    "mtx": "a Matrix Market file",
    "npy": "a numpy .npy file",
    "npz": "a numpy .npz file",
    "parquet": "a parquet file",
}
FORMATS = tuple(WORDS)
#: How files of a format begin.
BEGINNINGS = {"npy": b"\x93NUMPY", "npz": b"PK", "mtx": b"%%MatrixMarket", "parquet": b"PAR1"}
GML = re.compile(rb"\A\s*(?:(?:Creator|Version|comment|#)[^\n]*\n\s*)*graph\s*\[", re.IGNORECASE)
PAJEK = re.compile(rb"\A\s*(?:%[^\n]*\n\s*)*\*(?:network|vertices)\b", re.IGNORECASE)
GEXF = re.compile(rb"<gexf\b")
XML = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*<(?:\?xml|graphml|!)")


def recognise_format(source: Source, text_format: str, asked: str | None = None) -> str:
    """The format of a file: the one asked for, else that of its content, else that of its name, else `text_format`."""
    named = asked or _by_content(source) or ENDINGS.get(source.ending, text_format)
    beginning = BEGINNINGS.get(named)
    if beginning and source.data and not source.data.startswith(beginning):
        source.refuse(f"is not {WORDS[named]}: it does not begin like one; check the file or name its format with --format.")
    return named


def _by_content(source: Source) -> str | None:
    for name, beginning in BEGINNINGS.items():
        if source.data.startswith(beginning) and (name != "npz" or source.data[2:4] in (b"\x03\x04", b"\x05\x06")):
            return name
    start = source.data[:4096]
    if XML.match(start):
        return "gexf" if GEXF.search(start) else "graphml"
    if PAJEK.match(start):
        return "pajek"
    return "gml" if GML.match(start) else None
