"""Translate the updates of an ACP agent into a turn: text, thoughts, tool calls, plans, usage.

Fields of tool calls are optional and accumulate. An update may arrive before the call it updates, and the last one may
repeat or omit earlier fields. Unknown data is ignored: it must never end a turn.
"""

import re
from typing import Any

import msgspec

from portico.agents.acp.error_text import ErrorText
from portico.agents.acp.own_tools import OwnTools, tool_names
from portico.agents.agent import Call, ErrorInfo, Json, Turn
from portico.agents.attachment import text_of
from portico.agents.terminal_commands import TerminalCommands
from portico.features.terminals.command_turn import CommandOutput
from portico.kernel.errors import AgentError
from portico.markdown import PLAN, checklist
from portico.workspace import patch

KINDS = frozenset({"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"})
_NAMED = dict.fromkeys(("shell", "bash", "exec_command", "run_shell_command"), "execute") | dict.fromkeys(
    ("write", "edit", "create", "write_file", "text_editor", "apply_patch"), "edit"
)
"""For agents that call everything `other` but put the tool's name first in the title."""
CANCELLED = ErrorInfo("cancelled", "The turn was cancelled.")
_ENDS = ("completed", "failed")
_BRIDGE = "tool_call"
"""Qwen calls tools that it hides from its model through this one, and names the real one when it asks or is done."""
_OUTPUTS = ("terminal_output_delta", "terminal_output")
"""Where in its remarks an agent puts the pieces of a command's output (Codex)."""
_DIFF_CHARS = 200_000
"""Limit for each side of a diff: as much as a person can review. The file itself is in the workspace."""


class Track:
    """One tool call, as far as it is known."""

    def __init__(self, call: Call, kind: str, commands: TerminalCommands, *, own: bool = False) -> None:
        self.call = call
        self._known = commands
        self.own = own
        """One of the session's own tools: we report its input and output."""
        self.kind = kind
        self.named = False
        """The agent has sent the tool's own name, or one of ACP's kinds."""
        self.title = ""
        self.input: Any = None
        self.raw_output: Any = None
        self.exit_code: int | None = None
        self.locations: list[str] = []
        self.diffs: list[Json] = []
        self.commands: list[CommandOutput] = []
        """Those whose terminals it shows."""
        self.shown = ""
        self.begun = False
        """It runs, or its input is known: there is nothing more to come of it."""
        self.refused = False
        self.decided = False
        """A person has answered for this input: later changes by the agent are not what was shown."""

    def take(self, update: Json) -> None:
        self.title = str(update.get("title") or self.title)
        kind = kind_of(update)
        self.kind = self.kind if kind in (None, "other") else kind
        self.named = self.named or kind not in (None, "other") or any(tool_names(update.get("_meta")))
        if isinstance(locations := update.get("locations"), list):
            self.locations = [str(each["path"]) for each in locations if isinstance(each, dict) and "path" in each]
        if not (self.decided or self.own):
            self._take_input(update)
        if update.get("rawOutput") is not None:
            self.raw_output = update["rawOutput"]
        if isinstance(content := update.get("content"), list) and not self.own:
            self._show(content)
        self.exit_code = _exit_code(update) if self.exit_code is None else self.exit_code
        if (piece := _output_piece(update.get("_meta"))) and not self.own:
            self.shown += piece
            self.call.output(piece)

    def _take_input(self, update: Json) -> None:
        given = update.get("rawInput")
        if given not in (None, {}, "") and given != self.input:
            self.input, self.begun = given, True
            self.call.ready(json_of(given), self.title)
        elif update.get("status") == "in_progress" and not self.begun:
            self.begun = True
            self.call.ready(title=self.title)

    def _show(self, content: list[Any]) -> None:
        pieces = [each for each in content if isinstance(each, dict)]
        text = "\n".join(
            filter(None, (text_of(each.get("content")) for each in pieces if each.get("type") == "content"))
        )
        if text.startswith(self.shown):
            self.call.output(text[len(self.shown) :])
        elif text:
            self.call.output(f"\n{text}")  # it replaced the earlier output; a stream can only append
        self.shown = text or self.shown
        self.diffs = [diff_of(each) for each in pieces if each.get("type") == "diff"] or self.diffs
        terminals = [str(each.get("terminalId")) for each in pieces if each.get("type") == "terminal"]
        self.commands = [each for name in terminals if (each := self._known.show(name)) is not None] or self.commands
        self._tell()

    def _tell(self) -> None:
        if content := [*self.diffs, *(each.shown for each in self.commands)]:
            self.call.content(content)

    async def end(self, ok: bool, stopped: ErrorInfo | None = None) -> None:
        """`stopped`: the reason, if the agent has not reported how the call ended."""
        output = None
        if not self.shown:  # a terminal goes when the agent releases it; what it showed stays here
            output = "".join(each.output for each in self.commands) or output_of(self.raw_output)
        if self.commands and not self.call.done:
            self._tell()
        code = self._exit_code()
        if self.call.turn.cancelled_by is not None:  # regardless of what the agent reports
            await self.call.end(ok=False, output=output, error=CANCELLED, outcome="cancelled", exit_code=code)
        elif stopped is not None and not self.refused:
            await self.call.end(ok=False, output=output, error=stopped, outcome="cancelled", exit_code=code)
        elif ok:
            await self.call.end(output=output, exit_code=code)
        elif self.refused:
            await self.call.end(ok=False, error=ErrorInfo("denied", "The call was refused."), outcome="cancelled")
        else:
            reason = (output or self.shown or "The tool failed.").strip()[:2000]
            await self.call.end(ok=False, output=output, error=ErrorInfo("tool_failed", reason), exit_code=code)

    def _exit_code(self) -> int | None:
        """The exit code of the command that ran through us, or the one that the agent reports."""
        ended = [each.status["exitCode"] for each in self.commands if each.status is not None]
        return ended[-1] if ended else self.exit_code


