"""Parses documents for the index process, in a process that may hang or crash.

Reads a line of JSON and the bytes that it announces, and writes a line, again and again: JSON, and
where there are definitions, a tab and these as JSON, which not everyone has to read.
"""

from __future__ import annotations

import gc
import json
import signal
import sys
from binascii import b2a_base64
from itertools import starmap

from rlm_rag.child import end_with_parent
from rlm_rag.errors import MissingExtraError
from rlm_rag.indexes.grammars import grammar_named
from rlm_rag.indexes.landmark_bytes import encode
from rlm_rag.indexes.landmarks import Landmarks
from rlm_rag.indexes.skeleton import Definition

# Of processor time, for one document: a process's first loads its grammar as well, and the slowest
# grammars take 1.25 s a MB. What is nested deeply takes them time out of all proportion.
_LEAST_SECONDS = 1.0
_SECONDS_PER_MB = 2.0
_MOST_SECONDS = 5.0
# A tree takes 27 to 93 times its source.
MEMORY_BYTES = 1 << 30


def parse_seconds(byte_count: int) -> float:
    """Return how many seconds of processor time a document of so many bytes may take."""
    return min(_MOST_SECONDS, _LEAST_SECONDS + _SECONDS_PER_MB * byte_count / 1e6)


def main() -> None:
    """Serve until stdin ends."""
    end_with_parent()
    _confine()
    # Nothing here is a cycle, and looking for some takes a tenth of the time.
    gc.disable()
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    while header := requests.readline():
        request = json.loads(header)
        _allow_seconds(parse_seconds(request["bytes"]))
        reply = _reply(requests.read(request["bytes"]), request["grammar"])
        replies.write(reply + b"\n")
        replies.flush()


def _reply(data: bytes, name: str) -> bytes:
    # Only now: the grammar may be missing, and so may the library that all of them need.
    try:
        from rlm_rag.indexes.tree import parsed_rows

        rows = parsed_rows(data, grammar_named(name))
        landmarks = encode(Landmarks.of(starmap(Definition, rows)))
        told = {"landmarks": b2a_base64(landmarks, newline=False).decode()}
        return json.dumps(told).encode() + b"\t" + json.dumps(rows).encode()
    except MissingExtraError as error:
        failed = {"missing": error.message}
    except ImportError as error:
        failed = {"missing": f"tree-sitter cannot be imported ({error})"}
    except Exception as error:  # noqa: BLE001 - a grammar's failure is that document's alone
        failed = {"failed": f"failed ({type(error).__name__}: {error})"}
    return json.dumps(failed).encode()


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


def _allow_seconds(seconds: float) -> None:
    """End this process when it has worked so much longer than it has until now."""
    if hasattr(signal, "setitimer"):
        # SIGPROF ends a process that does not catch it; a limit of the system counts whole seconds.
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
