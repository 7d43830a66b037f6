"""What the offline model answers to `llm_query`: the sentences of the prompt that fit best."""

from __future__ import annotations

import math
import re
from collections import Counter

from rlm_rag.models.offline_clues import stems_of

MAX_PROMPT_CHARS = 400_000
MAX_SENTENCES = 5
MAX_SENTENCE_CHARS = 300
CHARS_A_TOKEN = 4

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\s*\n\s*|(?<=[\u3002\uff01\uff1f])")
_NOTICE = "No language model was used"


def extract(prompt: str, *, max_output_tokens: int | None = None) -> tuple[str, bool]:
    """Return the sentences of a prompt that best match its question, in their order.

    The question is the prompt's last sentence that ends in a question mark, else its first
    sentence. Of a prompt longer than `MAX_PROMPT_CHARS` the middle is not looked at. The second
    value says whether `max_output_tokens` (4 characters each) cut the text.
    """
    if len(prompt) > MAX_PROMPT_CHARS:
        half = MAX_PROMPT_CHARS // 2
        prompt = prompt[:half] + "\n" + prompt[-half:]
    sentences = [text for part in _SENTENCE_END.split(prompt) if (text := part.strip())]
    if not sentences:
        return f"{_NOTICE}, and the prompt is empty.", False
    asked = [at for at, text in enumerate(sentences) if text.endswith(("?", "\uff1f"))]
    question = asked[-1] if asked else 0
    best = _best(sentences, question)
    if best:
        lines = (sentences[at][:MAX_SENTENCE_CHARS] for at in best)
        text = f"{_NOTICE}: these sentences of the prompt fit best.\n" + "\n".join(lines)
    else:
        text = f"{_NOTICE}, and no sentence of the prompt shares a word with its question."
    most_chars = len(text) if max_output_tokens is None else max_output_tokens * CHARS_A_TOKEN
    return text[:most_chars], most_chars < len(text)


def _best(sentences: list[str], question: int) -> list[int]:
    wanted = stems_of(sentences[question][: MAX_SENTENCE_CHARS * 10])
    found = {
        at: shared
        for at, sentence in enumerate(sentences)
        if at != question and (shared := stems_of(sentence) & wanted)
    }
    holding = Counter(stem for shared in found.values() for stem in shared)
    worth = {
        at: sum(1 + math.log(len(sentences) / holding[stem]) for stem in sorted(shared))
        for at, shared in found.items()
    }
    return sorted(sorted(worth, key=lambda at: (-worth[at], at))[:MAX_SENTENCES])
