"""How well ranked paths match the right ones: NDCG, recall, Acc (all of them), hit, MRR."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import log2

from rlm_rag.evals.base import Response, Sample, Score
from rlm_rag.globs import without_part

# `path`, path:12-20, "1. path", "- path (because ...)": what stands around a path in a list.
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])?\s*")
_LINES = re.compile(r":\d+(?:[-–]\d+)?$")
_SUFFIX = re.compile(r"\.\w{1,8}(?:#\S+)?$")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_QUOTED = re.compile(r"[`\"'*]+([^`\"'*]+)[`\"'*]+")


def ndcg(ranked: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Normalised discounted cumulative gain of the first `k`: trec_eval's `ndcg_cut`, as in BEIR.

    The gain is the relevance itself, the discount log2(rank + 1); the ideal ranks all of `gains`.
    Relevance below 1 gains nothing. 0.0 where nothing is relevant.
    """
    found = sum(max(0.0, gains.get(path, 0)) / log2(at + 2) for at, path in enumerate(ranked[:k]))
    ideal = sorted((gain for gain in gains.values() if gain > 0), reverse=True)[:k]
    best = sum(gain / log2(at + 2) for at, gain in enumerate(ideal))
    return found / best if best else 0.0


def recall(ranked: Sequence[str], relevant: Set[str], k: int) -> float:
    """The share of the relevant ones that is among the first `k`; 0.0 where there is none."""
    return len(relevant & set(ranked[:k])) / len(relevant) if relevant else 0.0


def all_found(ranked: Sequence[str], relevant: Set[str], k: int) -> float:
    """Acc@k: 1.0 if every relevant one is among the first `k`, and there is one."""
    return float(bool(relevant) and relevant <= set(ranked[:k]))


def hit(ranked: Sequence[str], relevant: Set[str], k: int) -> float:
    """1.0 if one of the relevant ones is among the first `k`."""
    return float(not relevant.isdisjoint(ranked[:k]))


def reciprocal_rank(ranked: Sequence[str], relevant: Set[str], k: int = 100) -> float:
    """One over the rank of the first relevant one, 0.0 where none is among the first `k`."""
    return next((1 / at for at, path in enumerate(ranked[:k], 1) if path in relevant), 0.0)


def _none(_path: str, _sample: Sample) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RankingScorer:
    """Scores a ranking by the figure named `main`; all figures are in `detail`.

    Gold is `{path: relevance}` or a list of paths. Figures: `ndcg@10`, `recall@10`,
    `recall@100`, `acc@1`, `acc@5`, `acc@10`, `hit@1`, `hit@5`, `hit@10`, `mrr`. The ranking is
    `Response.ranked`, else the paths that the answer's text lists, else those that it cites.
    A part of a document (`a.pdf#page=3`) counts as the document unless it is gold itself.
    A path of a sample that `is_passed_over` holds no rank: the others move up.
    """

    main: str
    is_passed_over: Callable[[str, Sample], bool] = _none

    def __call__(self, response: Response, sample: Sample) -> Score:
        gains = _gains(sample.gold)
        ranked = response.ranked
        if ranked is None:
            has_blanks = any(" " in path for path in gains)
            ranked = listed_paths(response.text, has_blanks=has_blanks) or response.cited
        whole = (path if path in gains else without_part(path) for path in ranked)
        counted = tuple(
            path for path in dict.fromkeys(whole) if not self.is_passed_over(path, sample)
        )
        detail = figures(counted, gains)
        return Score(
            value=detail[self.main],
            parsed=list(counted[:10]),
            parse_ok=bool(counted),
            detail=detail,
        )


def figures(ranked: Sequence[str], gains: Mapping[str, float]) -> dict[str, float]:
    """Return every figure of a ranking of distinct paths, by name."""
    relevant = {path for path, gain in gains.items() if gain > 0}
    found = {"ndcg@10": ndcg(ranked, gains, 10), "mrr": reciprocal_rank(ranked, relevant)}
    found |= {f"recall@{k}": recall(ranked, relevant, k) for k in (10, 100)}
    found |= {f"acc@{k}": all_found(ranked, relevant, k) for k in (1, 5, 10)}
    found |= {f"hit@{k}": hit(ranked, relevant, k) for k in (1, 5, 10)}
    return found


def listed_paths(text: str, *, has_blanks: bool = False) -> tuple[str, ...]:
    """Return the paths that an answer lists, one a line, in their order, each once.

    A line is a path when it has no blank in it once its bullet, its quotes and its `:lines` are
    gone; of a line with quotes, the first quoted text of that kind is the path. What opens or
    closes a fence is none. With `has_blanks` what ends as the name of a file does is one, too.
    """
    found: dict[str, None] = {}
    for line in text.splitlines():
        if _FENCE.match(line):
            continue
        bare = _BULLET.sub("", line, count=1).strip()
        candidates = [*_QUOTED.findall(bare), bare.rstrip(".,;")]
        paths = (_LINES.sub("", candidate) for candidate in candidates)
        path = next((one for one in paths if _is_path(one, has_blanks=has_blanks)), None)
        if path is not None:
            found[path] = None
    return tuple(found)


def _is_path(text: str, *, has_blanks: bool) -> bool:
    if has_blanks and _SUFFIX.search(text):
        return True
    return bool(text) and not re.search(r"\s", text)


def _gains(gold: object) -> Mapping[str, float]:
    if isinstance(gold, Mapping):
        return gold
    assert isinstance(gold, Sequence)
    return dict.fromkeys(gold, 1.0)
