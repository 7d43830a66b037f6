"""Repeat a run from its trace alone: no model, no network, the same answer or an error."""

import shutil
import tempfile
from pathlib import Path

import rlm_rag
from rlm_rag.errors import DivergedError

HERE = Path(__file__).parent

with tempfile.TemporaryDirectory() as folder:
    corpus = shutil.copytree(HERE / "parcel", Path(folder) / "parcel")
    answer = rlm_rag.ask(corpus, "When is a parcel lost?", model="offline", trace=Path(folder))
    again = rlm_rag.replay(Path(answer.trace))
    print("same text:", again.text == answer.text)

    (corpus / "docs" / "returns.md").write_text("# Returns\n\nNothing is ever lost.\n")
    try:
        rlm_rag.replay(Path(answer.trace))
    except DivergedError as error:
        print(str(error).partition(":")[0])

# Prints:
# same text: True
# the corpus is not the one of the run
