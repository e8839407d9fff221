"""The one way in: scope, rate, once, decision, append; effects only after the commit."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico.features.approvals.commands import AddGrant
from portico.features.configuration.commands import ConnectModel, SetSetting
from portico.features.jobs.commands import PlanRetry
from portico.features.pairing.commands import PairDevice
from portico.features.people.commands import (
    AddOwnToken,
    AddPerson,
    AddToken,
    ErasePerson,
    RemovePerson,
    RevokeOwnToken,
    RevokeToken,
)
from portico.features.projects.commands import AddProject, ClearProject, ForgetProject, OpenProject
from portico.features.secrets.commands import RemoveSecret, SetSecret
from portico.features.terminals.commands import OpenTerminal
from portico.features.terminals.terminals import Terminals
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.do import RECEIPTS, Receipt
from portico.kernel.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    LogUnavailable,
    NotFound,
    PorticoError,
    RateLimited,
    Unauthenticated,
)
from portico.kernel.events import HOST
from portico.kernel.host import Host
from portico.kernel.log import group_commit
from portico.kernel.state import CallPart
from portico.kernel.turn import Turn
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import feature
from tests.host.plays import hang, idle
from tests.host.test_disk import writable

ADA = c.Caller("token-1", "ada", frozenset(c.SCOPES))


def sample(kind: type[c.Command], **given: Any) -> c.Command:
    """A command of this kind with something in every field that it needs."""
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in given:
            text = str(field.type)
            value: Any = "x"
            if "Message" in text:
                value = {"text": "x"}
            elif "list" in text:
                value = []
            elif "dict" in text:
                value = {}
            elif field.type in (bool, int, float):
                value = field.type(1)
            given[field.name] = value
    return msgspec.convert({"command": kind.__struct_config__.tag, **given}, kind)


@pytest.mark.parametrize("name", list(c.COMMANDS))
async def test_no_command_passes_without_its_scope(host: Host, name: str) -> None:
    """Before anything else is looked at: a caller without the scope does not even learn what is there."""
    kind = c.COMMANDS[name]
    others = frozenset(c.SCOPES) - {kind.scope}
    seq = host.log.seq
    if kind.scope != "any":
        with pytest.raises(Forbidden, match=repr(kind.scope)):
            await host.do(sample(kind), c.Caller("t", "t", others))
    with pytest.raises(Unauthenticated):
        await host.do(sample(kind), c.Caller("", "nobody", frozenset()))
    assert host.log.seq == seq


@pytest.mark.parametrize("way", ["do", "do_all"])
async def test_a_guard_stands_before_every_command_on_every_way(host: Host, tmp_path: Path, way: str) -> None:
    session = await host.start(by="t", cwd=str(tmp_path))
    seq, seen = host.log.seq, []

    def refuse(command: c.Command, caller: c.Caller) -> None:
        seen.append((type(command), caller))
        raise Forbidden("Not yours.")

    host.commands.guard(refuse)
    command = c.MarkRead(session=session.id, read=False)
    loaded = await host.get(session.id)

    async def send() -> None:
        if way == "do_all":
            raise await anext(host.do_all(loaded, [(command, ADA)]))
        await host.do(command, ADA)

    with pytest.raises(Forbidden, match="Not yours"):
        await send()
    assert (seen, host.log.seq) == ([(c.MarkRead, ADA)], seq)


ABOUT_SESSIONS = [name for name, kind in c.COMMANDS.items() if kind.about == "session" and kind.scope != "jobs"]


@pytest.mark.parametrize("name", ABOUT_SESSIONS)
async def test_a_session_that_is_not_there_is_not_found(host: Host, name: str) -> None:
    kind = c.COMMANDS[name]
    with pytest.raises(NotFound, match="'nosuch'"):
        await host.do(sample(kind, session="nosuch"), ADA)


async def test_every_command_is_decided_or_handled(host: Host) -> None:
    people = {AddPerson, RemovePerson, ErasePerson, AddOwnToken, RevokeOwnToken}
    served = {
        AddProject,
        ForgetProject,
        OpenProject,
        ClearProject,
        SetSecret,
        RemoveSecret,
        SetSetting,
        PairDevice,
        ConnectModel,
        AddToken,
        RevokeToken,
        PlanRetry,
        *people,
    }  # these come with the process
    kinds = {kind for kind in c.COMMANDS.values() if kind.scope != "jobs"} - served
    assert kinds == {*(kind for kind in kinds if kind.decide is not None), *host.commands._handlers}


async def test_a_kind_has_one_handler(host: Host) -> None:
    async def handler(command: Any, caller: c.Caller) -> None:
        raise AssertionError

    for kind in (c.SendMessage, c.StartSession):
        with pytest.raises(TypeError, match=kind.__name__):
            host.commands.handle(kind, handler)


# -- once ------------------------------------------------------------------------------------------------------


async def test_a_command_with_an_id_is_done_once(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="test", cwd=str(tmp_path))
    send = c.SendMessage(session=session.id, text="go")
    first, again = await asyncio.gather(host.do(send, ADA.asking("k")), host.do(send, ADA.asking("k")))
    assert first == again == c.TurnBegun("t1")
    await session.wait("t1")
    assert await host.do(send, ADA.asking("k")) == c.TurnBegun("t1")
    assert len(session.state.turns) == 1


async def test_a_command_with_an_id_is_done_once_over_a_restart(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(PlayAgent(idle))
    start = c.StartSession(cwd=str(tmp_path), title="Mine")
    begun = await host.do(start, ADA.asking("s"))
    send = c.SendMessage(session=begun.id, text="go")
    await host.do(send, ADA.asking("m"))
    await host.do(c.ArchiveSession(session=begun.id, archived=True), ADA.asking("a"))
    host = await open_host(PlayAgent(idle))
    assert (await host.do(start, ADA.asking("s"))).id == begun.id
    assert await host.do(send, ADA.asking("m")) == c.TurnBegun("t1")
    assert (await host.do(c.ArchiveSession(session=begun.id, archived=True), ADA.asking("a"))).archived
    assert len(host.list()) == 1
    assert len((await host.get(begun.id)).state.turns) == 1


async def test_what_has_no_shape_of_its_own_is_answered_as_it_is_now(host: Host, tmp_path: Path) -> None:
    host.workspaces = [tmp_path]
    opened = await host.do(OpenTerminal(title="mine"), ADA.asking("t"))
    assert await host.do(OpenTerminal(title="mine"), ADA.asking("t")) is opened
    grant = AddGrant(agent="demo", tool="shell", allow=True, project=str(tmp_path))
    assert await host.do(grant, ADA.asking("g")) == await host.do(grant, ADA.asking("g"))
    assert (len(feature(host, Terminals).list()), len(host.grants)) == (1, 1)


async def test_an_id_belongs_to_its_caller_and_its_command(host: Host, tmp_path: Path) -> None:
    session = await host.start(by="test", cwd=str(tmp_path))
    await host.do(c.RenameSession(session=session.id, title="one"), ADA.asking("k"))
    with pytest.raises(Conflict, match="another command"):
        await host.do(c.RenameSession(session=session.id, title="two"), ADA.asking("k"))
    bob = c.Caller("token-2", "bob", ADA.scopes, request="k")
    await host.do(c.RenameSession(session=session.id, title="two"), bob)
    assert session.state.title == "two"
    with pytest.raises(Conflict, match="200 characters"):
        await host.do(c.RenameSession(session=session.id, title="x"), ADA.asking("k" * (limits.REQUEST_ID_CHARS + 1)))


async def test_a_refused_command_leaves_its_id_free(host: Host, tmp_path: Path) -> None:
    session = await host.start(by="test", cwd=str(tmp_path))
    with pytest.raises(Conflict):
        await host.do(c.ResumeTurn(session=session.id), ADA.asking("k"))
    await host.do(c.RenameSession(session=session.id, title="one"), ADA.asking("k"))
    assert session.state.title == "one"


async def test_a_command_that_the_disk_refused_leaves_its_id_free(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its receipt waited for the disk to come back, and then said that it was done."""
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.01)
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="test", cwd=str(tmp_path))
    rename, start = c.RenameSession(session=session.id, title="one"), c.StartSession(cwd=str(tmp_path))
    writable(host, False)
    for _ in range(2):  # the first finds out that the disk is full, the second is refused at once
        for command in (rename, start):
            with pytest.raises(LogUnavailable):
                await host.do(command, ADA.asking(command.subject or "start"))
    writable(host, True)
    await host.log.available()
    await host.do(rename, ADA.asking(session.id))
    begun = await host.do(start, ADA.asking("start"))
    assert (session.state.title, {each.id for each in host.list()}) == ("one", {session.id, begun.id})


