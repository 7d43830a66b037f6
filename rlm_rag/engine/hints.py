"""One line for a failure that root models are known to run into, and for one that comes again.

The failures are those of docs/design.md's users: shapes that were guessed, files printed whole,
tasks never awaited, globs that match nothing, and the same block sent once more.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlm_rag.engine.history import RanBlock
from rlm_rag.engine.looks import Look
from rlm_rag.engine.shapes import TOLD
from rlm_rag.sandbox.session import BlockError

MAX_HINTS = 3
LONG_OUTPUT_CHARS = 8_000
MAX_ANSWER_CHARS = 60
MAX_WORDS_CHARS = 60

_HIT = (
    "search returns dicts with path, line, end_line, score and snippet, grep_context one dict "
    'whose "hits" have path, line and text; read(path, start, end) gives a text.'
)
_KEYS = "Print the value's type and its keys first: print(type(x), list(x)[:5])."
_SAME_AGAIN = (
    "This block gave the same output before. Answer from what you have seen: "
    "FINAL({answer}); or run another block."
)
_FAILED_AGAIN = "This block is the same as one that failed before. Change it."
_OTHER_TOOL = (
    "The same kind of error for the third time: use another function. Facts: search, then read. "
    "Exact words: grep_context. Where a name is defined: symbols. Records: records(path), or "
    "str.split in Python over one entry of context."
)
_NONE_AGAIN = "{name}({words!r}) has found nothing before. Use another function: {instead}."
_INSTEAD = {
    "search": "grep_context for a word as it stands in the text, or symbols for a name",
    "grep_context": "search for words of the question, or symbols for a name",
    "symbols": "grep_context for the name as a word, or search",
}
_NAMES = (
    *("search", "grep_context", "outline", "symbols", "repo_map", "read", "records", "add_context"),
    *("llm_query", "llm_query_batched", "llm_query_chunked", "llm_map_reduce", "map_files"),
    *("rlm_query", "rlm_query_batched", "rlm_await", "rlm_await_all", "spawn", "tasks"),
    *("FINAL", "FINAL_VAR", "SHOW_VARS", "capabilities", "context", "answer", "answers", "plan"),
)
_NO_NAME = re.compile(r"name '(\w+)' is not defined")
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_NO_MATCH = re.compile(r"no path of the corpus matches|no document (?:here )?has the path")


@dataclass(frozen=True, slots=True)
class _Familiar:
    """A failure that `fits` an error and the code of its block, and what to say to it."""

    fits: Callable[[BlockError, str], bool]
    hint: Callable[[BlockError, str], str]


def _says(hint: str) -> Callable[[BlockError, str], str]:
    return lambda _error, _code: hint


def _of(types: Sequence[str], *words: str) -> Callable[[BlockError, str], bool]:
    def fits(error: BlockError, code: str) -> bool:
        return error.type in types and (not words or any(word in code for word in words))

    return fits


def _near_name(error: BlockError, code: str) -> str:
    found = _NO_NAME.search(error.message)
    name = found[1] if found else ""
    near = difflib.get_close_matches(name, _NAMES, n=1, cutoff=0.6)
    if near:
        return f"There is no {name}; {near[0]} is bound."
    return "Variables stay from block to block, but only those of blocks that ran: SHOW_VARS()."


def _no_module(error: BlockError, code: str) -> str:
    found = _NO_MODULE.search(error.message)
    name = found[1] if found else "that package"
    return f"{name} is not there: only Python's standard library and the functions you were told."


_SHAPES = ("KeyError", "TypeError", "AttributeError", "IndexError")
_OF_ANY = _Familiar(_of(_SHAPES), _says(_KEYS))
_FAMILIAR = (
    _Familiar(_of(["SyntaxError", "IndentationError"]), _says("Only Python goes in the fence.")),
    _Familiar(_of(["ModuleNotFoundError", "ImportError"]), _no_module),
    _Familiar(_of(["NameError", "UnboundLocalError"]), _near_name),
    _Familiar(
        _of(["FileNotFoundError", "PermissionError", "OSError", "IsADirectoryError"]),
        _says("The corpus is no folder on a disk: read(path, start, end), or context."),
    ),
    _Familiar(_of(_SHAPES, "search(", "grep_context(", "hits", "symbols("), _says(_HIT)),
    _OF_ANY,
    _Familiar(
        _of(["Timeout"]),
        _says("Do less in one block: grep_context and search are faster than loops over context."),
    ),
    _Familiar(
        _of(["MemoryError"]),
        _says("Keep what you need of each document, not all of them at once."),
    ),
)


class Hints:
    """Says what a turn's failures mean, and whether they came before; one for each RLM."""

    def __init__(self, *, shape: str = "documents") -> None:
        """`shape` is that of `context`, one of `packed.SHAPES`."""
        self._of_context = _Familiar(_of(_SHAPES, "context", "ctx"), _says(TOLD[shape].each))
        self._failed: set[str] = set()
        self._ran: set[str] = set()
        self._kinds: Counter[str] = Counter()
        self._said: Counter[str] = Counter()
        self._found_none: set[Look] = set()
        self.repeats = 0
        """How many turns in a row told nothing that was not told before."""

    def about(self, ran: Sequence[RanBlock], *, is_guided: bool = False) -> tuple[str, ...]:
        """Return at most `MAX_HINTS` sentences on the blocks of a turn.

        The first of a kind gets its familiar explanation, one that comes a third time in a row
        the advice to use another function; a block that is the same as one that failed, or that
        ran well and told nothing new, is pointed out. A guided model that looks once more for
        what was not there is named another function, in whatever block it does.
        """
        hints: list[str] = []
        again = [self._is_again(block) for block in ran]
        for block, is_again in zip(ran, again, strict=True):
            error = block.result.error
            in_vain = self._in_vain(block) if is_guided else []
            hints += in_vain
            if error is None:
                self._kinds.clear()
                if is_again:
                    hints += [] if in_vain else [_same_again(block)]
                else:
                    hints += self._on_output(block)
            else:
                hints += [_FAILED_AGAIN] if is_again else []
                hints += self._on_error(block, error)
        self.repeats = self.repeats + 1 if again and all(again) else 0
        return tuple(dict.fromkeys(hints))[:MAX_HINTS]

    def _is_again(self, block: RanBlock) -> bool:
        """Whether a block failed before, or ran well with the same output.

        With other output it waited for something, or went on from what it had left.
        """
        if block.result.error is not None:
            return not _is_new(self._failed, block.code.strip())
        return not _is_new(self._ran, block.code.strip(), block.shown, block.result.stderr)

    def _in_vain(self, block: RanBlock) -> list[str]:
        again = [look for look in dict.fromkeys(block.in_vain) if look in self._found_none]
        self._found_none.update(block.in_vain)
        return [
            _NONE_AGAIN.format(
                name=look.name, words=look.words[:MAX_WORDS_CHARS], instead=_INSTEAD[look.name]
            )
            for look in again
        ]

    def _on_error(self, block: RanBlock, error: BlockError) -> list[str]:
        self._kinds[error.type] += 1
        if self._kinds[error.type] >= 3:
            return [_OTHER_TOOL]
        hints = []
        familiar = self._familiar(error, block.code)
        if familiar is not None:
            hint = familiar.hint(error, block.code)
            # Said before and not understood: the plain look at what there is helps then.
            hints.append(_KEYS if self._said[hint] and error.type in _SHAPES else hint)
            self._said[hint] += 1
        return hints

    def _familiar(self, error: BlockError, code: str) -> _Familiar | None:
        found = next((each for each in _FAMILIAR if each.fits(error, code)), None)
        # What is said of a value's form in general comes after what is known of its own.
        is_of_context = found is _OF_ANY and self._of_context.fits(error, code)
        return self._of_context if is_of_context else found

    def _on_output(self, block: RanBlock) -> list[str]:
        result, shown = block.result, block.shown
        hints = []
        if result.stdout_cut or len(shown) > LONG_OUTPUT_CHARS:
            hints.append(
                "That was a long output. Print the lines you need: grep_context, search, or "
                "read(path, start, end); let sub-models read whole files: map_files(paths, prompt)."
            )
        if _NO_MATCH.search(result.stderr):
            hints.append(
                'A glob is matched against whole paths: "**/name.py" finds a file in any folder, '
                "and outline(name) says which there are."
            )
        if "<Task " in shown or "coroutine object" in shown:
            hints.append("A task gives its result by rlm_await(task), in this block or a later.")
        return [hint for hint in hints if not self._seen(hint)]

    def _seen(self, hint: str) -> bool:
        self._said[hint] += 1
        return self._said[hint] > 1


def _same_again(block: RanBlock) -> str:
    """Name the answer that an output is where it is a short one: small models do not write it."""
    shown = block.result.stdout.strip() or block.result.value or ""
    is_answer = 0 < len(shown) <= MAX_ANSWER_CHARS and "\n" not in shown
    return _SAME_AGAIN.format(answer=repr(shown) if is_answer else '"..."')


def _is_new(known: set[str], *texts: str) -> bool:
    """Whether texts are not among those of which `known` has the digests; they are from now on."""
    joined = "\0".join(texts).encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(joined).hexdigest()
    is_new = digest not in known
    known.add(digest)
    return is_new
