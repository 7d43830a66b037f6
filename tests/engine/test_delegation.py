"""Reading handed to sub-models, through whole runs: files, long texts, maps and reductions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise

import pytest

import rlm_rag
from rlm_rag import Limits, SearchableCorpus
from rlm_rag.engine.subcalls import LeafReply
from rlm_rag.models.base import Usage
from rlm_rag.models.tokens import count_tokens
from rlm_rag.sandbox.inside.reply import NO_USAGE
from tests.engine.play import block, leaves, play, told_root
from tests.servers.loopback import Step, failed, reply
from tests.servers.openai_chat import OpenAiChatServer

LONG = "".join(
    f"def function_{n}(value):\n    return value + {n}  # adds {n} to it\n\n\n" for n in range(900)
)
RANGE = re.compile(r"lines (\d+)-(\d+) of (\d+)")


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    documents = {
        "src/long.py": LONG,
        "src/short.py": "def short():\n    return 1\n",
        "docs/a.md": "# A\n\nAlpha.\n",
        "docs/b.md": "# B\n\nBeta.\n",
        "docs/empty.md": "",
    }
    entries = [{"path": path, "content": text} for path, text in documents.items()]
    with rlm_rag.load(entries) as loaded:
        yield loaded


def range_of(prompt: str) -> tuple[int, int, int]:
    """First and last line in a prompt, and how many the file has."""
    found = RANGE.search(prompt)
    assert found is not None
    first, last, total = map(int, found.groups())
    return first, last, total


def shown(server: OpenAiChatServer) -> str:
    """What the root's second turn was told of its first block."""
    return told_root(server)[1]


def test_files_are_mapped_by_paths_globs_and_entries(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block(
                "entry = next(e for e in context if e['path'] == 'src/short.py')\n"
                "rs = map_files(['docs/*.md', 'b.md', entry, {'path': 'mine', 'content': 'Mine'},"
                " 'no/such.txt'], 'Sum up.')\n"
                "for p, r in rs.items(): print(p, r.ok, r)"
            ),
            block("FINAL('done')"),
        ],
        leaf=lambda prompt: "read " + prompt.split()[2].rstrip(","),
    )
    told = shown(openai_server)
    for path in ("docs/a.md", "docs/b.md", "src/short.py", "mine"):
        assert f"{path} True read {path}" in told
    assert "docs/empty.md False Error: docs/empty.md is empty" in told
    assert "no/such.txt False Error: no document has the path 'no/such.txt'" in told
    assert sorted(leaves(openai_server))[0].startswith("Below is docs/a.md, lines 1-3 of 3.")
    assert all(prompt.endswith("Sum up.") for prompt in leaves(openai_server))
    # Two turns and four files: what is empty or unknown was not sent.
    assert found.usage.calls == 6
    assert found.coverage.delegated == 3


def test_a_large_file_is_split_at_definitions_sent_at_once_and_put_together(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block(
                "r = map_files(['src/long.py'], 'Sum up.')['src/long.py']\n"
                "print(r.ok, r.truncated, r.usage['input_tokens'], r.model)\nprint(r)"
            ),
            block("FINAL('done')"),
        ],
        leaf=lambda prompt: reply("part", delay_seconds=0.3),
    )
    ranges = sorted(map(range_of, leaves(openai_server)))
    assert len(ranges) >= 4
    assert openai_server.most_in_flight == len(ranges)
    assert ranges[0][0] == 1
    assert ranges[-1][1:] == (3600, 3600)
    for (_, last, _), (first, _, _) in pairwise(ranges):
        assert first == last + 1
        assert first % 4 == 1
    assert max(count_tokens(prompt) for prompt in leaves(openai_server)) <= 8192
    told = shown(openai_server)
    assert f"True False {11 * len(ranges)} test" in told
    places = [told.index(f"[src/long.py:{first}-{last}]\npart") for first, last, _ in ranges]
    assert places == sorted(places)
    assert found.coverage.delegated_lines == 3600


