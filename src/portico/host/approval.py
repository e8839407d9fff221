"""Who may do what: policies and grants decide, or a person is asked. Everything is written down.

The order: a denying grant, then the policies, then an allowing grant (but for edits that always ask), then a person.
The first valid answer wins. It is waited for as long as the turn lives; only where a time is set (by the user or by the
agent) no answer in time is no. A turn that ends takes its open approvals with it.
"""

import asyncio
import contextlib
import fnmatch
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from portico import events as e
from portico.errors import AlreadyAnswered, BadRequest, NotFound
from portico.events import HOST, Channel, Grant, Json, Option
from portico.host.fold import find_approval

if TYPE_CHECKING:
    from portico.host.session import Session

ONCE = Option("allow-once", "Allow once", True)
SESSION = Option("allow-session", "Allow in this session", True, "session")
DENY = Option("deny", "Deny", False)
OPTIONS = [ONCE, SESSION, DENY]


@dataclass(frozen=True)
class Request:
    """A call that wants to run, as it would be shown to a person."""

    kind: str
    """read, write, shell or other."""
    tool: str
    call: str
    title: str
    input: str
    path: str | None = None
    command: str | None = None
    diff: str | None = None
    options: list[Option] | None = None
    editable: bool = False
    result: bool = False
    timeout: float | None = None
    strict: bool = False
    """Its agent's own settings want it asked: only what somebody has allowed passes, nothing by default."""
    passing: str = ""
    """The rule of its agent's own settings by which it passes, unless something forbids it."""
    meta: Json | None = None
    """Of a result that a client proposes: the `result` in its own words, and `by` whom."""
    ready: e.ToolReady | None = None
    """Not said yet: it goes into the log together with the decision or the question."""

    @property
    def subject(self) -> str:
        """What a grant's pattern is matched against."""
        return self.path or self.command or ""


@dataclass(frozen=True)
class Decision:
    allowed: bool
    by: str
    option: str | None = None
    reason: str = ""
    input: str | None = None
    """The input as a person edited it."""


@dataclass(frozen=True)
class Ruling:
    """What a policy says, and by which rule. Policies that have no opinion return None."""

    allowed: bool
    rule: str


Policy = Callable[["Session", Request], Ruling | None]


def session_policy(session: "Session", request: Request) -> Ruling | None:
    """The session's own setting `approvals`: `ask` (default), `allow` or `deny`. Whoever started it chose it."""
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
            and grant.expires > now
            and grant.agent == session.state.agent
            and grant.tool in ("*", request.tool)
            and (grant.session == session.id if grant.session else grant.project == session.state.cwd)
            and fnmatch.fnmatchcase(request.subject, grant.pattern)
        ),
        None,
    )


