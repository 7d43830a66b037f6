"""NoCha-style pairs of claims about a book, one true and one false, that differ in a detail."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from rlm_rag.errors import BenchmarkDataError
from rlm_rag.evals.base import Haystack, Sample, Scorer, TaskOptions
from rlm_rag.evals.data import Row, one_of, read_json, read_rows, read_text, required_data
from rlm_rag.evals.scorers.choices import claim
from rlm_rag.loaders.source import Source
from rlm_rag.models.tokens import count_tokens

FORM = (
    'NoCha: a folder of data_sample.json, a list of "book_title", "claim", "type" (true or false) '
    'and "index" (the same for both of a pair), and of the books: classic_books.pkl, '
    "books.json ({title: text}), or TITLE.txt."
)
_BOOKS = ("classic_books.pkl", "books.json")


@dataclass(frozen=True, slots=True)
class ClaimsTask:
    """Each claim is a sample; both of a pair count once, as right if both are judged right."""

    name: str = "nocha"
    scorer: Scorer = claim
    ranking: Scorer | None = None

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield `count` claims, one more where that would part a pair; those of a book together.

        Raises:
            UsageError: no data was given.
            BenchmarkDataError: it is not in the published format, a claim lacks its other, or a
                book is missing.
        """
        folder = required_data(options, FORM)
        books = _Books(folder)
        longest = max(options.lengths, default=None)
        count = None if options.count is None else options.count + options.count % 2
        yield from islice(self._all(folder, books, longest), count)

    def _all(self, folder: Path, books: _Books, longest: int | None) -> Iterator[Sample]:
        for title, rows in _by_book(folder).items():
            length = count_tokens(books.text(title))
            if longest is None or length <= longest:
                samples = [_sample(row, title, books, length) for row in rows]
                _check_pairs(rows, samples)
                yield from samples


def _by_book(folder: Path) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in read_rows(one_of(folder, ("data_sample.json", "*.jsonl"), FORM), FORM):
        found[row.text("book_title")].append(row)
    for rows in found.values():
        rows.sort(key=lambda row: row.integer("index"))
    return found


def _check_pairs(rows: Sequence[Row], samples: Sequence[Sample]) -> None:
    golds: dict[str | None, list[bool]] = defaultdict(list)
    for sample in samples:
        golds[sample.joint].append(sample.gold)
    for row, sample in zip(rows, samples, strict=True):
        if sorted(golds[sample.joint]) != [False, True]:
            row.refuse("its 'index' is not that of one true and one false claim of the book")


def _sample(row: Row, title: str, books: _Books, length: int) -> Sample:
    index, truth = row.integer("index"), row.values.get("type")
    gold = {"true": True, "false": False}.get(str(truth).lower())
    if gold is None:
        row.refuse(f"'type' is {truth!r}, neither true nor false")
    return Sample(
        id=f"{index}/{str(gold).lower()}",
        question=(
            f"A statement about the book: {row.text('claim')}\n"
            "Judge it by the book alone. It is TRUE if all of it is true, and FALSE if any part of "
            "it is false. Say why in a few sentences, then end with <answer>TRUE</answer> or "
            "<answer>FALSE</answer>."
        ),
        haystack=Haystack(f"nocha/{title}", partial(books.document, title)),
        gold=gold,
        length_tokens=length,
        cluster=title,
        joint=f"{title}/{index}",
    )


class _Books:
    """The texts of a folder's books, by title."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder if folder.is_dir() else folder.parent
        self._read: dict[str, str] | None = None

    def text(self, title: str) -> str:
        if self._read is None:
            self._read = self._all()
        text = self._read.get(title)
        if text is None:
            path = self._folder / f"{title}.txt"
            if "/" in title or not path.is_file():
                raise BenchmarkDataError(f"there is no book {title!r} in {self._folder}", hint=FORM)
            text = read_text(path, FORM)
        return text

    def document(self, title: str) -> Source:
        return [("book.txt", self.text(title))]

    def _all(self) -> dict[str, str]:
        for name in _BOOKS:
            path = self._folder / name
            if path.is_file():
                return _checked(
                    path, _unpickled(path) if path.suffix == ".pkl" else read_json(path, FORM)
                )
        return {}


def _checked(path: Path, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(
        isinstance(title, str) and isinstance(text, str) for title, text in value.items()
    ):
        raise BenchmarkDataError(f"{path} is no object of titles and texts", hint=FORM)
    return dict(value)


class _TextsAlone(pickle.Unpickler):
    """Reads dicts and texts. A pickle can run any code: what names a class or a function cannot."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def _unpickled(path: Path) -> Any:
    try:
        return _TextsAlone(BytesIO(path.read_bytes())).load()
    # A damaged pickle fails in many ways: IndexError, KeyError, MemoryError and others.
    except Exception as error:
        raise BenchmarkDataError(
            f"{path} is no plain dict of texts: {error}", hint="save it as books.json"
        ) from error
