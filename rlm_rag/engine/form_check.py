"""Data checked against a schema whose checks may take for ever, in a process apart."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from rlm_rag.child import command, end_with_parent, environment

# What takes time beyond all measure of the data's length: patterns, and what compares all pairs.
_COSTLY = ("pattern", "patternProperties", "uniqueItems")


def is_costly(schema: Any) -> bool:
    """Whether a schema asks anywhere for a check that may never end."""
    if isinstance(schema, Mapping):
        return any(key in _COSTLY or is_costly(value) for key, value in schema.items())
    return isinstance(schema, list) and any(map(is_costly, schema))


async def faults_apart(schema: Mapping[str, Any], value: Any) -> Sequence[str]:
    """Return what is wrong with a value, as `faults_of`; cancelling ends the process too."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command("rlm_rag.engine.form_check"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment(),
        )
    except OSError as error:
        return [f"the whole: it could not be checked: {error.strerror or error}"]
    try:
        told, _ = await process.communicate(json.dumps([schema, value]).encode())
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        return [f"the whole: it could not be checked (exit status {process.returncode})"]
    faults: list[str] = json.loads(told)
    return faults


def main() -> None:
    """Read a schema and a value from standard input, and write what is wrong."""
    from rlm_rag.engine.form import faults_of

    end_with_parent()
    schema, value = json.load(sys.stdin)
    json.dump(list(faults_of(schema, value)), sys.stdout)
