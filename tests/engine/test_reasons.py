"""Why a citation does not stand."""

from __future__ import annotations

import pytest

import rlm_rag
from rlm_rag.engine.citations import check_citations
from rlm_rag.engine.reasons import why_false

DOCUMENTS = [
    {"path": "src/retry.py", "content": "def f():\n    return 1\n"},
    {"path": "lib/util.py", "content": "x = 1\n"},
    {"path": "app/util.py", "content": "y = 2\n"},
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It is in `src/retry.py:90`.", "the document has lines 1 to 2"),
        ("It is in `src/gone.py:1`.", "no document has this path"),
        ("It is in `src/util.py:1`.", "there is lib/util.py, app/util.py"),
        ('In `src/retry.py:1`: "a quote that is nowhere to be found".', "word for word"),
        ('In `added:/note:1`: "a quote that is nowhere to be found".', "no evidence"),
    ],
)
def test_a_false_citation_says_what_is_wrong(text: str, said: str) -> None:
    with rlm_rag.load(DOCUMENTS) as corpus:
        (citation,) = check_citations(text, corpus)
        assert citation.status == "false"
        assert said in why_false(citation, corpus)


def test_the_end_of_one_path_alone_means_that_document() -> None:
    with rlm_rag.load(DOCUMENTS) as corpus:
        found = check_citations("In `retry.py:1` and `util.py:1`.", corpus)
    assert [(each.path, each.status) for each in found] == [
        ("src/retry.py", "located"),
        ("util.py", "false"),
    ]
