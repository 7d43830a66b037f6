"""The report: a table for each kind of question, in Markdown, and the ranks for a later run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.locate.rankers import FILES, OWN, WINDOWS
from benchmarks.locate.scores import Outcome, figures, ratio_error
from benchmarks.locate.snippets import Shown

Ranks = dict[str, dict[str, dict[str, int]]]


@dataclass(slots=True)
class Results:
    """Outcomes by kind and group of questions, then by ranker; what snippets showed, by kind."""

    outcomes: dict[tuple[str, str], dict[str, list[Outcome]]] = field(default_factory=dict)
    shown: dict[str, list[Shown]] = field(default_factory=dict)

    def add(self, kind: str, group: str, ranker: str, outcomes: Sequence[Outcome]) -> None:
        self.outcomes.setdefault((kind, group), {}).setdefault(ranker, []).extend(outcomes)

    def kinds(self) -> dict[str, dict[str, list[Outcome]]]:
        """Return the outcomes of each kind, all groups together."""
        joined: dict[str, dict[str, list[Outcome]]] = {}
        for (kind, _), of_ranker in self.outcomes.items():
            for ranker, outcomes in of_ranker.items():
                joined.setdefault(kind, {}).setdefault(ranker, []).extend(outcomes)
        return joined

    def ranks(self) -> Ranks:
        """Return the own search's rank for each question, by kind and group."""
        saved: Ranks = {}
        for (kind, group), of_ranker in self.outcomes.items():
            found = {outcome.name: outcome.rank for outcome in of_ranker.get(OWN, ())}
            saved.setdefault(kind, {})[group] = found
        return saved

    def compare(self, earlier: Ranks) -> None:
        """Add an earlier run's ranks as a ranker, where it was asked every question of a group."""
        for (kind, group), of_ranker in self.outcomes.items():
            ranks = earlier.get(kind, {}).get(group, {})
            names = [outcome.name for outcome in of_ranker.get(OWN, ())]
            if all(name in ranks for name in names):
                # Which files beside the first it found was not saved.
                of_ranker["earlier run"] = [Outcome(name, ranks[name], False) for name in names]


def markdown(results: Results) -> str:
    """Return the tables; ratios are of MRR, to the two baselines, with standard errors."""
    parts = [_table(kind, of_ranker) for kind, of_ranker in results.kinds().items()]
    return "\n\n".join([*parts, _groups(results), _snippets(results.shown)])


def _table(kind: str, of_ranker: Mapping[str, Sequence[Outcome]]) -> str:
    asked = len(next(iter(of_ranker.values())))
    lines = [
        f"## {kind}: {asked} questions",
        "",
        "| ranker | hit@1 | hit@5 | hit@10 | all@10 | MRR (s.e.) | rlm-rag's MRR, to this one's |",
        "|---|---|---|---|---|---|---|",
    ]
    for ranker, outcomes in of_ranker.items():
        found = figures(outcomes)
        everything = "" if ranker == "earlier run" else f"{found.all_10:.3f}"
        lines.append(
            f"| {ranker} | {found.hit_1:.3f} | {found.hit_5:.3f} | {found.hit_10:.3f} "
            f"| {everything} | {found.mrr:.3f} ({found.mrr_error:.3f}) "
            f"| {_ratio(of_ranker, ranker)} |"
        )
    return "\n".join(lines)


def _groups(results: Results) -> str:
    lines = [
        "## MRR by group",
        "",
        f"| kind | group | questions | {OWN} | {WINDOWS} | {FILES} | to windows | to files |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (kind, group), of_ranker in results.outcomes.items():
        cells = [
            f"{figures(of_ranker[name]).mrr:.3f}" if name in of_ranker else ""
            for name in (OWN, WINDOWS, FILES)
        ]
        ratios = [_ratio(of_ranker, name) for name in (WINDOWS, FILES)]
        asked = len(next(iter(of_ranker.values())))
        lines.append(f"| {kind} | {group} | {asked} | {' | '.join([*cells, *ratios])} |")
    return "\n".join(lines)


def _ratio(of_ranker: Mapping[str, Sequence[Outcome]], base: str) -> str:
    if base == OWN or base not in of_ranker or OWN not in of_ranker:
        return ""
    mean = figures(of_ranker[base]).mrr
    if not mean:
        return ""
    error = ratio_error(of_ranker[OWN], of_ranker[base])
    return f"{figures(of_ranker[OWN]).mrr / mean:.2f} ({error:.2f})"


def _snippets(shown: Mapping[str, Sequence[Shown]]) -> str:
    lines = [
        "## The first hit's snippet shows the gold line",
        "",
        "| kind | questions | the first hit holds it | its snippet | its first 400 characters |",
        "|---|---|---|---|---|",
    ]
    for kind, counts in shown.items():
        asked, first = sum(one.asked for one in counts), sum(one.first_hits for one in counts)
        snippet = sum(one.by_snippet for one in counts)
        beginning = sum(one.by_beginning for one in counts)
        shares = f"{_share(snippet, first)} | {_share(beginning, first)}"
        lines.append(f"| {kind} | {asked} | {first} | {shares} |")
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.0%})" if whole else "0"
