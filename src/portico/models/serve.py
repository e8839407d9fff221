"""The child process that runs one model: `python -m portico.models.serve MODEL.gguf NAME CONTEXT THREADS`.

A separate process, because a model takes gigabytes and a crash in native code must not take the host with it. It
listens on loopback, wants a key that only the host knows, and ends with its standard input: also when the host is
killed.
"""

import importlib
import os
import sys
from typing import Any

KEY = "PORTICO_MODEL_KEY"
READY = "READY "


def main(path: str, name: str, context: int, threads: int) -> None:
    xllamacpp: Any = importlib.import_module("xllamacpp")  # an extra, and without types
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {name}
    params.n_ctx = context
    params.n_parallel = 1
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [os.environ.pop(KEY)]
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    print(f"{READY}{server.listening_address}", flush=True)
    while os.read(sys.stdin.fileno(), 4096):
        pass  # stdin carries no data; EOF means that the host has exited
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
