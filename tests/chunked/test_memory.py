"""Memory limits in words, plans that keep to them, and peaks that are measured."""

import subprocess
import sys

import numpy as np
import pytest

from cvxnmf.chunked import memory
from cvxnmf.chunked.open import needs_chunks, too_large
from cvxnmf.nmf.descent import classical_nmf
from row_chunk_builders import mapped_file, planted_rows


@pytest.mark.parametrize(
    ("words", "size"),
    [
        ("2 GB", 2 * 10**9),
        ("500MiB", 500 << 20),
        ("1.5k", 1500),
        (" 70000 b ", 70_000),
        (12345, 12345),
        ("3G", 3 * 10**9),
        ("1e3 MB", 10**9),
        ("1.5E+9", 1_500_000_000),
    ],
)
def test_sizes(words, size):
    assert memory.limit_in_bytes(words) == size


@pytest.mark.parametrize(
    ("words", "meant"), [(4, "4 GB"), ("4", "4 GB"), (0.5, "0.5 GB"), ("16 b", "16 GB"), (2000, "2000 MB"), ("8e3", "8000 MB")]
)
def test_a_few_bytes_were_meant_in_another_unit(words, meant):
    with pytest.raises(ValueError, match=rf"memory_limit=.* bytes; did you mean '{meant}'\?"):
        classical_nmf(planted_rows(), 3, memory_limit=words)


@pytest.mark.parametrize("words", ["much", "2 XB", "-1", "", "1 i", "1e", "1e999 GB", float("inf"), -5, float("nan"), True, [3]])
def test_sizes_that_are_none(words):
    with pytest.raises(ValueError, match="memory_limit"):
        memory.limit_in_bytes(words)


def test_too_little_memory_is_refused_with_what_is_needed(tmp_path):
    file = mapped_file(tmp_path, planted_rows())
    with pytest.raises(ValueError, match=r"A memory limit of 1 MB is too little.* give at least [\d,]+ MB\.") as refused:
        classical_nmf(file, 3, memory_limit="1 MB")
    needed = str(refused.value).split("at least ")[1].removesuffix(".").replace(",", "")
    classical_nmf(file, 3, memory_limit=f"{int(needed.split()[0]) + 20} MB", max_iter=1)  # the process has grown a little


def test_a_plan_keeps_to_the_limit():
    terms = {"settings": memory.Settings(largest_chunk=8 << 20), "resident": 0}
    limit = 300 << 20
    plan = memory.memory_plan((10**6, 1000), 8, 2, limit, 4, **terms)
    used = plan.threads * plan.height * 1000 * 40 + 16 * (8 * 10**6 + 12 * 1000) + memory.RESERVE
    assert used <= limit
    assert plan.threads >= 1
    least = used - plan.threads * plan.height * 40000 + (4 << 20)
    small = memory.memory_plan((10**6, 1000), 8, 2, least, 4, **terms)
    assert small.threads * small.height < plan.threads * plan.height
    assert not memory.gram_fits(1000, small.room)


MEASURED = """
import sys, re, numpy as np
from cvxnmf import NMF, classical_nmf, factorize
from cvxnmf.chunked.memory import resident_bytes
path, allowed, call = sys.argv[1], int(sys.argv[2]), sys.argv[3]
A = np.load(path, mmap_mode="r")
classical_nmf(np.ones((9, 5)), 2)  # what is loaded when first needed
limit = resident_bytes() + allowed
if call == "factorize":
    factorize(A, 4, max_iter=2, memory_limit=limit).certificate.check(A)
elif call == "estimator":
    NMF(4, solver="cd", tol=0, max_iter=2, memory_limit=limit).fit(A)
else:
    factorize(A, 8, loss=call, max_iter=3, memory_limit=limit)
print(limit - 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]))
"""


def spared(path, allowed, call):
    """Bytes that were left of a limit, so much above what a new process holds before it works on the file."""
    words = [sys.executable, "-c", MEASURED, str(path), str(allowed), call]
    return int(subprocess.run(words, capture_output=True, text=True, check=True, timeout=300).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is told on Linux only")
@pytest.mark.parametrize("call", ["factorize", "estimator"])
def test_the_peak_stays_below_the_limit_on_a_larger_file(call, tmp_path_factory):
    path, allowed = tmp_path_factory.getbasetemp() / "large.npy", 130_000_000
    if not path.exists():
        np.save(path, np.random.default_rng(0).random((30_000, 600), dtype=np.float32))  # 144 MB as float64
    assert 2 * path.stat().st_size > allowed
    assert spared(path, allowed, call) > 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is told on Linux only")
@pytest.mark.parametrize("loss", ["mse", "kl"])
def test_the_peak_stays_below_the_limit_on_a_wide_file(loss, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "wide.npy"
    if not path.exists():
        np.save(path, np.random.default_rng(0).random((400, 8_000), dtype=np.float32))  # 26 MB as float64
    assert spared(path, 105_000_000, loss) > 0


def test_a_file_too_large_for_the_machine_goes_in_chunks(tmp_path):
    file = mapped_file(tmp_path, planted_rows())
    assert not needs_chunks(file)
    assert needs_chunks(file, "1 GB")
    assert too_large(file, memory=100.0)
    assert too_large(file, memory=5.9 * 8 * file.size)
    assert not too_large(file, memory=6.1 * 8 * file.size)
    assert not too_large(np.array(file), memory=100.0)
