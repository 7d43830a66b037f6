"""Data checked against a schema with patterns, which may take for ever, in a process apart."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from rlm_rag.child import command, environment

CHECK_SECONDS = 10.0
TOO_LONG = f"its patterns took longer than {CHECK_SECONDS:g} seconds to check"
_PATTERNS = ("pattern", "patternProperties")
# An answer is checked before it is accepted and when it is: a process takes some 0.3 s to start.
_REMEMBERED = 4


def has_patterns(schema: Any) -> bool:
    """Whether a schema has regular expressions anywhere."""
    if isinstance(schema, Mapping):
        return any(key in _PATTERNS or has_patterns(value) for key, value in schema.items())
    return isinstance(schema, list) and any(map(has_patterns, schema))


def faults_apart(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    """Yield what is wrong with a value, as `faults_of`, or that it took too long."""
    try:
        yield from _found(json.dumps([schema, value]))
    except subprocess.TimeoutExpired:
        yield f"the whole: {TOO_LONG}"
    except subprocess.CalledProcessError as error:
        yield f"the whole: it could not be checked: {error}"


@lru_cache(maxsize=_REMEMBERED)
def _found(asked: str) -> tuple[str, ...]:
    done = subprocess.run(
        command("rlm_rag.engine.form_check"),
        input=asked.encode(),
        capture_output=True,
        timeout=CHECK_SECONDS,
        env=environment(),
        check=True,
    )
    return tuple(json.loads(done.stdout))


def main() -> None:
    """Read a schema and a value from standard input, and write what is wrong."""
    from rlm_rag.engine.form import faults_of

    schema, value = json.load(sys.stdin)
    json.dump(list(faults_of(schema, value)), sys.stdout)
