"""Measures how well search finds the right place: `python -m benchmarks.locate`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.locate.commits import commit_set
from benchmarks.locate.docstrings import docstring_set
from benchmarks.locate.issues import issue_sets
from benchmarks.locate.questions import QuestionSet
from benchmarks.locate.rankers import FILES, OWN, RANKERS
from benchmarks.locate.report import Results, markdown
from benchmarks.locate.scores import DEPTH, by_file, by_window
from benchmarks.locate.snippets import needle_set, shown
from rlm_rag.errors import RlmRagError

# So many windows that the first hundred files are among them.
_WINDOWS_PER_FILE = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the report on stdout, and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        earlier = json.loads(options.compare.read_text()) if options.compare else None
        results = Results()
        for asked in _sets(options):
            print(f"asking: {asked.kind}, {asked.group}", file=sys.stderr)
            _ask(asked, results, options.ranker or tuple(RANKERS))
        if earlier is not None:
            results.compare(earlier)
        if options.save:
            options.save.write_text(json.dumps(results.ranks(), indent=1))
    except (RlmRagError, OSError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(markdown(results))
    return 0


def _sets(options: argparse.Namespace) -> Iterator[QuestionSet]:
    chosen = options.only or ("issues", "docstrings", "commits", "needles")
    folder = Path(options.folder or sysconfig.get_path("stdlib"))
    if "issues" in chosen:
        yield from issue_sets(options.cache)
    if "docstrings" in chosen:
        yield docstring_set(folder, group=folder.name, count=options.questions)
    if "commits" in chosen:
        for repository in options.git:
            yield commit_set(repository, group=_name(repository), count=options.questions)
    if "needles" in chosen:
        base = docstring_set(folder, group=folder.name, count=options.questions)
        yield needle_set(base, count=options.questions // 2)


def _ask(asked: QuestionSet, results: Results, names: Sequence[str]) -> None:
    by_line = any(question.line is not None for question in asked.questions)
    for name in names:
        ranker = RANKERS[name](asked.documents)
        try:
            ranked = [
                ranker.rank(question.text, DEPTH * _WINDOWS_PER_FILE)
                for question in asked.questions
            ]
        finally:
            ranker.close()
        pairs = list(zip(asked.questions, ranked, strict=True))
        files = [by_file(one, places, tests_count=asked.tests_count) for one, places in pairs]
        if by_line:
            results.add(f"{asked.kind}, by file", asked.group, name, files)
        else:
            results.add(asked.kind, asked.group, name, files)
        if by_line and name != FILES:
            windows = [by_window(one, places) for one, places in pairs]
            results.add(f"{asked.kind}, by window", asked.group, name, windows)
        if by_line and name == OWN:
            results.shown.setdefault(asked.kind, []).append(shown(asked, ranked))


def _name(repository: Path) -> str:
    parts = [part for part in repository.resolve().parts if part not in ("repo", ".git")]
    return parts[-1].removesuffix(".git")


def _parser() -> argparse.ArgumentParser:
    default = Path(os.environ.get("LOCATE_CACHE") or Path(tempfile.gettempdir()) / "locate-sdists")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.locate", description=__doc__)
    kinds = ("issues", "docstrings", "commits", "needles")
    parser.add_argument("--only", action="append", choices=kinds, help="may be repeated")
    parser.add_argument("--ranker", action="append", choices=tuple(RANKERS), help="only this one")
    parser.add_argument(
        "--git", action="append", type=Path, default=[], metavar="PATH", help="a repository"
    )
    parser.add_argument("--folder", type=Path, help="documented Python; the standard library")
    parser.add_argument("--questions", type=int, default=300, help="of each generated set")
    parser.add_argument(
        "--cache", type=Path, default=default, help="where releases are kept: 140 MB"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the ranks as JSON")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="ranks of an earlier run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
