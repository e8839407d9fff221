"""Plain facts are written together; each is still answered by itself, once and in order."""

import asyncio
from typing import Any

import pytest

from portico.doors.ahp.act import action_batch
from portico.kernel import limits
from portico.kernel.log import group_commit
from portico.kernel.log.sqlite import SqliteLog
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import WireClient

Json = dict[str, Any]


def draft(text: Any) -> Json:
    return {"draft": {"text": text, "origin": {"kind": "user"}}}


async def answers(client: WireClient, seqs: list[int]) -> list[tuple[int, bool]]:
    """(clientSeq, accepted), in the order they came back."""
    await client.echo(seqs[-1])
    await client.request("listSessions", channel="ahp-root://")  # and nothing more comes behind
    own = [each for each in client.envelopes if (each.get("origin") or {}).get("clientId") == client.client_id]
    return [(each["origin"]["clientSeq"], "rejectionReason" not in each) for each in own]


async def test_refusals_keep_their_place_among_them(connect: Connect) -> None:
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    seqs = []
    for index in range(60):
        text: Any = 7 if index % 5 == 4 else f"draft {index}"
        seqs.append(await client.dispatch(chat, "chat/draftChanged", **draft(text)))
        if index % 7 == 6:
            seqs.append(await client.dispatch("scripted:/s1", "session/titleChanged", title="x" * (index % 2)))
    got = await answers(client, seqs)
    assert [seq for seq, _ in got] == seqs
    assert [accepted for _, accepted in got].count(False) == 12 + 4
    assert client.states[chat]["draft"]["text"] == "draft 58"


async def test_one_that_cannot_be_written_does_not_spoil_the_others(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    monkeypatch.setattr(limits, "EVENT_BYTES", 2_000)
    seqs = [
        await client.dispatch(chat, "chat/draftChanged", **draft("x" * (5_000 if index == 7 else 5)))
        for index in range(20)
    ]
    got = await answers(client, seqs)
    assert got == [(seq, index != 7) for index, seq in enumerate(seqs)]


async def test_while_the_disk_says_no_each_is_refused(
    connect: Connect, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.01)
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    await served.host.log.flush()
    log = served.host.log
    assert isinstance(log, SqliteLog)
    log._database._db.execute("PRAGMA query_only = ON")
    seqs = [await client.dispatch(chat, "chat/draftChanged", **draft(str(index))) for index in range(20)]
    await client.echo(seqs[-1])
    log._database._db.execute("PRAGMA query_only = OFF")
    await asyncio.wait_for(log.available(), 60)
    seqs.append(await client.dispatch(chat, "chat/draftChanged", **draft("again")))
    got = await answers(client, seqs)
    assert got == [*((seq, False) for seq in seqs[:-1]), (seqs[-1], True)]
    assert client.states[chat]["draft"]["text"] == "again"


async def test_more_than_go_into_one_append(connect: Connect, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action_batch, "_TOGETHER", 3)
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    first, second = await client.create_session("scripted:/s1"), await client.create_session("scripted:/s2")
    await other.subscribe(first)
    seqs = [
        await client.dispatch(second if index % 8 == 7 else first, "chat/draftChanged", **draft(str(index)))
        for index in range(40)
    ]
    assert await answers(client, seqs) == [(seq, True) for seq in seqs]
    await other.wait(lambda: other.states[first].get("draft", {}).get("text") == "38")
    assert [each["draft"]["text"] for each in other.actions("chat/draftChanged")] == [
        str(index) for index in range(40) if index % 8 != 7
    ]
