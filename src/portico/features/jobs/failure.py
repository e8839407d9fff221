"""Why a job failed, as text: the step that failed and why. It is written into the job's end, so all clients show the
same."""

import re

from portico.features.jobs import events as je
from portico.features.jobs.state import JobSummary, message_of
from portico.kernel import limits
from portico.kernel.log.log import Log

_CHARS = 500
"""A sentence and the last lines of a command's output; the whole of it is in the task's channel."""
_TAG = re.compile(r"^\[[A-Z ]+\] (?:Decision: |Task error: )?")
_CAUSES = re.compile(r"^\[(?:CRITERIA|AVAILABILITY|SESSION CRASHED)\] (?!Criteria failed on retry)")


async def failure(log: Log, job: JobSummary, error: str) -> str:
    """`error`: what ended the job, if a task did not simply miss its criteria."""
    work = next((each for each in reversed(job.works) if each.status == "failed"), None)
    if work is None:
        return short(message_of(error) if error else job.reason)
    if error:
        return short(f"{work.name}: {message_of(error)}")
    records = await log.read(f"task/{work.task}", 0, limits.READ_EVENTS)
    decided = [record.event for record in records if isinstance(record.event, je.TaskDecided)]
    failed = [each.reason for each in decided if each.passed is False]
    causes = [each for each in failed if _CAUSES.match(each)] or failed
    why = message_of(_TAG.sub("", causes[-1])) if causes else "it failed"
    return short(f"{work.name}: {why}")


def short(text: str) -> str:
    """The first line, which names the step, and the end: the last lines of an output show what is wrong."""
    words = " ".join(text.split())
    if len(words) <= _CHARS or "\n" not in text:
        return words[:_CHARS]
    first = " ".join(text.partition("\n")[0].split())[: _CHARS // 2]
    return f"{first} … {words[len(first) - _CHARS + 3 :]}"
