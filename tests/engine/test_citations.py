"""Cited places are found in an answer's text and checked against the corpus."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.corpus import Corpus
from rlm_rag.engine.citations import Citation, CitationCheck, check_citations
from rlm_rag.shown import printable_line

SOURCE = "\n".join(
    ["import time", "", "def retry_delay(attempt):", "    return min(60, 2 ** attempt)", ""]
    + [f"value_{number} = compute_something({number})" for number in range(6, 201)]
)
DOCUMENTS = [
    ("src/retry.py", SOURCE),
    ("my docs/some notes.txt", "first line\nthe second line of the notes\n"),
    ("notes.txt", "unlike the others\n"),
    ("report.pdf#page=3", "Penguins live in the far south.\nThey swim well.\n"),
    ("src/app/(group)/[id].tsx", "export default Page\n"),
    ("odd:10", "the path of this one ends in a number\n" * 9),
    ("<context>", "the needle in the hay stack is 42\n"),
    ("crlf.txt", "alpha beta gamma delta\r\nepsilon zeta eta theta\r\n"),
    ("empty.txt", ""),
    ("中文.md", "重试的延迟在这里计算\n别的内容\n"),
    ("added:/by_source.txt", "a file whose name pretends\n"),
]


@pytest.fixture(scope="module")
def corpus():
    with Corpus.from_documents(DOCUMENTS) as opened:
        yield opened


def one(text, corpus):
    (citation,) = check_citations(text, corpus)
    return citation


def places(text, corpus):
    return [(c.path, c.line, c.end_line) for c in check_citations(text, corpus)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("It is in src/retry.py:3.", ("src/retry.py", 3, 3)),
        ("It is in src/retry.py:3-4, there.", ("src/retry.py", 3, 4)),
        ("(src/retry.py:3–4)", ("src/retry.py", 3, 4)),
        ("`src/retry.py:3`", ("src/retry.py", 3, 3)),
        ("**src/retry.py:3**", ("src/retry.py", 3, 3)),
        ("[src/retry.py:3]", ("src/retry.py", 3, 3)),
        ("./src/retry.py:3", ("src/retry.py", 3, 3)),
        ("src/retry.py:L3-L4", ("src/retry.py", 3, 4)),
        ("src/retry.py#L3-L4", ("src/retry.py", 3, 4)),
        ("src/retry.py:3:12: a column", ("src/retry.py", 3, 3)),
        ("`my docs/some notes.txt:2`", ("my docs/some notes.txt", 2, 2)),
        ("`see my docs/some notes.txt:2`", ("my docs/some notes.txt", 2, 2)),
        ("in src/app/(group)/[id].tsx:1", ("src/app/(group)/[id].tsx", 1, 1)),
        ("(in src/app/(group)/[id].tsx:1)", ("src/app/(group)/[id].tsx", 1, 1)),
        ("odd:10:3", ("odd:10", 3, 3)),
        ("<context>:1", ("<context>", 1, 1)),
        ("report.pdf#page=3:2", ("report.pdf#page=3", 2, 2)),
        ("in report.pdf#page=3.", ("report.pdf#page=3", 1, 2)),
        ("`report.pdf#page=3`", ("report.pdf#page=3", 1, 2)),
        ("见 中文.md:1", ("中文.md", 1, 1)),
        ("见src/retry.py:3。", ("src/retry.py", 3, 3)),
    ],
)
def test_a_place_is_read_as_the_longest_path_that_exists(text, place, corpus):
    assert places(text, corpus) == [place]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("`x.md:1-2 y.md:3`", ("x.md:1-2 y.md", 3, 3)),
        ("`x.md:1-2`, y.md:3", ("x.md", 1, 2)),
        ("It is in `a`b.md:1`.", ("a`b.md", 1, 1)),
        ("It is in a`b.md:1.", ("a`b.md", 1, 1)),
        (r"It is in `new\nline.md:2`.", ("new\nline.md", 2, 2)),
        (r"It is in `new\x0aline.md:2`.", ("new\nline.md", 2, 2)),
        (r"It is in `back\nslash.md:2`.", (r"back\nslash.md", 2, 2)),
        ("It is in `my report.pdf#page=3`.", ("docs/my report.pdf#page=3", 1, 3)),
        (f"It is in {'deep/' * 200}x.md:2.", ("deep/" * 200 + "x.md", 2, 2)),
    ],
)
def test_a_name_that_reads_like_something_else_is_the_document_of_that_name(text, place):
    names = ["x.md", "x.md:1-2 y.md", "a`b.md", "b.md", "new\nline.md", "back\nslash.md"]
    names += ["docs/my report.pdf#page=3", r"back\nslash.md", "deep/" * 200 + "x.md"]
    with Corpus.from_documents((name, "one\ntwo\nthree\n") for name in names) as corpus:
        assert places(text, corpus)[0] == place
        assert all(c.status == "located" or c.path == "y.md" for c in check_citations(text, corpus))


@pytest.mark.parametrize(
    "text",
    [
        "at 10:30 or 12:30:45",
        "http://localhost:8080/a.py:3",
        "localhost:80, 127.0.0.1:8000, example.com:443",
        "std::vector:12",
        "ratio 3:1, note:5",
        "see report.pdf",
        "",
    ],
)
def test_what_is_no_place_is_left_alone(text, corpus):
    assert check_citations(text, corpus) == ()


@pytest.mark.parametrize(
    "text",
    [
        "retry_delay is in src/missing.py:3",
        "retry_delay is in missing.py:3-9",
        "retry_delay is in src/retry.py:201",
        "retry_delay is in src/retry.py:0",
        "retry_delay is in src/retry.py:4-3",
        "penguins: report.pdf#page=4",
        "nothing is in empty.txt:1",
        "it pretends: added:/by_source.txt:1",
        "it was added: added:/note.md:1",
    ],
)
def test_a_place_that_does_not_exist_is_false(text, corpus):
    citation = one(text, corpus)
    assert (citation.status, citation.verified) == ("false", False)


def test_a_place_without_a_quote_is_located(corpus):
    citation = one("The retry_delay doubles with each attempt (src/retry.py:3-4).", corpus)
    assert citation == Citation("src/retry.py", 3, 4, None, "located", True)


@pytest.mark.parametrize(
    ("text", "verified"),
    [
        ("The delay is computed by src/retry.py:3.", True),
        ("Penguins live there, see src/retry.py:3.", False),
        ("src/retry.py:3", False),
        ("Where is the and of src/retry.py:3?", False),
        ("The attempt counts. (src/retry.py:3)", True),
        ("The attempt counts.\n\n- src/retry.py:3", False),
        ("重试的延迟：中文.md:1", True),
        ("别的东西：中文.md:1", False),
    ],
)
def test_a_located_place_is_verified_by_a_term_of_its_sentence(text, verified, corpus):
    citation = one(text, corpus)
    assert (citation.status, citation.verified) == ("located", verified)


@pytest.mark.parametrize(
    "text",
    [
        'src/retry.py:3: "def retry_delay(attempt):"',
        'src/retry.py:3 says "def retry_delay(attempt):"',
        "`src/retry.py:3` — `def retry_delay(attempt):`",
        '"def retry_delay(attempt):" (src/retry.py:3)',
        "“def  retry_delay(attempt):” in `src/retry.py:3`",
        "`def retry_delay(attempt):` at src/retry.py:3",
        "src/retry.py:3\n> def retry_delay(attempt):\n",
        "> def retry_delay(attempt):\n\n— src/retry.py:3",
        "As src/retry.py:3 shows:\n\n```python\ndef retry_delay(attempt):\n```\n",
        "src/retry.py:3\n```\n3: def retry_delay(attempt):\n```",
        "src/retry.py:3 `def retry_ ... lay(attempt):`",
    ],
)
def test_a_quote_that_stands_there_verifies(text, corpus):
    citation = one(text, corpus)
    assert (citation.path, citation.line, citation.end_line) == ("src/retry.py", 3, 3)
    assert (citation.status, citation.verified) == ("verified", True)
    assert citation.quote


def test_a_quote_over_several_lines_is_matched_with_whitespace_folded(corpus):
    text = "src/retry.py:3-4:\n```\ndef retry_delay(attempt):\n  return min(60, 2 ** attempt)\n```"
    assert one(text, corpus).status == "verified"
    text = 'crlf.txt:1-2 "beta gamma delta epsilon zeta"'
    assert one(text, corpus).status == "verified"


def test_a_near_miss_is_moved_to_where_the_quote_stands(corpus):
    citation = one('"value_50 = compute_something(50)" (src/retry.py:44-45)', corpus)
    assert (citation.line, citation.end_line, citation.status) == (50, 50, "verified")
    citation = one('"value_50 = compute_something(50)" (src/retry.py:900)', corpus)
    assert (citation.line, citation.end_line, citation.status) == (50, 50, "verified")


def test_a_quote_that_stands_twice_moves_to_the_nearer(corpus):
    citation = one('"compute_something(1 ... value_" (src/retry.py:120)', corpus)
    assert citation.status == "verified"
    assert abs(citation.line - 120) <= 1


def test_a_short_whole_line_verifies_and_moves_only_nearby(corpus):
    assert one("`import time` in src/retry.py:1", corpus).status == "verified"
    moved = one("`import time` in src/retry.py:5", corpus)
    assert (moved.line, moved.status) == (1, "verified")
    assert one("`import time` in src/retry.py:150", corpus).status == "located"


SHORT_LINES = [("pair.py", "x = 1\ny = 2\n\nz = 3\n\ndef f(a):\n    return a\n")]


@pytest.mark.parametrize(
    "text",
    [
        "pair.py:1-2:\n```\nx = 1\ny = 2\n```",
        "pair.py:1-2\n> x = 1\n> y = 2",
        'It says "x = 1 y = 2" (pair.py:1-2).',
        'It says "x = 1\ny = 2" (pair.py:1-2).',
        "`x = 1\ny = 2` in pair.py:1-2",
        "pair.py:3-4:\n```\nx = 1\ny = 2\n```",
    ],
)
def test_lines_quoted_whole_verify_however_short_they_are(text):
    with Corpus.from_documents(SHORT_LINES) as opened:
        citation = one(text, opened)
    assert (citation.line, citation.end_line, citation.status) == (1, 2, "verified")


@pytest.mark.parametrize("text", ['"= 1\ny = 2" (pair.py:1-2)', '"x = 1\ny =" (pair.py:1-2)'])
def test_parts_of_short_lines_are_no_proof(text):
    with Corpus.from_documents(SHORT_LINES) as opened:
        assert one(text, opened).status == "located"


def test_a_quote_in_marks_may_go_over_the_end_of_a_line(corpus):
    quote = "def retry_delay(attempt):\n    return min(60, 2 ** attempt)"
    for marked in (f'"{quote}"', f"`{quote}`"):
        citation = one(f"It is {marked} (src/retry.py:3-4).", corpus)
        assert (citation.line, citation.end_line, citation.status) == (3, 4, "verified")


def test_what_stands_between_the_marks_of_two_quotes_is_none(corpus):
    text = 'The screen of 5" is one\nthing, that of 6" another (src/retry.py:3-4).'
    assert one(text, corpus).status == "located"


def test_a_short_quote_is_no_proof(corpus):
    citation = one("`attempt` in src/retry.py:3", corpus)
    assert (citation.status, citation.verified) == ("located", True)


def test_a_few_words_that_stand_nowhere_make_the_place_false(corpus):
    invented = one('It starts with "import retry as r" (src/retry.py:1).', corpus)
    assert (invented.status, invented.quote) == ("false", "import retry as r")
    for quote in ('"Min(60, 2 **"', "`retry.delay`", '"retry policy"', '"return ... attempt)"'):
        assert one(f"{quote} (src/retry.py:4)", corpus).status == "located", quote


@pytest.mark.parametrize(
    "text",
    [
        'It is "value_50 = compute_something(50)." See src/retry.py:50.',
        'In `src/retry.py:48`: "value_50 = compute_something(50),"',
        'It starts by "import time," in src/retry.py:1.',
    ],
)
def test_the_mark_of_a_sentence_within_the_quotation_is_not_part_of_it(text, corpus):
    assert one(text, corpus).status == "verified"


def test_a_quote_that_stands_nowhere_makes_the_place_false(corpus):
    citation = one('src/retry.py:3: "def retry_delay(attempt, jitter):"', corpus)
    assert (citation.status, citation.verified) == ("false", False)
    assert citation.quote == "def retry_delay(attempt, jitter):"


def test_more_than_sixty_lines_are_located_at_most(corpus):
    quote = '"value_50 = compute_something(50)"'
    assert one(f"{quote} (src/retry.py:6-65)", corpus).status == "verified"
    assert one(f"{quote} (src/retry.py:6-66)", corpus).status == "located"


def test_each_quote_goes_with_its_own_place(corpus):
    first, second = check_citations(
        'src/retry.py:3: "def retry_delay(attempt):", '
        'src/retry.py:50: "value_50 = compute_something(50)"',
        corpus,
    )
    assert (first.status, second.status) == ("verified", "verified")
    first, second = check_citations(
        '"def retry_delay(attempt):" (src/retry.py:3), "it was never written" (src/retry.py:50)',
        corpus,
    )
    assert (first.status, second.status) == ("verified", "false")


def test_a_quoted_path_is_not_a_quote(corpus):
    assert one("In `my docs/some notes.txt` (`my docs/some notes.txt:2`)", corpus).quote is None


def test_citations_come_in_order_and_once(corpus):
    text = "value_9 src/retry.py:9, value_8 src/retry.py:8, value_9 src/retry.py:9."
    assert places(text, corpus) == [("src/retry.py", 9, 9), ("src/retry.py", 8, 8)]


@settings(deadline=None, max_examples=60)
@given(first=st.integers(6, 190), more=st.integers(0, 9), off=st.integers(-50, 50))
def test_lines_quoted_in_full_are_found_wherever_they_were_said_to_be(corpus, first, more, off):
    lines = SOURCE.split("\n")[first - 1 : first + more]
    said = max(1, first + off)
    text = f"See `src/retry.py:{said}-{said + more}`:\n```\n" + "\n".join(lines) + "\n```\n"
    citation = one(text, corpus)
    assert (citation.line, citation.end_line) == (first, first + more)
    assert (citation.status, citation.verified) == ("verified", True)


@settings(deadline=None, max_examples=200)
@given(st.text(st.sampled_from("src/retry.py:3-4`\"'>#page= \n(…)“”L0"), max_size=120))
def test_no_answer_raises_and_no_verdict_is_of_lines_that_do_not_exist(corpus, text):
    for citation in check_citations(text, corpus):
        if citation.status != "false":
            assert 1 <= citation.line <= citation.end_line <= corpus[citation.path].line_count


@pytest.mark.parametrize(
    "text",
    [
        "src/retry.py:1 " * 60_000,
        "missing.py:1 " * 70_000,
        'src/retry.py:1 "import time" ' * 30_000,
        ":1" * 500_000,
        "((((" * 250_000 + ":1",
        "“" * 1_000_000,
        '"x"' * 330_000,
        "> x\n" * 250_000,
        "#page=1" * 140_000,
        "``x" * 300_000,
        "retry.py:1" * 100_000,
    ],
    ids=range(11),
)
def test_a_hostile_megabyte_is_checked_in_bounded_time(text, corpus):
    started = time.process_time()
    check_citations(text, corpus)
    assert time.process_time() - started < 4


def test_the_number_of_documents_does_not_matter():
    documents = ((f"src/package_{number}/module.py", "def f(): pass\n") for number in range(20_000))
    with Corpus.from_documents(documents) as corpus:
        started = time.process_time()
        text = "def f is in src/package_77/module.py:1 and src/package_78/module.py:2. " * 20
        assert {c.status for c in check_citations(text, corpus)} == {"located", "false"}
        assert time.process_time() - started < 0.5


@pytest.mark.parametrize("digits", ["9" * 10, "9" * 26, "9" * 5000, "0" * 5000 + "7" * 11])
def test_a_line_beyond_any_document_is_false_and_not_left_out(digits, corpus):
    for text in (f"crlf.txt:{digits}", f"`crlf.txt:1-{digits}`", f"nowhere.py:{digits}"):
        citation = one(f"The alpha is in {text}.", corpus)
        assert citation.status == "false"
        assert not citation.verified
        assert 10**9 < citation.end_line < 2**53
    assert one(f"The alpha is in crlf.txt:{'0' * 5000}1.", corpus).line == 1


def test_an_answer_that_was_checked_is_not_checked_again(corpus):
    check, text = CitationCheck(corpus), "It stands in `src/retry.py:1`."
    found = check(text)
    assert found == check_citations(text, corpus)
    assert check(text) is found


@pytest.mark.parametrize(
    "said",
    [
        "A crate counts as lost (`{}:1`).",
        "A crate counts as lost ({}:1).",
        "A crate counts as lost, ``{}:1``; `b.md:2` has no more.",
        "`b.md:2` and {}:1 say that a crate counts as lost.",
        "- **{}:1**",
    ],
)
@pytest.mark.parametrize(
    "path", ["tick `a` b.md", "docs/a` b.md", "`x` b.md", "new\nline `b` c.md"]
)
def test_a_path_with_marks_of_code_and_spaces_is_read_whole(path: str, said: str) -> None:
    texts = [(path, "A crate counts as lost\n"), ("b.md", "\n\n"), ("c.md", "\n")]
    with Corpus.from_documents(texts) as corpus:
        found = check_citations(said.format(printable_line(path)), corpus)
    expected = {(path, 1, "located")} | ({("b.md", 2, "located")} if "b.md:2" in said else set())
    assert {(c.path, c.line, c.status) for c in found} == expected
