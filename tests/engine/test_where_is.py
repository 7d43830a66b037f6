"""A small model that is asked where a name is defined sees what `symbols` shows of it first."""

from __future__ import annotations

import pytest

import rlm_rag
from tests.engine.play import block
from tests.servers.openai_chat import OpenAiChatServer

DOCUMENTS = {
    "json/decoder.py": "def py_scanstring(s, end):\n    return s, end\n",
    "json/uses.py": "from json.decoder import py_scanstring\n" * 9,
}


@pytest.mark.parametrize(
    ("question", "model", "is_shown"),
    [
        ("In which file is the function py_scanstring defined?", "qwen2.5-coder-1.5b", True),
        ("Where is `decoder.py_scanstring`?", "qwen2.5-coder-1.5b", True),
        ("Where is the function c_scanstring defined?", "qwen2.5-coder-1.5b", False),
        ("In which file is the function py_scanstring defined?", "gpt-4o", False),
    ],
)
def test_a_small_model_sees_where_the_names_of_a_question_are_defined(
    openai_server: OpenAiChatServer, question: str, model: str, is_shown: bool
) -> None:
    openai_server.script = [block("FINAL('In `json/decoder.py:1`.')")] * 3
    rlm_rag.ask(
        DOCUMENTS,
        question,
        model=model,
        api_base=openai_server.api_base,
        strategy="rlm",
        trace=False,
    )
    shown = (
        'for s in symbols(\'py_scanstring\'): print(s["path"], s["line"], s["signature"])\n'
        "shows:\njson/decoder.py 1 def py_scanstring(s, end):"
    )
    assert (shown in openai_server.prompts[0]) == is_shown
