"""Who may do what: the first valid answer wins, no answer is no, and everything is written down."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from portico.agents.agent import Message, Turn
from portico.features.approvals.policy import ApprovalRules, Rules
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.approval import Request, Ruling
from portico.kernel.errors import AlreadyAnswered, BadRequest, NotFound, PorticoError, RateLimited
from portico.kernel.events import HOST, Event, Grant, Option
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import Approval, CallPart, TextPart, TurnState
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import feature
from tests.grants import add_grant, revoke_grant
from tests.host.plays import allowed


async def ask(host: Host, session: Session | None = None) -> tuple[Session, Approval]:
    """A session whose turn waits for an approval."""
    session = session or await host.start(by="test", cwd="/")
    await session.send(Message("go"), by="test")
    state = await session.wait_until(lambda state: state.status == "waiting")
    assert state.active is not None
    call = state.active.parts[-1]
    assert isinstance(call, CallPart)
    assert call.approval is not None
    return session, call.approval


async def said(session: Session) -> str:
    turn = await asyncio.wait_for(session.wait(session.state.turns[-1].id), 60)
    part = turn.parts[-1]
    assert isinstance(part, TextPart)
    return part.text


def call_of(turn: TurnState) -> CallPart:
    call = turn.parts[0]
    assert isinstance(call, CallPart)
    return call


async def answers(session: Session) -> list[e.ApprovalAnswered]:
    events: list[Event] = [record.event for record in await session.host.log.read(session.channel)]
    return [event for event in events if isinstance(event, e.ApprovalAnswered)]


async def test_a_yes(open_host: HostOpener) -> None:
    host = await open_host(PlayAgent(allowed))
    session, approval = await ask(host)
    assert (approval.kind, approval.command, approval.input) == ("shell", "make", '{"command": "make"}')
    assert [option.id for option in approval.options] == ["allow-once", "allow-session", "deny"]
    assert host.session_of(approval.id) == session.id
    assert session.summary.status == "waiting"
    decision = await session.approvals.answer(approval.id, allow=True, by="token:ada", reason="fine")
    assert (decision.allowed, decision.by, decision.option) == (True, "token:ada", "allow-once")
    assert await said(session) == "yes: token:ada"
    assert [(a.allowed, a.by, a.reason) for a in await answers(session)] == [(True, "token:ada", "fine")]
    assert host.grants == {}


async def test_a_no(open_host: HostOpener) -> None:
    session, approval = await ask(await open_host(PlayAgent(allowed)))
    await session.approvals.answer(approval.id, option="deny", by="ada", reason="not now")
    assert await said(session) == "no: ada: not now"
    assert call_of(session.state.turns[0]).outcome == "cancelled"


async def test_the_first_valid_answer_wins(open_host: HostOpener) -> None:
    session, approval = await ask(await open_host(PlayAgent(allowed)))
    with pytest.raises(BadRequest):
        await session.approvals.answer(approval.id, option="perhaps", by="eve")
    results = await asyncio.gather(
        *(session.approvals.answer(approval.id, allow=i % 2 == 0, by=f"client:{i}") for i in range(5)),
        return_exceptions=True,
    )
    assert [type(result) for result in results[1:]] == [AlreadyAnswered] * 4
    assert [answer.by for answer in await answers(session)] == ["client:0"]
    assert await said(session) == "yes: client:0"
    with pytest.raises(AlreadyAnswered, match="answered by 'client:0' before"):
        await session.approvals.answer(approval.id, allow=False, by="late")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({}, "allow"),
        ({"option": "nonsense"}, "option"),
        ({"option": "deny", "allow": True}, "option"),
    ],
)
async def test_a_wrong_answer_leaves_it_open(open_host: HostOpener, wrong: dict[str, bool], field: str) -> None:
    session, approval = await ask(await open_host(PlayAgent(allowed)))
    with pytest.raises(BadRequest) as caught:
        await session.approvals.answer(approval.id, by="ada", **wrong)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert session.state.status == "waiting"


async def test_an_unknown_approval(open_host: HostOpener) -> None:
    host = await open_host(PlayAgent(allowed))
    session, _ = await ask(host)
    with pytest.raises(NotFound):
        await session.approvals.answer("session-1.a99", allow=True, by="ada")


async def test_input_can_be_edited_where_the_call_allows_it(open_host: HostOpener) -> None:
    session, approval = await ask(await open_host(PlayAgent(allowed)))
    await session.approvals.answer(approval.id, allow=True, by="ada", input='{"command": "make -n"}')
    await said(session)
    call = call_of(session.state.turns[0])
    assert call.input == '{"command": "make -n"}'
    assert call.output == 'ran {"command": "make -n"}'

    async def rigid(message: Message, turn: Turn) -> None:
        await turn.tool("shell", "{}").approve("shell")

    session, approval = await ask(await open_host(PlayAgent(rigid)))
    with pytest.raises(BadRequest):
        await session.approvals.answer(approval.id, allow=True, by="ada", input="{}")


async def test_without_a_setting_it_waits_for_ever(open_host: HostOpener, clock: FakeClock) -> None:
    """Whoever came back after lunch found that two minutes of silence had been a no."""
    session, approval = await ask(await open_host(PlayAgent(allowed), clock=clock))
    assert approval.expires == 0
    clock.advance(365 * 24 * 3600)
    await asyncio.sleep(0)
    assert session.state.status == "waiting"
    await session.approvals.answer(approval.id, allow=True, by="ada")
    assert (await said(session)).startswith("yes: ada")


async def test_no_answer_in_time_is_no(open_host: HostOpener, clock: FakeClock) -> None:
    host = await open_host(PlayAgent(allowed), clock=clock)
    host.approval_timeout = 120
    session, approval = await ask(host)
    assert approval.expires == int((clock.time() + 120) * 1000)
    clock.advance(120 - 1)
    await asyncio.sleep(0)
    assert session.state.status == "waiting"
    clock.advance(1)
    assert await said(session) == "no: timeout: no answer in time"
    assert [(a.allowed, a.by) for a in await answers(session)] == [(False, "timeout")]


async def test_an_agent_that_waits_less_long_is_refused_earlier(open_host: HostOpener, clock: FakeClock) -> None:
    async def play(message: Message, turn: Turn) -> None:
        decision = await turn.tool("shell", "{}").approve("shell", command="make", timeout=5)
        turn.text(f"{decision.allowed} {decision.by}")

    session, approval = await ask(await open_host(PlayAgent(play), clock=clock))
    assert approval.expires == int((clock.time() + 5) * 1000)
    clock.advance(5)
    assert await said(session) == "False timeout"


async def test_an_answer_whose_caller_went_away_counts(open_host: HostOpener) -> None:
    """The answer was in the log, but the agent never heard of it and waited for ever."""
    for steps in range(4):
        session, approval = await ask(await open_host(PlayAgent(allowed)))
        task = asyncio.create_task(session.approvals.answer(approval.id, allow=True, by="ada"))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        await session.host.log.flush()
        if await answers(session):
            assert await said(session) == "yes: ada"
        else:
            assert session.state.status == "waiting"


@pytest.mark.parametrize("way", ["cancel", "stop"])
async def test_a_turn_takes_its_open_approvals_with_it(open_host: HostOpener, way: str) -> None:
    host = await open_host(PlayAgent(allowed))
    session, approval = await ask(host)
    if way == "cancel":
        await session.cancel(by="ada")
    else:
        await open_host.close()
        session = await (await open_host(PlayAgent(allowed))).get(session.id)
    [answer] = await answers(session)
    by, reason = ("ada", "cancelled") if way == "cancel" else ("host", "interrupted")
    assert (answer.approval, answer.allowed, answer.by, answer.reason) == (approval.id, False, by, reason)
    with pytest.raises(AlreadyAnswered):
        await session.approvals.answer(approval.id, allow=True, by="late")


async def test_an_agent_that_still_waits_when_its_turn_was_cancelled_hears_a_no(open_host: HostOpener) -> None:
    heard: list[bool] = []

    async def stubborn(message: Message, turn: Turn) -> None:
        asking = asyncio.ensure_future(turn.tool("shell", "{}").approve("shell", command="make"))
        asking.add_done_callback(lambda done: heard.append(done.result().allowed))
        await asyncio.wait({asking})

    session, _ = await ask(await open_host(PlayAgent(stubborn, obeys=True)))
    turn = session.state.turns[-1].id
    await session.cancel(by="ada")
    assert (await session.wait(turn)).outcome == "cancelled"
    assert heard == [False]


async def test_the_agents_own_options(open_host: HostOpener) -> None:
    options = [Option("go", "Go", True), Option("always", "Always here", True, "project"), Option("no", "No", False)]

    async def play(message: Message, turn: Turn) -> None:
        call = turn.tool("shell", "{}")
        decision = await call.approve("shell", command="make", options=options)
        turn.text(str(decision.option))

    host = await open_host(PlayAgent(play))
    session, approval = await ask(host)
    assert approval.options == options
    await session.approvals.answer(approval.id, option="always", by="ada")
    assert await said(session) == "always"
    [grant] = host.grants.values()
    assert (grant.project, grant.session, grant.tool, grant.allow) == ("/", None, "shell", True)


async def test_a_policy_decides_and_is_written_down(open_host: HostOpener) -> None:
    host = await open_host(PlayAgent(allowed))

    def no_make(session: Session, request: Request) -> Ruling | None:
        return Ruling(False, "no make on Sundays") if request.command == "make" else None

    host.policies.append(no_make)
    session = await host.start(by="test", cwd="/")
    await session.send(Message("go"), by="test")
    assert await said(session) == "no: policy: no make on Sundays"
    assert call_of(session.state.turns[0]).rule == "no make on Sundays"
    assert await answers(session) == []


@pytest.mark.parametrize(("choice", "text"), [("allow", "yes: policy"), ("deny", "no: policy")])
async def test_the_sessions_own_setting(open_host: HostOpener, choice: str, text: str) -> None:
    host = await open_host(PlayAgent(allowed))
    session = await host.start(by="test", cwd="/", config={"approvals": choice})
    await session.send(Message("go"), by="test")
    assert (await said(session)).startswith(text)


# -- grants ------------------------------------------------------------------------------------------------------


async def test_allow_in_this_session_is_remembered_there_and_ends(open_host: HostOpener, clock: FakeClock) -> None:
    host = await open_host(PlayAgent(allowed), clock=clock)
    session, approval = await ask(host)
    await session.approvals.answer(approval.id, option="allow-session", by="ada")
    await said(session)
    [grant] = host.grants.values()
    assert (grant.session, grant.project, grant.agent) == (session.id, None, "play")
    assert grant.expires == host.now() + int(limits.GRANT_SECONDS * 1000)

    await session.send(Message("again"), by="test")
    assert await said(session) == "yes: policy"
    assert call_of(session.state.turns[1]).rule == f"grant {grant.id}: allow shell line:make"

    other, _ = await ask(host)
    await other.cancel(by="test")

    clock.advance(limits.GRANT_SECONDS)
    await ask(host, session)


async def test_a_grant_that_has_ended_stays_ended_when_the_clock_goes_back(
    open_host: HostOpener, clock: FakeClock
) -> None:
    host = await open_host(PlayAgent(allowed), clock=clock)
    session = await host.start(by="test", cwd="/")
    await add_grant(host, agent="play", tool="shell", allow=True, by="ada", session=session.id)
    clock.advance(limits.GRANT_SECONDS)
    await ask(host, session)
    await session.cancel(by="test")
    clock.advance(-limits.GRANT_SECONDS)
    await ask(host, session)
    await session.cancel(by="test")
    await host.sweep()
    assert (await open_host(PlayAgent(allowed), clock=clock)).grants == {}


async def test_a_yes_to_all_edits_is_none_to_hooks_and_secrets(open_host: HostOpener) -> None:
    """Whoever let an agent edit for the rest of a session had also let it write `.git/hooks/pre-commit`."""

    async def edit(message: Message, turn: Turn) -> None:
        call = turn.tool("edit", title="Edit")
        decision = await call.approve("write", path=message.text)
        await call.end(ok=decision.allowed)
        turn.text(decision.by)

    host = await open_host(PlayAgent(edit))
    session = await host.start(by="test", cwd="/")
    await add_grant(host, agent=session.state.agent, tool="edit", allow=True, by="ada", session=session.id)
    await session.send(Message("src/a.py"), by="test")
    assert await said(session) == "policy"
    for path in (".git/hooks/pre-commit", "sub/.env", "uv.lock"):
        await session.send(Message(path), by="test")
        state = await session.wait_until(lambda state: state.status == "waiting")
        assert state.active is not None
        await session.cancel(by="test")


async def test_grants_survive_a_restart_and_can_be_revoked(open_host: HostOpener) -> None:
    host = await open_host(PlayAgent(allowed))
    await add_grant(host, agent="play", tool="shell", allow=True, by="ada", project="/")
    gone = await add_grant(host, agent="play", tool="*", allow=False, by="ada", project="/")
    await revoke_grant(host, gone.id, by="ada")
    before = dict(host.grants)

    host = await open_host(PlayAgent(allowed))
    assert host.grants == before
    session = await host.start(by="test", cwd="/")
    await session.send(Message("go"), by="test")
    assert await said(session) == "yes: policy"
    with pytest.raises(NotFound):
        await revoke_grant(host, gone.id, by="ada")


async def test_deny_beats_allow(open_host: HostOpener) -> None:
    host = await open_host(PlayAgent(allowed))
    session = await host.start(by="test", cwd="/", config={"approvals": "allow"})
    await add_grant(host, agent="play", tool="shell", allow=True, by="ada", session=session.id)
    await add_grant(host, agent="play", tool="*", allow=False, by="bob", project="/", pattern="ma*")
    await session.send(Message("go"), by="test")
    assert (await said(session)).startswith("no: policy: grant")


async def test_what_the_settings_refuse_no_grant_allows(open_host: HostOpener) -> None:
    host = await open_host(PlayAgent(allowed))
    feature(host, ApprovalRules).policy.settings = Rules("setting", refused=("make",))
    session = await host.start(by="test", cwd="/")
    await add_grant(host, agent="play", tool="*", allow=True, by="ada", session=session.id)
    await session.send(Message("go"), by="test")
    assert await said(session) == "no: policy: setting 'make' refuses the command"


async def test_a_no_that_is_remembered_is_a_no(open_host: HostOpener) -> None:
    options = [Option("yes", "Yes", True), Option("never", "Never here", False, "session")]

    async def play(message: Message, turn: Turn) -> None:
        decision = await turn.tool("shell", "{}").approve("shell", command="make", options=options)
        turn.text(f"{decision.allowed} {decision.by}")

    session, approval = await ask(await open_host(PlayAgent(play)))
    await session.approvals.answer(approval.id, option="never", by="ada")
    assert await said(session) == "False ada"
    await session.send(Message("again"), by="test")
    assert await said(session) == "False policy"


async def test_the_pattern_of_a_grant_is_for_the_path_of_an_edit(open_host: HostOpener) -> None:
    async def play(message: Message, turn: Turn) -> None:
        decision = await turn.tool("edit", "{}").approve("write", path=message.text)
        turn.text(f"{decision.allowed} {decision.by}")

    host = await open_host(PlayAgent(play))
    await add_grant(host, agent="play", tool="edit", allow=True, by="ada", project="/", pattern="/src/*")
    session = await host.start(by="test", cwd="/")
    await session.send(Message("/src/main.py"), by="test")
    assert await said(session) == "True policy"
    await session.send(Message("/etc/passwd"), by="test")
    await session.wait_until(lambda state: state.status == "waiting")


@pytest.mark.parametrize("cwd", ["inside", "beside-evil"])
async def test_a_grant_for_a_project_is_for_that_folder_alone(open_host: HostOpener, tmp_path: Path, cwd: str) -> None:
    """Neither for one below it, where another's code may lie, nor for one whose name begins the same."""
    folder = {"inside": tmp_path / "app/inside", "beside-evil": tmp_path / "app-evil"}[cwd]
    folder.mkdir(parents=True)
    host = await open_host(PlayAgent(allowed))
    await add_grant(host, agent="play", tool="*", allow=True, by="ada", project=str(tmp_path / "app"))
    await ask(host, await host.start(by="test", cwd=str(folder)))


