"""The list that people leave open, the inbox, and drafts."""

import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from portico import limits
from portico.features.board.board import BoardPart
from portico.features.jobs import events as je
from portico.features.jobs.state import plan_of
from portico.kernel.events import Origin
from portico.kernel.state import Summary
from tests.doors.standing import Standing, problem
from tests.jobs.playing import make, task


def socket(shared: Standing) -> connect:
    address = shared.url.replace("http", "ws") + "/v1/board/socket"
    return connect(address, additional_headers={"Authorization": f"Bearer {shared.home.token()}"}, max_size=None)


async def until(feed: ClientConnection, session: str, **wanted: Any) -> dict[str, Any]:
    """The first row of this session that has these values."""
    while True:
        for row in json.loads(await feed.recv())["rows"]:
            seen = {**row["session"], **{key: value for key, value in row.items() if key != "session"}}
            if seen["id"] == session and all(seen.get(key) == value for key, value in wanted.items()):
                return row  # type: ignore[no-any-return]


async def begin(shared: Standing, text: str, agent: str = "demo") -> str:
    session = await shared.start(agent=agent)
    await shared.http.post(f"/v1/sessions/{session}/messages", json={"text": text})
    return session


async def test_a_row_says_what_waits_and_the_inbox_has_all_the_answer_needs(shared: Standing) -> None:
    async with socket(shared) as feed:
        session = await begin(shared, "write something")
        row = await until(feed, session, status="waiting")
        assert row["activity"] == "Wants to change portico-demo.md"
        assert [each["kind"] for each in row["waiting"]] == ["approval"]
        (asked,) = [
            each for each in (await shared.http.get("/v1/inbox")).json()["waiting"] if each["session"] == session
        ]
        assert asked["id"] == row["waiting"][0]["id"] == asked["approval"]["id"]
        assert "portico-demo.md" in asked["approval"]["diff"]
        assert asked["since"] >= row["session"]["created"]
        await shared.http.post(f"/v1/approvals/{asked['id']}", json={"allow": False})
        done = await until(feed, session, status="idle")
        assert "activity" not in done
        assert "waiting" not in done
    inbox = (await shared.http.get("/v1/inbox")).json()["waiting"]
    assert session not in {each["session"] for each in inbox}


async def test_a_question_waits_in_the_inbox(shared: Standing) -> None:
    async with socket(shared) as feed:
        session = await begin(shared, "ask me")
        row = await until(feed, session, status="waiting")
    assert row["activity"].startswith("Asks: ")
    (asked,) = [each for each in (await shared.http.get("/v1/inbox")).json()["waiting"] if each["session"] == session]
    assert asked["question"]["id"] == asked["id"]
    await shared.http.post(f"/v1/questions/{asked['id']}", json={"response": "decline"})


