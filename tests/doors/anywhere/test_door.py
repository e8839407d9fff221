"""The Anywhere door over real HTTP: messages, what waits for a person, and who may."""

import asyncio
from pathlib import Path

import pytest

from portico.kernel import commands as c
from portico.kernel import limits
from portico.kernel.events import Message
from portico.kernel.log import group_commit
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.turn import Turn
from portico.server.route import Route
from portico.testing.model import Step
from portico.testing.play import PlayAgent
from tests.doors.anywhere.bridge import CREATE, Bridge, acts, bridge, ends
from tests.doors.standing import problem


async def test_a_chat_is_heard_streamed_and_done(here: Bridge) -> None:
    here.says(Step(say=["Hel", "lo."], gap=5, reason="hm"))
    async with here.events() as stream:
        sent = await here.send("Hi")
        assert sent == {"accepted": True, "id": "session-1.t1", "sessionId": await here.project_id()}
        events = await stream.until("done")
    inbound, *fragments, done = events
    ident = {"id": sent["id"], "sessionId": sent["sessionId"]}
    assert inbound == ("inbound", {**ident, "text": "Hi", "source": "token:owner"})
    assert "".join(data["fragment"] for _, data in fragments) == "Hello."
    assert all(data == {**ident, "fragment": data["fragment"], "model": "scripted"} for _, data in fragments)
    assert done == ("done", {**ident, "model": "scripted", "outcome": "completed"})


async def test_an_agent_run_asks_with_a_diff_and_goes_on_when_allowed(here: Bridge) -> None:
    here.says(acts(CREATE), ends("Wrote it."))
    async with here.events() as stream:
        sent = await here.send("write a readme", mode="agent")
        asked = (await stream.until("approvalRequest"))[-1][1]
        assert asked["id"] == sent["id"]
        assert (asked["action"], asked["path"], asked["contentPreview"]) == ("createFile", "README.md", "files: none\n")
        assert asked["diff"] == "--- /dev/null\n+++ b/README.md\n@@ -0,0 +1 @@\n+files: none\n"
        assert not (here.project / "README.md").exists()
        answer = await here.http.post("/approval", json={"approvalId": asked["approvalId"], "approved": True})
        assert answer.json() == {"ok": True}
        events = await stream.until("done")
    names = [name for name, _ in events]
    assert list(dict.fromkeys(names)) == ["approvalDecision", "action", "fragment", "done"]
    assert events[0][1]["approved"] is True
    assert events[0][1]["by"] == "token:owner"
    assert (events[1][1]["tool"], events[1][1]["ok"]) == ("createFile", True)
    assert (here.project / "README.md").read_text() == "files: none\n"
    again = await here.http.post("/approval", json={"approvalId": asked["approvalId"], "approved": True})
    problem(again, 409, "already_answered")
    problem(await here.http.post("/approval", json={"approvalId": "no.a1", "approved": True}), 404, "not_found")


