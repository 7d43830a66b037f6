"""What a block takes from the corpus, told from what the model wrote itself.

Only names are followed, not values: where a block reads anything of the corpus, all that it binds
counts as the corpus's, so that what was computed from it is never taken for an invention.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from rlm_rag.engine.stated import statements

_OF_ANSWERS = ("answer", "answers", "plan")
# What reads other names, or files, by a text that is not looked into here.
_OPAQUE = frozenset(
    {"eval", "exec", "compile", "globals", "locals", "vars", "open", "input", "__import__"}
)
_PYTHONS = frozenset(
    {
        *(name for name in dir(builtins) if name not in _OPAQUE),
        *("FINAL", "FINAL_VAR", "Counter", "defaultdict"),
        *("collections", "csv", "datetime", "itertools", "json", "math", "re", "statistics"),
    }
)


class Origins:
    """Keeps the names that hold only what the model wrote itself; one for each RLM."""

    def __init__(self) -> None:
        self._own = set(_OF_ANSWERS)

    def of_corpus(self, code: str) -> frozenset[str]:
        """Return the names that a block reads which are neither Python's nor the model's own.

        Those are functions of the REPL, `context`, and variables that came of them.
        """
        return frozenset(self._names(code).read)

    def ran(self, code: str) -> None:
        """Take in what a block has bound or changed."""
        names = self._names(code)
        if names.read:
            self._own -= names.bound | names.changed
        else:
            self._own |= names.bound

    def _names(self, code: str) -> _Names:
        names = _Names(self._own)
        try:
            for statement in statements(code):
                names.visit(statement)
        except RecursionError:
            # What is nested too deep to be followed is not held against the model.
            names.read.add("context")
        return names


class _Names(ast.NodeVisitor):
    """Goes through a block in the order in which it runs, for names read before they are bound."""

    def __init__(self, own: set[str]) -> None:
        self._own = own
        self.read: set[str] = set()
        self.bound: set[str] = set()
        self.changed: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._reads(node.id)
        else:
            self.bound.add(node.id)

    def _reads(self, name: str) -> None:
        if name not in self.bound and name not in self._own and name not in _PYTHONS:
            self.read.add(name)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
        self.visit(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self._reads(node.target.id)
        self.visit(node.target)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        for part in (node.iter, node.target, *node.body, *node.orelse):
            self.visit(part)

    visit_AsyncFor = visit_For

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for part in (node.iter, node.target, *node.ifs):
            self.visit(part)

    def _visit_comprehended(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> None:
        of = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        self._within((*node.generators, *of))

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _visit_comprehended

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.bound.add(node.name)
        self._within((node.args, *node.body, *node.decorator_list))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bound.add(node.name)
        self._within((*node.bases, *node.body))

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._within((node.args, node.body))

    def _within(self, parts: Iterable[ast.AST]) -> None:
        """Go through what has names of its own: `def total(rows)` binds no `rows` outside."""
        outside = set(self.bound)
        for part in parts:
            self.visit(part)
        self.bound = outside

    def visit_arg(self, node: ast.arg) -> None:
        self.bound.add(node.arg)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name is not None:
            self.bound.add(node.name)
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.bound.add((node.asname or node.name).partition(".")[0])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._changes(node.value)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._changes(node.value)
        self.generic_visit(node)

    def _changes(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name):
            self.changed.add(node.id)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "FINAL_VAR":
            for named in node.args:
                if isinstance(named, ast.Constant) and isinstance(named.value, str):
                    self._reads(named.value)
        self.generic_visit(node)
