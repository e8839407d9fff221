"""The commands: files, settings, completions, chats, turns, watches, changes, annotations, terminals."""

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest

from portico.doors.ahp.view.names import file_uri
from portico.doors.ahp.wire import uri
from portico.kernel import events as e
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.test_conversation import text_of, without_times
from tests.doors.ahp.wire_client import Refused, WireClient

Json = dict[str, Any]


async def refused(client: WireClient, method: str, **params: Any) -> int:
    with pytest.raises(Refused) as error:
        await client.request(method, **params)
    return int(error.value.code)


async def test_files(connect: Connect, served: Served, version: str) -> None:
    client = await connect(version)
    name = file_uri(str(served.work / "a b.txt"))
    await client.request("resourceWrite", uri=name, data="hello", encoding="utf-8")
    assert await client.request("resourceRead", uri=name) == {
        "data": "hello",
        "encoding": "utf-8",
        "contentType": "text/plain",
    }
    encoded = await client.request("resourceRead", uri=name, encoding="base64")
    assert base64.b64decode(encoded["data"]) == b"hello"
    assert await refused(client, "resourceWrite", uri=name, data="x", encoding="utf-8", createOnly=True) == -32010
    assert await refused(client, "resourceWrite", uri=name, data="00", encoding="hex") == -32602
    for wrong in ("ä", "====", "x"):
        assert await refused(client, "resourceWrite", uri=name, data=wrong, encoding="base64") == -32602
    (served.work / "raw").write_bytes(b"\xff\x00")
    raw = await client.request("resourceRead", uri=file_uri(str(served.work / "raw")), encoding="utf-8")
    assert raw["encoding"] == "base64"
    copied = file_uri(str(served.work / "c"))
    await client.request("resourceCopy", source=name, destination=copied)
    assert await refused(client, "resourceCopy", source=name, destination=copied, failIfExists=True) == -32010
    await client.request("resourceMove", source=copied, destination=file_uri(str(served.work / "d")))
    listed = await client.request("resourceList", uri=file_uri(str(served.work)))
    assert [each["name"] for each in listed["entries"]] == ["a b.txt", "d", "raw"]
    await client.request("resourceDelete", uri=name)
    assert await refused(client, "resourceRead", uri=name) == -32008
    assert await refused(client, "resourceRead", uri="file:///etc/passwd") == -32009
    assert await refused(client, "resourceRead", uri=file_uri(str(served.work)) + "/../../../etc/passwd") == -32009
    assert await refused(client, "resourceList", uri="file:///") == -32009


async def test_modern_files(connect: Connect, served: Served) -> None:
    client = await connect("0.9.0")
    name = file_uri(str(served.work / "f"))
    await client.request("resourceMkdir", uri=file_uri(str(served.work / "x/y")))
    await client.request("resourceWrite", uri=name, data="ac", encoding="utf-8")
    found = await client.request("resourceResolve", uri=name)
    assert (found["type"], found["size"]) == ("file", 2)
    await client.request(
        "resourceWrite", uri=name, data="b", encoding="utf-8", mode="insert", position=1, ifMatch=found["etag"]
    )
    assert (served.work / "f").read_text() == "abc"
    stale = await refused(client, "resourceWrite", uri=name, data="", encoding="utf-8", ifMatch=found["etag"])
    assert stale == -32011
    await client.request("resourceRequest", uri=name, read=True)
    assert await refused(client, "resourceRequest", uri="file:///etc/passwd", read=True) == -32009


async def test_a_watch(connect: Connect, served: Served) -> None:
    client = await connect("0.9.0")
    made = await client.request("createResourceWatch", uri=file_uri(str(served.work)), recursive=True)
    await client.subscribe(made["channel"])
    (served.work / "new.txt").write_text("x")
    changed = await client.action("resourceWatch/changed")
    assert changed["changes"]["items"][0]["uri"] == file_uri(str(served.work / "new.txt"))
    assert await refused(client, "createResourceWatch", uri="file:///etc", recursive=True) == -32009


def git(folder: Path, *arguments: str) -> None:
    quiet = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *quiet, *arguments], cwd=folder, check=True, capture_output=True)


