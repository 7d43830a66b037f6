"""Parse a model's reply into the blocks to run, or the answer it wrote as text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from rlm_rag.engine.fences import MAX_FENCES, Fence, find_fences, parse_module
from rlm_rag.engine.final_text import find_final, mentions_final

MAX_LINES_NAMED = 5
MAX_UNTAGGED_CHARS = 200_000

_OUTPUT_TAG = re.compile(
    r"(?:repl[-_ ]?|code[-_ ]?|tool[-_ ]?)?(?:outputs?|results?|stdout|console)", re.IGNORECASE
)
_OUTPUT_LABEL = re.compile(
    r"^[ \t>#*_]*(?:(?:REPL|Code|Console|Execution|Block|Program|Printed)[ \t]+)?"
    r"(?:outputs?|results?|stdout)(?:[ \t]+of[ \t][^\n:]{0,60})?[ \t]*[*_]*:[*_]*[ \t]*(?:$|\S)",
    re.IGNORECASE | re.MULTILINE,
)

_TAG_ALONE = re.compile(r"\A(?:repl|python|py)[ \t]*\n", re.IGNORECASE)
_SHOWS = re.compile(r"\b(?:print|FINAL)\(")


@dataclass(frozen=True, slots=True)
class Block:
    """Code to run. `tag` is `repl`, `python` or empty; `line` the 1-based line of its fence."""

    code: str
    tag: str
    line: int


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What a reply asks for.

    `final` and `final_var` are only set where there are no blocks. `notes` are sentences for
    the model's next turn: what was not run, what ended nothing, what is not real.
    """

    blocks: tuple[Block, ...]
    final: str | None
    final_var: str | None
    notes: tuple[str, ...]


def parse_reply(text: str) -> ParsedReply:
    """Parse a reply by docs/design.md section 4.2; never raises, in linear time."""
    text = text.replace("\r\n", "\n")
    if (bare := _bare_code(text)) is not None:
        return ParsedReply((Block(bare, "", 1),), None, None, ())
    fences = find_fences(text)
    imagined = set(_imagined_lines(text, fences))
    has_repl = any(fence.kind == "repl" and fence.code.strip() for fence in fences)
    sorted_fences = _sorted(fences, imagined, has_repl=has_repl)
    notes = list(_notes(sorted_fences, has_repl=has_repl))
    if len(fences) == MAX_FENCES:
        notes.append(f"Not run: whatever came after the first {MAX_FENCES} blocks.")
    blocks = tuple(Block(fence.code, fence.tag, fence.line) for fence in sorted_fences.run)
    if not blocks:
        found = find_final(text)
        final = found.content if found and found.name == "FINAL" else None
        final_var = found.content if found and found.name == "FINAL_VAR" else None
        return ParsedReply((), final, final_var, tuple(notes))
    final_line = mentions_final(_without_fences(text, fences))
    if final_line is not None:
        notes.append(
            f"The FINAL written as text at line {final_line} ended nothing, since the reply also "
            "holds blocks. Call FINAL inside a block, or write it in a reply without blocks."
        )
    unreal = sorted(line for line in imagined if line > blocks[0].line)
    if unreal:
        notes.append(
            f"The text at {_lines(unreal)} that looks like a block's output is not real: "
            "no block had run when you wrote it. Trust only the output shown here."
        )
    return ParsedReply(blocks, None, None, tuple(notes))


@dataclass(slots=True)
class _Sorted:
    """Fences by what becomes of them; those that are not run by their lines."""

    run: list[Fence] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    python: list[int] = field(default_factory=list)
    untagged: list[int] = field(default_factory=list)
    other: dict[str, list[int]] = field(default_factory=dict)


