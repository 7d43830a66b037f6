"""Strategies without a REPL, in whole runs: one prompt, passages, notes of sub-models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag import Answer, Limits, SearchableCorpus
from rlm_rag.engine.prompts.texts import load_profile
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.requests import MAX_QUERY_CHARS
from rlm_rag.indexes.retriever import ProcessRetriever
from rlm_rag.trace.events import CallSent, Event, Retrieved, RunStarted, SteppedDown
from rlm_rag.trace.reader import read_trace
from tests.servers.loopback import Received, Step, failed, reply
from tests.servers.openai_chat import OpenAiChatServer

RETRY = """import random

MAX_TRIES = 5


def backoff_delay(attempt: int, base_seconds: float) -> float:
    delay_seconds = base_seconds * 2 ** attempt + random.random()
    return delay_seconds
"""
FILLER = "\n".join(f"Paragraph {n} tells of sheep, wool and weather." for n in range(180))
GOOD = 'In `src/retry.py:7`: "delay_seconds = base_seconds * 2 ** attempt".'


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    documents = [
        {"path": "src/retry.py", "content": RETRY},
        {"path": "docs/farm.md", "content": FILLER},
        {"path": "docs/limits.md", "content": "# Limits\n\nA parcel weighs 30 kg at most.\n"},
    ]
    with rlm_rag.load(documents) as loaded:
        yield loaded


def ask(
    server: OpenAiChatServer,
    corpus: SearchableCorpus,
    strategy: str,
    *steps: Step,
    question: str = "Where does `backoff_delay` compute the delay?",
    **options: Any,
) -> Answer:
    """Ask with `steps` for the server's script, or by the one that it has."""
    if steps:
        server.script = steps
    options.setdefault("trace", False)
    options.setdefault("model", "test")
    return rlm_rag.ask(corpus, question, api_base=server.api_base, strategy=strategy, **options)


def ask_small(
    server: OpenAiChatServer, corpus: SearchableCorpus, question: str, code: str, **options: Any
) -> Answer:
    """Ask a small model, which replies with one block."""
    block = reply(f"```repl\n{code}\n```")
    return ask(
        server, corpus, "rlm", block, question=question, model="qwen2.5-coder-1.5b", **options
    )


