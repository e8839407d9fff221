"""What the Anywhere door tells: the event stream, projects and their history."""

import gzip
import json
import os
from pathlib import Path
from typing import cast

import pytest

from portico.doors.anywhere import AnywhereDoor
from portico.doors.anywhere.translate import FRAME_CHARS
from portico.kernel.events import Message, PartDelta
from portico.testing.model import Step
from portico.workspace.git import git
from tests.doors.anywhere.bridge import CREATE, Bridge, acts, bridge, ends
from tests.doors.standing import problem


async def test_a_stream_resumes_anywhere_without_loss_or_repetition(here: Bridge) -> None:
    here.says(Step(say=[f"{n} " for n in range(30)], gap=2))
    async with here.events() as stream:
        sent = await here.send("count")
        whole, cursors = [], []
        while True:
            whole.append(await stream.next())
            cursors.append(stream.last)
            if whole[-1][0] == "done":
                break
    for index in range(0, len(whole), 3):
        async with here.events(**{"Last-Event-ID": cursors[index]}) as stream:
            seen = await stream.until("done") if index < len(whole) - 1 else []
        assert whole[: index + 1] + seen == whole
    problem(await here.http.get("/events", headers={"Last-Event-ID": "x"}), 400, "bad_request", "after")
    assert sent["id"] == whole[0][1]["id"]


async def test_a_stream_follows_the_sessions_of_its_project_only(here: Bridge) -> None:
    """It was handed every record of the host, terminals and jobs included."""
    here.says(Step(say=["one"]), Step(say=["two"]))
    projects = cast(AnywhereDoor, here.server.doors["anywhere"]).projects
    async with here.events() as stream:
        await here.send("one")
        await stream.until("done")
        other = await here.server.host.start(agent="scripted", by="test", cwd=str(here.project.parent))
        await other.wait(await other.send(Message("[[say:x]]"), by="test"))
        await here.send("two")
        await stream.until("done")
        assert [list(each.channels or ()) for each in projects._followers] == [["session/session-1"]]
    async with here.events(f"?session={await here.project_id()}"):
        assert ["session/session-1"] in [list(each.channels or ()) for each in projects._followers]


async def test_long_fragments_are_cut_and_every_cut_is_a_cursor(here: Bridge) -> None:
    text = "\x01" * (FRAME_CHARS * 3 + 5)  # the worst case: six bytes for each character
    here.says(Step(say=[text]))
    async with here.events() as stream:
        await here.send("long")
        fragments: list[tuple[str, str]] = []
        while True:
            name, data = await stream.next()
            if name == "fragment":
                fragments.append((stream.last, data["fragment"]))
            if name == "done":
                break
    assert "".join(piece for _, piece in fragments) == text
    assert len(fragments) >= 4
    assert all(len(json.dumps(piece)) < 64_000 for _, piece in fragments)
    for index in range(len(fragments)):
        async with here.events(**{"Last-Event-ID": fragments[index][0]}) as stream:
            rest = [data["fragment"] for name, data in await stream.until("done") if name == "fragment"]
        assert rest == [piece for _, piece in fragments[index + 1 :]]


async def test_after_compaction_a_reader_still_gets_the_whole_text(here: Bridge) -> None:
    here.says(Step(say=["Hel", "lo"], gap=10))
    await here.send("Hi")
    session = await here.server.host.get("session-1")
    await session.wait("t1")
    assert await here.server.host.log.compact(here.server.host.now() + 1000) > 0
    async with here.events("?after=0") as stream:
        events = await stream.until("done")
    assert "".join(data["fragment"] for name, data in events if name == "fragment") == "Hello"