def _sorted(fences: list[Fence], imagined: set[int], *, has_repl: bool) -> _Sorted:
    found = _Sorted()
    for fence in fences:
        if fence.line in imagined and fence.kind in ("untagged", "other"):
            # After a block to run, it is named as not real instead.
            if not found.run:
                found.untagged.append(fence.line)
        elif fence.kind == "other":
            found.other.setdefault(fence.tag, []).append(fence.line)
        elif not fence.code.strip():
            if fence.kind != "untagged":
                found.empty.append(fence.line)
        elif fence.kind == "repl" or (fence.kind == "python" and not has_repl):
            found.run.append(fence)
        elif fence.kind == "python":
            found.python.append(fence.line)
        elif not has_repl and _does_something(fence.code):
            found.run.append(fence)
        else:
            found.untagged.append(fence.line)
    return found


def _notes(found: _Sorted, *, has_repl: bool) -> Iterator[str]:
    if found.empty:
        yield f"Not run, since it is empty: the block at {_lines(found.empty)}."
    if found.python:
        yield (
            f"Not run: the python block at {_lines(found.python)}. In a reply that has a `repl` "
            "block, only `repl` blocks run."
        )
    if found.untagged:
        reason = "only `repl` blocks run" if has_repl else "tag it `repl` to run it"
        yield f"Not run: the untagged block at {_lines(found.untagged)}; {reason}."
    for tag, lines in islice(found.other.items(), MAX_LINES_NAMED):
        yield (
            f"Not run: the block tagged `{tag[:20]}` at {_lines(lines)}. Only Python in a block "
            "tagged `repl` runs."
        )


def _does_something(code: str) -> bool:
    """Whether untagged text is Python that holds a call or an assignment."""
    if len(code) > MAX_UNTAGGED_CHARS:
        return False
    tree = parse_module(code)
    kinds = (ast.Call, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)
    return tree is not None and any(isinstance(node, kinds) for node in ast.walk(tree))


def _bare_code(text: str) -> str | None:
    """Return a reply that is code as a whole, without the fence that it should open with.

    The 1.5B also opened with the tag of one alone.

    It does something, and prints or answers; an answer that is written as text is none.
    """
    code = _TAG_ALONE.sub("", text.strip().removesuffix("```"))
    if "```" in code or len(code) > MAX_UNTAGGED_CHARS or not _SHOWS.search(code):
        return None
    tree = parse_module(code)
    if tree is None:
        return None
    calls = {
        node.func.id: node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    does = any(not isinstance(statement, ast.Expr) for statement in tree.body)
    final = calls.get("FINAL")
    is_computed = final is not None and any(isinstance(each, ast.JoinedStr) for each in final.args)
    is_code = "print" in calls or (final is not None and (does or is_computed))
    return code if is_code else None


def _imagined_lines(text: str, fences: list[Fence]) -> Iterator[int]:
    """Lines of fences and labels that pretend to show a block's output."""
    label_end = re.compile(_OUTPUT_LABEL.pattern + r"?[ \t]*\Z", _OUTPUT_LABEL.flags)
    position = 0
    line = 1
    counted = 0
    for fence in fences:
        prose = text[position : fence.start]
        for match in _OUTPUT_LABEL.finditer(prose):
            at = position + match.start()
            line += text.count("\n", counted, at)
            counted = at
            yield line
        labelled = fence.kind == "untagged" and label_end.search(prose.rstrip()[-200:])
        if labelled or (fence.kind == "other" and _OUTPUT_TAG.fullmatch(fence.tag)):
            yield fence.line
        position = fence.end
    for match in _OUTPUT_LABEL.finditer(text, position):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        yield line


def _without_fences(text: str, fences: list[Fence]) -> str:
    """The text with its fenced blocks emptied and its line numbers kept."""
    parts = []
    position = 0
    for fence in fences:
        parts.append(text[position : fence.start])
        parts.append("\n" * text.count("\n", fence.start, fence.end))
        position = fence.end
    parts.append(text[position:])
    return "".join(parts)


def _lines(lines: list[int]) -> str:
    named = ", ".join(str(line) for line in lines[:MAX_LINES_NAMED])
    more = f" and {len(lines) - MAX_LINES_NAMED} more" if len(lines) > MAX_LINES_NAMED else ""
    return f"line{'s' if len(lines) > 1 else ''} {named}{more}"
