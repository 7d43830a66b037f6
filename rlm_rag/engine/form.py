"""The form that an answer must have: JSON that a schema accepts."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rlm_rag.engine.form_check import faults_apart, is_costly
from rlm_rag.engine.threads import in_thread
from rlm_rag.errors import UsageError
from rlm_rag.sandbox.frames import finite, refuse_constant

MAX_SCHEMA_CHARS = 100_000
MAX_TEXT_CHARS = 200_000
"""A longer answer is not checked: what a schema asks can take time in the square of its length."""
MAX_FAULTS_SHOWN = 8
MAX_FAULT_CHARS = 300
MENDINGS = 2
"""How often an answer that does not fit is given back to the model."""

CHECK_SECONDS = 10.0
LEAST_CHECK_SECONDS = 2.0
"""An answer that comes at the end of a run's time is still checked: a process takes some 0.3 s to
start, and a second on a machine that has much to do."""
# An answer is checked before it is accepted and when it is.
_REMEMBERED = 4

_FENCED = re.compile(r"\s*(`{3,}|~{3,})[ \t]*\w*[ \t]*\n(.*?)\n?[ \t]*\1\s*", re.DOTALL)
_TOO_DEEP = "it is nested too deeply to be checked"

Schema: TypeAlias = "Mapping[str, Any] | type[Any]"
"""A JSON schema as a dict, or a pydantic model class."""


class Unfit(Exception):
    """A text is not of the form; the message says why, for the model that wrote it."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a text held, or what was wrong with it."""

    value: Any = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """What a schema asks of an answer; `model` is the pydantic model that it came from."""

    schema: Mapping[str, Any]
    model: Any = None
    _known: dict[str, _Outcome] = field(default_factory=dict, repr=False, compare=False)

    @property
    def instruction(self) -> str:
        """What a model is told to answer with."""
        return (
            "The answer's text must be JSON alone, no sentence around it, that this JSON schema "
            f"accepts; citations stand within its strings:\n{json.dumps(self.schema)}"
        )

    async def read(self, text: str, *, seconds_left: float | None = None) -> Any:
        """Return what a text holds: JSON data, or the pydantic model made of it.

        The schema is not checked on the event loop. `seconds_left` bound it where they are fewer
        than `CHECK_SECONDS`; what was found about the last few texts is known.

        Raises:
            Unfit: it is no JSON, or not of the schema, or that could not be told in time.
        """
        outcome = await self._outcome(text, seconds_left)
        if outcome.fault is not None:
            raise Unfit(outcome.fault)
        return outcome.value

    async def fault(self, text: str, *, seconds_left: float | None = None) -> str | None:
        """Return what is wrong with a text, None where it fits."""
        return (await self._outcome(text, seconds_left)).fault

    async def _outcome(self, text: str, seconds_left: float | None) -> _Outcome:
        outcome = self._known.get(text)
        if outcome is None:
            outcome = self._known[text] = await self._examined(text, _seconds(seconds_left))
            while len(self._known) > _REMEMBERED:
                del self._known[next(iter(self._known))]
        return outcome

    async def _examined(self, text: str, seconds: float) -> _Outcome:
        try:
            async with asyncio.timeout(seconds):
                value = self._parsed(text)
                _refuse(await self._faults(value))
                return _Outcome(await in_thread(self._as_model, value))
        except TimeoutError:
            return _Outcome(fault="- the whole: it took too long to check")
        except Unfit as unfit:
            return _Outcome(fault=str(unfit))

    def _parsed(self, text: str) -> Any:
        if len(text) > MAX_TEXT_CHARS:
            raise Unfit(f"- it has {len(text):,} characters, of at most {MAX_TEXT_CHARS:,}")
        try:
            return json.loads(bare(text), parse_float=finite, parse_constant=refuse_constant)
        except (ValueError, RecursionError) as error:
            raise Unfit(f"- it is not JSON: {error}") from error

    async def _faults(self, value: Any) -> Sequence[str]:
        if is_costly(self.schema):
            return await faults_apart(self.schema, value)
        faults: list[str] = await in_thread(lambda: list(faults_of(self.schema, value)))
        return faults

    def _as_model(self, value: Any) -> Any:
        if self.model is None:
            return value
        try:
            return self.model.model_validate(value)
        except ValueError as error:
            raise Unfit(f"- {str(error)[: MAX_FAULTS_SHOWN * MAX_FAULT_CHARS]}") from error


