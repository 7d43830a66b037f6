"""The official rlms package, in an environment of its own, asked the same of the same server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from benchmarks.small.proxy import Proxy
from rlm_rag.corpus import Corpus
from rlm_rag.engine.limits import Limits
from rlm_rag.errors import UsageError
from rlm_rag.evals.config import Models
from rlm_rag.evals.systems import SystemAnswer
from rlm_rag.models.local import served_at

PYTHON_VARIABLE = "RLMS_PYTHON"
"""Names the interpreter that has rlms."""
OWN_END_SECONDS = 10.0
"""So long before it is killed it is told to end by itself, with the best answer that it has."""

_PEER = Path(__file__).with_name("peer_rlms.py")


class Rlms:
    """Runs `peer_rlms.py` for each question, and kills it when its time is over."""

    async def answer(
        self, corpus: Corpus, question: str, *, models: Models, limits: Limits
    ) -> SystemAnswer:
        """Return what rlms answered; what it fails with by itself is an answer without a text.

        Raises:
            UsageError: no interpreter is named, or no server.
        """
        python = os.environ.get(PYTHON_VARIABLE)
        if not python:
            raise UsageError("no interpreter has rlms", hint=f"--peer-python, or {PYTHON_VARIABLE}")
        upstream = await asyncio.to_thread(_server_of, models)
        seconds = limits.seconds or limits.call_seconds
        asked: dict[str, Any] = {
            "context": _context(corpus),
            "question": question,
            "seconds": max(1.0, seconds - OWN_END_SECONDS),
            "temperature": models.temperature,
        }
        with (
            tempfile.TemporaryDirectory(prefix="rlms-") as folder,
            closing(Proxy(upstream)) as proxy,
        ):
            file = Path(folder) / "asked.json"
            file.write_text(json.dumps(asked | {"api_base": proxy.api_base}))
            text, stop_reason = await _run([python, str(_PEER), str(file)], folder, seconds)
            return SystemAnswer(text=text, stop_reason=stop_reason, spent=proxy.spent)


def _server_of(models: Models) -> str:
    if models.model.startswith("local:"):
        return served_at(models.model)
    if models.api_base is None:
        raise UsageError("rlms needs a server", hint="--model local:FILE.gguf, or --api-base URL")
    return models.api_base


def _context(corpus: Corpus) -> str | dict[str, str]:
    """What rlms takes: one document as its text, several by their paths."""
    texts = {document.path: document.content for document in corpus}
    return next(iter(texts.values())) if len(texts) == 1 else texts


async def _run(command: list[str], folder: str, seconds: float) -> tuple[str, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), seconds)
    except TimeoutError:
        return "", "timeout"
    finally:
        # What its code started goes too.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    try:
        told = json.loads(out.splitlines()[-1])
        return str(told["text"] or ""), str(told["stop_reason"])
    except (ValueError, LookupError, TypeError):
        return "", "errors"
