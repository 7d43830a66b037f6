"""What a block that counts leaves out of what its question names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from rlm_rag.engine.stated import statements

_READS = "records"
_SAYS = frozenset({"FINAL", "print"})
_COUNTS = frozenset({"count", "findall", "finditer", "split", "splitlines"})
_ADDS = frozenset({"len", "sum"})
_READS_PATHS = frozenset({"read", "open"})
_ANY_TEXT = re.compile(r"\\.|\[[^\]]*\]|\(\?[^):]*[:)]?")


def left_out(code: str, named: Sequence[Sequence[str]]) -> Sequence[str]:
    """Return the values of the first column in `named` that a block holds no record against.

    Empty where each column has a value in some text of the block beside what it says, or where
    it reads no records itself: what they were bound to before may hold only those already.
    """
    nodes = _nodes(code)
    if not _has_name(nodes, _READS):
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


def counts_all(code: str, named: Sequence[str]) -> bool:
    """Whether a block counts lines or matches of texts, and holds nothing against them.

    What it holds against them need not be one of the words in `named`: code may have another word
    for the same. A path is nothing of the kind, unless it has such a word.
    """
    nodes = _nodes(code)
    if _has_name(nodes, _READS) or not _counts(nodes):
        return False
    paths = {id(each) for node in nodes for each in _of_paths(node)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.casefold()
            if any(word in text for word in named):
                return False
            if id(node) not in paths and re.search(r"\w", _ANY_TEXT.sub("", text)):
                return False
        elif _is_of_a_name(node) or any(map(_tells, _conditions(node))):
            return False
    return True


def _nodes(code: str) -> list[ast.AST]:
    """Return what a block does; nothing where it is nested too deep to be followed."""
    try:
        return [node for statement in statements(code) for node in _done(statement)]
    except RecursionError:
        # It is not held against the model.
        return []


def _has_name(nodes: Sequence[ast.AST], name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in nodes)


def _counts(nodes: Sequence[ast.AST]) -> bool:
    if any(isinstance(node, ast.Attribute) and node.attr in _COUNTS for node in nodes):
        return True
    return _has_name(nodes, "context") and any(_has_name(nodes, name) for name in _ADDS)


def _of_paths(node: ast.AST) -> Iterator[ast.expr]:
    """Return the parts of a node that say which text is read, a key or a path."""
    if isinstance(node, ast.Subscript):
        yield node.slice
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _READS_PATHS
    ):
        yield from node.args


def _conditions(node: ast.AST) -> Sequence[ast.expr]:
    """Return what a node makes its counting depend on."""
    if isinstance(node, ast.comprehension):
        return node.ifs
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return (node.test,)
    if isinstance(node, ast.Compare):
        return (node,)
    return ()


def _tells(condition: ast.expr) -> bool:
    """Whether a condition holds more against a line than that it is not empty."""
    if isinstance(condition, ast.Compare):
        against = condition.comparators
        return not all(isinstance(each, ast.Constant) and not each.value for each in against)
    if isinstance(condition, ast.Call) and isinstance(condition.func, ast.Attribute):
        return bool(condition.args) or condition.func.attr != "strip"
    return not isinstance(condition, ast.Name)


def _is_of_a_name(node: ast.AST) -> bool:
    """Whether a node counts what is bound elsewhere, such as `text.count(word)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in _COUNTS and any(isinstance(each, ast.Name) for each in node.args[:1])


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
