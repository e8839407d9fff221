"""A command. Values in a shell line are references to environment variables, so the shell never parses them."""

import shlex
from pathlib import Path

from portico.features.jobs.check import CHECK_SECONDS, TAIL_CHARS
from portico.features.jobs.step import FlowStep, RunDo
from portico.features.jobs.step_values import StepValues
from portico.features.jobs.steps.outcome import OUTPUT_CHARS, StepOutcome, with_output
from portico.kernel.errors import PorticoError
from portico.sandbox.policy import Confinement, Unconfined
from portico.workspace import process

AUTHOR = Unconfined("a command that the author of a workflow wrote")
"""Agents propose and steps act: a push or a deployment needs what a sandbox does not have. Checks of an agent run
in its sandbox."""


async def run(step: FlowStep, values: StepValues, policy: Confinement = AUTHOR) -> StepOutcome:
    do = step.do
    assert isinstance(do, RunDo)
    command: str | list[str]
    more: dict[str, str] = {}
    if isinstance(do.command, str):
        command, more = values.shell(do.command)
    else:
        command = [values.text(each) for each in do.command]
    try:
        done = await process.run(
            command,
            policy=policy,
            cwd=Path(values.cwd),
            env=values.environment(step, more),
            timeout=step.timeout or CHECK_SECONDS,
            stdin=values.text(do.stdin).encode(),
            head=OUTPUT_CHARS // 2,
            tail=OUTPUT_CHARS // 2,
            raw=True,
            filters=values.mask.stream,  # before the middle is cut out: else a part of a value would remain
            reaper=False,
        )
    except PorticoError as error:
        return StepOutcome(False, f"The command could not be started: {error.message}")
    text = done.data.decode("utf-8", "replace")
    said = values.mask.text(done.output)  # again: escape sequences that were removed may have split a value
    line = values.shown(do.command if isinstance(do.command, str) else shlex.join(do.command))
    if done.timed_out:
        return _failed(f"The command did not end within {step.timeout or CHECK_SECONDS:g} seconds: {line}", said, text)
    if done.code not in do.exit:
        return _failed(f"The command failed with exit code {done.code}: {line}", said, text, done.code)
    if done.cut:
        return StepOutcome(False, f"The output has more than {OUTPUT_CHARS} bytes. Write it to a file instead.")
    return with_output(step, text, StepOutcome(True, f"exit code {done.code}", exit_code=done.code))


def _failed(what: str, said: str, text: str, code: int | None = None) -> StepOutcome:
    """The reason ends with the last lines of the output: they show what is wrong."""
    last = (said.strip() or text.strip())[-TAIL_CHARS:]
    return StepOutcome(False, f"{what}\n{last}" if last else what, output=text.strip("\n"), exit_code=code)