def test_direct_shows_the_whole_corpus_with_its_lines_numbered(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(openai_server, corpus, "direct", reply(GOOD))
    assert found.stop_reason == "answered"
    assert found.text == GOOD
    assert [(each.line, each.status) for each in found.citations] == [(7, "verified")]
    prompt = openai_server.prompts[0]
    assert "7:     delay_seconds = base_seconds" in prompt
    assert "180: Paragraph 179" in prompt
    assert found.coverage.delegated == 3
    assert found.usage.calls == 1


def test_direct_shows_what_fits_and_says_what_does_not(
    openai_server: OpenAiChatServer,
) -> None:
    with rlm_rag.load({"a.md": FILLER * 5, "b.md": "The end."}) as large:
        found = ask(openai_server, large, "direct", reply("Nothing of it."), question="What?")
    assert any("2 of 2 documents do not fit" in warning for warning in found.warnings)
    assert "The end." not in openai_server.prompts[0]
    assert "do not fit" in openai_server.prompts[0]
    assert 0 < found.coverage.delegated_lines < 180 * 5


def test_retrieve_shows_definitions_and_passages_and_records_the_look_ups(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    seen: list[Event] = []
    found = ask(openai_server, corpus, "retrieve", reply(GOOD), on_event=seen.append)
    assert found.citations[0].status == "verified"
    assert "7:     delay_seconds" in openai_server.prompts[0]
    assert "180: Paragraph 179" not in openai_server.prompts[0]
    looked = [event.name for event in seen if isinstance(event, Retrieved)]
    assert looked == ["symbols", "search"]
    assert found.coverage.read >= 1
    (started,) = (event for event in seen if isinstance(event, RunStarted))
    assert (started.strategy, started.sandbox) == ("retrieve", "unused")


SETTINGS = {
    **{f"conf/{n}.toml": f"name = {n}\nretry_limit = {n}\n" for n in range(6)},
    "conf/server.toml": "[client]\nname = 9\n" + "# of sheep\n" * 50 + "retry_limit = 9\n",
    "Makefile": "all:\n\techo retry_limit\n",
    "src/limits.py": "def retry_limit():\n    return 9\n",
}


@pytest.fixture(scope="module")
def settings() -> Iterator[SearchableCorpus]:
    with rlm_rag.load(SETTINGS) as loaded:
        yield loaded


@pytest.mark.parametrize(
    ("question", "order"),
    [
        ('What does server.toml say of "retry_limit ="?', ["conf/server.toml"]),
        ('What does server.toml say of "name = 2"?', ["conf/server.toml", "conf/2.toml"]),
        ("Which target of the Makefile tells the limit of retries?", ["Makefile"]),
        ("What does limits.py return in `retry_limit`?", ["src/limits.py"]),
        ("Where is `retry_limit` of the Makefile defined?", ["Makefile", "conf/0.toml"]),
    ],
)
def test_retrieve_shows_the_file_that_a_question_names_first(
    openai_server: OpenAiChatServer, settings: SearchableCorpus, question: str, order: list[str]
) -> None:
    ask(openai_server, settings, "retrieve", reply("9"), question=question)
    shown = re.findall(r"^=== (\S+) ", openai_server.prompts[0], re.MULTILINE)
    assert shown[: len(order)] == order


def test_retrieve_searches_again_where_the_model_asks_for_it(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    answer = 'At most 30 kg: `docs/limits.md:3`, "A parcel weighs 30 kg at most."'
    found = ask(
        openai_server,
        corpus,
        "retrieve",
        reply("SEARCH: parcel weighs at most"),
        reply(answer),
        question="What is the heaviest box that is taken?",
    )
    assert found.text == answer
    assert "3: A parcel weighs 30 kg" in openai_server.prompts[1]
    assert found.iterations == 2


def test_retrieve_says_that_a_search_failed_and_denies_nothing(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: ProcessRetriever, request: object) -> None:
        raise RetrievalError("the index process died")

    monkeypatch.setattr(ProcessRetriever, "retrieve", refuse)
    found = ask(openai_server, corpus, "retrieve", reply("SEARCH: boxes"), reply("Not known."))
    failed = "a search failed, so that nothing can be said of what the corpus does not hold"
    assert failed in found.warnings
    assert all(f"({failed})" in prompt for prompt in openai_server.prompts)


@pytest.mark.parametrize("question", ["What does retry.py return?", "How many lines has retry.py?"])
@pytest.mark.parametrize("strategy", ["retrieve", "rlm"])
def test_a_named_file_that_cannot_be_looked_up_ends_no_run(
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    monkeypatch: pytest.MonkeyPatch,
    strategy: str,
    question: str,
) -> None:
    async def refuse(self: ProcessRetriever, request: object) -> None:
        raise RetrievalError("the index process died")

    monkeypatch.setattr(ProcessRetriever, "retrieve", refuse)
    said = "Not known." if strategy == "retrieve" else "```repl\nFINAL(context[0]['path'])\n```"
    small = "qwen2.5-coder-1.5b"
    found = ask(openai_server, corpus, strategy, reply(said), question=question, model=small)
    assert found.text == ("Not known." if strategy == "retrieve" else "src/retry.py")
    assert any("a search failed" in each for each in found.warnings) == (strategy == "retrieve")


def test_retrieve_ends_a_model_that_only_searches_with_what_was_found(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(openai_server, corpus, "retrieve", *[reply("SEARCH: sheep")] * 4)
    assert found.iterations == 4
    assert "There is no further search." in openai_server.prompts[3]
    assert (found.stop_reason, found.found) == ("errors", False)
    assert "tells of sheep" in found.text


def test_an_answer_beside_one_search_too_many_stands(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    searches = [reply("SEARCH: sheep")] * 3
    found = ask(openai_server, corpus, "retrieve", *searches, reply("SEARCH: sheep\nIn a farm."))
    assert found.text == "In a farm."


def test_map_reduce_has_every_document_read_and_answers_from_the_notes(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def script(request: Received) -> Step | str:
        if request.messages[0]["role"] == "system":
            return GOOD
        return GOOD if "src/retry.py, lines" in request.prompt else "NOTHING"

    openai_server.script = script
    seen: list[Event] = []
    found = ask(
        openai_server,
        corpus,
        "map-reduce",
        question="Where is the delay computed?",
        on_event=seen.append,
    )
    assert found.citations[0].status == "verified"
    last = openai_server.prompts[-1]
    assert "[src/retry.py]" in last
    assert "farm" not in last
    assert found.coverage.delegated == 3
    assert [event.call for event in seen if isinstance(event, CallSent)] == [1, 2, 3, 4]


def test_map_reduce_that_a_limit_cut_short_says_so(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    openai_server.script = lambda request: GOOD
    found = ask(
        openai_server,
        corpus,
        "map-reduce",
        question="Where is the delay computed?",
        trace=tmp_path,
        limits=Limits(calls=2),
    )
    assert (found.text, found.stop_reason, found.found) == (GOOD, "budget_calls", True)
    assert "the limit of 2 calls" in (found.limit_detail or "")
    assert any("2 of 3 documents were not read whole" in warning for warning in found.warnings)
    (trace,) = tmp_path.glob("*.jsonl")
    again = rlm_rag.replay(trace, corpus)
    assert (again.text, again.stop_reason) == (GOOD, "budget_calls")
    before = len(openai_server.received)
    resumed = rlm_rag.resume(trace, corpus, limits=Limits(calls=20))
    assert (resumed.text, resumed.stop_reason) == (GOOD, "answered")
    assert len(openai_server.received) - before == 3


def test_map_reduce_that_could_read_nothing_shows_no_errors_for_passages(
    openai_server: OpenAiChatServer,
) -> None:
    openai_server.script = lambda request: GOOD
    with rlm_rag.load({f"{n}.md": "Of sheep and wool.\n" * 900 for n in range(2)}) as pages:
        found = ask(
            openai_server,
            pages,
            "map-reduce",
            question="What is told?",
            context_window=2_000,
            limits=Limits(tokens=40),
        )
    assert openai_server.received == []
    assert found.stop_reason == "budget_tokens"
    assert "passages" not in found.text
    assert found.citations == ()


def test_map_reduce_says_which_notes_no_reduction_made_fit(openai_server: OpenAiChatServer) -> None:
    def script(request: Received) -> Step | str:
        if request.messages[0]["role"] == "system":
            return "Sheep, it seems."
        if "partial answers" in request.prompt:
            return failed(400, "refused")
        return "A note of many words on sheep, wool and weather. " * 30

    openai_server.script = script
    with rlm_rag.load({f"{n:02}.md": f"Of sheep, part {n}." for n in range(12)}) as pages:
        found = ask(
            openai_server,
            pages,
            "map-reduce",
            question="What is told?",
            context_window=3_000,
        )
    assert found.text == "Sheep, it seems."
    (left_out,) = [each for each in found.warnings if "for want of room" in each]
    assert "refused" in left_out
    assert left_out in openai_server.prompts[-1]


def test_map_reduce_names_what_was_not_read(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def script(request: Received) -> Step | str:
        if request.messages[0]["role"] == "system":
            return "Partly."
        return failed(400, "no") if "docs/limits.md, lines" in request.prompt else "A note."

    openai_server.script = script
    found = ask(
        openai_server,
        corpus,
        "map-reduce",
        question="What is told?",
    )
    assert found.text == "Partly."
    assert any("docs/limits.md" in warning for warning in found.warnings)
    assert "docs/limits.md" in openai_server.prompts[-1]


@pytest.mark.parametrize("strategy", ["direct", "retrieve"])
def test_one_call_is_enough(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, strategy: str
) -> None:
    found = ask(openai_server, corpus, strategy, reply(GOOD), limits=Limits(calls=1))
    assert found.stop_reason == "answered"
    assert len(openai_server.received) == 1


def test_an_answer_that_is_written_as_a_block_is_taken_out_of_it(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(openai_server, corpus, "retrieve", reply(f"```repl\nFINAL({GOOD!r})\n```"))
    assert found.text == GOOD


def test_false_citations_are_mended_once_without_a_repl_too(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    wrong = 'In `src/retry.py:2`: "a quote that stands nowhere at all".'
    found = ask(openai_server, corpus, "retrieve", reply(wrong), reply(GOOD))
    assert found.citations[0].status == "verified"
    assert "word for word" in openai_server.prompts[1]


def test_a_limit_of_time_returns_the_passages(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    slow = reply(GOOD, delay_seconds=20)
    found = ask(openai_server, corpus, "retrieve", slow, limits=Limits(seconds=1.5))
    assert found.stop_reason == "timeout"
    assert "7:     delay_seconds" in found.text


def test_a_small_corpus_is_sent_whole_and_counted_in_code_where_it_is_larger(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    seen: list[Event] = []
    with rlm_rag.load({"a.md": "The port is 8431.\n"}) as small:
        ask(
            openai_server,
            small,
            "auto",
            reply("8431"),
            question="Which port?",
            on_event=seen.append,
        )
    many = 'FINAL(str(context[1]["content"].count("Paragraph")))'
    ask(
        openai_server,
        corpus,
        "auto",
        reply(f"```repl\n{many}\n```"),
        question="How many paragraphs are there?",
        on_event=seen.append,
    )
    started = [event.strategy for event in seen if isinstance(event, RunStarted)]
    assert started == ["direct", "rlm"]


def test_a_root_model_that_writes_no_code_still_gets_evidence(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def script(request: Received) -> Step | str:
        if "Passages that a search found" in request.messages[0]["content"]:
            return GOOD
        return "I would have to look."

    openai_server.script = script
    seen: list[Event] = []
    found = rlm_rag.ask(
        corpus,
        "Of `backoff_delay`, how many delays does it compute?",
        model="test",
        api_base=openai_server.api_base,
        trace=False,
        limits=Limits(errors=3),
        on_event=seen.append,
    )
    stepped = [event.prompts for event in seen if isinstance(event, SteppedDown)]
    assert stepped[0].startswith("small@")
    assert (found.text, found.stop_reason, found.found) == (GOOD, "answered", True)
    assert found.citations[0].status == "verified"
    assert any("did not drive its REPL" in warning for warning in found.warnings)


def test_a_provider_that_fails_in_the_middle_leaves_the_passages(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    found = ask(
        openai_server,
        corpus,
        "auto",
        reply("```repl\nprint(search('delay'))\n```"),
        *[failed(400, "refused")] * 3,
        question="Of `backoff_delay`, how many delays does it compute?",
        trace=tmp_path,
    )
    assert (found.stop_reason, found.found) == ("errors", False)
    assert "the root model failed" in found.text
    assert "7:     delay_seconds" in found.text
    (trace,) = tmp_path.glob("*.jsonl")
    assert rlm_rag.replay(trace, corpus).text == found.text


def test_simpler_prompts_come_after_two_turns_without_code(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    prose = reply("Let me think about that.")
    ask(
        openai_server,
        corpus,
        "rlm",
        prose,
        reply("```repl\nthis is no Python\n```"),
        reply("```repl\nFINAL('done')\n```"),
    )
    systems = [request.messages[0]["content"] for request in openai_server.received]
    assert systems[0] == systems[1]
    assert "Example. Question" in systems[2]


@pytest.mark.parametrize(
    "before",
    [
        [reply("FINAL(It is a delay.)")],
        [reply("```repl\n1 / 0\n```"), reply("FINAL(It is a delay.)")],
        [reply("```repl\nFINAL('There are 93 delays.')\n```")],
    ],
)
def test_simpler_prompts_come_after_one_answer_that_rests_on_nothing(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, before: list[Step]
) -> None:
    last = reply("```repl\nFINAL(search('delay')[0]['path'])\n```")
    found = ask(openai_server, corpus, "rlm", *before, last)
    systems = [request.messages[0]["content"] for request in openai_server.received]
    assert "Example. Question" not in systems[-2]
    assert "Example. Question" in systems[-1]
    assert found.stop_reason == "answered"


@pytest.mark.parametrize("profile", ["standard", "frontier"])
def test_a_profile_that_was_asked_for_stays(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, profile: str
) -> None:
    blind, prose = reply("FINAL(It is a delay.)"), reply("Let me think.")
    ask(openai_server, corpus, "rlm", prose, blind, blind, profile=profile)
    systems = {request.messages[0]["content"] for request in openai_server.received}
    assert len(systems) == 1


def test_a_prompt_of_ones_own_may_hold_any_braces(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    own = 'Reply with {"code": {0}} and {question} {unknown}. FINAL("x") ends it.'
    ask(openai_server, corpus, "rlm", reply("FINAL(done)"), system_prompt=own)
    assert openai_server.received[0].messages[0]["content"] == own


def test_the_trace_of_a_strategy_without_a_repl_is_whole(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    found = ask(openai_server, corpus, "retrieve", reply(GOOD), trace=tmp_path)
    assert found.trace is not None
    trace = read_trace(Path(found.trace))
    kinds = [record.event.type for record in trace.records]
    assert kinds[0] == "run"
    assert kinds[-1] == "answer"
    assert kinds.count("reply") == 1


def test_a_small_model_sees_how_records_begin_and_is_told_to_look(
    openai_server: OpenAiChatServer,
) -> None:
    rows = "".join(f"{n},{n % 7},Oslo\n" for n in range(900))
    with rlm_rag.load([{"path": "orders.csv", "content": "id,user,city\n" + rows}]) as records:
        found = ask(
            openai_server,
            records,
            "rlm",
            reply("Not in the corpus: `orders.csv`"),
            reply("FINAL(There are 12 of them.)"),
            reply("```repl\nFINAL(str(context[0]['content'].count('Oslo')))\n```"),
            question="How many orders are there that were not sent back?",
            model="qwen2.5-coder-1.5b",
        )
    shown = "records('orders.csv') is a list of dicts:\n  {'id': 0, 'user': 0, 'city': "
    assert shown in openai_server.prompts[0]
    assert "have not looked" in openai_server.prompts[1]
    assert "have not looked" in openai_server.prompts[2]
    assert found.text == "900"


@pytest.mark.parametrize(
    "blind",
    [
        "FINAL('Not in the corpus: ...')",
        "```repl\nFINAL('There are 198 of them.')\n```",
        "198 calls are left, then.",
    ],
)
def test_what_a_small_model_does_not_look_up_is_computed_by_the_lines_that_it_was_shown(
    openai_server: OpenAiChatServer, tmp_path: Path, blind: str
) -> None:
    rows = "".join(f"{n},{'Oslo' if n % 3 else 'Rome'}\n" for n in range(900))
    with rlm_rag.load({"orders.csv": "id,city\n" + rows}) as records:
        found = ask(
            openai_server,
            records,
            "rlm",
            reply(blind),
            question="How many orders are there of the city Rome?",
            model="qwen2.5-coder-0.5b",
            trace=tmp_path,
        )
        (trace,) = tmp_path.glob("*.jsonl")
        assert rlm_rag.replay(trace, records).text == found.text
    assert found.text == "300 of them. Computed in `orders.csv:1`."
    assert any("wrote no code" in warning for warning in found.warnings)


@pytest.mark.parametrize("asked", ["of the city Berlin", "of the city Rome in Berlin"])
def test_lines_that_leave_a_word_of_the_question_out_of_account_are_not_run_instead(
    openai_server: OpenAiChatServer, asked: str
) -> None:
    with rlm_rag.load({"orders.csv": "id,city\n" + "1,Rome\n" * 900}) as records:
        found = ask(
            openai_server,
            records,
            "rlm",
            *[reply("199")] * 3,
            reply("Not in the corpus."),
            question=f"How many orders are there {asked}?",
            model="qwen2.5-coder-0.5b",
            limits=Limits(errors=3),
        )
    assert found.text == "Not in the corpus."


def test_a_reply_of_a_small_model_that_finds_no_end_is_cut_and_its_lines_are_run(
    openai_server: OpenAiChatServer,
) -> None:
    endless = reply("and so on " * 200, finish_reason="length")
    with rlm_rag.load({"orders.csv": "id,city\n" + "1,Rome\n" * 900}) as records:
        found = ask(
            openai_server,
            records,
            "rlm",
            endless,
            question="How many orders are there?",
            model="qwen2.5-coder-0.5b",
        )
    assert openai_server.received[0].json["max_tokens"] == 768
    assert found.text == "900 of them. Computed in `orders.csv:1`."


def test_lines_that_a_small_model_was_shown_and_that_fail_are_shown_with_their_error(
    openai_server: OpenAiChatServer,
) -> None:
    rows = "".join(f"{n},Rome\n" for n in range(900)) + "900,\n"
    with rlm_rag.load({"orders.csv": "id,city\n" + rows}) as records:
        found = ask(
            openai_server,
            records,
            "rlm",
            reply("```repl\ndel rows; 1 / 0\n```"),
            reply("FINAL(There are 198.)"),
            reply('```repl\nFINAL(f"{len(records())} orders")\n```'),
            question="How many orders are there of the city Rome?",
            model="qwen2.5-coder-0.5b",
        )
    assert "NameError: name 'rows' is not defined" in openai_server.prompts[2]
    assert found.text == "901 orders"


def test_a_small_model_is_shown_how_a_text_without_records_begins(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    ask_small(
        openai_server,
        corpus,
        "How many functions are there?",
        "FINAL('3 of them: ' + context[0]['path'])",
    )
    assert "docs/farm.md begins:\n  Paragraph 0 tells of sheep" in openai_server.prompts[0]


def test_a_small_model_writes_one_block_a_turn_and_reads_the_question_again(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    imagined = (
        "```repl\nprint('x' * 9000, len(context))\n```\nYou see: 7\n\n```repl\nFINAL('seven')\n```"
    )
    found = ask(
        openai_server,
        corpus,
        "rlm",
        reply(imagined),
        reply("```repl\nFINAL(f'There are {len(context)}.')"),
        question="Of how many documents is this?",
        model="qwen2.5-coder-1.5b",
    )
    assert found.text == "There are 3."
    first, second = (request.json for request in openai_server.received[-2:])
    assert first["stop"] == second["stop"] == ["\n```\n"]
    assert "Only the first block was run" in openai_server.prompts[1]
    assert 2_000 < len(openai_server.prompts[1]) < 3_000
    end = "Question: Of how many documents is this?\nReply with the next block."
    assert all(prompt.endswith(end) for prompt in openai_server.prompts)


def test_retrieve_shows_the_best_lines_of_a_window_that_is_too_long(
    openai_server: OpenAiChatServer,
) -> None:
    long = "Sheep, wool and weather, and what the old shepherd said of all three of them. " * 6
    lines = [long] * 120
    lines[57] = "The code of the gate is 8431."
    with rlm_rag.load([{"path": "farm.md", "content": "\n".join(lines)}]) as farm:
        ask(
            openai_server,
            farm,
            "retrieve",
            reply("It is 8431."),
            question="What is the code of the gate?",
            model="qwen2.5-coder-1.5b",
        )
    assert "58: The code of the gate is 8431." in openai_server.prompts[0]


def test_a_small_model_that_repeats_itself_is_ended_and_answers_from_passages(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    same = "```repl\nprint(len(context))\n```"
    found = ask(
        openai_server,
        corpus,
        "auto",
        *[reply(same)] * 3,
        reply("It weighs 30 kg at most: `docs/limits.md:3`."),
        question="How many kg may a parcel weigh in total?",
        model="qwen2.5-coder-1.5b",
    )
    assert found.text.startswith("It weighs 30 kg")
    assert len(openai_server.received) == 4
    assert "=== docs/limits.md" in openai_server.prompts[3]
    system = openai_server.received[3].json["messages"][0]["content"]
    assert system.startswith("You answer a question from passages")


def test_a_small_model_is_shown_the_documents_that_the_question_is_about(
    openai_server: OpenAiChatServer,
) -> None:
    pages = {f"pages/{n:03}.md": f"# Part {n}\n\nOf sheep and wool.\n" for n in range(30)}
    pages["pages/017.md"] = (
        "# Part 17\n\nVisitors of the lighthouse of Lombaey:\n\n"
        "| year | visitors |\n|---|---|\n| 1995 | 6078 |\n| 1996 | 5576 |\n"
    )
    pages["notes/plan.txt"] = "Nothing to count.\n" * 500
    seen: list[Event] = []
    with rlm_rag.load(pages) as loaded:
        ask_small(
            openai_server,
            loaded,
            "How many visitors came to Lombaey in total?",
            'FINAL(sum(r["visitors"] for r in records("017.md")))',
            on_event=seen.append,
        )
        shown = openai_server.prompts[0]
        ask_small(
            openai_server, loaded, "How many lines has plan.txt in total?", "FINAL('1 line of it')"
        )
    row = "records('pages/017.md') is a list of dicts:\n  {'year': 1995, "
    assert row in shown
    assert {event.block for event in seen if isinstance(event, Retrieved)} == {0}
    assert "notes/plan.txt begins:" in openai_server.prompts[1]
    assert row not in openai_server.prompts[1]


def test_a_small_model_is_shown_the_definitions_of_the_file_that_a_question_names(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask_small(
        openai_server,
        corpus,
        "How many functions does retry.py define?",
        "FINAL(str(outline('src/retry.py').count('def ')))",
    )
    assert found.text == "1"
    assert "print(outline('src/retry.py')) shows:\n" in openai_server.prompts[0]
    begin = "Begin so:\n```repl\nn = outline('src/retry.py').count(\"def \")\n"
    assert begin in openai_server.prompts[0]


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("What does retry.py return?", "print(outline('src/retry.py')) shows:\n"),
        ("Who may write to limits.md?", "docs/limits.md begins:\n  # Limits"),
    ],
)
def test_a_small_model_is_shown_a_file_that_it_is_to_look_something_up_in(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, question: str, shown: str
) -> None:
    ask_small(openai_server, corpus, question, "FINAL('Seen: ' + context[0]['path'])")
    assert shown in openai_server.prompts[0]
    assert "Begin so" not in openai_server.prompts[0]


def test_a_small_model_that_is_to_look_up_what_is_in_no_named_file_is_shown_none(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    ask_small(openai_server, corpus, "Who returns?", "FINAL('Seen: ' + context[0]['path'])")
    assert all(text not in openai_server.prompts[0] for text in (") shows:", " begins:"))


def test_a_small_model_counts_those_whose_names_begin_as_asked(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask_small(
        openai_server,
        corpus,
        "How many functions of retry.py have names that start with 'back'?",
        "FINAL(str(outline('src/retry.py').count('def back')))",
    )
    assert found.text == "1"
    assert '.count("def back")\n' in openai_server.prompts[0]


@pytest.mark.parametrize(
    "question",
    [
        "How many functions of retry.py take more than three arguments?",
        "What is the longest function of retry.py?",
    ],
)
def test_a_small_model_is_told_no_count_that_does_not_answer(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, question: str
) -> None:
    ask_small(openai_server, corpus, question, "FINAL(str(outline('src/retry.py').count('def ')))")
    assert "print(outline('src/retry.py')) shows:\n" in openai_server.prompts[0]
    assert "Begin so" not in openai_server.prompts[0]


def test_a_small_model_counts_by_the_word_that_its_language_defines_with(
    openai_server: OpenAiChatServer,
) -> None:
    code = "package a\n\n" + "".join(f"func F{n}() int {{\n\treturn {n}\n}}\n\n" for n in range(9))
    with rlm_rag.load({"a.go": code}) as loaded:
        ask_small(
            openai_server,
            loaded,
            "How many functions does a.go define?",
            "FINAL(str(outline('a.go').count('func ')))",
        )
    assert "n = outline('a.go').count(\"func \")\n" in openai_server.prompts[0]


@pytest.mark.parametrize(
    ("question", "counted", "answer"),
    [
        ("How many test methods, whose names begin with test, are in test_a.py?", "def test", 40),
        ("How many classes does test_a.py define?", "class ", 20),
    ],
)
def test_a_small_model_is_shown_how_to_count_what_the_outline_before_it_leaves_out(
    openai_server: OpenAiChatServer, question: str, counted: str, answer: int
) -> None:
    code = "".join(
        f"class Case{n:02}(unittest.TestCase):\n"
        "    def test_first(self):\n        pass\n\n    def test_second(self):\n        pass\n\n"
        for n in range(20)
    )
    with rlm_rag.load({"test_a.py": code}) as loaded:
        found = ask(
            openai_server,
            loaded,
            "rlm",
            reply("199"),
            question=question,
            model="qwen2.5-coder-0.5b",
        )
    assert f"n = outline('test_a.py').count(\"{counted}\")\n" in openai_server.prompts[0]
    assert found.text == f"{answer} of them in `test_a.py:1`."


def test_files_of_records_that_lie_together_are_shown_to_a_small_model_as_one(
    openai_server: OpenAiChatServer,
) -> None:
    months = {f"sales/2025-{n:02}.csv": f"shop,price\nnorth,{n}\nsouth,1\n" for n in range(1, 13)}
    with rlm_rag.load({**months, "notes.md": FILLER * 3}) as sales:
        found = ask_small(
            openai_server, sales, "How many sales were there in total?", "FINAL(str(len(rows)))"
        )
    assert found.text == "24"
    shown = openai_server.prompts[0]
    assert "records('sales/*.csv') is a list of dicts, of 12 files together:" in shown
    assert shown.count("records('sales/") == 2
    assert "\nThis has run already: rows = records('sales/*.csv')\n" in shown


@pytest.mark.parametrize(("model", "profile"), [("kimi-k2", "frontier"), ("test", "standard")])
def test_what_helps_small_models_is_nowhere_in_what_others_are_sent(
    openai_server: OpenAiChatServer, model: str, profile: str
) -> None:
    with rlm_rag.load({"sales.csv": "shop,price\n" + "north,1\nsouth,2\n" * 40}) as sales:
        found = ask(
            openai_server,
            sales,
            "rlm",
            reply("```repl\nFINAL(str(len(records())))\n```"),
            question="How many sales of the shop north are in sales.csv?",
            model=model,
        )
    assert found.text == "80"
    (sent,) = (request.json for request in openai_server.received)
    system, first = (message["content"] for message in sent["messages"])
    assert system == load_profile(profile).system
    assert not re.search(r"records\(|\brows\b|Begin so|has run|Reply with the next", first)
    assert sent.keys() - {"max_tokens", "max_completion_tokens"} == {"model", "messages"}


def test_a_small_model_has_the_records_that_a_question_names_before_its_first_block(
    openai_server: OpenAiChatServer,
) -> None:
    with rlm_rag.load({"sales.csv": "shop,price\n" + "north,1\nsouth,2\n" * 40}) as sales:
        found = ask_small(
            openai_server,
            sales,
            "What is the total price of the shop South?",
            "FINAL(str(sum(r['price'] for r in rows)))",
        )
    assert found.text == "80"
    assert "if r.get('shop') == 'south']" in openai_server.prompts[0]


def test_of_a_question_longer_than_a_search_takes_the_beginning_is_looked_for(
    corpus: SearchableCorpus,
) -> None:
    question = "What does a parcel weigh at most? " + "Say it in words. " * 12_000
    assert len(question) > MAX_QUERY_CHARS
    found = rlm_rag.ask(corpus, question, model="offline", strategy="retrieve", trace=False)
    assert "docs/limits.md" in {citation.path for citation in found.citations}
    assert found.warnings == ()
