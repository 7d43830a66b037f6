"""What every test gets: no key and no setting of the machine's user, and loopback providers."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.servers.anthropic_messages import AnthropicMessagesServer
from tests.servers.openai_chat import OpenAiChatServer

_FOREIGN_PREFIXES = ("RLM_RAG_", "LITELLM_", "OPENAI_", "ANTHROPIC_", "AWS_", "AZURE_", "GOOGLE_")
_FOREIGN_ENDINGS = ("_API_KEY", "_API_BASE", "_API_TOKEN", "_AUTH_TOKEN", "_PROXY", "_proxy")
_OF_TERMINALS = ("COLUMNS", "FORCE_COLOR", "NO_COLOR")

# Two shared cores stall now and then; no database, so that a run leaves no files behind.
settings.register_profile("rlm-rag", deadline=None, database=None, max_examples=40)
settings.register_profile("deep", settings.get_profile("rlm-rag"), max_examples=300)
settings.load_profile("rlm-rag")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--deep", action="store_true", help="run the tests that take minutes too")
    parser.addoption("--live", action="store_true", help="run those of a real local model too")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--deep"):
        settings.load_profile("deep")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell's `&` did that, and every process of the tests would ignore interrupts too.
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Have no collector look again and again through all that was collected, which stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--deep"):
        return
    skip = pytest.mark.skip(reason="takes minutes: run with --deep")
    for item in items:
        if "deep" in item.keywords:
            item.add_marker(skip)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say aloud what no real model or cluster was asked, and no browser shown."""
    reasons = Counter(
        (report.nodeid.startswith("tests/live/"), report.longrepr[2].removeprefix("Skipped: "))
        for report in terminalreporter.stats.get("skipped", ())
    )
    for (is_live, reason), count in reasons.items():
        if "--deep" in reason:
            continue
        if is_live:
            terminalreporter.write_line(f"{count} tests of a real model were not run: {reason}")
        elif "Chromium" in reason:
            terminalreporter.write_line(f"{count} tests in a browser were not run: {reason}")
        elif "rlm-rag[ray]" in reason:
            terminalreporter.write_line(f"{count} tests of a Ray cluster were not run: {reason}")
        elif "rlm-rag[inspect]" in reason:
            terminalreporter.write_line(f"{count} tests of inspect_ai were not run: {reason}")


@pytest.fixture(scope="session", autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Neither keys, settings nor caches of whoever runs the tests, here or in child processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        for name in list(os.environ):
            foreign = name.startswith(_FOREIGN_PREFIXES) or name.endswith(_FOREIGN_ENDINGS)
            if foreign or name in _OF_TERMINALS:
                patch.delenv(name)
        yield


@pytest.fixture
def openai_server() -> Iterator[OpenAiChatServer]:
    """A server of OpenAI's protocol; assign its `script`, give its `api_base`."""
    with OpenAiChatServer() as server:
        yield server


@pytest.fixture
def anthropic_server() -> Iterator[AnthropicMessagesServer]:
    """A server of Anthropic's protocol; assign its `script`, give its `api_base`."""
    with AnthropicMessagesServer() as server:
        yield server
