"""`rlm-rag ask`: a question in, a cited answer out."""

from __future__ import annotations

from typing import Any

import click

from rlm_rag.cli.answers import answered, show_answer
from rlm_rag.cli.asking import cache_option, estimate_option, settings_options
from rlm_rag.cli.completion import files
from rlm_rag.cli.estimate import show_estimate
from rlm_rag.cli.exits import DONE
from rlm_rag.cli.model_options import model_options
from rlm_rag.cli.offering import offering_options, take_schema
from rlm_rag.cli.options import json_option, question_of, source_options, split_last
from rlm_rag.cli.questioner import keep_last, take_questioner

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
    estimate: bool,
    require_citations: bool,
    goes_on: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Ask QUESTION of SOURCE; the answer comes with citations that were checked.

    A source that is - is standard input, and so is a question that is -.

    \b
        rlm-rag ask ./repo "Where is retry backoff computed?" --model openai/gpt-5-mini
        git log -p | rlm-rag ask - "Which commit changed the default port?"
    """
    sources, question = split_last(arguments, what="the question", example=EXAMPLE)
    question = question_of(question, sources, what="the question")
    schema = take_schema(options)
    questioner = take_questioner(options, sources=sources)
    if estimate:
        rlm = questioner.rlm(with_keys=False)
        with questioner.corpus(sources) as corpus:
            show_estimate(rlm.estimate(corpus, question, images=image), as_json=as_json)
        return DONE
    with questioner.conversation(sources, goes_on=goes_on) as conversation:
        try:
            answer = answered(lambda: conversation.ask(question, images=image, schema=schema))
        finally:
            questioner.display.close()
        code = show_answer(
            answer,
            origin=conversation.corpus.origin,
            as_json=as_json,
            quiet=questioner.quiet,
            require_citations=require_citations,
        )
        if questioner.settings.trace:
            keep_last(conversation)
        return code
