"""What code of a model cannot do: read your files, open a connection, start a program."""

from pathlib import Path

import rlm_rag

HERE = Path(__file__).parent

ATTEMPTS = {
    "read a file": "import pathlib; pathlib.Path('/etc/passwd').read_text()",
    "connect": "import socket; socket.create_connection(('127.0.0.1', 80))",
    "start a program": "import subprocess; subprocess.run(['ls'])",
    "write a file": "open('/etc/motd', 'w')",
}

with rlm_rag.Repl(HERE / "parcel") as repl:
    for what, code in ATTEMPTS.items():
        print(f"{what}:", "refused" if repl.run(code).error else "done!")
    # No variable of yours, and so no key, is in its environment.
    print(repl.run("import os; [name for name in os.environ if 'KEY' in name]").value)

# Prints:
# read a file: refused
# connect: refused
# start a program: refused
# write a file: refused
# []
