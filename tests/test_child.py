"""A process of this package moves what it says to its parent off its standard streams."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os
from rlm_rag.child import private_streams
os.close({closed})
requests, replies = private_streams()
os.write(1, b"stray")
assert os.read(0, 1) == b""
replies.write(requests.read())
replies.close()
"""


@pytest.mark.parametrize(("closed", "stray"), [(9, b"stray"), (2, b"")])
def test_what_is_printed_never_mixes_with_its_replies(closed: int, stray: bytes) -> None:
    # Descriptor 9 is none of the three.
    script = "import os; os.dup2(1, 9)\n" + SCRIPT.format(closed=closed)
    ended = subprocess.run(
        [sys.executable, "-c", script], input=b"asked", capture_output=True, check=True
    )
    assert (ended.stdout, ended.stderr) == (b"asked", stray)


def test_streams_that_are_all_closed_are_empty_ones() -> None:
    closing = "import os; [os.close(each) for each in range(3)]\n"
    script = closing + "from rlm_rag.child import private_streams\n"
    script += "requests, replies = private_streams()\n"
    script += "assert (requests.read(), replies.write(b'x'), os.write(1, b'x')) == (b'', 1, 1)"
    assert subprocess.run([sys.executable, "-c", script], check=True).returncode == 0
