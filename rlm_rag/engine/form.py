"""The form that an answer must have: JSON that a schema accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rlm_rag.engine.form_check import faults_apart, has_patterns
from rlm_rag.errors import UsageError

MAX_SCHEMA_CHARS = 100_000
MAX_TEXT_CHARS = 200_000
"""A longer answer is not checked: what a schema asks can take time in the square of its length."""
MAX_FAULTS_SHOWN = 8
MAX_FAULT_CHARS = 300
MENDINGS = 2
"""How often an answer that does not fit is given back to the model."""

_FENCED = re.compile(r"\s*(`{3,}|~{3,})[ \t]*\w*[ \t]*\n(.*?)\n?[ \t]*\1\s*", re.DOTALL)
_TOO_DEEP = "it is nested too deeply to be checked"

Schema: TypeAlias = "Mapping[str, Any] | type[Any]"
"""A JSON schema as a dict, or a pydantic model class."""


class Unfit(Exception):
    """A text is not of the form; the message says why, for the model that wrote it."""


@dataclass(frozen=True, slots=True)
class Form:
    """What a schema asks of an answer; `model` is the pydantic model that it came from."""

    schema: Mapping[str, Any]
    model: Any = None

    @property
    def instruction(self) -> str:
        """What a model is told to answer with."""
        return (
            "The answer's text must be JSON alone, no sentence around it, that this JSON schema "
            f"accepts; citations stand within its strings:\n{json.dumps(self.schema)}"
        )

    def read(self, text: str) -> Any:
        """Return what a text holds: JSON data, or the pydantic model made of it.

        Raises:
            Unfit: it is no JSON, or not of the schema.
        """
        value = self._parsed(text)
        faults = list(self._faults(value))
        if faults:
            more = len(faults) - MAX_FAULTS_SHOWN
            shown = faults[:MAX_FAULTS_SHOWN] + ([f"and {more} more"] if more > 0 else [])
            raise Unfit("\n".join(f"- {fault}" for fault in shown))
        return self._as_model(value)

    def fault(self, text: str) -> str | None:
        """Return what is wrong with a text, None where it fits."""
        try:
            self.read(text)
        except Unfit as unfit:
            return str(unfit)
        return None

    def _parsed(self, text: str) -> Any:
        if len(text) > MAX_TEXT_CHARS:
            raise Unfit(f"- it has {len(text):,} characters, of at most {MAX_TEXT_CHARS:,}")
        try:
            return json.loads(bare(text), parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise Unfit(f"- it is not JSON: {error}") from error

    def _faults(self, value: Any) -> Iterator[str]:
        apart = has_patterns(self.schema)
        return faults_apart(self.schema, value) if apart else faults_of(self.schema, value)

    def _as_model(self, value: Any) -> Any:
        if self.model is None:
            return value
        try:
            return self.model.model_validate(value)
        except ValueError as error:
            raise Unfit(f"- {str(error)[: MAX_FAULTS_SHOWN * MAX_FAULT_CHARS]}") from error


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
    if next(form._faults(None), "").endswith(_TOO_DEEP):
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


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
