"""Data checked against a schema with patterns, which may take for ever, in a process apart."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rlm_rag.child import command, environment

CHECK_SECONDS = 10.0
TOO_LONG = f"its patterns took longer than {CHECK_SECONDS:g} seconds to check"
_PATTERNS = ("pattern", "patternProperties")


def has_patterns(schema: Any) -> bool:
    """Whether a schema has regular expressions anywhere."""
    if isinstance(schema, Mapping):
        return any(key in _PATTERNS or has_patterns(value) for key, value in schema.items())
    return isinstance(schema, list) and any(map(has_patterns, schema))


def faults_apart(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    """Yield what is wrong with a value, as `faults_of`, or that it took too long."""
    try:
        done = subprocess.run(
            command("rlm_rag.engine.form_check"),
            input=json.dumps([schema, value]).encode(),
            capture_output=True,
            timeout=CHECK_SECONDS,
            env=environment(),
            check=True,
        )
    except subprocess.TimeoutExpired:
        yield f"the whole: {TOO_LONG}"
        return
    except subprocess.CalledProcessError as error:
        yield f"the whole: it could not be checked: {error}"
        return
    yield from json.loads(done.stdout)


def main() -> None:
    """Read a schema and a value from standard input, and write what is wrong."""
    from rlm_rag.engine.form import faults_of

    schema, value = json.load(sys.stdin)
    json.dump(list(faults_of(schema, value)), sys.stdout)
