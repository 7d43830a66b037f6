"""What stands in for a model that cannot be reached, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

from rlm_rag.engine.fallbacks import REST_SECONDS, Fallbacks


@dataclass(frozen=True)
class Named:
    name: str


A, B, C = Named("a"), Named("b"), Named("c")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_model_that_failed_is_tried_last_until_it_has_rested() -> None:
    clock = Clock()
    fallbacks: Fallbacks[Named] = Fallbacks(clock=clock)
    fallbacks.models = (B, C)
    assert list(fallbacks.for_call(A)) == [A, B, C]
    fallbacks.failed(A)
    assert list(fallbacks.for_call(A)) == [B, C, A]
    clock.now += REST_SECONDS
    assert list(fallbacks.for_call(A)) == [A, B, C]
    fallbacks.failed(A)
    fallbacks.answered(A)
    assert list(fallbacks.for_call(A)) == [A, B, C]


def test_a_fallback_that_is_asked_for_by_itself_comes_once() -> None:
    fallbacks: Fallbacks[Named] = Fallbacks()
    fallbacks.models = (B, C)
    assert list(fallbacks.for_call(B)) == [B, C]
