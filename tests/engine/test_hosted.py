"""What the host does for blocks where the caller offers it: lists, files, libraries, a person."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlm_rag
from rlm_rag import Limits, Question, SearchableCorpus
from rlm_rag.engine.artifacts import MAX_FILES, Artifacts
from rlm_rag.engine.caller import Refused
from tests.engine.play import block, play, told_root
from tests.servers.openai_chat import OpenAiChatServer


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load([{"path": "a.md", "content": "# A\n\nThe port is 80.\n"}]) as loaded:
        yield loaded


def test_what_nobody_offers_says_so_and_is_not_listed(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    code = (
        "rs = [save_artifact('a.txt', 'x'), ask_user_question('Which?'), load_library('lib')]\n"
        "print([r.ok for r in rs], rs[0].error)\nlisted = capabilities()\n"
        "print([n in listed for n in ('save_artifact', 'ask_user', 'load_library', 'todo(')])"
    )
    play(openai_server, corpus, root=[block(code), block("FINAL('x')")])
    first, told = told_root(openai_server)
    assert "More functions of this run" not in first
    assert "[False, False, False] save_artifact is not offered in this run" in told
    assert "[False, False, False, True]" in told


def test_a_list_and_phases_are_kept_and_seen_by_whoever_watches(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    seen: list[object] = []
    code = (
        "todo('add', 'look'); todo('add', 'count')\nprint(todo('done', 1))\n"
        "print(advance_phase('counting'))\n"
        "print(todo('done', 9).error, todo('burn').error, todo('add', '').ok, sep='|')"
    )
    found = play(
        openai_server,
        corpus,
        root=[block(code), block("FINAL(todo())")],
        on_event=lambda event: seen.append((event.type, getattr(event, "result", None))),
        trace=tmp_path,
    )
    assert found.text == "1. [x] look\n2. [ ] count"
    assert ("served", "counting") in seen
    told = told_root(openai_server)[1]
    assert "todo('done', n) takes a number from 1 to 2|todo is todo(" in told
    assert found.trace is not None
    assert rlm_rag.replay(Path(found.trace), corpus).text == found.text


def test_artifacts_are_files_of_the_callers_folder_and_nothing_else(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    folder, outside = tmp_path / "out", tmp_path / "outside.txt"
    folder.mkdir()
    outside.write_text("mine")
    (folder / "link.txt").symlink_to(outside)
    code = (
        "print(save_artifact('report.md', 'тест\\r\\n'), save_artifact('rows.json', [{'a': 1}]))\n"
        "print(save_artifact('link.txt', 'new'))\n"
        "bad = ['../up.txt', '/etc/x', 'a/b', '.hidden', '', 'nul', 'x' * 101, 'a\\nb', 'c:d']\n"
        "print([save_artifact(name, 'x').ok for name in bad], save_artifact('x', 'y' * (9 << 20)))"
    )
    found = play(
        openai_server,
        corpus,
        root=[block(code), block("FINAL('x')")],
        artifacts=folder,
        trace=tmp_path / "traces",
    )
    assert str([False] * 9) in told_root(openai_server)[1]
    assert (folder / "report.md").read_bytes() == "тест\r\n".encode()
    assert json.loads((folder / "rows.json").read_text()) == [{"a": 1}]
    assert (outside.read_text(), (folder / "link.txt").read_text()) == ("mine", "new")
    assert sorted(path.name for path in folder.iterdir()) == ["link.txt", "report.md", "rows.json"]
    assert found.artifacts == tuple(
        str(folder / name) for name in ("report.md", "rows.json", "link.txt")
    )
    assert found.trace is not None
    (folder / "report.md").unlink()
    assert rlm_rag.replay(Path(found.trace), corpus).artifacts == found.artifacts
    assert not (folder / "report.md").exists()


@given(st.text(max_size=120))
def test_no_name_leaves_the_folder(name: str) -> None:
    artifacts = Artifacts(Path("folder"))
    try:
        artifacts.note(name, "x")
    except Refused:
        return
    (saved,) = artifacts.saved
    assert Path(saved).parent == Path("folder")
    assert Path(saved).name == name
    assert not name.startswith(".")


def test_artifacts_are_bounded_in_number() -> None:
    artifacts = Artifacts(Path("folder"))
    for number in range(MAX_FILES):
        artifacts.note(f"{number}.txt", "x")
    artifacts.note("0.txt", "again")
    with pytest.raises(Refused, match="already"):
        artifacts.note("more.txt", "x")


def test_a_library_joins_context_and_search_and_is_repeated_as_it_was(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    source = tmp_path / "handbook"
    source.mkdir()
    (source / "rules.md").write_text("# Rules\n\nThe quokka sleeps at noon.\n")
    code = (
        "print(load_library('handbook'), load_library('/etc').error)\n"
        "print(load_library('handbook').error, '|', load_library('vast').error)\n"
        "print([d['path'] for d in context], search('quokka')[0]['path'])"
    )
    found = play(
        openai_server,
        corpus,
        root=[block(code), block("FINAL(read('added:/handbook/rules.md'))")],
        libraries={"handbook": source, "vast": {"a.txt": "x" * (9 << 20)}},
        trace=tmp_path / "traces",
    )
    first, told = told_root(openai_server)
    assert "load_library(name)" in first
    assert "['added:/handbook/rules.md'] there is no library '/etc'; of handbook, vast" in told
    assert "handbook is loaded already, under added:/handbook/ | the library vast is too" in told
    assert "['a.md', 'added:/handbook/rules.md'] added:/handbook/rules.md" in told
    assert "sleeps at noon" in found.text
    assert found.trace is not None
    (source / "rules.md").write_text("changed")
    assert rlm_rag.replay(Path(found.trace), corpus).text == found.text


def test_an_odd_name_in_a_library_costs_nothing_and_a_bad_one_costs_itself(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    odd, bad = "odd\n\x1b[31mname.md", f"{'deep/' * 70}bad.md"
    library = {odd: "The quokka sleeps.\n", "rules.md": "# Rules\n", bad: "The rest.\n"}
    code = (
        "print(load_library('handbook'))\nprint([d['path'] for d in context])\n"
        "print('found', search('quokka')[0]['path'] == 'added:/handbook/odd\\n\\x1b[31mname.md')"
    )
    found = play(
        openai_server,
        corpus,
        root=[block(code), block("FINAL(read(context[1]['path']))")],
        libraries={"handbook": library},
        trace=tmp_path,
    )
    told = told_root(openai_server)[1]
    paths = f"'added:/handbook/{odd}', 'added:/handbook/rules.md'".replace("\n", "\\n")
    assert paths.replace("\x1b", "\\x1b") in told
    assert f"without 1 entry: '{bad[:79]}" in told
    assert f"(a path of {len('added:/handbook/' + bad)} characters, of at most 300)" in told
    assert "found True" in told
    assert found.text == "1: The quokka sleeps."
    assert found.trace is not None
    assert rlm_rag.replay(Path(found.trace), corpus).text == found.text


def test_a_person_is_asked_and_the_wait_is_no_time_of_the_block(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    asked: list[Question] = []

    def ask(question: Question) -> str:
        asked.append(question)
        time.sleep(0.4)
        return f"answer {len(asked)}"

    code = (
        "print(ask_user_question('Which year?'))\n"
        "print(ask_user_question([{'question': 'Which?', 'options': ['a', 'b']}, 'Why?']))\n"
        "print([ask_user_question(q).ok for q in ('', [], 7, ['x'] * 11, {'question': 3})])"
    )
    play(
        openai_server,
        corpus,
        root=[block(code), block("FINAL('x')")],
        ask_user=ask,
        limits=Limits(cell_seconds=0.7),
    )
    told = told_root(openai_server)[1]
    assert "answer 1\n['answer 2', 'answer 3']\n[False, False, False, False, False]" in told
    assert asked == [Question("Which year?"), Question("Which?", ("a", "b")), Question("Why?")]


def test_a_person_who_is_not_there_is_an_error_and_not_the_end(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    async def never(question: Question) -> str:
        await asyncio.sleep(60)
        return "late"

    def gone(question: Question) -> str:
        raise EOFError

    for ask, said in ((never, "nobody answered within 0.5 s"), (gone, "nobody answered: EOFError")):
        play(
            openai_server,
            corpus,
            root=[block("print(ask_user_question('Who?'))"), block("FINAL('x')")],
            ask_user=ask,
            limits=Limits(await_seconds=1),
        )
        assert said in told_root(openai_server)[-1]
