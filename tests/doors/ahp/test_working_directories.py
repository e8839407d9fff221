"""Several working directories: given at the start, added, removed and replaced later, and chosen for single chats."""

import asyncio
from pathlib import Path

import pytest

from portico.doors.ahp.view.names import file_uri
from portico.doors.ahp.wire import uri
from portico.kernel import limits
from portico.server.identity import new_token
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Json, Refused, WireClient, opened

SESSION = "scripted:/s1"
CHAT = uri.default_chat(SESSION)


@pytest.fixture
def folders(served: Served) -> list[Path]:
    made = [served.folder / name for name in ("one", "two", "three")]
    for each in made:
        each.mkdir()
    return made


def uris(*paths: Path) -> list[str]:
    return [file_uri(str(path)) for path in paths]


async def begin(connect: Connect, *paths: Path, version: str = "0.9.0") -> WireClient:
    client: WireClient = await connect(version)
    await client.create_session(SESSION, workingDirectories=uris(*paths))
    return client


async def whole(client: WireClient, name: str = SESSION) -> list[str]:
    """What a client that comes now sees must be what this one has folded."""
    folded = client.states[name]["workingDirectories"]
    found = (await client.subscribe(name))["snapshot"]["state"]["workingDirectories"]
    assert found == folded
    return list(folded)


async def test_agents_say_whether_they_can(connect: Connect) -> None:
    client = await connect("0.9.0")
    [scripted] = [each for each in client.states[client.root]["agents"] if each["provider"] == "scripted"]
    assert scripted["capabilities"]["multipleWorkingDirectories"] == {
        "immutablePrimary": True,
        "primaryReplacement": True,
    }


async def test_directories_come_and_go(connect: Connect, served: Served, folders: list[Path]) -> None:
    one, two, three = folders
    client = await begin(connect, served.work, one)
    other: WireClient = await connect("0.7.0", "other")
    await other.subscribe(SESSION)
    assert await whole(client) == uris(served.work, one)
    await client.act(SESSION, "session/workingDirectorySet", directory=uris(two)[0])
    assert await whole(client) == uris(served.work, one, two)
    await client.say(CHAT, "t", "[[say:hello]]")
    [summary] = (await client.request("listSessions", channel=client.root))["items"]
    assert summary["workingDirectories"] == uris(served.work, one, two)
    await client.act(SESSION, "session/workingDirectoryReplaced", directory=uris(one)[0], replacement=uris(three)[0])
    assert await whole(client) == uris(served.work, three, two)
    await client.act(SESSION, "session/workingDirectoryRemoved", directory=uris(two)[0])
    assert await whole(client) == uris(served.work, three)
    await other.wait(lambda: other.states[SESSION]["workingDirectories"] == uris(served.work, three))


async def test_what_changes_nothing_is_only_echoed(connect: Connect, served: Served, folders: list[Path]) -> None:
    client = await begin(connect, served.work, folders[0])
    before = served.host.log.seq
    for kind, directory in (("Set", folders[0]), ("Set", served.work), ("Removed", folders[1])):
        echo = await client.act(SESSION, f"session/workingDirectory{kind}", directory=uris(directory)[0])
        assert "rejectionReason" not in echo
    assert served.host.log.seq == before


async def test_they_survive_a_restart(connect: Connect, served: Served, folders: list[Path]) -> None:
    client = await begin(connect, served.work)
    await client.act(SESSION, "session/workingDirectorySet", directory=uris(folders[0])[0])
    await served.restart()
    client.url = served.url
    assert (await client.reconnect())["type"] == "replay"
    assert await whole(client) == uris(served.work, folders[0])


@pytest.mark.parametrize(
    ("kind", "fields", "reason"),
    [
        ("Removed", {"directory": "WORK"}, "runs in"),
        ("Replaced", {"directory": "WORK", "replacement": "file:///no/such/folder"}, "not a folder"),
        ("Set", {"directory": "file:///no/such/folder"}, "not a folder"),
        ("Set", {"directory": "https://example.org"}, "file:///"),
        ("Set", {}, "'action.directory' is missing"),
    ],
)
async def test_what_is_refused(
    connect: Connect, served: Served, folders: list[Path], kind: str, fields: Json, reason: str
) -> None:
    client = await begin(connect, served.work)
    named = {"WORK": uris(served.work)[0], "ONE": uris(folders[0])[0]}
    said = {key: named.get(value, value) for key, value in fields.items()}
    echo = await client.act(SESSION, f"session/workingDirectory{kind}", **said)
    assert reason in echo["rejectionReason"]
    assert await whole(client) == uris(served.work)