async def test_no_means_no(here: Bridge) -> None:
    here.says(acts(CREATE), ends("As you wish."))
    async with here.events() as stream:
        await here.send("agent: write a readme")
        asked = (await stream.until("approvalRequest"))[-1][1]
        await here.http.post("/approval", json={"approvalId": asked["approvalId"], "approved": False})
        events = await stream.until("done", outcome="completed")
    assert any(name == "action" and data.get("ok") is False for name, data in events)
    assert not (here.project / "README.md").exists()


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"{", 400, "body"),
        (b"{}", 400, "text"),
        (b'{"text": 7}', 400, "text"),
        (b'{"text": "  "}', 400, "text"),
        (b'{"text": "x", "mode": "boss"}', 400, "mode"),
        (b'{"text": "x", "maxSteps": 0}', 400, "maxSteps"),
        (b'{"text": "x", "maxSteps": "many"}', 400, "maxSteps"),
        (b'{"text": "/run"}', 400, "text"),
        (b'{"text": "agent: "}', 400, "text"),
        (b'{"text": "x", "sessionId": "nope"}', 404, None),
        (b'{"text": "x", "model": "nope"}', 404, None),
        (b'{"text": "x", "agent": "nope"}', 404, None),
        (b'{"text": "' + b"x" * 9_000_000 + b'"}', 413, "body"),
    ],
)
async def test_bad_messages_are_refused_with_the_field(
    here: Bridge, body: bytes, status: int, field: str | None
) -> None:
    answer = await here.http.post("/message", content=body)
    assert (answer.status_code, answer.json().get("field")) == (status, field), answer.text


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/message", "POST"),
        ("GET", "/approval", "POST"),
        ("DELETE", "/clear", "POST"),
        ("POST", "/events", "GET"),
        ("POST", "/context", "GET"),
        ("PUT", "/sessions", "GET, POST"),
        ("POST", "/sessions/x", "DELETE, GET"),
    ],
)
async def test_a_wrong_method_says_the_right_one(here: Bridge, method: str, path: str, allowed: str) -> None:
    answer = await here.http.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


async def test_a_project_is_as_old_as_it_was(tmp_path: Path) -> None:
    """Its `created` became that of the first message, of the first one after `/clear`, and of the last start."""
    other = tmp_path / "other"
    other.mkdir()
    async with bridge(tmp_path) as here:
        added = (await here.http.post("/sessions", json={"path": str(other)})).json()
        seen = [added["created"]]

        async def look(where: Bridge) -> None:
            found = {each["path"]: each for each in (await where.http.get("/sessions")).json()}
            seen.append(found[str(other)]["created"])

        for text in ("hello", "again"):
            async with here.events() as stream:
                await here.send(text, sessionId=added["id"])
                await stream.until("done")
            await look(here)
            await here.http.post("/clear", json={"sessionId": added["id"]})
            await look(here)
    async with bridge(tmp_path) as back:
        await look(back)
    assert seen == [added["created"]] * 6


async def test_message_is_another_word_for_text(here: Bridge) -> None:
    answer = await here.http.post("/message", json={"message": "Hi"})
    assert answer.status_code == 202


async def test_a_busy_conversation_queues_and_each_message_is_done_once(here: Bridge) -> None:
    here.says(Step(say="ok", delay=100))
    async with here.events() as stream:
        first, second, third = [await here.send(text) for text in ("one", "two", "three")]
        assert "queued" not in first
        assert (second["queued"], second["position"], third["position"]) == (True, 1, 2)
        events = await stream.until("done", id=third["id"])
    done = [data["id"] for name, data in events if name == "done"]
    assert done == [first["id"], second["id"], third["id"]]
    assert [data["text"] for name, data in events if name == "inbound"] == ["one", "two", "three"]


async def test_cancel_stops_a_run_and_takes_a_queued_message_out(here: Bridge) -> None:
    here.says(Step(hang=True))
    async with here.events() as stream:
        first, second = await here.send("one"), await here.send("two")
        assert (await here.http.post("/cancel", json={"id": second["id"]})).json() == {"ok": True}
        assert (await here.http.post("/cancel", json={"id": first["id"]})).json() == {"ok": True}
        events = await stream.until("done", id=first["id"])
        outcomes = {data["id"]: data["outcome"] for name, data in events if name == "done"}
        assert outcomes == {first["id"]: "cancelled", second["id"]: "cancelled"}
        third = await here.send("three")
        await stream.until("inbound", id=third["id"])
        assert (await here.http.post("/cancel", json={"sessionId": third["sessionId"]})).json() == {"ok": True}
        await stream.until("done", id=third["id"], outcome="cancelled")
    problem(await here.http.post("/cancel", json={"id": first["id"]}), 404, "not_found")
    problem(await here.http.post("/cancel", json={"id": "session-9.t1"}), 404, "not_found")
    problem(await here.http.post("/cancel", json={"sessionId": third["sessionId"]}), 404, "not_found")
    problem(await here.http.post("/cancel", json={}), 400, "bad_request", "id")


