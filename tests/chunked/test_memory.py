"""Memory limits in words, plans that keep to them, and peaks that are measured."""

import subprocess
import sys

import numpy as np
import pytest

from cvxnmf.chunked import memory
from cvxnmf.chunked.open import needs_chunks, too_large
from cvxnmf.nmf.descent import classical_nmf
from row_chunk_builders import mapped_file, planted_rows
from tiers import slow_but


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
import re, sys
import numpy as np
from cvxnmf import NMF, classical_nmf, factorize
from cvxnmf.chunked.memory import resident_bytes

def spared(call, allowed):
    limit = resident_bytes() + allowed
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    call(limit)
    with open("/proc/self/status") as file:
        return limit - 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", file.read())[1])

large, wide = (np.load(path, mmap_mode="r") for path in sys.argv[2:])
classical_nmf(np.ones((9, 5)), 2)  # what is loaded when first needed
calls = [
    (lambda limit: factorize(wide, 8, loss="mse", max_iter=3, memory_limit=limit), 105_000_000),
    (lambda limit: factorize(wide, 8, loss="kl", max_iter=3, memory_limit=limit), 105_000_000),
    (lambda limit: NMF(4, solver="cd", tol=0, max_iter=2, memory_limit=limit).fit(large), 130_000_000),
    (lambda limit: factorize(large, 4, max_iter=2, memory_limit=limit).certificate.check(large), 130_000_000),
]
for call, allowed in calls[int(sys.argv[1]) :: 2]:
    print(spared(call, allowed))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is told on Linux only")
@pytest.mark.parametrize("first", slow_but([0], [0, 1]))
def test_peaks_stay_below_the_limit_on_a_larger_and_on_a_wide_file(first, tmp_path):
    rng, paths = np.random.default_rng(0), [tmp_path / "large.npy", tmp_path / "wide.npy"]
    for path, shape in zip(paths, [(30_000, 600), (200, 6_000)], strict=True):  # 144 MB as float64, and a Gram matrix of 288
        np.save(path, rng.random(shape, dtype=np.float32))
    answer = subprocess.run(
        [sys.executable, "-c", MEASURED, str(first), *map(str, paths)], capture_output=True, text=True, timeout=300
    )
    spared = [int(line) for line in answer.stdout.splitlines()]
    assert len(spared) == 2, answer.stderr
    assert min(spared) > 0


def test_a_file_too_large_for_the_machine_goes_in_chunks(tmp_path):
    file = mapped_file(tmp_path, planted_rows())
    assert not needs_chunks(file)
    assert needs_chunks(file, "1 GB")
    assert too_large(file, memory=100.0)
    assert too_large(file, memory=5.9 * 8 * file.size)
    assert not too_large(file, memory=6.1 * 8 * file.size)
    assert not too_large(np.array(file), memory=100.0)
