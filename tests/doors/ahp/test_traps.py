"""The traps that other hosts fell into, and what editors do beyond the protocol: each has its test here or is named in
the docstring of one elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from portico import limits
from portico.doors.ahp.view.names import file_uri
from portico.doors.ahp.wire import uri
from portico.kernel import limits as kernel_limits
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.test_commands import refused
from tests.doors.ahp.wire_client import WireClient, opened

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A plain bash, without anybody's start-up files."""
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("HOME", str(tmp_path))


def draft(text: str) -> Json:
    return {"text": text, "origin": {"kind": "user"}}


async def test_numbers_of_a_client_in_any_order(connect: Connect) -> None:
    """`clientSeq` is the client's own affair: what counts is the order in which its actions come."""
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    numbers = [9, 3, 9, -1, 0, 0, 2**53]
    for number in numbers:
        action = {"type": "chat/draftChanged", "draft": draft(str(number))}
        await client.notify("dispatchAction", channel=chat, clientSeq=number, action=action)
    await client.request("listSessions", channel=uri.ROOT)
    echoed = [each["origin"]["clientSeq"] for each in client.envelopes if "origin" in each]
    assert echoed == numbers
    assert client.states[chat]["draft"]["text"] == str(numbers[-1])


async def test_a_frame_of_100_mb_is_refused_at_its_head(connect: Connect) -> None:
    client = await connect("0.9.0")
    assert client.socket is not None
    client.socket.transport.write(b"\x81\xff" + (100 * kernel_limits.MIB).to_bytes(8) + b"mask")
    await client.socket.wait_closed()
    assert client.socket.close_code == 1009
    assert await (await connect("0.9.0", "other")).request("ping") is None


async def test_everything_but_ping_waits_for_initialize(served: Served) -> None:
    async with opened(WireClient(served.url, "early", "0.9.0")) as client:
        await client.dispatch(uri.ROOT, "root/configChanged", config={"globalAutoApproveEnabled": True})
        for method in ("subscribe", "createSession", "resourceRead", "createTerminal", "noSuchThing"):
            assert await refused(client, method, channel="scripted:/s1") in (-32600, -32601)
        await client.initialize(uri.ROOT, "scripted:/s1")
        assert list(client.states) == [uri.ROOT]
        assert client.states[uri.ROOT]["config"]["values"] == {}


