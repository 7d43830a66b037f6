"""Documents as resources: listed by pages, read by address, whole or by lines."""

from __future__ import annotations

from collections.abc import Iterator

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError

from rlm_rag.api import SearchableCorpus, load
from rlm_rag.errors import RetrievalError
from rlm_rag.mcp import resources
from rlm_rag.mcp.replies import MAX_REPLY_CHARS
from tests.mcp.clients import with_client

LINES = "".join(f"{number} {'x' * 90}\r\n" for number in range(1, 2001))
LONG = "y" * (MAX_REPLY_CHARS + 5)
TEXTS = {
    "a b?c#d%.py": "one\ntwo\nthree",
    "report.pdf#page=3": "a page\n",
    "ünï/日本.md": "text\n",
    "new\nline": "odd\n",
    "half\udcff": "\ud83d\n",
    "empty": "",
    "lines": LINES,
    "long": f"short\n{LONG}\nend\n",
}


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with load(TEXTS) as loaded:
        yield loaded


def test_every_document_is_listed_once_and_read_by_the_address_of_its_list() -> None:
    texts = {f"{number:03}/é {number}.txt": f"text {number}" for number in range(450)}

    async def use(client: Client) -> dict[str, str]:
        found: dict[str, str] = {}
        cursor: str | None = None
        pages = 0
        while cursor is not None or not pages:
            page = await client.list_resources(cursor=cursor)
            assert len(page.resources) <= resources.PAGE_SIZE
            for one in page.resources:
                assert one.uri.isascii()
                assert one.size == len(texts[one.name])
                found[one.name] = one.uri
            cursor, pages = page.next_cursor, pages + 1
        assert pages == 3
        for name in ("000/é 0.txt", "449/é 449.txt"):
            (content,) = (await client.read_resource(found[name])).contents
            assert isinstance(content, types.TextResourceContents)
            assert content.text == texts[name]
        return found

    assert list(with_client(texts, use)) == list(texts)


@given(path=st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=30))
def test_any_path_is_found_by_its_address(path: str) -> None:
    named = resources.uri_of(path, 2, 3)
    assert named.isascii()
    assert named.isprintable()
    assert " " not in named

    class One:
        """As much of a corpus as an address needs."""

        def get(self, wanted: str) -> str | None:
            return path if wanted == path else None

    found, start, end = resources._meant(One(), named)  # type: ignore[arg-type]
    assert (found, start, end) == (path, 2, 3)


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("corpus:///a%20b%3Fc%23d%25.py", "one\ntwo\nthree"),
        ("corpus:///a%20b%3Fc%23d%25.py?start=2", "two\nthree"),
        ("corpus:///a%20b%3Fc%23d%25.py?start=2&end=2", "two\n"),
        ("corpus:///a%20b%3Fc%23d%25.py?end=1", "one\n"),
        ("corpus:///a%20b%3Fc%23d%25.py?end=99", "one\ntwo\nthree"),
        ("corpus:///a b?c#d%25.py", "one\ntwo\nthree"),
        ("corpus:///report.pdf#page=3?start=1", "a page\n"),
        ("corpus:///report.pdf%23page%3D3", "a page\n"),
        ("corpus:///new%0Aline", "odd\n"),
        ("corpus:///half%ED%B3%BF", "\\ud83d\n"),
        ("corpus:///empty", ""),
    ],
)
def test_a_document_is_read_by_its_address(corpus: SearchableCorpus, uri: str, text: str) -> None:
    assert [(one.uri, one.text) for one in resources.read(corpus, uri)] == [(uri, text)]


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("file:///etc/passwd", "is no address of a document"),
        ("corpus:///../etc/passwd", "there is no document"),
        ("corpus:///%ff", "there is no document"),
        ("corpus:///", "there is no document"),
        ("corpus:///empty?start=2", "has 0 lines"),
        ("corpus:///lines?start=2001", "has 2,000 lines, none from 2001 to its end"),
        ("corpus:///lines?start=3&end=2", "none from 3 to 2"),
        ("corpus:///lines?start=0", "lines count from 1"),
        ("corpus:///lines?end=x", "end='x' is no line"),
        ("corpus:///no\nsuch", r"there is no document corpus:///no\x0asuch"),
    ],
)
def test_an_address_that_leads_nowhere_is_an_error_that_says_why(
    corpus: SearchableCorpus, uri: str, said: str
) -> None:
    with pytest.raises(RetrievalError) as caught:
        resources.read(corpus, uri)
    assert said in caught.value.message


def test_a_document_that_is_too_long_is_read_by_the_addresses_of_the_rest(
    corpus: SearchableCorpus,
) -> None:
    uri, read = "corpus:///lines?end=1500", []
    while uri:
        piece, *rest = resources.read(corpus, uri)
        assert len(piece.text) <= MAX_REPLY_CHARS
        read.append(piece.text)
        uri = rest[0].uri if rest else ""
        assert not rest or f"read {uri}" in rest[0].text
    assert len(read) > 2
    whole = "".join(LINES.splitlines(keepends=True)[:1500])
    assert "".join(read) == whole.replace("\r\n", "\n")


def test_a_line_that_is_too_long_is_cut_and_what_follows_can_be_read(
    corpus: SearchableCorpus,
) -> None:
    first, rest = resources.read(corpus, "corpus:///long")
    assert first.text == "short\n"
    cut, said, after = resources.read(corpus, rest.uri)
    assert cut.text == LONG[:MAX_REPLY_CHARS]
    assert "line 2 has 40,006 characters, of which the first 40,000" in said.text
    assert resources.read(corpus, after.uri)[0].text == "end\n"


def test_a_client_is_told_of_the_template_its_paths_and_what_is_wrong() -> None:
    async def use(client: Client) -> None:
        (template,) = (await client.list_resource_templates()).resource_templates
        ref = types.ResourceTemplateReference(uri=template.uri_template)
        found = await client.complete(ref, {"name": "path", "value": "ünï/"})
        assert found.completion.values == ["%C3%BCn%C3%AF/%E6%97%A5%E6%9C%AC.md"]
        none = await client.complete(ref, {"name": "start", "value": "1"})
        assert none.completion.values == []
        with pytest.raises(MCPError, match="there is no document corpus:///nothing"):
            await client.read_resource("corpus:///nothing")
        with pytest.raises(MCPError, match="no list has the cursor"):
            await client.list_resources(cursor="-1")

    with_client(TEXTS, use)