async def test_a_yes_can_be_remembered_for_more_and_is_listed_as_answered(
    shared: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with socket(shared) as feed:
        session = await begin(shared, "write something")
        row = await until(feed, session, status="waiting")
        address = f"/v1/approvals/{row['waiting'][0]['id']}"
        offered = (await shared.http.get(f"{address}/covers")).json()["covers"]
        assert [each["breadth"] for each in offered] == ["shown", "folder"]  # its folder is the session's own
        problem(
            await shared.http.post(address, json={"option": "allow-once", "covers": "folder"}),
            400,
            "bad_request",
            "covers",
        )
        await shared.http.post(address, json={"option": "allow-session", "covers": "folder"})
        await until(feed, session, status="idle")
        await shared.http.post(f"/v1/sessions/{session}/messages", json={"text": "write something"})
        await until(feed, session, status="idle", turns=2)
    (grant,) = [each for each in (await shared.http.get("/v1/grants")).json()["grants"] if each["session"] == session]
    assert grant["covers"] == offered[1]["covers"]
    created = row["session"]["created"]
    answered = (await shared.http.get("/v1/inbox/answered", params={"since": str(created)})).json()
    (mine,) = [each for each in answered["answers"] if each["session"] == session]
    assert (mine["text"], mine["allowed"]) == ("Wants to change portico-demo.md", True)
    assert (mine["grant"], mine["covers"], mine["tool"]) == (grant["id"], grant["covers"], grant["tool"])
    assert mine["cwd"] == row["session"]["cwd"]
    assert (await shared.http.delete(f"/v1/grants/{grant['id']}")).status_code < 300
    answered_again = (await shared.http.get("/v1/inbox/answered", params={"since": str(created)})).json()
    (undone,) = [each for each in answered_again["answers"] if each["session"] == session]
    assert undone == {name: value for name, value in mine.items() if name != "grant"}, "what is revoked is not offered"
    assert answered["rules"] >= 1
    later = (await shared.http.get("/v1/inbox/answered", params={"since": str(mine["time"] + 60_000)})).json()
    assert [each for each in later["answers"] if each["session"] == session] == []
    assert (await shared.http.get(f"{address}/covers")).json() == {"covers": []}
    monkeypatch.setattr(limits, "ANSWERS", 0)
    assert (await shared.http.get("/v1/inbox/answered")).json()["answers"] == []


async def test_a_row_says_what_runs_and_goes_with_its_session(shared: Standing) -> None:
    async with socket(shared) as feed:
        session = await begin(shared, "[[reasoning:0]] [[hang]]", "scripted")
        await until(feed, session, status="running")
        await shared.http.post(f"/v1/sessions/{session}/cancel", json={})
        await until(feed, session, status="idle")
        await shared.http.delete(f"/v1/sessions/{session}")
        while session not in json.loads(await feed.recv())["removed"]:
            pass


def titled(page: dict[str, Any]) -> list[str]:
    return [row["session"]["title"] for row in page["rows"]]


async def test_older_rows_come_page_by_page_and_none_is_missed(shared: Standing) -> None:
    for number in range(7):
        await shared.http.post("/v1/sessions", json={"agent": "demo", "title": f"Paged {number}"})
    wanted = [f"Paged {number}" for number in range(7)]
    page = (await shared.http.get("/v1/board", params={"limit": "2", "q": "paged"})).json()
    seen = titled(page)
    while page["before"]:
        assert page["older"] == len(wanted) - len(seen)
        query = {"limit": "2", "q": "paged", "before": str(page["before"])}
        page = (await shared.http.get("/v1/board", params=query)).json()
        seen += titled(page)
    assert (seen, page["older"]) == (wanted[::-1], 0)
    problem(
        await shared.http.get("/v1/board", params={"limit": str(limits.BOARD_ROWS + 1)}), 400, "bad_request", "limit"
    )


async def test_sessions_of_one_millisecond_stay_on_one_page(shared: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        await shared.http.post("/v1/sessions", json={"agent": "demo", "title": f"Twin {number}"})
    for session in shared.server.host.catalogue.live():
        if session.summary.title.startswith("Twin"):
            monkeypatch.setattr(session.summary, "modified", 1_000)
    page = (await shared.http.get("/v1/board", params={"limit": "1", "q": "twin"})).json()
    assert (sorted(titled(page)), page["older"], page["before"]) == ([f"Twin {n}" for n in range(4)], 0, 0)


async def test_what_runs_is_on_the_first_page_however_old_and_older_ones_follow_it(shared: Standing) -> None:
    await shared.http.post("/v1/sessions", json={"agent": "demo", "title": "Older"})
    running = await begin(shared, "[[reasoning:0]] [[hang]]", "scripted")
    async with socket(shared) as feed:
        await until(feed, running, status="running")
    newer = (await shared.http.post("/v1/sessions", json={"agent": "demo", "title": "Newer"})).json()
    while shared.server.host.now() <= newer["modified"]:  # in one millisecond both would be on the first page
        continue
    await shared.http.post("/v1/sessions", json={"agent": "demo", "title": "Newest"})
    first = (await shared.http.get("/v1/board", params={"limit": "1"})).json()
    assert titled(first)[0] == "Newest"
    assert running in [row["session"]["id"] for row in first["rows"]]
    second = (await shared.http.get("/v1/board", params={"limit": "1", "before": str(first["before"])})).json()
    assert titled(second)[0] == "Newer"
    assert "Older" not in titled(second)  # what runs may share a millisecond with Newer
    await shared.http.post(f"/v1/sessions/{running}/cancel", json={})


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("kiwi", True),
        ("KIWI green", True),
        ("green kiwi", True),
        ("demo kiwi", True),
        ("kiwi blue", False),
        ("", True),
    ],
)
async def test_a_board_of_certain_words(shared: Standing, words: str, found: bool) -> None:
    await shared.http.post("/v1/sessions", json={"agent": "demo", "title": "A green Kiwi"})
    page = (await shared.http.get("/v1/board", params={"q": words})).json()
    assert ("A green Kiwi" in titled(page)) is found


