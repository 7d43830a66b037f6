"""A loader, a benchmark and a model for rlm-rag, found by their entry points."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from rlm_rag.evals import Haystack, Response, Sample, Score, TaskOptions
from rlm_rag.models.base import Completion, ModelRequest, Usage


def load_diary(source: str, options: object) -> Iterator[tuple[str, str]]:
    """Load `diary:FILE`, an SQLite file: a document for each row of the table `entries`."""
    with closing(sqlite3.connect(source.removeprefix("diary:"))) as database:
        for day, text in database.execute("SELECT day, text FROM entries ORDER BY day"):
            yield f"{day}.md", text


class Colours:
    """Asks for the colour of a door among other doors."""

    name = "diary-colours"
    ranking = None

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        colours = ["red", "green", "blue"][: options.count]
        doors = [(f"door-{n}.md", f"Door {n} is {c}.\n") for n, c in enumerate(colours)]
        haystack = Haystack("doors", lambda: doors)
        for number, colour in enumerate(colours):
            question = f"What colour is door {number}?"
            yield Sample(id=str(number), question=question, haystack=haystack, gold=colour)

    def scorer(self, response: Response, sample: Sample) -> Score:
        return Score(value=float(str(sample.gold) in response.text.lower()))


class EchoModel:
    """Says what it was asked last, and costs nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def complete(self, request: ModelRequest) -> Completion:
        return Completion(request.messages[-1].content, Usage(calls=1), self.name)


def open_echo(name: str, options: object) -> EchoModel:
    """Open `echo:ANYTHING`."""
    return EchoModel(name)
