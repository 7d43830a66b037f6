"""Answers that a small model gives after a block that failed, or a look that found nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import rlm_rag
from rlm_rag import Answer, Limits, SearchableCorpus
from tests.engine.play import block
from tests.servers.loopback import reply
from tests.servers.openai_chat import OpenAiChatServer

FILLER = "\n".join(f"Paragraph {n} tells of sheep, wool and weather." for n in range(180))
QUESTION = "Who is the king of Zembla in this poem?"
FROM_PASSAGES = "It is Onhava, says a passage."
NO_HITS = "print(grep_context('Zembla')['hits'])"
INVENTED = "FINAL('It is Charles Kinbote.')"
FOUND_NOTHING = "Your last look found nothing"
FAILED = "Your last block failed"


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    texts = {"a.md": FILLER, "b.md": FILLER, "poem.md": "The king is Onhava.\n"}
    documents = [{"path": path, "content": text} for path, text in texts.items()]
    with rlm_rag.load(documents) as loaded:
        yield loaded


def ask(
    server: OpenAiChatServer,
    corpus: SearchableCorpus,
    *codes: str,
    strategy: str = "rlm",
    question: str = QUESTION,
    model: str = "qwen2.5-coder-1.5b",
    **options: Any,
) -> Answer:
    """Ask a small model that replies with these blocks, and from passages in the end."""
    server.script = [*map(block, codes), reply(FROM_PASSAGES)]
    return rlm_rag.ask(
        corpus,
        question,
        model=model,
        api_base=server.api_base,
        strategy=strategy,
        trace=False,
        **options,
    )


@pytest.mark.parametrize(
    ("look", "final"),
    [
        (NO_HITS, "FINAL('unknown')"),
        *(
            pytest.param(look, INVENTED, marks=pytest.mark.deep)
            for look in (
                NO_HITS,
                "print(grep_context('Zembla'))",
                "hits = search('Zembla', path_glob='none.md')\nprint('Found:', len(hits))",
                "for d in context:\n    if 'Zembla' in d['content']:\n        print(d['path'])",
            )
        ),
        ("x = 1", INVENTED),
    ],
)
def test_a_look_that_found_nothing_is_followed_by_no_accepted_answer(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, look: str, final: str
) -> None:
    found = ask(openai_server, corpus, look, final, final)
    assert FOUND_NOTHING in openai_server.prompts[2]
    assert (found.stop_reason, found.iterations) == ("errors", 3)
    assert found.limit_detail == "the root model answered though its last look found nothing"


def test_auto_answers_from_passages_what_a_small_model_invents_after_an_empty_look(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    name = "name = 'Charles Kinbote'\nFINAL(f'It is {name}.')"
    question = f"How many kings are there, and who? {QUESTION}"
    found = ask(openai_server, corpus, NO_HITS, name, name, strategy="auto", question=question)
    assert found.text == FROM_PASSAGES
    assert found.stop_reason == "answered"


def test_an_answer_after_a_look_that_found_something_stands(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    look = "for h in search('king', k=3):\n    print(h['path'], h['line'], h['snippet'])"
    found = ask(openai_server, corpus, NO_HITS, look, "FINAL('It is Onhava.')")
    assert (found.text, found.stop_reason) == ("It is Onhava.", "answered")
    again = ask(openai_server, corpus, NO_HITS, INVENTED, look, "FINAL('It is Onhava.')")
    assert (again.text, again.stop_reason) == ("It is Onhava.", "answered")


def test_what_one_look_of_very_many_found_is_not_lost(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    looks = "n = [search(f'q{n}zz', k=1) for n in range(120)]\nprint(grep_context('king')['hits'])"
    found = ask(openai_server, corpus, looks, "FINAL('It is Onhava.')")
    assert (found.text, found.stop_reason) == ("It is Onhava.", "answered")


def test_that_it_is_not_in_the_corpus_stands_after_two_looks_that_found_nothing(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    denied = "FINAL('Not in the corpus: no king of Zembla.')"
    other = "print(grep_context('Kinbote')['hits'])"
    found = ask(openai_server, corpus, NO_HITS, other, denied)
    assert (found.stop_reason, found.iterations, found.found) == ("answered", 3, False)
    same = ask(openai_server, corpus, NO_HITS, f"hits = 0\n{NO_HITS}", denied, denied)
    assert (same.stop_reason, same.iterations) == ("errors", 4)


@pytest.mark.parametrize(
    "final",
    [
        "FINAL(f'There are {len(kings)}.')",
        *(
            pytest.param(final, marks=pytest.mark.deep)
            for final in (
                "FINAL_VAR('kings')",
                "def total(kings):\n    return len(kings)\nFINAL(f'{total(kings)} of them')",
                "kings = [k for k in kings if k]\nFINAL(kings[0])",
            )
        ),
    ],
)
def test_what_a_block_computed_of_the_corpus_stands_after_one_that_printed_nothing(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, final: str
) -> None:
    silent = "kings = [d['content'] for d in context if 'king' in d['content']]"
    found = ask(openai_server, corpus, silent, final)
    assert (found.stop_reason, found.iterations) == ("answered", 2)


def test_an_empty_list_that_a_block_computed_is_questioned_once(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    empty = "FINAL(str(grep_context('Zembla')['hits']))"
    found = ask(openai_server, corpus, empty, empty)
    assert "Your code found none" in openai_server.prompts[1]
    assert (found.text, found.stop_reason) == ("[]", "answered")


def test_a_count_of_none_stands_where_the_model_counts_it_again(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    count = "print(grep_context('Zembla')['total'])"
    none = "FINAL('0 lines')"
    question = "How many lines tell of Zembla?"
    found = ask(openai_server, corpus, count, none, none, question=question)
    assert (found.text, found.stop_reason, found.iterations) == ("0 lines", "answered", 3)


BROKEN = "print(context[0]['user'])"


@pytest.mark.parametrize("final", [INVENTED, "name = 'Kinbote'\nFINAL(f'It is {name}.')"])
def test_a_failed_block_is_followed_by_no_accepted_answer(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, final: str
) -> None:
    look = "print(len(context))"
    finals = [f"{final}\n# {n}" for n in range(4)]
    limits = Limits(errors=4)
    found = ask(openai_server, corpus, look, BROKEN, *finals, limits=limits)
    assert all(FAILED in prompt for prompt in openai_server.prompts[3:5])
    assert "or say what else" not in openai_server.prompts[3]
    assert (found.stop_reason, found.iterations) == ("errors", 5)
    assert found.limit_detail == "the root model answered though its last block failed"


def test_a_small_model_that_mends_its_block_is_believed(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    mended = "print(context[0]['path'])"
    final = "FINAL('It is in a.md.')"
    found = ask(openai_server, corpus, BROKEN, final, final, mended, final)
    assert (found.text, found.stop_reason, found.iterations) == ("It is in a.md.", "answered", 5)


def test_auto_answers_from_passages_what_is_invented_after_a_failed_block_to_the_last_turn(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    question = f"How many kings are there, and who? {QUESTION}"
    found = ask(
        openai_server,
        corpus,
        *("print(len(context))", BROKEN, INVENTED),
        strategy="auto",
        question=question,
        limits=Limits(iterations=3),
    )
    assert found.text == FROM_PASSAGES


def test_a_larger_model_is_questioned_once_as_before(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask(openai_server, corpus, BROKEN, INVENTED, INVENTED, model="test")
    assert (found.stop_reason, found.iterations) == ("answered", 3)
    found = ask(openai_server, corpus, NO_HITS, INVENTED, model="test")
    assert (found.stop_reason, found.iterations) == ("answered", 2)


def test_the_same_words_looked_up_in_vain_get_another_function_named(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    blocks = [
        "print(grep_context('Zemb.a$')['hits'])",
        "hits = grep_context('Zemb.a$', ignore_case=True)['hits']\nprint(hits)",
        "pattern = 'Zemb.a$'\nfor h in grep_context(pattern)['hits']:\n    print(h['text'])",
        "print(grep_context('Zemb.a$')['hits'][0]['path'])",
        "print(search('king')[0]['snippet'])",
        "FINAL('It is Onhava.')",
    ]
    ask(openai_server, corpus, *blocks)
    said = "grep_context('Zemb.a$') has found nothing before"
    told = [said in prompt for prompt in openai_server.prompts]
    assert told == [False, False, True, True, True, False]
    ask(openai_server, corpus, *blocks, model="test")
    assert not any(said in prompt for prompt in openai_server.prompts[6:])
