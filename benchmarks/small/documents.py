"""Questions of a heap of pages: real prose, in which facts about lighthouses were put.

The prose is the language reference that comes with Python (`pydoc_data.topics`); heaps that are
larger repeat its paragraphs in other orders. The facts are in it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random

from benchmarks.small.questions import Question, places, rng_of
from benchmarks.small.sources import Files

GROUP = "documents"
KINDS = ("needle", "fact", "comparison", "total")
SIZES = {"20kb": 20 << 10, "200kb": 200 << 10, "2mb": 2 << 20, "6mb": 6 << 20, "20mb": 20 << 20}

_PAGES = 200
_LEAST_PAGE_BYTES = 1 << 10
_STORES = 6
_BUILT = (
    "The lighthouse of {name} was built in {year}.",
    "It was in {year} that the lighthouse of {name} was put up.",
    "Of the lighthouse of {name} it is known that building it ended in {year}.",
)
_HIGH = (
    "The tower of the lighthouse of {name} is {height} metres high.",
    "In {name}, the tower of the lighthouse rises to {height} metres.",
)
_STORE = "The access code of the store room in {name} is {code}."
_SYLLABLES = "ba den fal gor hel kar lom mar nor or pel quin ras sol tar ul ven wik yar zem"


@dataclass(frozen=True, slots=True)
class _Light:
    name: str
    year: int
    height: int
    visitors: dict[int, int]


@dataclass(frozen=True, slots=True)
class Heap:
    """The pages of one size and seed, and what is in them."""

    lights: tuple[_Light, ...]
    codes: dict[str, int]
    size_bytes: int
    key: str

    def files(self) -> Files:
        """Write the pages; the same each time."""
        rng = rng_of(GROUP, 0, f"{self.key}/text")
        stores = list(self.codes.items())
        pages = []
        for number, light in enumerate(self.lights):
            told = [_told(light, rng), *_codes_of(stores, number, len(self.lights))]
            pages.append((f"pages/{number:03}.md", self._page(number, told, rng)))
        return tuple(pages)

    def _page(self, number: int, told: list[str], rng: Random) -> str:
        left = self.size_bytes // len(self.lights) - sum(map(len, told))
        paragraphs: list[str] = []
        while left > 0 or not paragraphs:
            paragraphs.append(rng.choice(prose()))
            left -= len(paragraphs[-1]) + 2
        for each in told:
            paragraphs.insert(rng.randrange(len(paragraphs) + 1), each)
        return f"# Part {number}\n\n" + "\n\n".join(paragraphs) + "\n"


def document_questions(seed: int, count: int) -> Iterator[Question]:
    """Yield `count` questions of heaps of 20 KB to 20 MB."""
    for place in places(KINDS, tuple(SIZES), count):
        rng = rng_of(GROUP, seed, place.number)
        text, gold = _ASK[place.kind](heap(seed, place.corpus), rng)
        yield Question(kind=place.kind, corpus=place.corpus, text=text, gold=gold)


@cache
def heap(seed: int, size: str) -> Heap:
    """Return what the pages of a size say."""
    key = f"{seed}/{size}"
    rng = rng_of(GROUP, seed, size)
    pages = min(_PAGES, SIZES[size] // _LEAST_PAGE_BYTES)
    names = _names(pages + _STORES, rng)
    years = rng.sample(range(1750, 1990), pages)
    heights = rng.sample(range(100, 900), pages)
    lights = tuple(
        _Light(name, year, height, _visitors(rng) if number % 10 == 0 else {})
        for number, (name, year, height) in enumerate(
            zip(names[:pages], years, heights, strict=True)
        )
    )
    codes = dict(zip(names[pages:], rng.sample(range(10_000, 99_999), _STORES), strict=True))
    return Heap(lights, codes, SIZES[size], key)


@cache
def prose() -> tuple[str, ...]:
    """Return the paragraphs of Python's language reference."""
    from pydoc_data.topics import topics

    found = []
    for text in topics.values():
        for paragraph in re.split(r"\n\s*\n", text):
            words = " ".join(paragraph.split())
            if 80 <= len(words) <= 900 and words[0].isupper() and words.endswith("."):
                found.append(words)
    return tuple(dict.fromkeys(found))


def _names(count: int, rng: Random) -> list[str]:
    parts = _SYLLABLES.split()
    every = [f"{a}{b}{end}" for a in parts for b in parts for end in ("dal", "ey")]
    return [name.capitalize() for name in rng.sample(every, count)]


def _visitors(rng: Random) -> dict[int, int]:
    first = rng.randrange(1995, 2005)
    return {year: rng.randrange(200, 9_000) for year in range(first, first + rng.randrange(8, 21))}


def _told(light: _Light, rng: Random) -> str:
    built = rng.choice(_BUILT).format(name=light.name, year=light.year)
    high = rng.choice(_HIGH).format(name=light.name, height=light.height)
    if not light.visitors:
        return f"{built} {high}"
    rows = "\n".join(f"| {year} | {number} |" for year, number in light.visitors.items())
    head = f"Visitors of the lighthouse of {light.name}:\n\n| year | visitors |\n| --- | --- |"
    return f"{built} {high}\n\n{head}\n{rows}"


def _codes_of(stores: list[tuple[str, int]], number: int, pages: int) -> list[str]:
    step = max(1, pages // len(stores))
    mine = [pair for place, pair in enumerate(stores) if (place * step + 1) % pages == number]
    return [_STORE.format(name=name, code=code) for name, code in mine]


def _needle(heap: Heap, rng: Random) -> tuple[str, dict[str, object]]:
    name = rng.choice(list(heap.codes))
    return f"What is the access code of the store room in {name}?", {"number": heap.codes[name]}


def _fact(heap: Heap, rng: Random) -> tuple[str, dict[str, object]]:
    light = rng.choice(heap.lights)
    if rng.random() < 0.5:
        return f"In which year was the lighthouse of {light.name} built?", {"number": light.year}
    question = f"How many metres high is the tower of the lighthouse of {light.name}?"
    return question, {"number": light.height}


def _comparison(heap: Heap, rng: Random) -> tuple[str, dict[str, object]]:
    one, other = rng.sample(heap.lights, 2)
    if rng.random() < 0.5:
        what, right = "was built first", min(one, other, key=lambda light: light.year)
    else:
        what, right = "has the higher tower", max(one, other, key=lambda light: light.height)
    question = f"Which lighthouse {what}, that of {one.name} or that of {other.name}? Name it."
    return question, {"name": right.name, "names": [one.name, other.name]}


def _total(heap: Heap, rng: Random) -> tuple[str, dict[str, object]]:
    light = rng.choice([light for light in heap.lights if light.visitors])
    question = (
        f"How many visitors did the lighthouse of {light.name} have in total, over all the years "
        "of its table?"
    )
    return question, {"number": sum(light.visitors.values())}


_ASK = {"needle": _needle, "fact": _fact, "comparison": _comparison, "total": _total}