async def test_after_compaction_a_cursor_in_the_middle_of_a_part_still_gets_the_exact_rest(here: Bridge) -> None:
    """Such a reader missed the rest of the part: its deltas were gone, and the part's end was not for it."""
    words = ["Once ", "upon ", "a ", "time ", "ünï ", "x" * (FRAME_CHARS + 10), " end."]
    here.says(Step(say=words, gap=10))
    async with here.events() as stream:
        await here.send("Hi")
        before: list[tuple[str, str]] = []
        while not before or before[-1][1] != "":
            name, data = await stream.next()
            before.append((stream.last, "" if name == "done" else data.get("fragment", "-")))
    log, now = here.server.host.log, here.server.host.now()
    deltas = [record for record in await log.read("session/session-1") if isinstance(record.event, PartDelta)]
    # First only the older half, as when the retention ends in the middle of a turn; then all of them.
    for cut in (deltas[len(deltas) // 2].time, now + 1000):
        await log.compact(cut)
        for index in range(len(before) - 1):
            async with here.events(**{"Last-Event-ID": before[index][0]}) as stream:
                rest = [data["fragment"] for name, data in await stream.until("done") if name == "fragment"]
            assert "".join(rest) == "".join(text for _, text in before[index + 1 :])
    assert not any(isinstance(record.event, PartDelta) for record in await log.read("session/session-1"))
    async with here.events("?after=0") as stream:
        again = [(stream.last, data["fragment"]) for name, data in await stream.until("done") if name == "fragment"]
    assert "".join(text for _, text in again) == "".join(words)


async def test_the_filter_shows_one_project_by_id_or_path(here: Bridge, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    added = (await here.http.post("/sessions", json={"path": str(other)})).json()
    async with here.events(f"?session={added['id']}") as mine, here.events(f"?session={here.project}") as theirs:
        first = await here.send("in the first")
        second = await here.send("in the other", sessionId=str(other))
        assert second["sessionId"] == added["id"]
        assert {data["sessionId"] for _, data in await mine.until("done")} == {added["id"]}
        assert {data["sessionId"] for _, data in await theirs.until("done")} == {first["sessionId"]}
    problem(await here.http.get("/events?session=nope"), 404, "not_found")


async def test_projects_come_and_go_at_run_time(here: Bridge, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    projects = (await here.http.get("/sessions")).json()
    assert [(each["name"], each["path"], each["count"]) for each in projects] == [("project", str(here.project), 0)]
    made = await here.http.post("/sessions", json={"path": str(other)})
    assert made.status_code == 201
    problem(await here.http.post("/sessions", json={"path": str(other)}), 409, "already_exists")
    problem(await here.http.post("/sessions", json={"path": "other"}), 400, "bad_request", "path")
    problem(await here.http.post("/sessions", json={"path": str(tmp_path / "no")}), 400, "bad_request", "path")
    problem(await here.http.post("/sessions", json={"path": "/proc/self"}), 400, "bad_request", "path")
    assert len((await here.http.get("/sessions")).json()) == 2
    assert (await here.http.delete(f"/sessions/{made.json()['id']}")).status_code == 204
    assert other.is_dir()
    assert (await here.http.delete(f"/sessions/{projects[0]['id']}")).status_code == 204
    left = (await here.http.get("/sessions")).json()
    assert [each["id"] for each in left] == ["default"]
    assert os.stat(left[0]["path"]).st_mode & 0o077 == 0
    problem(await here.http.get(f"/sessions/{projects[0]['id']}"), 404, "not_found")


async def test_a_project_whose_conversations_have_a_worktree_each(here: Bridge, tmp_path: Path) -> None:
    folder = tmp_path / "apart"
    folder.mkdir()
    body = {"path": str(folder), "worktree": True}
    problem(await here.http.post("/sessions", json=body), 404, "not_found")
    await git(folder, "init", "-q")
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c")
    await git(folder, *identity, "commit", "-q", "--no-gpg-sign", "--allow-empty", "-m", "first")
    added = (await here.http.post("/sessions", json=body)).json()
    assert added["worktree"] is True
    async with here.events() as stream:
        sent = await here.send("hi", sessionId=added["id"], agent="scripted")
        await stream.until("done", id=sent["id"])
    session = sent["id"].partition(".")[0]
    assert here.server.host.list()[0].cwd == str(tmp_path / "apart.worktrees" / session)
    assert [each.get("worktree") for each in (await here.http.get("/sessions")).json()] == [None, True]


async def test_the_settings_change_the_projects_while_we_run(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with bridge(tmp_path, flags={"workspaces": None}) as here:
        assert (await here.http.get("/sessions")).json()[0]["path"] != str(other)
        await here.set(f'workspaces = ["{other}"]')
        assert [each["path"] for each in (await here.http.get("/sessions")).json()] == [str(other)]


async def test_the_history_is_stored_and_clear_begins_anew(tmp_path: Path) -> None:
    async with bridge(tmp_path) as here:
        here.says(acts(CREATE), ends("Wrote it."))
        async with here.events() as stream:
            sent = await here.send("agent: write")
            asked = (await stream.until("approvalRequest"))[-1][1]
            await here.http.post("/approval", json={"approvalId": asked["approvalId"], "approved": True})
            await stream.until("done")
    async with bridge(tmp_path) as here:
        shown = (await here.http.get(f"/sessions/{sent['sessionId']}")).json()
        assert shown["name"] == "project"
        assert [(item["type"], item["id"]) for item in shown["messages"]] == [
            ("inbound", sent["id"]),
            ("action", sent["id"]),
            ("outbound", sent["id"]),
            ("done", sent["id"]),
        ]
        assert (await here.http.get("/sessions")).json()[0]["count"] == 1
        assert (await here.http.post("/clear", json={"sessionId": sent["sessionId"]})).json() == {"ok": True}
        assert (await here.http.get(f"/sessions/{here.project}")).json()["messages"] == []
        after = await here.send("Hi")
        assert after["id"] == "session-2.t1"
        lines = (await here.http.get(f"/context?session={sent['sessionId']}")).text.splitlines()
        assert [json.loads(line)["session"] for line in lines][:2] == ["session-1", "session-1"]


async def test_messages_from_other_doors_are_heard_here(here: Bridge) -> None:
    here.says(Step(say="hello"))
    async with here.events() as stream:
        await here.send("first")
        await stream.until("done")
        answer = await here.http.post("/v1/sessions/session-1/messages", json={"text": "from elsewhere"})
        events = await stream.until("done")
    assert events[0][1]["text"] == "from elsewhere"
    assert events[0][1]["id"] == f"session-1.{answer.json()['turn']}"


async def test_a_resumed_turn_is_a_run_of_its_own(here: Bridge) -> None:
    here.says(Step(error=400))
    async with here.events() as stream:
        sent = await here.send("agent: try")
        await stream.until("done", id=sent["id"], outcome="failed")
        here.says(ends("Now it works."))
        await here.http.post("/v1/sessions/session-1/resume", json={})
        events = await stream.until("done", outcome="completed")
    assert events[0][0] == "inbound"
    assert events[-1][1]["id"].startswith(f"{sent['id']}~")
    async with here.events("?after=0") as stream:
        replayed = await stream.until("done", outcome="completed")
    done = [data["id"] for name, data in replayed if name == "done"]
    assert len(done) == len(set(done)) == 2


async def test_answers_are_compressed_when_the_client_takes_it(here: Bridge) -> None:
    here.says(Step(say="word " * 2000))
    await here.send("long")
    session = await here.server.host.get("session-1")
    await session.wait("t1")
    for path in (f"/sessions/{await here.project_id()}", "/context"):
        async with here.http.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as answer:
            raw = b"".join([data async for data in answer.aiter_raw()])
        assert answer.headers["content-encoding"] == "gzip"
        assert len(raw) < 2000
        assert b"word word" in gzip.decompress(raw)
    async with here.events("?after=0", **{"Accept-Encoding": "gzip"}) as stream:
        assert stream.answer.headers["content-encoding"] == "gzip"
        assert (await stream.until("done"))[0][0] == "inbound"


@pytest.mark.parametrize(
    ("header", "packed"),
    [("br, GZIP;q=0.5", True), ("*", True), ("gzip;q=0.0, *", False), ("*;q=0, gzip", True), ("identity", False)],
)
async def test_what_a_client_takes(here: Bridge, header: str, packed: bool) -> None:
    answer = await here.http.get("/context", headers={"Accept-Encoding": header})
    assert (answer.headers.get("content-encoding") == "gzip") is packed
