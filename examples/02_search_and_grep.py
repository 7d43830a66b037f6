"""Search and grep a corpus: no model, no key, no tokens."""

from pathlib import Path

import rlm_rag

HERE = Path(__file__).parent

with rlm_rag.load(HERE / "parcel") as corpus:
    print(len(corpus), "documents,", corpus.line_count, "lines")
    for hit in corpus.search("wait longer after each failed attempt", k=1):
        print(f"{hit.path}:{hit.line}-{hit.end_line}")

    found = corpus.grep(r"^def \w+", path_glob="*.py")
    for line in found.hits:
        print(f"{line.path}:{line.line}: {line.text}")
    print(found.total, "in all:", dict(found.counts))

# Prints:
# 5 documents, 70 lines
# parcel/retry.py:1-23
# parcel/rates.py:14: def shipping_price(parcel: Parcel) -> float:
# parcel/retry.py:10: def backoff_delay(attempt: int) -> float:
# parcel/retry.py:16: def call_with_retry(send, attempts: int = 5):
# 3 in all: {'parcel/rates.py': 1, 'parcel/retry.py': 2}