async def test_settings_of_a_session(connect: Connect, served: Served, version: str) -> None:
    client = await connect(version)
    folder = file_uri(str(served.work))
    plain = await client.request("resolveSessionConfig", provider="scripted", workingDirectory=folder)
    assert plain["schema"]["properties"]["isolation"]["enum"] == ["folder"]
    assert plain["values"]["autoApprove"] == "default"
    git(served.work, "init")
    git(served.work, "commit", "--allow-empty", "-m", "first")
    found = await client.request(
        "resolveSessionConfig", provider="scripted", workingDirectory=folder, config={"flavour": "sweet"}
    )
    assert found["schema"]["properties"]["isolation"]["enum"] == ["folder", "worktree"]
    assert found["values"]["flavour"] == "sweet"
    branch = await client.request(
        "sessionConfigCompletions", provider="scripted", workingDirectory=folder, property="branch"
    )
    assert [each["value"] for each in branch["items"]] == ["main"]
    own = await client.request("sessionConfigCompletions", provider="scripted", property="flavour", query="so")
    assert [each["value"] for each in own["items"]] == ["sour"]
    assert await refused(client, "resolveSessionConfig", provider="nobody") == -32002


async def test_a_worktree(connect: Connect, served: Served) -> None:
    git(served.work, "init")
    git(served.work, "commit", "--allow-empty", "-m", "first")
    client = await connect("0.9.0")
    config = {"isolation": "worktree", "branch": "main"}
    await client.create_session("scripted:/tree", workingDirectories=[file_uri(str(served.work))], config=config)
    [folder] = client.states["scripted:/tree"]["workingDirectories"]
    assert folder.endswith("work.worktrees/tree")
    echo = await client.act("scripted:/tree", "session/configChanged", config={"isolation": "folder"})
    assert "settled" in echo["rejectionReason"]
    await client.request("disposeSession", channel="scripted:/tree")
    assert not (served.folder / "work.worktrees" / "tree").exists()


@pytest.mark.parametrize("on", ["session", "chat"])
async def test_completions(connect: Connect, served: Served, on: str) -> None:
    """VS Code asks on the session's channel, the Copilot CLI on the chat's."""
    (served.work / "readme.md").write_text("x")
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1", workingDirectories=[file_uri(str(served.work))])

    async def complete(text: str) -> list[Any]:
        channel = chat if on == "chat" else "scripted:/s1"
        found = await client.request("completions", channel=channel, kind="userMessage", text=text, offset=len(text))
        return list(found["items"])

    for sign in "@#":
        [item] = await complete(f"see {sign}read")
        assert (item["insertText"], item["rangeStart"], item["rangeEnd"]) == (f"{sign}readme.md", 4, 9)
        assert item["attachment"] == {
            "type": "resource",
            "uri": file_uri(str(served.work / "readme.md")),
            "label": "readme.md",
            "displayKind": "document",
        }
    [verb] = await complete("/re")
    assert verb["insertText"] == "/review "
    assert verb["attachment"]["_meta"] == {"command": "review", "description": "Review"}
    assert await complete("no /re") == []
    await client.act("scripted:/s1", "session/configChanged", config={"flavour": "sweet"})
    assert [each["insertText"] for each in await complete("#chat:")] == []


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("@READ", ["@readme.md readme.md document", "@docs/readme.md docs/readme.md document"]),
        ("#docs", ["#docs/ docs directory", "#docs/a.md a.md document", "#docs/readme.md readme.md document"]),
        ("@*.py", ["@main.py main.py document"]),
        ("@ma", ["@main.py main.py document", "@src/main/ main directory", "@src/main/x x document"]),
        ("@nothing", []),
    ],
)
async def test_files_are_completed_as_a_person_means_them(
    connect: Connect, served: Served, typed: str, offered: list[str]
) -> None:
    """Only the exact case was found, two files of one name looked alike, and there were no folders."""
    for path in ("readme.md", "docs/readme.md", "docs/a.md", "main.py", "src/main/x"):
        (served.work / path).parent.mkdir(parents=True, exist_ok=True)
        (served.work / path).write_text("x")
    client = await connect("0.9.0")
    await client.create_session("scripted:/s1", workingDirectories=[file_uri(str(served.work))])
    params = {"channel": "scripted:/s1", "kind": "userMessage", "text": typed, "offset": len(typed)}
    items = (await client.request("completions", **params))["items"]
    shown = [
        f"{each['insertText']} {each['attachment']['label']} {each['attachment']['displayKind']}" for each in items
    ]
    assert shown == offered