@pytest.mark.parametrize("version", ["1", "0.9.0", "1.0.0"])
async def test_what_this_host_does_not_do_is_no_method_and_is_not_advertised(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    for method in (
        *(("moveChat",) if version != "1.0.0" else ()),
        "runAutomation",
        "fetchAutomationRuns",
        "listAutomationTriggerDefinitions",
        "mcp",
        "tools/list",
    ):
        assert await refused(client, method, channel=chat) == -32601, method
    for name in ("mcp://server", "ahp-canvas:/1", "ahp-automations:/"):
        assert await refused(client, "subscribe", **{"resource" if version == "1" else "channel": name}) in (
            -32001,
            -32008,
        )
    told = json.dumps(client.states)
    assert not [word for word in ("automation", "canvas", "movable", "mcp://") if word in told]


@pytest.mark.parametrize("name", ["copilotcli:/0b9c-1", "ahp-session:/x", "x+y.z-1:a b?c#d", "https://h.example/ü"])
async def test_any_scheme_may_name_a_session(connect: Connect, served: Served, name: str) -> None:
    client = await connect("0.9.0")
    chat = await client.create_session(name, provider="scripted")
    await client.say(chat, "t", "[[say:here]]")
    await client.idle(chat)
    await served.restart()
    client.url = served.url
    assert (await client.reconnect())["type"] == "replay"
    items = (await client.request("listSessions", channel=uri.ROOT))["items"]
    assert [(each["resource"], each["provider"]) for each in items] == [(name, "scripted")]


async def test_shapes_of_0_7_from_a_client_of_0_6(connect: Connect, served: Served) -> None:
    client = await connect("0.6.0")
    folder = file_uri(str(served.work))
    await client.create_session("scripted:/s1", workingDirectories=[folder])
    state = client.states["scripted:/s1"]
    assert (state["workingDirectory"], state["workingDirectories"]) == (folder, [folder])


async def test_a_chatty_session_evicts_nobody(
    connect: Connect, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REPLAY_BUFFER_BYTES", 2_000)
    client, other = await connect("0.9.0", "quiet"), await connect("0.9.0", "chatty")
    chat = await client.create_session("scripted:/quiet")
    await other.create_session("scripted:/chatty")
    await client.drop()
    quiet, chatty = await served.host.get("scripted:/quiet"), await served.host.get("scripted:/chatty")
    await quiet.keep("draft", draft("missed"), by="somebody")
    for index in range(200):
        await chatty.keep("draft", draft(f"{index} " * 20), by="somebody")
    assert (await client.reconnect())["type"] == "replay"
    assert client.states[chat]["draft"]["text"] == "missed"


async def test_a_file_that_is_too_large_is_refused_unread(connect: Connect, served: Served) -> None:
    """A read of 64 MiB once cost a gigabyte."""
    with (served.work / "large").open("wb") as file:
        file.truncate(64 * kernel_limits.MIB)
    client = await connect("0.9.0")
    assert await refused(client, "resourceRead", uri=file_uri(str(served.work / "large"))) == -32602


async def test_a_watch_does_not_follow_a_link_out(connect: Connect, served: Served) -> None:
    """A file watch once escaped the jail."""
    outside = served.folder / "outside"
    outside.mkdir()
    (served.work / "link").symlink_to(outside)
    client = await connect("0.9.0")
    for name in (served.work / "link", outside, served.work / ".." / "outside"):
        assert await refused(client, "createResourceWatch", uri=f"file://{name}", recursive=True) == -32009


async def test_provisional_sessions_come_and_go(connect: Connect) -> None:
    """Editors create one, speak to it before they subscribe, create another and dispose of the first."""
    client = await connect("0.9.0")
    for name in ("scripted:/one", "scripted:/two"):
        created = await client.start_request("createSession", channel=name)
        me = {"clientId": "tester", "tools": [{"name": f"tool-{n}", "inputSchema": {}} for n in range(50)]}
        seq = await client.dispatch(name, "session/activeClientSet", activeClient=me)
        await created
        assert "rejectionReason" not in await client.echo(seq)
    await client.request("disposeSession", channel="scripted:/one")
    seq = await client.dispatch("scripted:/one", "session/titleChanged", title="nobody hears it")
    await client.subscribe("scripted:/two")
    assert len(client.states["scripted:/two"]["activeClients"][0]["tools"]) == 50
    assert await refused(client, "subscribe", channel="scripted:/one") == -32001
    assert client.echoes(seq) == []


async def test_a_name_means_one_thing(connect: Connect, served: Served) -> None:
    """A terminal that was called like a session would have taken its actions."""
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    for name in ("scripted:/s1", chat):
        assert await refused(client, "createTerminal", channel=name) == -32010
    await client.request("createTerminal", channel="t:/1", claim=client.claim)
    assert await refused(client, "createSession", channel="t:/1", provider="scripted") == -32003
    assert await refused(client, "createChat", channel="scripted:/s1", chat="t:/1") == -32003
    assert "rejectionReason" not in await client.act("scripted:/s1", "session/titleChanged", title="mine")


async def test_a_fact_for_a_session_that_was_deleted_meanwhile(connect: Connect) -> None:
    """Facts remember whom they were about; one that is gone is not written to again, and its successor is another."""
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    await client.act(chat, "chat/draftChanged", draft=draft("before"))
    await client.request("disposeSession", channel="scripted:/s1")
    lost = await client.dispatch(chat, "chat/draftChanged", draft=draft("lost"))
    assert await client.create_session("scripted:/s1") == chat
    assert "draft" not in client.states[chat]
    wrong = await client.act(chat, "session/isReadChanged", isRead=True)  # not on the chat's channel
    assert wrong["rejectionReason"]
    await client.act(chat, "chat/draftChanged", draft=draft("after"))
    assert client.states[chat]["draft"]["text"] == "after"
    assert client.echoes(lost) == []


async def test_old_and_new_forms_are_sent_together(connect: Connect) -> None:
    """Clients ignore what they do not know, so nobody has to guess what the other one speaks."""
    client = await connect("0.7.0")
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "fail please")
    failed = await client.action("chat/error")
    assert failed["error"]["message"] == failed["part"]["error"]["message"] == "it broke"
    await client.request("createTerminal", channel="t:/1", claim=client.claim)
    await client.subscribe("t:/1")
    await client.act("t:/1", "terminal/input", data="exit 3\n")
    await client.wait(lambda: client.states["t:/1"]["lifecycle"]["status"] == "exited")
    state = client.states["t:/1"]
    assert (state["exitCode"], state["lifecycle"]["exitCode"]) == (3, 3)
