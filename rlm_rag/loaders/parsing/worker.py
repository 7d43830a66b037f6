"""The parser process: parses documents one after the other, from stdin to stdout.

What it parses is hostile. It has no keys in its environment, bounded memory and processor time
a document, and may write no file. It ends with its parent, when it has waited long, and after a
document that took much memory, which the allocator would not give back.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import sys
from pathlib import Path
from typing import BinaryIO

from rlm_rag.child import end_with_parent, private_streams
from rlm_rag.errors import DocumentError
from rlm_rag.loaders.parsing import wire
from rlm_rag.loaders.parsing.parts import ParsedDocument

_IDLE_SECONDS = 5.0
# Trees are walked by recursion, several frames a level.
_RECURSION_LIMIT = 4_000
_MUCH_MEMORY_BYTES = 256 << 20
_MAX_SHOWN_CHARS = 200


def main(processor_seconds: str, memory_bytes: str) -> None:
    """Serve until stdin ends."""
    requests, replies = private_streams()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    _bound_memory(int(memory_bytes))
    sys.setrecursionlimit(_RECURSION_LIMIT)
    while _comes(requests) and (request := wire.read_request(requests)) is not None:
        replies.write(wire.TAKEN)
        replies.flush()
        _start_clock(float(processor_seconds))
        reply = wire.encode_reply(_parsed(*request))
        _start_clock(0)
        replies.write(reply)
        replies.flush()
        del request, reply
        if _peak_memory_bytes() > _MUCH_MEMORY_BYTES:
            return


def _parsed(module: str, data: bytes) -> ParsedDocument | str:
    try:
        parsed: ParsedDocument = importlib.import_module(module).parse(data)
    except DocumentError as error:
        return error.message
    except MemoryError:
        return "parsing it takes too much memory"
    except RecursionError:
        return "it is nested too deep"
    except Exception as error:  # noqa: BLE001 - parsers raise anything at a broken document
        said = f"{type(error).__name__}: {error}".partition("\n")[0][:_MAX_SHOWN_CHARS]
        return f"broken: {said}"
    return parsed


def _comes(requests: BinaryIO) -> bool:
    """Wait for the next request, but not for long."""
    if os.name != "posix":
        return True
    ready, _, _ = select.select([requests], [], [], _IDLE_SECONDS)
    return bool(ready)


def _start_clock(seconds: float) -> None:
    # Without a handler the signal ends the process, whatever C code it is in.
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _bound_memory(limit: int) -> None:
    if os.name != "posix":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _peak_memory_bytes() -> int:
    if sys.platform.startswith("linux"):
        # Not ru_maxrss, which begins at what the process that started this one had.
        lines = Path("/proc/self/status").read_text("ascii", "replace").splitlines()
        return 1024 * next((int(each.split()[1]) for each in lines if each[:6] == "VmHWM:"), 0)
    if os.name != "posix":
        return 0
    import resource

    kilobytes = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobytes
