"""A real model of 0.5 billion parameters reads what a scripted root hands it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import rlm_rag
from rlm_rag import Limits
from rlm_rag.models.base import Message, ModelRequest
from rlm_rag.models.router import close_model, open_model

LIMITS = Limits(seconds=300)

READ = """```repl
passage = search("access code store room Calder", k=1)[0]["snippet"]
FINAL(llm_query(passage + "\\n\\nWhat is the access code of the store room in Calder?"))
```"""

MAP = """```repl
found = map_files(["*.md"], "On which port does the server listen? Reply with the number alone.")
FINAL("; ".join(f"{path}: {reply}" for path, reply in sorted(found.items())))
```"""

PORT = {
    "type": "object",
    "properties": {"depot": {"type": "string"}, "port": {"type": "integer"}},
    "required": ["depot", "port"],
    "additionalProperties": False,
}


def asked(corpus, block: str, leaf_model: str, folder: Path) -> rlm_rag.Answer:
    script = folder / "script.json"
    script.write_text(json.dumps([block]))
    return rlm_rag.ask(
        corpus,
        "What do the notes say?",
        model=f"scripted:{script}",
        sub_model=leaf_model,
        strategy="rlm",
        temperature=0.0,
        limits=LIMITS,
    )


def test_it_reads_a_passage_and_says_what_was_asked(leaf_model, depots, tmp_path_factory) -> None:
    answer = asked(depots, READ, leaf_model, tmp_path_factory.mktemp("script"))
    assert "48213" in answer.text
    assert answer.by_role["sub"].calls == 1
    assert answer.by_role["sub"].input_tokens > 50


def test_it_reads_each_of_three_files(leaf_model, depots, tmp_path_factory) -> None:
    answer = asked(depots, MAP, leaf_model, tmp_path_factory.mktemp("script"))
    said = dict(part.split(": ", 1) for part in answer.text.split("; "))
    for path, port in (("calder.md", "8431"), ("eskham.md", "9120"), ("hulme.md", "7002")):
        assert port in said[path]
    assert answer.by_role["sub"].calls == 3


def test_its_server_holds_it_to_a_json_schema(leaf_model, depots) -> None:
    request = ModelRequest(
        (Message("user", f"{depots['eskham.md'].content}\nName the depot and its port as JSON."),),
        max_output_tokens=100,
        temperature=0.0,
        schema=PORT,
    )

    async def complete() -> str:
        model = open_model(leaf_model)
        try:
            return (await model.complete(request)).text
        finally:
            await close_model(model)

    said = json.loads(asyncio.run(complete()))
    assert said.keys() == {"depot", "port"}
    assert said["port"] == 9120
    assert "eskham" in said["depot"].casefold()
