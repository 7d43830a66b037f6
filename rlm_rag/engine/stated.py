"""What a block that will not run says the answer is, where it says so in plain literals."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping

from rlm_rag.engine.history import RanBlock
from rlm_rag.engine.reply import Block


def stated_answer(blocks: Iterable[Block | RanBlock]) -> str | None:
    """Return the text that the blocks set `answer` to, or call FINAL with; None where none does.

    Nothing is run: only literals count, and the last one wins.
    """
    stated = None
    for block in blocks:
        for statement in statements(block.code):
            found = _of_statement(statement)
            stated = stated if found is None else found
    return stated


def statements(code: str) -> list[ast.stmt]:
    """Return the statements of a block at its top level, none of one that does not parse."""
    # Told of its escapes in a block that never runs, nobody could do anything about them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code).body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return []


def _of_statement(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return _of_call(statement.value)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if isinstance(target, ast.Name) and target.id == "answer":
        return _text_of(statement.value)
    if (
        isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Name)
        and target.value.id == "answer"
        and isinstance(target.slice, ast.Constant)
        and target.slice.value == "content"
    ):
        return _text_of(statement.value)
    return None


def _of_call(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Name) and call.func.id == "FINAL" and len(call.args) == 1:
        return _text_of(call.args[0])
    function = call.func
    if (
        isinstance(function, ast.Attribute)
        and function.attr == "update"
        and isinstance(function.value, ast.Name)
        and function.value.id == "answer"
    ):
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        given = named.get("content") or (call.args[0] if call.args else None)
        return None if given is None else _text_of(given)
    return None


def _text_of(node: ast.expr) -> str | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(value, Mapping):
        value = value.get("content")
    return None if value is None else str(value)
