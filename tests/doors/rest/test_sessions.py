"""Sessions and turns over REST: what works, and what is refused with which words."""

import asyncio
from pathlib import Path

import pytest

from portico import __version__
from portico.features.transcripts.document import markdown
from portico.kernel import limits
from portico.kernel.events import Message
from portico.kernel.state import CallPart, QuestionPart, SessionState, TurnState
from tests.doors.standing import Standing, problem, standing


async def test_about_says_what_runs_here(shared: Standing) -> None:
    about = (await shared.http.get("/v1")).json()
    assert about["name"] == "portico"
    assert about["version"] == __version__
    assert about["you"] == "owner"
    assert about["log"]["down"] is None


async def test_agents_come_with_their_models(shared: Standing) -> None:
    agents = (await shared.http.get("/v1/agents")).json()["agents"]
    assert [agent["id"] for agent in agents] == ["scripted", "demo"]
    assert len(agents[0]["models"]) == 9


async def test_a_session_from_its_start_to_its_end(shared: Standing, tmp_path: Path) -> None:
    body = {"agent": "scripted", "model": "gpt-4.1", "cwd": str(tmp_path), "title": "A title", "config": {"a": 1}}
    started = await shared.http.post("/v1/sessions", json=body)
    assert started.status_code == 201
    assert started.json()["by"] == "token:owner"
    one = f"/v1/sessions/{started.json()['id']}"
    state = await shared.say(started.json()["id"], "[[say:hi]]")
    assert (state["agent"], state["model"], state["cwd"], state["title"]) == (
        "scripted",
        "gpt-4.1",
        str(tmp_path),
        "A title",
    )
    assert [part["text"] for part in state["turns"][0]["parts"] if part["kind"] == "text"] == ["hi"]
    assert state["turns"][0]["outcome"] == "completed"
    assert state["by"] == "token:owner"

    change = {"title": "Another", "model": "gpt-5.4", "archived": True, "read": False, "config": {"b": 2}}
    changed = (await shared.http.patch(one, json=change)).json()
    assert (changed["title"], changed["model"], changed["archived"], changed["read"]) == (
        "Another",
        "gpt-5.4",
        True,
        False,
    )
    assert (await shared.http.get(one)).json()["config"] == {"a": 1, "b": 2}

    assert (await shared.http.post(f"{one}/close")).json()["closed"] is True
    problem(await shared.http.post(f"{one}/messages", json={"text": "x"}), 409, "session_closed")
    assert "closed" not in (await shared.http.post(f"{one}/reopen")).json()

    assert (await shared.http.delete(one)).status_code == 204
    problem(await shared.http.get(one), 404, "not_found")
    problem(await shared.http.delete(one), 404, "not_found")


async def test_a_session_needs_nothing_and_takes_the_first_of_everything(shared: Standing) -> None:
    started = (await shared.http.post("/v1/sessions")).json()
    assert (started["agent"], started["model"]) == ("scripted", "gpt-5-mini")
    assert started["cwd"] == str(shared.server.app.workspaces[0])


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({"agent": 1}, 400, "bad_request", "agent"),
        ({"title": None}, 400, "bad_request", "title"),
        ({"config": []}, 400, "bad_request", "config"),
        ({"config": {"fallback": "loop"}}, 400, "bad_request", "config.fallback"),
        ({"config": {"fallback": ["loop", ""]}}, 400, "bad_request", "config.fallback"),
        ({"cwd": "relative"}, 400, "bad_request", "cwd"),
        ({"cwd": "/no/such/folder"}, 400, "bad_request", "cwd"),
        ({"cwd": "/a\0b"}, 400, "bad_request", "cwd"),
        ({"agent": "nosuch"}, 404, "not_found", None),
        ({"model": "nosuch"}, 404, "not_found", None),
    ],
)
async def test_a_wrong_start_is_refused(
    shared: Standing, body: dict[str, object], status: int, code: str, field: str | None
) -> None:
    problem(await shared.http.post("/v1/sessions", json=body), status, code, field)


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"title": ""}, 400, "title"),
        ({"title": "x" * (limits.TITLE_CHARS + 1)}, 400, "title"),
        ({"title": 1}, 400, "title"),
        ({"archived": "yes"}, 400, "archived"),
        ({"model": "nosuch"}, 404, None),
    ],
)
async def test_a_wrong_change_is_refused(
    shared: Standing, body: dict[str, object], status: int, field: str | None
) -> None:
    ident = await shared.start()
    answer = await shared.http.patch(f"/v1/sessions/{ident}", json=body)
    problem(answer, status, "bad_request" if status == 400 else "not_found", field)


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "text"),
        ({"text": 1}, 400, "text"),
        ({"text": "x", "busy": "maybe"}, 400, "busy"),
        ({"text": "x", "attachments": "y"}, 400, "attachments"),
        ({"text": "x", "model": "nosuch"}, 404, None),
    ],
)
async def test_a_wrong_message_is_refused(
    shared: Standing, body: dict[str, object], status: int, field: str | None
) -> None:
    ident = await shared.start()
    answer = await shared.http.post(f"/v1/sessions/{ident}/messages", json=body)
    problem(answer, status, "bad_request" if status == 400 else "not_found", field)


