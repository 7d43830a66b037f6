"""Ask a folder of PDFs; a citation names the page (needs `pip install 'rlm-rag[docs]'`)."""

from pathlib import Path

import rlm_rag

HERE = Path(__file__).parent

with rlm_rag.load(HERE / "reports") as corpus:
    print(corpus.outline("annual-report.pdf"))
    answer = rlm_rag.ask(corpus, "How many parcels were lost?", model="offline")
    best = answer.citations[0]
    print(f"{best.path}:{best.line}-{best.end_line} {best.status}")
    print(corpus.read(best.path, best.line, best.end_line))

# Prints:
# annual-report.pdf#info=properties (4 lines)
# annual-report.pdf#page=1 (3 lines)
# annual-report.pdf#page=2 (4 lines)
# annual-report.pdf#page=3 (3 lines)
# annual-report.pdf#page=2:1-4 verified
# 1: Lost and damaged parcels
# 2: Of all parcels 1,860 were lost and 3,100 were damaged.
# 3: The service paid 412,000 euros for them, 38,000 less than in the year before,
# 4: since labels are now printed on paper that withstands rain.