async def test_commands_that_an_agent_told_are_completed(connect: Connect, served: Served) -> None:
    client = await connect("0.9.0")
    await client.create_session("scripted:/s1")
    session = served.host.list(drafts=True)[0].id
    told = e.SessionConfigured(values={"commands": [{"name": "compact", "description": "Make it short"}]}, by="agent")
    await served.host.log.append(f"session/{session}", told)
    found = await client.request("completions", channel="scripted:/s1", kind="userMessage", text="/com", offset=4)
    [item] = found["items"]
    assert item["attachment"]["_meta"] == {"command": "compact", "description": "Make it short"}


async def test_other_chats_are_completed(connect: Connect) -> None:
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "one", "[[say:hello]]")
    await client.idle(chat)
    fork = {"kind": "fork", "chat": chat, "turnId": "one"}
    await client.request("createChat", channel="scripted:/s1", chat="ahp-chat:/fork", source=fork)
    found = await client.request("completions", channel="ahp-chat:/fork", kind="userMessage", text="#chat:", offset=6)
    [item] = found["items"]
    assert item["attachment"]["type"] == "chat"
    assert (item["attachment"]["resource"], item["attachment"]["endTurn"]) == (chat, "one")


async def test_chats(connect: Connect) -> None:
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    for turn in ("one", "two"):
        await client.say(chat, turn, f"[[say:{turn}]]")
        await client.idle(chat)
    fork = {"kind": "fork", "chat": chat, "turnId": "one"}
    await client.request("createChat", channel="scripted:/s1", chat="ahp-chat:/fork", source=fork)
    side = {"kind": "sideChat", "chat": chat, "turnId": "two", "selection": {"text": "two"}}
    first = {"text": "[[say:aside]]", "origin": {"kind": "user"}}
    await client.request("createChat", channel="scripted:/s1", chat="ahp-chat:/side", source=side, initialMessage=first)
    await client.subscribe("ahp-chat:/fork")
    await client.subscribe("ahp-chat:/side")
    assert [turn["id"] for turn in client.states["ahp-chat:/fork"]["turns"]] == ["one"]
    state = await client.wait(lambda: client.states["ahp-chat:/side"]["turns"] and client.states["ahp-chat:/side"])
    assert text_of(state["turns"][0]) == "aside"
    await client.wait(lambda: len(client.states["scripted:/s1"]["chats"]) == 3)
    origins = [each["origin"]["kind"] for each in client.states["scripted:/s1"]["chats"]]
    assert origins == ["user", "fork", "sideChat"]
    assert await refused(client, "createChat", channel="scripted:/s1", chat="ahp-chat:/fork") == -32003
    wrong = {"kind": "fork", "chat": chat, "turnId": "none"}
    assert await refused(client, "createChat", channel="scripted:/s1", chat="ahp-chat:/x", source=wrong) == -32001
    await client.request("disposeChat", channel="ahp-chat:/side")
    await client.wait(lambda: len(client.states["scripted:/s1"]["chats"]) == 2)
    assert await refused(client, "disposeChat", channel=chat) == -32602


async def test_the_progress_of_a_new_session(connect: Connect) -> None:
    client = await connect("0.7.0")
    await client.request("createSession", channel="scripted:/s1", progressToken="p-1")
    told = [each["params"] for each in client.notices if each["method"] == "root/progress"]
    assert [(each["progressToken"], each["progress"], each["total"]) for each in told] == [("p-1", 0, 1), ("p-1", 1, 1)]
    await client.request("createSession", channel="scripted:/s2")
    assert len([each for each in client.notices if each["method"] == "root/progress"]) == 2


async def test_what_a_side_chat_is_about_reaches_the_agent(served: Served, connect: Connect) -> None:
    client = await connect()
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "one", "[[reasoning:0]][[say:first]]")
    await client.idle(chat)
    side = {"kind": "sideChat", "chat": chat, "turnId": "one", "selection": {"text": "fir"}}
    await client.request("createChat", channel="scripted:/s1", chat="ahp-chat:/side", source=side)
    await client.subscribe("ahp-chat:/side")
    await client.say("ahp-chat:/side", "a", "context?")
    await client.idle("ahp-chat:/side")
    told = "User: [[reasoning:0]][[say:first]]\nYou: first\n\nThe question is about this part of it:\nfir|context?|"
    assert text_of(client.states["ahp-chat:/side"]["turns"][0]) == told
    await client.say("ahp-chat:/side", "b", "context again")
    await client.idle("ahp-chat:/side")
    assert text_of(client.states["ahp-chat:/side"]["turns"][1]) == "|context again|"
    assert client.states["ahp-chat:/side"]["turns"][0]["message"]["text"] == "context?"


