"""Annotations between clients of different ages: `turnId` up to 0.8, `origin` since 0.9."""

import pytest

from portico.doors.ahp.wire import uri
from tests.doors.ahp.conftest import Connect
from tests.doors.ahp.wire_client import WireClient

SESSION = "scripted:/s1"
NAME = uri.annotations(SESSION)
PLAIN = {"id": "a1", "resource": "file:///a.txt", "resolved": False, "entries": [{"id": "e1", "text": "why?"}]}


@pytest.mark.parametrize(
    ("version", "said"),
    [("0.7.0", {"turnId": "t1"}), ("0.9.0", {"origin": {"session": SESSION, "turnId": "t1"}})],
)
async def test_old_and_new_find_where_it_belongs(connect: Connect, version: str, said: dict[str, object]) -> None:
    client: WireClient = await connect(version)
    await client.create_session(SESSION)
    await client.subscribe(NAME)
    old, new = await connect("0.7.0", "old", NAME), await connect("0.9.0", "new", NAME)
    await client.act(NAME, "annotations/set", annotation={**PLAIN, **said})
    await client.act(NAME, "annotations/updated", annotationId="a1", resolved=True)
    late: WireClient = await connect("0.7.0", "late", NAME)
    for each in (old, new):
        await each.action("annotations/updated")
    for each in (client, old, new, late):
        [found] = each.states[NAME]["annotations"]
        assert (found["turnId"], found["origin"]) == ("t1", {"session": SESSION, "turnId": "t1"})


async def test_moved_to_another_turn(connect: Connect) -> None:
    client: WireClient = await connect("0.7.0")
    await client.create_session(SESSION)
    await client.subscribe(NAME)
    await client.act(NAME, "annotations/set", annotation={**PLAIN, "turnId": "t1"})
    await client.act(NAME, "annotations/updated", annotationId="a1", turnId="t2")
    [found] = client.states[NAME]["annotations"]
    assert (found["turnId"], found["origin"]["turnId"]) == ("t2", "t2")


async def test_without_a_turn(connect: Connect) -> None:
    client, old = await connect("0.9.0"), await connect("0.7.0", "old")
    await client.create_session(SESSION)
    await client.subscribe(NAME)
    await old.subscribe(NAME)
    await client.act(NAME, "annotations/set", annotation=PLAIN)
    await old.wait(lambda: old.states[NAME]["annotations"])
    [found] = old.states[NAME]["annotations"]
    assert (found["turnId"], found["origin"]) == ("", {"session": SESSION})
