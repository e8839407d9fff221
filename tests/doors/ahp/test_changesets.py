"""What a session changed, from every point of view; commit, discard, reviewed files, and the numbers in lists."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from portico.doors.ahp.act import changes
from portico.doors.ahp.view.targets import Target
from portico.workspace.process import environment, run
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Json, Refused, WireClient
from tests.free import FREE

SESSION = "scripted:/s1"


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def folder(served: Served) -> Path:
    git(served.work, "init")
    git(served.work, "config", "user.name", "t")
    git(served.work, "config", "user.email", "t@example.org")
    (served.work / "a.txt").write_text("one\n")
    git(served.work, "add", ".")
    git(served.work, "commit", "-m", "first")
    return served.work


async def edit(client: WireClient, chat: str, turn: str, name: str) -> None:
    """A turn that appends a line to a file, with a yes to its approval."""
    await client.say(chat, turn, f"edit {name}")
    prefix = "session" if client.seed else "chat"

    def waiting() -> Any:
        return [each for each in client.actions(f"{prefix}/toolCallReady") if each["turnId"] == turn]

    [asked] = await client.wait(waiting)
    which = {"turnId": turn, "toolCallId": asked["toolCallId"]}
    await client.dispatch(chat, f"{prefix}/toolCallConfirmed", **which, approved=True, confirmed="user-action")
    await client.wait(lambda: [each for each in client.actions(f"{prefix}/turnComplete") if each["turnId"] == turn])


def files(client: WireClient, name: str) -> dict[str, Any]:
    """By their names. The id of each is the URI of the file itself: editors look it up by that."""
    shown = client.states[name]["files"]
    for each in shown:
        assert each["id"] == (each["edit"].get("after") or each["edit"]["before"])["uri"]
    return {each["id"].rpartition("/")[2]: each["edit"].get("diff") for each in shown}


async def changeset(client: WireClient, kind: str, **values: str) -> str:
    await client.subscribe(SESSION)
    [found] = [each for each in client.states[SESSION]["changesets"] if each["changeKind"] == kind]
    name: str = found["uriTemplate"]
    for key, value in values.items():
        name = name.replace("{" + key + "}", value)
    await client.subscribe(name)
    return name


async def test_every_point_of_view(served: Served, folder: Path, connect: Connect) -> None:
    client: WireClient = await connect()
    chat = await client.create_session(SESSION)
    await edit(client, chat, "one", "a.txt")
    await edit(client, chat, "two", "b.txt")
    line = {"added": 1, "removed": 0}
    assert files(client, await changeset(client, "uncommitted")) == {"a.txt": line, "b.txt": line}
    assert files(client, await changeset(client, "session")) == {"a.txt": line, "b.txt": line}
    assert files(client, await changeset(client, "turn", turnId="one")) == {"a.txt": line}
    assert files(client, await changeset(client, "turn", turnId="two")) == {"b.txt": line}
    between = await changeset(client, "compare-turns", originalTurnId="one", modifiedTurnId="two")
    assert files(client, between) == {"b.txt": line}
    [shown] = client.states[between]["files"]
    read = await client.request("resourceRead", channel=client.root, uri=shown["edit"]["after"]["content"]["uri"])
    assert read["data"] == "three\n"
    path = urlsplit(shown["edit"]["after"]["content"]["uri"]).path  # editors show the name and language of it
    assert path == str(folder / "b.txt")
    blob = git(folder, "hash-object", "b.txt").strip()
    old = f"git-blob:/{served.host.list()[0].id}/{blob}/b.txt"  # as an older Portico wrote it
    assert (await client.request("resourceRead", channel=client.root, uri=old))["data"] == "three\n"
    git(folder, "checkout", "-b", "work")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "second")
    assert files(client, await changeset(client, "branch")) == {"a.txt": line, "b.txt": line}
    assert files(client, await changeset(client, "uncommitted")) == {}
    for wrong in ("turn/none", "turn", "compare/one", "nothing", "session/x"):
        with pytest.raises(Refused) as refused:
            await client.subscribe(f"{between.partition('/compare')[0]}/{wrong}")
        assert refused.value.code == -32008


async def test_whoever_looks_sees_a_turn_s_changes_at_its_end(folder: Path, connect: Connect) -> None:
    client, other = await connect(), await connect("0.7.0", "other")
    chat = await client.create_session(SESSION)
    name = await changeset(client, "uncommitted")
    await other.subscribe(name)
    await edit(client, chat, "one", "a.txt")
    line = {"added": 1, "removed": 0}
    await client.wait(lambda: files(client, name) == {"a.txt": line})
    await other.wait(lambda: files(other, name) == {"a.txt": line})


async def test_lists_say_how_much_has_changed(served: Served, folder: Path, connect: Connect) -> None:
    client, old = await connect(), await connect("1", "old")
    chat = await client.create_session(SESSION)
    await old.subscribe(SESSION)
    await edit(client, chat, "one", "a.txt")
    expected = {"additions": 1, "deletions": 0, "files": 1}

    def told() -> bool:
        summaries = [
            each["params"]["changes"] for each in client.notices if each["method"] == "root/sessionSummaryChanged"
        ]
        return any(each.get("changes") == expected for each in summaries)

    await client.wait(told)
    listed = await client.request("listSessions", channel=client.root)
    assert listed["items"][0]["changes"] == expected
    await old.wait(lambda: old.states[SESSION]["summary"].get("diffs"))
    [diff] = old.states[SESSION]["summary"]["diffs"]
    assert (diff["diff"], diff["after"]["uri"]) == ({"added": 1, "removed": 0}, (folder / "a.txt").as_uri())
    folded = old.states[SESSION]["summary"]["diffs"]
    await served.restart()
    again = await connect("1", "again")
    await again.subscribe(SESSION)
    assert again.states[SESSION]["summary"]["diffs"] == folded


async def test_a_review_ends_when_the_file_changes(folder: Path, connect: Connect) -> None:
    client, other = await connect(), await connect("0.9.0", "other")
    await client.create_session(SESSION)
    (folder / "a.txt").write_text("two\n")
    name = await changeset(client, "uncommitted")
    await other.subscribe(name)
    await client.act(name, "changeset/filesReviewChanged", files=[(folder / "a.txt").as_uri()], reviewed=True)
    await other.wait(lambda: other.states[name]["files"][0]["reviewed"])
    await client.subscribe(name)
    assert client.states[name]["files"][0]["reviewed"] is True
    (folder / "a.txt").write_text("three\n")
    await client.subscribe(name)
    assert client.states[name]["files"][0]["reviewed"] is False
    echo = await client.act(name, "changeset/filesReviewChanged", files=["none"], reviewed=True)
    assert "rejectionReason" in echo


async def test_operations(folder: Path, connect: Connect) -> None:
    client = await connect()
    await client.create_session(SESSION)
    (folder / "a.txt").write_text("two\n")
    (folder / "new.txt").write_text("new\n")
    name = await changeset(client, "uncommitted")

    async def invoke(operation: str, **target: Any) -> Any:
        return await client.request("invokeChangesetOperation", channel=name, operationId=operation, **target)

    async def refused(operation: str, **target: Any) -> int:
        with pytest.raises(Refused) as refused:
            await invoke(operation, **target)
        return int(refused.value.code)

    one = {"kind": "resource", "resource": (folder / "new.txt").as_uri()}
    assert await refused("commit", target=one) == -32602
    assert await refused("push") == -32602
    assert await refused("discard", target={"kind": "range", "resource": one["resource"]}) == -32602
    assert await refused("discard", target={"kind": "resource", "resource": "file:///etc/passwd"}) == -32602
    await invoke("discard", target=one)
    assert not (folder / "new.txt").exists()
    assert files(client, name) == {"a.txt": {"added": 1, "removed": 1}}
    assert await invoke("commit") == {"message": "Committed."}
    assert (files(client, name), git(folder, "status", "--porcelain")) == ({}, "")
    statuses = [each["status"] for each in client.actions("changeset/operationStatusChanged")]
    assert await refused("commit") == -32011
    await client.wait(lambda: len(client.actions("changeset/operationStatusChanged")) == len(statuses) + 2)
    assert client.actions("changeset/operationStatusChanged")[-1]["status"] == "error"
    (folder / "a.txt").write_text("four\n")
    await invoke("discard")
    assert (folder / "a.txt").read_text() == "two\n"


async def test_a_repository_without_a_commit(served: Served, connect: Connect) -> None:
    git(served.work, "init")
    (served.work / "a.txt").write_text("one\n")
    git(served.work, "add", ".")
    client = await connect()
    await client.create_session(SESSION)
    name = await changeset(client, "uncommitted")
    assert files(client, name) == {"a.txt": {"added": 1, "removed": 0}}
    assert files(client, await changeset(client, "branch")) == {"a.txt": {"added": 1, "removed": 0}}
    await client.request("invokeChangesetOperation", channel=name, operationId="discard")
    assert files(client, name) == {}


@pytest.mark.parametrize("far", [False, True])
async def test_who_comes_back_sees_what_changed_meanwhile(folder: Path, connect: Connect, far: bool) -> None:
    """Nothing of a changeset is in the log: a replay left it as it was, and a snapshot left it out."""
    client, other = await connect(), await connect("1.0.0", "other")
    chat = await client.create_session(SESSION)
    name = await changeset(client, "uncommitted")
    await client.drop()
    await other.subscribe(chat)
    await edit(other, chat, "one", "b.txt")
    if far:
        client.last_seen = 2**50
    client.states[name] = {}
    known = list(client.states)
    await client.open()
    answer = await client.request(
        "reconnect", clientId=client.client_id, lastSeenServerSeq=client.last_seen, subscriptions=known
    )
    assert answer["type"] == ("snapshot" if far else "replay")
    if far:
        assert {each["resource"] for each in answer["snapshots"]} == set(known)
    assert list(files(client, name)) == ["b.txt"]
    assert [each["id"] for each in client.states[name]["operations"]] == ["commit", "discard"]


async def test_a_repository_that_is_gone_keeps_nobody_from_coming_back(
    served: Served, folder: Path, connect: Connect
) -> None:
    client: WireClient = await connect()
    chat = await client.create_session(SESSION)
    name = await changeset(client, "uncommitted")
    await client.drop()
    (folder / ".git").rename(folder / "gone")
    answer = await client.reconnect()
    assert (answer["type"], answer["missing"]) == ("replay", [name])
    await client.say(chat, "one", "hello")


async def test_an_operation_is_seen_from_every_point_of_view(folder: Path, connect: Connect) -> None:
    """Also by those who look at another session in the same folder."""
    client, other = await connect(), await connect("0.7.0", "other")
    chat = await client.create_session(SESSION)
    await other.create_session("scripted:/s2")
    theirs = other.states["scripted:/s2"]["changesets"][0]["uriTemplate"]
    await edit(client, chat, "one", "b.txt")
    await other.subscribe(theirs)
    uncommitted, branch = await changeset(client, "uncommitted"), await changeset(client, "branch")
    assert list(files(other, theirs)) == list(files(client, branch)) == ["b.txt"]
    await client.request("invokeChangesetOperation", channel=uncommitted, operationId="discard")
    await client.wait(lambda: not files(client, branch))
    await other.wait(lambda: not files(other, theirs))


async def test_the_changes_of_one_chat(folder: Path, connect: Connect) -> None:
    """Since 1.0 a chat has its own; what it changed stands in its line, too."""
    client: WireClient = await connect("1.0.0")
    await client.create_session(SESSION)
    second = "ahp-chat:/second"
    await client.request("createChat", channel=SESSION, chat=second)
    await client.subscribe(second)
    kinds = {each["changeKind"]: each["uriTemplate"] for each in client.states[second]["changesets"]}
    assert list(kinds) == ["session", "turn", "compare-turns"]
    await client.subscribe(kinds["session"])
    await edit(client, second, "one", "b.txt")
    await client.wait(lambda: files(client, kinds["session"]))
    counted = {"additions": 1, "deletions": 0, "files": 1}
    await client.wait(lambda: client.states[SESSION]["chats"][1].get("changes") == counted)
    late: WireClient = await connect("1.0.0", "late", SESSION, second)
    assert (late.states[SESSION]["chats"], late.states[second]["changes"]) == (client.states[SESSION]["chats"], counted)
    [shown] = (await client.request("listSessions", channel=client.root))["items"]
    assert [each.get("changes") for each in shown["chats"]] == [None, counted]


def kinds(state: Json) -> list[str]:
    return [each["changeKind"] for each in state["changesets"]]


async def test_without_git_there_is_what_calls_have_reported(served: Served, connect: Connect) -> None:
    """A turn that had edited files had an empty changeset in a folder that is no repository."""
    (served.work / "a.txt").write_text("one\n")
    client: WireClient = await connect("1.0.0")
    chat = await client.create_session(SESSION)
    await edit(client, chat, "first", "a.txt")
    whole, turn = f"{SESSION}/changeset/session", f"{SESSION}/changeset/turn/second"
    await client.subscribe(whole)
    assert files(client, whole) == {"a.txt": {"added": 1, "removed": 0}}
    await client.say(chat, "second", "delegate it")
    await client.idle(chat)
    both = {"a.txt": {"added": 2, "removed": 0}, "c.txt": {"added": 1, "removed": 0}}
    await client.wait(lambda: files(client, whole) == both)
    await client.subscribe(turn)
    assert files(client, turn) == {"a.txt": {"added": 1, "removed": 0}, "c.txt": {"added": 1, "removed": 0}}
    for name, before in ((whole, "one\n"), (turn, "one\nthree\n")):
        by_file = {each["id"]: each["edit"] for each in client.states[name]["files"]}
        changed, created = (by_file[(served.work / each).as_uri()] for each in ("a.txt", "c.txt"))
        assert [await content(client, changed, side) for side in ("before", "after")] == [before, "one\nthree\nfour\n"]
        assert ("before" in created, await content(client, created, "after")) == (False, "child\n")
    reviewed = {"files": [(served.work / "a.txt").as_uri()], "reviewed": True}
    await client.act(whole, "changeset/filesReviewChanged", **reviewed)
    await edit(client, chat, "third", "b.txt")
    await client.wait(lambda: len(files(client, whole)) == 3)
    assert [each["reviewed"] for each in client.states[whole]["files"]] == [True, False, False]
    await edit(client, chat, "fourth", "a.txt")
    await client.wait(lambda: files(client, whole)["a.txt"]["added"] == 3)
    assert not client.states[whole]["files"][0]["reviewed"], "another text is to be reviewed again"
    with pytest.raises(Refused, match="no git repository"):
        await client.subscribe(f"{SESSION}/changeset/uncommitted")


async def test_of_two_refreshes_the_later_one_counts(
    folder: Path, connect: Connect, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow look at the folder that began before the end of a turn was told after it, with what was there before."""
    client: WireClient = await connect("1.0.0")
    chat = await client.create_session(SESSION)
    await edit(client, chat, "one", "a.txt")
    name = await changeset(client, "session")
    begun, go_on, look = asyncio.Event(), asyncio.Event(), changes._files

    async def slow(*about: Any) -> Any:
        found = await look(*about)
        begun.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(changes, "_files", slow)
    target = Target("changeset", f"{served.host.list()[0].id}/session")
    earlier = asyncio.create_task(changes.refresh(served.broker, target))
    await begun.wait()
    monkeypatch.setattr(changes, "_files", look)
    await edit(client, chat, "two", "b.txt")
    await client.wait(lambda: len(files(client, name)) == 2)
    go_on.set()
    await earlier
    await client.request("ping", channel=client.root)
    assert (len(files(client, name)), client.states[name]["status"]) == (2, "ready")


