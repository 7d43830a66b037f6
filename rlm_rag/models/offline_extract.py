"""What the offline model answers without a REPL: the lines or sentences that fit best."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from rlm_rag.models.offline_answer import place_of, why_not_cited
from rlm_rag.models.offline_clues import stems_of
from rlm_rag.models.offline_excerpts import LIKE_CITATION
from rlm_rag.models.offline_prompts import ShownLine, ShownLines, shown_lines

MAX_PROMPT_CHARS = 400_000
MAX_SENTENCES = 5
MAX_SENTENCE_CHARS = 300
CHARS_A_TOKEN = 4

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\s*\n\s*|(?<=[\u3002\uff01\uff1f])")
_NOTICE = "No language model was used"


def extract(prompt: str, *, max_output_tokens: int | None = None) -> tuple[str, bool]:
    """Return what of a prompt best matches its question, in its order.

    Of a prompt that shows documents or notes these are lines of theirs, with their places; of
    any other its sentences: the question is then the last one that ends in a question mark,
    else the first one. Of a prompt longer than `MAX_PROMPT_CHARS` the middle is not looked at.
    The second value says whether `max_output_tokens` (4 characters each) cut the text.
    """
    shown = shown_lines(prompt)
    text = _sentences(prompt) if shown is None else _passages(shown)
    most_chars = len(text) if max_output_tokens is None else max_output_tokens * CHARS_A_TOKEN
    return text[:most_chars], most_chars < len(text)


def _sentences(prompt: str) -> str:
    if len(prompt) > MAX_PROMPT_CHARS:
        half = MAX_PROMPT_CHARS // 2
        prompt = prompt[:half] + "\n" + prompt[-half:]
    sentences = [text for part in _SENTENCE_END.split(prompt) if (text := part.strip())]
    if not sentences:
        return f"{_NOTICE}, and the prompt is empty."
    asked = [at for at, text in enumerate(sentences) if text.endswith(("?", "\uff1f"))]
    question = asked[-1] if asked else 0
    best = _best([*sentences[:question], "", *sentences[question + 1 :]], sentences[question])
    if not best:
        return f"{_NOTICE}, and no sentence of the prompt shares a word with its question."
    lines = (sentences[at][:MAX_SENTENCE_CHARS] for at in best)
    return f"{_NOTICE}: these sentences of the prompt fit best.\n" + "\n".join(lines)


def _passages(shown: ShownLines) -> str:
    lines = _outer(shown.lines)
    best = [lines[at] for at in _best([line.text for line in lines], shown.question)]
    if not best:
        return shown.nothing
    parts = [f"{_NOTICE}: these lines match the question best.", *map(_passage, best)]
    why = why_not_cited({line.path for line in best if line.path is not None})
    return "\n\n".join([*parts, why] if why else parts)


def _outer(lines: Sequence[ShownLine]) -> Sequence[ShownLine]:
    """Return the lines of a long prompt's beginning and end."""
    ends = list(accumulate(len(line.text) for line in lines))
    half = MAX_PROMPT_CHARS // 2
    if not ends or ends[-1] <= 2 * half:
        return lines
    first = bisect_right(ends, half)
    return [*lines[:first], *lines[max(first, bisect_right(ends, ends[-1] - half)) :]]


def _passage(line: ShownLine) -> str:
    text = line.text.strip()[:MAX_SENTENCE_CHARS]
    if line.path is None:
        return text
    place = place_of(line.path, f"{line.number}")
    quoted = LIKE_CITATION.split(text, maxsplit=1)[0].strip()
    return f"{place}:\n> {quoted}" if quoted else place


def _best(texts: Sequence[str], question: str) -> list[int]:
    wanted = stems_of(question[: MAX_SENTENCE_CHARS * 10])
    found = {at: shared for at, text in enumerate(texts) if (shared := stems_of(text) & wanted)}
    holding = Counter(stem for shared in found.values() for stem in shared)
    worth = {
        at: sum(1 + math.log(len(texts) / holding[stem]) for stem in sorted(shared))
        for at, shared in found.items()
    }
    return sorted(sorted(worth, key=lambda at: (-worth[at], at))[:MAX_SENTENCES])
