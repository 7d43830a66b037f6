"""Questions one after another: variables, histories, contexts, kept, undone, saved and loaded."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag import RLM, Conversation, Limits, SearchableCorpus
from rlm_rag.engine.carried import Carried
from rlm_rag.errors import ModelError, SessionError, UsageError
from rlm_rag.sessions import MAX_LAST, SavedConversation, SessionStore
from tests.engine.play import block
from tests.servers.loopback import Step, failed, reply
from tests.servers.openai_chat import OpenAiChatServer

DOCUMENTS = [
    {"path": "src/retry.py", "content": "def backoff(n):\n    return 2 ** n\n"},
    {"path": "b.md", "content": "The delay doubles.\n"},
]


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load(DOCUMENTS) as loaded:
        yield loaded


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "rlm-rag"


def steps(*codes: str) -> Sequence[Step]:
    return [block(code) for code in codes]


def rlm(server: OpenAiChatServer, **options: object) -> RLM:
    options = {"strategy": "rlm", "trace": False} | options
    return RLM(model="test", api_base=server.api_base, **options)  # type: ignore[arg-type]


def talk(server: OpenAiChatServer, corpus: SearchableCorpus, **options: object) -> Conversation:
    return rlm(server, **options).conversation(corpus)


def test_the_next_question_finds_variables_functions_histories_and_what_was_said(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = steps(
        "answers['a'] = 1\nclass Kind: pass\nkind = Kind()\ndef double(n): return 2 * n",
        "hits = search('delay')\nentry = context[1]\nadd_context('n.md', 'noted')\n"
        "FINAL('it doubles')",
        "rows = [(h['question'], h['turn'], h['role']) for h in history_0]\n"
        "print(rows, len(history) > len(history_0), context_0 is context, type(kind) is Kind)\n"
        "noted = read('added:/n.md')\n"
        "FINAL(f\"{double(21)} {hits[0]['path']} {entry['path']} {answers} {noted}\")",
    )
    conversation = talk(openai_server, corpus)
    assert conversation.ask("How does the delay grow?").text == "it doubles"
    second = conversation.ask("And where is it?")
    assert second.text == "42 b.md b.md {'a': 1} 1: noted"
    first_prompt = openai_server.received[2].messages[1]["content"]
    assert "Question 0: How does the delay grow?" in first_prompt
    assert "Your answer: it doubles" in first_prompt
    assert "hits (list, 1 items)" in first_prompt
    assert "`answers`" not in openai_server.received[0].messages[1]["content"]
    said = conversation.exchanges[0].said
    assert [(each.turn, each.role) for each in said] == [
        (1, "user"), (1, "assistant"), (2, "user"), (2, "assistant"),
    ]  # fmt: skip
    assert conversation.usage.calls == 3


def test_undo_brings_back_the_variables_as_they_were_before(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = steps(
        "seen = [1]\nFINAL('one')",
        "seen.append(2)\nother = 3\nFINAL('two')",
        "FINAL(f\"{seen} {'other' in globals()} {len(history_0)} {'history_1' in globals()}\")",
    )
    conversation = talk(openai_server, corpus)
    assert conversation.undo() is None
    conversation.ask("First?")
    conversation.ask("Second?")
    assert conversation.undo() == "Second?"
    assert conversation.ask("Third?").text == "[1] False 2 True"
    assert [each.question for each in conversation.exchanges] == ["First?", "Third?"]
    assert "Second?" not in openai_server.received[-1].prompt


def test_questions_of_a_kept_session_can_be_undone_later(
    openai_server: OpenAiChatServer, tmp_path: Path, state: Path
) -> None:
    source = tmp_path / "a.md"
    source.write_text("alpha\n")
    openai_server.script = steps(
        "seen, same = [1], 'x' * 5000\nadd_context('n.md', 'y' * 5000)\nFINAL('one')",
        "seen.append(2)\nFINAL('two')",
        "seen.append(3)\nFINAL('three')",
    )
    with talk(openai_server, source) as conversation:
        for question in ("First?", "Second?", "Third?"):
            conversation.ask(question)
        path = conversation.save("mine")
    # What is the same in all three states is kept once.
    assert path.read_text().count("y" * 5000) == 1
    openai_server.script = steps("FINAL(f\"{seen} {len(same)} {read('added:/n.md')[:4]}\")")
    with rlm(openai_server).conversation(session="mine") as again:
        assert [again.undo(), again.undo()] == ["Third?", "Second?"]
        assert again.ask("Fourth?").text == "[1] 5000 1: y"
        assert again.undo() == "Fourth?"
        assert again.undo() == "First?"
        assert again.undo() is None
        again.save("mine")
    openai_server.script = steps("FINAL(str('seen' in globals()))")
    with rlm(openai_server).conversation(session="mine") as anew:
        assert (anew.exchanges, anew.ask("Again?").text) == ((), "False")


def test_what_is_kept_for_undoing_is_bounded(
    openai_server: OpenAiChatServer,
    tmp_path: Path,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = tmp_path / "a.md"
    source.write_text("alpha\n")
    openai_server.script = steps(*(f"FINAL('{n}')" for n in range(4)))
    with talk(openai_server, source) as conversation:
        for n in range(4):
            conversation.ask(f"{n}?")
        monkeypatch.setattr("rlm_rag.engine.earlier.MAX_STATES", 2)
        conversation.save("few")
        monkeypatch.setattr("rlm_rag.engine.earlier.MAX_CHARS", 10)
        conversation.save("none")
    few, none = SessionStore().load("few"), SessionStore().load("none")
    assert few is not None and [len(each.exchanges) for each in few.earlier] == [2, 3]
    assert none is not None and (none.earlier, len(none.carried.exchanges)) == ((), 4)


def test_a_question_that_fails_leaves_the_conversation_as_it_was(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = [*steps("x = 1\nFINAL('one')"), failed(400, "no")]
    conversation = talk(openai_server, corpus)
    conversation.ask("First?")
    with pytest.raises(ModelError):
        conversation.ask("Second?")
    openai_server.script = steps("FINAL(str(x))")
    assert conversation.ask("Third?").text == "1"
    assert len(conversation.exchanges) == 2


def test_search_spans_every_context_and_each_has_its_name(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = steps(
        "first = context[0]\nFINAL('one')",
        "theirs = context_1[0]\n"
        "print(sorted(h['path'] for h in search('delay')))\n"
        "print([len(context), len(context_0), len(context_1)], theirs['path'])\n"
        "FINAL(first['path'])",
        "FINAL(theirs['content'] + context_1[0]['content'])",
    )
    conversation = talk(openai_server, corpus)
    conversation.ask("First?")
    more = [{"path": "notes.md", "content": "A delay of our own.\n"}]
    assert conversation.add(more) == "context_1"
    with conversation:
        answer = conversation.ask("Second?")
        assert answer.text == "src/retry.py"
        prompt = openai_server.received[1].messages[1]["content"]
        assert "`context_0` (2), `context_1` (1)" in prompt
        assert conversation.ask("Third?").text == "A delay of our own.\n" * 2
    assert [(name, count) for name, _, count in conversation.sources] == [
        ("context_0", 2),
        ("context_1", 1),
    ]
    with pytest.raises(UsageError, match="closed"):
        conversation.ask("Fourth?")
    assert corpus.search("delay")


def test_a_strategy_without_a_repl_is_told_what_was_said_and_keeps_the_variables(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = [reply("It doubles, `b.md:1`."), reply("In backoff, `src/retry.py:1`.")]
    conversation = talk(openai_server, corpus, strategy="direct")
    conversation.ask("How does the delay grow?")
    conversation.ask("Where?")
    prompt = openai_server.received[-1].prompt
    assert "Question 0: How does the delay grow?" in prompt
    assert prompt.endswith("Question: Where?")


def test_auto_goes_on_in_the_repl_where_there_are_variables(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = [reply("It doubles."), reply("In b.md.")]
    conversation = talk(openai_server, corpus, strategy="auto")
    conversation.ask("How does the delay grow?")
    conversation.ask("Where?")
    assert "REPL" not in openai_server.received[-1].messages[0]["content"]
    openai_server.script = steps("x = 5\nFINAL('five')", "FINAL(str(x))")
    conversation = talk(openai_server, corpus)
    conversation.ask("First?")
    conversation._options = rlm(openai_server, strategy="auto")._options
    assert conversation.ask("How does the delay grow?").text == "5"


def test_a_trace_of_a_later_question_can_be_replayed_alone(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    openai_server.script = steps("x = [1, 2]\nFINAL('one')", "FINAL(f'{x} {len(history_0)}')")
    conversation = talk(openai_server, corpus, trace=tmp_path)
    conversation.ask("First?")
    answer = conversation.ask("Second?")
    assert rlm_rag.replay(Path(str(answer.trace)), corpus).text == answer.text == "[1, 2] 2"
    lines = Path(str(answer.trace)).read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(lines[0])
    openai_server.script = steps("FINAL(f'{x} again')")
    assert rlm_rag.resume(cut, corpus).text == "[1, 2] again"


def test_a_conversation_is_saved_privately_and_goes_on_from_the_file(
    openai_server: OpenAiChatServer, tmp_path: Path, state: Path
) -> None:
    folder, more = tmp_path / "src", tmp_path / "more.md"
    folder.mkdir()
    (folder / "a.md").write_text("alpha\n")
    more.write_text("beta\n")
    openai_server.script = steps(
        "x = {'n': 1}\nFINAL('one')", 'FINAL(f"{x} {len(context_1)} {len(history_0)}")'
    )
    with talk(openai_server, folder) as conversation:
        conversation.add(more)
        conversation.ask("First?")
        path = conversation.save("mine")
    assert path == state / "sessions" / "mine.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with rlm(openai_server).conversation(session="mine") as again:
        assert not again.warnings
        assert again.ask("Second?").text == "{'n': 1} 1 2"
    (folder / "a.md").write_text("alpha changed\n")
    openai_server.script = steps("FINAL(f\"{'x' in globals()} {len(history_0)}\")")
    with rlm(openai_server).conversation(session="mine") as changed:
        assert "changed since" in changed.warnings[0]
        assert changed.ask("Third?").text == "False 2"
    with pytest.raises(SessionError, match="no session 'other'"):
        rlm(openai_server).conversation(session="other")


def test_sessions_that_cannot_be_are_said_so(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, state: Path
) -> None:
    conversation = talk(openai_server, corpus)
    with pytest.raises(SessionError, match="cannot be loaded again"):
        conversation.save("mine")
    store = SessionStore()
    for name in ("", "../x", "a/b", ".hidden", "x" * 65):
        with pytest.raises(SessionError, match="name"):
            store.load(name)
    assert store.load("none") is None
    store.path_of("bad").parent.mkdir(parents=True)
    kept = {"sources": [], "fingerprint": "", "carried": Carried().to_json()}
    bad: list[object] = [7, [7], [{}], [{"exchanges": 1, "variables": None, "added": {"a": None}}]]
    texts = [json.dumps({**kept, "earlier": earlier}) for earlier in bad]
    texts += ["{", "[]", json.dumps({**kept, "carried": {"exchanges": 1}})]
    for text in texts:
        store.path_of("bad").write_text(text)
        with pytest.raises(SessionError, match=r"cannot be read|damaged"):
            store.load("bad")


def test_only_the_last_conversations_of_so_many_sources_are_kept(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    for number in range(MAX_LAST + 3):
        store.save_last(SavedConversation((f"/source/{number}",), "f", Carried()))
    assert len(list(tmp_path.iterdir())) == MAX_LAST
    assert store.load_last(f"/source/{MAX_LAST + 2}") is not None
    assert store.load_last("/source/0") is None
    assert store.names() == []


def test_questions_can_be_awaited_but_not_two_at_once(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = steps(
        "import time; time.sleep(0.2); x = 1\nFINAL('one')", "FINAL(str(x))"
    )
    conversation = talk(openai_server, corpus)

    async def both() -> str:
        first = asyncio.ensure_future(conversation.ask_async("First?"))
        await asyncio.sleep(0.05)
        with pytest.raises(UsageError, match="another question"):
            await conversation.ask_async("Too soon?")
        await first
        return (await conversation.ask_async("Second?")).text

    assert asyncio.run(both()) == "1"


def test_limits_count_anew_for_each_question(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = steps("x = 1", "FINAL('one')", "x += 1", "FINAL(str(x))")
    conversation = talk(openai_server, corpus, limits=Limits(calls=3))
    conversation.ask("First?")
    assert conversation.ask("Second?").text == "2"


def test_variables_that_harm_the_next_worker_are_lost_and_said_so(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = steps(
        "import os\nclass Bomb:\n    def __reduce__(self): return os._exit, (1,)\n"
        "bomb, x = Bomb(), 1\nFINAL('one')",
        "FINAL(f\"{'x' in globals()} {len(history_0)}\")",
    )
    conversation = talk(openai_server, corpus)
    conversation.ask("First?")
    assert conversation.ask("Second?").text == "False 2"
    prompt = openai_server.received[-1].messages[1]["content"]
    assert "could not be kept: Bomb, bomb, x" in prompt


def test_a_source_of_bytes_that_are_no_utf_8_has_a_last_conversation(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    source = "/source/bad\udcff.txt"
    store.save_last(SavedConversation((source,), "f", Carried()))
    saved = store.load_last(source)
    assert saved is not None and saved.sources == (source,)
