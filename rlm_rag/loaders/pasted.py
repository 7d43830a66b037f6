"""A corpus as one text to paste into a chat: its tree, then each document under its path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from xml.sax.saxutils import quoteattr

from rlm_rag.corpus import Corpus
from rlm_rag.loaders.parsing.markdown import fence_of

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LINE_ENDS = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def as_markdown(corpus: Corpus, *, count_tokens: Callable[[str], int]) -> Iterator[str]:
    """Yield the pieces of a Markdown text, each without its final line end.

    Fences are longer than any in the documents; lone surrogates become U+FFFD.
    """
    yield f"# {_summary(corpus, count_tokens)}\n"
    yield f"```\n{tree_of(corpus.paths())}\n```"
    for document in corpus:
        content = _SURROGATES.sub("\ufffd", document.content)
        fence = fence_of(content)
        suffix = PurePosixPath(document.path).suffix[1:]
        language = suffix if suffix.isascii() and suffix.isalnum() else ""
        yield f"\n## {_one_line(document.path)}\n\n{fence}{language}"
        yield from _body(content)
        yield fence


def as_xml(corpus: Corpus, *, count_tokens: Callable[[str], int]) -> Iterator[str]:
    """Yield the pieces of a well-formed XML text, each without its final line end.

    Contents are CDATA; characters that XML does not know become U+FFFD.
    """
    yield f"<documents summary={quoteattr(_summary(corpus, count_tokens))}>"
    yield f"<tree>{_cdata(tree_of(corpus.paths()))}</tree>"
    for document in corpus:
        path = quoteattr(_NOT_IN_XML.sub("\ufffd", document.path), {"\n": "&#10;", "\t": "&#9;"})
        yield f"<document path={path}>{_cdata(document.content)}</document>"
    yield "</documents>"


def tree_of(paths: Iterable[str]) -> str:
    """Draw paths as a tree, folders with a final `/`, in the order in which they come."""
    lines: list[str] = []
    open_folders: list[str] = []
    for path in paths:
        *folders, name = path.split("/")
        shared = 0
        while shared < min(len(folders), len(open_folders)) and (
            folders[shared] == open_folders[shared]
        ):
            shared += 1
        for depth, folder in enumerate(folders[shared:], start=shared):
            lines.append(f"{'  ' * depth}{_one_line(folder)}/")
        lines.append(f"{'  ' * len(folders)}{_one_line(name)}")
        open_folders = folders
    return "\n".join(lines)


def _summary(corpus: Corpus, count_tokens: Callable[[str], int]) -> str:
    tokens = sum(count_tokens(document.content) for document in corpus)
    return (
        f"{len(corpus):,} documents, {corpus.line_count:,} lines, "
        f"{corpus.total_bytes:,} bytes, about {tokens:,} tokens"
    )


def _body(content: str) -> Iterator[str]:
    if content:
        yield content.removesuffix("\n")


def _cdata(text: str) -> str:
    inner = _NOT_IN_XML.sub("\ufffd", text).replace("]]>", "]]]]><![CDATA[>")
    return f"<![CDATA[{inner}]]>"


def _one_line(text: str) -> str:
    return _LINE_ENDS.sub("\ufffd", _SURROGATES.sub("\ufffd", text))
