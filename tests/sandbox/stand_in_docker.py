"""Plays `docker` with bubblewrap: `run` starts what it is told with its binds, `rm` kills it.

It keeps each container's process id, and the last command line, beside itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

HERE = Path(__file__).parent
FLAGS = ("--interactive", "--rm", "--read-only")


def run(arguments: list[str]) -> None:
    (HERE / "last.json").write_text(json.dumps(arguments))
    options: dict[str, list[str]] = {}
    at = 0
    while arguments[at].startswith("--"):
        width = 1 if arguments[at] in FLAGS else 2
        options.setdefault(arguments[at], []).append("".join(arguments[at + 1 : at + width]))
        at += width
    image, *command = arguments[at:]
    if image == "missing":
        sys.exit("Unable to find image 'missing' locally")
    python = os.path.realpath(sys.executable)
    bwrap = ["bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--clearenv"]
    bwrap += ["--as-pid-1", "--unshare-user", "--uid", "65534", "--gid", "65534"]
    for folder in ("/usr", "/lib", "/lib64", str(Path(python).parents[1])):
        if Path(folder).exists():
            bwrap += ["--ro-bind", folder, folder]
    for device in ("/dev/null", "/dev/urandom", "/dev/random"):
        bwrap += ["--dev-bind", device, device]
    for mount in options["--mount"]:
        fields = dict(field.partition("=")[::2] for field in mount.split(","))
        bwrap += ["--ro-bind", fields["src"], fields["dst"]]
    for variable in options["--env"]:
        bwrap += ["--setenv", *variable.split("=", 1)]
    bwrap += ["--tmpfs", options["--workdir"][0], "--chdir", options["--workdir"][0]]
    bwrap += ["--remount-ro", "/", python if command[0] == "python3" else command[0], *command[1:]]
    # A session of its own, as a container is not the client's child.
    child = os.fork()
    if child == 0:
        os.setsid()
        os.execvp(bwrap[0], bwrap)
    (HERE / options["--name"][0]).write_text(str(child))
    signal.signal(signal.SIGINT, lambda *_: interrupt(child))
    while True:
        try:
            _, status = os.waitpid(child, 0)
            sys.exit(os.waitstatus_to_exitcode(status) & 255)
        except InterruptedError:
            continue


def interrupt(child: int) -> None:
    for inside in Path(f"/proc/{child}/task/{child}/children").read_text().split():
        os.kill(int(inside), signal.SIGINT)


def remove(name: str) -> None:
    record = HERE / name
    if record.exists():
        child = int(record.read_text())
        for number in (
            [
                *Path(f"/proc/{child}/task/{child}/children").read_text().split(),
                str(child),
            ]
            if Path(f"/proc/{child}").exists()
            else []
        ):
            os.kill(int(number), signal.SIGKILL)
        record.unlink()


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2:])
    elif sys.argv[1] == "rm":
        remove(sys.argv[3])