async def content(client: WireClient, edit: Json, side: str) -> str:
    found = await client.request("resourceRead", channel=client.root, uri=edit[side]["content"]["uri"])
    return str(found["data"])


async def test_a_folder_that_becomes_a_repository(served: Served, connect: Connect) -> None:
    """It was looked at once and never again."""
    client: WireClient = await connect("1.0.0")
    chat = await client.create_session(SESSION)
    assert {name: kinds(state) for name, state in client.states.items() if "changesets" in state} == {
        SESSION: ["session", "turn"],
        chat: ["session", "turn"],
    }
    git(served.work, "init")
    git(served.work, "commit", "--allow-empty", "-m", "first")
    await edit(client, chat, "one", "b.txt")
    await client.wait(lambda: "compare-turns" in kinds(client.states[chat]))
    assert kinds(client.states[SESSION]) == ["uncommitted", "session", "branch", "turn", "compare-turns"]
    late: WireClient = await connect("1.0.0", "late", SESSION, chat)
    for name in (SESSION, chat):
        assert late.states[name]["changesets"] == client.states[name]["changesets"]


async def test_the_names_that_editors_build_by_themselves(served: Served, folder: Path, connect: Connect) -> None:
    """VS Code and the Copilot CLI subscribe `<session>/changeset/...`, whatever is advertised; it was not found."""
    client: WireClient = await connect()
    chat = await client.create_session(SESSION)
    await edit(client, chat, "one", "a.txt")
    line = {"a.txt": {"added": 1, "removed": 0}}
    for view in ("turn/one", "uncommitted", "session"):
        await client.subscribe(f"{SESSION}/changeset/{view}")
        assert files(client, f"{SESSION}/changeset/{view}") == line
    assert {each["uriTemplate"] for each in client.states[SESSION]["changesets"]} == {
        f"{SESSION}/changeset/{view}"
        for view in (
            *("uncommitted", "session", "branch", "turn/{turnId}"),
            "compare/{originalTurnId}/{modifiedTurnId}",
        )
    }
    old = f"ahp-changeset:/{served.host.list()[0].id}/uncommitted"  # as an older Portico called it
    other: WireClient = await connect("0.9.0", "other")
    await other.subscribe(old)
    await edit(client, chat, "two", "b.txt")
    await other.wait(lambda: len(files(other, old)) == 2)
    await client.wait(lambda: len(files(client, f"{SESSION}/changeset/uncommitted")) == 2)
    for wrong in (f"{SESSION}/changeset/", f"{SESSION}/changeset/turn/none", "scripted:/nosuch/changeset/session"):
        with pytest.raises(Refused) as refused:
            await client.subscribe(wrong)
        assert refused.value.code in (-32001, -32008)


