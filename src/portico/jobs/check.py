"""A check that is no model's opinion: a command that has to succeed in the working directory."""

import shlex
from pathlib import Path

from msgspec import Struct

from portico.errors import PorticoError
from portico.workspace.process import command_environment, run

TAIL_CHARS = 4_000
"""Of the output, for the decision and the next prompt: the last error of a test run, not its whole log."""
CHECK_SECONDS = 30 * 60.0
"""A long test suite; the task's own `timeout` is usually the shorter one."""


class Checked(Struct, frozen=True):
    passed: bool
    reason: str
    output: str


async def check_command(command: str | list[str], cwd: str) -> Checked:
    line = command if isinstance(command, str) else shlex.join(command)
    try:
        done = await run(command, cwd=Path(cwd), env=command_environment(), timeout=CHECK_SECONDS)
    except PorticoError as error:
        return Checked(False, f"Command could not be run: {line}: {error.message}", error.message)
    output = done.output[-TAIL_CHARS:].strip()
    if done.timed_out:
        return Checked(False, _told(f"Command did not end within {CHECK_SECONDS:g} seconds: {line}", output), output)
    if done.code != 0:
        return Checked(False, _told(f"Command failed with exit code {done.code}: {line}", output), output)
    return Checked(True, f"Command passed: {line}", output)


def _told(what: str, output: str) -> str:
    return f"{what}\n{output}" if output else what