def _seconds(left: float | None) -> float:
    return CHECK_SECONDS if left is None else min(CHECK_SECONDS, max(LEAST_CHECK_SECONDS, left))


def _refuse(faults: Sequence[str]) -> None:
    """Raise Unfit, if there are any."""
    if not faults:
        return
    more = len(faults) - MAX_FAULTS_SHOWN
    shown = [*faults[:MAX_FAULTS_SHOWN], *([f"and {more} more"] if more > 0 else [])]
    raise Unfit("\n".join(f"- {fault}" for fault in shown))


def faults_of(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    """Yield what is wrong with a value, each with its place in it."""
    import jsonschema

    try:
        for error in _checker(schema).iter_errors(value):
            place = "/".join(map(str, error.absolute_path)) or "the whole"
            yield f"{place}: {error.message[:MAX_FAULT_CHARS]}"
    except jsonschema.exceptions._WrappedReferencingError as error:
        yield f"the whole: {error}"
    except RecursionError:
        yield f"the whole: {_TOO_DEEP}"


def _checker(schema: Mapping[str, Any]) -> Any:
    import jsonschema
    import referencing

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    # With a registry of its own nothing is fetched for a `$ref`.
    return kind(schema, registry=referencing.Registry())


def _check_references(schema: Mapping[str, Any]) -> None:
    """Raise if a `$ref` leads nowhere.

    Raises:
        UsageError: it does; nothing is fetched.
    """
    import referencing.exceptions

    resolver = _checker(schema)._resolver
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except referencing.exceptions.Unresolvable as error:
            raise UsageError(
                f"the schema refers to what it does not hold: {reference}",
                hint="nothing is fetched for a $ref; put it under $defs",
            ) from error


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def form_of(schema: Schema | None) -> Form | None:
    """Return the form that a caller asks for, None for none.

    Raises:
        UsageError: it is neither a JSON schema nor a pydantic model class.
    """
    if schema is None:
        return None
    model = schema if isinstance(schema, type) else None
    if model is not None:
        if not hasattr(model, "model_json_schema") or not hasattr(model, "model_validate"):
            raise UsageError(
                f"the class {model.__name__} is no pydantic model",
                hint="schema= takes a JSON schema as a dict, or a pydantic model class",
            )
        schema = model.model_json_schema()
    if not isinstance(schema, Mapping):
        raise UsageError(
            f"a schema is a dict or a pydantic model class, not {type(schema).__name__}"
        )
    form = Form(_checked(schema), model)
    _check_references(form.schema)
    # Of nothing, which no pattern is asked of: only the references are followed.
    if next(faults_of(form.schema, None), "").endswith(_TOO_DEEP):
        raise UsageError("the schema refers to itself without end", hint="see its $ref")
    return form


def _checked(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    import jsonschema

    try:
        text = json.dumps(schema, allow_nan=False)
        plain: dict[str, Any] = json.loads(text)
        kind = jsonschema.validators.validator_for(plain, default=jsonschema.Draft202012Validator)
        kind.check_schema(plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the schema is no JSON: {error}") from error
    except jsonschema.SchemaError as error:
        raise UsageError(f"the schema is no JSON schema: {error.message}") from error
    if len(text) > MAX_SCHEMA_CHARS:
        raise UsageError(
            f"the schema has {len(text):,} characters, of at most {MAX_SCHEMA_CHARS:,}",
            hint="it stands in the prompt of the root model",
        )
    return plain


def bare(text: str) -> str:
    """Return a text without the fence around all of it."""
    fenced = _FENCED.fullmatch(text)
    return fenced[2] if fenced else text.strip()


def prose_of(value: Any) -> str:
    """Return the strings of JSON data, a line each: where its citations stand."""
    return "\n".join(_strings(value))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
