"""Joining a Ray cluster, or starting one on this machine that no other can reach."""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rlm_rag.distributed.cluster import LOCAL, NO_RAY, RAY_HINT
from rlm_rag.errors import MissingExtraError, RetrievalError
from rlm_rag.scratch import ScratchFolder

# Nothing of what shards answer is large: their documents are sent in batches of 8 MB.
_OBJECT_STORE_BYTES = 200 << 20
_CONNECT_SECONDS = 5.0
_MAX_SAID_CHARS = 300
# A socket's path has 107 characters at most: Ray needs 63 of them, and the folder itself 30.
_MAX_FOLDER_CHARS = 14


def join(address: str) -> int:
    """Connect this process to the cluster at `HOST:PORT`, or to its own; return its nodes.

    One of its own listens on 127.0.0.1 alone and ends with this process. No process of Ray
    sends usage statistics.

    Raises:
        MissingExtraError: Ray is not installed.
        RetrievalError: there is no cluster there that can be joined.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if address == LOCAL or _is_loopback(address):
        # Ray takes 127.0.0.1 for an address of this machine's network, and listens on all of
        # them, whatever it is told; but not where it believes that it cannot form clusters.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    try:
        from ray import init, nodes
    except ImportError as error:
        raise MissingExtraError(NO_RAY, hint=RAY_HINT) from error
    # Its import sets the level. Of what is said there nothing is for the user of this package.
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        _connect(address, init)
    except (ConnectionError, ValueError, RuntimeError, OSError, TimeoutError) as error:
        cause = error.__cause__ or error
        # The last line of a text that holds a trace is what failed.
        said = (str(cause).strip() or type(cause).__name__).splitlines()[-1]
        hint = "start one with `ray start --head`, or say `local` for one of this machine"
        if "token" in said:
            hint = "set RAY_AUTH_MODE=token, with the cluster's token in ~/.ray/auth_token"
        raise RetrievalError(
            f"no Ray cluster could be joined at {address}: {said[:_MAX_SAID_CHARS]}", hint=hint
        ) from error
    return sum(1 for node in nodes() if node["Alive"])


def _connect(address: str, init: Callable[..., object]) -> None:
    quiet = {"logging_level": "ERROR", "log_to_driver": False, "configure_logging": False}
    if address != LOCAL:
        _check_listening(address)
        init(address=address, **quiet)
        return
    before = os.environ.get("PYTHONPATH")
    # Its processes find the modules that this one does.
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    try:
        init(
            _node_ip_address="127.0.0.1",
            include_dashboard=False,
            object_store_memory=_OBJECT_STORE_BYTES,
            _temp_dir=_temporary_folder(),
            **quiet,
        )
    finally:
        del os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before


def _check_listening(address: str) -> None:
    """Connect to an address, since Ray waits for minutes for a head that is not there.

    Raises:
        OSError: nobody listens there.
    """
    host, colon, port = address.rpartition(":")
    if colon:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()


def leave() -> None:
    """End what this process has on the cluster, and the cluster, where it is its own."""
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()
    if _scratch is not None:
        _scratch.close()


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


_scratch: ScratchFolder | None = None


def _temporary_folder() -> str:
    """Return a folder that goes with this process, of a path that Ray's sockets fit behind."""
    global _scratch
    if len(tempfile.gettempdir()) <= _MAX_FOLDER_CHARS:
        _scratch = ScratchFolder()
    else:
        _scratch = ScratchFolder(Path("/tmp"))
    return str(_scratch.path)
