"""Which files of a corpus a question names, by a real index process."""

from __future__ import annotations

import asyncio

import rlm_rag
from rlm_rag.engine.named_files import globs_named
from rlm_rag.engine.view import View
from rlm_rag.indexes.retriever import ProcessRetriever

PATHS = (
    "server.toml",
    "conf/client.toml",
    "Makefile",
    "docs/Makefile",
    "LICENSE",
    "justfile",
    ".gitignore",
    ".github/workflows/test.yml",
    "What/notes.md",
    *(f"part/{n}/FILE{n}" for n in range(9)),
)
NAMED = {
    'What does server.toml say of "retry_limit ="?': ["server.toml"],
    "Is it in ./conf/client.toml, ../server.toml?": ["conf/client.toml", "server.toml"],
    "Who runs .github/workflows/test.yml?": [".github/workflows/test.yml"],
    "Which targets has the Makefile?": ["Makefile"],
    "What does docs/Makefile's first target do": ["docs/Makefile"],
    "Does `LICENSE` or server.toml name a year?": ["server.toml", "LICENSE"],
    "What does “justfile” do, and .gitignore.": ["justfile", ".gitignore"],
    "What license is it under? Is there a justfile?": [],
    "What makes a Dockerfile or conf/Makefile?": [],
    " ".join(f"FILE{n}" for n in range(9)): [f"FILE{n}" for n in range(6)],
}


def test_a_question_names_files_by_their_suffix_capitals_or_quotes() -> None:
    async def named() -> dict[str, list[str]]:
        retriever = ProcessRetriever(corpus.packed_path)
        view = View(corpus, retriever)
        try:
            return {question: await globs_named(view, question) for question in NAMED}
        finally:
            await view.aclose()
            await retriever.aclose()

    with rlm_rag.load(dict.fromkeys(PATHS, "some text\n")) as corpus:
        found = asyncio.run(named())
    expected = {asked: [f"**/{name}" for name in names] for asked, names in NAMED.items()}
    assert found == expected
