"""What the host does for blocks beside answering: lists, files, libraries, a person to ask."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

from rlm_rag.engine.added import PREFIX
from rlm_rag.engine.artifacts import Artifacts
from rlm_rag.engine.caller import Caller, Refused
from rlm_rag.engine.libraries import library_of
from rlm_rag.engine.offers import Offers, Question
from rlm_rag.engine.services import Handler
from rlm_rag.engine.threads import called, in_thread
from rlm_rag.engine.tool_calls import ToolCalls
from rlm_rag.engine.view import View
from rlm_rag.errors import RlmRagError
from rlm_rag.sandbox.calls import uncounted
from rlm_rag.sandbox.session import ServiceError, ServiceReply

MAX_TODOS = 200
MAX_TODO_CHARS = 500
MAX_PHASE_CHARS = 80
MAX_QUESTIONS = 10
MAX_QUESTION_CHARS = 2_000
MAX_OPTIONS = 20
MAX_OPTION_CHARS = 200
MAX_ANSWER_CHARS = 10_000


class HostSide:
    """What all RLMs of a run share of what the caller offers."""

    def __init__(self, offers: Offers) -> None:
        self.offers = offers
        self.artifacts = Artifacts(offers.artifacts)
        self.tool_calls = ToolCalls()
        # One person is asked one thing at a time, whoever asks.
        self.person = asyncio.Lock()


class Hosted:
    """The services of one RLM's blocks by its host; those that nobody offers are not there."""

    def __init__(self, side: HostSide, view: View) -> None:
        self._side = side
        self._view = view
        self._todos: list[tuple[str, bool]] = []

    def handlers(self) -> dict[str, Handler]:
        """What a block may call, by name."""
        offers = self._side.offers
        found: dict[str, Handler] = {"todo": self.todo, "advance_phase": self.advance_phase}
        if offers.artifacts is not None:
            found["save_artifact"] = self.save_artifact
        if offers.libraries:
            found["load_library"] = self.load_library
        if offers.ask_user is not None:
            found["ask_user_question"] = self.ask_user_question
        return found

    def again(self) -> dict[str, Handler]:
        """What is done once more for a call that the past has an answer to."""
        return {
            "todo": self.todo,
            "save_artifact": self._saved_again,
            "load_library": self._loaded_again,
        }

    def described(self) -> list[str]:
        """A line on each service that only some callers offer."""
        offers, lines = self._side.offers, []
        if offers.libraries:
            names = ", ".join(offers.libraries)
            lines.append(f"load_library(name): adds documents to context and search; of {names}")
        if offers.artifacts is not None:
            lines.append("save_artifact(name, content): leaves a file for the user")
        if offers.ask_user is not None:
            lines.append("ask_user_question(questions): asks the user; a str, or a list of them")
        return lines

    async def todo(self, action: str = "list", item: Any = None, *, caller: Caller) -> str:
        """Add an item, or mark one as done by its number; return the list as text."""
        if action == "add":
            self._add(item)
        elif action == "done":
            self._mark(item)
        elif action != "list":
            raise ServiceError("argument", "todo is todo('add', text), todo('done', n) or todo()")
        rows = enumerate(self._todos, 1)
        return "\n".join(f"{n}. [{'x' if done else ' '}] {text}" for n, (text, done) in rows)

    def _add(self, text: Any) -> None:
        if not isinstance(text, str) or not text.strip() or len(text) > MAX_TODO_CHARS:
            raise ServiceError(
                "argument", f"todo('add', text) takes a text of 1 to {MAX_TODO_CHARS} characters"
            )
        if len(self._todos) >= MAX_TODOS:
            raise ServiceError("limit", f"the list has {MAX_TODOS} items already")
        self._todos.append((" ".join(text.split()), False))

    def _mark(self, number: Any) -> None:
        if not isinstance(number, int) or not 1 <= number <= len(self._todos):
            raise ServiceError(
                "argument", f"todo('done', n) takes a number from 1 to {len(self._todos)}"
            )
        self._todos[number - 1] = (self._todos[number - 1][0], True)

    async def advance_phase(self, name: str, *, caller: Caller) -> str:
        """Say what the run does from here on; its trace has it, for whoever watches."""
        plain = " ".join(name.split())
        if not plain or len(plain) > MAX_PHASE_CHARS:
            raise ServiceError("argument", f"a phase has 1 to {MAX_PHASE_CHARS} characters")
        return plain

    async def save_artifact(self, name: str, content: Any, *, caller: Caller) -> str:
        """Write a file into the caller's folder; what is no text is written as JSON."""
        artifacts, text = self._side.artifacts, _as_text(content)
        try:
            artifacts.note(name, text)
            await in_thread(artifacts.write, name, text)
        except Refused as refused:
            raise ServiceError("argument", f"save_artifact: {refused}") from refused
        return f"saved {name} ({len(text):,} characters)"

    async def _saved_again(self, name: str, content: Any, *, caller: Caller) -> None:
        self._side.artifacts.note(name, _as_text(content))

    async def load_library(self, name: str, *, caller: Caller) -> ServiceReply:
        """Add the documents of a library under `added:/NAME/`; return them, path and content."""
        libraries = self._side.offers.libraries
        if name not in libraries:
            offered = ", ".join(libraries)
            raise ServiceError("argument", f"there is no library {name!r:.80}; of {offered}")
        folder = f"{PREFIX}{name}/"
        if any(path.startswith(folder) for path in self._view.added.documents):
            raise ServiceError("argument", f"{name} is loaded already, under {folder}")
        try:
            library = await in_thread(library_of, libraries[name], folder)
            self._view.added.check_room(library.documents)
        except RlmRagError as error:
            raise ServiceError("library", f"{name} cannot be loaded: {error.message}") from error
        except Refused as refused:
            raise ServiceError("limit", f"the library {name} is too large: {refused}") from refused
        for path, content in library.documents.items():
            self._view.added.take(path, content)
        return ServiceReply(list(map(list, library.documents.items())), library.note)

    async def _loaded_again(self, name: str, *, caller: Caller) -> None:
        # As it was then, whatever its source holds now.
        for path, content in caller.answered:
            self._view.added.take(path, content)

    async def ask_user_question(self, questions: Any, *, caller: Caller) -> Any:
        """Ask the person; a list is answered by a list. The wait is no time of the block."""
        asked = _questions(questions)
        try:
            async with asyncio.timeout(caller.seconds):
                with uncounted():
                    async with self._side.person:
                        answers = [await self._asked(question) for question in asked]
        except TimeoutError as error:
            raise ServiceError("user", f"nobody answered within {caller.seconds:g} s") from error
        return answers if isinstance(questions, list) else answers[0]

    async def _asked(self, question: Question) -> str:
        ask = self._side.offers.ask_user
        assert ask is not None
        try:
            answer = await called(partial(ask, question))
        except Exception as error:
            raise ServiceError("user", f"nobody answered: {type(error).__name__}") from error
        if not isinstance(answer, str):
            raise ServiceError("user", f"nobody answered: got a {type(answer).__name__}")
        return answer[:MAX_ANSWER_CHARS]


def _as_text(content: Any) -> str:
    return (
        content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)
    )


def _questions(given: Any) -> list[Question]:
    """Return what a block asks: a str, a dict of `question` and `options`, or a list of these."""
    items = given if isinstance(given, list) else [given]
    if not 1 <= len(items) <= MAX_QUESTIONS:
        raise ServiceError("argument", f"ask 1 to {MAX_QUESTIONS} questions at once")
    return [_question(item) for item in items]


def _question(item: Any) -> Question:
    text: Any = item
    options: Any = []
    if isinstance(item, dict):
        text, options = item.get("question"), item.get("options") or []
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_QUESTION_CHARS:
        raise ServiceError(
            "argument",
            f"a question is a text of 1 to {MAX_QUESTION_CHARS:,} characters, or a dict of "
            '"question" and "options"',
        )
    plain = isinstance(options, list) and all(
        isinstance(each, str) and len(each) <= MAX_OPTION_CHARS for each in options
    )
    if not plain or len(options) > MAX_OPTIONS:
        raise ServiceError(
            "argument",
            f"options are at most {MAX_OPTIONS} texts of {MAX_OPTION_CHARS} characters",
        )
    return Question(text, tuple(options))