class Approvals:
    """The approvals of one session that wait in this process."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._waiting: dict[str, asyncio.Future[Decision]] = {}

    async def request(self, turn: str, request: Request) -> Decision:
        ruling = self._rule(request)
        if ruling is None:
            return await self._ask(turn, request)
        await self._session.append(
            *_before(request),
            e.ToolDecided(turn=turn, call=request.call, allowed=ruling.allowed, by="policy", rule=ruling.rule),
        )
        return Decision(ruling.allowed, "policy", reason=ruling.rule)

    def _rule(self, request: Request) -> Ruling | None:
        session = self._session
        host, now = session.host, session.host.now()
        denied = matching(host.grants.values(), session, request, False, now)
        if denied is not None:
            return Ruling(False, f"grant {denied.id}: deny {denied.tool} {denied.pattern}")
        for policy in host.policies:
            ruling = policy(session, request)
            if ruling is not None:
                return ruling
        granted = matching(host.grants.values(), session, request, True, now)
        if granted is not None and not host.rules.protects(session, request):
            return Ruling(True, f"grant {granted.id}: allow {granted.tool} {granted.pattern}")
        return None

    async def _ask(self, turn: str, request: Request) -> Decision:
        session = self._session
        clock = session.host.clock
        timeout = request.timeout or session.host.approval_timeout
        deadline = clock.time() + timeout if timeout is not None else None
        ident = f"{session.id}.{session.new_id('a')}"
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting[ident] = future
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
                    diff=request.diff,
                    editable=request.editable,
                    result=request.result,
                    meta=request.meta or {},
                ),
            )
            if deadline is not None:
                await clock.wait(future, max(0.0, deadline - clock.time()))
            if deadline is not None and not future.done():
                await self._time_out(ident)
            return await future
        finally:
            self._waiting.pop(ident, None)

    async def _time_out(self, ident: str) -> None:
        with contextlib.suppress(AlreadyAnswered):  # a person was faster by a hair: the future holds that answer
            await self.answer(ident, allow=False, by="timeout", reason="no answer in time")

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
        """By option, or by `allow` alone (then it is for this once)."""
        session = self._session
        async with session.lock:
            found = find_approval(session.state, ident)
            if found is None:
                raise NotFound("approval", ident)
            call, approval = found
            if approval.answered:
                raise AlreadyAnswered(f"{ident!r} was answered by {approval.by!r} before.")
            chosen = _choose(approval.options, option, allow)
            if input is not None and not approval.editable:
                raise BadRequest("This call's input cannot be edited.", field="input")
            turn = session.state.active
            assert turn is not None  # an open approval lives in the active turn
            # The grant comes first: if it is refused the approval stays open, and the agent goes on only with both.
            if chosen.grant != "once":
                await self._remember(call.tool, chosen, by)
            answered = e.ApprovalAnswered(
                turn=turn.id,
                approval=ident,
                allowed=chosen.allow,
                by=by,
                option=chosen.id,
                reason=reason,
                input=input,
                meta=meta or {},
            )
            await session.host.log.append_all((session.channel, answered), *_audited(answered))
        return _decision(answered)

    async def _remember(self, tool: str, chosen: Option, by: str) -> None:
        session = self._session
        await session.host.grants.add(
            agent=session.state.agent,
            tool=tool,
            allow=chosen.allow,
            by=by,
            session=session.id if chosen.grant == "session" else None,
            project=session.state.cwd if chosen.grant == "project" else None,
        )

    def settle(self, answered: e.ApprovalAnswered) -> None:
        """The answer is in the log, whatever became of the caller who gave it: whoever waits goes on."""
        waiting = self._waiting.get(answered.approval)
        if waiting is not None and not waiting.done():
            waiting.set_result(_decision(answered))

    def abandon(self) -> None:
        """The turn is over: nobody waits any more. The log gets the answers from the turn's end."""
        for future in self._waiting.values():
            if not future.done():
                future.set_result(Decision(False, "turn", reason="the turn ended"))


def _before(request: Request) -> list[e.Event]:
    return [request.ready] if request.ready is not None else []


def _audited(answered: e.ApprovalAnswered) -> list[tuple[Channel, e.Event]]:
    """Written together with the answer: no kill can come between what a person allowed and the record of it."""
    if answered.by == "timeout":
        return []
    detail: Json = {"approval": answered.approval, "allowed": answered.allowed}
    return [(HOST, e.Audited(action="approval", by=answered.by, detail=detail))]


def _decision(answered: e.ApprovalAnswered) -> Decision:
    return Decision(answered.allowed, answered.by, answered.option, answered.reason, answered.input)


def _choose(options: list[Option], option: str | None, allow: bool | None) -> Option:
    if option is not None:
        chosen = next((each for each in options if each.id == option), None)
        if chosen is None:
            names = ", ".join(repr(each.id) for each in options)
            raise BadRequest(f"There is no option {option!r}; choose one of {names}.", field="option")
        if allow is not None and allow is not chosen.allow:
            raise BadRequest(f"Option {option!r} contradicts 'allow'; send one of them.", field="option")
        return chosen
    if allow is None:
        raise BadRequest("Say 'allow': true or false, or name an 'option'.", field="allow")
    return next((each for each in options if each.allow is allow and each.grant == "once"), ONCE if allow else DENY)
