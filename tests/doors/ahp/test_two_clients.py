"""Two clients, random actions, random drops: both end in the host's state."""

import contextlib
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portico.doors.ahp.wire import uri
from portico.kernel.errors import Conflict, NotFound
from tests.doors.ahp.conftest import Served, run_served
from tests.doors.ahp.test_conversation import without_times
from tests.doors.ahp.wire_client import WireClient

SESSION = "scripted:/s1"
MOVES = "say say write approve deny cancel queue unqueue title draft read cut drop lose fail ask answer steer breathe"
SEARCHING = os.environ.get("HYPOTHESIS_PROFILE") == "search"
STEPS = st.tuples(st.integers(0, 1), st.sampled_from(MOVES.split()))


class Player:
    def __init__(self, served: Served, client: WireClient, chat: str) -> None:
        self.served = served
        self.client = client
        self.chat = chat
        self.count = 0

    async def play(self, step: str) -> None:
        client, chat = self.client, self.chat
        self.count += 1
        ident = f"{client.client_id}-{self.count}"
        field = "userMessage" if client.seed else "message"
        state = client.states[chat]
        turn = state.get("activeTurn") or {"id": "none", "responseParts": []}
        calls = [part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall"]
        texts = {"say": "[[gap:1]]", "write": "write it", "fail": "fail please", "ask": "ask me"}
        match step:
            case "say" | "write" | "fail" | "ask":
                await client.dispatch(
                    chat, client.verb("turnStarted"), turnId=ident, **{field: self.message(texts[step])}
                )
            case "approve" | "deny":
                call = calls[-1]["toolCallId"] if calls else "none"
                where: dict[str, Any] = {"turnId": turn["id"], "toolCallId": call, "approved": step == "approve"}
                where |= {"confirmed": "user-action"} if step == "approve" else {"reason": "denied"}
                await client.dispatch(chat, client.verb("toolCallConfirmed"), **where)
            case "cancel":
                await client.dispatch(chat, client.verb("turnCancelled"), turnId=turn["id"], duration=0)
            case "queue" | "steer":
                kind = "queued" if step == "queue" else "steering"
                said = {field: self.message("[[say:later]]")}
                await client.dispatch(chat, client.verb("pendingMessageSet"), kind=kind, id=ident, **said)
            case "unqueue":
                queued = state.get("queuedMessages") or [{"id": "none"}]
                await client.dispatch(chat, client.verb("pendingMessageRemoved"), kind="queued", id=queued[0]["id"])
            case "answer":
                asked = client.actions(client.verb("inputRequested"))
                request = asked[-1]["request"]["id"] if asked else "none"
                await client.dispatch(chat, client.verb("inputCompleted"), requestId=request, response="decline")
            case "cut":
                turns = state["turns"]
                where = {"turnId": turns[0]["id"]} if turns else {}
                await client.dispatch(chat, client.verb("truncated"), **where)
            case "title":
                await client.dispatch(SESSION, "session/titleChanged", title=ident)
            case "read":
                await client.dispatch(SESSION, "session/isReadChanged", isRead=True)
            case "draft" if not client.seed:
                await client.dispatch(chat, "chat/draftChanged", draft=self.message(ident))
            case "drop" | "lose":
                await client.drop()
                if step == "lose":  # away for so long that only the log remembers
                    self.served.broker.replay.clear()
                await client.reconnect()
            case _:
                await client.request("ping")

    def message(self, text: str) -> dict[str, Any]:
        return {"text": text} if self.client.seed else {"text": text, "origin": {"kind": "user"}}


@pytest.mark.parametrize("versions", [("1", "1"), ("0.9.0", "1.0.0"), ("0.7.0", "1")])
@settings(max_examples=80 if SEARCHING else 8, deadline=None)
@given(steps=st.lists(STEPS, min_size=5, max_size=25))
def test_two_clients(versions: tuple[str, str], steps: list[tuple[int, str]]) -> None:
    async def play(served: Served) -> None:
        clients = [WireClient(served.url, f"client-{index}", version) for index, version in enumerate(versions)]
        players = []
        for index, client in enumerate(clients):
            await client.open()
            await client.initialize(client.root)
            chat = SESSION if client.seed else uri.default_chat(SESSION)
            if index == 0:
                await client.create_session(SESSION)
            else:
                await client.subscribe(chat)
                await client.subscribe(SESSION)
            players.append(Player(served, client, chat))
        for index, step in steps:
            await players[index].play(step)
        await settle(served, players)
        for player in players:
            await compare(served, player)
            await player.client.close()

    run_served(play)


async def settle(served: Served, players: list[Player]) -> None:
    """Every action has had its echo, nothing runs, and everybody has heard the last word."""
    for player in players:
        await player.client.request("listSessions", channel=uri.ROOT)
    session = await served.host.get(SESSION)
    while session.state.active is not None or session.state.queue:
        with contextlib.suppress(NotFound, Conflict):  # it ended, or became a turn, in this very moment
            for pending in list(session.state.queue):
                await session.queue.remove(pending.id, by="test")
            await session.cancel(by="test")
        await served.host.log.flush()
    await served.host.log.flush()
    for player in players:
        await player.client.request("ping")


async def compare(served: Served, player: Player) -> None:
    client, chat = player.client, player.chat
    fresh = WireClient(served.url, f"fresh-{client.client_id}", client.version)
    await fresh.open()
    await fresh.initialize(chat)
    assert without_times(client.states[chat]) == without_times(fresh.states[chat])
    for seq in range(1, client.client_seq + 1):
        assert len(client.echoes(seq)) <= 1
    await fresh.close()
