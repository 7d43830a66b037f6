"""A definition between processes: what its rows may hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlm_rag.indexes.skeleton import Definition, from_rows, to_rows

ONE = Definition(3, "method", "go", "def go(self)", ("A", "B"), 2, 4, "Goes.")


def test_rows_come_back_as_the_definitions_that_they_were_made_of() -> None:
    definitions = (ONE, Definition(1, "class", "Ä", "class Ä"))
    assert from_rows(json.loads(json.dumps(to_rows(definitions)))) == definitions


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        (0, -1, "whole numbers"),
        (0, 1.0, "whole numbers"),
        (5, None, "whole numbers"),
        (6, "4", "whole numbers"),
        (1, 1, "are texts"),
        (2, None, "are texts"),
        (3, ["a"], "are texts"),
        (7, {}, "are texts"),
        (4, "AB", "are names"),
        (4, ["A", 1], "are names"),
    ],
)
def test_a_value_of_another_type_is_refused(field: int, value: Any, said: str) -> None:
    (row,) = json.loads(json.dumps(to_rows([ONE])))
    row[field] = value
    with pytest.raises(ValueError, match=said):
        from_rows([row])


@pytest.mark.parametrize("rows", [{}, "[]", [[]], [[1, 2]], [{"line": 1}], [7]])
def test_what_is_no_list_of_rows_is_refused(rows: Any) -> None:
    with pytest.raises(ValueError, match=r"are a list|as many values"):
        from_rows(rows)
