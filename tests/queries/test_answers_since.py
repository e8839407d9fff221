"""What was answered since some time: of whom, in which order, and how often a rule did."""

import pytest

from portico.features.board.activity import waiting_of
from portico.features.board.answers import Answers
from portico.features.people.view import View
from portico.kernel.commands import SCOPES, Caller
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import allowed

OWNER = Caller("token-1", "ada", frozenset(SCOPES))
STRANGER = Caller("t", "t", frozenset({"read"}), person="eve")


@pytest.fixture
async def host(open_host: HostOpener, clock: FakeClock) -> Host:
    return await open_host(PlayAgent(allowed), clock=clock)


async def answered(host: Host, clock: FakeClock, title: str, *, allow: bool = True, by: str = "token:ada") -> Session:
    clock.advance(60)
    session = await host.start(by="test", title=title, cwd="/", owner="ada")
    await session.send(Message("go"), by="test")
    state = await session.wait_until(lambda state: state.status == "waiting")
    (waiting,) = waiting_of(state)
    await session.approvals.answer(waiting.id, allow=allow, by=by)
    await session.wait_until(lambda state: state.status == "idle")
    return session


async def titles(answers: Answers, since: int, who: Caller = OWNER) -> list[str]:
    return [each.title for each in (await answers.since(since, View(answers._host, who))).answers]


async def test_the_newest_stand_first_and_older_ones_are_left_out(host: Host, clock: FakeClock) -> None:
    answers = Answers(host)
    await answered(host, clock, "first")
    second = await answered(host, clock, "second", allow=False)
    assert await titles(answers, 0) == ["second", "first"]
    found = (await answers.since(0, View(host, OWNER))).answers
    assert [(each.allowed, each.by, each.question) for each in found] == [
        (False, "token:ada", False),
        (True, "token:ada", False),
    ]
    assert found[0].session == second.id
    assert await titles(answers, found[0].time) == ["second"], "from that very time on"
    assert await titles(answers, found[0].time + 1) == []


async def test_what_is_somebody_elses_is_not_listed(host: Host, clock: FakeClock) -> None:
    await answered(host, clock, "secret")
    assert await titles(Answers(host), 0, STRANGER) == []


async def test_asking_again_reads_only_what_is_new(host: Host, clock: FakeClock) -> None:
    answers = Answers(host)
    session = await answered(host, clock, "one")
    assert await titles(answers, 0) == ["one"]
    clock.advance(60)
    await session.send(Message("again"), by="test")
    (waiting,) = waiting_of(await session.wait_until(lambda state: state.status == "waiting"))
    await session.approvals.answer(waiting.id, allow=True, by="token:bob")
    await session.wait_until(lambda state: state.status == "idle")
    found = (await answers.since(0, View(host, OWNER))).answers
    assert [each.by for each in found] == ["token:bob", "token:ada"]


async def test_what_the_end_of_a_turn_answered_is_nobodys_answer(host: Host, clock: FakeClock) -> None:
    session = await host.start(by="test", cwd="/")
    await session.send(Message("go"), by="test")
    await session.wait_until(lambda state: state.status == "waiting")
    await session.cancel(by="test")
    await session.wait_until(lambda state: state.status == "idle")
    assert await titles(Answers(host), 0) == []


async def test_calls_that_a_rule_decided_are_counted(host: Host, clock: FakeClock) -> None:
    session = await host.start(by="test", cwd="/", config={"autoApprove": "autoApprove"})
    await session.wait(await session.send(Message("go"), by="test"))
    found = await Answers(host).since(0, View(host, OWNER))
    assert (found.answers, found.rules) == ([], 1)
    later = await Answers(host).since(host.now() + 1, View(host, OWNER))
    assert later.rules == 0
