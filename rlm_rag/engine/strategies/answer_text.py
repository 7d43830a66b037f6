"""The answer in a reply of a model that has no REPL, told from code that it wrote all the same."""

from __future__ import annotations

import ast
import re

from rlm_rag.engine.fences import find_fences
from rlm_rag.engine.offers import REPL_NAMES
from rlm_rag.engine.origins import Origins
from rlm_rag.engine.reply import parse_reply
from rlm_rag.engine.stated import stated_answer, statements
from rlm_rag.engine.thinking import without_thought

_TAGGED = re.compile(r"\A[`~]*repl[ \t]*\n", re.IGNORECASE)
_FINALS = frozenset({"FINAL", "FINAL_VAR"})
_FINAL_VAR = "FINAL_VAR("


def answer_text(reply: str) -> str:
    """Return the answer of a reply: a FINAL that it writes all the same, else all of it.

    Empty where it has no more than thoughts, or code for a REPL.
    """
    said = without_thought(reply)
    parsed = parse_reply(said)
    given = parsed.final or stated_answer(parsed.blocks)
    if given is not None:
        return given.strip()
    return "" if is_only_code(said) else said


def is_only_code(reply: str) -> bool:
    """Whether a reply has no words beside code for a REPL; code that it quotes is not for one."""
    said = without_thought(reply)
    parsed = parse_reply(said)
    if parsed.final_var is not None:
        return said.startswith(_FINAL_VAR) and "\n" not in said
    if not parsed.blocks or _has_words(said):
        return False
    is_tagged = any(block.tag == "repl" for block in parsed.blocks) or bool(_TAGGED.match(said))
    return is_tagged or any(_is_for_a_repl(block.code) for block in parsed.blocks)


def _has_words(said: str) -> bool:
    """Whether a reply that has blocks has words too, or blocks that nobody would run."""
    left = said.replace("\r\n", "\n")
    fences = find_fences(left)
    for fence in reversed(fences):
        if fence.kind != "other":
            left = left[: fence.start] + left[fence.end :]
    return bool(fences) and bool(left.strip())


def _is_for_a_repl(code: str) -> bool:
    if Origins().of_corpus(code) & REPL_NAMES:
        return True
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FINALS
        for statement in statements(code)
        for node in ast.walk(statement)
    )
