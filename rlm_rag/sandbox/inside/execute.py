"""Runs one block: compile, execute, show the last value, describe what it raised."""

from __future__ import annotations

import sys
import warnings

from rlm_rag.sandbox.inside.display import clip, show
from rlm_rag.sandbox.inside.interrupts import run_interruptible
from rlm_rag.sandbox.inside.modules import provide

TYPE_CHECKING = False
if TYPE_CHECKING:
    import traceback
    from asyncio import AbstractEventLoop
    from collections.abc import Coroutine
    from types import CodeType
    from typing import Any

MAX_TRACEBACK_CHARS = 12_000
MAX_MESSAGE_CHARS = 2_000
LAST_VALUE = "__last_value__"
_BLOCK_PREFIX = "<block "
_CO_COROUTINE = 0x80
_CANCEL_SECONDS = 1.0
_PACKAGE = __file__[: -len("/sandbox/inside/execute.py")]
_INTERRUPTED = "the block was interrupted: its time was up, or the run was stopped"
_EXITED = 'exiting does not end the run; set answer["ready"] = True, or call FINAL(text)'


# Sources that `linecache` does not have yet, by name; empty once it was imported.
_unfiled: dict[str, str] = {}
# Words of code that may look at its own source, apart from what it raises.
_LOOKING = ("traceback", "linecache", "inspect", "logging", "warnings", "pdb")


def hush() -> None:
    """Silence what would be noise in a model's next turn: of "\\d", or of fork among threads."""
    warnings.simplefilter("ignore", SyntaxWarning)
    warnings.simplefilter("ignore", DeprecationWarning)


def prepare() -> None:
    """Import what describes errors, once nobody waits, or when one is described."""
    import linecache
    import traceback  # noqa: F401

    for filename, code in _unfiled.items():
        _file_source(linecache.cache, filename, code)
    _unfiled.clear()


class Executor:
    """Runs blocks in one namespace, which outlives what they raise."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._loop: AbstractEventLoop | None = None

    def run(
        self, block: int, code: str, limit_chars: int
    ) -> tuple[str | None, BaseException | None]:
        """Run a block; return its last expression's value as text, and what it raised."""
        try:
            return run_interruptible(self._run, block, code, limit_chars), None
        except BaseException as error:
            return None, error

    def _run(self, block: int, code: str, limit_chars: int) -> str | None:
        compiled = compile_block(code, block_name(block))
        _seed(block, code)
        provide(compiled, code, self._names)
        self._names.pop(LAST_VALUE, None)
        result = eval(compiled, self._names)
        if compiled.co_flags & _CO_COROUTINE:
            self._wait_for(result)
        value = self._names.pop(LAST_VALUE, None)
        shown = None if value is None else show(value, limit_chars)
        for stream in (sys.stdout, sys.stderr):
            flush = getattr(stream, "flush", None)
            if flush is not None:
                flush()
        return shown

    def _wait_for(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        import asyncio

        loop = self._loop
        if loop is None or loop.is_closed():
            loop = self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        task = loop.create_task(coroutine)
        try:
            loop.run_until_complete(task)
        finally:
            if not task.done():
                task.cancel()
                loop.run_until_complete(asyncio.wait({task}, timeout=_CANCEL_SECONDS))
            if task.done() and not task.cancelled():
                task.exception()


def _seed(block: int, code: str) -> None:
    """Make chance the same whenever this block runs, so that a run can be repeated.

    Importing `random` takes a millisecond, which blocks that have no use for it do not pay.
    """
    if "random" in code or "random" in sys.modules:
        import random

        random.seed(block)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(block)


def compile_block(code: str, filename: str) -> CodeType:
    """Return the code of a block, which leaves the expression that ends it in `LAST_VALUE`.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `compile` does.
    """
    from _ast import Assign, Expr, Name, PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST, Store

    if any(word in code for word in _LOOKING):
        prepare()
    remember_source(filename, code)
    flags = PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile(code, filename, "exec", flags | PyCF_ONLY_AST, dont_inherit=True)
    if tree.body and isinstance(tree.body[-1], Expr):
        last = tree.body[-1]
        place = {
            name: getattr(last, name)
            for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
        }
        target = Name(LAST_VALUE, Store(), **place)
        tree.body[-1] = Assign([target], last.value, **place)
    compiled: CodeType = compile(tree, filename, "exec", flags, dont_inherit=True)
    return compiled


def block_name(block: int) -> str:
    """Return the name of a block's file in tracebacks."""
    return f"{_BLOCK_PREFIX}{block}>"


def remember_source(filename: str, code: str) -> None:
    """Let tracebacks show the lines of a block."""
    linecache = sys.modules.get("linecache")
    if linecache is None:
        _unfiled[filename] = code
    else:
        _file_source(linecache.cache, filename, code)


def _file_source(cache: dict[str, Any], filename: str, code: str) -> None:
    cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)


def describe(error: BaseException, *, interrupted: bool) -> dict[str, str]:
    """Return an error as `type`, `message` and `traceback`, without the worker's own frames.

    `interrupted` says that the host had asked for the interrupt.
    """
    kind, message = type(error).__name__, ""
    if interrupted and isinstance(error, KeyboardInterrupt):
        kind, message = "Interrupted", _INTERRUPTED
    elif isinstance(error, SystemExit):
        message = _EXITED
    try:
        message = message or clip(run_interruptible(str, error), MAX_MESSAGE_CHARS)
        # Out of reach of the interrupts that may still come.
        prepare()
        text = run_interruptible(_traceback, error)
    except BaseException as second:
        text = f"{kind} (describing it raised {type(second).__name__})\n"
    return {"type": kind, "message": message, "traceback": clip(text, MAX_TRACEBACK_CHARS)}


def _traceback(error: BaseException) -> str:
    import traceback

    report = traceback.TracebackException.from_exception(error, max_group_width=5)
    _hide_worker(report)
    return "".join(report.format())


def _hide_worker(report: traceback.TracebackException) -> None:
    """Drop the frames above the block's own, and those of the functions it was given."""
    pending: list[traceback.TracebackException | None] = [report]
    while pending:
        part = pending.pop()
        if part is None:
            continue
        frames = [frame for frame in part.stack if not frame.filename.startswith(_PACKAGE)]
        first = next((n for n, f in enumerate(frames) if f.filename.startswith(_BLOCK_PREFIX)), 0)
        part.stack[:] = frames[first:]
        pending += [part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())]
