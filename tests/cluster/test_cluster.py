"""Every host shows and drives every session; one of them owns it."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from portico.cluster.host_tables import SCHEDULER
from portico.cluster.postgres.opening import OWNED
from portico.features.approvals.commands import AddGrant, RevokeGrant
from portico.features.board.activity import waiting_of
from portico.kernel import commands as c
from portico.kernel.errors import Conflict, Forbidden, NotFound, PlaceAway, PorticoError, Unreachable
from portico.kernel.events import Channel, Event, Message, SessionRenamed, tag
from portico.kernel.session import Session
from portico.kernel.state import SessionState
from tests.cluster.conftest import Node, Nodes
from tests.log.events import fact

ADA = c.Caller("ada", "ada", frozenset(c.SCOPES))
STRANGER = c.Caller("stranger", "stranger", frozenset({"read"}))


async def until(node: Node, session: str, holds: Callable[[SessionState], bool]) -> SessionState:
    async with asyncio.timeout(30):
        return await (await node.host.get(session)).wait_until(holds)


async def found(node: Node, session: str) -> Session:
    async with asyncio.timeout(30):
        while not node.host.has(session):
            await node.log._change()
        return await node.host.get(session)


async def eventually(holds: Callable[[], bool]) -> None:
    """For what no event tells."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.02)


async def owner_is(node: Node, session: str) -> None:
    await eventually(lambda: node.host.members.owns(f"session/{session}"))


async def say(node: Node, session: str, text: str) -> str:
    begun = await node.host.do(c.SendMessage(session=session, text=text), ADA)
    assert isinstance(begun, c.TurnBegun)
    return begun.turn


async def test_a_session_is_driven_from_any_host(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b")
    session = await a.host.start(by="test", agent="play", title="shared")
    there = await found(b, session.id)
    assert there.summary.title == "shared"
    turn = await say(b, session.id, "hello")
    ended = await there.wait(turn)
    assert (ended.outcome, ended.parts[0].text) == ("completed", "hello heard")  # type: ignore[union-attr]
    assert (a.host.running, len(a.agent.openings), b.agent.openings) == (0, 1, [])
    await b.host.do(c.RenameSession(session=session.id, title="renamed there"), ADA)
    assert (session.summary.title, there.summary.title) == ("renamed there", "renamed there")
    assert [record.pos for record in await b.log.read(session.channel)] == [*range(1, b.log.head(session.channel) + 1)]


async def test_ids_are_given_once(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b")
    made = [await node.host.start(by="test", agent="play") for node in (a, b, a, b)]
    assert len({session.id for session in made}) == 4
    for node in (a, b):
        for session in made:
            await found(node, session.id)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (lambda session: c.CancelTurn(session=session), Conflict),
        (lambda session: c.TruncateSession(session=session, turn="nosuch"), NotFound),
        (lambda session: c.SetModel(session=session, model="nosuch"), NotFound),
        (lambda session: c.RenameSession(session="nosuch", title="x"), NotFound),
    ],
)
async def test_an_error_is_the_same_from_another_host(
    nodes: Nodes, command: Callable[[str], c.Command], error: type[PorticoError]
) -> None:
    a, b = await nodes("a"), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    await found(b, session.id)
    messages = []
    for node in (a, b):
        with pytest.raises(error) as refused:
            await node.host.do(command(session.id), ADA)
        messages.append((type(refused.value), refused.value.message, refused.value.field))
    assert messages[0] == messages[1]


@pytest.mark.parametrize(
    ("kind", "said", "event"),
    [
        (c.SendMessage, {"text": "once"}, "turn.started"),
        (c.ChangeSession, {"title": "once", "archived": True}, "session.archived"),
    ],
)
async def test_a_command_with_an_id_is_done_once_wherever_it_arrives(
    nodes: Nodes, kind: type[c.Command], said: dict[str, Any], event: str
) -> None:
    """A change of several fields was refused at the second one, when it came by another host."""
    a, b = await nodes("a"), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    await found(b, session.id)
    command = kind(session=session.id, **said)
    answers = [await node.host.do(command, ADA.asking("one")) for node in (b, a, b)]
    assert answers[0] == answers[1] == answers[2]
    records = await a.host.log.read(session.channel)
    assert [tag(record.event) for record in records].count(event) == 1


