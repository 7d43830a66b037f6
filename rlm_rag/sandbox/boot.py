"""How a worker is started in a bare interpreter: its files, its command line, its hash."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

# Relative to the folder that holds the package; nothing else of it is needed by a worker.
WORKER_FILES = (
    "rlm_rag/errors.py",
    "rlm_rag/packed.py",
    "rlm_rag/sandbox/frames.py",
    "rlm_rag/sandbox/halves.py",
    "rlm_rag/sandbox/inside/answer.py",
    "rlm_rag/sandbox/inside/calling.py",
    "rlm_rag/sandbox/inside/capture.py",
    "rlm_rag/sandbox/inside/channel.py",
    "rlm_rag/sandbox/inside/context.py",
    "rlm_rag/sandbox/inside/delegation.py",
    "rlm_rag/sandbox/inside/display.py",
    "rlm_rag/sandbox/inside/documents.py",
    "rlm_rag/sandbox/inside/execute.py",
    "rlm_rag/sandbox/inside/hosted.py",
    "rlm_rag/sandbox/inside/interrupts.py",
    "rlm_rag/sandbox/inside/memory.py",
    "rlm_rag/sandbox/inside/misuse.py",
    "rlm_rag/sandbox/inside/modules.py",
    "rlm_rag/sandbox/inside/namespace.py",
    "rlm_rag/sandbox/inside/pickling.py",
    "rlm_rag/sandbox/inside/records.py",
    "rlm_rag/sandbox/inside/reply.py",
    "rlm_rag/sandbox/inside/rows.py",
    "rlm_rag/sandbox/inside/services.py",
    "rlm_rag/sandbox/inside/snapshot.py",
    "rlm_rag/sandbox/inside/tasks.py",
    *(("rlm_rag/sandbox/inside/windows.py",) if sys.platform == "win32" else ()),
    "rlm_rag/sandbox/inside/worker.py",
)

SOURCE_ROOT = Path(__file__).resolve().parents[2]

# The environment of a worker, whole: -I would ignore the seed, so -E is not among the flags.
WORKER_ENVIRONMENT = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}

_FLAGS = ("-s", "-P", "-S", "-B")

# Bare packages, so that no `__init__` of the host's package runs inside the sandbox.
_BOOT_LINE = """\
import sys
root = {root!r}
for name in ("rlm_rag", "rlm_rag.sandbox", "rlm_rag.sandbox.inside"):
    package = type(sys)(name)
    package.__path__ = [root + "/" + name.replace(".", "/")]
    sys.modules[name] = package
from rlm_rag.sandbox.inside.worker import main
main()
"""


def boot_command(source_root: str, python: str) -> list[str]:
    """Return the command that starts a worker speaking frames on its stdin and stdout.

    `source_root` is the folder, as the worker sees it, that holds `WORKER_FILES`; `python` is
    the interpreter, as the worker sees it. The environment must be `WORKER_ENVIRONMENT` and
    what names the scratch folder, nothing else: the interpreter obeys PYTHON* variables, since
    the hash seed is one.
    """
    return [python, *_FLAGS, "-c", _BOOT_LINE.format(root=source_root)]


def worker_hash() -> str:
    """Return the SHA-256 of the worker's sources, as an honest worker reports it in its hello."""
    digest = hashlib.sha256()
    for name in sorted(WORKER_FILES):
        digest.update(f"{name}\0".encode() + (SOURCE_ROOT / name).read_bytes() + b"\0")
    return digest.hexdigest()
