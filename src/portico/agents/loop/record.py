"""A step as it is stored with the session, and the conversation as it is read back.

Each step has a blob: what was added for the model before it asked, and the model's message, unchanged. The results of
its calls are in the log anyway. So the next turn, a fork, and a host after a restart send the same bytes as this turn
did, and the endpoint's prompt cache stays valid. A step that only has plain text needs no blob.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import Struct

from portico.agents.loop.compaction import after_summary, summary
from portico.agents.loop.other_names import FINISH
from portico.agents.loop.protocol import NOT_FINAL, ModelStep
from portico.agents.loop.reply import Said
from portico.agents.loop.transcript import Entry, Exchange, UserText, cut, of_turns
from portico.kernel.errors import PorticoError
from portico.kernel.events import ErrorInfo
from portico.kernel.state import CallPart, Part, StepState, TextPart, TurnState

MODEL_CHARS = 160_000
"""Of one tool result that a model reads: 40,000 tokens. Our own tools give less."""
VOID = "attempt_void"
"""The code of a call whose answer broke off: it is not part of the step."""
STEP = "step"
"""Under this name the meta data of a call has the number of its step."""
Load = Callable[[str], Awaitable[bytes]]
logger = logging.getLogger("portico.agents.loop")


class Compaction(Struct, frozen=True, omit_defaults=True):
    """Everything before was replaced by a summary and the entries at these places."""

    summary: str
    kept: list[int]


class StepRecord(Struct, frozen=True, omit_defaults=True):
    before: list[UserText]
    """What was added since the last step: the goal, steering, corrections."""
    said: Said
    step: ModelStep
    compactions: list[Compaction] = []


def is_plain(record: StepRecord, asked: str, number: int) -> bool:
    """Whether the turn's message and its text part hold all of it, so that nothing needs to be stored."""
    text = record.step.summary
    return (
        record.before == ([UserText("user", asked)] if number == 1 else [])
        and not record.compactions
        and not record.step.actions
        and record.said.message == {"role": "assistant", "content": text}
        and text[:1] not in _HELD
        and not text[:1].isspace()
    )


_HELD = ("", "{", "[", "<", "`")
"""How a text begins that is shown only when it is complete, and maybe not character for character."""


def compacted(entries: list[Entry], change: Compaction) -> list[Entry]:
    return [summary(change.summary), *(entries[at] for at in change.kept if at < len(entries))]


def result_text(ok: bool, output: str, error: ErrorInfo | None) -> str:
    """What the model reads of a call: the same now and when it is read back."""
    if not ok and error is not None and error.code == "denied":
        return f"error: refused ({error.message.removeprefix('Refused: ').rstrip('.')})"
    text = output if ok else f"error: {output or (error.message if error else 'it failed')}"
    return cut(text, MODEL_CHARS)


CACHE_BYTES = 8 * 1024 * 1024
"""Of stored steps that are kept in memory for one conversation: some hundred steps."""


class StepHistory:
    """The conversation of a session, read back from its turns. Decoded steps are cached."""

    def __init__(self) -> None:
        self._records: dict[str, StepRecord | None] = {}
        self._size = 0

    async def entries(self, turns: Sequence[TurnState], load: Load) -> list[Entry]:
        """Of all turns, in order. Turns without steps (version 0.2, other agents) become texts."""
        start = next((at for at, turn in enumerate(turns) if turn.steps), len(turns))
        entries = after_summary(turns[:start])
        for turn in turns[start:]:
            if not turn.steps:
                entries += of_turns([turn])
                continue
            for index, step in enumerate(turn.steps):
                following = turn.steps[index + 1].parts if index + 1 < len(turn.steps) else len(turn.parts)
                parts = turn.parts[step.parts : following]
                entries = await self._step(entries, turn, step, parts, load)
        return entries

    async def _step(
        self, entries: list[Entry], turn: TurnState, step: StepState, parts: Sequence[Part], load: Load
    ) -> list[Entry]:
        record = await self._record(step.blob, load) if step.blob is not None else None
        if record is None:
            return [*entries, *_plain(turn, step, parts)]
        entries = [*entries, *record.before]
        for change in record.compactions:
            entries = compacted(entries, change)
        if not record.step.actions:
            return [*entries, UserText("assistant", record.step.summary or record.step.commentary, said=record.said)]
        return [*entries, Exchange(record.step, await _results(record.step, turn, step.step, load), record.said)]

    async def _record(self, blob: str, load: Load) -> StepRecord | None:
        if blob not in self._records:
            try:
                data = await load(blob)
                self._size += len(data)
                if self._size > CACHE_BYTES:
                    self._records.clear()
                    self._size = len(data)
                self._records[blob] = msgspec.json.decode(data, type=StepRecord)
            except (PorticoError, msgspec.DecodeError) as error:
                logger.warning("a stored step cannot be read: %s", error)
                self._records[blob] = None
        return self._records[blob]


def _plain(turn: TurnState, step: StepState, parts: Sequence[Part]) -> list[Entry]:
    """A step without a blob: plain text, or one that was interrupted."""
    text = "".join(part.text for part in parts if isinstance(part, TextPart) and part.kind == "text")
    asked: list[Entry] = [UserText("user", turn.message.text)] if step is turn.steps[0] else []
    return [*asked, *([UserText("assistant", text)] if text else [])]


def _belongs(part: CallPart, number: int) -> bool:
    return part.meta.get(STEP) == number and not (part.error is not None and part.error.code == VOID)


async def _results(step: ModelStep, turn: TurnState, number: int, load: Load) -> list[tuple[str, str]]:
    calls = iter([part for part in turn.parts if isinstance(part, CallPart) and _belongs(part, number)])
    results: list[tuple[str, str]] = []
    for action in step.actions:
        if action.tool == FINISH and not action.problem:
            results.append((action.tool, NOT_FINAL))
            continue
        part = next(calls, None)
        if part is None or not part.done:
            break
        output = part.output
        if part.blob is not None:
            output = (await load(part.blob)).decode("utf-8", "replace")
        results.append((action.tool, result_text(part.ok, output, part.error)))
    return results