async def test_the_same_key_starts_nothing_twice_also_after_a_restart(tmp_path: Path) -> None:
    headers = {"Idempotency-Key": "abc"}
    async with bridge(tmp_path) as here:
        posts = [here.http.post("/message", json={"text": "Hi"}, headers=headers) for _ in range(5)]
        answers = [answer.json() for answer in await asyncio.gather(*posts)]
        assert answers == [answers[0]] * 5
        session = await here.server.host.get("session-1")
        await session.wait("t1")
        assert here.model.total == 1
        here.says(Step(hang=True))
        await here.send("wait")
        queued = (await here.http.post("/message", json={"text": "next"}, headers={"Idempotency-Key": "two"})).json()
    for _ in range(2):
        async with bridge(tmp_path) as here:
            again = (await here.http.post("/message", json={"text": "Hi"}, headers=headers)).json()
            assert again == answers[0]
            other = await here.http.post("/message", json={"text": "Else"}, headers=headers)
            problem(other, 409, "conflict", "Idempotency-Key")
            waited = await here.http.post("/message", json={"text": "next"}, headers={"Idempotency-Key": "two"})
            assert {**waited.json(), "position": 1} == queued
            await (await here.server.host.get("session-1")).wait_until(lambda state: not state.queue)


async def test_what_waited_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Each accepted message was promised a `done`, and nobody is there to release the queue that a crash holds."""
    async with bridge(tmp_path) as here:
        here.says(Step(hang=True))
        async with here.events() as stream:
            first, second = await here.send("one"), await here.send("/diag")
            await stream.until("inbound", id=first["id"])
            last = stream.last
    async with bridge(tmp_path) as here, here.events(**{"Last-Event-ID": last}) as stream:
        events = await stream.until("done", id=second["id"])
        outcomes = [(data["id"], data["outcome"]) for name, data in events if name == "done"]
        assert outcomes == [(first["id"], "interrupted"), (second["id"], "completed")]


async def test_every_agents_question_is_shown_and_answered_here(here: Bridge) -> None:
    async def play(message: Message, turn: Turn) -> None:
        answer = await turn.ask("Which colour?", None)
        turn.text(f"{answer.response}: {answer.text}")

    here.server.host.agents["play"] = PlayAgent(play)
    for body, said in (({"text": "blue"}, "accept: blue"), ({"response": "decline"}, "decline: ")):
        async with here.events() as stream:
            sent = await here.send("ask me", agent="play")
            asked = (await stream.until("questionRequest"))[-1][1]
            ident = {"id": sent["id"], "sessionId": sent["sessionId"], "questionId": asked["questionId"]}
            assert asked == {**ident, "text": "Which colour?"}
            empty = {"questionId": asked["questionId"]}
            problem(await here.http.post("/answer", json=empty), 400, "bad_request", "text")
            assert (await here.http.post("/answer", json={**empty, **body})).json() == {"ok": True}
            events = await stream.until("done")
        assert events[0] == ("questionAnswer", {**ident, "response": said.partition(":")[0], "by": "token:owner"})
        assert [data["fragment"] for name, data in events if name == "fragment"] == [said]
        late = await here.http.post("/answer", json={**empty, **body})
        problem(late, 409, "already_answered")
    problem(await here.http.post("/answer", json={"questionId": "session-1.q99", "text": "x"}), 404, "not_found")
    shown = (await here.http.get(f"/sessions/{sent['sessionId']}")).json()["messages"]
    assert [item["response"] for item in shown if item["type"] == "question"] == ["accept", "decline"]


async def test_slash_commands(here: Bridge) -> None:
    async with here.events() as stream:
        await here.send("/files")
        assert "Nothing was changed" in (await stream.until("fragment"))[-1][1]["fragment"]
        await here.send("/run echo hello > made.txt; cat made.txt")
        asked = (await stream.until("approvalRequest"))[-1][1]
        assert asked["command"] == "echo hello > made.txt; cat made.txt"
        await here.http.post("/approval", json={"approvalId": asked["approvalId"], "approved": True})
        assert "hello" in (await stream.until("fragment"))[-1][1]["fragment"]
        await here.send("/files")
        assert "added made.txt" in (await stream.until("fragment"))[-1][1]["fragment"]
        await here.send("/diag")
        told = (await stream.until("fragment"))[-1][1]["fragment"]
        assert all(word in told for word in (str(here.project), "Allowed roots: '*'", "made.txt", "scripted"))
        await stream.until("done")
        cleared = await here.send("/clear")
        assert cleared["id"] == "session-2.t1"
        await stream.until("done", id=cleared["id"])
        here.says(ends("Goal reached."))
        await here.send("/agent reach it")
        events = await stream.until("fragment")
        assert events[0] == ("inbound", {**events[0][1], "text": "/agent reach it"})
        assert events[-1][1]["fragment"].strip() == "Goal reached."
        assert here.model.requests[-1].request.prompt == "reach it"
        here.says(Step(say="heard {{model}}"))
        await here.send("/unknown thing")
        inbound = (await stream.until("inbound"))[-1][1]
        assert inbound["text"] == "/unknown thing"
        await stream.until("done")
    assert here.model.requests[-1].request.prompt == "/unknown thing"


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("agent: tidy up", "tidy up"),
        ("  agent:tidy up\n", "tidy up"),
        ("/agent\ttidy up", "tidy up"),
        ("Explain this:\nagent: none", None),  # it stands in the text, not at its beginning
        ("/agents tidy up", None),
        ("/Files", None),
    ],
)
async def test_what_is_a_goal(here: Bridge, text: str, goal: str | None) -> None:
    here.says(ends("Ok."))
    async with here.events() as stream:
        await here.send(text)
        await stream.until("done", outcome="completed")
    [received] = here.model.requests
    assert received.request.prompt.strip() == (goal or text).strip()
    assert ("coding agent" in received.body["messages"][0]["content"]) is (goal is not None)


async def test_the_settings_change_the_model_of_a_conversation(here: Bridge) -> None:
    async def answered_by(**more: str) -> str:
        sent = await here.send("Who?", **more)
        return str((await stream.until("done", id=sent["id"]))[-1][1]["model"])

    here.says(Step(say="I."))
    async with here.events() as stream:
        assert await answered_by() == "scripted"
        await here.set('models = ["other"]')
        assert await answered_by() == "other"
        assert await answered_by(model="scripted") == "scripted"
        assert await answered_by() == "other"
        session = await here.server.host.get("session-1")
        await session.do(c.SetModel(session=session.id, model="scripted"), "somebody")
        assert await answered_by() == "scripted"


async def test_actions_have_the_number_of_their_step(here: Bridge) -> None:
    here.says(acts({"tool": "listFiles"}), acts({"tool": "search", "pattern": "x"}), ends("Done."))
    async with here.events() as stream:
        await here.send("agent: look")
        events = await stream.until("done")
    steps = [(data["tool"], data["step"]) for name, data in events if name == "action"]
    assert steps == [("listFiles", 1), ("listFiles", 1), ("search", 2), ("search", 2)]


async def test_at_max_steps_a_person_is_asked(here: Bridge) -> None:
    here.says(*[acts({"tool": "listFiles"})] * 9)
    async with here.events() as stream:
        await here.send("agent: look", maxSteps=2)
        question = (await stream.until("questionRequest"))[-1][1]
        assert "2 steps" in question["text"]
        answered = await here.http.post("/answer", json={"questionId": question["questionId"], "response": "decline"})
        assert answered.status_code == 200
        done = (await stream.until("done"))[-1][1]
    assert done["outcome"] == "completed"


async def test_another_agent_has_a_conversation_of_its_own(here: Bridge) -> None:
    async with here.events() as stream:
        sent = await here.send("[[say:I am scripted.]]", agent="scripted")
        events = await stream.until("done")
    assert "I am scripted." in "".join(data.get("fragment", "") for _, data in events)
    assert sent["sessionId"] == await here.project_id()


async def test_strangers_and_narrow_tokens_are_kept_out(here: Bridge) -> None:
    for method, path in [("GET", "/sessions"), ("POST", "/message"), ("GET", "/events"), ("POST", "/approval")]:
        assert (await here.stranger.request(method, path, json={})).status_code == 401
    evil = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert (await here.http.get("/events", headers=evil)).status_code == 403
    assert (await here.http.post("/message", json={"text": "x"}, headers=evil)).status_code == 403


async def test_too_many_messages_are_slowed(here: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REQUESTS_PER_SECOND", 0.1)
    monkeypatch.setattr(limits, "REQUEST_BURST", 3)
    answers = [await here.http.post("/message", content=b"{") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [400, 400, 400, 429]
    assert int(answers[3].headers["retry-after"]) >= 1
    assert (await here.http.get("/events")).status_code == 429


async def test_switched_off_an_agent_run_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "settings.toml").write_text("[agent]\nenabled = false\n")
    async with bridge(tmp_path) as here:
        problem(await here.http.post("/message", json={"text": "agent: go"}), 409, "conflict")
        sent = await here.send("hello")  # the chat goes to an agent that is ready
        assert (await here.server.host.get("session-1")).state.agent == "scripted"
        assert sent["id"] == "session-1.t1"


async def test_a_conversation_that_is_deleted_elsewhere_ends_what_ran_and_what_waited(here: Bridge) -> None:
    here.says(Step(hang=True))
    async with here.events() as stream:
        sent = [await here.send(text) for text in ("one", "two", "three")]
        await stream.until("inbound", id=sent[0]["id"])
        await here.http.delete("/v1/sessions/session-1")
        events = await stream.until("done", id=sent[2]["id"])
        outcomes = [(data["id"], data["outcome"]) for name, data in events if name == "done"]
        assert outcomes == [(each["id"], "cancelled") for each in sent]
        here.says(Step(say="Again."))
        assert (await here.send("four"))["id"] == "session-2.t1"


async def test_a_conversation_that_was_closed_elsewhere_is_begun_anew(here: Bridge) -> None:
    await here.send("one")
    await here.http.post("/v1/sessions/session-1/close", json={})
    assert (await here.send("two"))["id"] == "session-2.t1"


async def test_every_route_is_documented_with_its_scope(here: Bridge) -> None:
    text = (Path(__file__).parents[3] / "docs/reference/anywhere.md").read_text()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:3] == "| `"]
    found = {(row[0].strip("`"), row[1], row[2]) for row in cells if row[0].startswith("`/") and len(row) == 5}
    offered = {
        (route.path.replace(":path", ""), method, route.scope)
        for route in here.server.doors["anywhere"].routes
        if isinstance(route, Route)
        for method in route.methods
    }
    assert found == offered


async def test_what_a_full_disk_refuses_is_not_acknowledged(
    here: Bridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project was acknowledged with 201, and gone after the next start."""
    monkeypatch.setattr(group_commit, "PROBE_SECONDS", 0.01)
    folder, log = tmp_path / "other", here.server.host.log
    folder.mkdir()
    assert isinstance(log, SqliteLog)
    log._database._db.execute("PRAGMA query_only = ON")
    problem(await here.http.post("/sessions", json={"path": str(folder)}), 503, "log_unavailable")
    log._database._db.execute("PRAGMA query_only = OFF")
    await asyncio.wait_for(log.available(), 60)
    assert [each["path"] for each in (await here.http.get("/sessions")).json()] == [str(here.project)]
    assert (await here.http.post("/sessions", json={"path": str(folder)})).status_code == 201
