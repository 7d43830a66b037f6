"""What a worker keeps of its memory from blocks."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

resource = pytest.importorskip("resource")


def test_limits_that_the_host_sets_after_the_worker_began_hold() -> None:
    # In a process of its own, since no limit that was lowered can be raised again.
    code = """
        import resource
        from rlm_rag.sandbox.inside.memory import MemoryReserve

        reserve = MemoryReserve()
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 31))
        for _block in range(2):
            reserve.close()
            print(resource.getrlimit(resource.RLIMIT_DATA))
            reserve.open()
            print(resource.getrlimit(resource.RLIMIT_DATA))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    in_a_block, after_it = str((1 << 30, 1 << 31)), str((1 << 31, 1 << 31))
    assert done.stdout.split("\n") == [in_a_block, after_it, in_a_block, after_it, ""]
