"""Another job. It is found again after a restart by the key of this step, so it starts once."""

from portico.features.jobs.services import Call
from portico.features.jobs.state import JobSummary
from portico.features.jobs.step import CallDo, FlowStep
from portico.features.jobs.step_values import StepValues
from portico.features.jobs.steps.outcome import StepOutcome
from portico.features.jobs.workflow.quote import unmarked
from portico.kernel.errors import PorticoError
from portico.kernel.log.log import NOT_WRITTEN


async def run(step: FlowStep, values: StepValues, call: Call, caller: JobSummary, key: str) -> StepOutcome:
    do = step.do
    assert isinstance(do, CallDo)
    name = values.text(do.job)
    try:
        ended = await call(caller, key, name, unmarked(values.value(do.inputs)))
    except NOT_WRITTEN:
        raise
    except PorticoError as error:
        return StepOutcome(False, f"The job {name!r} could not be started: {error.message}")
    if ended.status == "succeeded":
        return StepOutcome(True, f"{ended.id} succeeded", output=ended.result)
    return StepOutcome(False, f"{ended.id} {ended.status}: {ended.error}", output=ended.result)
