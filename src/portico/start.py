"""Where the process begins. Ctrl-C is clean from the first moment, also while everything else is being imported."""

import os
import signal

from portico import memory


def main() -> None:
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # `output.run` and `serve` take over when the work begins
    memory.begin()
    from portico.cli import main as command

    command()
