"""Why a job failed, in one sentence: the job itself says only that it did when a task has missed its criteria."""

import re

import msgspec

from portico import events as e
from portico import limits
from portico.jobs.state import JobSummary
from portico.log.log import Log

_CHARS = 500
"""A sentence and the end of a command's output; the whole of it is in the task's channel."""
_TAG = re.compile(r"^\[[A-Z ]+\] (?:Decision: |Task error: )?")
_CAUSES = re.compile(r"^\[(?:CRITERIA|AVAILABILITY|SESSION CRASHED)\] (?!Criteria failed on retry)")


async def failure(log: Log, job: JobSummary) -> str:
    if job.error:
        return _message(job.error)[:_CHARS]
    work = next((each for each in reversed(job.works) if each.status == "failed"), None)
    if work is None:
        return job.reason
    records = await log.read(f"task/{work.task}", 0, limits.READ_EVENTS)
    said = [
        each.event.reason for each in records if isinstance(each.event, e.TaskDecided) and each.event.passed is False
    ]
    causes = [each for each in said if _CAUSES.match(each)] or said
    why = " ".join(_message(_TAG.sub("", causes[-1])).split()) if causes else "it failed"
    return f"{work.name}: {why}"[:_CHARS]


def _message(detail: str) -> str:
    """Without the JSON that the portal's protocol has around an error."""
    try:
        return msgspec.json.decode(detail, type=_Detail).message
    except msgspec.DecodeError:
        return detail


class _Detail(msgspec.Struct):
    message: str
