"""A shell for the commands on pages: as much of one as they need, and no process of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

_ENDS = ("&&", ";", "|")
_ASSIGNMENT = re.compile(r"([A-Z_]+)=(.*)", re.DOTALL)
_SUBSTITUTION = re.compile(r"\$\((.+)\)")


@dataclass(frozen=True, slots=True)
class Call:
    """One command as its program gets it."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    stdin: str


Program = Callable[[Call], CompletedProcess[str]]


@dataclass(slots=True)
class Shell:
    """Runs commands by the `programs` of those names; folder and exported variables last."""

    folder: Path
    environment: dict[str, str]
    programs: Mapping[str, Program] = field(default_factory=dict)

    def run(self, text: str) -> list[CompletedProcess[str]]:
        """Run a script up to the first command that fails, and return what each came to.

        A command whose output goes to another or to a file has it in the result as well.
        """
        ended: list[CompletedProcess[str]] = []
        for words, piped in commands_of(text):
            done = self._one(words, stdin=ended[-1].stdout if piped else "")
            ended.append(done)
            if done.returncode:
                break
        return ended

    def _one(self, words: list[str], *, stdin: str) -> CompletedProcess[str]:
        words, target = _redirected([self._expanded(word) for word in words])
        environment = dict(self.environment)
        while words and (assignment := _ASSIGNMENT.fullmatch(words[0])):
            environment[assignment[1]] = assignment[2]
            words = words[1:]
        if words[0] == "export":
            for word in words[1:]:
                name, _, value = word.partition("=")
                self.environment[name] = value
            return CompletedProcess(words, 0, "", "")
        if words[0] == "cd":
            self.folder /= words[1]
            return CompletedProcess(words, 0, "", "")
        if words[0] == "eval":
            return self._substituted(words[1])
        assert words[0] in self.programs, f"no page may call {words[0]}: nothing runs it"
        done = self.programs[words[0]](Call(tuple(words), environment, self.folder, stdin))
        if target:
            (self.folder / target).write_text(done.stdout, encoding="utf-8")
        return done

    def _substituted(self, word: str) -> CompletedProcess[str]:
        inner = _SUBSTITUTION.fullmatch(word)
        assert inner, f"eval {word}: nothing else than $(...) is evaluated"
        (done,) = self.run(inner[1])
        assert done.stdout, f"eval {word}: there is nothing to evaluate"
        return done

    def _expanded(self, word: str) -> str:
        return self.environment["HOME"] + word[1:] if word.startswith("~/") else word


def commands_of(text: str) -> Iterator[tuple[list[str], bool]]:
    """Yield the words of each command, and whether it reads what the one before wrote."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        piped = False
        for word in [*lexer, ";"]:
            if word not in _ENDS:
                words.append(word)
                continue
            if words:
                yield words, piped
            words, piped = [], word == "|"


def _redirected(words: Sequence[str]) -> tuple[list[str], str]:
    """The words without `> FILE`, and the file."""
    if ">" not in words:
        return list(words), ""
    at = words.index(">")
    assert at == len(words) - 2, "`> FILE` ends a command"
    return list(words[:at]), words[at + 1]
