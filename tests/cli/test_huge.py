"""The memory that all processes of a search of one huge file take together."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SIZE_BYTES = 1_000_000_000


def log(size_bytes: int) -> Iterator[bytes]:
    """A log of that size, in each of whose lines a word is new."""
    chosen = random.Random(7)
    while size_bytes > 0:
        lines = (
            f"12:{chosen.randint(10, 59)} INFO [pool.worker] request {chosen.getrandbits(48):x} "
            f"of client {chosen.randint(1, 5000)} took {chosen.randint(1, 9999)} ms\n"
            for _ in range(10_000)
        )
        piece = "".join(lines).encode()[:size_bytes]
        size_bytes -= len(piece)
        yield piece


def line(size_bytes: int) -> Iterator[bytes]:
    """Words without an end of a line."""
    chosen = random.Random(7)
    words = [f"word{number} request took ".encode() for number in range(60_000)]
    while size_bytes > 0:
        piece = b"".join(chosen.choices(words, k=10_000))[:size_bytes]
        size_bytes -= len(piece)
        yield piece


def processes(process: int) -> Iterator[int]:
    """A process and all that it began."""
    yield process
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found = children.read_text().split()
        except (OSError, ProcessLookupError):
            # Its thread has ended since.
            continue
        for child in found:
            yield from processes(int(child))


def resident_bytes(process: int) -> int:
    """What a process and all that it began have in memory; of what is shared, their share."""
    total = 0
    for one in list(processes(process)):
        try:
            told = Path(f"/proc/{one}/smaps_rollup").read_text()
        except (OSError, ProcessLookupError):
            # It has ended since.
            continue
        found = re.search(r"^Pss:\s+(\d+) kB", told, re.MULTILINE)
        total += int(found[1]) * 1024 if found else 0
    return total


@pytest.mark.deep
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("made", [log, line])
def test_a_search_of_one_file_of_a_gigabyte_takes_less_than_four_times_that(
    tmp_path: Path, made: Callable[[int], Iterator[bytes]]
) -> None:
    with (tmp_path / "app.log").open("wb") as file:
        file.writelines(made(SIZE_BYTES))
    command = [sys.executable, "-m", "rlm_rag", "search", str(tmp_path), "request took"]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    peak_bytes = 0
    with subprocess.Popen(
        [*command, "--max-file-bytes", str(SIZE_BYTES)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as search:
        while search.poll() is None:
            peak_bytes = max(peak_bytes, resident_bytes(search.pid))
            time.sleep(0.5)
    assert search.returncode == 0
    assert peak_bytes < 4 * SIZE_BYTES