async def test_a_turn_that_changed_nothing_has_an_empty_changeset(folder: Path, connect: Connect) -> None:
    client: WireClient = await connect()
    chat = await client.create_session(SESSION)
    await client.say(chat, "talk", "[[say:hello]]")
    await client.idle(chat)
    await client.subscribe(f"{SESSION}/changeset/turn/talk")
    assert client.states[f"{SESSION}/changeset/turn/talk"] == {"status": "ready", "files": []}


async def test_a_chats_own_changes_are_named_after_it(folder: Path, connect: Connect) -> None:
    client: WireClient = await connect("1.0.0")
    chat = await client.create_session(SESSION)
    await edit(client, chat, "one", "a.txt")
    fork = "ahp-chat://fork/x"
    await client.request(
        "createChat", channel=SESSION, chat=fork, source={"kind": "fork", "chat": chat, "turnId": "one"}
    )
    await client.subscribe(fork)
    names = {each["changeKind"]: each["uriTemplate"] for each in client.states[fork]["changesets"]}
    assert names["session"] == f"{fork}/changeset/session"
    await client.subscribe(names["session"])
    await edit(client, fork, "two", "b.txt")
    await client.wait(lambda: "b.txt" in files(client, names["session"]))


async def test_requests_behind_a_slow_changeset_are_answered_first(
    connect: Connect, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor subscribes to a changeset for every old turn and then to the session: that waited for git, 2 to 5 s."""
    client = await connect("0.9.0")
    chat = await client.create_session(SESSION)
    await edit(client, chat, "t", "a.txt")
    may_go_on = asyncio.Event()
    compute = changes._differences

    async def slow(view: changes.Changeset) -> Any:
        await may_go_on.wait()
        return await compute(view)

    monkeypatch.setattr(changes, "_differences", slow)
    views = [f"{SESSION}/changeset/turn/t", *[f"{SESSION}/changeset/{kind}" for kind in ("uncommitted", "session")]]
    waiting = [await client.start_request("subscribe", channel=name) for name in views * 20]
    assert (await client.request("subscribe", channel=chat))["snapshot"]["resource"] == chat
    await client.request("ping", channel=client.root)
    assert not any(each.done() for each in waiting)
    may_go_on.set()
    found = await asyncio.wait_for(asyncio.gather(*waiting), 30)
    assert [each["result"]["snapshot"]["resource"] for each in found] == views * 20
    assert {len(each["result"]["snapshot"]["state"]["files"]) for each in found} == {1}


async def test_a_client_that_leaves_before_its_changeset_is_ready_leaves_nothing(
    connect: Connect, served: Served, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    await client.create_session(SESSION)
    asked, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow(view: changes.Changeset) -> None:
        asked.set()
        await may_go_on.wait()

    monkeypatch.setattr(changes, "_differences", slow)
    await client.start_request("subscribe", channel=f"{SESSION}/changeset/uncommitted")
    await asked.wait()
    await client.drop()
    may_go_on.set()
    await other.request("ping", channel=other.root)
    while tasks := [each for each in served.host.tasks("ahp ") if "subscribe" in each.get_name()]:
        await asyncio.wait(tasks)
    while client.client_id in served.broker.clients:
        await other.request("ping", channel=other.root)
    assert list(served.broker.heard("changeset")) == []


MANUAL: dict[str, str] = {
    "a changed file": "echo two >> a.txt",
    "a new file": "echo x > new.txt",
    "a new file in a new folder": "mkdir -p deep/er && echo x > deep/er/new.txt",
    "a removed file": "rm a.txt",
    "a commit": "echo two >> a.txt; git commit -qam second",
    "another branch": "git checkout -q -b other",
    "a file that is staged": "echo x > s.txt; git add s.txt",
}


@pytest.mark.parametrize("change", MANUAL)
async def test_a_manual_change_reaches_the_clients(connect: Connect, folder: Path, change: str) -> None:
    """They saw the state of the last turn until the next one."""
    client = await connect("1.0.0")
    await client.create_session(SESSION)
    name = await changeset(client, "uncommitted")
    await client.subscribe(name)
    watching = asyncio.ensure_future(client.wait(lambda: current(client, name, folder)))
    await run(MANUAL[change], policy=FREE, cwd=folder, env=environment())
    await watching


def current(client: WireClient, name: str, folder: Path) -> bool:
    """Whether the client shows what git says now."""
    lines = git(folder, "status", "--porcelain", "--untracked-files=all").splitlines()
    branch = git(folder, "branch", "--show-current").strip()
    shown = client.states[SESSION].get("_meta", {}).get("git", {})
    return (
        sorted(each["id"].rpartition("/")[2] for each in client.states[name]["files"])
        == sorted(line[3:].rpartition("/")[2] for line in lines)
        and shown.get("branchName") == branch
        and (shown.get("uncommittedChanges", 0) > 0) == bool(lines)
    )


async def test_a_folder_is_watched_only_while_a_client_looks(connect: Connect, served: Served, folder: Path) -> None:
    client, other = await connect("1.0.0"), await connect("1.0.0", "other")
    assert served.host.tasks("ahp watch") == []
    await client.create_session(SESSION)
    await other.subscribe(SESSION)
    assert len(served.host.tasks("ahp watch")) == 1
    await client.close()
    await other.request("ping", channel=other.root)
    assert len(served.host.tasks("ahp watch")) == 1
    await other.close()
    running = served.host.tasks("ahp watch")
    if running:
        await asyncio.wait(running)
    assert served.host.tasks("ahp watch") == []
