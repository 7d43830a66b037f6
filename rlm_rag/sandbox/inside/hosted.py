"""The functions of a block that its host serves where the caller of the run offers them."""

from __future__ import annotations

from rlm_rag.sandbox.inside.reply import Reply, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rlm_rag.sandbox.inside.services import Services


def hosted_functions(services: Services) -> tuple[Callable[..., Any], ...]:
    """Return them, each answering plainly where it is not offered."""

    def passed(name: str, /, *args: Any) -> Any:
        value, wrong = services.fetch(name, *args)
        if wrong is not None:
            return Reply.failed(services.said(name, wrong))
        return Text(value) if isinstance(value, str) else value

    def todo(action: str = "list", item: Any = None) -> Text:
        """Your list of things to do: todo("add", text), todo("done", n), todo()."""
        found: Text = passed("todo", action, item)
        return found

    def advance_phase(name: str) -> Text:
        """Tell whoever watches what you do from here on."""
        found: Text = passed("advance_phase", name)
        return found

    def save_artifact(name: str, content: Any) -> Text:
        """Leave a file for the user: a plain name, and a text or JSON."""
        found: Text = passed("save_artifact", name, content)
        return found

    def ask_user_question(questions: Any) -> Any:
        """Ask the user: a text, {"question", "options"}, or a list of these for a list."""
        return passed("ask_user_question", questions)

    return todo, advance_phase, save_artifact, ask_user_question
