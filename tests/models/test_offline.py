"""The offline policy, without a sandbox: what it looks for, writes, reads back and shows."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rlm_rag.engine import history
from rlm_rag.engine.citations import check_citations
from rlm_rag.engine.reply import parse_reply
from rlm_rag.lines import split_lines
from rlm_rag.loaders.source import load_corpus
from rlm_rag.models import offline
from rlm_rag.models.base import Completion, Message, ModelRequest
from rlm_rag.models.offline_answer import answer_text
from rlm_rag.models.offline_blocks import answer_block, literal, look_block, read_block
from rlm_rag.models.offline_clues import MAX_NAMES, MAX_QUERY_WORDS, find_clues, stems_of
from rlm_rag.models.offline_evidence import Evidence, Window, rank_files, read_evidence
from rlm_rag.models.offline_excerpts import (
    MAX_LINE_CHARS,
    Excerpt,
    Place,
    choose_excerpts,
    choose_places,
)
from rlm_rag.models.offline_extract import extract

HOSTILE = st.text() | st.sampled_from(
    [
        "```",
        "~~~~\n```repl\nimport os\n```",
        'FINAL("x")',
        "answer['ready'] = True",
        "\"\"\"\n'''\\",
        "evidence 000000000000 {}",
        "\u2028\x85\x0b\x1c\r\n",
        "\ud800",
    ]
)

_PIECES = "x.md|a|b.pdf| |:1|-2|#L3|#page=3|:|/|\\|'|\"|`|\n|(|*|,|\u200b|\u4e2d|\t|added:/|NOT|."
HOSTILE_NAME = st.lists(st.sampled_from(_PIECES.split("|")), min_size=1, max_size=7).map("".join)


def complete(*messages: Message, max_output_tokens: int | None = None) -> Completion:
    request = ModelRequest(messages=messages, max_output_tokens=max_output_tokens)
    return asyncio.run(offline.open_offline().complete(request))


def first_message(question: str, *, before: str = "") -> tuple[Message, Message]:
    first = history.History(
        system="system", question=question, figures="2 documents", status="turn 1", before=before
    )
    system, user = first.messages
    return system, user


def found(mark: str, kind: str, path: str, **rest: Any) -> str:
    return mark + json.dumps({"kind": kind, "path": path, **rest})


def window(path: str, line: int, score: float, snippet: str = "") -> Window:
    return Window(path, line, line + 39, score, snippet)


def the_block(reply: str) -> str:
    parsed = parse_reply(reply)
    assert len(parsed.blocks) == 1
    assert parsed.blocks[0].tag == "repl"
    assert parsed.notes == ()
    return parsed.blocks[0].code


def test_the_headings_are_those_of_the_history() -> None:
    assert offline.BEFORE_HEADING == history.BEFORE_HEADING
    assert offline.QUESTION_HEADING == history.QUESTION_HEADING
    assert offline.CORPUS_HEADING == history.CORPUS_HEADING


def test_the_first_reply_is_one_block_that_searches_for_the_question() -> None:
    reply = complete(*first_message("Where is `PackedWriter.close` called?"))
    code = the_block(reply.text)
    assert "question = 'Where is \\x60PackedWriter.close\\x60 called?'" in code
    assert "('PackedWriter.close', 'close', 'PackedWriter.close')" in code
    assert (reply.model, reply.finish_reason) == ("offline", "stop")
    assert reply.usage.usd == 0.0
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (0, 0)


def test_the_same_messages_get_the_same_reply() -> None:
    messages = first_message("What does a_b do with `c` and d.py?")
    assert complete(*messages) == complete(*messages)


@given(HOSTILE)
def test_a_question_is_found_again_in_the_first_message(question: str) -> None:
    assert offline.question_of(first_message(question)) == question


@given(HOSTILE)
def test_the_question_of_a_conversation_is_found_behind_what_was_said_before_it(
    before: str,
) -> None:
    said = f"Question 0: What?\nYour answer: {before}\n\n# Question\nNo!\n\n# Corpus\nnone"
    assert offline.question_of(first_message("And who?", before=said)) == "And who?"


@given(HOSTILE)
def test_a_literal_is_one_ascii_line_that_means_the_text(text: str) -> None:
    code = literal(text)
    assert code.isascii()
    assert code.isprintable()
    assert not {"`", "~"} & set(code)
    assert eval(code) == text


@given(HOSTILE)
def test_no_question_breaks_the_searching_block(question: str) -> None:
    compile(the_block(look_block(find_clues(question), offline.mark_of(question))), "b", "exec")


@given(st.lists(HOSTILE, min_size=1, max_size=3))
def test_no_path_breaks_the_reading_block(paths: list[str]) -> None:
    places = [Place(path, 1, 40) for path in paths]
    compile(the_block(read_block(places, "evidence 0 ")), "b", "exec")


@given(HOSTILE)
def test_the_answering_block_sets_the_answer_word_for_word(text: str) -> None:
    namespace: dict[str, Any] = {"answer": {"content": "", "ready": False}}
    exec(the_block(answer_block(text)), namespace)
    assert namespace["answer"] == {"content": text, "ready": True}


def test_what_follows_a_line_that_fills_an_answer_is_read_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts = ["x = 1", "y" * 39_000, "def after():", "    pass"]

    def read(path: str, first: int, last: int) -> str:
        if first > len(texts):
            return f"(b.py has {len(texts)} lines)"
        shown = [f"{number}: {texts[number - 1]}" for number in range(first, min(last, 4) + 1)]
        return "\n".join(shown)[:20_000]

    mark = "evidence 0123456789ab "
    block = the_block(read_block([Place("b.py", 1, 40)], mark))
    exec(block, {"read": read, "outline": lambda path, budget_chars: ""})
    read_back = read_evidence([capsys.readouterr().out], mark).lines["b.py"]
    assert read_back == {1: "x = 1", 2: "y" * MAX_LINE_CHARS, 3: "def after():", 4: "    pass"}


def test_names_are_taken_from_backticks_quotes_and_shapes() -> None:
    question = (
        'How does `load` use readText, _private_name, MAX_SIZE, os.path and src/a-b.py in "a b c", '
        "and close() too, e.g. for HTTP?"
    )
    names = find_clues(question).names
    assert set(names) == {
        "load",
        "readText",
        "_private_name",
        "MAX_SIZE",
        "os.path",
        "src/a-b.py",
        "a b c",
        "close",
    }


def test_plain_words_are_no_names() -> None:
    assert (
        find_clues("What happens when it isn't there, i.e. gone? It's a well-known case.").names
        == ()
    )


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Where is `after` defined?", "after"),
        ("where is the function all defined", "all"),
        ("Where is after defined?", "after"),
        ("What does the method named Not do?", "Not"),
    ],
)
def test_a_definition_of_a_name_that_is_a_stop_word_is_shown(question: str, name: str) -> None:
    clues = find_clues(question)
    assert clues.names == (name,)
    mark = "evidence 0123456789ab "
    rows = [
        found(mark, "window", "a.md", query=0, line=1, end_line=9, score=12.0, snippet=""),
        found(mark, "definition", "b.py", name=name, line=12, head=""),
        found(mark, "lines", "b.py", line=10, lines=["x = 1", "", f"def {name}(n):", "    pass"]),
    ]
    evidence = read_evidence(["\n".join(rows)], mark)
    ranked = rank_files(evidence)
    assert next(iter(ranked)) == "b.py"
    (excerpt,) = choose_excerpts(evidence, ranked, clues.terms)
    assert excerpt.path == "b.py"
    assert f"def {name}(n):" in excerpt.text


@pytest.mark.parametrize(
    "question",
    ["What does the function do?", "Which class is defined here?", "the method that did it"],
)
def test_a_word_of_the_question_is_no_name_because_it_follows_one_of_code(question: str) -> None:
    assert find_clues(question).names == ()


def test_a_question_of_five_thousand_words_is_looked_for_by_its_start_and_end() -> None:
    words = [f"word{number}" for number in range(5000)]
    clues = find_clues(" ".join(words))
    looked_for = clues.query.split()
    assert len(looked_for) == MAX_QUERY_WORDS
    assert (looked_for[0], looked_for[-1]) == ("word0", "word4999")
    assert len(find_clues(" ".join(f"a_{word}" for word in words)).names) == MAX_NAMES


def test_a_question_that_is_one_endless_word_is_bounded() -> None:
    assert len(look_block(find_clues("\u6e2f" * 1_000_000), "evidence 0 ")) < 60_000


def test_words_of_one_stem_meet() -> None:
    for words in ("cancel cancels cancelled cancelling", "retry retries retried", "parse parsed"):
        stems = [stems_of(word) for word in words.split()]
        assert all(stem == stems[0] for stem in stems), words


@given(st.text(), st.text(), st.integers(1, 50))
def test_evidence_survives_whatever_else_was_printed(before: str, after: str, line: int) -> None:
    mark = "evidence 0123456789ab "
    row = found(
        mark, "window", "a`b.py", query=0, line=line, end_line=line, score=1.5, snippet=before
    )
    evidence = read_evidence([f"{before}\n{row}\n{after}"], mark)
    assert Window("a`b.py", line, line, 1.5, before) in evidence.windows


def test_lines_that_were_cut_are_left_out() -> None:
    mark = "evidence 0123456789ab "
    row = found(mark, "window", "a.py", query=0, line=1, end_line=2, score=1.0, snippet="x")
    cut = [row[:-9], row, mark + "[" * 100_000, mark + '{"kind": "window"}', mark + "3"]
    assert len(read_evidence(["\n".join(cut)], mark).windows) == 1


def test_nothing_is_denied_where_a_search_failed() -> None:
    mark = "m "
    looked = f'{mark}{{"kind": "looked", "path": ""}}'
    assert read_evidence([looked], mark).looked
    assert not read_evidence([f"{looked}\nsearch: Error: the index process died"], mark).looked


def test_agreement_outranks_one_good_window() -> None:
    evidence = Evidence(windows=[window("a.py", 1, 10.0), window("b.py", 1, 9.9)])
    assert list(rank_files(evidence)) == ["a.py", "b.py"]
    evidence.windows.append(window("b.py", 100, 9.0))
    assert list(rank_files(evidence)) == ["b.py", "a.py"]


def test_a_body_outranks_a_declaration() -> None:
    mark = "evidence 0123456789ab "
    heads = {
        "a.py": "def run(self):\n    raise NotImplementedError",
        "b.py": "def run(self):\n  x()",
    }
    rows = [
        found(mark, "definition", path, name="run_it", line=4, head=head)
        for path, head in heads.items()
    ]
    assert list(rank_files(read_evidence(["\n".join(rows)], mark))) == ["b.py", "a.py"]


def test_tests_count_for_less_unless_they_are_asked_for() -> None:
    evidence = Evidence(windows=[window("tests/a.py", 1, 10.0), window("a.py", 1, 9.0)])
    assert list(rank_files(evidence)) == ["a.py", "tests/a.py"]
    assert list(rank_files(evidence, of_tests=True)) == ["tests/a.py", "a.py"]


def test_inflected_words_are_searched_for_in_their_base_forms_too() -> None:
    base_query = find_clues("How was `readText` quoted?").base_query
    assert base_query == "How was `readText` quoted? quot quote"


def test_where_a_name_is_defined_outranks_where_its_words_stand() -> None:
    mark = "evidence 0123456789ab "
    rows = [
        found(mark, "window", "docs/a.md", query=0, line=1, end_line=9, score=12.0, snippet=""),
        found(mark, "window", "src/b.py", query=0, line=1, end_line=9, score=7.0, snippet=""),
        found(mark, "definition", "src/b.py", name="do_it", line=4, head=""),
    ]
    assert list(rank_files(read_evidence(["\n".join(rows)], mark))) == ["src/b.py", "docs/a.md"]


def test_a_passage_is_the_lines_that_hold_most_of_the_question() -> None:
    evidence = Evidence(windows=[window("a.py", 1, 1.0)])
    for number in range(1, 41):
        evidence.lines["a.py"][number] = f"nothing of interest on line {number}"
    evidence.lines["a.py"][20] = "the backoff grows"
    evidence.lines["a.py"][22] = "with every retry of the request"
    terms = find_clues("How does the backoff of a retried request grow?").terms
    (excerpt,) = choose_excerpts(evidence, {"a.py": 1.0}, terms)
    assert (excerpt.line, excerpt.end_line) == (18, 23)
    assert excerpt.text.splitlines()[2] == "the backoff grows"


def test_a_passage_never_ends_in_a_line_that_was_cut() -> None:
    evidence = Evidence(windows=[window("a.js", 1, 1.0)])
    evidence.lines["a.js"] = {1: "var retry;", 2: "x" * 300 + " retry backoff " + "y" * 85}
    (excerpt,) = choose_excerpts(evidence, {"a.js": 1.0}, find_clues("retry backoff").terms)
    assert excerpt.line == excerpt.end_line == 2
    assert excerpt.text in evidence.lines["a.js"][2]


def test_what_the_search_showed_stands_in_for_what_could_not_be_read() -> None:
    snippet = "12: import os\n14:     delay = base * 2 ** attempt"
    evidence = Evidence(windows=[window("a.py", 1, 1.0, snippet)])
    (excerpt,) = choose_excerpts(evidence, {"a.py": 1.0}, find_clues("delay of an attempt").terms)
    assert (excerpt.path, excerpt.line, excerpt.end_line) == ("a.py", 14, 14)
    assert excerpt.text == "    delay = base * 2 ** attempt"


def test_no_two_places_read_the_same_lines() -> None:
    evidence = Evidence(windows=[window("a.py", 1, 2.0), window("a.py", 2, 1.0)])
    assert choose_places(evidence, {"a.py": 1.0}) == [Place("a.py", 1, 40)]


@given(st.lists(HOSTILE, min_size=1, max_size=12), st.integers(0, 11))
def test_every_passage_that_is_shown_stands_where_the_answer_says(
    texts: list[str], telling: int
) -> None:
    texts.insert(telling % (len(texts) + 1), "the retry delay doubles each time")
    lines = split_lines("\n".join(texts))
    evidence = Evidence(windows=[window("a.py", 1, 1.0)])
    evidence.lines["a.py"] = {
        number: text[:MAX_LINE_CHARS] for number, text in enumerate(lines, 1) if number <= 40
    }
    clues = find_clues("When does the retry delay double?")
    excerpts = choose_excerpts(evidence, {"a.py": 1.0}, clues.terms)
    outlines = {"a.py": "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))}
    text = answer_text(clues, excerpts, ["a.py", "b.py"], looked=True, outlines=outlines)
    with load_corpus([{"path": "a.py", "content": "\n".join(texts)}]) as corpus:
        (citation,) = check_citations(text, corpus)
    assert (citation.path, citation.status, citation.verified) == ("a.py", "verified", True)
    assert "retry delay doubles" in (citation.quote or "")


def test_an_excerpt_is_told_by_what_it_stands_under() -> None:
    clues = find_clues("retry delay")
    excerpt = Excerpt("a.py", 12, 13, "delay = 2\nretry()", frozenset({"retry", "delay"}))
    wait = "10:   def wait(self, n: int = 3) -> None:  # Waits."
    outline = f"1: class A: [+3]\n  {wait}\n  40: def end(self):"
    text = answer_text(clues, [excerpt], [], looked=True, outlines={"a.py": outline})
    heading = "1. `a.py:12-13`, under def wait(self, n int = 3) -> None, on retry, delay:"
    assert heading in text.splitlines()


@pytest.mark.parametrize("path", ["a`b.py", "new\nline.py"])
def test_a_path_that_no_citation_can_spell_is_named_and_not_cited(path: str) -> None:
    excerpt = Excerpt(path, 1, 1, "the retry delay doubles", frozenset({"retry"}))
    text = answer_text(find_clues("retry"), [excerpt], [path, path], looked=True)
    with load_corpus([{"path": path, "content": excerpt.text}]) as corpus:
        assert check_citations(text, corpus) == ()
    assert f"1. {path!a}, lines 1, on retry:" in text


@given(st.lists(HOSTILE_NAME, min_size=2, max_size=5, unique=True))
@example(["x.md:1-2 y.md", "x.md"])
@example(["other.md", "x.md:1-2 y.md", "x.md"])
@example(["a:1:2:3:4", "a", "a:1"])
@example(["added:/x.md", "x.md"])
@example(["b.pdf#page=3 x`y", "x.md", "b.pdf#page=3"])
@example(["./x.md", "x.md"])
@example(["a/" * 600 + "x.md", "x.md"])
@example(["a/" * 3000 + "x.md", "x.md"])
def test_a_name_of_any_kind_is_cited_rightly_or_not_with_the_reason(names: list[str]) -> None:
    cited, *others = names
    line = "the retry delay doubles each time"
    excerpt = Excerpt(cited, 2, 2, line, frozenset({"retry"}))
    text = answer_text(find_clues("retry"), [excerpt], names, looked=True)
    documents = [{"path": name, "content": f"# title\n{line}\n"} for name in names]
    with load_corpus(documents) as corpus:
        citations = check_citations(text, corpus)
    of_lines = [(c.path, c.line, c.status) for c in citations if c.path == cited]
    assert {c.path for c in citations} - {cited} <= {name for name in others if "#page=" in name}
    assert of_lines == [(cited, 2, "verified")] or (
        not of_lines and "Not cited, since no citation can spell the path: " in text
    )


def test_finding_nothing_is_said_with_what_was_looked_for() -> None:
    text = answer_text(find_clues("Where is `the_thing`?"), [], [], looked=True)
    assert "nothing was found" in text
    assert "`the_thing`" in text


def test_a_search_that_failed_denies_nothing() -> None:
    messages = (
        *first_message("Where?"),
        Message("assistant", "..."),
        Message("user", "Output:\nTraceback: no"),
    )
    assert "did not come to its end" in the_block(complete(*messages).text)


def test_the_last_call_gets_plain_text() -> None:
    mark = offline.mark_of("Where is the retry delay?")
    row = found(
        mark,
        "window",
        "a.py",
        query=0,
        line=1,
        end_line=9,
        score=1.0,
        snippet="3: the retry delay grows",
    )
    last = "The run ends here: the limit of 1 turn was reached. No more code will run."
    reply = complete(
        *first_message("Where is the retry delay?"),
        Message("assistant", "..."),
        Message("user", f"Output:\n{row}\n\n{last}\n\nReply now."),
    )
    assert parse_reply(reply.text).blocks == ()
    assert "`a.py:3`" in reply.text
    assert "No language model was used" in reply.text


def test_a_repl_that_keeps_failing_gets_the_answer_as_text() -> None:
    turns = [Message("assistant", "..."), Message("user", "Output:\nTraceback")] * 3
    reply = complete(*first_message("Where?"), *turns)
    parsed = parse_reply(reply.text)
    assert parsed.blocks == ()
    assert "No language model was used" in (parsed.final or "")


def test_a_run_that_ends_before_its_first_turn_gets_no_block() -> None:
    ended = (
        "\n\nThis is turn 1 of 30.\n\nThe run ends here: a limit. No more code will run.\n\nReply."
    )
    system, first = first_message("Where?")
    assert parse_reply(complete(system, first).text).blocks
    reply = complete(system, replace(first, content=first.content + ended))
    assert "the search did not come to its end" in reply.text
    assert parse_reply(reply.text).blocks == ()


def test_a_sub_model_returns_the_sentences_that_fit_the_question() -> None:
    prompt = (
        "Here is a text.\nThe cat sleeps. The retry delay doubles each time! Dogs bark.\n"
        "How does the delay of a retry change?"
    )
    reply = complete(Message("user", prompt))
    assert "no language model was used" in reply.text.casefold()
    assert "The retry delay doubles each time!" in reply.text
    assert "Dogs bark." not in reply.text


def test_a_sub_model_keeps_to_its_output_limit() -> None:
    prompt = "What of cats? " + "A cat is a cat. " * 100
    reply = complete(Message("user", prompt), max_output_tokens=10)
    assert len(reply.text) == 40
    assert reply.finish_reason == "length"


@given(HOSTILE)
def test_an_extract_is_made_of_any_prompt(prompt: str) -> None:
    text, cut = extract(prompt)
    assert text.startswith("No language model was used")
    assert not cut


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("b\rc.py", "`b\\x0dc.py`"),
        ("t\tc.py", "`t\\x09c.py`"),
        ("b`c.py", "`b\\x60c.py`"),
        ("x.md:3", "`x.md\\x3a3`"),
        ("é.py", "`é.py`"),
    ],
)
def test_a_path_that_was_also_looked_at_is_shown_as_everywhere(path: str, shown: str) -> None:
    excerpt = Excerpt("a.md", 1, 1, "the retry delay doubles", frozenset({"retry"}))
    text = answer_text(find_clues("retry"), [excerpt], ["a.md", path], looked=True)
    assert f"Also looked at: {shown}." in text
    with load_corpus([{"path": path, "content": excerpt.text}]) as corpus:
        assert all(citation.path != path for citation in check_citations(text, corpus))


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who calls all?", "all"),
        ("Who calls `after`?", "after"),
        ("Which functions call first()?", None),
        ("Which functions call all()?", "all"),
        ("Where is all called?", "all"),
        ("Where is after used in the tests?", "after"),
        ("What are the callers of all?", "all"),
        ("Who calls the function all?", "all"),
        ("Who calls all of the functions?", None),
        ("Who uses it?", None),
        ("Where is this used?", None),
        ("Where is all defined?", None),
        ("Who calls PackedWriter?", None),
    ],
)
def test_a_stop_word_whose_calls_are_asked_for_is_a_name(question: str, name: str | None) -> None:
    clues = find_clues(question)
    assert clues.used == (() if name is None else (name,))
    assert name is None or name in clues.names


def test_calls_are_read_where_they_stand_and_nothing_else_is_shown() -> None:
    mark = "evidence 0123456789ab "
    lines = ["def render():", "    return store.all()", *[""] * 8, "def total():", "    s.all()"]
    rows = [
        found(mark, "window", "a.md", query=0, line=1, end_line=9, score=12.0, snippet=""),
        found(mark, "call", "b.py", name="all", line=2),
        found(mark, "call", "b.py", name="all", line=12),
        found(mark, "lines", "b.py", line=1, lines=lines),
    ]
    evidence = read_evidence(["\n".join(rows)], mark)
    ranked = rank_files(evidence)
    assert {place.path for place in choose_places(evidence, ranked)} == {"b.py"}
    excerpts = choose_excerpts(evidence, ranked, find_clues("Who calls all?").terms)
    assert all("all()" in excerpt.text for excerpt in excerpts)
    assert len(excerpts) == 2
