"""How many calls, and tokens in them, a question takes by each strategy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rlm_rag.engine.calls import CAP_TOKENS, REPLY_SHARE
from rlm_rag.engine.delegate import PARTIAL_SHARE
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.prompts.texts import load_profile, load_prompt
from rlm_rag.engine.strategies.choice import TOKENS_A_LINE
from rlm_rag.engine.strategies.direct import FRAME_TOKENS
from rlm_rag.engine.strategies.retrieve import MOST_TOKENS, SMALL_TOKENS, WINDOW_SHARE
from rlm_rag.models.prices import ModelFacts
from rlm_rag.models.tokens import count_tokens

CASES = ("low", "likely", "high")
_OPPOSITE = {"low": "high", "likely": "likely", "high": "low"}

# What a part of a text is sent with besides (material).
_FRAME_TOKENS = 60
# Parts end at borders, which are looked for in the second half of what would fit: 0.64 to 0.74 of
# it was used with this package's own files.
_FILLED = {"low": 1.0, "likely": 0.7, "high": 0.5}
# A reply to a part of a text, and the label that it is shown under.
NOTE_TOKENS = {"low": 20, "likely": 100, "high": 800}
_LABEL_TOKENS = 12


@dataclass(frozen=True, slots=True)
class Habits:
    """How a root model goes about a question.

    `reply_tokens` and `shown_tokens` are those of a turn's reply and of the output it is shown;
    `sub_calls` its leaf calls, of `prompt_tokens` and `answer_tokens` each; `share` the part of
    the corpus that is handed to sub-models besides.
    """

    turns: int
    reply_tokens: int
    shown_tokens: int
    sub_calls: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    share: float = 0.0


# Low: the answer lies in what one search shows. Likely: a few looks, a handful of pieces read by
# sub-models. High: long outputs in many turns, and the whole corpus read once by sub-models.
HABITS: Mapping[str, Habits] = {
    "low": Habits(2, 60, 30),
    "likely": Habits(5, 300, 1_200, 6, 2_000, 200),
    "high": Habits(14, 1_000, 4_000, 60, 6_000, 800, 1.0),
}
# The corpus, its passages or the notes on it in one prompt; `high` looks, or mends its form, once
# more.
_ONE_PROMPT: Mapping[str, Habits] = {
    "low": Habits(1, 60, 0),
    "likely": Habits(1, 300, 0),
    "high": Habits(2, 1_000, 0),
}
# `low` finds nothing. `high` searches twice more, is told that there is no further search, and
# answers.
_RETRIEVE_TURNS = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """Requests of one model, and their tokens."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Asked) -> Asked:
        return Asked(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class Load:
    """What one case asks of the root model and of the sub-model."""

    root: Asked
    sub: Asked = Asked()

    @property
    def calls(self) -> int:
        return self.root.calls + self.sub.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A question with what its answering depends on.

    `described` is what a first prompt of `rlm` says of the corpus; `documents` are the tokens of
    each document, or of all as one; `lines` those that are shown with numbers; `images` are sent
    with each prompt of the root model, at `image_tokens` in all.
    """

    question: str
    documents: Sequence[int]
    root: ModelFacts
    sub: ModelFacts
    limits: Limits
    described: str = ""
    lines: int = 0
    is_small: bool = False
    images: int = 0
    image_tokens: int = 0

    @property
    def corpus_tokens(self) -> int:
        return sum(self.documents)


@dataclass(frozen=True, slots=True)
class Workload:
    """The loads of the three cases by name, and sentences on what they rest on.

    `shortest` is the least that a call may take, where calls are of many sizes and those that
    limits leave no room for are passed over.
    """

    loads: Mapping[str, Load]
    assumptions: tuple[str, ...]
    shortest: Load | None = None


def workload(strategy: str, task: Task) -> Workload:
    """Return what a strategy, one of those that a run can take, makes of a task."""
    return _WORKLOADS[strategy](task)


def parts_of(tokens: Sequence[int], prompt: str, facts: ModelFacts, *, case: str = "likely") -> int:
    """Return in how many parts texts of so many tokens are sent beside `prompt`."""
    room = _room(facts, prompt)
    return sum(1 if each <= room else math.ceil(each / (room * _FILLED[case])) for each in tokens)


def shortest_call(tokens: Sequence[int], prompt: str, facts: ModelFacts) -> Load:
    """Return the least that a part of texts of so many tokens may take beside `prompt`."""
    room = _room(facts, prompt)
    # The last part of a text that is split may be of a few words.
    least_tokens = min((each if each <= room else 0 for each in tokens), default=0)
    return Load(Asked(), Asked(1, framed_tokens(prompt) + least_tokens, NOTE_TOKENS["low"]))


def framed_tokens(prompt: str) -> int:
    """Return what each part of a text is sent with."""
    return count_tokens(prompt) + _FRAME_TOKENS


def _room(facts: ModelFacts, prompt: str) -> int:
    """The tokens of text that fit a call beside its prompt and its reply."""
    window = facts.assumed_window
    reply = min(facts.max_output_tokens or CAP_TOKENS, CAP_TOKENS, int(window * REPLY_SHARE))
    return max(1, window - reply - framed_tokens(prompt))


def _rlm(task: Task) -> Workload:
    first_tokens = count_tokens(f"{load_profile('standard').system}\n{task.described}")
    turns = "/".join(str(min(h.turns, task.limits.iterations)) for h in HABITS.values())
    leaves = "/".join(str(h.sub_calls) for h in HABITS.values())
    return Workload(
        {name: _turns(habits, first_tokens, task) for name, habits in HABITS.items()},
        (
            _sizes_said(first_tokens, task),
            f"low/likely/high: {turns} turns, {leaves} sub-calls; high also has the whole corpus "
            "read once by sub-models, as far as --max-calls allows",
        ),
    )


def _direct(task: Task) -> Workload:
    shown_tokens = task.corpus_tokens + task.lines * TOKENS_A_LINE
    room = max(0, _room(task.root, task.question) - FRAME_TOKENS)
    fitting_tokens = min(shown_tokens, room)
    first_tokens = count_tokens(f"{load_prompt('direct').system}\n{task.question}") + fitting_tokens
    left_out = (
        "" if fitting_tokens == shown_tokens else ", of which the prompt holds the start alone"
    )
    return Workload(
        {name: _turns(habits, first_tokens, task) for name, habits in _ONE_PROMPT.items()},
        (_sizes_said(first_tokens, task) + left_out, _turns_said(task, _ONE_PROMPT)),
    )


def _retrieve(task: Task) -> Workload:
    most_tokens = SMALL_TOKENS if task.is_small else MOST_TOKENS
    budget_tokens = min(
        most_tokens, int(task.root.assumed_window * WINDOW_SHARE), task.corpus_tokens
    )
    prompt = load_prompt("retrieve_small" if task.is_small else "retrieve").system
    first_tokens = count_tokens(f"{prompt}\n{task.question}")
    habits_of = {
        **_ONE_PROMPT,
        "high": replace(
            _ONE_PROMPT["high"], turns=_RETRIEVE_TURNS, shown_tokens=budget_tokens // 2
        ),
    }
    shown = dict.fromkeys(CASES, budget_tokens) | {"low": 0}
    return Workload(
        {
            name: _turns(habits, first_tokens + shown[name], task)
            for name, habits in habits_of.items()
        },
        (
            f"the first prompt has about {first_tokens + budget_tokens:,} tokens, of which "
            f"passages are {budget_tokens:,} at most, the corpus {task.corpus_tokens:,}",
            f"{_turns_said(task, habits_of)}; low finds nothing, high searches again",
        ),
    )


def _map_reduce(task: Task) -> Workload:
    map_prompt = load_prompt("map").system + task.question
    parts = {name: parts_of(task.documents, map_prompt, task.sub, case=name) for name in CASES}
    loads = {name: _mapped(name, parts, framed_tokens(map_prompt), task) for name in CASES}
    sent = {name: load.sub.calls for name, load in loads.items()}
    cut = "" if sent == parts else f", of which --max-calls lets {_slashed(sent)} be sent"
    return Workload(
        loads,
        (
            f"{len(task.documents):,} documents of about {task.corpus_tokens:,} tokens are read, "
            f"low/likely/high: in {_slashed(parts)} parts that fit a window of "
            f"{task.sub.assumed_window:,} tokens{cut}, with notes of {_slashed(NOTE_TOKENS)} "
            "tokens",
            f"{_turns_said(task, _ONE_PROMPT)} with the notes, which are reduced first where they "
            f"do not fit a window of {task.root.assumed_window:,} tokens",
        ),
        shortest_call(task.documents, map_prompt, task.sub),
    )


_WORKLOADS: Mapping[str, Callable[[Task], Workload]] = {
    "rlm": _rlm,
    "direct": _direct,
    "retrieve": _retrieve,
    "map-reduce": _map_reduce,
}


def _turns(habits: Habits, first_tokens: int, task: Task, *, sent: int = 0) -> Load:
    """A root model's turns and leaf calls, after `sent` calls."""
    limits = task.limits
    turns = min(habits.turns, limits.iterations)
    first_tokens += task.image_tokens
    if limits.calls is not None:
        turns = max(1, min(turns, limits.calls - sent))
    # The prompt of each turn holds all turns before it.
    grown = habits.reply_tokens + habits.shown_tokens
    root = Asked(
        turns,
        turns * first_tokens + grown * turns * (turns - 1) // 2,
        turns * habits.reply_tokens,
    )
    sub_calls = habits.sub_calls + math.ceil(
        task.corpus_tokens * habits.share / (habits.prompt_tokens or 1)
    )
    if limits.calls is not None:
        sub_calls = max(0, min(sub_calls, limits.calls - turns))
    sub = Asked(sub_calls, sub_calls * habits.prompt_tokens, sub_calls * habits.answer_tokens)
    return Load(root, sub)


def _mapped(name: str, parts: Mapping[str, int], prompt_tokens: int, task: Task) -> Load:
    """Every part read by a sub-model, and the root model's answer from the notes."""
    calls = task.limits.calls
    sent, read_tokens = parts[name], task.corpus_tokens
    if calls is not None:
        # One call is kept for the answer. The fewer the parts, the more is in those that are sent.
        sent = min(sent, calls - 1)
        read_tokens = min(read_tokens, read_tokens * (calls - 1) // max(1, parts[_OPPOSITE[name]]))
    sub = Asked(sent, sent * prompt_tokens + read_tokens, sent * NOTE_TOKENS[name])
    reduction = load_prompt("reduce").system + task.question
    room = _room(task.root, reduction)
    left = None if calls is None else calls - 1 - sent
    reduced, notes_tokens = _reduced(name, sent, room, left)
    first_tokens = count_tokens(load_prompt("direct").system + reduction) + notes_tokens
    answered = _turns(_ONE_PROMPT[name], first_tokens, task, sent=sent + reduced.calls)
    return Load(reduced + answered.root, sub)


def _reduced(name: str, notes: int, room: int, left: int | None) -> tuple[Asked, int]:
    """Return the calls that reduce notes until they fit one prompt, and the tokens of that."""
    asked = Asked()
    note_tokens = min(NOTE_TOKENS[name], int(room * PARTIAL_SHARE)) + _LABEL_TOKENS
    while (tokens := notes * note_tokens) > room:
        groups = math.ceil(tokens / room)
        if groups >= notes or (left is not None and asked.calls + groups > left):
            return asked, room
        asked += Asked(groups, tokens + groups * _FRAME_TOKENS, groups * NOTE_TOKENS[name])
        notes = groups
    return asked, tokens


def _sizes_said(first_tokens: int, task: Task) -> str:
    return f"the first prompt has about {first_tokens:,} tokens, the corpus {task.corpus_tokens:,}"


def _turns_said(task: Task, habits_of: Mapping[str, Habits]) -> str:
    turns = "/".join(str(min(h.turns, task.limits.iterations)) for h in habits_of.values())
    return f"low/likely/high: {turns} turns of the root model"


def _slashed(figures: Mapping[str, int]) -> str:
    return "/".join(f"{figure:,}" for figure in figures.values())
