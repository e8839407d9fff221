"""Approvals, questions and grants over REST."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from portico.client import Client
from portico.server.identity import new_token
from tests.doors.standing import Standing, problem


async def _event(shared: Standing, session: str, kind: str) -> dict[str, Any]:
    async with (
        asyncio.timeout(30),
        Client(shared.url, shared.home.token()) as client,
        aclosing(client.session(session).follow()) as records,
    ):
        async for record in records:
            if f'"type":"{kind}"'.encode() in bytes(record.raw):
                found: dict[str, Any] = json.loads(bytes(record.raw))
                return found
    raise AssertionError


async def _asking(shared: Standing, folder: Path, text: str, kind: str) -> tuple[str, dict[str, Any]]:
    session = await shared.start(agent="demo", cwd=str(folder))
    await shared.http.post(f"/v1/sessions/{session}/messages", json={"text": text})
    return session, await _event(shared, session, kind)


@pytest.mark.parametrize("allow", [True, False])
async def test_the_first_valid_answer_wins(shared: Standing, tmp_path: Path, allow: bool) -> None:
    session, asked = await _asking(shared, tmp_path, "write something", "approval.asked")
    path = f"/v1/approvals/{asked['approval']}"
    problem(await shared.http.post(path, json={}), 400, "bad_request", "allow")
    problem(await shared.http.post(path, json={"allow": "yes"}), 400, "bad_request", "allow")
    problem(await shared.http.post(path, json={"option": "nosuch"}), 400, "bad_request", "option")
    problem(await shared.http.post(path, json={"allow": True, "option": "deny"}), 400, "bad_request", "option")
    problem(await shared.http.post(path, json={"allow": True, "input": "{}"}), 400, "bad_request", "input")
    answers = await asyncio.gather(*(shared.http.post(path, json={"allow": allow}) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    won = next(answer.json() for answer in answers if answer.status_code == 200)
    assert won == {"approval": asked["approval"], "allowed": allow, "by": "token:owner"}
    problem(await shared.http.post(path, json={"allow": not allow}), 409, "already_answered")
    await _event(shared, session, "turn.ended")
    assert (tmp_path / "portico-demo.md").exists() is allow
    answered = await _event(shared, session, "approval.answered")
    assert (answered.get("allowed", False), answered["by"]) == (allow, "token:owner")  # written down, with the name


async def test_answering_needs_the_approve_scope(shared: Standing, tmp_path: Path) -> None:
    session, asked = await _asking(shared, tmp_path, "write something", "approval.asked")
    async with shared.client(new_token(shared.home, f"driver-{session}", ["read", "drive"])) as driver:
        problem(await driver.post(f"/v1/approvals/{asked['approval']}", json={"allow": True}), 403, "forbidden")
    await shared.http.post(f"/v1/sessions/{session}/cancel")
    problem(await shared.http.post(f"/v1/approvals/{asked['approval']}", json={"allow": True}), 409, "already_answered")
    assert not (tmp_path / "portico-demo.md").exists()


async def test_settings_that_answer_in_advance_need_the_approve_scope(shared: Standing, tmp_path: Path) -> None:
    """A token that could drive but not approve started sessions with `approvals: allow`, and nothing asked any more."""
    session = await shared.start(cwd=str(tmp_path), agent="demo")
    async with shared.client(new_token(shared.home, f"driver-{session}", ["read", "drive"])) as driver:
        for config in (
            {"approvals": "allow"},
            {"autoApprove": "autoApprove"},
            {"permissions": {"allow": ["write"]}},
            {"globalAutoApproveEnabled": True},
            {"editAutoApprovePatterns": {"**": True}},
            {"terminalAutoApproveRules": {"rm": True}},
        ):
            body = {"agent": "demo", "cwd": str(tmp_path), "config": config}
            field = f"config.{next(iter(config))}"
            problem(await driver.post("/v1/sessions", json=body), 403, "forbidden", field)
            change = {"title": "mine", "config": config}
            problem(await driver.patch(f"/v1/sessions/{session}", json=change), 403, "forbidden", field)
        assert (await driver.patch(f"/v1/sessions/{session}", json={"config": {"own": 1}})).status_code == 200
    state = (await shared.http.get(f"/v1/sessions/{session}")).json()
    assert (state.get("title", ""), state["config"]) == ("", {"own": 1})


async def test_an_answer_for_the_whole_session_becomes_a_grant(shared: Standing, tmp_path: Path) -> None:
    session, asked = await _asking(shared, tmp_path, "write something", "approval.asked")
    await shared.http.post(f"/v1/approvals/{asked['approval']}", json={"option": "allow-session"})
    grants = (await shared.http.get("/v1/grants")).json()["grants"]
    [grant] = [each for each in grants if each.get("session") == session]
    assert grant["allow"] is True
    assert (await shared.http.delete(f"/v1/grants/{grant['id']}")).status_code == 204
    problem(await shared.http.delete(f"/v1/grants/{grant['id']}"), 404, "not_found")


async def test_a_question_is_drafted_and_answered_once(shared: Standing, tmp_path: Path) -> None:
    session, asked = await _asking(shared, tmp_path, "ask me", "question.asked")
    path = f"/v1/questions/{asked['question']}"
    problem(await shared.http.post(path, json={"response": "maybe"}), 400, "bad_request", "response")
    problem(await shared.http.patch(path, json={}), 400, "bad_request", "field")
    assert (await shared.http.patch(path, json={"field": "answer", "answer": {"value": "gr"}})).status_code == 200
    answered = await shared.http.post(path, json={"text": "green"})
    assert answered.json() == {"question": asked["question"], "response": "accept"}
    problem(await shared.http.post(path, json={"text": "red"}), 409, "already_answered")
    ended = await _event(shared, session, "question.answered")
    assert (ended["answers"], ended["by"]) == ({"answer": "green"}, "token:owner")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "agent"),
        ({"agent": "demo", "tool": "*"}, "allow"),
        ({"agent": "demo", "tool": "*", "allow": True}, "session"),
        ({"agent": "demo", "tool": "*", "allow": True, "session": "s", "project": "p"}, "session"),
        ({"agent": "demo", "tool": "*", "allow": True, "session": "s", "seconds": 0}, "seconds"),
        ({"agent": "demo", "tool": "*", "allow": True, "session": "s", "seconds": 1e12}, "seconds"),
        ({"agent": "demo", "tool": "*", "allow": 1, "session": "s"}, "allow"),
    ],
)
async def test_a_wrong_grant_is_refused(shared: Standing, body: dict[str, object], field: str) -> None:
    problem(await shared.http.post("/v1/grants", json=body), 400, "bad_request", field)


async def test_a_grant_in_advance_decides_without_asking(shared: Standing, tmp_path: Path) -> None:
    grant = {"agent": "demo", "tool": "*", "allow": False, "project": str(tmp_path)}
    made = await shared.http.post("/v1/grants", json=grant)
    assert made.status_code == 201
    session = await shared.start(agent="demo", cwd=str(tmp_path))
    await shared.http.post(f"/v1/sessions/{session}/messages", json={"text": "write something"})
    decided = await _event(shared, session, "tool.decided")
    assert (decided["allowed"], made.json()["id"] in decided["rule"]) == (False, True)


async def test_a_grant_that_has_ended_is_not_shown_any_more(shared: Standing, tmp_path: Path) -> None:
    grant = {"agent": "demo", "tool": "*", "allow": True, "project": str(tmp_path)}
    long = (await shared.http.post("/v1/grants", json=grant)).json()["id"]
    short = (await shared.http.post("/v1/grants", json={**grant, "seconds": 0.0001})).json()["id"]
    listed = [each["id"] for each in (await shared.http.get("/v1/grants")).json()["grants"]]
    assert (short in listed, long in listed) == (False, True)