@pytest.mark.parametrize(
    "grant",
    [
        {"agent": "other", "project": "/"},
        {"agent": "play", "project": "/tmp"},
        {"agent": "play", "session": "session-2"},
        {"agent": "play", "project": "/", "tool": "read"},
        {"agent": "play", "project": "/", "pattern": "make ?*"},
    ],
)
async def test_a_grant_for_something_else_does_not_count(open_host: HostOpener, grant: dict[str, str]) -> None:
    host = await open_host(PlayAgent(allowed), PlayAgent(allowed, "other"))
    await add_grant(host, **{"tool": "shell", **grant}, allow=True, by="ada")
    await ask(host)


@pytest.mark.parametrize(
    "grant",
    [
        {"agent": "play"},
        {"agent": "play", "session": "session-1", "project": "/"},
        {"agent": "nobody", "project": "/"},
    ],
)
async def test_a_wrong_grant(open_host: HostOpener, grant: dict[str, str]) -> None:
    host = await open_host(PlayAgent(allowed))
    with pytest.raises(PorticoError):
        await add_grant(host, **grant, tool="shell", allow=True, by="ada")
    assert host.grants == {}


async def test_grants_at_once_are_all_kept_under_their_own_names(open_host: HostOpener) -> None:
    """Two at once got the same name, and the later one forgot the earlier."""
    host = await open_host(PlayAgent(allowed))
    made = await asyncio.gather(
        *(add_grant(host, agent="play", tool=str(i), allow=True, by="ada", project="/") for i in range(10)),
    )
    assert set(host.grants) == {grant.id for grant in made}
    assert len(host.grants) == 10
    host = await open_host(PlayAgent(allowed))
    assert len(host.grants) == 10


