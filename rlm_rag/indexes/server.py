"""The index process: answers requests, one line of JSON each, from stdin to stdout.

It is trusted, and ends when its stdin does, whatever it is doing.
"""

from __future__ import annotations

import queue
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rlm_rag.child import end_with_parent, hand_over_lines, private_streams
from rlm_rag.errors import RlmRagError
from rlm_rag.indexes.answering import Answerer
from rlm_rag.indexes.requests import AnyRequest, Result
from rlm_rag.indexes.wire import decode_request, encode_failure, encode_progress, encode_result

if TYPE_CHECKING:
    from rlm_rag.indexes.index import Progress

# How long a request may have to wait for what is done between requests.
_STEP_SECONDS = 0.1


class Answers(Protocol):
    """What a process serves."""

    def answer(self, request: AnyRequest) -> Result:
        """Answer one request.

        Raises:
            RlmRagError: it cannot be answered.
        """
        ...

    def go_on(self, seconds: float) -> bool:
        """Go on with what requests left; return whether there is more.

        Raises:
            OSError: it cannot be gone on with.
        """
        ...


def main(packed_path: str, index_folder: str = "", origin: str = "") -> None:
    """Serve one packed corpus until stdin ends; without `index_folder`, index in memory."""
    serve(
        lambda told: Answerer.open(
            Path(packed_path),
            index_folder=Path(index_folder) if index_folder else None,
            origin=origin,
            on_progress=told,
        )
    )


def serve(
    opened: Callable[[Progress], Answers], at_end: Callable[[], object] | None = None
) -> None:
    """Answer the requests on stdin until it ends, by what is opened at the first of them.

    What is opened may tell, while it works on a request, how far it is. `at_end` is called at
    the end, before the process ends.
    """
    requests, replies = private_streams()
    # The host decides what an interrupt means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=hand_over_lines, args=(requests, lines, at_end), daemon=True).start()
    answers: Answers | None = None

    def told(done: int, total: int) -> None:
        replies.write(encode_progress(done, total))
        replies.flush()

    while True:
        line = next_request(lines, answers)
        number, request = decode_request(line)
        try:
            answers = answers or opened(told)
            reply = encode_result(number, answers.answer(request))
        except RlmRagError as error:
            reply = encode_failure(number, error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - one request's failure is that request's alone
            what = f"{type(request).__name__} failed: {type(error).__name__}: {error}"
            reply = encode_failure(number, what, None)
        replies.write(reply)
        replies.flush()


def next_request(lines: queue.SimpleQueue[bytes], answers: Answers | None) -> bytes:
    """Return the next request; until one comes, go on with what the last ones left."""
    try:
        while lines.empty() and answers is not None and answers.go_on(_STEP_SECONDS):
            continue
    except OSError:
        # A request that needs it meets it again, and can tell of it.
        return lines.get()
    return lines.get()


if __name__ == "__main__":
    main(*sys.argv[1:])
