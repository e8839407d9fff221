"""Builds turns from the updates that an agent replays on `session/load`. Pure: no process and no log."""

from typing import Any

import msgspec

from portico.agents.acp.update import diff_of, json_of, kind_of, name_of, output_of
from portico.agents.attachment import text_of
from portico.kernel import limits
from portico.kernel.events import ErrorInfo, Json, Message
from portico.kernel.state import CallPart, TextPart, TurnState

IMPORTED = "imported"
"""The author of imported turns, and the key in the metadata of their messages."""
OUTPUT_CHARS = 50_000
"""Of the output of one imported call: what a person reads. The agent keeps the rest."""
_TURN_BYTES = limits.EVENT_BYTES // 2
_EARLIER = "(The agent's program no longer has the message that started this.)"


class HistoryBuilder:
    def __init__(self, agent: str, session: str, updated: int) -> None:
        self._mark: Json = {IMPORTED: {"agent": agent, "session": session}}
        self._time = updated
        self._ids = 0
        self._said: list[str] = []
        """The texts of the current message of the user."""
        self._said_id: object = None
        self._text_id: object = None
        self._open = False
        """The last update was part of a message of the user."""
        self._calls: dict[str, CallPart] = {}
        self.turns: list[TurnState] = []

    async def update(self, update: Json) -> None:
        kind = update.get("sessionUpdate")
        if (found := _time_of(update.get("_meta"))) is not None:
            self._time = found
        match kind:
            case "user_message_chunk":
                self._user(update)
            case "agent_message_chunk":
                self._text("text", update)
            case "agent_thought_chunk":
                self._text("reasoning", update)
            case "tool_call" | "tool_call_update":
                self._call(update)

    def finish(self) -> list[TurnState]:
        for turn in self.turns:
            turn.ended, turn.outcome = turn.ended or turn.started, "completed"
            for part in turn.parts:
                if isinstance(part, CallPart) and not part.done:
                    part.done, part.outcome = True, "interrupted"
            _shrink(turn)
        return self.turns

    # -- one update --------------------------------------------------------------------------------------------

    def _new_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}{self._ids}"

    def _user(self, update: Json) -> None:
        text, ident = text_of(update.get("content")) or "", update.get("messageId")
        if not (self._open and ident == self._said_id):
            self._said, self._said_id = [], ident
            self._begin("")
        self._open = True
        self._said.append(text)
        turn = self.turns[-1]
        turn.message = msgspec.structs.replace(turn.message, text="\n".join(filter(None, self._said)))

    def _begin(self, text: str) -> None:
        message = Message(text, meta=self._mark)
        self.turns.append(TurnState(self._new_id("t"), message, IMPORTED, self._time, 0))

    def _answering(self) -> TurnState:
        if not self.turns:
            self._begin(_EARLIER)
        self._open = False
        turn = self.turns[-1]
        turn.ended = max(self._time, turn.started)
        return turn

    def _text(self, kind: Any, update: Json) -> None:
        text = text_of(update.get("content"))
        if not text:
            return
        turn = self._answering()
        last, ident = turn.parts[-1] if turn.parts else None, update.get("messageId")
        if isinstance(last, TextPart) and last.kind == kind and ident == self._text_id:
            last.text += text
        else:
            turn.parts.append(TextPart(self._new_id("p"), kind, text, done=True))
        self._text_id = ident

    def _call(self, update: Json) -> None:
        turn, ident = self._answering(), str(update.get("toolCallId") or "")
        call = self._calls.get(ident) if ident else None
        if call is None:
            kind = kind_of(update) or "other"
            call = CallPart(self._new_id("c"), name_of(update, kind), kind=kind, ready=True)
            turn.parts.append(call)
            self._calls[ident] = call
        call.title = str(update.get("title") or call.title)
        if update.get("rawInput") not in (None, {}, ""):
            call.input = json_of(update["rawInput"])
        self._output(call, update)
        if update.get("status") in ("completed", "failed"):
            call.done, call.ok = True, update["status"] == "completed"
            call.outcome = "completed" if call.ok else "failed"
            call.error = None if call.ok else ErrorInfo("tool_failed", call.output[:2000] or "The tool failed.")

    def _output(self, call: CallPart, update: Json) -> None:
        content = update.get("content")
        pieces = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
        diffs = [diff_of(each) for each in pieces if each.get("type") == "diff"]
        call.content = diffs or call.content
        shown = "\n".join(filter(None, (text_of(each.get("content")) for each in pieces)))
        output = shown or output_of(update.get("rawOutput")) or ""
        if output:
            call.output, call.left_out = output[:OUTPUT_CHARS], max(0, len(output) - OUTPUT_CHARS)


def _shrink(turn: TurnState) -> None:
    """Drop what calls printed, oldest first, until the turn fits into one event."""
    for part in turn.parts:
        if len(msgspec.json.encode(turn)) <= _TURN_BYTES:
            return
        if isinstance(part, CallPart):
            part.left_out, part.output, part.content = part.left_out + len(part.output), "", []


def _time_of(meta: Any) -> int | None:
    """The time of an update in milliseconds, where the program adds it: Qwen as `timestamp`, goose as `created`."""
    if not isinstance(meta, dict):
        return None
    if isinstance(found := meta.get("timestamp"), int):
        return found
    goose = meta.get("goose")
    created = goose.get("created") if isinstance(goose, dict) else None
    return created * 1000 if isinstance(created, int) else None
