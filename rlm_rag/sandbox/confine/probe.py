"""What a self-test tries from inside a layer: a script, given to a bare interpreter as text.

    probe HOST_PID CANARY_FILE TCP_PORT SOCKET_PATH ABSTRACT_NAME CORPUS

It prints one line `NAME blocked` or `NAME OPEN` for each attempt, and `NAME works` for what a
worker needs; `CORPUS` is the packed file as it should be seen. On Windows it tries what a job
holds against, under a limit of `JOB_MEMORY_BYTES`.
"""

from __future__ import annotations

import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

JOB_MEMORY_BYTES = 128 << 20


def _connect(family: int, address: object) -> None:
    client = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        client.settimeout(2)
        client.connect(address)  # type: ignore[arg-type]
    finally:
        client.close()


def _connect_to_path(path: str) -> None:
    # By its name alone, since a longer address would fail for its length.
    os.chdir(os.path.dirname(path))
    _connect(_socket.AF_UNIX, os.path.basename(path))


def _create(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    os.unlink(path)


def _write_to_device() -> None:
    # Its mode lets everybody write, so that Landlock alone is in the way.
    os.close(os.open("/dev/random", os.O_WRONLY))


def _start_process() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _start_program() -> None:
    import subprocess

    nowhere = subprocess.DEVNULL
    if subprocess.call([sys.executable, "-S", "-c", ""], stdin=nowhere, stdout=nowhere):
        raise OSError("it was ended")


def _take_memory() -> None:
    try:
        bytearray(2 * JOB_MEMORY_BYTES)
    except MemoryError as error:
        raise OSError("there is no more") from error


def _ask_about_networks() -> None:
    if not hasattr(_socket, "AF_NETLINK"):
        raise OSError("this system has no such sockets")
    _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW).close()


def _see_host(pid: int) -> None:
    # The host, and the worker, may each be the first process of its own namespace.
    if pid != 1 or os.getpid() != 1:
        os.kill(pid, 0)
    if os.getpid() == 1:
        raise ProcessLookupError


def attempts(arguments: list[str], system: str = sys.platform) -> dict[str, Callable[[], object]]:
    """Return what must fail inside a layer, by name; each raises where the layer holds.

    `system` is that inside.
    """
    if system == "win32":
        return {
            "start a process": _start_program,
            "take more memory than it may": _take_memory,
        }
    pid, canary, port, path, abstract, corpus = arguments
    folder = os.path.dirname(canary)
    return {
        "read a file of the host": lambda: open(canary).close(),
        "list a folder of the host": lambda: os.listdir(folder),
        "write beside a file of the host": lambda: _create(canary + ".written"),
        "write to the root": lambda: _create("/written"),
        "write beside the standard library": lambda: _create(os.__file__ + ".written"),
        "write to the corpus": lambda: open(corpus, "a").close(),
        "write to a device": _write_to_device,
        "start a process": _start_process,
        "connect to a TCP listener": lambda: _connect(_socket.AF_INET, ("127.0.0.1", int(port))),
        "connect to a socket by path": lambda: _connect_to_path(path),
        "connect to an abstract socket": lambda: _connect(_socket.AF_UNIX, "\0" + abstract),
        "ask the kernel about its networks": _ask_about_networks,
        "see the host's processes": lambda: _see_host(int(pid)),
        "use a privilege": lambda: os.chroot("/"),
    }


def _read_corpus(corpus: str) -> None:
    with open(corpus, "rb") as file:
        if file.read() != b"corpus":
            raise OSError("the corpus is not the one that was given")


def main(arguments: list[str]) -> None:
    """Try everything and print the outcomes."""
    for name, attempt in attempts(arguments).items():
        try:
            attempt()
            outcome = "OPEN"
        except OSError:
            outcome = "blocked"
        print(name, outcome, sep=": ")
    _read_corpus(arguments[-1])
    # A layer that cannot bound a scratch folder has none.
    if os.path.isdir(os.environ["TMPDIR"]):
        _create(os.environ["TMPDIR"] + "/written")
    print("the corpus and the scratch folder: work")


if __name__ == "__main__":
    main(sys.argv[1:])
