"""Whether an answer repeats the function that was described: RepoQA's rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import exp, fsum, log

from rlm_rag.evals.base import Response, Sample, Score
from rlm_rag.indexes.grammars import Grammar, grammar_of

# The least likeness that RepoQA's own table counts as found.
THRESHOLD = 0.8
_MAX_ORDER = 4
# Of smoothing method 4, in nltk.
_SMOOTHING_K = 5
_BLOCK = re.compile(r"^```(?:\w+)?\s*\n(.*?)(?=^```)```", re.DOTALL | re.MULTILINE)
_FUNCTIONS = ("function", "method")
# A model's block; what is larger is compared whole.
_MAX_BYTES = 1 << 18
_QUERIES = {
    "python": "(function_definition name: (_)) @function",
    "java": "(method_declaration name: (_)) @function",
    "typescript": "(function_declaration name: (_)) @function",
    "rust": "(function_item name: (_)) @function",
    "cpp": "(function_definition declarator:"
    " (function_declarator declarator: (identifier))) @function",
    "go": "(function_declaration name: (_)) @function",
}


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

    In RepoQA's languages a function is what its queries find (repoqa/utility.py): methods are
    none in TypeScript, C++ and Go. In others it is what an outline shows as one.
    """
    text = text.strip()
    blocks: list[str] = _BLOCK.findall(text)
    grammar = grammar_of(f"answer{suffix}", b"")
    if grammar is not None:
        for data in (block.encode("utf-8", "replace") for block in blocks):
            found = _first_function(data, grammar) if len(data) <= _MAX_BYTES else b""
            if found:
                return found.decode("utf-8", "replace")
    return blocks[0] if blocks else text


def _first_function(data: bytes, grammar: Grammar) -> bytes:
    from tree_sitter import Parser, Query, QueryCursor

    from rlm_rag.indexes.tree import language_of, parsed

    query = _QUERIES.get(grammar.name)
    if query is None:
        lines = data.split(b"\n")
        found = (one for one in parsed(data, grammar) if one.kind in _FUNCTIONS)
        return next((b"\n".join(lines[one.line - 1 : one.end_line]) for one in found), b"")
    language = language_of(grammar)
    captures = QueryCursor(Query(language, query)).captures(Parser(language).parse(data).root_node)
    nodes = sorted(captures.get("function", ()), key=lambda node: node.start_byte)
    return data[nodes[0].start_byte : nodes[0].end_byte] if nodes else b""


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