class Updates:
    """The updates of one turn, in order."""

    def __init__(self, turn: Turn, own: OwnTools, commands: TerminalCommands, kind: str | None = None) -> None:
        """`kind`: which of the known agents answers."""
        self._turn = turn
        self._errors = ErrorText(kind)
        self._attempt = 0
        """Requests to the model that were retried or followed by a call: their texts are separate parts."""
        self._attempt_keys: set[str] = set()
        """The messages of the current request: it is repeated from the start when it fails."""
        self._own = own
        self._commands = commands
        self._tracks: dict[str, Track] = {}
        self._over: list[Track] = []
        """Calls whose id a later call has."""
        self._plan: Call | None = None
        self._counted = False
        """Its tokens were already reported during the turn."""
        self.spoke = False
        """The agent has sent text after its last call."""

    async def apply(self, update: Json) -> None:
        turn = self._turn
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                self._chunk_usage(update.get("_meta"))
                if text := text_of(update.get("content")):
                    self.spoke = True
                    self._text(text, _key(update))
            case "agent_thought_chunk":
                if text := text_of(update.get("content")):
                    self._show_held()
                    turn.reasoning(text, self._own_key(_key(update)))
            case "tool_call" | "tool_call_update":
                self._show_held()
                self._next_attempt()
                await self._tool(update)
            case "plan":
                self._show_plan(update.get("entries"))
            case "usage_update":
                self._next_attempt()
                self._usage(update)
            case "session_info_update":
                if reason := self._errors.status(update.get("_meta")):
                    self._retry(reason)
                if isinstance(title := update.get("title"), str):
                    turn.title(title)

    def _text(self, text: str, key: str | None) -> None:
        if self._errors.is_retry(text):
            self._retry("The request to the model failed and is retried.")
            return
        if not self._errors.take(text, key):
            self._show_held()
            self._turn.text(text, self._own_key(key))

    def _show_held(self) -> None:
        if held := self._errors.release():
            self._turn.text(held, self._own_key(None))

    def _own_key(self, key: str | None) -> str | None:
        """Copilot does not name its messages; without a name, the text of a failed attempt could not be removed."""
        if self._errors.kind == "copilot" and key is None:
            key = f"attempt {self._attempt}"
        if key is not None and self._errors.kind in ("copilot", "codex"):
            self._attempt_keys.add(key)
        return key

    def _next_attempt(self) -> None:
        if self._attempt_keys:
            self._attempt += 1
            self._attempt_keys.clear()

    def _retry(self, reason: str) -> None:
        """The agent repeats its request to the model: remove what the failed one has answered."""
        for key in self._attempt_keys:
            self._turn.retract(key)
        self._next_attempt()
        self._turn.waits(reason)

    def failure(self, name: str, reply: Json) -> AgentError | None:
        """Return the failure that the agent has sent as its answer. Otherwise, show what was held back."""
        found = self._errors.failure(name, reply) if reply.get("stopReason") == "end_turn" else None
        if found is None:
            self._show_held()
        return found

    def track(self, update: Json) -> Track:
        """The call an update or a permission request is about."""
        self.spoke = False
        ident = str(update.get("toolCallId") or self._turn.session.new_id("c"))
        track = self._tracks.get(ident)
        if track is not None and track.call.done and _begins(update):  # the model has used this id before
            self._over.append(track)
            track = None
        if track is None and (own := self._own.name(update)) is not None:
            track = self._tracks[ident] = self._show_own(own, ident, update)
        if track is None:
            kind = kind_of(update) or "other"
            title = str(update.get("title") or "")
            name = name_of(update, kind)
            kind = _NAMED.get(name.lower(), kind) if kind == "other" else kind
            call = self._turn.tool(name, id=ident, title=title, kind=kind)
            track = self._tracks[ident] = Track(call, kind, self._commands)
        track.take(update)
        return track

    def _show_own(self, name: str, ident: str, update: Json) -> Track:
        owner = self._turn.session.tools.owner(name)
        call = self._turn.tool(name, id=ident, title=str(update.get("title") or ""), owner=owner)
        call.ready(self._own.show(call, update))
        return Track(call, "other", self._commands, own=True)

    async def _tool(self, update: Json) -> None:
        new = str(update.get("toolCallId")) not in self._tracks
        if new and (_is_bridge(update) or self._own.hides(update)):
            return
        track = self.track(update)
        if update.get("status") in _ENDS:
            await track.end(update["status"] == "completed")

    def _show_plan(self, entries: Any) -> None:
        if not isinstance(entries, list):
            return
        if self._plan is None:
            self._plan = self._turn.tool(PLAN, "{}", title="Plan", kind="think")
        steps = [(str(each.get("content")), str(each.get("status"))) for each in entries if isinstance(each, dict)]
        self._plan.content([{"type": "text", "text": checklist(steps)}])

    def _usage(self, update: Json) -> None:
        cost = update.get("cost")
        amount = cost.get("amount") if isinstance(cost, dict) else None
        if isinstance(amount, int | float):
            self._turn.usage(cost=float(amount), total=True)

    def _chunk_usage(self, meta: Any) -> None:
        """Qwen reports the tokens of each request together with an empty text chunk."""
        usage = meta.get("usage") if isinstance(meta, dict) else None
        if isinstance(usage, dict):
            self._counted = True
            self._count_tokens(usage)

    def _count_tokens(self, usage: Json) -> None:
        self._turn.usage(
            input=_count(usage, "inputTokens"),
            output=_count(usage, "outputTokens"),
            cached=_count(usage, "cachedReadTokens"),
        )

    def report_usage(self, reply: Json) -> None:
        """Report the token usage in the reply to the prompt."""
        if self._counted:
            return
        usage = reply.get("usage")
        if isinstance(usage, dict):
            self._count_tokens(usage)
        elif counted := _quota(reply.get("_meta")):
            self._turn.usage(input=_count(counted, "input_tokens"), output=_count(counted, "output_tokens"))

    def calls(self) -> list[Track]:
        """Those of the agent's own tools."""
        return [track for track in (*self._over, *self._tracks.values()) if not track.own]

    async def finish(self, reason: object) -> None:
        """The turn is over: what the agent left open has ended with it; well only where it came to its own end."""
        stopped = None if reason in (None, "end_turn") else ErrorInfo("cancelled", f"The agent stopped ({reason}).")
        if self._plan is not None:
            await self._plan.end(output="")
        for track in self._tracks.values():
            await track.end(not track.refused, stopped)