async def test_the_bound_of_folders(connect: Connect, served: Served) -> None:
    many = [served.folder / f"folder-{number}" for number in range(limits.FOLDERS + 1)]
    for each in many:
        each.mkdir()
    client = await connect("0.9.0")
    with pytest.raises(Refused, match=f"at most {limits.FOLDERS}"):
        await client.create_session(SESSION, workingDirectories=uris(served.work, *many))
    await client.create_session(SESSION, workingDirectories=uris(served.work, *many[:-1]))
    echo = await client.act(SESSION, "session/workingDirectorySet", directory=uris(many[-1])[0])
    assert "at most" in echo["rejectionReason"]


async def test_files_are_open_as_long_as_the_session_has_the_folder(
    connect: Connect, served: Served, folders: list[Path]
) -> None:
    client = await begin(connect, served.work)
    name = file_uri(str(folders[0] / "f.txt"))
    (folders[0] / "f.txt").write_text("inside")
    with pytest.raises(Refused) as refused:
        await client.request("resourceRead", channel=client.root, uri=name)
    assert refused.value.code == -32009
    await client.act(SESSION, "session/workingDirectorySet", directory=uris(folders[0])[0])
    assert (await client.request("resourceRead", channel=client.root, uri=name))["data"] == "inside"
    found = await client.request("completions", channel=CHAT, kind="userMessage", text="@f.t", offset=4)
    assert [each["insertText"] for each in found["items"]] == [f"@{folders[0] / 'f.txt'}"]
    await client.act(SESSION, "session/workingDirectoryRemoved", directory=uris(folders[0])[0])
    with pytest.raises(Refused):
        await client.request("resourceRead", channel=client.root, uri=name)


async def test_the_agent_works_there_from_the_next_turn(connect: Connect, served: Served, folders: list[Path]) -> None:
    client = await begin(connect, served.work)
    await client.act(
        client.root, "root/configChanged", config={"editAutoApprovePatterns": {"**/*": True}, "unrelated": 1}
    )
    target = folders[0] / "new.txt"
    await client.say(CHAT, "t1", f"edit {target}")
    state = await client.idle(CHAT)
    assert state["turns"][-1]["state"] == "error"
    await client.act(SESSION, "session/workingDirectorySet", directory=uris(folders[0])[0])
    await client.say(CHAT, "t2", f"edit {target}")
    state = await client.idle(CHAT)
    [call] = [part["toolCall"] for part in state["turns"][-1]["responseParts"] if part["kind"] == "toolCall"]
    assert (call["status"], call["confirmed"]) == ("completed", "setting")
    assert target.read_text() == "three\n"


async def test_another_folder_takes_the_place_of_the_first(
    connect: Connect, served: Served, folders: list[Path]
) -> None:
    """The agent runs there from the next turn on, and so do the session's other chats."""
    one, two, _ = folders
    client = await begin(connect, served.work, one)
    older: WireClient = await connect("0.7.0", "older")
    await older.subscribe(SESSION)
    await client.request("createChat", channel=SESSION, chat="ahp-chat:/second")
    replaced = {"directory": uris(served.work)[0], "replacement": uris(two)[0]}
    assert "rejectionReason" not in await client.act(SESSION, "session/workingDirectoryReplaced", **replaced)
    await older.wait(lambda: older.states[SESSION]["workingDirectories"] == uris(two, one))
    for each in (client, older):
        assert await whole(each) == uris(two, one)
    assert (await client.subscribe(client.root)) is not None
    line = next(each for each in served.host.list() if each.uri == "ahp-chat:/second")
    assert line.cwd == str(two)
    await client.act(client.root, "root/configChanged", config={"editAutoApprovePatterns": {"**/*": True}})
    await client.say(CHAT, "t1", "edit new.txt")
    await client.idle(CHAT)
    assert (two / "new.txt").exists()
    assert not (served.work / "new.txt").exists()
    await served.restart()
    async with opened(WireClient(served.url, "again", "1.0.0")) as again:
        await again.initialize(again.root)
        await again.subscribe(SESSION)
        assert await whole(again) == uris(two, one)


