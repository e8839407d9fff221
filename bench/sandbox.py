"""What does a sandbox cost? Every row compares with the same work outside of a sandbox, in the same run."""

from bench import sandbox_commands, sandbox_network
from bench.row import Row

QUESTION = "commands, deltas and memory of a sandbox"


def measure() -> list[Row]:
    return [*sandbox_commands.measure(), *sandbox_network.measure()]