def test_a_file_of_which_a_part_failed_is_not_ok_and_keeps_the_others(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def leaf(prompt: str) -> Step:
        return failed(400, "not this one") if "lines 1-" in prompt else reply("part")

    play(
        openai_server,
        corpus,
        root=[
            block("r = map_files('src/long.py', 'Sum up.')['src/long.py']\nprint(r.ok)\nprint(r)"),
            block("FINAL('done')"),
        ],
        leaf=leaf,
    )
    told = shown(openai_server)
    assert "False" in told
    assert re.search(r"Error: 1 of \d parts of src/long.py failed; lines 1-\d+: .*not this", told)
    assert "]\npart" in told


def test_a_chunk_that_the_provider_finds_too_long_is_halved(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def leaf(prompt: str) -> Step:
        if count_tokens(prompt) > 4000:
            return failed(400, "maximum context length exceeded", code="context_length_exceeded")
        return reply("half")

    play(
        openai_server,
        corpus,
        root=[
            block("rs = llm_query_chunked('src/long.py', 'Sum up.')\nprint([r.ok for r in rs])"),
            block("FINAL(len(rs))"),
        ],
        leaf=leaf,
    )
    good = [prompt for prompt in leaves(openai_server) if count_tokens(prompt) <= 4000]
    assert "False" not in shown(openai_server).split("=>")[0]
    assert sum(last - first + 1 for first, last, _ in map(range_of, good)) == 3600


def test_a_reply_cut_by_our_own_limit_is_asked_for_again_with_a_larger_one(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    caps = []

    def leaf(prompt: str) -> Step:
        caps.append(openai_server.received[-1].json.get("max_tokens"))
        if len(caps) == 1:
            return reply("cut", finish_reason="length")
        return reply("whole")

    found = play(
        openai_server,
        corpus,
        root=[
            block("r = llm_query('long?')\nprint(r, r.truncated, r.usage['calls'])"),
            block("FINAL('x')"),
        ],
        leaf=leaf,
        limits=Limits(tokens=500_000),
    )
    assert caps[1] == 4 * caps[0]
    assert "whole False 2" in shown(openai_server)
    assert found.usage.calls == 4


def test_a_reply_cut_by_the_caller_or_the_provider_says_so(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block(
                "r = llm_query('a', max_tokens=5)\ns = llm_query('b')\n"
                "print(r.ok, r.truncated, s.ok, s.truncated)"
            ),
            block("FINAL('x')"),
        ],
        leaf=lambda prompt: reply("cut", finish_reason="length"),
    )
    assert "True True True True" in shown(openai_server)
    assert found.usage.calls == 4


def test_a_file_whose_reply_is_cut_is_split_further(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    play(
        openai_server,
        corpus,
        root=[
            block(
                "text = 'a b c d e f\\n' * 40 + '\\n' + 'g h i j k l\\n' * 40\n"
                "r = map_files([{'path': 'x.txt', 'content': text}], 'Sum up.')['x.txt']\n"
                "print(r.ok, r.truncated, str(r))"
            ),
            block("FINAL('x')"),
        ],
        leaf=lambda prompt: (
            reply("cut", finish_reason="length") if "lines 1-81 of" in prompt else reply("fine")
        ),
    )
    told = shown(openai_server)
    assert "True False [x.txt:1-41]\nfine\n\n[x.txt:42-81]\nfine" in told


def test_a_prompt_beyond_the_window_is_refused_unsent_and_says_what_to_use(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block(
                "rs = [*llm_query_chunked('', 'p'), *llm_query_chunked('x', ''),"
                " *llm_query_chunked(7, 'p'), llm_map_reduce([], 'm', 'r'),"
                " map_files('x', 7)[''], llm_map_reduce(['a'], 'm', ''), rlm_query(''),"
                " rlm_query('q', paths=['nowhere']), *rlm_query_batched('not a list'),"
                " *llm_query_chunked('x', 'p ' * 20000)]\n"
                "print([r.ok for r in rs])\nprint(rs[-1])"
            ),
            block("FINAL('x')"),
        ],
    )
    told = shown(openai_server)
    assert str([False] * 10) in told
    assert "leaves no room" in told
    assert leaves(openai_server) == []
    assert found.usage.calls == 2


def test_a_map_is_reduced_in_levels_where_the_partial_answers_do_not_fit_together(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    partial = "count 1 " * 300

    def leaf(prompt: str) -> str:
        if not prompt.endswith("Add up."):
            return partial
        return str(
            prompt.count("count 1 " * 300) or sum(map(int, re.findall(r"\]\n(\d+)", prompt)))
        )

    found = play(
        openai_server,
        corpus,
        root=[
            block(
                "r = llm_map_reduce([f'text {n}' for n in range(40)], 'Count.', 'Add up.')\n"
                "print(r.ok, r, r.usage['calls'])"
            ),
            block("FINAL(r)"),
        ],
        leaf=leaf,
    )
    reductions = [prompt for prompt in leaves(openai_server) if prompt.endswith("Add up.")]
    assert len(reductions) > 2
    assert found.text == "40"
    assert f"True 40 {40 + len(reductions)}" in shown(openai_server)


def test_a_reduction_over_items_of_which_some_failed_says_which(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def leaf(prompt: str) -> Step:
        return failed(400, "no") if "Beta" in prompt else reply("ok so far")

    play(
        openai_server,
        corpus,
        root=[
            block(
                "r = llm_map_reduce([e for e in context if e['path'] in ('docs/a.md', 'docs/b.md')"
                "], 'Read.', 'Join.')\nprint(r.ok)\nprint(r)"
            ),
            block("FINAL('x')"),
        ],
        leaf=leaf,
    )
    told = shown(openai_server)
    assert "Error: 1 of 2 items failed; docs/b.md:" in told
    assert "From the other items:\nok so far" in told


def test_the_affordable_part_of_a_batch_runs_under_a_limit_in_tokens(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block("rs = llm_query_batched([f'word {n}' for n in range(600)])"),
            reply("as far as it went"),
        ],
        limits=Limits(tokens=8_000, calls=None),
    )
    # A call may need 4,100 tokens and needs 18: of 8,000, a quarter kept for the end, many fit,
    # with shorter replies the later they come.
    assert 200 <= len(leaves(openai_server)) < 600
    assert found.stop_reason == "budget_tokens"
    assert found.text == "as far as it went"
    assert found.usage.input_tokens + found.usage.output_tokens <= 8_000


def test_what_a_reply_leaves_out_has_the_names_of_a_usage() -> None:
    assert asdict(Usage()) == NO_USAGE
    assert LeafReply("yes").to_json() == {"text": "yes", "ok": True, "error": None}


def test_the_first_turn_names_the_window_and_the_width(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    play(openai_server, corpus, root=[block("FINAL('x')")], limits=Limits(concurrency=7))
    first = told_root(openai_server)[0]
    assert "8,192 tokens" in first
    assert "up to 7 calls at the same time" in first
    assert "rlm_query starts a child" in first


def test_added_texts_are_in_context_and_searched_and_never_cited_as_true(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block(
                "p = add_context('notes/zebra.md', '# Zebra\\n\\nThe zebra sleeps at noon.\\n')\n"
                "print(p, len(context), context[-1]['path'], type(context).__name__)\n"
                "print(search('zebra noon')[0]['path'], grep_context('zebra')['counts'])\n"
                "print(read(p, 3, 3), outline(p))\n"
                "print(map_files([p], 'Sum up.')[p])\n"
                "print(add_context('../../etc/passwd', 'x').ok)"
            ),
            block("import os\nos._exit(3)"),
            block("print(context[-1]['content'][:7], search('zebra')[0]['path'])"),
            block("FINAL('See added:/notes/zebra.md:3')"),
        ],
        leaf=lambda prompt: "read " + prompt.split()[2],
    )
    told = told_root(openai_server)
    assert "added:/notes/zebra.md 6 added:/notes/zebra.md LazyContext" in told[1]
    assert "added:/notes/zebra.md {'added:/notes/zebra.md': 1}" in told[1]
    assert "The zebra sleeps at noon." in told[1]
    assert "read added:/notes/zebra.md" in told[1]
    assert told[1].count("False") == 1
    assert "# Zebra added:/notes/zebra.md" in told[3]
    assert not any(citation.verified for citation in found.citations)
    assert (found.coverage.searched, found.coverage.read, found.coverage.delegated) == (0, 0, 0)
    assert len(corpus) == 5


def test_a_prompt_that_the_provider_finds_too_long_comes_back_with_its_size(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[block("r = llm_query('word ' * 1000)\nFINAL(r.error)")],
        leaf=lambda _: failed(400, "maximum context length exceeded"),
    )
    assert re.match(r"the prompt of about 1,\d{3} tokens: .*maximum context length", found.text)
    assert "llm_query_chunked(text, prompt)" in found.text
    assert "llm_query_chunked" in found.text