async def test_a_command_that_broke_leaves_its_id_free(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its receipt went with the next commit, and said that it was done."""
    session = await host.start(by="test", cwd=str(tmp_path))
    rename = c.RenameSession(session=session.id, title="one")

    async def broken(*events: Any) -> int:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(host.log, "append_all", broken)
        with pytest.raises(RuntimeError):
            await host.do(rename, ADA.asking("k"))
    await session.archive(True, by="test")
    await host.do(rename, ADA.asking("k"))
    assert session.state.title == "one"


async def test_ids_of_the_hosts_own_parts_are_their_own(host: Host, tmp_path: Path) -> None:
    session = await host.start(by="test", cwd=str(tmp_path))
    for who in ("automation:a", "automation:b"):
        await host.do(c.RenameSession(session=session.id, title=who), c.Caller.inside(who).asking("1"))
    assert session.state.title == "automation:b"


async def test_a_caller_that_leaves_does_not_undo_its_command(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="test", cwd=str(tmp_path))
    send = c.SendMessage(session=session.id, text="go")
    leaving = asyncio.ensure_future(host.do(send, ADA.asking("k")))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    begun: c.TurnBegun = await host.do(send, ADA.asking("k"))
    assert (await session.wait(begun.turn)).outcome == "completed"
    assert len(session.state.turns) == 1


async def test_a_command_that_is_being_done_goes_on_without_who_asked(open_host: HostOpener, tmp_path: Path) -> None:
    """Cancelled with its caller it would be half done: its receipt says it is done, or somebody waits for its lock."""
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="test", cwd=str(tmp_path))
    async with session.lock:
        leaving = asyncio.ensure_future(host.do(c.SendMessage(session=session.id, text="go"), ADA.asking("k")))
        while not host.commands._running:  # noqa: ASYNC110 - it is looking for a receipt
            await asyncio.sleep(0)
        [(_, doing)] = host.commands._running.values()
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
    assert await doing == c.TurnBegun("t1")


async def test_an_id_that_is_being_done_is_for_that_command_only(host: Host, tmp_path: Path) -> None:
    """Else the second caller would be told that its own, other command is done."""
    session = await host.start(by="test", cwd=str(tmp_path))
    one, two = (c.RenameSession(session=session.id, title=title) for title in ("one", "two"))
    answers = await asyncio.gather(host.do(one, ADA.asking("k")), host.do(two, ADA.asking("k")), return_exceptions=True)
    assert sorted(isinstance(each, Conflict) for each in answers) == [False, True]
    assert session.state.title == ("two" if isinstance(answers[0], Conflict) else "one")  # whoever was first


async def test_a_receipt_of_an_older_version_is_recognized(host: Host, tmp_path: Path) -> None:
    """Receipts of 0.2 have the plain SHA-256 of the command. A client retries it after the upgrade."""
    host.commands.receipt_key = b"key"
    session = await host.start(by="test", cwd=str(tmp_path))
    command = c.RenameSession(session=session.id, title="one")
    await host.do(command, ADA.asking("k"))
    key = RECEIPTS + hashlib.sha256(f"{ADA.id}\0{ADA.client}\0k".encode()).hexdigest()[:32]
    data = await host.log.get_kv(HOST, key)
    assert data is not None
    digest = hashlib.sha256(c.encode_command(command)).hexdigest()[:32]
    assert digest not in data.decode()
    old = msgspec.structs.replace(msgspec.json.decode(data, type=Receipt), digest=digest)
    assert await host.log.replace_kv(HOST, key, data, msgspec.json.encode(old))
    await host.do(c.RenameSession(session=session.id, title="two"), ADA)
    await host.do(command, ADA.asking("k"))
    assert session.state.title == "two"  # it was recognized, and not run again
    with pytest.raises(Conflict):
        await host.do(c.RenameSession(session=session.id, title="three"), ADA.asking("k"))


async def test_ids_are_forgotten_after_two_days(open_host: HostOpener, tmp_path: Path) -> None:
    clock = FakeClock()
    host = await open_host(PlayAgent(idle), clock=clock)
    session = await host.start(by="test", cwd=str(tmp_path))
    for day in range(4):
        await host.do(c.RenameSession(session=session.id, title=f"day {day}"), ADA.asking("k"))
        clock.advance(2 * 86_400 + 1)
        await host.sweep()
    left = await host.log.expire_kv(RECEIPTS, 2**60)
    assert (session.state.title, left) == ("day 3", 0)


# -- effects follow commits ------------------------------------------------------------------------------------


async def test_nothing_happens_before_the_commit(open_host: HostOpener, tmp_path: Path) -> None:
    """When the agent hears of a turn, its beginning is durable; when a refused one never began, it hears nothing."""
    heard: list[bool] = []

    async def look(message: e.Message, turn: Any) -> None:
        records = await turn.session.host.log.read(turn.session.channel)
        heard.append(any(isinstance(each.event, e.TurnStarted) and each.event.turn == turn.id for each in records))

    host = await open_host(PlayAgent(look))
    session = await host.start(by="test", cwd=str(tmp_path))
    begun: c.TurnBegun = await host.do(c.SendMessage(session=session.id, text="go"), ADA)
    await session.wait(begun.turn)
    with pytest.raises(Conflict):
        await host.do(c.SendMessage(session=session.id, text="go", turn=begun.turn, busy="refuse"), ADA)
    assert heard == [True]


@pytest.mark.parametrize("kind", [c.SendMessage, c.CloseSession, c.TruncateSession, c.AnswerApproval])
async def test_what_could_not_be_written_has_no_effect(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch, kind: type[c.Command]
) -> None:
    """An effect before the append begins a turn, ends a conversation or lets a call run that is not on record."""
    heard: list[str] = []

    async def play(message: e.Message, turn: Turn) -> None:
        heard.append(message.text)
        if message.text == "ask":
            decision = await turn.tool("shell", "{}", kind="execute").approve("shell", command="make")
            heard.append(decision.by)

    agent = PlayAgent(play)
    host = await open_host(agent)
    session = await host.start(by="test", cwd="/")
    await session.wait(await session.send(e.Message("first"), by="test"))
    given: dict[str, Any] = {"session": session.id}
    if kind is c.SendMessage:
        given["text"] = "refused"
    elif kind is c.AnswerApproval:
        await session.send(e.Message("ask"), by="test")
        state = await session.wait_until(lambda state: state.status == "waiting")
        call = state.turns[-1].parts[-1]
        assert isinstance(call, CallPart)
        assert call.approval is not None
        given = {"approval": call.approval.id, "allow": True}
    before = [*heard]

    async def refuse(*events: Any) -> int:
        raise LogUnavailable("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(host.log, "append_all", refuse)
        with pytest.raises(LogUnavailable):
            await host.do(sample(kind, **given), ADA)
        await session.settle()
        assert (heard, agent.closed) == (before, 0)
        assert session.running is None or kind is c.AnswerApproval
        assert not any(future.done() for future in session.approvals._waiting.values())


async def test_a_turn_begins_whatever_becomes_of_who_asked_for_it(open_host: HostOpener, tmp_path: Path) -> None:
    """The caller left between the append and its commit, and the turn stood there without an agent for ever."""
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="test", cwd=str(tmp_path))
    for count in range(1, 6):
        asking = asyncio.ensure_future(host.do(c.SendMessage(session=session.id, text="go"), ADA))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await session.wait_until(lambda state: state.active is None)
        assert len(session.state.turns) <= count
        assert all(turn.outcome == "completed" for turn in session.state.turns)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"config": {"approvals": "allow"}}, Forbidden),
        ({"model": "nosuch"}, NotFound),
        ({"title": "x" * (limits.TITLE_CHARS + 1)}, BadRequest),
    ],
    ids=["forbidden", "unknown model", "long title"],
)
async def test_a_change_is_done_as_a_whole_or_not_at_all(
    host: Host, tmp_path: Path, wrong: dict[str, Any], error: type[PorticoError]
) -> None:
    session = await host.start(by="test", cwd=str(tmp_path))
    driver = c.Caller("token-3", "driver", frozenset({"read", "drive"}))
    right: dict[str, Any] = {"title": "new", "model": "gpt-4.1", "archived": True, "read": False, "config": {"a": 1}}
    before = host.log.head(session.channel)
    with pytest.raises(error):
        await host.do(c.ChangeSession(session=session.id, **(right | wrong)), driver.asking("k"))
    assert host.log.head(session.channel) == before
    await host.do(c.ChangeSession(session=session.id, **right), driver.asking("k"))
    state = session.state
    assert (state.title, state.model, state.archived, state.read, state.config) == tuple(right.values())


async def test_a_change_is_one_append_with_its_receipt(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between two appends would leave the one and not the other."""
    session = await host.start(by="test", cwd=str(tmp_path))
    append, appended = host.log.append_all, list[Any]()

    async def counted(*events: Any) -> int:
        appended.append(events)
        return await append(*events)

    monkeypatch.setattr(host.log, "append_all", counted)
    await host.do(c.ChangeSession(session=session.id, title="new", archived=True), ADA.asking("k"))
    [events] = appended
    assert [type(event) for _, event in events] == [e.SessionRenamed, e.SessionArchived]


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ({"title": "one", "archived": True}, {"title": "one"}),
        ({"title": "one", "archived": True}, {"title": "one", "archived": False}),
        ({"title": "one", "config": {"a": 1}}, {"title": "one", "config": {"a": 2}}),
        ({"model": "gpt-4.1", "read": False}, {"model": "gpt-4.1", "read": False, "title": ""}),
        ({}, {"title": "one"}),
    ],
)
async def test_a_change_with_an_id_is_done_once_over_a_restart(
    open_host: HostOpener, tmp_path: Path, first: dict[str, Any], other: dict[str, Any]
) -> None:
    """Several fields had no receipt: asked again, they were done over what had been said since."""
    host = await open_host()
    ident = (await host.start(by="test", cwd=str(tmp_path))).id
    change = c.ChangeSession(session=ident, **first)
    since = c.ChangeSession(session=ident, title="since", model="gpt-5-mini", archived=False, config={"a": 3})
    for restarted in (False, True):
        host = await open_host() if restarted else host
        await host.do(change, ADA.asking("k"))
        await host.do(since, ADA.asking("l"))
        found = await host.do(change, ADA.asking("k"))
        assert (found.id, found.title, found.model, found.archived) == (ident, "since", "gpt-5-mini", False)
        with pytest.raises(Conflict, match="another command"):
            await host.do(c.ChangeSession(session=ident, **other), ADA.asking("k"))
        assert (await host.get(ident)).state.config["a"] == 3


