"""A headless Chromium of this machine, driven over its DevTools pipe."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# Nothing of it may look for the network, a profile or a graphics card.
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars", "--mute-audio"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"),
)
NAMED_KEYS = {
    "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
    "ArrowRight": 39, "ArrowDown": 40, "Tab": 9,
}  # fmt: skip


def program() -> str | None:
    """The Chromium of this machine, if it has one."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


needs_chromium = pytest.mark.skipif(
    program() is None, reason="no Chromium on this machine: apt-get install chromium"
)


class Page:
    """One tab. What its scripts raise, or its policy refuses, is in `complaints`."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = os.fdopen(reading, "rb", buffering=0)
        self._writing = os.fdopen(writing, "wb", buffering=0)
        self._held = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def attach(self) -> None:
        """Open the tab."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._writing.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def open(self, file: Path) -> float:
        """Open a page from a file; seconds until its script had done all that comes first."""
        self.complaints.clear()
        self.requests.clear()
        began = time.perf_counter()
        self.send("Page.navigate", url=file.resolve().as_uri())
        self.wait_for("document.documentElement?.dataset.ready")
        return time.perf_counter() - began

    def run(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 20.0) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({expression})"):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.01)

    def press(self, *keys: str) -> None:
        """Press keys one after another, as a person does: a name, or a character."""
        for key in keys:
            code = NAMED_KEYS.get(key, 0)
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            shared = {"key": key, "windowsVirtualKeyCode": code}
            self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
            self.send("Input.dispatchKeyEvent", type="keyUp", **shared)

    def appear(self, *, width: int = 1280, height: int = 800, scheme: str = "light") -> None:
        """Have a window of that size, on a system with that theme."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._held:
            piece = self._reading.read(1 << 16)
            assert piece, "the browser has ended"
            self._held += piece
        message, _, self._held = self._held.partition(b"\0")
        answer = json.loads(message)
        self._note(answer.get("method"), answer.get("params", {}))
        return answer

    def _note(self, method: str | None, parameters: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"])[:2000])
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"dialog: {parameters['message']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def close(self) -> None:
        self._reading.close()
        self._writing.close()


@contextmanager
def chromium() -> Iterator[Page]:
    """Start a browser with one tab, and end it with all that it started."""
    to_browser, commands = os.pipe()
    answers, from_browser = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [str(program()), *FLAGS, f"--user-data-dir={profile}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_as_3_and_4(to_browser, from_browser),
            pass_fds=(3, 4),
            start_new_session=True,
            env={"PATH": os.environ["PATH"], "HOME": profile},
        )
        os.close(to_browser)
        os.close(from_browser)
        page = Page(answers, commands)
        try:
            page.attach()
            yield page
        finally:
            page.close()
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _as_3_and_4(reading: int, writing: int) -> Callable[[], None]:
    """What gives a child the pipe at the two numbers at which Chromium looks for it."""

    def give() -> None:
        # First out of each other's way.
        high = [os.dup2(reading, 100), os.dup2(writing, 101)]
        for fd, number in zip(high, (3, 4), strict=True):
            os.dup2(fd, number)

    return give
