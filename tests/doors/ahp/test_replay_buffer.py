"""What is kept for clients that come back: always everything behind `since`, never too much."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico import limits
from portico.doors.ahp.connection.replay_buffer import ReplayBuffer, ReplayBuffers
from portico.doors.ahp.view.targets import ROOT, Target
from portico.doors.ahp.wire import numbers, uri
from portico.doors.ahp.wire.envelope import Act
from tests.doors.ahp.conftest import Connect, Served

CHAT = Target("chat", "session-1")


def act(seq: int, subscription: int = 0, size: int = 100) -> Act:
    return Act(numbers.number(seq, subscription), "chat/delta", b"x" * size, None, None)


def filled(replay: ReplayBuffers, chat: Target) -> ReplayBuffer:
    buffer = replay.buffer(chat, False)
    assert buffer is not None
    return buffer


@given(st.lists(st.lists(st.integers(1, 400), max_size=4), max_size=40))
def test_a_ring_holds_all_behind_its_beginning(records: list[list[int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "REPLAY_BUFFER_BYTES", 1_000)
        buffer, told = ReplayBuffer(9), []
        for seq, sizes in enumerate(records, 10):
            acts = [act(seq, subscription, size) for subscription, size in enumerate(sizes)]
            told += acts
            buffer.add(acts)
    assert buffer.acts == [each for each in told if numbers.mark(each.number).seq > buffer.since]
    assert buffer.size == sum(len(each.frame) for each in buffer.acts) <= 1_000


def test_how_far_a_ring_reaches() -> None:
    buffer = ReplayBuffer(9)
    assert buffer.reaches(numbers.mark(numbers.number(10, 0)))
    assert buffer.reaches(numbers.mark(numbers.through(9)))
    assert not buffer.reaches(numbers.mark(numbers.number(9, 0)))
    assert not buffer.reaches(numbers.mark(numbers.through(8)))


def test_all_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REPLAY_BUFFERS_BYTES", 1_000)
    replay = ReplayBuffers()
    replay.keep(CHAT, False, 9)
    replay.keep(ROOT, False, 9)
    buffer = replay.buffer(CHAT, False)
    assert buffer is not None
    assert replay.buffer(ROOT, False) is None  # what it says replaces what it said; nothing to replay
    replay.add(buffer, [act(seq) for seq in range(10, 20)])
    assert replay.buffer(CHAT, False) is buffer
    replay.add(buffer, [act(20)])
    assert not replay


async def test_what_was_left_longest_ago_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REPLAY_BUFFERS_BYTES", 1_000)
    replay, chats = ReplayBuffers(), [Target("chat", f"session-{index}") for index in range(4)]
    for chat in chats:
        replay.keep(chat, False, 9)
        replay.add(filled(replay, chat), [act(seq) for seq in range(10, 12)])
    for chat in (chats[2], chats[0], chats[1]):
        replay.retain(chat, False)
        await asyncio.sleep(0.001)
    replay.keep(chats[0], False, 20)  # somebody is back
    replay.add(filled(replay, chats[3]), [act(seq) for seq in range(12, 15)])
    assert [replay.buffer(chat, False) is not None for chat in chats] == [True, False, False, True]


def test_what_was_let_go_in_the_middle_of_a_batch_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the batch still goes to it. That was counted for ever, so that soon nothing was kept at all."""
    monkeypatch.setattr(limits, "REPLAY_BUFFERS_BYTES", 1_000)
    replay, other = ReplayBuffers(), Target("chat", "session-2")
    replay.keep(CHAT, False, 9)
    buffer = filled(replay, CHAT)
    replay.add(buffer, [act(seq) for seq in range(10, 21)])
    replay.add(buffer, [act(seq) for seq in range(21, 30)])
    replay.keep(other, False, 30)
    replay.add(filled(replay, other), [act(seq) for seq in range(31, 34)])
    assert [replay.buffer(each, False) is not None for each in (CHAT, other)] == [False, True]


async def test_what_nobody_comes_back_to_goes_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portico.doors.ahp.connection.replay_buffer.RETAIN_SECONDS", 0.05)
    replay, other = ReplayBuffers(), Target("chat", "session-2")
    replay.keep(CHAT, False, 9)
    replay.keep(other, True, 9)
    replay.retain(CHAT, False)
    replay.retain(other, True)
    replay.keep(other, True, 12)
    async with asyncio.timeout(30):
        while replay.buffer(CHAT, False) is not None:  # noqa: ASYNC110  (a timer tells nobody)
            await asyncio.sleep(0.01)
    buffer = replay.buffer(other, True)
    assert buffer is not None
    assert buffer.since == 9


async def test_a_removed_session_is_not_kept_here_either(connect: Connect, served: Served) -> None:
    client, other = await connect("0.9.0"), await connect("1", "other")
    await client.create_session("scripted:/s1")
    await other.subscribe("scripted:/s1")
    await client.request("createTerminal", channel="t:/1", claim={"kind": "client", "clientId": client.client_id})
    await client.subscribe("t:/1")
    assert served.broker.replay
    await client.request("disposeTerminal", channel="t:/1")
    await client.request("disposeSession", channel="scripted:/s1")
    assert not served.broker.replay


async def test_a_client_that_was_alone_hears_what_it_missed(connect: Connect, served: Served) -> None:
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    await client.drop()
    session = await served.host.get("scripted:/s1")
    for index in range(5):
        await session.keep("draft", {"text": str(index), "origin": {"kind": "user"}}, by="somebody")
    result = await client.reconnect()
    assert [_text(each) for each in result["actions"] if each["channel"] == chat] == list("01234")
    assert client.states[chat]["draft"]["text"] == "4"


async def test_one_read_of_the_log_does_for_all_who_come_back(
    connect: Connect, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [await connect("0.9.0", name) for name in ("first", "second", "third")]
    chat = await clients[0].create_session("scripted:/s1")
    for client in clients:
        await client.subscribe(chat)
        await client.drop()
    session = await served.host.get("scripted:/s1")
    for index in range(5):
        await session.keep("draft", {"text": str(index), "origin": {"kind": "user"}}, by="somebody")
    served.broker.replay.clear()
    clients[0].states.pop("scripted:/s1")
    await clients[0].reconnect()
    monkeypatch.setattr(served.host.log, "read_all", None)
    await session.keep("draft", {"text": "5", "origin": {"kind": "user"}}, by="somebody")
    for client in clients[1:]:
        assert (await client.reconnect())["type"] == "replay"
    await clients[0].wait(lambda: clients[0].states[chat]["draft"]["text"] == "5")
    for client in clients:
        assert [_text(each) for each in client.envelopes if each.get("channel") == chat] == list("012345")


async def test_a_chat_that_went_away_meanwhile(connect: Connect, served: Served) -> None:
    """From the log alone a removed chat cannot be told; what others heard can be told again."""
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    await client.create_session("scripted:/s1")
    await other.subscribe("scripted:/s1")
    await client.drop()
    await other.request("createChat", channel="scripted:/s1", chat="chat:/side")
    await other.request("disposeChat", channel="chat:/side")
    assert (await client.reconnect())["type"] == "replay"
    await client.drop()
    served.broker.replay.clear()
    client.last_seen = 0
    assert (await client.reconnect())["type"] == "snapshot"
    fresh = await connect("0.9.0", "fresh", "scripted:/s1", uri.ROOT)
    assert client.states["scripted:/s1"] == fresh.states["scripted:/s1"]


def _text(envelope: Any) -> str:
    return str(envelope["action"]["draft"]["text"])