async def test_many_plain_commands_share_an_append_and_no_refusal(host: Host, tmp_path: Path) -> None:
    session = await host.start(by="test", cwd=str(tmp_path))
    driver = c.Caller("token-3", "driver", frozenset({"drive"}))
    asked: list[tuple[c.Command, c.Caller]] = [
        (c.RenameSession(session=session.id, title="one"), driver),
        (c.RenameSession(session=session.id, title=""), driver),
        (c.ArchiveSession(session=session.id, archived=True), c.Caller("t", "reader", frozenset({"read"}))),
        (c.ShareData(session=session.id, key="mine", value={"text": "x"}), driver),
    ]
    commits = host.log.commits  # type: ignore[attr-defined]
    answers = [answer async for answer in host.do_all(session, asked)]
    assert [getattr(answer, "code", answer) for answer in answers] == [None, "bad_request", "forbidden", None]
    assert (session.state.title, session.state.archived) == ("one", False)
    assert session.state.client_data == {"mine": {"text": "x"}}
    assert host.log.commits - commits <= 2  # type: ignore[attr-defined]  # the events, and the summary


async def test_many_commands_that_the_disk_refused_are_told_so(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them, and those that were refused before keep their own reason."""
    session = await host.start(by="test", cwd=str(tmp_path))

    async def refuse(*events: Any) -> int:
        raise LogUnavailable("The disk is full.")

    monkeypatch.setattr(host.log, "append_all", refuse)
    titles = ("one", "", "two")
    asked = [(c.RenameSession(session=session.id, title=title), ADA) for title in titles]
    answers = [answer async for answer in host.do_all(session, asked)]
    assert [answer.code for answer in answers] == ["log_unavailable", "bad_request", "log_unavailable"]
    assert session.state.title == ""


async def test_one_command_that_cannot_be_written_hinders_no_other(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, append = await host.start(by="test", cwd=str(tmp_path)), host.log.append_all

    async def pick(*events: Any) -> int:
        if any(getattr(event, "title", "") == "two" for _, event in events):
            raise BadRequest("That is too much for one event.")
        return await append(*events)

    monkeypatch.setattr(host.log, "append_all", pick)
    asked = [(c.RenameSession(session=session.id, title=title), ADA) for title in ("one", "two", "three", "")]
    answers = [answer async for answer in host.do_all(session, asked)]
    assert [getattr(answer, "code", answer) for answer in answers] == [None, "bad_request", None, "bad_request"]
    assert session.state.title == "three"


async def test_only_plain_commands_go_the_short_way(host: Host, tmp_path: Path) -> None:
    """The others ask the world first, or wait for the lock: planned without, they would be decided on old ground."""
    session = await host.start(by="test", cwd=str(tmp_path))
    for kind in (
        kind for kind in c.COMMANDS.values() if kind.decide is not None and kind.lock != "host" and not kind.plain
    ):
        with pytest.raises(TypeError, match=kind.__name__):
            await anext(host.do_all(session, [(sample(kind, **{kind.about: session.id}), ADA)]))


# -- rates -----------------------------------------------------------------------------------------------------


async def test_messages_are_counted_for_each_token(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REQUEST_BURST", 2)
    monkeypatch.setattr(limits, "REQUESTS_PER_SECOND", 0.001)
    session = await host.start(by="test", cwd=str(tmp_path))
    send = c.SendMessage(session=session.id, text="go")
    for _ in range(2):
        await host.do(send, ADA)
    with pytest.raises(RateLimited):
        await host.do(send, ADA)
    await host.do(send, c.Caller("token-2", "bob", ADA.scopes))
    for _ in range(3):
        await host.do(send, c.Caller.inside("host"))
    await host.do(c.RenameSession(session=session.id, title="free"), ADA)


async def test_an_agent_that_does_not_answer_a_steer_does_not_hold_up_a_cancel(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CANCEL_SECONDS", 0.2)
    host = await open_host(PlayAgent(hang))
    session = await host.start(by="test", cwd=str(tmp_path))
    begun: c.TurnBegun = await host.do(c.SendMessage(session=session.id, text="go"), ADA)
    asked = asyncio.Event()

    async def never(message: e.Message) -> bool:
        asked.set()
        await asyncio.get_running_loop().create_future()
        return True

    monkeypatch.setattr(session.runner, "steer", never)
    steering = asyncio.ensure_future(host.do(c.SendMessage(session=session.id, text="left", busy="steer"), ADA))
    await asked.wait()
    async with asyncio.timeout(60):
        await host.do(c.CancelTurn(session=session.id), ADA)
        assert (await session.wait(begun.turn)).outcome == "cancelled"
        assert await steering == c.Steered(False, True)
