"""Approvals of calls: policies and grants decide, or a person is asked. Every decision is recorded.

The order: a denying grant, then the policies, then an allowing grant, then a person. For calls
that must always be asked about, policies and grants can only deny.
The first valid answer wins. The approval waits until the turn ends. If the user or the agent sets a timeout, no answer
in that time means no. The end of a turn closes its open approvals.
"""

import asyncio
import contextlib
import fnmatch
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, get_args

from msgspec import Struct

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.action import Action
from portico.kernel.component import Judge
from portico.kernel.decide.approval import OPTIONS, TIMEOUT
from portico.kernel.errors import AlreadyAnswered
from portico.kernel.events import Breadth, Grant, Json, Option
from portico.kernel.fold import find_approval

if TYPE_CHECKING:
    from portico.kernel.session import Session


class Request(Struct, frozen=True):
    """A call that needs a decision, as it is shown to a person."""

    action: Action
    """What the call does; the same value is judged, shown and run."""
    tool: str
    call: str
    title: str
    input: str
    home: str = "/"
    """The session's folder: relative paths start there."""
    diff: str | None = None
    options: list[Option] | None = None
    editable: bool = False
    result: bool = False
    timeout: float | None = None
    strict: bool = False
    """The agent's settings require approval: only explicit permissions allow it, no defaults."""
    passing: str = ""
    """The rule in the agent's settings that allows it, unless something forbids it."""
    meta: Json | None = None
    """For a result that a client proposes: its original `result`, and `by` whom."""
    ready: e.ToolReady | None = None
    """Not reported yet: it is appended together with the decision or the request for approval."""

    @property
    def kind(self) -> str:
        return self.action.kind

    @property
    def path(self) -> str | None:
        """The first file."""
        return self.action.files[0] if self.action.files else None

    @property
    def command(self) -> str | None:
        """The verbatim command, with its environment and folder."""
        return self.action.shown(self.home)

    @property
    def subject(self) -> str:
        """The text that the pattern of a grant is matched against."""
        return self.path or self.command or ""

    @property
    def paths(self) -> list[str]:
        """All files as absolute paths, with links resolved."""
        return [os.path.realpath(os.path.join(self.home, path)) for path in self.action.files if "\0" not in path]


class Decision(Struct, frozen=True):
    allowed: bool
    by: str
    option: str | None = None
    reason: str = ""
    input: str | None = None
    """The input as a person edited it."""


class Ruling(Struct, frozen=True):
    """The decision of a policy, and its rule. Policies that do not apply return None."""

    allowed: bool
    rule: str


Policy = Callable[["Session", Request], Ruling | None]


def session_policy(session: "Session", request: Request) -> Ruling | None:
    """The session's own setting `approvals`: `ask` (default), `allow` or `deny`. Its creator chose it."""
    choice = session.state.config.get("approvals", "ask")
    if choice not in ("allow", "deny"):
        return None
    return Ruling(choice == "allow", f"session config: approvals = {choice}")


def matching(grants: Iterable[Grant], session: "Session", request: Request, allow: bool, now: int) -> Grant | None:
    return next(
        (
            grant
            for grant in grants
            if grant.allow is allow
            and grant.tool in ("*", request.tool)
            and applies(grant, session, now)
            and _covers(grant, request, session.host.rules)
        ),
        None,
    )


def applies(grant: Grant, session: "Session", now: int) -> bool:
    """Return whether a grant is for this session, directly or through its folder."""
    return (
        grant.expires > now
        and grant.agent == session.state.agent
        and (grant.session == session.id if grant.session else grant.project == session.state.cwd)
        and (not grant.owner or grant.owner == session.host.owner_of(session))
    )


def _covers(grant: Grant, request: Request, judge: Judge) -> bool:
    if grant.covers or (grant.allow and request.action.unclear):  # a pattern does not cover unknown fields
        return judge.covered(grant.covers, request, allow=grant.allow)
    return fnmatch.fnmatchcase(request.subject, grant.pattern)