async def test_a_chat_and_annotations_can_be_attached(connect: Connect) -> None:
    client = await connect()
    chat = await client.create_session("scripted:/s1")
    for turn in ("one", "two"):
        await client.say(chat, turn, f"[[reasoning:0]][[say:{turn}!]]")
        await client.idle(chat)
    notes = "scripted:/s1/annotations"
    note: Json = {"id": "n", "turnId": "one", "resource": "file:///a.py", "entries": [{"id": "e", "text": "why?"}]}
    note |= {"resolved": False, "range": {"start": {"line": 4, "character": 0}, "end": {"line": 4, "character": 1}}}
    await client.act(notes, "annotations/set", annotation=note)
    attached = [
        {"type": "chat", "label": "Before", "resource": chat, "endTurn": "one"},
        {"type": "annotations", "label": "Notes", "resource": notes},
    ]
    message = {"text": "context", "origin": {"kind": "user"}, "attachments": attached}
    await client.act(chat, "chat/turnStarted", turnId="three", message=message)
    await client.idle(chat)
    answer = text_of(client.states[chat]["turns"][2])
    assert "Before:\nUser: [[reasoning:0]][[say:one!]]\nYou: one!" in answer
    assert "two!" not in answer
    assert "Notes:\nfile:///a.py, line 5: why?" in answer
    for wrong in ({**attached[0], "endTurn": "nine"}, {**attached[0], "resource": "ahp-chat:/none"}):
        refused = {"text": "x", "origin": {"kind": "user"}, "attachments": [wrong]}
        echo = await client.act(chat, "chat/turnStarted", turnId="four", message=refused)
        assert "rejectionReason" in echo


async def test_the_name_of_a_session_says_its_provider(connect: Connect, served: Served, version: str) -> None:
    client = await connect(version)
    field = "session" if client.seed else "channel"
    await client.request("createSession", **{field: "scripted:/a"})
    await client.request("createSession", **{field: "anything:/b"})
    assert await refused(client, "createSession", **{field: "vendor:/c"}) == -32007  # that one wants a token first
    assert {each.agent for each in served.host.list(drafts=True)} == {"scripted"}


async def test_a_model_with_its_settings(connect: Connect, served: Served) -> None:
    """They were dropped, so the echo took back what the client had just shown."""
    client = await connect("1")
    chosen = {"id": "gpt-5.2", "config": {"effort": "high"}}
    await client.create_session("scripted:/s1", model=chosen)
    assert client.states["scripted:/s1"]["summary"]["model"] == chosen
    other = {"id": "gpt-4.1", "config": {"effort": "low"}}
    assert (await client.act("scripted:/s1", "session/modelChanged", model=other))["action"]["model"] == other
    await served.restart()
    again = await connect("1", "again", "scripted:/s1")
    [listed] = (await again.request("listSessions"))["items"]
    assert again.states["scripted:/s1"]["summary"]["model"] == listed["model"] == other
    await again.act("scripted:/s1", "session/modelChanged", model={"id": "gpt-4.1"})
    assert again.states["scripted:/s1"]["summary"]["model"] == {"id": "gpt-4.1"}


async def test_a_fork_of_version_1(connect: Connect) -> None:
    client = await connect("1")
    session = await client.create_session("scripted:/s1")
    for turn in ("one", "two"):
        await client.say(session, turn, f"[[say:{turn}]]")
        await client.idle(session)
    await client.create_session("scripted:/s2", fork={"session": session, "turnId": "one"})
    assert [turn["id"] for turn in client.states["scripted:/s2"]["turns"]] == ["one"]
    listed = await client.request("listSessions")
    assert {each["resource"] for each in listed["items"]} == {"scripted:/s1", "scripted:/s2"}
    older = await client.request("fetchTurns", session=session, limit=1)
    assert ([turn["id"] for turn in older["turns"]], older["hasMore"]) == (["two"], True)
    assert await refused(client, "fetchTurns", session=session, before="nonsense") == -32602
    first = await client.request("fetchTurns", session=session, before="two")
    assert ([turn["id"] for turn in first["turns"]], first["hasMore"]) == (["one"], False)


