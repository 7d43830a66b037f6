"""`python -m benchmarks.small`: sixty questions of a small model, by several systems."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.environment import compiled
from benchmarks.small.report import listing, table
from benchmarks.small.running import SYSTEMS, Plan, folders_below, run
from benchmarks.small.tasks import GROUPS, SETS, found_by_evals
from rlm_rag.errors import RlmRagError
from rlm_rag.evals.config import Models
from rlm_rag.evals.runner import score_again


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        with found_by_evals():
            return int(options.do(options))
    except RlmRagError as error:
        print(f"{error.message}\n{error.hint or ''}".strip(), file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small", description=__doc__)
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run", help="ask what is left to be asked")
    running.add_argument("--out", type=Path, required=True, help="what was asked lies here")
    running.add_argument("--model", required=True, help="local:FILE.gguf, or a name of --api-base")
    running.add_argument("--api-base", help="a server that runs already")
    running.add_argument(
        "--strategies", "--only", type=_names(SYSTEMS), default=SYSTEMS, help=", ".join(SYSTEMS)
    )
    running.add_argument("--groups", type=_names(GROUPS), default=GROUPS, help=", ".join(GROUPS))
    running.add_argument("--set", choices=tuple(SETS), default="sixty")
    running.add_argument("--limit", type=int, help="so many of each group and system now")
    running.add_argument("--seconds", type=float, default=180.0, help="for a question")
    running.add_argument("--profile", default="auto", help="of the prompts")
    running.add_argument("--temperature", type=float, help="the server's own if unset")
    running.add_argument("--peer-python", type=Path, help="the interpreter that has rlms")
    running.set_defaults(do=_run)
    for name, do, said in (
        ("report", _report, "the table, as Markdown"),
        ("score", _score, "score the answers by the rules of today"),
        ("show", _show, "questions and answers, those held out aside"),
    ):
        command = commands.add_parser(name, help=said)
        command.add_argument("folders", nargs="+", type=Path, metavar="DIR")
        command.set_defaults(do=do)
    commands.choices["show"].add_argument("--wrong", action="store_true", help="only the wrong")
    return parser


def _names(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    def parsed(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(text.split(",")))
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return names

    return parsed


def _run(options: argparse.Namespace) -> int:
    plan = Plan(
        out=options.out,
        systems=options.strategies,
        groups=options.groups,
        name=options.set,
        models=Models(
            model=options.model,
            api_base=options.api_base,
            profile=options.profile,
            temperature=options.temperature,
        ),
        seconds=options.seconds,
        limit=options.limit,
        peer_python=options.peer_python,
    )
    with compiled():
        return 0 if run(plan, say=lambda line: print(line, flush=True)) else 130


def _report(options: argparse.Namespace) -> int:
    print(table(folders_below(options.folders)), end="")
    return 0


def _score(options: argparse.Namespace) -> int:
    for folder in folders_below(options.folders):
        answers, changed = score_again(folder.path)
        print(f"{folder.path}: {answers} answers, {changed} scores changed")
    return 0


def _show(options: argparse.Namespace) -> int:
    for each in listing(folders_below(options.folders), wrong_only=options.wrong):
        print(each)
    return 0


if __name__ == "__main__":
    sys.exit(main())
