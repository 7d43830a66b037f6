"""Which strategy `auto` takes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rlm_rag
from rlm_rag import SearchableCorpus
from rlm_rag.engine.calls import PricedModel
from rlm_rag.engine.identifiers import named_in
from rlm_rag.engine.question import kind_of
from rlm_rag.engine.strategies.choice import choose
from rlm_rag.engine.view import View
from rlm_rag.models.limiter import Limiter
from rlm_rag.models.offline import open_offline
from rlm_rag.models.prices import ModelFacts


class Named:
    """A model of a name, never asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def complete(self, request: object) -> object:
        raise AssertionError


def model(name: str, window: int | None = 128_000) -> PricedModel:
    return PricedModel(Named(name), ModelFacts(context_window=window), Limiter(1))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def corpora() -> Iterator[dict[str, SearchableCorpus]]:
    small = rlm_rag.load({"a.txt": "one line\n"})
    middle = rlm_rag.load({"a.txt": "a line of some words\n" * 1_000})
    large = rlm_rag.load({f"{n}.txt": "a line of some words\n" * 3_000 for n in range(4)})
    with small, middle, large:
        yield {"small": small, "middle": middle, "large": large}


@pytest.mark.parametrize(
    ("size", "question", "profile", "chosen"),
    [
        ("small", "Where is the port set?", "standard", "direct"),
        ("small", "How many are there?", "standard", "direct"),
        ("middle", "Where is the port set?", "standard", "direct"),
        ("middle", "How many are there?", "standard", "rlm"),
        ("large", "Where is the port set?", "standard", "rlm"),
        ("large", "Where is the port set?", "small", "retrieve"),
        ("large", "How many are there?", "small", "rlm"),
        ("large", "Give an overview of the project", "small", "map-reduce"),
        ("large", "Give an overview of the project", "frontier", "rlm"),
    ],
)
def test_size_kind_and_model_decide(
    corpora: dict[str, SearchableCorpus], size: str, question: str, profile: str, chosen: str
) -> None:
    corpus = corpora[size]
    view = View(corpus, corpus.retriever)
    root = model("test")
    assert choose(view, question=question, root=root, profile=profile, calls_left=200) == chosen


def test_a_model_that_is_none_writes_blocks(corpora: dict[str, SearchableCorpus]) -> None:
    corpus = corpora["small"]
    view = View(corpus, corpus.retriever)
    root = PricedModel(open_offline(), ModelFacts(), Limiter(1))
    assert choose(view, question="Where?", root=root, profile="standard", calls_left=9) == "rlm"


def test_an_unknown_window_is_taken_as_a_small_one(corpora: dict[str, SearchableCorpus]) -> None:
    corpus = corpora["middle"]
    view = View(corpus, corpus.retriever)
    root = model("test", None)
    assert choose(view, question="Where?", root=root, profile="standard", calls_left=9) == "rlm"


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many users ordered twice?", "aggregate"),
        ("Which user has the most orders?", "aggregate"),
        ("List all endpoints of the server", "aggregate"),
        ("What is the average delay?", "aggregate"),
        ("When does a parcel count as lost?", "lookup"),
        ("What is the secret number of wise-button?", "lookup"),
        ("Which number does the door have?", "lookup"),
        ("What is the number of users?", "aggregate"),
        ("Summarise the report", "overview"),
        ("What does this project do?", "overview"),
        ("Where is retry backoff computed?", "lookup"),
        ("What value has MAX_TRIES?", "lookup"),
        ("How many metres high is the tower of Alby?", "lookup"),
        ("How many towers are high?", "aggregate"),
        ("Which file computes the value of a minimum cut?", "lookup"),
        ("In which file is the largest_first strategy defined?", "lookup"),
        ("Which file has the most functions?", "aggregate"),
        ("Which page names the highest tower?", "aggregate"),
    ],
)
def test_a_question_has_its_kind(question: str, kind: str) -> None:
    assert kind_of(question) == kind


@pytest.mark.parametrize(
    ("question", "names", "quoted"),
    [
        ("Where is `RetryPolicy.delay()` set?", ["RetryPolicy.delay"], []),
        ("What does parse_header( do?", ["parse_header"], []),
        ("Who raises ValueError or HTTP_TIMEOUT?", ["ValueError", "HTTP_TIMEOUT"], []),
        ('Where is "connection reset by peer" said?', [], ["connection reset by peer"]),
        ("What is the meaning of life?", [], []),
    ],
)
def test_names_and_quotes_of_a_question_are_found(
    question: str, names: list[str], quoted: list[str]
) -> None:
    assert named_in(question) == (names, quoted)