@pytest.mark.parametrize("wanted", [0, 1])
async def test_a_window_on_turns(connect: Connect, wanted: int) -> None:
    """Whoever wanted none at first never got the last one."""
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    for turn in ("one", "two", "three"):
        await client.say(chat, turn, f"[[say:{turn}]]")
        await client.idle(chat)
    whole = client.states[chat]
    other = await connect("0.9.0", "other")
    await other.subscribe(chat, view={"turns": wanted})
    assert [turn["id"] for turn in other.states[chat]["turns"]] == ["three"]
    await other.request("fetchTurns", channel=chat, cursor=other.states[chat]["turnsNextCursor"])
    assert without_times(other.states[chat]) == without_times(whole)
    assert await refused(other, "fetchTurns", channel=chat, cursor="nonsense") == -32602


async def test_the_list_in_pages(connect: Connect) -> None:
    client = await connect("0.9.0")
    for index in range(5):
        chat = await client.create_session(f"scripted:/s{index}")
        await client.say(chat, "t", "[[say:hello]]")
    seen: list[str] = []
    cursor: Json = {}
    while True:
        page = await client.request("listSessions", channel=uri.ROOT, limit=2, **cursor)
        seen += [each["resource"] for each in page["items"]]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert sorted(seen) == [f"scripted:/s{index}" for index in range(5)]
    assert await refused(client, "listSessions", channel=uri.ROOT, cursor="nonsense") == -32602


async def test_annotations_are_shared_and_survive(connect: Connect, served: Served) -> None:
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    await client.create_session("scripted:/s1")
    channel = uri.annotations("scripted:/s1")
    await client.subscribe(channel)
    await other.subscribe(channel)
    note = {"id": "n", "turnId": "t", "resource": "file:///x", "resolved": False, "entries": []}
    await client.act(channel, "annotations/set", annotation=note)
    await client.act(channel, "annotations/entrySet", annotationId="n", entry={"id": "e", "text": "hm"})
    echo = await client.act(channel, "annotations/removed", annotationId="none")
    assert "rejectionReason" in echo
    await other.wait(lambda: other.states[channel] == client.states[channel])
    await served.restart()
    client.url = served.url
    await client.reconnect()
    fresh = WireClient(served.url, "fresh", "0.9.0")
    await fresh.open()
    await fresh.initialize(channel)
    assert fresh.states[channel] == client.states[channel]
    assert fresh.states[channel]["annotations"][0]["entries"] == [{"id": "e", "text": "hm"}]
    await fresh.close()


async def test_log_lines(connect: Connect, served: Served) -> None:
    import logging

    client = await connect("0.9.0")
    assert await client.subscribe("ahp-otlp://logs?level=warn") == {}
    logging.getLogger("portico.host").warning("look here")
    [told] = await client.wait(lambda: [each for each in client.notices if each.get("method") == "otlp/exportLogs"])
    assert "look here" in str(told["params"]["payload"])


async def test_a_request_of_ours(connect: Connect, served: Served) -> None:
    client = await connect("0.9.0")
    client.answer = lambda message: {"data": "theirs", "encoding": "utf-8"}
    connection = served.broker.clients["tester"]
    found = await connection.ask("resourceRead", {"channel": uri.ROOT, "uri": "client:/x"})
    assert found["data"] == "theirs"
    assert client.asked[0]["method"] == "resourceRead"


async def test_an_answer_that_comes_too_late_fits_no_other_request(connect: Connect, served: Served) -> None:
    """The number of a request that was given up went to the next one, and its answer with it."""
    client = await connect("0.9.0")
    connection = served.broker.clients["tester"]
    for _ in range(2):
        await connection.ask("resourceRead", {"channel": uri.ROOT, "uri": "client:/x"})
    assert [each["id"] for each in client.asked] == [1, 2]


async def test_an_attachment_that_only_the_client_has(connect: Connect, served: Served) -> None:
    client = await connect("0.9.0")
    client.answer = lambda message: {"data": "dGhlaXJz", "encoding": "base64", "contentType": "text/plain"}
    chat = await client.create_session("scripted:/s1")
    attached = [{"type": "resource", "label": "x", "uri": "untitled:/x"}, {"type": "simple", "label": "plain"}]
    message = {"text": "[[say:x]]", "origin": {"kind": "user"}, "attachments": attached}
    await client.act(chat, "chat/turnStarted", turnId="t", message=message)
    state = await client.idle(chat)
    first, second = state["turns"][0]["message"]["attachments"]
    assert (first["type"], first["data"], first["uri"]) == ("embeddedResource", "dGhlaXJz", "untitled:/x")
    assert second == attached[1]
