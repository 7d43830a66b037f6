"""What a block passes to a service is held against its signature."""

from __future__ import annotations

from typing import Any

import pytest

from rlm_rag.engine.arguments import bind
from rlm_rag.engine.caller import Caller
from rlm_rag.sandbox.session import ServiceError

CALLER = Caller(1, 1)


async def serve(text: str, count: int = 1, wait: float | None = None, *, caller: Caller) -> Any:
    return text, count, wait, caller


def test_arguments_come_by_place_or_name_with_defaults_and_the_hosts_own() -> None:
    assert bind("f", ["a"], {"wait": 2}, serve, caller=CALLER) == {
        "text": "a",
        "count": 1,
        "wait": 2,
        "caller": CALLER,
    }


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ([], {}),
        (["a", 1, None, "more"], {}),
        ([7], {}),
        (["a", True], {}),
        (["a", 1.5], {}),
        (["a"], {"wait": "soon"}),
        (["a"], {"wait": True}),
        (["a"], {"caller": "mine"}),
        (["a"], {"text": "b"}),
        (["a"], {"unknown": 1}),
    ],
)
def test_what_does_not_fit_is_refused_and_the_hosts_own_cannot_be_given(
    args: list[Any], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(ServiceError) as refused:
        bind("f", args, kwargs, serve, caller=CALLER)
    assert refused.value.message.startswith("f: ")
