"""`movable` is new in 1.0: older clients do not get it."""

import json

import pytest

from portico.doors.ahp.wire.versions import SUPPORTED
from tests.doors.ahp.conftest import Connect
from tests.doors.ahp.wire_client import WireClient

SESSION, CHAT = "scripted:/one", "ahp-chat:/two"


@pytest.mark.parametrize("version", SUPPORTED)
async def test_movable_is_sent_from_1_0_on(connect: Connect, version: str) -> None:
    """In the list of chats, in the chat itself, and in what is sent live."""
    client: WireClient = await connect(version)
    chat = await client.create_session(SESSION)
    await client.say(chat, "t-1", "[[say:hi]]")
    await client.idle(chat)
    await client.request("createChat", channel=SESSION, chat=CHAT)
    await client.subscribe(CHAT)
    late: WireClient = await connect(version, "late")
    snapshots = [await late.subscribe(SESSION), await late.subscribe(CHAT)]
    listed = await late.request("listSessions", channel=late.root)
    for frames in (client.envelopes, client.states[CHAT], *snapshots):
        assert ('"movable' in json.dumps(frames)) is (version == "1.0.0"), frames
    assert version == "1.0.0" or '"movable' not in json.dumps([listed, late.notices])