async def test_a_person_answers_at_another_host(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    await found(b, session.id)
    turn = await say(b, session.id, "ask")
    state = await until(b, session.id, lambda state: bool(waiting_of(state)))
    [waiting] = waiting_of(state)
    decided = await b.host.do(c.AnswerApproval(approval=waiting.id, allow=True), ADA)
    assert decided.allowed
    assert (await (await b.host.get(session.id)).wait(turn)).outcome == "completed"


async def test_grants_of_two_hosts_in_one_moment(nodes: Nodes) -> None:
    """Neither had heard of the other's: both got one id, and a host that started later knew what the last one had
    written, with a grant that was revoked and without one that was not."""
    a, b = await nodes("a"), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    await found(b, session.id)
    add = AddGrant(agent="play", tool="shell", allow=True, session=session.id)
    old = await b.host.do(add, ADA)
    await eventually(lambda: old.id in a.host.grants)
    kept, _, more = await asyncio.gather(
        a.host.do(add, ADA), a.host.do(RevokeGrant(grant=old.id), ADA), b.host.do(add, ADA)
    )
    assert len({old.id, kept.id, more.id}) == 3
    every = (a, b, await nodes("third"))
    await eventually(lambda: all(set(node.host.grants) == {kept.id, more.id} for node in every))


async def test_a_deletion_and_a_grant_hold_everywhere(nodes: Nodes) -> None:
    a, b, third = await nodes("a"), await nodes("b"), await nodes("c")
    session = await a.host.start(by="test", agent="play")
    await found(b, session.id)
    await found(third, session.id)
    grant = await b.host.do(AddGrant(agent="play", tool="shell", allow=True, session=session.id), ADA)
    async with asyncio.timeout(30):
        while grant.id not in third.host.grants or grant.id not in a.host.grants:
            await third.log._change()
    await b.host.do(c.DeleteSession(session=session.id), ADA)
    await eventually(lambda: not third.host.has(session.id) and not b.host.has(session.id))
    assert not a.host.has(session.id)


async def test_a_dead_host_is_taken_over(nodes: Nodes) -> None:
    """What was in flight is interrupted as after a restart; queues stay; the next message goes on at another host."""
    a, b = await nodes("a", lease=1.0), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    idle = await a.host.start(by="test", agent="play")
    await found(b, idle.id)
    turn = await say(b, session.id, "wait")
    await b.host.do(c.SendMessage(session=session.id, text="later"), ADA)
    await a.kill()
    await owner_is(b, session.id)
    state = await until(b, session.id, lambda state: state.active is None and state.queue_held)
    assert [(each.id, each.outcome) for each in state.turns] == [(turn, "interrupted")]
    assert [pending.message.text for pending in state.queue] == ["later"]
    await b.host.do(c.ReleaseQueue(session=session.id), ADA)
    state = await until(b, session.id, lambda state: len(state.turns) == 2 and state.active is None)
    assert state.turns[1].outcome == "completed"
    assert (await (await b.host.get(idle.id)).wait(await say(b, idle.id, "x"))).outcome == "completed"


async def test_a_command_waits_for_the_takeover(nodes: Nodes) -> None:
    a, b, third = await nodes("a", lease=1.0), await nodes("b"), await nodes("c")
    session = await a.host.start(by="test", agent="play")
    await found(third, session.id)
    await found(b, session.id)
    await a.kill()
    turn = await say(third, session.id, "who is there?")
    assert (await (await third.host.get(session.id)).wait(turn)).outcome == "completed"


async def test_a_host_that_stands_still_with_a_command_holds_nobody_up(nodes: Nodes) -> None:
    """Whoever asked waited a minute for its answer, and got an error; another host had long taken over."""
    a, b = await nodes("a", lease=1.0), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    await found(b, session.id)
    asked = asyncio.Semaphore(0)

    async def stand(*_: object) -> Any:
        asked.release()
        await asyncio.Event().wait()

    a.cluster.link._answer = a.cluster.link.inside = stand
    async with asyncio.timeout(30):
        saying = asyncio.create_task(say(b, session.id, "anybody?"))
        reading = asyncio.create_task(b.cluster.fetch(session.channel, "/", ADA, owner=True))
        for _ in range(2):
            await asked.acquire()
        await a.pause()
        with pytest.raises(Unreachable, match="'a' does not answer"):
            await reading
        assert (await (await b.host.get(session.id)).wait(await saying)).outcome == "completed"


async def test_a_host_that_was_only_paused_finds_its_sessions_gone(nodes: Nodes) -> None:
    a, b = await nodes("a", lease=1.0), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    await found(b, session.id)
    turn = await say(a, session.id, "wait")
    await asyncio.wait_for(a.agent.began.wait(), 30)
    await a.pause()
    await owner_is(b, session.id)
    await until(b, session.id, lambda state: state.active is None)
    a.agent.go.set()  # it goes on where it was, and its words are refused
    await eventually(lambda: not a.host.members.owns(session.channel) and a.log.down is None)
    again = await say(a, session.id, "and now")
    state = await until(b, session.id, lambda state: len(state.turns) == 2 and state.active is None)
    assert [(each.id, each.outcome) for each in state.turns] == [(turn, "interrupted"), (again, "completed")]
    assert len(b.agent.openings) == 1
    events = [record.event for record in await b.log.read(session.channel, limit=1000)]
    assert [type(event).__name__ for event in events].count("TurnEnded") == 2


async def test_a_host_asks_who_owns_a_session_as_soon_as_its_lease_is_lost(nodes: Nodes) -> None:
    """Between a refused write and the new lease it still listed the session as its own, and answered `not_owner`."""
    a, b = await nodes("a", lease=1.0), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    await found(b, session.id)
    await a.pause()
    await owner_is(b, session.id)
    a.log.lost_lease = True  # what its first refused write says
    turn = await say(a, session.id, "and now")
    state = await until(b, session.id, lambda state: len(state.turns) == 1 and state.active is None)
    assert [(each.id, each.outcome) for each in state.turns] == [(turn, "completed")]


async def test_a_place_that_is_away_can_be_read_and_given_up(nodes: Nodes) -> None:
    a, b = await nodes("a", place="attic", lease=1.0), await nodes("b", place="cellar")
    session = await a.host.start(by="test", agent="play")
    await found(b, session.id)
    await say(b, session.id, "wait")
    await until(b, session.id, lambda state: state.active is not None)
    with pytest.raises(Conflict, match="drain it"):
        await b.host.members.give_up("a")
    await a.kill()
    async with asyncio.timeout(30):
        while next(each for each in await b.host.members.all() if each.name == "a").state != "away":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    with pytest.raises(PlaceAway, match="'attic'"):
        await say(b, session.id, "hello?")
    assert (await b.host.get(session.id)).state.turns[0].message.text == "wait"
    assert await b.host.members.give_up("a") == 1
    state = await until(b, session.id, lambda state: state.active is None)
    assert state.turns[0].outcome == "interrupted"


async def test_a_drained_host_hands_over_what_is_idle_and_the_rest_after_its_turn(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b")
    idle, busy = [await a.host.start(by="test", agent="play") for _ in range(2)]
    await found(b, busy.id)
    turn = await say(a, busy.id, "wait")
    assert (await b.host.members.drain("a")).state == "draining"
    await owner_is(b, idle.id)
    assert a.host.members.owns(busy.channel)
    fresh = await a.host.do(c.StartSession(agent="play"), ADA)
    assert b.host.members.owns(f"session/{fresh.id}"), "a new session goes elsewhere"
    a.agent.go.set()
    await owner_is(b, busy.id)
    assert (await (await b.host.get(busy.id)).wait(turn)).outcome == "completed"
    with pytest.raises(NotFound, match="nobody"):
        await b.host.members.drain("nobody")


async def test_one_host_holds_a_lease_by_name(nodes: Nodes) -> None:
    a, b = await nodes("a", lease=1.0), await nodes("b")
    assert [await node.cluster.roster.holds(SCHEDULER) for node in (a, b, a)] == [True, False, True]
    await a.kill()
    async with asyncio.timeout(30):
        while not await b.cluster.roster.holds(SCHEDULER):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_a_stranger_is_not_answered(nodes: Nodes) -> None:
    a = await nodes("a")
    async with httpx.AsyncClient(trust_env=False) as client:
        for key in ("", "Bearer wrong", "Bearer é"):
            answer = await client.post(
                f"{a.cluster.link.url}/do", headers={b"authorization": key.encode()}, content=b"{}"
            )
            assert answer.status_code == 401


async def test_messages_keep_their_order_in_the_queue_of_another_host(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    there = await found(b, session.id)
    await there.send(Message("wait"), by="test")
    for number in range(5):
        await there.send(Message(str(number)), by="test")
    assert [each.message.text for each in there.state.queue] == ["0", "1", "2", "3", "4"]
    a.agent.go.set()
    state = await until(b, session.id, lambda state: len(state.turns) == 6 and state.active is None)
    assert [each.message.text for each in state.turns] == ["wait", "0", "1", "2", "3", "4"]


def titled(session: str, *titles: str) -> list[tuple[c.Command, c.Caller]]:
    return [(c.RenameSession(session=session, title=each), ADA) for each in titles]


async def titles_of(node: Node, session: str) -> list[str]:
    records = await node.log.read(f"session/{session}")
    return [each.event.title for each in records if isinstance(each.event, SessionRenamed)]


async def test_a_batch_for_a_session_of_another_host_is_done_in_order(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b")
    session = await found(b, (await a.host.start(by="test", agent="play")).id)
    batch = [*titled(session.id, "1", "2"), (c.RenameSession(session=session.id, title="no"), STRANGER)]
    answers = [each async for each in b.host.do_all(session, [*batch, *titled(session.id, "3")])]
    assert [isinstance(each, PorticoError) and type(each) for each in answers] == [False, False, Forbidden, False]
    await b.host.members.catch_up()
    assert await titles_of(b, session.id) == await titles_of(a, session.id) == ["1", "2", "3"]


async def test_a_batch_follows_a_session_that_was_handed_over_meanwhile(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it was refused, where a single command goes on to the new owner."""
    a, b = await nodes("a"), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    await found(b, session.id)
    append = a.log.append_all

    async def hand_over_first(*events: tuple[Channel, Event]) -> int:
        monkeypatch.undo()
        await a.host.members.drain("a")
        await owner_is(b, session.id)
        await eventually(lambda: not a.host.members.owns(session.channel))
        return await append(*events)

    monkeypatch.setattr(a.log, "append_all", hand_over_first)
    answers = [each async for each in a.host.do_all(session, titled(session.id, "1", "2"))]
    assert [each for each in answers if isinstance(each, PorticoError)] == []
    await b.host.members.catch_up()
    assert await titles_of(b, session.id) == ["1", "2"]


async def test_the_next_host_starts_what_is_due(nodes: Nodes) -> None:
    a, b = await nodes("a", lease=1.0), await nodes("b")
    gained = asyncio.Event()
    b.host.members.on_held(gained.set)
    assert (a.host.members.held(), b.host.members.held()) == (True, False)
    await a.kill()
    await asyncio.wait_for(gained.wait(), 30)
    assert b.host.members.held()


async def test_what_several_hosts_write_is_numbered_by_the_database(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b")
    await asyncio.gather(*(node.log.append("automation/x", fact(number)) for number in range(10) for node in (a, b)))
    await a.log.catch_up()
    assert [record.pos for record in await a.log.read_all("automation/x")] == [*range(1, 21)]
    assert a.log.head("automation/x") == 20


async def test_what_is_another_hosts_may_be_written_where_the_database_gives_the_positions(nodes: Nodes) -> None:
    """On Temporal every host of a place writes about the same job; all but its owner were refused."""
    a, b = await nodes("a"), await nodes("b")
    for node in (a, b):
        node.log.opening = node.log.opening._replace(owned=tuple(each for each in OWNED if each != "job/"))
    await a.log.append("job/shared", fact(1))
    await b.log.catch_up()
    await b.log.append("job/shared", fact(2))
    assert [record.pos for record in await b.log.read_all("job/shared")] == [1, 2]
    assert (a.cluster.owns("job/shared"), b.cluster.owns("job/shared")) == (True, False)
