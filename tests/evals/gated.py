"""Samples whose blocks wait at a gate, so that what dies meanwhile has no request under way."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.engine.play import block
from tests.servers.loopback import Received, Step, reply

CALLS_BEFORE = 3
"""Of a sample, replied to by the time its block waits."""
CALLS = 5


def waiting(gate: Path) -> str:
    """Code that waits for a file, which blocks see without a sandbox alone."""
    return f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.1)\n"


def thoughtful(gate: Path) -> Callable[[Received], Step]:
    """A leaf call, a block that waits for the `gate`, and an answer; no prompt is like another."""

    def script(request: Received) -> Step:
        if request.messages[0]["role"] != "system":
            return reply("leaf")
        number = re.search(r"(?:question|number) (\d+)", request.messages[1]["content"])
        assert number is not None
        code = (
            f"print(search('number')[:1], llm_query('about {number[1]}'))",
            waiting(gate) + f"print(llm_query('more of {number[1]}'))",
            f"FINAL('{number[1]}')",
        )
        return block(code[request.turn])

    return script
