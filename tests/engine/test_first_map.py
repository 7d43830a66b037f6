"""What the rest of a repository leans on is shown before the first turn."""

from __future__ import annotations

from pathlib import Path

import rlm_rag
from tests.engine.play import block, play
from tests.servers.openai_chat import OpenAiChatServer

DOCUMENTS = [
    {"path": "lib/retry.py", "content": "def backoff_delay(attempt):\n    return 2 ** attempt\n"},
    *(
        {
            "path": f"app/job{n}.py",
            "content": f"from lib.retry import backoff_delay\n\n\ndef job_{n}():\n"
            "    return backoff_delay(1)\n",
        }
        for n in range(24)
    ),
]
LOOKED = block("FINAL(str(len(context)))")


def test_a_root_model_sees_the_map_of_a_repository_and_a_replay_the_same(
    openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    with rlm_rag.load(DOCUMENTS) as corpus:
        found = play(openai_server, corpus, root=[LOOKED], trace=tmp_path)
        first = openai_server.received[0].messages[1]["content"]
        assert "What the rest leans on most:\nlib/retry.py:" in first
        assert "def backoff_delay(attempt)" in first
        assert found.coverage.looked == ()
        assert rlm_rag.replay(str(found.trace), corpus).text == found.text == "25"


def test_a_few_documents_need_no_map(openai_server: OpenAiChatServer) -> None:
    with rlm_rag.load(DOCUMENTS[:5]) as corpus:
        play(openai_server, corpus, root=[LOOKED])
    assert "leans on most:" not in openai_server.received[0].messages[1]["content"]