async def test_over_the_bound_of_grants_the_approval_stays_open(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer was written, the grant refused, and the agent waited for ever."""
    monkeypatch.setattr(limits, "GRANTS", 1)
    host = await open_host(PlayAgent(allowed))
    session, approval = await ask(host)
    await add_grant(host, agent="play", tool="read", allow=True, by="ada", project="/")
    with pytest.raises(RateLimited):
        await session.approvals.answer(approval.id, option="allow-session", by="ada")
    assert await answers(session) == []
    await session.approvals.answer(approval.id, option="allow-once", by="ada")
    assert await said(session) == "yes: ada"


async def test_every_answer_of_a_person_is_in_the_audit_record(open_host: HostOpener) -> None:
    """SECURITY 26, for every door at once."""
    host = await open_host(PlayAgent(allowed))
    session, approval = await ask(host)
    await session.approvals.answer(approval.id, allow=True, by="token:ada")
    await host.log.flush()
    audited = [record.event for record in await host.log.read(e.HOST) if isinstance(record.event, e.Audited)]
    assert audited == [e.Audited("approval", "token:ada", {"approval": approval.id, "allowed": True})]


async def test_an_answer_and_its_audit_record_are_written_together(open_host: HostOpener) -> None:
    """A kill between the two left an answer that nobody had given, as far as the audit record knew."""
    host = await open_host(PlayAgent(allowed))
    batches: list[list[type[e.Event]]] = []
    host.log.on_commit(lambda records: batches.append([type(record.event) for record in records]))
    session, approval = await ask(host)
    await session.approvals.answer(approval.id, allow=True, by="token:ada")
    assert [e.Audited in batch for batch in batches if e.ApprovalAnswered in batch] == [True]


async def test_grants_of_the_version_before_are_kept_and_can_be_revoked(open_host: HostOpener) -> None:
    """Up to 0.1 all of them were in one note."""
    host = await open_host()
    old = {ident: Grant(ident, "scripted", "*", True, 10**14, project="/") for ident in ("grant-3", "grant-7")}
    host.log.put_kv(HOST, "grants", msgspec.json.encode(old))
    await host.log.flush()
    host = await open_host()
    assert dict(host.grants) == old
    await revoke_grant(host, "grant-3", by="ada")
    new = await add_grant(host, agent="scripted", tool="*", allow=True, by="ada", project="/")
    host = await open_host()
    assert set(host.grants) == {"grant-7", new.id}
    assert await host.log.get_kv(HOST, "grants") is None