class Approvals:
    """The approvals of one session that wait in this process."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._waiting: dict[str, asyncio.Future[Decision]] = {}
        self._asked: dict[str, Request] = {}

    async def request(self, turn: str, request: Request) -> Decision:
        ruling = self.rule(request)
        if ruling is None:
            return await self._ask(turn, request)
        await self._session.append(
            *_before(request),
            e.ToolDecided(turn=turn, call=request.call, allowed=ruling.allowed, by="policy", rule=ruling.rule),
        )
        return Decision(ruling.allowed, "policy", reason=ruling.rule)

    def rule(self, request: Request) -> Ruling | None:
        """Decide without a person. None: a person must be asked."""
        session = self._session
        host, now = session.host, session.host.grants.now()
        denied = matching(host.grants.values(), session, request, False, now)
        if denied is not None:
            return Ruling(False, f"grant {denied.id}: deny {_named(denied)}")
        asks = host.rules.must_ask(session, request) is not None
        for policy in host.policies:
            ruling = policy(session, request)
            if ruling is not None and not (asks and ruling.allowed):
                return ruling
        granted = None if asks else matching(host.grants.values(), session, request, True, now)
        return Ruling(True, f"grant {granted.id}: allow {_named(granted)}") if granted is not None else None

    async def _ask(self, turn: str, request: Request) -> Decision:
        session = self._session
        clock = session.host.clock
        timeout = request.timeout or session.host.approval_timeout
        deadline = clock.time() + timeout if timeout is not None else None
        ident = f"{session.id}.{session.new_id('a')}"
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting[ident], self._asked[ident] = future, request
        try:
            await session.append(
                *_before(request),
                e.ApprovalAsked(
                    turn=turn,
                    approval=ident,
                    call=request.call,
                    tool=request.tool,
                    title=request.title,
                    kind=request.kind,
                    input=request.input,
                    expires=int(deadline * 1000) if deadline is not None else 0,
                    options=request.options or OPTIONS,
                    path=request.path,
                    command=request.command,
                    files=list(request.action.files) if len(request.action.files) > 1 else [],
                    diff=request.diff,
                    editable=request.editable,
                    result=request.result,
                    meta=request.meta or {},
                    why=self._why(request),
                    unclear=request.action.unclear if not request.result else "",
                ),
            )
            if deadline is not None:
                await clock.wait(future, max(0.0, deadline - clock.time()))
            if deadline is not None and not future.done():
                await self._time_out(ident)
            return await future
        finally:
            self._waiting.pop(ident, None)
            self._asked.pop(ident, None)

    def _why(self, request: Request) -> str:
        if request.result:
            return ""
        rule = self._session.host.rules.must_ask(self._session, request)
        always = [f"It always asks: {rule}."] if rule is not None else []
        unclear = [f"It cannot be judged: {request.action.unclear}."] if request.action.unclear else []
        if always or unclear:
            return " ".join([*always, *unclear])
        return "The agent's settings want it." if request.strict else "No rule lets it pass."

    async def _time_out(self, ident: str) -> None:
        with contextlib.suppress(AlreadyAnswered):  # a person answered just before: the future has that answer
            await self.answer(ident, allow=False, by=TIMEOUT, reason="no answer in time")

    async def answer(
        self,
        ident: str,
        *,
        by: str,
        allow: bool | None = None,
        option: str | None = None,
        reason: str = "",
        input: str | None = None,
        meta: Json | None = None,
    ) -> Decision:
        """Send the command: answer by option, or by `allow` alone (then only for this call)."""
        session = self._session
        command = c.AnswerApproval(
            approval=ident, allow=allow, option=option, reason=reason, input=input, meta=meta or {}
        )
        await session.do(command, by)
        found = find_approval(session.state, ident)
        assert found is not None
        _, answered = found
        return Decision(answered.allowed, answered.by, answered.option, answered.reason, input)

    def covers(self, ident: str, breadth: Breadth = "shown") -> list[str] | None:
        """Return what a remembered answer to this approval covers; None: it is no longer waiting, or it does not have
        this breadth."""
        request = self._asked.get(ident)
        return self._session.host.rules.coverage(request, breadth) if request is not None else None

    def breadths(self, ident: str) -> list[tuple[Breadth, list[str]]]:
        """Return what an answer can be remembered for, narrowest first; empty when it is no longer waiting."""
        found: list[tuple[Breadth, list[str]]] = []
        for breadth in get_args(Breadth):
            covers = self.covers(ident, breadth)
            if covers is not None and covers not in (each for _, each in found):
                found.append((breadth, covers))
        return found

    def settle(self, answered: e.ApprovalAnswered) -> None:
        """Resume the waiting call: the answer is in the log, even if its caller has disconnected."""
        waiting = self._waiting.get(answered.approval)
        if waiting is not None and not waiting.done():
            waiting.set_result(_decision(answered))

    def abandon(self) -> None:
        """Deny all waiting approvals, because the turn is over. The end of the turn appends the answers."""
        for future in self._waiting.values():
            if not future.done():
                future.set_result(Decision(False, "turn", reason="the turn ended"))


def _named(grant: Grant) -> str:
    return f"{grant.tool} {', '.join(grant.covers) or grant.pattern}"


def _before(request: Request) -> list[e.Event]:
    return [request.ready] if request.ready is not None else []


def _decision(answered: e.ApprovalAnswered) -> Decision:
    return Decision(answered.allowed, answered.by, answered.option, answered.reason, answered.input)
