"""Run in the REPL what a root model would run: plain Python over `context`, confined."""

from pathlib import Path

import rlm_rag

HERE = Path(__file__).parent

COUNT = """
sizes = {d["path"]: len(d["content"].splitlines()) for d in context}
longest = max(sizes, key=sizes.get)
print(longest, sizes[longest])
"""

with rlm_rag.Repl(HERE / "parcel") as repl:
    print(repl.run(COUNT).stdout, end="")
    # Variables stay from block to block; the last expression is the block's value.
    print(repl.run("search('surcharge', k=1)[0]['path'], sum(sizes.values())").value)
    failed = repl.run("sizes['no such file']")
    print(failed.error.type, failed.error.message)

# Prints:
# parcel/retry.py 23
# ('parcel/rates.py', 70)
# KeyError 'no such file'
