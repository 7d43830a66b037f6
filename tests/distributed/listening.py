"""What the processes that descend from one of them listen on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

PROC = Path("/proc")
_LISTENING = "0A"


def marked(text: str) -> set[int]:
    """Return the processes of this user in whose environment a text stands, zombies left out."""
    found = set()
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            if text.encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
    return found - {os.getpid()}


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
