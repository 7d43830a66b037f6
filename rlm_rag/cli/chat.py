"""`rlm-rag chat`: one question after another, each with what the ones before left."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from rlm_rag.cli import failures, interrupts, streams
from rlm_rag.cli.answers import answered, show_answer
from rlm_rag.cli.asking import cache_option, settings_options
from rlm_rag.cli.chat_commands import completions, run_command
from rlm_rag.cli.completion import files
from rlm_rag.cli.exits import DONE, INTERRUPTED
from rlm_rag.cli.model_options import model_options
from rlm_rag.cli.offering import offering_options, take_schema
from rlm_rag.cli.options import STDIN, json_option, source_options
from rlm_rag.cli.prompt import Prompt
from rlm_rag.cli.questioner import Questioner, keep_last, take_questioner
from rlm_rag.errors import RlmRagError, UsageError

if TYPE_CHECKING:
    from rlm_rag.conversation import Conversation
    from rlm_rag.sessions import HeldSessions

GREETING = "Ask; /help lists what else there is, Ctrl-D ends."


@click.command()
@click.argument("sources", nargs=-1, shell_complete=files, metavar="SOURCE...")
@settings_options
@model_options
@offering_options
@click.option("--session", metavar="NAME", help="Go on with a session, or begin one; it is kept.")
@click.option("--continue", "goes_on", is_flag=True, help="Go on from the last question of SOURCE.")
@cache_option
@click.option("--no-trace", is_flag=True, help="Keep no record of the runs.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but the answers.")
@click.option("-v", "--verbose", is_flag=True, help="Show code and output as they run.")
@source_options
@json_option
def chat(
    sources: tuple[str, ...],
    session: str | None,
    goes_on: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Ask questions of SOURCE, a line each; variables, answers and sources stay.

    \b
        rlm-rag chat ./repo --model openai/gpt-5-mini
        rlm-rag chat --session refactoring
        printf 'What is retried?\\nHow often?\\n' | rlm-rag chat ./repo
    """
    _check(sources, session, goes_on)
    schema = take_schema(options)
    questioner = take_questioner(options, sources=sources)
    with (
        _sessions() as sessions,
        _conversation(questioner, sources, session, sessions, goes_on=goes_on) as conversation,
    ):
        return _Talk(
            questioner, conversation, sessions, schema=schema, session=session, as_json=as_json
        ).run()


def _check(sources: tuple[str, ...], session: str | None, goes_on: bool) -> None:
    if not sources and session is None:
        raise UsageError("a source is missing", hint="for example: rlm-rag chat ./repo")
    if STDIN in sources:
        raise UsageError("a chat reads its questions from standard input", hint="name a file")
    if session is not None and goes_on:
        raise UsageError("--session and --continue do not go together")


def _sessions() -> HeldSessions:
    from rlm_rag.sessions import HeldSessions

    return HeldSessions()


def _conversation(
    questioner: Questioner,
    sources: tuple[str, ...],
    session: str | None,
    sessions: HeldSessions,
    *,
    goes_on: bool,
) -> AbstractContextManager[Conversation]:
    if session is None:
        return questioner.conversation(sources, goes_on=goes_on)
    saved = sessions.load(session, begins=bool(sources))
    return questioner.session(sources, saved, session)


class _Talk:
    """Reads lines until there are no more; the exit code is that of the worst one of a pipe."""

    def __init__(
        self,
        questioner: Questioner,
        conversation: Conversation,
        sessions: HeldSessions,
        *,
        schema: dict[str, Any] | None,
        session: str | None,
        as_json: bool,
    ) -> None:
        from rlm_rag.trace.store import default_state_folder

        self._conversation = conversation
        self._sessions = sessions
        self._display = questioner.display
        self._schema = schema
        self._session = session
        self._keeps = questioner.settings.trace
        self._as_json = as_json
        self._quiet = questioner.quiet
        self._prompt = Prompt(
            lambda before, word: completions(conversation, before, word),
            history=default_state_folder() / "chat_history" if self._keeps else None,
        )
        self._worst = DONE

    def run(self) -> int:
        """Answer until the end, and return the exit code."""
        if self._prompt.is_terminal and not self._quiet:
            streams.note(GREETING)
        try:
            while self._turn():
                pass
        finally:
            self._prompt.close()
        return DONE if self._prompt.is_terminal else self._worst

    def _turn(self) -> bool:
        """Take one line; False where the chat is over."""
        try:
            line = self._prompt.read()
            if line is None:
                return False
            if line.startswith("/"):
                asked = self._conversation.exchanges
                goes_on = run_command(self._conversation, self._sessions, line.rstrip())
                if self._conversation.exchanges != asked:
                    self._keep()
                return goes_on
            if line.strip():
                self._answer(line.strip())
        except RlmRagError as error:
            code = failures.report(error, as_json=self._as_json)
            self._worst = max(self._worst, code)
        except KeyboardInterrupt:
            # At the prompt, or before the first turn; of a pipe nobody is there to go on.
            if not self._prompt.is_terminal or not interrupts.forget():
                raise
            streams.note("\ninterrupted; /quit or Ctrl-D ends the chat")
        return True

    def _answer(self, question: str) -> None:
        try:
            answer = answered(lambda: self._conversation.ask(question, schema=self._schema))
        finally:
            self._display.close()
        code = show_answer(
            answer,
            origin=self._conversation.sources[0][1],
            as_json=self._as_json,
            quiet=self._quiet,
        )
        self._keep()
        if code == INTERRUPTED and not (self._prompt.is_terminal and interrupts.forget()):
            raise KeyboardInterrupt
        self._worst = max(self._worst, code)

    def _keep(self) -> None:
        if self._session is not None:
            self._sessions.save(self._session, self._conversation.saved())
        if self._keeps:
            keep_last(self._conversation)
