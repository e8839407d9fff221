"""What a step came to."""

from typing import Any

import msgspec
from msgspec import Struct

from portico.features.jobs.check import json_of, schema_errors
from portico.features.jobs.step import FlowStep

OUTPUT_CHARS = 256 * 1024
"""Of one output: it is stored in the log. More belongs into a file."""


class StepOutcome(Struct):
    passed: bool
    reason: str = ""
    """Why it failed; of a success, what it did."""
    output: Any = ""
    answer: str = ""
    exit_code: int | None = None
    changes: list[str] = []
    commit: str = ""


def with_output(step: FlowStep, text: str, outcome: StepOutcome) -> StepOutcome:
    """The outcome with the output in the form that the step declares. Wrong JSON fails the step."""
    if len(text) > OUTPUT_CHARS:
        return StepOutcome(False, f"The output has more than {OUTPUT_CHARS} characters. Write it to a file instead.")
    if step.output == "text" or not outcome.passed:
        outcome.output = text.strip("\n")
        return outcome
    try:
        outcome.output = json_of(text)
    except ValueError:
        return StepOutcome(False, f"The output is not JSON: {text.strip()[:200]!r}", output=text)
    if step.schema is not None and (wrong := schema_errors(step.schema, outcome.output)):
        return StepOutcome(False, "The output does not fit its schema: " + "; ".join(wrong), output=outcome.output)
    return outcome


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
