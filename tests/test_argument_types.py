"""What `RLM`, `load` and `ask` are given by keyword is of the type that they are declared with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

import rlm_rag
from rlm_rag import RLM, Limits, RlmRagError
from rlm_rag.api import LoadOptions
from rlm_rag.errors import UsageError
from rlm_rag.rlm import RlmOptions

DOCUMENTS = {"a.md": "a lost parcel\n"}


def called(*given: object) -> None:
    """What may be given where a function is expected."""


WRONG: tuple[Any, ...] = (
    *(5, 2.5, "sk-secret", b"sk-secret", object(), [5], (None,), {5: b""}, called),
)
FEWEST = 5


def refusals(give: Callable[[Any], object], name: str) -> int:
    """How many of the values are refused by the name of their keyword; none fails otherwise."""
    messages = []
    for value in WRONG:
        try:
            give(value)
        except RlmRagError as error:
            messages.append(error.message)
    said = [message for message in messages if message.startswith(f"{name} must be ")]
    assert "secret" not in "".join(said)
    return len(said)


# What a window is has a check of its own, in test_windows.
CHECKED = [name for name in RlmOptions.__annotations__ if not name.endswith("_window")]


@pytest.mark.parametrize("name", CHECKED)
def test_a_value_of_another_type_is_refused_by_the_name_of_its_keyword(name: str) -> None:
    options: dict[str, Any] = {}
    assert refusals(lambda value: RLM(**options | {name: value}), name) >= FEWEST


@pytest.mark.parametrize("name", LoadOptions.__annotations__)
def test_so_is_what_a_load_is_told(name: str) -> None:
    assert refusals(lambda value: rlm_rag.load(DOCUMENTS, **{name: value}), name) >= FEWEST


def test_what_is_expected_is_said_in_words() -> None:
    said = {
        "tools": (5, "tools must be a list of functions or Tools, not int"),
        "headers": (
            {"a": 5}, "headers must be a dict of str to str or None, not str to int in a dict"
        ),
        "fallback_models": ("gpt", "fallback_models must be a list of str, not str"),
        "temperature": (True, "temperature must be a number or None, not bool"),
        "cache": (5, "cache must be True or False or a path, not int"),
        "limits": (5, "limits must be a Limits or None, not int"),
        "models_at_depth": (
            [5], "models_at_depth must be a dict of whole numbers to str or None, not int in a list"
        ),
    }  # fmt: skip
    for name, (value, message) in said.items():
        with pytest.raises(UsageError) as raised:
            RLM(**{name: value})  # type: ignore[arg-type]
        assert raised.value.message == message
        assert raised.value.hint == "see help(rlm_rag.RLM)"


def test_images_are_a_list_of_paths() -> None:
    with rlm_rag.load(DOCUMENTS) as corpus:
        for images in (5, "a.png", [5]):
            with pytest.raises(UsageError, match=r"^images must be a list of str or paths"):
                rlm_rag.ask(corpus, "Where?", model="offline", trace=False, images=images)


def test_what_is_of_a_like_type_is_taken(tmp_path: Path) -> None:
    rlm = RLM(
        fallback_models={"offline"},
        artifacts=PurePosixPath("out"),
        cache=str(tmp_path / "cache"),
        limits=Limits(),
        temperature=0,
        tools=(called,),
    )
    assert rlm.options.names.fallbacks == ("offline",)
    with rlm_rag.load(DOCUMENTS, include="*.md", keep=None, max_files=None) as corpus:
        assert len(corpus) == 1


@pytest.mark.parametrize("value", [5, b"Where?", ["Where?"]])
def test_a_question_or_a_prompt_is_a_str(value: Any) -> None:
    rlm = RLM(model="offline", trace=False)
    with rlm_rag.load(DOCUMENTS) as corpus:
        with pytest.raises(UsageError, match=r"^question must be a str, not "):
            rlm.ask(corpus, value)
        with pytest.raises(UsageError, match=r"^question must be a str, not "):
            rlm.estimate(corpus, value)
        with pytest.raises(UsageError, match=r"^prompt must be a str, not "):
            rlm.map(corpus, value)
        with (
            rlm.conversation(corpus) as talk,
            pytest.raises(UsageError, match=r"^question must be a str, not "),
        ):
            talk.ask(value)
