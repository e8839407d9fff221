"""Hello, hello again: both forms of `initialize`, subscriptions, and coming back after anything."""

import asyncio
from typing import Any

import pytest
from websockets.asyncio.client import connect as ws_connect
from websockets.exceptions import InvalidStatus

from portico import limits
from portico.doors.ahp.act import changes
from portico.doors.ahp.connection import lifecycle
from portico.doors.ahp.wire import rpc, uri
from portico.doors.ahp.wire.envelope import Outgoing
from portico.kernel import limits as kernel_limits
from portico.server.identity import new_token
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.test_conversation import text_of, waiting_call, without_times
from tests.doors.ahp.wire_client import Refused, WireClient, opened

Json = dict[str, Any]


async def test_both_forms_of_initialize(connect: Connect) -> None:
    old = WireClient((await connect("0.9.0")).url, "old", "1")
    await old.open()
    result = await old.initialize(uri.SEED_ROOT, "scripted:/nobody")
    assert result["protocolVersion"] == 1
    [snapshot] = result["snapshots"]
    assert snapshot["state"]["agents"][0]["provider"] == "scripted"
    await old.close()
    new = await connect("0.7.0", "new")
    assert new.states[uri.ROOT]["agents"][0]["models"][0]["id"] == "gpt-5-mini"


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["0.9.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"], "0.9.0"),
        (["0.6.0"], "0.6.0"),
        (["9.9.9", "nonsense", 7, "0.5.1"], "0.5.1"),
        (["1.0.0", "0.9.0"], "1.0.0"),
    ],
)
async def test_the_highest_offered_version(served: Served, offered: list[Any], chosen: str) -> None:
    client = WireClient(served.url, "c", "0.9.0")
    await client.open()
    result = await client.request("initialize", channel=uri.ROOT, protocolVersions=offered, clientId="c")
    assert result["protocolVersion"] == chosen
    assert result["serverInfo"]["name"] == "portico"
    await client.close()


async def test_a_version_nobody_speaks_and_a_second_try(served: Served) -> None:
    client = WireClient(served.url, "c", "0.9.0")
    await client.open()
    with pytest.raises(Refused) as refused:
        await client.request("initialize", channel=uri.ROOT, protocolVersions=["7.0.0"], clientId="c")
    assert refused.value.code == -32005
    assert "0.9.0" in (refused.value.data or {})["supportedVersions"]
    with pytest.raises(Refused) as refused:
        await client.request("initialize", protocolVersion=2, clientId="c")
    assert refused.value.code == -32005
    await client.initialize()
    await client.close()


async def test_ping_is_answered_at_any_time(served: Served) -> None:
    client = WireClient(served.url, "c", "0.9.0")
    await client.open()
    assert await client.request("ping", channel=uri.ROOT) is None
    with pytest.raises(Refused) as refused:
        await client.request("listSessions", channel=uri.ROOT)
    assert refused.value.code == -32600
    await client.close()


async def test_a_wrong_token_is_403(served: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await ws_connect(served.url[:-4] + "xxxx")
    assert refused.value.response.status_code == 403


async def test_an_unknown_client_initializes_after_a_failed_reconnect(served: Served) -> None:
    client = WireClient(served.url, "never-seen", "0.9.0")
    await client.open()
    with pytest.raises(Refused) as refused:
        await client.request("reconnect", clientId="never-seen", lastSeenServerSeq=5, subscriptions=[uri.ROOT])
    assert refused.value.code == -32008
    await client.initialize()
    await client.close()


async def test_subscribing_to_nothing(connect: Connect, version: str) -> None:
    client = await connect(version)
    with pytest.raises(Refused) as refused:
        await client.subscribe("scripted:/nobody")
    assert refused.value.code == -32001


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "from the log"])
async def test_coming_back_in_the_middle_of_a_turn(connect: Connect, served: Served, version: str, kept: bool) -> None:
    client, watcher = await connect(version, "client"), await connect(version, "watcher")
    chat = await client.create_session("scripted:/s1")
    await watcher.subscribe(chat)
    await client.say(chat, "t", "[[deltas:40]] [[gap:5]]")
    await client.wait(lambda: len(client.envelopes) > 8)
    await client.drop()
    await watcher.wait(lambda: len(watcher.envelopes) > 20)
    if not kept:
        served.broker.replay.clear()
    result = await client.reconnect()
    assert result["type"] == "replay"
    state = await client.idle(chat)
    await watcher.idle(chat)
    assert text_of(state["turns"][0]) == "Hello" + "!" * 38 + "."
    assert without_times(state) == without_times(watcher.states[chat])