def _begins(update: Json) -> bool:
    """A new call, or a request for permission, and not a late word about one that has ended."""
    return update.get("sessionUpdate") != "tool_call_update" and update.get("status") not in _ENDS


def _is_bridge(update: Json) -> bool:
    """Not known yet what is called."""
    begins = not update.get("rawInput") and update.get("status") not in _ENDS
    return begins and next(tool_names(update.get("_meta")), None) == _BRIDGE


def kind_of(update: Json) -> str | None:
    kind = update.get("kind")
    return kind if isinstance(kind, str) and kind in KINDS else None


def name_of(update: Json, kind: str) -> str:
    """ACP has titles for people and kinds for machines; some agents add their own name of the tool."""
    if name := next(tool_names(update.get("_meta")), None):
        return name
    if kind != "other":
        return kind
    words = re.split(r" · |: | \(", str(update.get("title") or ""), maxsplit=1)
    return words[0].strip()[:100] or kind


def _output_piece(meta: Any) -> str:
    """A chunk of a command's output that an agent sends with the call, from a terminal that is not ours."""
    for name in _OUTPUTS:
        piece = meta.get(name) if isinstance(meta, dict) else None
        if isinstance(piece, dict) and isinstance(piece.get("data"), str):
            return str(piece["data"])
    return ""


def _exit_code(update: Json) -> int | None:
    """From the metadata of the call (a terminal that is not ours has exited), or from the agent's raw output."""
    meta, raw = update.get("_meta"), update.get("rawOutput")
    for told in (meta.get("terminal_exit") if isinstance(meta, dict) else None, raw):
        for name in ("exit_code", "exitCode"):
            code = told.get(name) if isinstance(told, dict) else None
            if isinstance(code, int) and not isinstance(code, bool):
                return code
    return None


def _quota(meta: Any) -> Json:
    """Gemini's count of tokens."""
    quota = meta.get("quota") if isinstance(meta, dict) else None
    counted = quota.get("token_count") if isinstance(quota, dict) else None
    return counted if isinstance(counted, dict) else {}


def _key(update: Json) -> str | None:
    key = update.get("messageId")
    return key if isinstance(key, str) else None


def diff_of(piece: Json) -> Json:
    old, new = piece.get("oldText"), piece.get("newText")
    before = str(old)[:_DIFF_CHARS] if old is not None else None
    return patch.edit(str(piece.get("path") or ""), before, str(new or "")[:_DIFF_CHARS])


def output_of(raw: Any) -> str | None:
    if raw is None or isinstance(raw, str):
        return raw
    if isinstance(raw, dict):
        for key in ("output", "formatted_output", "content", "text", "stdout", "error"):
            if isinstance(raw.get(key), str) and raw[key]:
                return str(raw[key])
    return json_of(raw)


def json_of(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _count(usage: Json, name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) else 0
