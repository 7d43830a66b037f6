"""Load what a program has at hand: a text, a dict of texts, records of a table."""

import tempfile
from pathlib import Path

import rlm_rag

with rlm_rag.load(text="Dear customer,\nyour parcel 4711 is late.\n") as letter:
    print(letter.grep(r"\d{4}").hits[0].text)

notes = {"monday.md": "# Monday\nThe belt stood still.\n", "tuesday.md": "# Tuesday\nAll well.\n"}
with rlm_rag.load(notes) as diary:
    print(diary.search("stood still", k=1)[0].path)

with tempfile.TemporaryDirectory() as folder:
    table = Path(folder) / "tickets.csv"
    table.write_text("id,subject,body\n7,Late,It came two weeks late.\n8,Wet,The box was wet.\n")
    # One document a record: its text from these columns, its path from that one.
    with rlm_rag.load(table, columns=("subject", "body"), path_column="id") as tickets:
        for document in tickets:
            print(repr(document.path), repr(document.content))

# Prints:
# your parcel 4711 is late.
# monday.md
# '7' 'subject: Late\nbody: It came two weeks late.\n'
# '8' 'subject: Wet\nbody: The box was wet.\n'
