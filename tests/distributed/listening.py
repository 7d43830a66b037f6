"""The processes of a cluster that a test started: which there are, and what they listen on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

PROC = Path("/proc")
_LISTENING = "0A"
# Two of Ray's own processes wait for a minute where their cluster was killed.
_LAST_SECONDS = 90.0

ray_tests = pytest.mark.skipif(
    __import__("importlib.util").util.find_spec("ray") is None,
    reason="ray is not installed: pip install 'rlm-rag[ray]'",
)


def marked(text: str) -> set[int]:
    """Return the processes of this user in whose environment a text stands, zombies left out."""
    found = set()
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            if text.encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
    return found - {os.getpid()}


def none_left(mark: str) -> bool:
    until = time.monotonic() + _LAST_SECONDS
    while marked(mark) and time.monotonic() < until:
        time.sleep(0.5)
    return not marked(mark)


def names(mark: str) -> dict[int, bytes]:
    """Return what the marked processes call themselves."""
    found = {}
    for pid in marked(mark):
        with suppress(FileNotFoundError):
            found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes()
    return found


def hosts(mark: str, parent: int | None = None, *, kind: bytes = b"ShardHost") -> list[int]:
    """Return the processes of shards, or of another `kind`, all or those of one parent."""
    found = []
    for pid, name in names(mark).items():
        with suppress(FileNotFoundError):
            own_parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            if b"ray::" + kind in name and parent in (None, own_parent):
                found.append(pid)
    return sorted(found)


def raylet(node: Any) -> int:
    """Return the process that starts those of a node."""
    return int(node.all_processes["raylet"][0].process.pid)


def addresses(pids: set[int]) -> dict[str, int]:
    """Return the addresses that processes listen on for TCP, each with how often."""
    inodes = {inode for pid in pids for inode in _sockets(pid)}
    counts: dict[str, int] = {}
    for table in ("tcp", "tcp6"):
        for row in (PROC / "net" / table).read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == _LISTENING and fields[9] in inodes:
                address = _shown(fields[1].partition(":")[0])
                counts[address] = counts.get(address, 0) + 1
    return counts


def _sockets(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for descriptor in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                target = str(descriptor.readlink())
                if target.startswith("socket:["):
                    yield target[8:-1]


def _shown(digits: str) -> str:
    # The kernel writes words of four bytes, each in the machine's order.
    data = b"".join(bytes.fromhex(digits[at : at + 8])[::-1] for at in range(0, len(digits), 8))
    address = ip_address(data)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
