"""Documents that a caller already has: a text, a list of texts or documents, a mapping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from rlm_rag.corpus import Document
from rlm_rag.errors import SourceError
from rlm_rag.loaders.options import Entry

TEXT_PATH = "<context>"
_FORMS = (
    "Give a path, a text, a list of texts, a list of {'path': ..., 'content': ...}, "
    "or a mapping of paths to texts."
)


def read_text(text: str, encoding: str | None = None) -> tuple[str, Iterator[Entry]]:
    """Return the shape and the one document of a text, and what it was decoded from."""
    return "text", iter([Entry(TEXT_PATH, text, encoding)])


def read_values(source: object) -> tuple[str, Iterator[Entry]]:
    """Return the shape of a mapping or an iterable, and its documents.

    The first item decides between texts and documents. Paths of texts are `<context[i]>`.

    Raises:
        SourceError: `source`, or (while the documents are taken) an item, is none of these.
    """
    if isinstance(source, Mapping):
        return "mapping", _read_mapping(source)
    if isinstance(source, (bytes, bytearray, memoryview)) or not isinstance(source, Iterable):
        raise SourceError(f"Cannot load a {type(source).__name__}.", hint=_FORMS)
    if isinstance(source, (set, frozenset)):
        raise SourceError(
            f"Cannot load a {type(source).__name__}: its order is another one in each process.",
            hint="Give a list: sorted(...).",
        )
    items = iter(source)
    for first in items:
        items = chain([first], items)
        if isinstance(first, str):
            return "texts", _read_texts(items)
        return "documents", _read_documents(items)
    return "documents", iter(())


def _read_mapping(source: Mapping[object, object]) -> Iterator[Entry]:
    for number, (path, content) in enumerate(source.items()):
        _check_path(path, number)
        if not isinstance(path, str) or not isinstance(content, str):
            raise SourceError(
                f"A mapping of texts holds {path!r}: {type(content).__name__}.", hint=_FORMS
            )
        yield Entry(path, content)


def _read_texts(items: Iterator[object]) -> Iterator[Entry]:
    for number, item in enumerate(items):
        if not isinstance(item, str):
            raise SourceError(
                f"Item {number} of a list of texts is a {type(item).__name__}.", hint=_FORMS
            )
        yield Entry(f"<context[{number}]>", item)


def _read_documents(items: Iterator[object]) -> Iterator[Entry]:
    for number, item in enumerate(items):
        if isinstance(item, Document):
            yield Entry(item.path, item.content, item.encoding)
            continue
        path, content = _fields(item, number)
        _check_path(path, number)
        if not isinstance(path, str) or not isinstance(content, str):
            raise SourceError(f"Item {number} is no document: {_describe(item)}.", hint=_FORMS)
        yield Entry(path, content)


def _check_path(path: object, number: int) -> None:
    if isinstance(path, str) and not path:
        raise SourceError(f"The path of item {number} is empty.", hint="Give each text a name.")


def _fields(item: object, number: int) -> tuple[object, object]:
    if isinstance(item, Mapping):
        return item.get("path", f"<context[{number}]>"), item.get("content")
    if isinstance(item, (tuple, list)) and len(item) == 2:
        return item[0], item[1]
    return None, None


def _describe(item: object) -> str:
    kind = type(item).__name__
    if isinstance(item, Mapping):
        keys = ", ".join(f"{key!r}: {type(value).__name__}" for key, value in item.items())
        return f"{kind} with {keys[:200]}"
    return f"a {kind}"
