"""What the system says of memory, over the files that Linux would have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlm_rag.models.context_size import LEAST_CONTEXT_TOKENS, SLOTS, context_tokens, local_context
from rlm_rag.models.free_memory import free_memory_bytes
from rlm_rag.models.gguf import read_shape
from tests.models.test_gguf import head

MEMINFO = "MemTotal:       24684084 kB\nMemFree:          460000 kB\nMemAvailable:   1000000 kB\n"
AVAILABLE = 1_000_000 * 1024


def system(root: Path, groups: str = "", **limits: tuple[str, int, str]) -> Path:
    """A machine with a full cache of files; `limits` are limit, usage and stat by group."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(MEMINFO)
    (root / "proc/self/cgroup").write_text(groups)
    for name, (limit, used, stat) in limits.items():
        at = "sys/fs/cgroup" if name.startswith("v2") else "sys/fs/cgroup/memory"
        named = ("memory.max", "memory.current")
        if name.startswith("v1"):
            named = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        folder = root.joinpath(at, *name.split("_")[1:])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / named[0]).write_text(f"{limit}\n")
        (folder / named[1]).write_text(f"{used}\n")
        (folder / "memory.stat").write_text(stat)
    return root


def test_the_cache_of_files_is_memory_that_can_be_had(tmp_path: Path) -> None:
    assert free_memory_bytes(system(tmp_path)) == AVAILABLE


@pytest.mark.parametrize(
    ("groups", "limits", "left"),
    [
        ("0::/app\n", {"v2_app": ("500", 200, "anon 150\n")}, 300),
        ("0::/app\n", {"v2_app": ("500", 400, "active_file 100\ninactive_file 150\n")}, 350),
        ("0::/app\n", {"v2_app": ("500", 900, "")}, 0),
        ("0::/app\n", {"v2_app": ("max", 400, "")}, AVAILABLE),
        ("0::/a/b\n", {"v2_a": ("500", 400, ""), "v2_a_b": ("450", 10, "")}, 100),
        ("0::/\n", {"v2": ("500", 100, "")}, 400),
        ("0::/elsewhere\n", {"v2": ("500", 100, "")}, 400),
        ("4:cpu,memory:/job\n0::/\n", {"v1_job": ("700", 100, "total_active_file 50\n")}, 650),
        ("4:memory:/job\n", {"v1_job": (str(2**63 - 4096), 100, "")}, AVAILABLE),
        ("4:cpu:/job\n", {"v1_job": ("700", 100, "")}, AVAILABLE),
        ("nonsense\n", {}, AVAILABLE),
    ],
)
def test_a_control_group_leaves_less(
    tmp_path: Path, groups: str, limits: dict[str, tuple[str, int, str]], left: int
) -> None:
    assert free_memory_bytes(system(tmp_path, groups, **limits)) == left


def test_elsewhere_the_pages_that_are_free_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {"SC_AVPHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    assert free_memory_bytes(tmp_path) == 4_096_000

    def silent(name: str) -> int:
        raise ValueError(f"unrecognized configuration name {name}")

    monkeypatch.setattr(os, "sysconf", silent)
    assert free_memory_bytes(tmp_path) is None


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="says what Linux says")
def test_this_machine_says_an_amount_within_its_memory() -> None:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < (free_memory_bytes() or 0) <= total


def test_the_weights_are_yet_to_be_loaded_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(head())
    with file.open("r+b") as whole:
        whole.truncate(4 << 30)
    shape = read_shape(file)
    beside = 4 * SLOTS * shape.cache_bytes * 3_000
    monkeypatch.setattr("rlm_rag.models.context_size.free_memory_bytes", lambda: (4 << 30) + beside)
    assert local_context(file) == 3_000
    assert context_tokens(shape, 3 << 30, 4 << 30) == LEAST_CONTEXT_TOKENS
