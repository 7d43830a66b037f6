"""What a block that goes through records leaves out of what its question names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from rlm_rag.engine.stated import statements

_READS = "records"
_SAYS = frozenset({"FINAL", "print"})


def left_out(code: str, named: Sequence[Sequence[str]]) -> Sequence[str]:
    """Return the values of the first column in `named` that a block holds no record against.

    Empty where each column has a value in some text of the block beside what it says, or where
    it reads no records itself: what they were bound to before may hold only those already.
    """
    try:
        nodes = [node for statement in statements(code) for node in _done(statement)]
    except RecursionError:
        # What is nested too deep to be followed is not held against the model.
        return ()
    if not any(isinstance(node, ast.Name) and node.id == _READS for node in nodes):
        return ()
    texts = [
        node.value.casefold()
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    for values in named:
        if not any(value.casefold() in text for value in values for text in texts):
            return values
    return ()


def _done(node: ast.AST) -> Iterator[ast.AST]:
    """Go through a tree, but for what is only said: the words of an f-string, of `FINAL`."""
    yield node
    children: Iterator[ast.AST]
    if isinstance(node, ast.JoinedStr):
        children = _made(node.values)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SAYS:
        children = _made(node.args)
    else:
        children = ast.iter_child_nodes(node)
    for child in children:
        yield from _done(child)


def _made(parts: Sequence[ast.expr]) -> Iterator[ast.AST]:
    return (part for part in parts if not isinstance(part, ast.Constant))
