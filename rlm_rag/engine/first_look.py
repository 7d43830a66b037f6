"""What a small model sees of the documents before it counts in them: how records look there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from rlm_rag.engine.accounted import accounts_for
from rlm_rag.engine.conditions import conditions, filtered, lacks_a_value, out_of_reach
from rlm_rag.engine.named_files import globs_named
from rlm_rag.engine.question import asks_how_many
from rlm_rag.engine.recipes import is_all_that_is_asked, recipe
from rlm_rag.engine.services import Services
from rlm_rag.engine.view import View
from rlm_rag.errors import RetrievalError
from rlm_rag.lines import split_lines
from rlm_rag.sandbox.inside.rows import rows_of

MAX_DOCUMENTS = 3
MAX_LINES = 3
MAX_ROWS = 2
MAX_LINE_CHARS = 300
MAX_TEXT_CHARS = 100_000
OUTLINE_CHARS = 600
_OF_RECORDS = (".csv", ".tsv", ".jsonl", ".ndjson", ".log")

_NOT_HELD = "\n{value!r} of the question stands within {column!r} there: count by it yourself."
_DEFINES = re.compile(r"^\s*\d+: .*?\b(def|class|func|function|fn|struct|interface) ", re.MULTILINE)
_OF_DEFINITIONS = ("test", "function", "method", "class", "struct", "interface", "define")
_TYPES = ("class", "struct", "interface")
_KIND = re.compile(
    r"\b(function|method|test|class|struct|interface|definition)(?:e?s)?\b|\bdefine[sd]?\b",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    r"\b(?:begin|start)(?:s|ning|ing)? with (?:the (?:word|prefix) )?[`'\"]?([A-Za-z_]\w*)"
)


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What is shown of documents, and the code that counting in them begins with.

    `setup` only binds a variable, and can be run before the first turn; `begin` goes on from it.
    `answers` says that this computes all that is asked; `named` has the values of each column
    that the question names, and that the records of `setup` have.
    """

    shown: str
    begin: str = ""
    setup: str = ""
    answers: bool = False
    named: tuple[tuple[str, ...], ...] = ()


async def first_look(
    services: Services, view: View, question: str, *, counts: bool = True
) -> FirstLook:
    """Return what a question that code is to answer needs to see of the documents it is about.

    Those are the files that it names, or else what a search for it finds. Of records two are
    shown as `records` gives them, else the definitions or the first lines: small models guess the
    form of records where they do not see it, and of a single one the 1.5B took a value for a
    condition. Files of records that lie together are shown as one. Where it does not count, only
    files that it names are shown, without code.
    """
    named = (await view.select(await globs_named(view, question))).paths
    if not named and not counts:
        return FirstLook("")
    if named:
        wanted = [_Wanted(path, path) for path in named]
    else:
        found = (*await _found(services, question), *islice(view.paths(), MAX_DOCUMENTS))
        wanted = [_together(view, path) for path in dict.fromkeys(found)]
    looks = [
        await _look(services, view, each, question)
        for each in list({each.name: each for each in wanted}.values())[:MAX_DOCUMENTS]
    ]
    with_code = (look for look in looks if counts and (look.begin or look.setup))
    first = next(with_code, FirstLook(""))
    return replace(first, shown="\n".join(look.shown for look in looks))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A document to look at, by the name that stands for it and for others of its kind."""

    path: str
    name: str
    count: int = 1


def _together(view: View, path: str) -> _Wanted:
    """Take a file of records for all of its kind that lie beside it."""
    folder, slash, file = path.rpartition("/")
    dot = file[file.rfind(".") :]
    if dot not in _OF_RECORDS:
        return _Wanted(path, path)
    begins = folder + slash
    count = sum(
        other.startswith(begins) and other.endswith(dot) and "/" not in other[len(begins) :]
        for other in view.paths()
    )
    return _Wanted(path, f"{begins}*{dot}" if count > 1 else path, count)


async def _found(services: Services, question: str) -> Sequence[str]:
    hits = await services.looked_up("search", query=question, k=MAX_DOCUMENTS)
    return [hit["path"] for hit in hits or ()]


async def _look(services: Services, view: View, wanted: _Wanted, question: str) -> FirstLook:
    path, name = wanted.path, wanted.name
    try:
        text = (await view.fetched(path) or "")[:MAX_TEXT_CHARS]
    except RetrievalError:
        # The model meets the error where it reads the document.
        text = ""
    lines = split_lines(text)
    whole = lines if len(text) < MAX_TEXT_CHARS else lines[:-1]
    read = rows_of("\n".join(whole))
    if read is not None:
        rows, odd = read
        shown = "".join(f"\n  {_cut(str(row))}," for row in rows[:MAX_ROWS])
        more = "\n  ..." if len(rows) > MAX_ROWS else ""
        of = f", of {wanted.count} files together" if wanted.count > 1 else ""
        around = "" if path.endswith((*_OF_RECORDS, ".json")) else text
        beyond = out_of_reach(rows, question)
        is_all = beyond is None and is_all_that_is_asked(rows, question, path, text=around)
        # Told to count all records where it named a value that the first of them have not, a
        # model counts all.
        is_safe = is_all or (beyond is None and not lacks_a_value(rows, question))
        held = "" if beyond is None else _NOT_HELD.format(value=beyond[0], column=beyond[1])
        return FirstLook(
            f"records({name!r}) is a list of dicts{of}:{shown}{more}{held}",
            begin=recipe(rows, question, name) if is_safe else "",
            setup=f"rows = {filtered(rows, question, name)}",
            answers=is_all and not odd,
            named=tuple(map(tuple, conditions(rows, question).values())),
        )
    outline = await services.looked_up("outline", path=path, budget_chars=OUTLINE_CHARS)
    if _DEFINES.search(outline or ""):
        shown = f"print(outline({path!r})) shows:\n{outline}"
        if not asks_how_many(question) or not _KIND.search(question):
            # Shown how definitions are counted, a model counts them, whatever it was asked for.
            return FirstLook(shown)
        # What is shown is too short to tell: of a file of classes it leaves out all functions.
        word = _counted_word(await services.looked_up("outline", path=path) or outline, question)
        counted = f"{word} {_name_begins(question)}"
        counting = (
            f'n = outline({path!r}).count("{counted}")\nFINAL(f"{{n}} of them in `{path}:1`.")'
        )
        plain = _BEGINS.sub(" ", question)
        return FirstLook(
            shown, counting, answers=accounts_for(plain, names=[path, *_OF_DEFINITIONS])
        )
    begun = "".join(f"\n  {_cut(line)}" for line in lines[:MAX_LINES])
    return FirstLook(f"{path} begins:{begun}")


def _counted_word(outline: str, question: str) -> str:
    """Return the word that begins each definition of what a question counts in an outline."""
    words = [found[1] for found in _DEFINES.finditer(outline)]
    named = next((found[1].lower() for found in _KIND.finditer(question) if found[1]), None)
    of_types = named in _TYPES
    chosen = [word for word in words if (word in _TYPES) == of_types]
    return Counter(chosen if named and chosen else words).most_common(1)[0][0]


def _name_begins(question: str) -> str:
    """Return what a question says that the names of what it counts begin with, "" for nothing."""
    found = _BEGINS.search(question)
    return "" if found is None else found[1]


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}..."