async def test_nothing_is_lost_over_a_restart_of_the_host(connect: Connect, served: Served, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "one", "[[say:first]]")
    await client.idle(chat)
    await client.say(chat, "two", "write it")
    await waiting_call(client, chat, "pending-confirmation")
    seen = client.last_seen
    await served.restart()
    client.url = served.url
    result = await client.reconnect()
    assert result["type"] == "replay"
    state = await client.idle(chat)
    assert [turn["id"] for turn in state["turns"]] == ["one", "two"]
    assert state["turns"][1]["state"] == "error"
    assert client.last_seen > seen
    fresh = await connect(version, "fresh", chat)
    assert without_times(fresh.states[chat]) == without_times(state)
    await client.say(chat, "three", "[[say:third]]")
    assert text_of((await client.idle(chat))["turns"][2]) == "third"


async def test_coming_back_after_too_much_is_a_snapshot(connect: Connect, served: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr(lifecycle, "_REPLAY_RECORDS", 3)
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    await client.drop()
    other = await connect("0.9.0", "other", chat)
    await other.say(chat, "t", "[[say:much]]")
    await other.idle(chat)
    served.broker.replay.clear()
    result = await client.reconnect()
    assert result["type"] == "snapshot"
    assert without_times(client.states[chat]) == without_times(other.states[chat])


async def test_the_same_uri_twice_is_heard_once(connect: Connect) -> None:
    """Duplicate URIs in `reconnect` once multiplied envelopes."""
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    await client.drop()
    await client.open()
    await client.request(
        "reconnect", clientId="tester", lastSeenServerSeq=client.last_seen, subscriptions=[chat, chat, chat, "x:/gone"]
    )
    await client.say(chat, "t", "[[say:once]]")
    await client.action("chat/turnComplete")
    assert len(client.actions("chat/turnStarted")) == 1


async def test_what_is_gone_is_missing(connect: Connect) -> None:
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    await client.drop()
    other = await connect("0.9.0", "other")
    await other.request("disposeSession", channel="scripted:/s1")
    await client.open()
    result = await client.request(
        "reconnect", clientId="tester", lastSeenServerSeq=client.last_seen, subscriptions=[uri.ROOT, chat]
    )
    assert result["missing"] == [chat]


async def test_own_words_come_back_after_a_drop(connect: Connect, served: Served) -> None:
    """An action that was written just before the connection broke must be echoed, or the client says it again."""
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    seq = await client.dispatch(chat, "chat/draftChanged", draft={"text": "half", "origin": {"kind": "user"}})
    session = await served.host.get("scripted:/s1")
    await asyncio.wait_for(session.wait_until(lambda state: "draft" in state.client_data), 60)
    await client.drop()
    client.envelopes.clear()
    client.last_seen = min(client.last_seen, client.last_seen - 1)
    await client.reconnect()
    assert len(client.echoes(seq)) <= 1
    assert client.states[chat]["draft"]["text"] == "half"


async def test_a_client_id_belongs_to_its_token(connect: Connect, served: Served) -> None:
    await connect("0.9.0", "mine")
    other = new_token(served.home, "other", ["read", "drive"])
    url = served.url.partition("?")[0] + f"?tkn={other}"
    thief = WireClient(url, "mine", "0.9.0")
    await thief.open()
    with pytest.raises(Refused) as refused:
        await thief.initialize()
    assert refused.value.code == -32009
    with pytest.raises(Refused) as refused:
        await thief.request("reconnect", clientId="mine", lastSeenServerSeq=0, subscriptions=[])
    assert refused.value.code == -32008
    await thief.close()


async def test_a_token_without_the_scope(served: Served) -> None:
    token = new_token(served.home, "small", ["read", "drive"])
    client = WireClient(served.url.partition("?")[0] + f"?tkn={token}", "small", "0.9.0")
    await client.open()
    await client.initialize()
    chat = await client.create_session("scripted:/s1")
    for method, params in [
        ("resourceRead", {"uri": "file:///etc/passwd"}),
        ("createTerminal", {"channel": "ahp-terminal:/1"}),
    ]:
        with pytest.raises(Refused) as refused:
            await client.request(method, **params)
        assert refused.value.code == -32009
    await client.say(chat, "t", "write it")
    call = await waiting_call(client, chat, "pending-confirmation")
    echo = await client.act(
        chat,
        "chat/toolCallConfirmed",
        turnId="t",
        toolCallId=call["toolCallId"],
        approved=True,
        confirmed="user-action",
    )
    assert "approve" in echo["rejectionReason"]
    echo = await client.act(uri.ROOT, "root/configChanged", config={"globalAutoApproveEnabled": True})
    assert "approve" in echo["rejectionReason"]
    await client.close()


async def test_a_second_connection_of_the_same_client_takes_over(connect: Connect) -> None:
    first = await connect("0.9.0", "same")
    second = await connect("0.9.0", "same")
    assert first.socket is not None
    await asyncio.wait_for(first.socket.wait_closed(), 60)
    assert first.socket.close_code == 4001
    await second.request("listSessions", channel=uri.ROOT)


async def test_a_slow_client_is_closed_and_comes_back(connect: Connect, served: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr(kernel_limits, "FOLLOWER_BYTES", 20_000)
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    connection = served.broker.clients["tester"]
    for _ in range(400):  # more than any socket takes at once
        connection.push(rpc.notification("filler", {"text": "x" * 100_000}))
    assert client.socket is not None
    await asyncio.wait_for(client.socket.wait_closed(), 60)
    assert client.socket.close_code == 1013
    assert (await client.reconnect())["type"] == "replay"
    await client.say(chat, "t", "[[say:back]]")
    assert text_of((await client.idle(chat))["turns"][0]) == "back"


async def test_news_of_the_catalogue(connect: Connect, version: str) -> None:
    client, other = await connect(version, "client"), await connect(version, "other")
    chat = await other.create_session("scripted:/s1")
    await other.say(chat, "t", "[[say:hello]]")
    method = "notification" if client.seed else "root/sessionAdded"
    added = (await client.wait(lambda: [each for each in client.notices if each.get("method") == method]))[0]
    summary = added["params"]["notification"]["summary"] if client.seed else added["params"]["summary"]
    assert (summary["resource"], summary["provider"]) == ("scripted:/s1", "scripted")
    await other.act("scripted:/s1", "session/titleChanged", title="New name")

    def changes() -> list[Json]:
        if client.seed:
            told = [each["params"]["notification"] for each in client.notices if each["method"] == "notification"]
            return [each["changes"] for each in told if each["type"] == "notify/sessionSummaryChanged"]
        return [each["params"]["changes"] for each in client.notices if each["method"] == "root/sessionSummaryChanged"]

    await client.wait(lambda: any(each.get("title") == "New name" for each in changes()))
    field = "session" if client.seed else "channel"
    await other.request("disposeSession", **{field: "scripted:/s1"})
    gone = "sessionRemoved"
    await client.wait(lambda: any(gone in str(each) for each in client.notices))


async def test_the_root_counts_running_sessions(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "[[hang]]")
    await client.wait(lambda: client.states[client.root]["activeSessions"] == 1)
    await client.act(chat, client.verb("turnCancelled"), turnId="t", duration=1)
    await client.wait(lambda: client.states[client.root]["activeSessions"] == 0)


async def test_settings_that_an_editor_pushes_again_and_again(connect: Connect) -> None:
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    for _ in range(10):
        await client.notify(
            "dispatchAction",
            channel=uri.ROOT,
            clientSeq=0,
            action={"type": "root/configChanged", "config": {"editor.x": 1}},
        )
    await client.wait(lambda: len(client.echoes(0)) == 10)
    await other.wait(lambda: other.states[uri.ROOT]["config"]["values"] == {"editor.x": 1})
    assert len(other.actions("root/configChanged")) == 1


async def test_a_line_of_the_catalogue_speaks_for_all_chats(connect: Connect, served: Served) -> None:
    """What waits in a side chat was not to be seen in the list of sessions."""
    client = await connect("1.0.0")
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "[[say:hi]]")
    await client.idle(chat)
    side = "ahp-chat:/side"
    await client.request("createChat", channel="scripted:/s1", chat=side)
    await client.subscribe(side)
    await client.say(side, "t", "ask me")

    def told(field: str) -> list[Any]:
        notices = [each for each in client.notices if each["method"] == "root/sessionSummaryChanged"]
        assert {each["params"]["session"] for each in notices} <= {"scripted:/s1"}
        return [each["params"]["changes"][field] for each in notices if field in each["params"]["changes"]]

    await client.wait(lambda: 24 in told("status"))
    [line] = (await client.request("listSessions", channel=client.root))["items"]
    assert (line["status"], line["defaultChat"]) == (24, chat)
    assert [(each["resource"], each["status"]) for each in line["chats"]] == [(chat, 1), (side, 24)]
    state = (await client.subscribe("scripted:/s1"))["snapshot"]["state"]
    assert state["status"] == 24
    assert line["modifiedAt"] == max(each["modifiedAt"] for each in state["chats"])
    await client.request("disposeChat", channel=side)
    await client.wait(lambda: told("status")[-1] == 1)
    assert [each["resource"] for each in told("chats")[-1]] == [chat]


async def test_a_thousand_refusals_have_a_thousand_numbers(connect: Connect) -> None:
    """From the 513th on they had all the same, so a client that looks at numbers took them for repetitions."""
    client = await connect("1")
    await client.create_session("scripted:/s1")
    for _ in range(1_000):
        await client.dispatch("scripted:/s1", "session/ready")
    await client.echo(1_000)  # the client itself insists on rising numbers
    assert [each["origin"]["clientSeq"] for each in client.envelopes if "rejectionReason" in each] == [*range(1, 1_001)]


async def test_numbers_of_an_older_portico_mean_nothing(connect: Connect, served: Served) -> None:
    client = await connect("1")
    await client.create_session("scripted:/s1")
    await client.drop()
    served.broker.known["tester"].span = 1024
    client.last_seen //= 64
    assert (await client.reconnect())["type"] == "snapshot"
    assert b'"span":65536' in (await served.broker.host.log.get_kv("host", "ahp.client/tester") or b"")


async def test_a_failed_hello_can_be_said_again(served: Served) -> None:
    """What was wrong with the subscriptions was found only when the client counted as initialized."""
    async with opened(WireClient(served.url, "tester", "1")) as client:
        with pytest.raises(Refused) as error:
            await client.request("initialize", protocolVersion=1, clientId="tester", initialSubscriptions=[5])
        assert error.value.code == -32602
        assert (await client.initialize(client.root))["protocolVersion"] == 1


async def test_what_one_may_not_hear_does_not_hold_up_the_rest(connect: Connect, served: Served) -> None:
    """A client whose list named one wrong channel never came back to anything, nor could it say hello again."""
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    watch = (await client.request("createResourceWatch", uri=f"file://{served.work}"))["channel"]
    await client.drop()
    served.broker.watches[watch].caller = "token:somebody"
    client.states[watch] = {}
    assert (await client.reconnect())["missing"] == [watch]
    await client.say(chat, "t", "[[say:here]]")
    await client.idle(chat)


async def test_numbers_rise_for_one_who_hears_nothing_but_facts(connect: Connect, served: Served) -> None:
    """Facts about the whole host are numbered behind the last record that the client has heard. Who heard none of the
    others got the same number again and again, once the 512 of that record were used up."""
    watcher, talker = await connect("1.0.0", "watcher"), await connect("1.0.0", "talker")
    await talker.create_session("scripted:/s1")
    for count in range(600):
        served.broker.tell_root(Outgoing("activeSessionsChanged", {"activeSessions": count}))
        if count % 300 == 0:
            await talker.act("scripted:/s1", "session/titleChanged", title=f"Title {count}")
    await watcher.wait(lambda: watcher.states[uri.ROOT]["activeSessions"] == 599)
    numbers = [each["serverSeq"] for each in watcher.envelopes]
    assert numbers == sorted(set(numbers))


async def test_a_changeset_begins_before_what_is_said_of_it(
    connect: Connect, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log goes on while a changeset is computed. Its number was then ahead of all that was said of it later."""
    client, talker = await connect("1.0.0"), await connect("1.0.0", "talker")
    await talker.create_session("scripted:/s1")
    [session] = served.host.list(drafts=True)

    async def meanwhile(*_: Any) -> Json:
        await talker.act("scripted:/s1", "session/titleChanged", title="Later")
        return {"status": "ready", "files": []}

    monkeypatch.setattr(changes, "state", meanwhile)
    name = f"ahp-changeset:/{session.id}/session"
    snapshot = (await client.subscribe(name))["snapshot"]
    echo = await client.act(name, "changeset/filesReviewChanged", files=["none"], reviewed=True)
    assert echo["serverSeq"] > snapshot["fromSeq"]


async def test_a_client_that_takes_nothing_for_long_is_left(
    connect: Connect, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waited for it stayed in memory for as long as it liked."""
    client = await connect("0.9.0")
    assert client.socket is not None
    client.socket.transport.pause_reading()
    monkeypatch.setattr(limits, "SEND_SECONDS", 0.1)
    connection = served.broker.clients["tester"]
    connection.push(rpc.notification("filler", {"text": "x" * 7_000_000}))
    async with asyncio.timeout(60):
        while connection in served.broker.connections or connection._line.transport.get_write_buffer_size():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    client.socket.transport.resume_reading()
    await client.socket.wait_closed()
    assert (await client.reconnect())["type"] == "replay"
