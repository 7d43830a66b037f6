"""Whether an answer repeats the function that was described: RepoQA's rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import exp, fsum, log

from rlm_rag.evals.base import Response, Sample, Score
from rlm_rag.indexes.definitions import definitions

# The least likeness that RepoQA's own table counts as found.
THRESHOLD = 0.8
_MAX_ORDER = 4
# Of smoothing method 4, in nltk.
_SMOOTHING_K = 5
_BLOCK = re.compile(r"^```(?:\w+)?\s*\n(.*?)(?=^```)```", re.DOTALL | re.MULTILINE)
_FUNCTIONS = ("function", "method")


def bleu(candidate: Sequence[str], reference: Sequence[str]) -> float:
    """BLEU-4 of one sentence with one reference, smoothed by method 4 of Chen and Cherry (2014).

    As nltk's `sentence_bleu` computes it, which RepoQA uses.
    """
    length = len(candidate)
    logs: list[float] = []
    misses = 0
    for order in range(1, _MAX_ORDER + 1):
        own, other = _grams(candidate, order), _grams(reference, order)
        matches, total = sum((own & other).values()), max(1, sum(own.values()))
        if matches:
            logs.append(log(matches / total))
        elif order == 1:
            return 0.0
        elif length > 1:
            misses += 1
            logs.append(log(log(length) / (2**misses * _SMOOTHING_K) / total))
    brevity = 1.0 if length > len(reference) else exp(1 - len(reference) / length)
    return brevity * exp(fsum(logs) / _MAX_ORDER)


def _grams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + order]) for at in range(len(words) - order + 1))


def likeness(candidate: str, reference: str) -> float:
    """BLEU over what white space parts: `compute_function_similarity` (repoqa/metric.py)."""
    return bleu(re.split(r"\s+", candidate.strip()), re.split(r"\s+", reference.strip()))


def answered_code(text: str, suffix: str) -> str:
    """Return the first function of the answer's fenced blocks, else its first block, else it all.

    Functions are found by this package's scanner, not by tree-sitter: a function goes on to the
    next definition of its depth, so that what follows it in a block is taken for a part of it.
    """
    text = text.strip()
    blocks: list[str] = _BLOCK.findall(text)
    for block in blocks:
        for one in definitions(f"answer{suffix}", block.encode("utf-8", "replace")):
            if one.kind in _FUNCTIONS:
                return "\n".join(block.split("\n")[one.line - 1 : one.end_line])
    return blocks[0] if blocks else text


def needle(response: Response, sample: Sample) -> Score:
    """1.0 if the answer is most like the needle among the functions, and at least 0.8 alike.

    Gold is `{"name", "suffix", "functions": [[name, code], ...]}`, the needles of a repository;
    of equally like ones the first counts.
    """
    code = answered_code(response.text, sample.gold["suffix"])
    best, best_name = 0.0, None
    for name, function in sample.gold["functions"]:
        alike = likeness(code, function) if code else 0.0
        if alike > best:
            best, best_name = alike, name
    is_best = best_name == sample.gold["name"]
    return Score(
        value=float(is_best and best >= THRESHOLD),
        parsed=best_name,
        parse_ok=bool(_BLOCK.search(response.text.strip())),
        detail={"likeness": best, "is_best": float(is_best)},
    )
