"""`rlm-rag ask`: a question in, a cited answer out."""

from __future__ import annotations

from typing import Any

import click

from rlm_rag.cli.answers import answered, show_answer
from rlm_rag.cli.asking import (
    build_rlm,
    cache_option,
    check_models,
    converse,
    estimate_option,
    keep_last,
    settings_options,
    take_settings,
)
from rlm_rag.cli.completion import files
from rlm_rag.cli.display import choose_display
from rlm_rag.cli.estimate import show_estimate
from rlm_rag.cli.exits import DONE
from rlm_rag.cli.model_options import model_options, take_models
from rlm_rag.cli.offering import asker, offering_options, take_offering
from rlm_rag.cli.options import (
    json_option,
    opened,
    source_options,
    split_last,
    take_loading,
)

EXAMPLE = 'rlm-rag ask ./repo "Where is retry backoff computed?"'


@click.command()
@click.argument("arguments", nargs=-1, shell_complete=files, metavar="SOURCE... QUESTION")
@settings_options
@model_options
@offering_options
@click.option(
    "--image", multiple=True, type=click.Path(dir_okay=False), help="Shown with the question."
)
@cache_option
@estimate_option
@click.option(
    "--require-citations", is_flag=True, help="Exit with 1 where none of them is verified."
)
@click.option("--continue", "goes_on", is_flag=True, help="Go on from the last question of SOURCE.")
@click.option("--no-trace", is_flag=True, help="Keep no record of the run.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but the answer.")
@click.option("-v", "--verbose", is_flag=True, help="Show code and output as they run.")
@source_options
@json_option
def ask(
    arguments: tuple[str, ...],
    image: tuple[str, ...],
    cache: bool,
    estimate: bool,
    require_citations: bool,
    goes_on: bool,
    no_trace: bool,
    quiet: bool,
    verbose: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Ask QUESTION of SOURCE; the answer comes with citations that were checked.

    \b
        rlm-rag ask ./repo "Where is retry backoff computed?" --model openai/gpt-5-mini
        git log -p | rlm-rag ask - "Which commit changed the default port?"
    """
    sources, question = split_last(arguments, what="the question", example=EXAMPLE)
    loading, models = take_loading(options), take_models(options)
    offering, schema = take_offering(options)
    # A switch that is not given leaves the choice to the environment and the files.
    switches = {"trace": False if no_trace else None, "cache": cache or None}
    settings = take_settings(options | switches, sources=sources)
    display = choose_display(quiet=quiet, verbose=verbose)
    check_models(settings, models, with_keys=not estimate)
    rlm = build_rlm(settings, display, ask_user=asker(display, quiet=quiet), **models, **offering)
    with opened(sources, quiet=quiet, **loading) as corpus:
        if estimate:
            show_estimate(rlm.estimate(corpus, question), as_json=as_json)
            return DONE
        with converse(rlm, corpus, goes_on=goes_on) as conversation:
            try:
                answer = answered(lambda: conversation.ask(question, images=image, schema=schema))
            finally:
                display.close()
            code = show_answer(
                answer,
                origin=corpus.origin,
                as_json=as_json,
                quiet=quiet,
                require_citations=require_citations,
            )
            if settings.trace:
                keep_last(conversation)
            return code
