"""How well ranked paths match the right ones: NDCG, recall, Acc (all of them), hit, MRR."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from math import log2

from rlm_rag.evals.base import Response, Sample, Score
from rlm_rag.globs import without_part
from rlm_rag.indexes.kinds import Kind, kind_of

# `path`, path:12-20, "1. path", "- path (because ...)": what stands around a path in a list.
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])?\s*")
_LINES = re.compile(r":\d+(?:[-–]\d+)?$")
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


@dataclass(frozen=True, slots=True)
class RankingScorer:
    """Scores a ranking by the figure named `main`; all figures are in `detail`.

    Gold is `{path: relevance}` or a list of paths. Figures: `ndcg@10`, `recall@10`,
    `recall@100`, `acc@1`, `acc@5`, `acc@10`, `hit@1`, `hit@5`, `hit@10`, `mrr`. The ranking is
    `Response.ranked`, else the paths that the answer's text lists, else those that it cites.
    A part of a document (`a.pdf#page=3`) counts as the document unless it is gold itself.
    `skip_tests` passes over files of tests that are not gold, as the rows of `locate` want it.
    """

    main: str
    skip_tests: bool = False

    def __call__(self, response: Response, sample: Sample) -> Score:
        gains = _gains(sample.gold)
        ranked = response.ranked
        if ranked is None:
            ranked = listed_paths(response.text) or response.cited
        whole = (path if path in gains else without_part(path) for path in ranked)
        counted = tuple(dict.fromkeys(whole))
        if self.skip_tests:
            counted = tuple(path for path in counted if path in gains or not _is_test(path))
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


def listed_paths(text: str) -> tuple[str, ...]:
    """Return the paths that an answer lists, one a line, in their order, each once.

    A line is a path when it has no blank in it once its bullet, its quotes and its `:lines` are
    gone; of a line with quotes, the first quoted word without a blank is the path. What opens or
    closes a fence is none.
    """
    found: dict[str, None] = {}
    for line in text.splitlines():
        if _FENCE.match(line):
            continue
        bare = _BULLET.sub("", line, count=1).strip()
        quoted = next((q for q in _QUOTED.findall(bare) if not re.search(r"\s", q)), None)
        path = _LINES.sub("", quoted or bare.rstrip(".,;"))
        if path and not re.search(r"\s", path):
            found[path] = None
    return tuple(found)


def _gains(gold: object) -> Mapping[str, float]:
    if isinstance(gold, Mapping):
        return gold
    assert isinstance(gold, Sequence)
    return dict.fromkeys(gold, 1.0)


def _is_test(path: str) -> bool:
    return kind_of(path) is Kind.TEST
