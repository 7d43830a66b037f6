"""The process of a local model: llama.cpp's server on a free loopback port, by xllamacpp."""

from __future__ import annotations

import os
import sys


def main(path: str, context_tokens: str, slots: str, threads: str) -> None:
    """Serve a GGUF file until standard input ends; the first line of output is its address."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = int(context_tokens) * int(slots)
    parameters.n_parallel = int(slots)
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.warmup = False
    parameters.offline = True
    parameters.cpuparams.n_threads = int(threads)
    parameters.cpuparams_batch.n_threads = int(threads)
    server = xllamacpp.Server(parameters)
    os.write(sys.stdout.fileno(), f"{server.listening_address}\n".encode())
    # The host says nothing; that it closes its end says that it is gone.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(0)
