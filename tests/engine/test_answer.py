"""An answer prints as the documented JSON object."""

import json

import pytest

from rlm_rag.engine.answer import Answer, denies, is_unfinished
from rlm_rag.engine.citations import Citation
from rlm_rag.engine.coverage import CoverageSummary
from rlm_rag.models.base import Usage
from rlm_rag.models.offline_answer import UNFINISHED


def test_only_the_built_in_policy_says_that_its_search_failed():
    assert is_unfinished(UNFINISHED)
    assert not is_unfinished("The log says that the search did not come to its end.")


def test_an_answer_prints_the_documented_object():
    usage = Usage(calls=2, input_tokens=10, cached_tokens=3, output_tokens=5, usd=0.01)
    answer = Answer(
        text="In a.py:3.",
        stop_reason="answered",
        model="m",
        citations=(Citation("a.py", 3, 3, None, "located", True),),
        iterations=2,
        usage=usage,
        by_model={"m": usage},
        by_role={"sub": usage},
        coverage=CoverageSummary(9, 2, 1, 0),
        found=True,
        fingerprint="f" * 8,
        commit="c" * 40,
        trace="/state/run.jsonl",
        warnings=("no language model was used",),
    )
    figures = {
        "calls": 2,
        "input_tokens": 10,
        "cached_tokens": 3,
        "output_tokens": 5,
        "reasoning_tokens": 0,
        "cached_calls": 0,
        "saved_usd": 0.0,
        "usd": 0.01,
    }
    assert json.loads(json.dumps(answer.to_dict())) == {
        "schema_version": 1,
        "answer": "In a.py:3.",
        "data": None,
        "fits": None,
        "artifacts": [],
        "citations": [
            {
                "path": "a.py",
                "line": 3,
                "end_line": 3,
                "quote": None,
                "status": "located",
                "verified": True,
            }
        ],
        "found": True,
        "stop_reason": "answered",
        "iterations": 2,
        "usage": {**figures, "by_model": {"m": figures}, "by_role": {"sub": figures}},
        "coverage": {
            "files": 9,
            "searched": 2,
            "read": 1,
            "delegated": 0,
            "grepped": 0,
            "untouched": 0,
            "unobserved": False,
            "looked": [],
            "lines": {},
        },
        "corpus": {"fingerprint": "f" * 8, "commit": "c" * 40},
        "warnings": ["no language model was used"],
        "trace": "/state/run.jsonl",
    }


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("Not in the corpus: looked for x.", True),
        ("**Not found in the corpus.**", True),
        ("No language model was used, and nothing was found in the corpus for: x.", True),
        ("It is not in the corpus of a.py:3 but in b.py", False),
        ("", False),
    ],
)
def test_an_answer_that_denies_is_told_apart(text, denied):
    assert denies(text) is denied
