"""Events as the parts of nodes: what was asked, said, printed and found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlm_rag.counts import counted
from rlm_rag.setting_table import WEAK_SANDBOXES
from rlm_rag.shown import printable, printable_line
from rlm_rag.trace.events import (
    Answered,
    BlockOutput,
    CallSent,
    Event,
    ReplyReceived,
    Retrieved,
    RunStarted,
    Served,
)
from rlm_rag.trace.view.nodes import TITLE_CHARS, Form, Part

ESTIMATE = "Estimate"

_MAX_VALUE_CHARS = 2_000


def title(text: str) -> str:
    """Return the beginning of a text as one line that can be shown."""
    line = " ".join(text[: 4 * TITLE_CHARS].split())
    return printable_line(line[: TITLE_CHARS - 1] + "…" if len(line) > TITLE_CHARS else line)


def text_part(label: str, text: str, form: Form = "text") -> Part:
    """A text as it was written."""
    return Part(label, form, printable(text))


def run_parts(event: RunStarted) -> Iterator[Part]:
    """The question, and what the run was started with."""
    yield text_part("Question", event.question, "markdown")
    facts = {
        "model": event.model,
        "sub-model": event.sub_model,
        "strategy": event.strategy,
        "sandbox": ": ".join(filter(None, (event.sandbox, WEAK_SANDBOXES.get(event.sandbox)))),
        "version": event.version,
        "prompts": event.prompts,
        "run": event.run,
        **({} if event.instead_of is None else {"goes on with": event.instead_of}),
    }
    yield Part("Set-up", "facts", _facts(facts))
    yield Part("Corpus", "facts", _facts(event.corpus))
    yield Part("Limits", "facts", _facts(event.limits))
    if event.options:
        yield Part("Options", "facts", _facts(event.options))


def message_parts(messages: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    """What a model was told, a part a message."""
    for message in messages:
        role = title(str(message.get("role", "")))
        yield text_part(f"Prompt, {role}", str(message.get("content", "")))


def call_parts(event: CallSent) -> Iterator[Part]:
    """What a sub-model was asked; a root model's prompt stands in its turn."""
    yield from message_parts(event.messages)
    if event.estimate:
        yield Part(ESTIMATE, "facts", _facts(event.estimate))


def asked(event: CallSent) -> str:
    """Return the beginning of what a call asks."""
    return title(str(event.messages[-1].get("content", ""))) if event.messages else ""


def reply_parts(event: ReplyReceived) -> Iterator[Part]:
    """What came back, and what it cost."""
    if event.error is not None:
        yield text_part("Error", event.error, "error")
    if event.text or event.error is None:
        yield text_part("Reply", event.text, "markdown")
    facts = {"finish reason": event.finish_reason, **event.usage}
    yield Part("Usage", "facts", _facts(facts))


def output_parts(event: BlockOutput) -> Iterator[Part]:
    """What a block printed, the value of its last expression, and its error."""
    if event.stdout:
        yield text_part("Output", event.stdout)
    if event.value:
        yield text_part("Value", event.value)
    if event.stderr:
        yield text_part("Standard error", event.stderr, "error")
    if event.error:
        yield text_part("Error", event.error, "error")
    if event.restarted:
        yield Part("Worker", "text", "The worker was restarted.")
    if not (event.stdout or event.value or event.stderr or event.error):
        yield Part("Output", "text", "(no output)")


def retrieval_parts(event: Retrieved) -> Iterator[Part]:
    """What was looked for, and the places or the text that were found."""
    asked = {name: value for name, value in event.arguments.items() if value is not None}
    yield Part("Asked", "facts", _facts(asked))
    if event.error is not None:
        yield text_part("Error", event.error, "error")
    if event.note:
        yield text_part("Note", event.note)
    hits = _hits(event.result)
    if hits is not None:
        yield Part("Hits", "hits", [_hit(each) for each in hits])
        counts = event.result.get("counts") if isinstance(event.result, Mapping) else None
        if isinstance(counts, Mapping):
            yield Part("Matches by file", "facts", _facts(counts))
    elif event.result is not None:
        yield Part("Result", "text", _shown(event.result))


def retrieval_title(event: Retrieved) -> str:
    """Say a look-up and what it found in a line."""
    what = next((value for value in event.arguments.values() if isinstance(value, str)), "")
    if event.error is not None:
        found = "error"
    elif (hits := _hits(event.result)) is not None:
        total = event.result.get("total") if isinstance(event.result, Mapping) else None
        found = counted(total if isinstance(total, int) else len(hits), "hit")
    else:
        found = f"{len(_shown(event.result)):,} characters"
    return f"{title(event.name)}({repr(title(what)) if what else ''}) → {found}"


def served_parts(event: Served) -> Iterator[Part]:
    """What the host answered to any other call of a block."""
    if event.note:
        yield text_part("Note", event.note)
    if event.error is not None:
        yield text_part("Error", event.error, "error")
    elif event.result is not None:
        yield Part("Result", "text", _shown(event.result))


def answer_parts(event: Answered) -> Iterator[Part]:
    """The answer and what the run as a whole came to."""
    yield text_part("Answer", event.text, "markdown")
    facts = {
        "stop reason": event.stop_reason,
        "turns": event.iterations,
        "seconds": event.seconds,
        **{name: value for name, value in event.usage.items() if name != "by_role"},
    }
    yield Part("Outcome", "facts", _facts(facts))


def fact_parts(label: str, event: Event, *names: str) -> Iterator[Part]:
    """Some fields of an event as they are."""
    yield Part(label, "facts", _facts({name: getattr(event, name) for name in names}))


def _facts(values: Mapping[str, Any]) -> list[list[str]]:
    """Names and values as text, values that are long cut."""
    return [[title(str(name)).replace("_", " "), _value(value)] for name, value in values.items()]


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    text = value if isinstance(value, str) else _json(value)
    if len(text) > _MAX_VALUE_CHARS:
        text = f"{text[:_MAX_VALUE_CHARS]}… ({len(text):,} characters)"
    return printable(text)


def _shown(value: Any) -> str:
    return printable(value if isinstance(value, str) else _json(value, indent=1))


def _json(value: Any, *, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except RecursionError:
        return "(nested too deeply to be shown)"


def _hits(result: Any) -> Sequence[Any] | None:
    """The hits of search, symbols and grep; None for a result of another form."""
    if isinstance(result, Mapping):
        result = result.get("hits")
    if isinstance(result, Sequence) and not isinstance(result, str):
        return result if all(isinstance(hit, Mapping) for hit in result) else None
    return None


def _hit(hit: Mapping[str, Any]) -> dict[str, Any]:
    """A hit's place, the words said of it, and its text."""
    text = next((hit[name] for name in ("snippet", "text", "signature") if name in hit), "")
    said = [f"{name} {_value(hit[name])}" for name in ("score", "kind", "scope") if hit.get(name)]
    line, end = hit.get("line"), hit.get("end_line")
    lines = f"{line}" if end in (None, line) else f"{line}-{end}"
    place = printable_line(f"{hit.get('path', '')}:{lines}")
    return {"place": place, "said": ", ".join(said), "text": printable(str(text))}