async def test_the_first_folder_stays_while_a_turn_runs(connect: Connect, served: Served, folders: list[Path]) -> None:
    client = await begin(connect, served.work)
    await client.say(CHAT, "t1", "write it")
    await client.wait(lambda: client.states[SESSION].get("inputNeeded"))
    replaced = {"directory": uris(served.work)[0], "replacement": uris(folders[0])[0]}
    echo = await client.act(SESSION, "session/workingDirectoryReplaced", **replaced)
    assert "A turn is running" in echo["rejectionReason"]


async def test_a_chat_has_what_was_chosen_for_it(connect: Connect, served: Served, folders: list[Path]) -> None:
    one, two, three = folders
    client = await begin(connect, served.work, one, two)
    assert "workingDirectories" not in client.states[CHAT]
    name = "ahp-chat:/side"
    with pytest.raises(Refused, match="no working directory of the session"):
        await client.request("createChat", channel=SESSION, chat=name, workingDirectories=uris(three))
    await client.request("createChat", channel=SESSION, chat=name, workingDirectories=uris(one))
    await client.subscribe(name)
    assert await whole(client, name) == uris(one)
    echo = await client.act(name, "chat/workingDirectorySet", directory=uris(three)[0])
    assert "none of the session's" in echo["rejectionReason"]
    await client.act(name, "chat/workingDirectorySet", directory=uris(two)[0])
    assert await whole(client, name) == uris(one, two)
    await client.act(name, "chat/workingDirectoryRemoved", directory=uris(one)[0])
    assert await whole(client, name) == uris(two)
    # What the session loses, its chats lose.
    await client.act(SESSION, "session/workingDirectoryRemoved", directory=uris(two)[0])
    await client.wait(lambda: client.states[name]["workingDirectories"] == [])
    await client.wait(lambda: client.states[SESSION]["chats"][1].get("workingDirectories") == [])
    shown = (await client.subscribe(SESSION))["snapshot"]["state"]
    assert shown["chats"] == client.states[SESSION]["chats"]


async def test_the_session_s_own_chat_can_choose_too(connect: Connect, served: Served, folders: list[Path]) -> None:
    client = await begin(connect, served.work, folders[0])
    await client.act(CHAT, "chat/workingDirectorySet", directory=uris(served.work)[0])
    assert await whole(client, CHAT) == uris(served.work)
    await client.act(CHAT, "chat/workingDirectorySet", directory=uris(folders[0])[0])
    await client.act(
        SESSION, "session/workingDirectoryReplaced", directory=uris(folders[0])[0], replacement=uris(folders[1])[0]
    )
    await client.wait(
        lambda: client.states[CHAT]["workingDirectories"] == uris(served.work, folders[1]),
    )
    assert await whole(client) == uris(served.work, folders[1])


async def test_to_add_one_takes_somebody_who_may_approve(connect: Connect, served: Served, folders: list[Path]) -> None:
    client = await begin(connect, served.work)
    token = new_token(served.home, "driver", ["read", "drive"])
    driver = WireClient(served.url.partition("?")[0] + f"?tkn={token}", "driver", "0.9.0")
    async with opened(driver):
        await driver.initialize(SESSION)
        echo = await driver.act(SESSION, "session/workingDirectorySet", directory=uris(folders[0])[0])
        assert "approve" in echo["rejectionReason"]
    assert await whole(client) == uris(served.work)


async def test_a_watch_ends_with_the_folder(connect: Connect, served: Served, folders: list[Path]) -> None:
    client = await begin(connect, served.work, folders[0])
    made = await client.request("createResourceWatch", channel=client.root, uri=uris(folders[0])[0])
    await client.subscribe(made["channel"])
    (folders[0] / "a").write_text("x")
    await client.action("resourceWatch/changed")
    [watch] = served.broker.watches.values()
    await client.act(SESSION, "session/workingDirectoryRemoved", directory=uris(folders[0])[0])
    heard = len(client.actions("resourceWatch/changed"))
    (folders[0] / "b").write_text("x")
    await asyncio.wait({watch.task})
    assert len(client.actions("resourceWatch/changed")) == heard
    with pytest.raises(Refused):
        await client.subscribe(made["channel"])
