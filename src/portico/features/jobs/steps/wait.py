"""A wait for a time. The time is stored when the step starts, so a restart does not prolong it."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from portico.features.jobs.step import WaitDo
from portico.features.jobs.step_values import StepValues
from portico.features.jobs.steps.outcome import StepOutcome
from portico.kernel.errors import BadRequest

LOOK_SECONDS = 60.0
"""A jump of the clock is noticed after this time."""


def end_of(do: WaitDo, values: StepValues, now: int) -> int:
    """When the wait ends, in milliseconds since the epoch."""
    if do.until is not None:
        text = values.text(do.until)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise BadRequest(f"'until' should be a time such as 2027-01-31T09:00:00+01:00, not {text!r}.") from None
        return int(moment.timestamp() * 1000)
    seconds = values.value(do.seconds)
    try:
        return now + int(float(seconds) * 1000)
    except (TypeError, ValueError):
        raise BadRequest(f"'wait' should be seconds, not {seconds!r}.") from None


async def run(until: int, now: Callable[[], int]) -> StepOutcome:
    while (left := until - now()) > 0:  # noqa: ASYNC110 - only time ends it, and the clock may jump
        await asyncio.sleep(min(left / 1000, LOOK_SECONDS))
    return StepOutcome(True, "the time is reached")
