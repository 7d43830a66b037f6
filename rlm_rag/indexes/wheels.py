"""Which grammars this installation can load: tried in a process that may crash over one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

from rlm_rag.child import command, environment
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.grammars import GRAMMARS

MOST_SECONDS = 30.0
"""Loading all of them with their queries takes 1 to 2 s."""


def main() -> None:
    """Write on standard output, as JSON, why each grammar cannot be used, null where it can."""
    from rlm_rag.indexes.tree import why_not

    sys.stdout.write(json.dumps({grammar.name: why_not(grammar) for grammar in GRAMMARS}))


def grammars_here() -> Mapping[str, str | None]:
    """Return for each grammar why it cannot be used here, None where it can.

    Raises:
        RetrievalError: a grammar crashed or hung the process that tried it.
    """
    try:
        done = subprocess.run(
            command(main.__module__),
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=MOST_SECONDS,
            check=True,
        )
        found: dict[str, str | None] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise RetrievalError(f"the grammars cannot be tried: {error}") from error
    return found
