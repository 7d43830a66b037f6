"""What asks questions by the options of a command line, and the conversations it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlm_rag.cli import streams
from rlm_rag.cli.asking import build_rlm, check_models, take_settings
from rlm_rag.cli.display import Display, choose_display
from rlm_rag.cli.model_options import ModelFlags, take_models
from rlm_rag.cli.offering import Offering, asker, take_offering
from rlm_rag.cli.options import Loading, opened, take_loading
from rlm_rag.distributed.cluster import LOCAL, Cluster
from rlm_rag.errors import SessionError, TraceError
from rlm_rag.settings import Settings

if TYPE_CHECKING:
    from rlm_rag.api import SearchableCorpus
    from rlm_rag.conversation import Conversation
    from rlm_rag.rlm import RLM
    from rlm_rag.sessions import HeldWith, SavedConversation


@dataclass(frozen=True, slots=True)
class Questioner:
    """What the options say: how sources are loaded, which models are asked and how.

    `ray` is the address of a cluster whose nodes do part of the work.
    """

    settings: Settings
    models: ModelFlags
    loading: Loading
    offering: Offering
    display: Display
    quiet: bool
    ray: str | None = None

    def corpus(self, sources: Sequence[str]) -> AbstractContextManager[SearchableCorpus]:
        """Load the sources, as `opened` does."""
        return opened(sources, quiet=self.quiet, **self.loading)

    def rlm(self, *, with_keys: bool = True) -> RLM:
        """Return what asks, its models checked.

        Raises:
            UsageError, ModelError: as `check_models`.
        """
        return self._rlm(self.settings, with_keys=with_keys)

    def _rlm(self, settings: Settings, *, with_keys: bool = True) -> RLM:
        check_models(settings, self.models, with_keys=with_keys)
        ask_user = asker(self.display, quiet=self.quiet)
        flags = {"ask_user": ask_user, "ray": self.ray, **self.models, **self.offering}
        return build_rlm(settings, self.display, **flags)

    @contextmanager
    def conversation(self, sources: Sequence[str], *, goes_on: bool) -> Iterator[Conversation]:
        """Begin a conversation, or go on with the last one that had the same sources.

        Raises:
            SessionError: there is none.
            RlmRagError: the sources cannot be loaded, or a model not be asked.
        """
        # A model that cannot be asked is told before the sources are read, where it is known.
        rlm = None if goes_on else self.rlm()
        with self.corpus(sources) as corpus:
            if rlm is not None:
                with rlm.converse(corpus, None) as conversation:
                    yield conversation
                return
            saved = _last_of(corpus)
            with self._going_on(saved, "the last question").converse(corpus, saved) as conversation:
                _say_warnings(conversation)
                yield conversation

    @contextmanager
    def session(
        self, sources: Sequence[str], saved: SavedConversation | None, name: str
    ) -> Iterator[Conversation]:
        """Go on with a session, or begin one; without sources, its own are loaded.

        Raises:
            RlmRagError: the sources cannot be loaded, or a model not be asked.
        """
        rlm = self._going_on(saved, f"session {name!r}")
        if not sources:
            with rlm.converse(None, saved) as conversation:
                _say_warnings(conversation)
                yield conversation
            return
        with self.corpus(sources) as corpus, rlm.converse(corpus, saved) as conversation:
            _say_warnings(conversation)
            yield conversation

    def _going_on(self, saved: SavedConversation | None, whose: str) -> RLM:
        held = None if saved is None else saved.held_with
        if held is None or self.settings.origin("model") == "--model":
            return self.rlm()
        return self._rlm(_settings_of(held, self.settings, whose))


def take_questioner(
    options: dict[str, Any], *, sources: Sequence[str], shows_progress: bool = True
) -> Questioner:
    """Take the options of a command that asks; what is left of `options` are settings.

    Raises:
        UsageError, SettingsError: an option or a setting that cannot be used.
    """
    loading, models, offering = take_loading(options), take_models(options), take_offering(options)
    quiet = options.pop("quiet")
    display = choose_display(quiet=quiet or not shows_progress, verbose=options.pop("verbose"))
    # A switch that is not given leaves the choice to the environment and the files.
    switches = {
        "trace": False if options.pop("no_trace") else None,
        "cache": options.pop("cache") or None,
    }
    settings = take_settings(options | switches, sources=sources)
    return Questioner(settings, models, loading, offering, display, quiet, _nodes(loading))


def _nodes(loading: Loading) -> str | None:
    """Return the cluster whose nodes run the children of what is asked of its shards.

    On a cluster of this machine alone they would only be further away.
    """
    cluster = Cluster.of(loading["shards"])
    return None if cluster is None or cluster.address == LOCAL else cluster.address


def keep_last(conversation: Conversation) -> None:
    """Keep a conversation for `--continue`; one that cannot be asked again is not."""
    from rlm_rag.sessions import SessionStore

    if any(origin is None for _, origin, _ in conversation.sources):
        return
    try:
        SessionStore().save_last(conversation.saved())
    except (SessionError, TraceError) as error:
        streams.note(streams.one_line(f"warning: --continue will not find this: {error.message}"))


def _last_of(corpus: SearchableCorpus) -> SavedConversation:
    from rlm_rag.sessions import SessionStore

    saved = None if corpus.origin is None else SessionStore().load_last(corpus.origin)
    if saved is None:
        raise SessionError(
            "there is no earlier question of these sources to go on from",
            hint="ask without --continue; runs without a trace, and of -, are not kept",
        )
    return saved


def _settings_of(held: HeldWith, settings: Settings, whose: str) -> Settings:
    """Return the settings with the models of a conversation, and say so where they differ."""
    from rlm_rag.sessions import HeldWith

    named = HeldWith.of(settings.model, settings.sub_model, settings.api_base)
    # It is kept without the password that its address may need.
    api_base = settings.api_base if held.api_base == named.api_base else held.api_base
    then = settings.with_models(held.model, held.sub_model, api_base, origin=whose)
    now = HeldWith.of(then.model, then.sub_model, then.api_base)
    if now != named:
        streams.note(
            streams.one_line(
                f"{whose} goes on with {now}, as it was held, not with {named} "
                f"({settings.origin('model')}); --model names another"
            )
        )
    return then


def _say_warnings(conversation: Conversation) -> None:
    """Say on standard error what of a saved conversation is not as it was."""
    for warning in conversation.warnings:
        streams.note(streams.one_line(f"warning: {warning}"))