async def test_a_message_over_its_limit_is_too_large(shared: Standing) -> None:
    ident = await shared.start()
    body = {"text": "x" * (limits.MESSAGE_BYTES + 1)}
    assert (await shared.http.post(f"/v1/sessions/{ident}/messages", json=body)).status_code == 413
    state = await shared.say(ident, "[[say:still here]]")
    assert len(state["turns"]) == 1


async def test_lists_are_filtered_and_bounded(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        first, second = await here.start(title="one"), await here.start(title="two")
        await here.http.patch(f"/v1/sessions/{first}", json={"archived": True})
        forked = (await here.http.post(f"/v1/sessions/{second}/fork")).json()["id"]

        async def ids(query: str) -> list[str]:
            return [each["id"] for each in (await here.http.get(f"/v1/sessions?{query}")).json()["sessions"]]

        assert sorted(await ids("")) == [first, second, forked]
        assert await ids("archived=true") == [first]
        assert await ids("archived=false&children=0") == [second]
        assert await ids(f"parent={second}") == [forked]
        assert len(await ids("limit=1")) == 1
        assert (await here.http.get("/v1/sessions?limit=1")).json()["total"] == 3
        for query, field in [
            ("limit=x", "limit"),
            ("limit=-1", "limit"),
            ("limit=0", "limit"),
            ("archived=2", "archived"),
        ]:
            problem(await here.http.get(f"/v1/sessions?{query}"), 400, "bad_request", field)


async def test_a_busy_session_queues_refuses_or_steers(shared: Standing) -> None:
    ident = await shared.start()
    path = f"/v1/sessions/{ident}/messages"
    running = (await shared.http.post(path, json={"text": "[[hang]]"})).json()["turn"]
    queued = await shared.http.post(path, json={"text": "next"})
    assert queued.status_code == 202
    assert queued.json()["queued"] is True
    assert queued.json()["position"] == 1
    problem(await shared.http.post(path, json={"text": "x", "busy": "refuse"}), 409, "turn_in_progress")
    steered = (await shared.http.post(path, json={"text": "x", "busy": "steer"})).json()
    assert steered == {"steered": False, "queued": True}  # the scripted agent cannot: it waits in front
    problem(await shared.http.post(f"/v1/sessions/{ident}/cancel", json={"turn": "t99"}), 409, "conflict")
    assert (await shared.http.post(f"/v1/sessions/{ident}/cancel", json={"turn": running})).status_code == 200
    assert (await shared.http.post(f"/v1/sessions/{ident}/close")).status_code == 200


async def test_cancel_and_resume_want_the_right_moment(shared: Standing) -> None:
    ident = await shared.start()
    problem(await shared.http.post(f"/v1/sessions/{ident}/cancel"), 409, "conflict")
    problem(await shared.http.post(f"/v1/sessions/{ident}/resume"), 409, "conflict")
    state = await shared.say(ident, "[[crashn:rest|1]][[say:well]]")
    assert state["turns"][0]["outcome"] == "failed"
    resumed = await shared.http.post(f"/v1/sessions/{ident}/resume")
    assert (resumed.status_code, resumed.json()) == (202, {"turn": state["turns"][0]["id"]})
    session = await shared.server.host.get(ident)
    assert (await session.wait(resumed.json()["turn"])).outcome == "completed"


async def test_fork_and_truncate_at_a_turn(shared: Standing) -> None:
    ident = await shared.start()
    for text in ("[[say:one]]", "[[say:two]]"):
        state = await shared.say(ident, text)
    first = state["turns"][0]["id"]
    forked = await shared.http.post(f"/v1/sessions/{ident}/fork", json={"turn": first})
    assert (forked.status_code, forked.json()["turns"], forked.json()["parent"]) == (201, 1, ident)
    problem(await shared.http.post(f"/v1/sessions/{ident}/fork", json={"turn": "t99"}), 404, "not_found")
    problem(await shared.http.post(f"/v1/sessions/{ident}/truncate", json={"turn": "t99"}), 404, "not_found")
    assert (await shared.http.post(f"/v1/sessions/{ident}/truncate", json={"turn": first})).json()["turns"] == 1


@pytest.mark.parametrize(
    ("form", "media"), [("markdown", "text/markdown"), ("html", "text/html"), ("jsonl", "application/jsonl")]
)
async def test_a_session_is_exported_as_a_download(shared: Standing, form: str, media: str) -> None:
    ident = await shared.start(title="<b>bold</b>")
    await shared.say(ident, "[[say:<script>alert(1)</script> ```x```]]")
    answer = await shared.http.get(f"/v1/sessions/{ident}/export?format={form}")
    assert answer.headers["content-type"].startswith(media)
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    assert "alert(1)" in answer.text
    if form == "html":
        assert "<script>" not in answer.text
        assert "<b>" not in answer.text
    if form == "jsonl":
        assert len(answer.text.splitlines()) == (await shared.http.get(f"/v1/sessions/{ident}")).json()["pos"]


def test_what_agents_made_up_is_no_markup_in_an_export() -> None:
    call = CallPart("c", "bash", "**x**\n# y", input="`", output="<b>")
    turn = TurnState("t", Message("hi"), "x", 0, 0, parts=[call, QuestionPart("q", "[a](b)")])
    text = markdown(SessionState("s", title="a\n# b", agent="<i>", turns=[turn]))
    assert text.startswith("# a \\# b\n")
    for shown in ("\\<i\\>", "**\\*\\*x\\*\\* \\# y**", "> \\[a\\]\\(b\\)"):
        assert shown in text


async def test_an_unknown_form_of_export_is_refused(shared: Standing) -> None:
    ident = await shared.start()
    message = problem(await shared.http.get(f"/v1/sessions/{ident}/export?format=pdf"), 400, "bad_request", "format")
    assert "markdown, html, jsonl" in message


async def test_commands_on_one_session_at_once_all_get_an_answer(shared: Standing) -> None:
    ident = await shared.start()
    path = f"/v1/sessions/{ident}"
    calls = [shared.http.post(f"{path}/messages", json={"text": f"[[say:{i}]]"}) for i in range(10)]
    calls += [shared.http.patch(path, json={"title": f"title {i}"}) for i in range(10)]
    calls += [shared.http.post(f"{path}/fork") for _ in range(3)]
    answers = await asyncio.gather(*calls)
    assert {answer.status_code for answer in answers} == {200, 201, 202}
    session = await shared.server.host.get(ident)
    async with asyncio.timeout(30):
        state = await session.wait_until(lambda state: not state.queue and state.active is None)
    assert [turn.outcome for turn in state.turns] == ["completed"] * 10


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("title", "First", "Second"),
        ("model", "gpt-4.1", "gpt-5-mini"),
        ("archived", True, False),
        ("read", False, True),
        ("config", {"a": 1}, {"a": 2}),
    ],
)
async def test_a_change_with_an_id_is_done_once(shared: Standing, name: str, first: object, second: object) -> None:
    """A rename that was asked again after a restart was done again, over what had been said since."""
    ident = (await shared.http.post("/v1/sessions", json={"agent": "scripted"})).json()["id"]
    one = f"/v1/sessions/{ident}"
    headers = {"Idempotency-Key": f"{ident}-{name}"}
    for value, keyed in ((first, headers), (second, {}), (first, headers)):
        assert (await shared.http.patch(one, json={name: value}, headers=keyed)).is_success
    state = (await shared.http.get(one)).json()
    assert state.get(name, second) == second  # the usual value is left out
    other = await shared.http.patch(one, json={name: second}, headers=headers)
    assert "another command" in problem(other, 409, "conflict", "id")
