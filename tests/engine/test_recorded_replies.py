"""Replies that the 1.5B and the 0.5B sent, word for word, and what is made of each of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag import Answer, SearchableCorpus
from rlm_rag.engine.doubts import FOUND_NONE
from tests.servers.loopback import Step, reply
from tests.servers.openai_chat import OpenAiChatServer

RECORDED = {
    each["kind"]: each
    for each in json.loads(Path(__file__).with_name("recorded_replies.json").read_text("utf-8"))
}
ROWS = "".join(
    f"D{n:06},2023-01-{n % 28 + 1:02},{('Calder', 'Dornick', 'Eskham')[n % 3]},"
    f"{'returned' if n % 5 == 0 else 'delivered'},{n * 7 % 1000},as said\n"
    for n in range(1, 302)
)
DOCUMENTS = {
    "deliveries.csv": f"id,day,depot,status,amount,note\n{ROWS}",
    "tests/test_parser.py": "".join(f"def test_part_{n}():\n    pass\n\n" for n in range(12)),
    "pages/016.md": "# Gorsoldal\n\n"
    + "Of sheep.\n" * 7
    + "The store room's access code is 7731.\n",
    "src/decoder.py": "import re\n\n\ndef py_scanstring(s, end):\n    return s[end:]\n",
    "src/encoder.py": "class Encoder:\n    '''Extensible encoder for data structures.'''\n",
}


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    entries = [{"path": path, "content": text} for path, text in DOCUMENTS.items()]
    with rlm_rag.load(entries) as loaded:
        yield loaded


def ask_recorded(
    server: OpenAiChatServer, corpus: SearchableCorpus, kind: str, strategy: str, *then: str
) -> Answer:
    """Ask the recorded question of the recorded model, which sends its reply, then others."""
    recorded = RECORDED[kind]
    server.script = [reply(text) for text in (recorded["reply"], *then)]
    return rlm_rag.ask(
        corpus,
        recorded["question"],
        model=recorded["model"],
        api_base=server.api_base,
        strategy=strategy,
        trace=False,
    )


def ask_small(
    server: OpenAiChatServer,
    corpus: SearchableCorpus,
    question: str,
    *replies: str | Step,
    model: str = "qwen2.5-coder-1.5b",
) -> Answer:
    """Ask a small model, which sends these replies, without another strategy to take over."""
    server.script = [reply(each) if isinstance(each, str) else each for each in replies]
    return rlm_rag.ask(
        corpus,
        question,
        model=model,
        api_base=server.api_base,
        strategy="rlm",
        trace=False,
    )


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("code without its fence", "Dornick, with 81 deliveries. Counted in `deliveries.csv:1`."),
        (
            "Counter that it did not import",
            "The depot with the most deliveries is Dornick, with 81",
        ),
        ("a number before any look", "12 of them in `tests/test_parser.py:1`."),
        ("a denial before any look", "60 of them. Computed in `deliveries.csv:1`."),
    ],
)
def test_a_reply_that_once_failed_comes_to_the_answer_at_once(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, kind: str, answer: str
) -> None:
    found = ask_recorded(openai_server, corpus, kind, "rlm")
    assert found.text.startswith(answer)
    assert len(openai_server.received) == 1
    instead = any("wrote no code" in warning for warning in found.warnings)
    assert instead == kind.endswith("before any look")


@pytest.mark.parametrize(
    ("kind", "told", "answer"),
    [
        ("a final beside a block", "The FINAL written as text at line 1 ended nothing", "80"),
        ("sentences of the prompt in a block", "Only Python goes in the fence.", "241"),
        ("an output that it imagined", "Only Python goes in the fence.", "101"),
    ],
)
def test_a_reply_that_cannot_run_is_told_why_and_its_records_stay(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, kind: str, told: str, answer: str
) -> None:
    good = "```repl\nFINAL(str(len(rows)))\n```"
    found = ask_recorded(openai_server, corpus, kind, "rlm", good)
    assert f"Note: {told}" in openai_server.prompts[1]
    assert found.text == answer


def test_no_line_of_the_prompt_can_be_taken_for_the_beginning_of_a_block_that_was_copied(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    kind = "sentences of the prompt in a block"
    ask_recorded(openai_server, corpus, kind, "rlm", "```repl\nFINAL('as told: 7')\n```")
    copied = RECORDED[kind]["reply"].splitlines()[1]
    begin = copied.partition(" gives")[0]
    assert begin == "rows = records('deliveries.csv')"
    shown = openai_server.prompts[0].splitlines()
    assert "records('deliveries.csv') is a list of dicts:" in shown
    assert not any(line.startswith(begin) for line in shown)


def test_no_form_of_a_citation_is_shown_that_could_be_filled_in(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    ask_recorded(openai_server, corpus, "a form for a citation", "retrieve")
    system = openai_server.received[0].messages[0]["content"]
    assert "`conf/server.toml:12`" in system
    assert not re.search(r"\bpath:|:line\b", system)
    assert "10: The store room's access code is 7731." in openai_server.prompts[0]


def test_a_search_after_the_last_one_is_told_and_the_passages_stand(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    kind = "a search after the last one"
    found = ask_recorded(openai_server, corpus, kind, "retrieve", *[RECORDED[kind]["reply"]] * 3)
    assert "There is no further search." in openai_server.prompts[3]
    assert len(openai_server.received) == 4
    assert (found.stop_reason, found.found) == ("errors", False)
    assert "=== src/encoder.py" in found.text


AGAIN = "the same search again"
IN_WORDS = "It is defined in `src/decoder.py:4`."


def test_what_is_asked_is_looked_up_in_the_place_of_a_search_that_comes_again(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = ask_recorded(openai_server, corpus, AGAIN, "rlm", RECORDED[AGAIN]["reply"], IN_WORDS)
    assert (found.stop_reason, found.text) == ("answered", IN_WORDS)
    assert len(openai_server.received) == 3
    *_, sent, told = (message["content"] for message in openai_server.received[2].messages)
    assert "symbols(" in sent and 'search("py_scanstring"' not in sent
    assert "src/decoder.py 4 def py_scanstring(s, end)" in told
    assert told.endswith("No code.")


def test_words_answer_after_a_look_up_in_the_place_of_a_block_that_failed_again(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    replies = ["```repl\nprint(scan_all())\n```"] * 2 + [IN_WORDS]
    found = ask_small(openai_server, corpus, RECORDED[AGAIN]["question"], *replies)
    assert (found.stop_reason, found.text) == ("answered", IN_WORDS)
    assert len(openai_server.received) == 3


def test_a_model_that_repeats_itself_after_that_too_is_asked_for_what_it_has_seen(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    again = [RECORDED[AGAIN]["reply"]] * 2
    found = ask_recorded(openai_server, corpus, AGAIN, "rlm", *again, IN_WORDS)
    assert "Reply now with the best answer" in openai_server.prompts[-1]
    assert (found.stop_reason, found.text) == ("errors", IN_WORDS)
    assert found.found


def test_where_passages_take_over_nothing_is_looked_up_in_a_models_place(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    recorded = RECORDED[AGAIN]
    openai_server.script = [reply(recorded["reply"])] * 3 + [reply(IN_WORDS)]
    found = rlm_rag.ask(
        corpus,
        "How many files use the function py_scanstring, and which one defines it?",
        model=recorded["model"],
        api_base=openai_server.api_base,
        trace=False,
    )
    assert found.text == IN_WORDS
    sent = [message["content"] for message in openai_server.received[2].messages[2:]]
    assert [text.count('search("py_scanstring"') for text in sent] == [1, 0, 1, 0]
    assert "=== src/decoder.py" in openai_server.prompts[-1]


def test_nothing_is_looked_up_for_a_question_that_counts(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    replies = ["```repl\nprint(len(rows))\n```"] * 2 + ["```repl\nFINAL(str(len(rows)))\n```"]
    found = ask_small(openai_server, corpus, "How many deliveries are in deliveries.csv?", *replies)
    assert found.text == "301"
    assert "Answer from what you have seen: FINAL('301')" in openai_server.prompts[-1]


def test_a_run_in_which_lines_were_looked_up_replays_to_the_same_answer(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    recorded = RECORDED[AGAIN]
    openai_server.script = [reply(recorded["reply"])] * 2 + [reply(IN_WORDS)]
    found = rlm_rag.ask(
        corpus,
        recorded["question"],
        model=recorded["model"],
        api_base=openai_server.api_base,
        strategy="rlm",
        trace=tmp_path / "run.jsonl",
    )
    assert rlm_rag.replay(str(found.trace), corpus).text == found.text == IN_WORDS


def test_words_are_looked_for_where_the_question_has_no_name(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    replies = ['```repl\nprint(search("access code")[0]["path"])\n```'] * 2
    replies.append("The code is 7731: `pages/016.md:10`.")
    question = "What is the access code of the store room in Gorsoldal?"
    found = ask_small(openai_server, corpus, question, *replies)
    assert "10: The store room's access code is 7731." in openai_server.prompts[-1]
    assert (found.stop_reason, found.citations[0].status) == ("answered", "located")


def test_of_two_blocks_with_an_imagined_output_between_them_the_first_runs(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    kind = "two blocks, and the output between them"
    good = "```repl\nFINAL(str(len(records('deliveries.csv'))))\n```"
    found = ask_recorded(openai_server, corpus, kind, "rlm", good)
    assert "deliveries.csv 302 ['id,day,depot,status,amount,note'" in openai_server.prompts[1]
    assert "Note: Only the first block was run" in openai_server.prompts[1]
    assert "ValueError" not in openai_server.prompts[1]
    assert found.text == "301"


def test_who_splits_rows_at_every_comma_was_shown_them_as_dicts_and_gets_no_answer_so(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    good = "```repl\nFINAL(str(len(records('deliveries.csv'))))\n```"
    found = ask_recorded(openai_server, corpus, "rows split at every comma", "rlm", good)
    assert "records('deliveries.csv') is a list of dicts:" in openai_server.prompts[0]
    assert "{'id': 'D000001', 'day': '2023-01-02'" in openai_server.prompts[0]
    assert "NameError" in openai_server.prompts[1]
    assert found.text == "301"


def test_the_most_frequent_is_shown_to_be_counted_where_the_last_amount_was_taken(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    ask_recorded(openai_server, corpus, "the last amount for the most frequent", "rlm")
    shown = openai_server.prompts[0]
    bound = "rows = [r for r in records('deliveries.csv') if r.get('status') == 'delivered']"
    assert f"This has run already: {bound}" in shown
    assert "Counter(r['depot'] for r in rows).most_common(1)[0]" in shown


def test_of_all_records_that_a_small_model_prints_it_reads_the_ends_and_how_the_largest_is_found(
    openai_server: OpenAiChatServer,
) -> None:
    recorded = RECORDED["all records printed"]
    lines = (
        f"2023-01-02 DELIVERED depot={('Dornick', 'Calder')[n % 2]} id=D{n} amount={n * 37} note=x"
        for n in range(1, 2_000)
    )
    good = "```repl\nFINAL(str(max(r['amount'] for r in rows)))\n```"
    with rlm_rag.load({"deliveries.log": "\n".join(lines) + "\n"}) as log:
        found = ask_small(openai_server, log, recorded["question"], recorded["reply"], good)
    assert "best = max(rows, key=lambda r: r['amount'])" in openai_server.prompts[0]
    output = openai_server.prompts[1].partition("Output:")[2]
    assert "\n74\n" in output and "\n73926\n" in output
    assert len(output) < 3_000
    assert found.text == str(1_998 * 37)


def test_a_search_without_the_name_that_is_asked_for_is_made_with_it_where_it_comes_again(
    openai_server: OpenAiChatServer,
) -> None:
    recorded = RECORDED["a search without the name that is asked for"]
    said = "The access code of the store room in {} is {}.\n"
    pages = {f"pages/{n:03}.md": said.format(f"Denta{n}", n) for n in range(9)}
    pages["pages/099.md"] = "Many words of other things.\n" * 20 + said.format("Gorsoldal", 7731)
    replies = [recorded["reply"]] * 2 + ["It is 7731: `pages/099.md:21`."]
    with rlm_rag.load(pages) as corpus:
        found = ask_small(openai_server, corpus, recorded["question"], *replies)
    assert "7731" not in openai_server.prompts[1]
    assert "Gorsoldal is 7731" in openai_server.prompts[2]
    assert found.text == replies[-1]


def test_a_count_of_none_by_a_guessed_pattern_is_questioned(
    openai_server: OpenAiChatServer,
) -> None:
    recorded = RECORDED["none found by a condition that was guessed"]
    good = "```repl\nFINAL(str(len(rows)))\n```"
    with rlm_rag.load(
        {"deliveries.csv": "id,status\n" + "1,refused\n2,delivered\n" * 60}
    ) as corpus:
        found = ask_small(openai_server, corpus, recorded["question"], recorded["reply"], good)
    assert FOUND_NONE in openai_server.prompts[1]
    assert found.text == "60"


def test_the_line_that_finds_the_largest_is_shown_where_the_most_frequent_was_taken(
    openai_server: OpenAiChatServer,
) -> None:
    recorded = RECORDED["the most frequent for the largest"]
    lines = "".join(json.dumps({"id": n, "amount": n * 7 % 101}) + "\n" for n in range(1, 90))
    rows = "records('deliveries.jsonl')"
    good = f"```repl\nFINAL(str(max({rows}, key=lambda r: r['amount'])['id']))\n```"
    with rlm_rag.load({"deliveries.jsonl": lines}) as corpus:
        found = ask_small(openai_server, corpus, recorded["question"], recorded["reply"], good)
    assert "best = max(rows, key=lambda r: r['amount'])" in openai_server.prompts[0]
    # Nothing is above the amount that it guessed, so that its block fails.
    assert "IndexError" in openai_server.prompts[1]
    assert found.text == "72"


def test_files_of_months_are_shown_as_one_where_one_of_twelve_was_read(
    openai_server: OpenAiChatServer,
) -> None:
    recorded = RECORDED["one month of twelve"]
    months = {
        f"deliveries/2023-{month:02}.csv": "id,amount\n"
        + "".join(f"D{month}{n},{month * 50 + n}\n" for n in range(40))
        for month in range(1, 13)
    }
    rows = "records('deliveries/*.csv')"
    good = f"```repl\nFINAL(max({rows}, key=lambda r: r['amount'])['id'])\n```"
    with rlm_rag.load(months) as corpus:
        found = ask_small(openai_server, corpus, recorded["question"], recorded["reply"], good)
    assert (
        "records('deliveries/*.csv') is a list of dicts, of 12 files together:"
        in (openai_server.prompts[0])
    )
    assert found.text == "D1239"


LOG = "".join(
    f"2023-01-{n % 28 + 1:02} {('REFUSED', 'DELIVERED', 'LATE')[n % 3]} "
    f"depot={('Fenwold', 'Arnfeld')[n % 3 > 1]} id=D{n:06} amount={n * 37 % 1009} note=x\n"
    for n in range(301)
)


def test_who_takes_the_value_of_the_record_shown_is_told_which_one_the_question_names(
    openai_server: OpenAiChatServer,
) -> None:
    recorded = RECORDED["the value of the record shown for a condition"]
    held = "rows = [r for r in records('deliveries.log') if r.get('word2') == 'LATE']"
    good = f"```repl\n{held}\nFINAL(Counter(r['depot'] for r in rows).most_common(1)[0][0])\n```"
    with rlm_rag.load({"deliveries.log": LOG}) as log:
        found = ask_small(openai_server, log, recorded["question"], recorded["reply"], good)
    shown = openai_server.prompts[0]
    assert "'word2': 'REFUSED'" in shown and "'word2': 'DELIVERED'" in shown
    assert "names 'LATE', and your code went through records without it" in openai_server.prompts[1]
    assert held in openai_server.prompts[1]
    assert found.text == "Arnfeld"


def test_who_leaves_a_condition_out_is_told_so_once(openai_server: OpenAiChatServer) -> None:
    recorded = RECORDED["a condition left out"]
    months = {
        f"deliveries/2023-{month:02}.csv": "id,depot,status\n"
        + "".join(
            f"D{month}{n},{('Calder', 'Dornick')[n % 2]},{('delivered', 'lost')[n % 2]}\n"
            for n in range(41)
        )
        for month in range(1, 13)
    }
    with rlm_rag.load(months) as corpus:
        found = ask_small(openai_server, corpus, recorded["question"], *[recorded["reply"]] * 2)
    assert "names 'delivered', and your code went through" in openai_server.prompts[1]
    assert (
        "records('deliveries/*.csv') if r.get('status') == 'delivered'"
        in (openai_server.prompts[1])
    )
    assert (found.stop_reason, len(openai_server.received)) == ("answered", 2)


def test_code_that_was_taken_for_run_has_run(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    refused = {"deliveries.csv": "id,status\n" + "1,refused\n2,delivered\n3,late\n" * 60}
    final = "```repl\nFINAL(str(len(rows)))\n```"
    with rlm_rag.load(refused) as rows:
        question = RECORDED["code taken for run"]["question"]
        found = ask_small(
            openai_server, rows, question, RECORDED["code taken for run"]["reply"], final
        )
    assert "Output:\n=> 60" in openai_server.prompts[1]
    assert found.text == "60"
    largest = ask_recorded(openai_server, corpus, "who goes on from code taken for run", "rlm")
    assert largest.text == "The largest amount of a delivery of the depot Dornick is 994."


CONFIGURED = {
    "conf/server.toml": "[limits]\nmax-retry-count = 7\n",
    "src/app.py": "from conf import load\n\n\ndef start(config):\n    return load(config)\n",
    "src/policy.py": "class RetryPolicy:\n    most = 4\n",
}


@pytest.fixture(scope="module")
def configured() -> Iterator[SearchableCorpus]:
    with rlm_rag.load(CONFIGURED) as loaded:
        yield loaded


def test_what_is_invented_after_a_look_that_found_nothing_is_refused(
    openai_server: OpenAiChatServer, configured: SearchableCorpus
) -> None:
    invented = [RECORDED["an invention after it"]["reply"]] * 2
    found = ask_recorded(
        openai_server, configured, "a pattern that finds nothing", "rlm", *invented
    )
    assert "Your last look found nothing" in openai_server.prompts[2]
    assert found.stop_reason == "errors"
    assert found.limit_detail == "the root model answered though its last look found nothing"


def test_what_is_invented_in_an_f_string_is_not_taken_for_computed(
    openai_server: OpenAiChatServer, configured: SearchableCorpus
) -> None:
    recorded = RECORDED["an invention in an f-string"]["reply"]
    final = f"```repl{recorded.rpartition('```repl')[2]}"
    assert final.startswith('```repl\nFINAL(f"')
    kind = "a wrong pattern again and again"
    found = ask_recorded(openai_server, configured, kind, "rlm", final, final)
    assert "No output has shown 5" in openai_server.prompts[2]
    assert found.limit_detail == "the root model answered though its last look found nothing"


def test_another_function_is_named_for_a_wrong_pattern_that_comes_again(
    openai_server: OpenAiChatServer, configured: SearchableCorpus
) -> None:
    kind = "a wrong pattern again and again"
    again = RECORDED[kind]["reply"]
    other = again.replace('")["hits"]', '", ignore_case=True)["hits"]')
    assert other != again
    found = ask_recorded(
        openai_server,
        configured,
        kind,
        "rlm",
        other,
        "```repl\nprint(symbols('RetryPolicy'))\n```",
        "```repl\nFINAL('At most 4: `src/policy.py:1`.')\n```",
    )
    assert "has found nothing before. Use another function" in openai_server.prompts[2]
    assert (found.stop_reason, found.text) == ("answered", "At most 4: `src/policy.py:1`.")


def test_an_answer_after_a_block_that_raised_a_key_error_is_refused(
    openai_server: OpenAiChatServer, configured: SearchableCorpus
) -> None:
    looked = "```repl\nprint(len(context))\n```"
    raised = RECORDED["documents taken for a list"]["reply"]
    invented = "an answer after a KeyError"
    question = RECORDED[invented]["question"]
    answers = [RECORDED[invented]["reply"]] * 5
    found = ask_small(openai_server, configured, question, looked, raised, *answers)
    assert "KeyError: 0" in openai_server.prompts[2]
    assert "`context` is a dict of path to text" in openai_server.prompts[2]
    assert found.stop_reason == "errors"
    assert not found.found


def test_a_result_that_is_printed_again_is_named_as_the_answer(
    openai_server: OpenAiChatServer,
) -> None:
    kind = "a result printed again"
    rows = "id,status\n" + "1,returned\n2,delivered\n" * 60
    final = "```repl\nFINAL('60')\n```"
    with rlm_rag.load({"deliveries.csv": rows}) as corpus:
        again = RECORDED[kind]["reply"]
        found = ask_recorded(openai_server, corpus, kind, "rlm", again, final)
    assert "FINAL(f" in openai_server.prompts[0]
    assert "Answer from what you have seen: FINAL('60')" in openai_server.prompts[2]
    assert (found.stop_reason, found.text) == ("answered", "60")


def test_a_reply_without_an_end_is_cut_and_its_model_told_to_look(
    openai_server: OpenAiChatServer, configured: SearchableCorpus
) -> None:
    recorded = RECORDED["a reply without an end"]
    look = "```repl\nprint(len(grep_context('@')['hits']))\n```"
    none = "```repl\nFINAL('There are 0.')\n```"
    found = ask_small(
        openai_server,
        configured,
        recorded["question"],
        reply(recorded["reply"], finish_reason="length"),
        *(look, none, none),
        model=recorded["model"],
    )
    assert openai_server.received[0].json["max_tokens"] == 768
    assert "You have not looked at the documents yet" in openai_server.prompts[1]
    assert found.text == "There are 0."


def test_the_tag_of_a_fence_that_is_not_there_is_no_code(
    openai_server: OpenAiChatServer,
) -> None:
    kind = "the tag of a fence without the fence"
    page = {"a.md": "The keeper of the ferry at Tolm: e-mail address: a@b.example\n"}
    with rlm_rag.load(page) as corpus:
        found = ask_recorded(
            openai_server, corpus, kind, "rlm", "```repl\nFINAL('It is a@b.example.')\n```"
        )
    assert "a.md 1 The keeper of the ferry" in openai_server.prompts[1]
    assert "NameError" not in openai_server.prompts[1]
    assert found.text == "It is a@b.example."


def test_functions_are_counted_where_an_outline_of_classes_was_copied_out(
    openai_server: OpenAiChatServer,
) -> None:
    cases = "".join(
        f"class Case{n}(unittest.TestCase):\n    def test_part(self):\n        pass\n\n"
        "    def set_up(self):\n        pass\n\n\n"
        for n in range(40)
    )
    counting = (
        "```repl\nn = outline('test/test_dtrace.py').count(\"def test\")\n"
        'FINAL(f"{n} of them in `test/test_dtrace.py:1`.")'
    )
    with rlm_rag.load({"test/test_dtrace.py": f"import unittest\n\n\n{cases}"}) as corpus:
        found = ask_recorded(
            openai_server, corpus, "an outline of classes copied out", "rlm", counting
        )
    assert counting in openai_server.prompts[0]
    assert FOUND_NONE in openai_server.prompts[1]
    assert found.text == "40 of them in `test/test_dtrace.py:1`."
