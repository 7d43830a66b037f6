"""Ask one question after another: variables, answers and added sources stay."""

from pathlib import Path

from rlm_rag import RLM

HERE = Path(__file__).parent

with RLM("offline").conversation(HERE / "parcel") as talk:
    for question in ("What does express delivery cost?", "When does a parcel count as lost?"):
        answer = talk.ask(question)
        print(question, "->", answer.citations[0].path)
    print("undone:", talk.undo())
    print("added as", talk.add({"news.md": "# News\n\nFrom May on, islands get mail daily.\n"}))
    print(talk.ask("How often do islands get mail?").citations[0].path)
    print([name for name, origin, documents in talk.sources])

# Prints:
# What does express delivery cost? -> parcel/rates.py
# When does a parcel count as lost? -> docs/returns.md
# undone: When does a parcel count as lost?
# added as context_1
# context_1/news.md
# ['context_0', 'context_1']
