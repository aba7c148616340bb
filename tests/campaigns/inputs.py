"""Odd values, damaged files and forged certificates."""

import gzip
import io
import json

import networkx as nx
import numpy as np
import scipy.io
import scipy.sparse as sp

import cvxnmf
from campaigns.cases import reseal
from cvxnmf.certificates import LabelStatement, parse_statement
from cvxnmf.graphs.label_bounds.verify import LabelBounds
from cvxnmf.io import read_graph, read_matrix


def small_graph(rng, most=8):
    """A connected graph with whole or other weights."""
    n = int(rng.integers(3, most + 1))
    A = np.triu(rng.random((n, n)) < 0.5, 1).astype(float)
    A[np.arange(n - 1), np.arange(1, n)] = 1.0
    A *= rng.integers(1, 4, (n, n)) if rng.random() < 0.5 else rng.random((n, n)) + 0.1
    return A + A.T


def require_sentence(error):
    """Fail unless an error is a sentence of ours: numpy and others write theirs otherwise, or raise them elsewhere."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    text, place = str(error), trace.tb_frame.f_code.co_filename
    assert "cvxnmf" in place, f"raised in {place}: {error!r}"
    assert text.endswith((".", "?")), f"not a sentence: {error!r}"
    assert "\n" not in text, f"not one line: {error!r}"


# Values ---------------------------------------------------------------------------------------------------------------------


def odd_value(rng):
    """Something that a careless or malicious caller may pass."""
    n = int(rng.integers(0, 6))
    return [
        lambda: None,
        lambda: float(rng.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, 5e-324, 0.5])),
        lambda: int(rng.choice([0, -1, 1, 2, 7, 2**40])),
        lambda: bool(rng.integers(2)),
        lambda: str(rng.choice(["", "x", "kl", "mse", "auto", "psd", "degree", "\0"])),
        lambda: [],
        lambda: (),
        lambda: {},
        lambda: [(0, 1), (1, 2)],
        lambda: [[1.0, 2.0], [3.0]],
        lambda: [["a", "b"], ["c", "d"]],
        lambda: np.zeros((n, n)),
        lambda: np.ones((n, n)),
        lambda: rng.random((n, n)) - 0.5,
        lambda: rng.random((n + 1, n + 2)),
        lambda: np.full((3, 3), rng.choice([np.nan, np.inf, 1e300, 1e-300])),
        lambda: small_graph(rng),
        lambda: sp.csr_array(small_graph(rng)),
        lambda: sp.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2)),
        lambda: small_graph(rng).astype(np.float32),
        lambda: small_graph(rng).astype(int).tolist(),
        lambda: np.array([[object(), 1], [1, 2]], dtype=object),
        lambda: rng.random(n),
        lambda: rng.integers(-2, 4, n),
        lambda: np.ma.masked_array(np.ones((3, 3)), np.eye(3)),
        lambda: np.ones((2, 2, 2)),
        lambda: np.array(1.0),
        lambda: 1j * np.ones((2, 2)),
        lambda: np.array(["2020-01-01"], dtype="datetime64[D]"),
        lambda: object(),
        lambda: nx.path_graph(4),
        lambda: nx.DiGraph([(0, 1), (1, 2)]),
        lambda: small_graph(rng)[:, ::-1],
    ][rng.integers(33)]()


CALLS = {
    cvxnmf.symmetric: ("A", "loss", "cone", "metric", "trace", "diagonal"),
    cvxnmf.sparse: ("A", "l1", "trace"),
    cvxnmf.nonsymmetric: ("A", "loss", "trace", "effects"),
    cvxnmf.exp_factor: ("X", "method", "tol", "reduce", "max_columns"),
    cvxnmf.factor_rank_two: ("A",),
    cvxnmf.factorize: ("A", "n_components", "loss", "symmetric", "start", "weights", "effort", "row_names", "certificate"),
    cvxnmf.verify: ("A", "U", "V", "loss", "effort", "weights"),
    cvxnmf.classical_nmf: ("A", "n_components", "method", "loss", "init", "l1", "l2", "sparseness", "weights", "sum_to_one"),
    cvxnmf.partition: ("graph", "n_clusters", "objective", "resolution", "trace", "start", "n_groups", "weight", "prove"),
    cvxnmf.cocluster: ("table", "n_clusters", "weight"),
    cvxnmf.recursive: ("A", "n_stages", "loss", "form", "diagonal", "trace"),
    cvxnmf.consensus: ("A", "n_components", "loss", "n_starts", "density"),
    cvxnmf.choose_rank: ("A", "ranks"),
    cvxnmf.verify_labels: ("graph", "labels", "objective", "resolution", "n_clusters"),
    cvxnmf.performance: ("A", "labels"),
    cvxnmf.block_graph: ("n", "alpha", "beta", "rng"),
    cvxnmf.load: ("path",),
    cvxnmf.Certificate.load: ("path",),
}
SENSIBLE = {
    "A": small_graph,
    "graph": small_graph,
    "table": small_graph,
    "X": lambda rng: -np.abs(np.subtract.outer(rng.random(4), rng.random(4))),
    "n_components": lambda rng: int(rng.integers(1, 4)),
    "n_clusters": lambda rng: int(rng.integers(1, 4)),
    "n": lambda rng: int(rng.integers(2, 9)),
    "U": lambda rng: rng.random((5, 2)),
    "V": lambda rng: rng.random((5, 2)),
    "labels": lambda rng: rng.integers(0, 2, int(rng.integers(3, 9))),
    "path": lambda rng: "/nonexistent/file.npz",
    "alpha": lambda rng: 0.2,
    "beta": lambda rng: 0.8,
}


def random_call(rng):
    """A public function, and arguments of which one or more are odd; those that may be left out mostly are."""
    function = list(CALLS)[rng.integers(len(CALLS))]
    names = CALLS[function]
    needed = [name for name in names if name in SENSIBLE and name not in ("V", "n_clusters")]
    arguments = {name: SENSIBLE[name](rng) for name in needed}
    for name in rng.choice(names, rng.integers(1, min(3, len(names)) + 1), replace=False):
        arguments[str(name)] = odd_value(rng)
    if isinstance(arguments.get("path"), str | None) or hasattr(arguments.get("path"), "__fspath__"):
        arguments = {name: value for name, value in arguments.items() if name != "path"} | (
            {"path": __file__} if "path" in names else {}
        )
    if function is cvxnmf.block_graph and isinstance(arguments.get("n"), int) and arguments["n"] > 1000:
        arguments["n"] = 10
    for name in ("effort", "n_starts", "n_stages", "ranks"):  # which may ask for any amount of work
        if isinstance(arguments.get(name), int) and arguments[name] > 100:
            arguments[name] = 3
    if function is cvxnmf.consensus:
        arguments.setdefault("n_starts", 3)
    return function, arguments


# Certificates ---------------------------------------------------------------------------------------------------------------

NAMES = ["", "dual", "tail", "zero", "lanczos", "independence", "cuts", "labels", "rank-k", "model"]


def mutated_certificate(rng, certificate):
    """The certificate with one or two of its parts replaced or bent, and a digest that matches."""
    changes = {}
    for _ in range(rng.integers(1, 3)):
        kind = rng.integers(4)
        if kind == 0:
            name = str(rng.choice(["value", "bound", "scale"]))
            changes[name] = float(rng.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, getattr(certificate, name) * 1.01]))
        elif kind == 1:
            name = str(rng.choice(["scope", "kind"]))
            changes[name] = str(rng.choice(NAMES))
        elif kind == 2:
            terms = dict(certificate.statement)
            name = str(rng.choice(sorted(terms)))
            terms[name] = odd_value(rng) if rng.random() < 0.7 else not terms[name]
            changes["statement"] = parse_statement(terms)
        else:
            changes["witness"] = _mutated_witness(rng, certificate.witness)
    changes |= {"rigorous": True} if rng.random() < 0.2 else {"probable": True} if rng.random() < 0.1 else {}
    return reseal(certificate, **changes)


@np.errstate(all="ignore")
def _mutated_witness(rng, witness):
    parts = dict(witness)
    name = str(rng.choice([*sorted(parts), "Z", "N", "W", "vectors", "rows", "labels"]))
    part = np.array(parts[name]) if name in parts else rng.random((3, 3))
    change = rng.integers(8)
    if change == 0 and part.size:
        part.flat[rng.integers(part.size)] = rng.choice([np.nan, np.inf, -1.0, 1e300, 0.0])
    elif change == 1:
        part = part[:-1] if part.ndim else part[None]
    elif change == 2:
        part = part * rng.choice([0.0, -1.0, 2.0, 1.0 + 1e-9])
    elif change == 3:
        part = part.astype(rng.choice(["int64", "complex128", "float32", "S8", "bool", "object"]))
    elif change == 4:
        part = np.asarray(odd_value(rng) if rng.random() < 0.5 else [1.0], dtype=object)
    elif change == 5:
        part = part.T
    elif change == 6:
        parts.pop(name, None)
        return parts
    elif part.size:
        part.flat[rng.integers(part.size)] *= 1.0 + 10.0 ** rng.uniform(-15, 0)
    return parts | {name: part}


# Files ----------------------------------------------------------------------------------------------------------------------


def _npz(arrays):
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _market(A):
    stream = io.BytesIO()
    scipy.io.mmwrite(stream, sp.coo_array(A))
    return stream.getvalue()


def _sparse_npz(A):
    stream = io.BytesIO()
    sp.save_npz(stream, sp.csr_array(A))
    return stream.getvalue()


def _saved(write):
    def content(A):
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as folder:
            write(A, Path(folder) / "x.npz")
            return (Path(folder) / "x.npz").read_bytes()

    return content


def _packed(write):
    return lambda A: gzip.compress(write(A), mtime=0)


def _named_edges(separator, heading=""):
    """An edge list with names, and with the weight in front where a heading says so."""

    def content(A):
        rows, columns = np.nonzero(np.triu(A))
        front = heading.startswith("w")
        cells = [[f"{A[i, j]:g}", f"v{i}", f"v{j}"] if front else [f"v{i}", f"v{j}"] for i, j in zip(rows, columns, strict=True)]
        return "\n".join([heading, *map(separator.join, cells)]).strip().encode()

    return content


def _named_table(A):
    names = [f"v{i}" for i in range(len(A))]
    rows = (",".join([name, *map(repr, row)]) for name, row in zip(names, A.tolist(), strict=True))
    return "\n".join([",".join(["", *names]), *rows]).encode()


def _certificate_of(kind):
    """A file with a certificate of labels, made by one of the kinds of bounds."""

    def write(A, path):
        bounds = LabelBounds(sp.csr_array(A), np.arange(len(A)) % 2, LabelStatement("modularity", 1.0), 0.003, None)
        getattr(bounds, kind)()
        bounds.found.save(path)

    return _saved(write), cvxnmf.Certificate.load


def _edges(A):
    rows, columns = np.nonzero(np.triu(A))
    return "".join(f"{i} {j} {A[i, j]:g}\n" for i, j in zip(rows, columns, strict=True)).encode()


def _table(A):
    return "\n".join(",".join(map(repr, row)) for row in A.tolist()).encode()


def _with_proof(A):
    return cvxnmf.partition(A, objective="modularity", prove=True)


FILES = {
    "g.txt": (_edges, read_graph),
    "g.csv": (_table, read_matrix),
    "h.csv": (_table, read_graph),
    "g.gml": (lambda A: "\n".join(nx.generate_gml(nx.from_numpy_array(A))).encode(), read_graph),
    "g.graphml": (lambda A: "\n".join(nx.generate_graphml(nx.from_numpy_array(A))).encode(), read_graph),
    "g.gexf": (lambda A: "\n".join(nx.generate_gexf(nx.from_numpy_array(A))).encode(), read_graph),
    "g.net": (lambda A: "\n".join(nx.generate_pajek(nx.from_numpy_array(A))).encode(), read_graph),
    "g.json": (lambda A: json.dumps(nx.node_link_data(nx.from_numpy_array(A), edges="links")).encode(), read_graph),
    "g.mtx": (_market, read_graph),
    "h.mtx": (_market, read_matrix),
    "g.npy": (_npy, read_graph),
    "h.npy": (_npy, read_matrix),
    "g.npz": (lambda A: _npz({"A": A}), read_graph),
    "s.npz": (_sparse_npz, read_graph),
    "partition.npz": (_saved(lambda A, path: cvxnmf.save(cvxnmf.partition(A, 2), path)), cvxnmf.load),
    "factors.npz": (_saved(lambda A, path: cvxnmf.save(cvxnmf.factorize(A, 2, effort=0), path)), cvxnmf.load),
    "certificate.npz": (
        _saved(lambda A, path: cvxnmf.verify(A, np.ones((len(A), 1)), effort=2).save(path)),
        cvxnmf.Certificate.load,
    ),
    "g.txt.gz": (_packed(_edges), read_graph),
    "g.csv.gz": (_packed(_table), read_matrix),
    "g.tsv": (_named_edges("\t"), read_graph),
    "w.csv": (_named_edges(",", "w,a,b"), read_graph),
    "n.csv": (_named_table, read_graph),
    "m.csv": (_named_table, read_matrix),
    "solution.npz": (_saved(lambda A, path: cvxnmf.save(cvxnmf.solve(cvxnmf.symmetric(A), max_iter=9), path)), cvxnmf.load),
    "proved.npz": (_saved(lambda A, path: cvxnmf.save(_with_proof(A), path)), cvxnmf.load),
    "kl.npz": (_saved(lambda A, path: cvxnmf.save(cvxnmf.factorize(A.astype(np.float32), 2, loss="kl"), path)), cvxnmf.load),
    "cp.npz": (_saved(lambda A, path: cvxnmf.save(cvxnmf.exp_factor(np.eye(3)), path)), cvxnmf.load),
    **{f"{kind}.npz": _certificate_of(kind) for kind in ("by_cuts", "by_semidefinite", "by_routing", "by_currents")},
}
_CONTENTS = {}


def random_file(rng):
    """The name of a file of some format, its content, and what reads it."""
    name = list(FILES)[rng.integers(len(FILES))]
    if name not in _CONTENTS:
        _CONTENTS[name] = FILES[name][0](small_graph(np.random.default_rng(3)))
    return name, _CONTENTS[name], FILES[name][1]


def mutated_bytes(rng, content):
    """Content with bytes changed, left out, doubled or cut off, and numbers in it made large."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        place, change = int(rng.integers(len(data) + 1)), rng.integers(6)
        if change == 0 and data:
            data[place % len(data)] ^= 1 << rng.integers(8)
        elif change == 1:
            del data[place : place + int(rng.integers(1, 40))]
        elif change == 2:
            data[place:place] = data[place : place + int(rng.integers(1, 40))]
        elif change == 3:
            del data[place:]
        elif change == 4:
            data[place:place] = rng.integers(0, 256, rng.integers(1, 9), dtype=np.uint8).tobytes()
        else:
            digits = [index for index, byte in enumerate(data) if chr(byte).isdigit()]
            if digits:
                at = digits[rng.integers(len(digits))]
                data[at : at + 1] = [b"99999999999", b"-1", b"1e400", b"nan", b"0"][rng.integers(5)]
    return bytes(data)