async def test_those_left_out_are_counted_by_day(shared: Standing) -> None:
    for number in range(5):
        await shared.http.post("/v1/sessions", json={"agent": "demo", "title": f"Counted {number}"})
    every = (await shared.http.get("/v1/board", params={"q": "counted"})).json()
    times = [row["session"]["modified"] for row in every["rows"]]

    async def left(*days: int) -> list[int]:
        query = {"q": "counted", "limit": "1", "days": ",".join(map(str, days))}
        return (await shared.http.get("/v1/board", params=query)).json()["days"]  # type: ignore[no-any-return]

    assert await left() == [4]
    assert await left(times[2], times[3]) == [2, 1, 1]
    assert await left(times[0] + 1) == [0, 4]
    for wrong in ("x", "-1", "1,2,y", "9" * 19, ",".join(["1"] * (limits.BOARD_DAYS + 1))):
        problem(await shared.http.get("/v1/board", params={"days": wrong}), 400, "bad_request", "days")


@pytest.mark.parametrize(
    ("row", "fields"),
    [
        (True, {}),
        (True, {"by": "token:phone"}),
        (True, {"origin": Origin("fork", "parent")}),
        (False, {"by": "task:7"}),
        (False, {"origin": Origin("agent", "parent")}),
    ],
)
def test_sessions_of_a_job_and_helpers_are_no_rows_of_their_own(row: bool, fields: dict[str, Any]) -> None:
    left = Summary("x", "demo", "", "/", "", "idle", created=1, modified=1, pos=1, **fields)
    assert BoardPart([], [left], 0).by_day([]) == [int(row)]


@pytest.mark.parametrize("path", ["/v1/board", "/v1/inbox", "/v1/inbox/answered"])
async def test_strangers_see_nothing(shared: Standing, path: str) -> None:
    assert (await shared.stranger.get(path)).status_code == 401


async def test_archived_sessions_are_counted_and_asked_for(shared: Standing) -> None:
    session = await shared.start(agent="demo")

    async def board(**query: str) -> tuple[bool, int]:
        page = (await shared.http.get("/v1/board", params=query)).json()
        return session in {row["session"]["id"] for row in page["rows"]}, page["archived"]

    shown, before = await board()
    assert (shown, await board(archived="true")) == (True, (False, before))
    await shared.http.patch(f"/v1/sessions/{session}", json={"archived": True})
    assert (await board(), await board(archived="true")) == ((False, before + 1), (True, before + 1))
    problem(await shared.http.get("/v1/board?archived=maybe"), 400, "bad_request", "archived")


async def test_a_job_that_waits_for_a_person_is_in_the_inbox(shared: Standing) -> None:
    """It stood still, and only its own page said so."""
    jobs, plan = shared.server.jobs, plan_of(make({"it": task("[[say:ok]]")}), "main")
    started = je.JobStarted(job="job-77", name="main", entry=plan, cwd="/", by="test")
    waiting = je.JobWaiting(reason="The host ended in the middle of 'it'; resume or stop the job.")
    await shared.server.host.log.append("job/job-77", started, waiting)
    found = (await shared.http.get("/v1/inbox")).json()["jobs"]
    ours = [(each["job"], each["name"], each["reason"]) for each in found if each["job"] == "job-77"]
    assert ours == [("job-77", "main", waiting.reason)]
    await jobs.stop_job("job-77", by="test")
    found = (await shared.http.get("/v1/inbox")).json()["jobs"]
    assert "job-77" not in [each["job"] for each in found]
