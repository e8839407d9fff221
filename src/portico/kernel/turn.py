"""A running turn: the object through which an agent reports.

Text and reasoning are streamed in parts: the first delta opens a part, and the next report of another kind closes
it. Reports after the end of the turn are ignored, so a stale agent cannot write into another turn.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Literal

from portico.kernel import context, limits
from portico.kernel import events as e
from portico.kernel.approval import Decision, Request
from portico.kernel.call import Call
from portico.kernel.errors import BudgetSpent, NotFound, PorticoError
from portico.kernel.events import ErrorInfo, Json, Message, PartKind
from portico.kernel.question import Answer, Asking
from portico.kernel.state import TurnState
from portico.kernel.tool import ToolResult
from portico.kernel.tool_output import pieces

if TYPE_CHECKING:
    from portico.kernel.session import Session

_PART_CHARS = limits.EVENT_BYTES // 8
"""Maximum length of a part; longer text continues in another part. The event that ends a part contains its full text,
and a JSON escape has up to six bytes per character."""

_RECENT = 16
"""Number of parts that can still be corrected: enough for one very long message with its reasoning."""


class _Part:
    __slots__ = ("id", "key", "kind", "size", "texts")

    def __init__(self, ident: str, kind: PartKind, key: str | None) -> None:
        self.id = ident
        self.kind = kind
        self.key = key
        self.texts: list[str] = []
        self.size = 0

    @property
    def text(self) -> str:
        return "".join(self.texts)


class Turn:
    def __init__(self, session: "Session", ident: str, message: Message) -> None:
        self.session = session
        self.id = ident
        self.message = message
        self.live = True
        self.cancelled_by: str | None = None
        self.withdrawn = False
        """The turn is being cancelled: its approvals and questions no longer wait for a person."""
        self.calls: dict[str, Call] = {}
        self.children: list[Turn] = []
        self.held = False
        """The message is not sent to the agent yet, because a budget is exhausted."""
        self.admits = False
        """The agent calls `admit` before each model call, so the host does not need to stop it."""
        self.called = False
        """Whether a tool was used."""
        self.waiting = 0
        """Number of approvals and questions that wait for a person. The idle timer is paused while it is not 0."""
        self.active_at = session.host.clock.awake()
        self.activity = ""
        """What the agent does without output, as the end of a sentence: `retrying after 429`. Set by the agent."""
        self.stop = ""  # see `TurnEnded.stop`; set by the agent
        self._part: _Part | None = None
        self._size = 0
        self._full = False
        self._recent: deque[_Part] = deque(maxlen=_RECENT)
        """Parts with a key from the agent: they may still be corrected."""
        resumed = session.state.turn(ident)
        self._used = {part.id for part in resumed.parts} if resumed is not None else set()
        self.plain = not self._used
        """The turn contains only text, and none was lost: once the open part is closed, nothing is open."""
        self.lost: PorticoError | None = None
        """The error of a report that could not be written."""

    @property
    def earlier(self) -> list[TurnState]:
        """The earlier turns, for agents that do not keep the history."""
        state = self.session.state
        return context.history([each for each in state.turns if each.id != self.id], state)

    @property
    def respondent(self) -> str:
        """The agent, and its model if that is known."""
        return f"{self.session.state.agent} ({self.model})" if self.model else self.session.state.agent

    @property
    def model(self) -> str:
        return self.message.model or self.session.state.model

    # -- text --------------------------------------------------------------------------------------------------

    def text(self, delta: str, key: str | None = None) -> None:
        """Report a piece of the answer. `key` is the agent's id of the message: a new key starts a new part."""
        self._grow("text", delta, key)

    def reasoning(self, delta: str, key: str | None = None) -> None:
        self._grow("reasoning", delta, key)

    def say(self, kind: PartKind, delta: str, key: str | None = None) -> None:
        """Report text or reasoning, for agents that have one format for both."""
        self._grow(kind, delta, key)

    def notice(self, text: str) -> None:
        """Report a message of the system (a retry, a fallback), not of the agent."""
        self._grow("notice", text, None)
        self.close_part()

    def waits(self, text: str) -> None:
        """Report a notice that also explains why there is no output after it."""
        self.notice(text)
        self.activity = text[:1].lower() + text[1:].rstrip(".")

    def remark(self, text: str) -> None:
        """Report a notice without closing the open part: the text of the agent continues in that part."""
        part = self.session.new_id("p")
        self.report(e.PartStarted(turn=self.id, part=part, kind="notice"))
        self.report(e.PartEnded(turn=self.id, part=part, text=text))

    def close_part(self, whole: str | None = None) -> None:
        """End the open part; `whole` replaces the text of its deltas."""
        if self._part is not None:
            self._replace(self._part, self._part.text if whole is None else whole)

    def correct(self, key: str, whole: str, kind: PartKind = "text") -> None:
        """Set the complete text of the message `key`. If it differs from the deltas, it replaces them for every reader.
        The part is complete then."""
        said = [part for part in self._recent if part.key == key and part.kind == kind]
        if not said:
            if whole:
                self._grow(kind, whole, key)
                self.close_part()
            return
        if self._part is not said[-1]:
            self.close_part()  # else readers that replay the turn would get the open part twice
        before = "".join(part.text for part in said[:-1])  # a very long text has several parts
        if whole.startswith(before):
            self._replace(said[-1], whole[len(before) :])

    def retract(self, key: str) -> None:
        """Discard the text of the message `key`: the attempt was aborted, and another follows."""
        for part in [part for part in reversed(self._recent) if part.key == key]:  # the open one first
            self._replace(part, "")
            self._recent.remove(part)

    def _replace(self, part: _Part, text: str) -> None:
        if self._part is part:
            self._part = None
        elif text == part.text:
            return  # it has ended with this text
        streamed, part.texts = part.text, [text]
        part.size = len(text)
        replaces = len(streamed) if text != streamed else 0
        self.report(e.PartEnded(turn=self.id, part=part.id, text=text, replaces=replaces))

    def _grow(self, kind: PartKind, delta: str, key: str | None) -> None:
        if kind != "notice":
            if self._size + len(delta) <= limits.TURN_BYTES:  # the usual case, thousands of times per second
                self._size += len(delta)
            else:
                delta = delta[: self.spend(len(delta))]
            if self._full and not delta:
                return
        part = self._open(kind, key)
        if kind != "notice":
            self.activity = ""
        for piece in pieces(delta):
            if part.size + len(piece) > _PART_CHARS:
                self.close_part()
                part = self._open(kind, key)
            part.texts.append(piece)
            part.size += len(piece)
            self.report(e.PartDelta(turn=self.id, part=part.id, text=piece))

    def spend(self, size: int) -> int:
        """Return how many of `size` characters still fit into this turn. One notice reports the omitted rest."""
        fits = max(0, min(size, limits.TURN_BYTES - self._size))
        self._size += fits
        if fits < size and not self._full:
            self._full = True
            megabytes = limits.TURN_BYTES / limits.MIB
            asyncio.get_running_loop().call_soon(
                self.notice, f"This turn has said more than {megabytes:g} MB; the rest is left out."
            )
        return fits

    def _open(self, kind: PartKind, key: str | None) -> _Part:
        part = self._part
        if part is None or part.kind != kind or part.key != key:
            self.close_part()
            part = self._part = _Part(self.session.new_id("p"), kind, key)
            if key is not None:
                self._recent.append(part)
            self.report(e.PartStarted(turn=self.id, part=part.id, kind=kind))
        return part

    # -- tools -------------------------------------------------------------------------------------------------

    def tool(
        self,
        name: str,
        input: str | None = None,
        *,
        id: str | None = None,
        title: str = "",
        kind: str = "other",
        owner: str | None = None,
        parent: str | None = None,
        meta: Json | None = None,
        server: str = "",
    ) -> Call:
        """Start a tool call. With `input` (JSON text) it is complete; otherwise call `feed`, then `ready`."""
        self.close_part()
        ident = self.session.new_id("c") if id is None or id in self._used else id
        self._used.add(ident)
        call = Call(self, ident, name, owner, title)
        self.calls[ident] = call
        self.called, self.plain = True, False
        self.activity = ""
        self.report(
            e.ToolStarted(
                turn=self.id,
                call=ident,
                tool=name,
                title=title,
                kind=kind,
                owner=owner,
                parent=parent,
                meta=meta or {},
                server=server,
            )
        )
        if input is not None:
            call.ready(input)
        return call

    def session_tool(
        self, name: str, input: str | None = None, *, id: str | None = None, meta: Json | None = None
    ) -> Call:
        """Start a call of one of the session's tools (the host's or a client's); `perform` runs it."""
        return self.tool(name, input, id=id, owner=self.session.tools.owner(name), meta=meta)

    async def perform(self, call: Call) -> ToolResult:
        """Run a session tool for the agent and wait for its result."""
        return await self.session.tools.perform(call)

    def ended(self, call: Call) -> None:
        self.calls.pop(call.id, None)

    # -- people ------------------------------------------------------------------------------------------------

    def withdraw(self) -> None:
        """Deny all open and later approvals and questions of this turn and its sub-agents: it is being cancelled.
        The agent may need time to stop, and editors may send an approval after the cancel."""
        self.withdrawn = True
        self.session.approvals.abandon()
        self.session.questions.abandon()
        for call in self.calls.values():
            call.signed_in(False, "turn")
        for child in self.children:
            child.withdraw()

    async def admit(self) -> None:
        """Wait until the budgets allow a model call. Agents that can delay model calls await it before each."""
        self.admits = True
        await self.session.host.spending.admit(self)

    async def approve(self, request: Request) -> Decision:
        try:
            await self.session.host.spending.admit(self)
        except BudgetSpent as spent:
            if not self.admits:
                self.remark(spent.message)
                self.session.host.own(self.session.cancel(by="budget"), f"stop {self.id}")
            return Decision(False, "budget", reason=spent.message)
        if not self.live or self.withdrawn:
            return Decision(False, "turn", reason="the turn ended")
        self.waiting, self.plain = self.waiting + 1, False
        try:
            decision = await self.session.approvals.request(self.id, request)
            await self.session.captures.ready(self.id)
            return decision
        finally:
            self.waiting -= 1
            self._touch()

    async def ask(
        self,
        text: str,
        fields: list[Json] | None = None,
        url: str | None = None,
        *,
        people: list[str] | None = None,
        evidence: list[Json] | None = None,
    ) -> Answer:
        """Ask a person; return when the question is answered or declined. `people`: only they may answer."""
        self.close_part()
        if not self.live or self.withdrawn:
            return Answer("cancel", {}, "turn")
        self.waiting, self.plain = self.waiting + 1, False
        try:
            asking = Asking(text, fields or [], url, people or [], evidence or [])
            return await self.session.questions.ask(self.id, asking)
        finally:
            self.waiting -= 1
            self._touch()

    # -- other facts -------------------------------------------------------------------------------------------

    def usage(
        self,
        *,
        input: int = 0,
        output: int = 0,
        cached: int = 0,
        cost: float = 0.0,
        model: str = "",
        total: bool = False,
    ) -> None:
        self.report(
            e.UsageReported(
                turn=self.id, model=model, input=input, output=output, cached=cached, cost=cost, total=total
            )
        )

    def step(self, step: int, model: str = "", blob: str | None = None) -> None:
        """Report that the agent requests its next step from `model`; with `blob` (see `keep`) the step is complete."""
        self.report(e.TurnStep(turn=self.id, step=step, model=model, blob=blob))

    def title(self, title: str) -> None:
        """Set the title that the agent suggests; a title that a person chose is kept."""
        title = title.strip()[: limits.TITLE_CHARS]
        if title and self.live and not self.session.state.title_by_person:
            self.report(e.SessionRenamed(title=title, by="agent"))

    async def spawn(self, prompt: str, *, title: str = "", call: Call | None = None, agent: str = "") -> "Turn":
        """Start a sub-agent: a child session with one turn that this turn's agent reports into, ended by `finish`."""
        child = await self.session.host.spawn(self, prompt, title, call.id if call else None, agent)
        self.children.append(child)
        self.plain = False
        return child

    async def finish(
        self, outcome: Literal["completed", "failed", "cancelled"] = "completed", error: ErrorInfo | None = None
    ) -> None:
        """End the turn of a sub-agent. The host ends all other turns."""
        await self.session.end_turn(self, outcome, error)

    # -- writing to the log ------------------------------------------------------------------------------------

    def report(self, event: e.Event) -> None:
        if self.live:
            self._touch()
            self.session.post(event)

    async def drained(self) -> None:
        """Wait for capacity of the log. For agents that produce output faster than the disk can write."""
        await self.session.host.log.wait_capacity()

    async def settled(self) -> None:
        """Return when all earlier reports are durable. Await it before a side effect, so that the log has the intent if
        the host crashes, and the state of the folder before it is captured."""
        for call in self.calls.values():
            call.say_ready()
        await self.session.host.log.flush()
        await self.session.captures.ready(self.id)

    async def keep(self, data: bytes) -> str:
        """Store a large output and return its name."""
        return await self.session.host.log.put_blob(data)

    def call(self, ident: str) -> Call:
        call = self.calls.get(ident)
        if call is None:
            raise NotFound("running tool call", ident)
        return call

    def _touch(self) -> None:
        self.active_at = self.session.host.clock.awake()
