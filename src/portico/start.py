"""The entry point of the process. Ctrl-C exits cleanly from the start, also during the imports."""

import os
import signal

from portico.server import memory


def main() -> None:
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # `output.run` and `serve` take over when the work begins
    memory.begin()
    from portico.cli import main as command

    command()
