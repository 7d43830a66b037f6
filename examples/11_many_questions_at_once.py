"""Ask many questions of one corpus side by side, within one event loop."""

import asyncio
from pathlib import Path

import rlm_rag

HERE = Path(__file__).parent
QUESTIONS = (
    "What does express delivery cost?",
    "When does a parcel count as lost?",
    "How long is the delay before another attempt?",
)


async def main() -> None:
    rlm = rlm_rag.RLM("offline")
    # Loaded once: all runs share its index process.
    with rlm_rag.load(HERE / "parcel") as corpus:
        answers = await asyncio.gather(*(rlm.ask_async(corpus, each) for each in QUESTIONS))
    for question, answer in zip(QUESTIONS, answers, strict=True):
        print(question, "->", answer.citations[0].path)


asyncio.run(main())

# Prints:
# What does express delivery cost? -> parcel/rates.py
# When does a parcel count as lost? -> docs/returns.md
# How long is the delay before another attempt? -> parcel/retry.py
