"""Parses documents for the index process, in a process that may hang or crash.

Reads a line of JSON and the bytes that it announces, and writes a line of JSON, again and again.
"""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

from rlm_rag.child import end_with_parent
from rlm_rag.errors import MissingExtraError
from rlm_rag.indexes.grammars import grammar_named

# Of processor time, for one document; the fastest grammars read 8 MB in it, the slowest half.
PARSE_SECONDS = 5
# A tree takes 27 to 93 times its source.
MEMORY_BYTES = 1 << 30


def main() -> None:
    """Serve until stdin ends."""
    end_with_parent()
    _confine()
    # Nothing here is a cycle, and looking for some takes a tenth of the time.
    gc.disable()
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    while header := requests.readline():
        request = json.loads(header)
        _allow_seconds(PARSE_SECONDS)
        reply = _reply(requests.read(request["bytes"]), request["grammar"])
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


def _reply(data: bytes, name: str) -> dict[str, Any]:
    # Only now: the grammar may be missing, and so may the library that all of them need.
    try:
        from rlm_rag.indexes.tree import parsed_rows

        return {"definitions": parsed_rows(data, grammar_named(name))}
    except MissingExtraError as error:
        return {"missing": error.message}
    except ImportError as error:
        return {"missing": f"tree-sitter cannot be imported ({error})"}
    except Exception as error:  # noqa: BLE001 - a grammar's failure is that document's alone
        return {"failed": f"failed ({type(error).__name__}: {error})"}


def _confine() -> None:
    """Bound what a grammar gone wrong can do: no large memory, no files, no core dump."""
    try:
        import resource
    except ImportError:
        # Windows has none; who waits for this process ends it.
        return
    for limit, value in (
        (resource.RLIMIT_DATA, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (least, least))


def _allow_seconds(seconds: int) -> None:
    """End this process when it has worked so much longer than it has until now."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = int(used.ru_utime + used.ru_stime) + 1 + seconds
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
