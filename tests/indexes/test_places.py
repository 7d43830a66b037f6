"""The queries of the grammars: what their patterns may say."""

from __future__ import annotations

import pytest
from tree_sitter import Parser

from rlm_rag.indexes.grammars import grammar_named
from rlm_rag.indexes.places import PlaceQuery
from rlm_rag.indexes.tree import language_of

PYTHON = language_of(grammar_named("python"))
FUNCTION = "(function_definition name: (_) @name) @function\n"


@pytest.mark.parametrize(
    ("pattern", "kinds"),
    [("(class_definition name: (_) @name)", r"\[\]"), ("(class_definition) @a @b", "'a', 'b'")],
)
def test_a_pattern_names_one_kind(pattern: str, kinds: str) -> None:
    with pytest.raises(ValueError, match=f"one kind, not .*{kinds}.*class_definition"):
        PlaceQuery(PYTHON, FUNCTION + pattern, "module")


@pytest.mark.parametrize("first", ["constant", "variable"])
def test_of_patterns_that_agree_the_first_counts_wherever_each_begins(first: str) -> None:
    anywhere = "(assignment left: (_) @name) @constant\n"
    at_root = "(module (expression_statement (assignment left: (_) @name) @variable))\n"
    written = anywhere + at_root if first == "constant" else at_root + anywhere
    root = Parser(PYTHON).parse(b"A = 1\ndef f():\n    B = 2\n").root_node
    places = PlaceQuery(PYTHON, written, "module").places(root)
    assert {one.name_start: one.kind for one in places} == {0: first, 19: "constant"}
