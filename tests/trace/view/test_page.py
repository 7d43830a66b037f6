"""The page is one file that needs nothing else, and data can be nothing but data in it."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from rlm_rag.pages.document import json_text
from rlm_rag.trace.reader import read_trace
from rlm_rag.trace.view.coverage import Documents
from rlm_rag.trace.view.page import Looked, view_page
from rlm_rag.trace.view.payloads import CHUNK_CHARS, Payloads
from tests.trace.view.made import (
    EVERY,
    HOSTILE,
    LOOKED,
    hostile,
    hostile_look_up,
    recorded,
)

NOTHING = Looked(passages=[], documents=Documents(None, ""))


class Parsed(HTMLParser):
    """Scripts, styles and data of a page, and the tags around them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.blocks: list[tuple[str, dict[str, str | None], str]] = []
        self.tags: list[str] = []
        self._open: tuple[str, dict[str, str | None]] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag in ("script", "style"):
            self._open = tag, dict(attrs)
            self.blocks.append((tag, dict(attrs), ""))
        if tag == "meta":
            self.blocks.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            tag, attributes, text = self.blocks[-1]
            self.blocks[-1] = tag, attributes, text + data

    def data(self) -> dict[str, Any]:
        return {
            str(attributes["id"]): json.loads(text)
            for tag, attributes, text in self.blocks
            if tag == "script" and attributes.get("type") == "application/json"
        }


def parsed(folder: Path, events: list[Any], looked: Looked) -> Parsed:
    return Parsed("".join(view_page(recorded(folder / "t.jsonl", events), looked)))


def test_the_policy_names_the_digests_of_the_only_script_and_the_styles(tmp_path: Path) -> None:
    found = parsed(tmp_path, EVERY, LOOKED)
    policy = next(a["content"] for t, a, _ in found.blocks if t == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    named = {b64decode(each) for each in re.findall(r"'sha256-([^']+)'", policy)}
    code = [text for t, a, text in found.blocks if t in ("script", "style") and "type" not in a]
    assert {sha256(text.encode()).digest() for text in code} == named
    assert len(code) == 3


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    found = parsed(tmp_path, EVERY, LOOKED)
    assert not {"img", "iframe", "object", "embed", "base", "form"} & set(found.tags)
    scripts = "".join(text for t, a, text in found.blocks if t == "script" and "type" not in a)
    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                 "new Function", "fetch(", "XMLHttpRequest", "import("):  # fmt: skip
        assert name not in scripts
    assert re.findall(r"https?://[^\"']+", scripts) == ["http://www.w3.org/2000/svg"]


def test_hostile_texts_stand_in_it_as_data_alone(tmp_path: Path) -> None:
    text = "".join(view_page(recorded(tmp_path / "t.jsonl", hostile()), hostile_look_up()))
    assert text.count("<script") == text.count("</script") == len(Parsed(text).data()) + 1
    assert "<!--" not in text
    assert not re.search(r"<(?:img|svg|b)\b", text)
    text.encode()  # no lone surrogate is left
    shown = json.dumps(Parsed(text).data(), ensure_ascii=False)
    assert not re.search("[\u2028-\u202e\ud800-\udfff]", shown)
    assert "\\u0000" not in shown.replace("\\\\u0000", "")
    assert "onerror='globalThis.pwned=2'" in shown
    assert "\\\\u202egpj.exe" in shown  # seen, instead of turning what follows around


def test_all_texts_of_a_trace_are_in_its_page(tmp_path: Path) -> None:
    data = parsed(tmp_path, EVERY, LOOKED).data()
    index = data.pop("index")
    starts = index["chunks"]
    assert sorted(data) == [f"chunk-{number}" for number in range(len(starts))]
    payloads = [value for number in range(len(starts)) for value in data[f"chunk-{number}"]]
    for text in ("What is asked?", "search('it')", "printed", "NameError: nope", "one", "hurry",
                 "the provider said no", "what was before", "the child's prompt"):  # fmt: skip
        assert text in payloads
    assert index["question"] == "Where is it?"
    assert index["citations"][0]["lines"][1] == [3, True, [["is it", True]]]
    numbers = {payload for parts in index["nodes"]["parts"] for _, _, payload in parts}
    assert numbers == set(range(len(payloads)))


def test_a_trace_without_an_answer_says_so(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "t.jsonl", EVERY[:9])
    with trace.path.open("ab") as file:
        file.write(b'{"schema_version": 1, "type": "rep')
    index = Parsed("".join(view_page(read_trace(trace.path), NOTHING))).data()["index"]
    assert (index["answer"], index["stop_reason"], index["torn"]) == (None, "unfinished", True)


def test_a_trace_without_a_line_makes_a_page(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    index = Parsed("".join(view_page(read_trace(empty), NOTHING))).data()["index"]
    assert index["nodes"]["kind"] == []
    assert index["file"] == "empty.jsonl"


def test_texts_are_kept_once_and_in_blocks_that_are_parsed_one_by_one() -> None:
    payloads = Payloads()
    assert [payloads.put(value) for value in ("a", [1], "a", [1], "b")] == [0, 1, 0, 2, 3]
    assert payloads.put("x" * CHUNK_CHARS) == 4
    assert payloads.put("y") == 5
    assert [json.loads(chunk)[0] for chunk in payloads.chunks()] == ["a", "x" * CHUNK_CHARS, "y"]
    assert payloads.starts == [0, 4, 5]


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "\u2028", "\ud800", HOSTILE])
def test_json_in_a_page_reads_back_as_it_was(text: str) -> None:
    written = json_text({"x": text})
    assert written.isascii()
    assert "<" not in written
    assert json.loads(written) == {"x": text}
