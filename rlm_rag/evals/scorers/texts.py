"""How much of a right text an answer has: contained, equal, F1 of words, ROUGE-L, likeness."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from rlm_rag.evals.base import Response, Sample, Score

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")


def contained_fraction(text: str, references: Sequence[str]) -> float:
    """The share of the references that the text holds, whatever their case: RULER's
    `string_match_all` of one sample (scripts/eval/synthetic/constants.py), not times 100.
    """
    lowered = text.lower()
    return sum(reference.lower() in lowered for reference in references) / len(references)


def contained_any(text: str, references: Sequence[str]) -> float:
    """1.0 if the text holds a reference, whatever its case: RULER's `string_match_part`."""
    lowered = text.lower()
    return float(any(reference.lower() in lowered for reference in references))


def normalised(text: str) -> str:
    """Lower case, without ASCII punctuation, articles and spare white space: SQuAD's rule."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def stands_in(answer: str, text: str) -> bool:
    """Whether the words of an answer stand in a text in their order, both `normalised`.

    An answer of which that leaves nothing (`!=`, `A`) has to stand there as it is written, a word
    not within a longer one.
    """
    bare, written = normalised(answer), answer.strip()
    if bare or not written:
        return bool(bare) and f" {bare} " in f" {normalised(text)} "
    before, after = (r"\b" if written[at].isalpha() else "" for at in (0, -1))
    return re.search(f"{before}{re.escape(written)}{after}", text) is not None


def exact_match(text: str, references: Sequence[str]) -> float:
    """1.0 if the text is one of the references once both are `normalised`."""
    own = normalised(text)
    return float(any(own == normalised(reference) for reference in references))


def token_f1(text: str, references: Sequence[str]) -> float:
    """The best F1 of words over the references, all `normalised`: SQuAD's and InfiniteBench's.

    Two texts without words have 0, as in both programs' first version.
    """
    return max(_f1(normalised(text).split(), normalised(one).split()) for one in references)


def _f1(own: Sequence[str], reference: Sequence[str]) -> float:
    common = sum((Counter(own) & Counter(reference)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(own), common / len(reference)
    return 2 * precision * recall / (precision + recall)


def rouge_l(text: str, references: Sequence[str]) -> float:
    """The best ROUGE-L F-measure over the references: rouge_score's `rougeL` without a stemmer.

    Words are runs of ASCII letters and digits in lower case; what is written otherwise has none.
    """
    own = _words(text)
    return max(_rouge_l(own, _words(reference)) for reference in references)


def _words(text: str) -> list[str]:
    return [word for word in _NOT_ALPHANUMERIC.split(text.lower()) if word]


def _rouge_l(own: Sequence[str], reference: Sequence[str]) -> float:
    if not own or not reference:
        return 0.0
    common = _longest_common(own, reference)
    precision, recall = common / len(own), common / len(reference)
    return 2 * precision * recall / (precision + recall) if common else 0.0


def _longest_common(own: Sequence[str], reference: Sequence[str]) -> int:
    lengths = [0] * (len(reference) + 1)
    for word in own:
        diagonal = 0
        for at, other in enumerate(reference, 1):
            above = lengths[at]
            lengths[at] = diagonal + 1 if word == other else max(above, lengths[at - 1])
            diagonal = above
    return lengths[-1]


def prefixed_ratio(text: str, answer: str, prefix: str) -> float:
    """How alike two texts are after the prefix that both must begin with: MRCR's grade.

    0.0 where the text does not begin with it, else `SequenceMatcher(None, text, answer).ratio()`
    of what follows, with difflib's own rule on popular characters: openai/mrcr, `grade`.
    """
    if not text.startswith(prefix):
        return 0.0
    return SequenceMatcher(None, text.removeprefix(prefix), answer.removeprefix(prefix)).ratio()


def ruler_all(response: Response, sample: Sample) -> Score:
    """Score by `contained_fraction` of the gold texts; `parsed` are those that were found."""
    lowered = response.text.lower()
    found = [text for text in sample.gold if text.lower() in lowered]
    return Score(
        value=contained_fraction(response.text, sample.gold),
        parsed=found,
        parse_ok=bool(response.text.strip()),
    )


def ruler_any(response: Response, sample: Sample) -> Score:
    """Score by `contained_any` of the gold texts."""
    return Score(
        value=contained_any(response.text, sample.gold),
        parsed=response.text,
        parse_ok=bool(response.text.strip()),
        detail={"f1": token_f1(response.text, sample.gold)},
    )


def mrcr(response: Response, sample: Sample) -> Score:
    """Score by `prefixed_ratio`; gold is `{"answer", "prefix"}`."""
    prefix = sample.gold["prefix"]
    return Score(
        value=prefixed_ratio(response.text, sample.gold["answer"], prefix),
        parsed=response.text.removeprefix(prefix),
        parse_ok=response.text.startswith(prefix),
    )
