"""Converts copied turns back to their original events, for clients that read a session by its events."""

from collections.abc import Iterator

import msgspec

from portico.kernel import events as e
from portico.kernel.state import CallPart, Part, QuestionPart, StepState, TextPart, TurnState


def retold(copied: e.HistoryCopied) -> Iterator[e.Event]:
    """Yield the events of the turns, without approvals and questions, which are over, and without deltas."""
    for turn in msgspec.convert(copied.turns, list[TurnState]):
        yield e.TurnStarted(turn.id, turn.message, turn.by)
        steps = list(turn.steps)
        for index, part in enumerate(turn.parts):
            while steps and steps[0].parts <= index:
                yield _step(turn.id, steps.pop(0))
            yield from _part(turn.id, part)
        yield from (_step(turn.id, step) for step in steps)
        yield e.TurnEnded(turn.id, turn.outcome or "completed", turn.error)


def _step(turn: str, step: StepState) -> e.Event:
    return e.TurnStep(turn, step.step, step.model, step.blob)


def _part(turn: str, part: Part) -> Iterator[e.Event]:
    match part:
        case TextPart():
            yield e.PartStarted(turn, part.id, part.kind)
            yield e.PartEnded(turn, part.id, part.text)
        case CallPart():
            yield e.ToolStarted(turn, part.id, part.tool, part.title, part.kind, part.owner, part.parent, part.meta)
            yield e.ToolReady(turn, part.id, part.input, part.title)
            yield e.ToolEnded(
                turn,
                part.id,
                part.ok,
                part.output,
                part.blob,
                part.content,
                part.error,
                part.past,
                part.detail,
                part.outcome or "completed",
                exit_code=part.exit_code,
            )
        case QuestionPart():
            return
