"""Every task by its name: one row each; others come by the entry point `rlm_rag.tasks`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Literal

from rlm_rag.errors import UsageError
from rlm_rag.evals.aggregation import AggregationTask
from rlm_rag.evals.base import Task
from rlm_rag.evals.beir import BeirTask
from rlm_rag.evals.browsecomp import BrowseCompTask
from rlm_rag.evals.claims import ClaimsTask
from rlm_rag.evals.documents_qa import DocumentsQaTask
from rlm_rag.evals.frequencies import common_words_task, frequent_words_task
from rlm_rag.evals.infinitebench import InfiniteBenchTask
from rlm_rag.evals.jsonl import OwnQuestions
from rlm_rag.evals.locate import LocateTask
from rlm_rag.evals.longbench import LongBenchTask
from rlm_rag.evals.mrcr import MrcrTask
from rlm_rag.evals.needles import NEEDLES, needle_task
from rlm_rag.evals.oolong import OolongTask
from rlm_rag.evals.pairs import PairsTask
from rlm_rag.evals.repoqa import RepoQaTask
from rlm_rag.evals.tracking import tracking_task

ENTRY_POINTS = "rlm_rag.tasks"

Needs = Literal["nothing", "data", "corpus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """A row of the table; `needs` says which of `TaskOptions` it cannot do without."""

    name: str
    summary: str
    needs: Needs
    create: Callable[[], Task]


def _ruler(name: str, summary: str) -> TaskEntry:
    full, kind = f"ruler:{name}", NEEDLES["niah_single_2" if name == "niah" else name]
    return _row(full, summary, "nothing", lambda: needle_task(full, kind))


def _infinitebench(kind: str, summary: str) -> TaskEntry:
    name = f"infinitebench:{kind}"
    return _row(name, summary, "nothing", lambda: InfiniteBenchTask(name, kind))


def _row(name: str, summary: str, needs: Needs, create: Callable[[], Task]) -> TaskEntry:
    return TaskEntry(name=name, summary=summary, needs=needs, create=create)


_TABLE = (
    _ruler("niah", "one number in prose: RULER's niah_single_2"),
    _ruler("niah_single_1", "one number in repeated noise"),
    _ruler("niah_single_2", "one number in prose"),
    _ruler("niah_single_3", "one UUID in prose"),
    _ruler("niah_multikey_1", "one of four keys in prose"),
    _ruler("niah_multikey_2", "one key among needles alone"),
    _ruler("niah_multikey_3", "one UUID's UUID among needles alone"),
    _ruler("niah_multivalue", "four values of one key in prose"),
    _ruler("niah_multiquery", "four keys at once in prose"),
    _row(
        "ruler:vt",
        "variables that hold a value through four assignments",
        "nothing",
        lambda: tracking_task("ruler:vt"),
    ),
    _row(
        "ruler:cwe",
        "the ten most common words of a list",
        "nothing",
        lambda: common_words_task("ruler:cwe"),
    ),
    _row(
        "ruler:fwe",
        "the three most frequent coded words of a text",
        "nothing",
        lambda: frequent_words_task("ruler:fwe"),
    ),
    _row("ruler:qa", "SQuAD, HotpotQA or other questions among documents", "data", DocumentsQaTask),
    _row(
        "oolong",
        "counts, comparisons, labels, users and dates over labelled records",
        "nothing",
        AggregationTask,
    ),
    _row(
        "oolong-pairs",
        "all pairs of users that meet one of 20 conditions, over the same records",
        "nothing",
        PairsTask,
    ),
    _row(
        "oolong:synth",
        "OOLONG's synthetic part, as published",
        "data",
        lambda: OolongTask("oolong:synth", "synth"),
    ),
    _row(
        "oolong:real",
        "OOLONG's real part, as published",
        "data",
        lambda: OolongTask("oolong:real", "real"),
    ),
    _infinitebench("passkey", "five digits in noise; with data, InfiniteBench's own"),
    _infinitebench("number_string", "ten digits in noise; with data, InfiniteBench's own"),
    _infinitebench("kv_retrieval", "a value of a JSON object; with data, InfiniteBench's own"),
    _row(
        "mrcr",
        "one of four alike answers of a conversation, word for word; with data, openai/mrcr",
        "nothing",
        MrcrTask,
    ),
    _row("longbench-v2", "four choices about a long text", "data", LongBenchTask),
    _row("nocha", "pairs of a true and a false claim about a book", "data", ClaimsTask),
    _row("browsecomp-plus", "hard questions over 100,000 web pages", "data", BrowseCompTask),
    _row("beir", "a BEIR folder: corpus, queries, relevant documents", "data", BeirTask),
    _row("locate", "an issue's text -> the files that its fix changed", "data", LocateTask),
    _row(
        "repoqa",
        "repeat the function of a description, in any repository; with data, RepoQA's own",
        "corpus",
        RepoQaTask,
    ),
)
TASKS = {entry.name: entry for entry in _TABLE}


def task_entries() -> list[TaskEntry]:
    """Return the rows of the table, then what is installed besides; one's own take no name twice.

    What is installed is not imported: its summary is the distribution that brings it.
    """
    found = list(TASKS.values())
    for point in entry_points(group=ENTRY_POINTS):
        if point.name not in TASKS:
            found.append(_entry(point))
    return found


def find_task(name: str) -> Task:
    """Return the task of a name, or that of a file of one's own questions (`./qa.jsonl`).

    Raises:
        UsageError: there is none, or what is installed under the name is no task.
    """
    if name in TASKS:
        return TASKS[name].create()
    for point in entry_points(group=ENTRY_POINTS, name=name):
        return _entry(point).create()
    if name.endswith((".jsonl", ".jsonl.gz", ".json")):
        return OwnQuestions(Path(name))
    raise UsageError(f"there is no task {name!r}", hint="rlm-rag eval list names them")


def _entry(point: EntryPoint) -> TaskEntry:
    by = point.dist.name if point.dist is not None else point.value
    return TaskEntry(
        name=point.name, summary=f"of {by}", needs="nothing", create=lambda: _installed(point)
    )


def _installed(point: EntryPoint) -> Task:
    try:
        found = point.load()
        # A class has the attributes of its instances, and so passes for one.
        made = isinstance(found, type) or not isinstance(found, Task)
        task = found() if made and callable(found) else found
    # What others installed may fail in any way.
    except Exception as error:
        raise UsageError(
            f"the installed task {point.name!r} cannot be loaded: {error}", hint=point.value
        ) from error
    if not isinstance(task, Task):
        raise UsageError(
            f"the installed task {point.name!r} is a {type(task).__name__}",
            hint="it must have name, scorer, ranking and samples: rlm_rag.evals.base.Task",
        )
    return task
