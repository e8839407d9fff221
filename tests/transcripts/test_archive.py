"""A session that moves to another host: whole, under ids of its own, and without secrets where that is wanted."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico import limits
from portico.client import Client
from portico.redaction import RULES, Redaction, redacted
from tests.doors.standing import problem, standing

SECRETS = {
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
    "model key": "sk-proj-abcdefghijklmnop1234",
    "GitHub token": "ghp_abcdefghijklmnopqrstuvwx",
    "AWS key": "AKIAABCDEFGHIJKLMNOP",
    "Google key": "AIzaSyA-abcdefghijklmnopqrstuvwxyz0123",
    "Slack token": "xoxb-1234567890-abc",
    "JSON Web Token": "eyJhbGciOiJI.eyJzdWIiOiIx.abcdefghijk",
    "bearer token": "Authorization: Bearer abcdefghijklmnop1234",
    "password in an address": "https://ada:hunter2@example.com/x",
    "secret": "password=hunter2hunter2",
}


async def test_a_session_moves_with_its_blobs_and_goes_on(tmp_path: Path) -> None:
    async with standing(tmp_path / "one") as here:
        session = await here.start(cwd=str(tmp_path), title="Moving")
        await here.say(session, "[[tool:write_file|x]] [[say:first words]]")
        await here.say(session, "[[say:second words]]")
        digest = await here.server.host.log.put_blob(b"a long output")
        async with Client.local(here.home.path) as client:
            archive = await client.session(session).archive()
    call = next(part for part in archive["turns"][0]["parts"] if part["part"] == "call")
    call |= {"blob": digest, "approvals": [_approval(f"{session}.a1")]}
    archive["blobs"] = {digest: base64.b64encode(b"a long output").decode()}
    (tmp_path / "two").mkdir()
    async with standing(tmp_path / "two") as there:
        other = await there.start(cwd=str(tmp_path))
        assert other == session, "the old id means another session here"
        async with Client.local(there.home.path) as client:
            ident = await client.import_session(archive, cwd=str(tmp_path))
        assert ident != session
        state = (await there.http.get(f"/v1/sessions/{ident}")).json()
        assert (state["title"], [turn["outcome"] for turn in state["turns"]]) == ("Moving", ["completed"] * 2)
        assert state["turns"][1]["parts"][-1]["text"] == "second words"
        call = next(part for part in state["turns"][0]["parts"] if part["part"] == "call")
        assert (call["approvals"][0]["id"], call["blob"]) == ("imported.a1", digest)
        assert (await there.http.get(f"/v1/blobs/{digest}")).content == b"a long output"
        assert (await there.say(ident, "[[say:third]]"))["turns"][-1]["parts"][-1]["text"] == "third"


def _approval(ident: str) -> dict[str, Any]:
    return {"id": ident, "kind": "write", "title": "", "input": "", "expires": 0, "options": [], "answered": True}


GOOD: dict[str, Any] = {"portico": 1, "session": "s", "agent": "scripted", "turns": [], "blobs": {}}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"portico": 2}, "portico"),
        ({"turns": [{"id": 1}]}, "turns"),
        ({"turns": [{"id": "t", "message": {"text": "x"}, "by": "a", "started": 0}]}, "turns"),
        ({"blobs": {"0" * 64: "AAAA"}}, "blobs"),
        ({"blobs": {hashlib.sha256(b"x").hexdigest(): "not base64!"}}, "blobs"),
    ],
)
async def test_what_is_no_archive_is_refused(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    async with standing(tmp_path) as here:
        answer = await here.http.post("/v1/sessions/import", json={"archive": {**GOOD, **change}})
        problem(answer, 400, "bad_request", field)
        assert (await here.http.get("/v1/sessions")).json()["total"] == 0


TURN: dict[str, Any] = {
    "id": "t1",
    "message": {"text": "x"},
    "by": "token:eve",
    "pos": 1,
    "started": 1,
    "outcome": "completed",
}


@pytest.mark.parametrize(
    "turns",
    [
        [TURN, TURN],
        *([{**TURN, "usage": {name: -1}}] for name in ("input", "output", "cached", "cost")),
        [TURN, {**TURN, "id": "t2", "usage": {"input": 5, "cost": -0.01}}],
    ],
)
async def test_a_hostile_turn_is_refused(tmp_path: Path, turns: list[Any]) -> None:
    """Bug: an import accepted equal ids and negative usage."""
    async with standing(tmp_path) as here:
        answer = await here.http.post("/v1/sessions/import", json={"archive": {**GOOD, "turns": turns}})
        problem(answer, 400, "bad_request", "turns")


@pytest.mark.parametrize("by", ["person:ann", "token:owner", "task:task-1", "run:run-1", "imported:person:ann"])
async def test_an_archive_speaks_for_nobody_here_and_fits_in_lists(tmp_path: Path, by: str) -> None:
    """Bug: an import accepted `by: person:...` and titles of 1 MB."""
    approval = {**_approval("a1"), "by": by}
    call = {"part": "call", "id": "c", "tool": "t" * 10**6, "title": "x" * 10**6, "approvals": [approval]}
    question = {"part": "question", "id": "c", "text": "Go on?", "by": by}
    turn = {**TURN, "by": by, "stopped_by": by, "parts": [call, question]}
    async with standing(tmp_path) as here:
        body = {"archive": {**GOOD, "title": "y" * 10**6, "turns": [turn]}}
        made = (await here.http.post("/v1/sessions/import", json=body)).json()
        [found] = (await here.http.get(f"/v1/sessions/{made['id']}")).json()["turns"]
        [call, question] = found["parts"]
        names = {found["by"], found["stopped_by"], call["approvals"][0]["by"], question["by"]}
        assert names == {"imported:" + by.removeprefix("imported:")}
        assert call["id"] != question["id"]
        assert (len(made["title"]), len(call["title"]), len(call["tool"])) == (200, 2000, 200)


async def test_an_import_with_an_id_is_done_once(tmp_path: Path) -> None:
    """Asked again it made a second session."""
    async with standing(tmp_path) as here:
        headers = {"Idempotency-Key": "one"}
        answers = [
            await here.http.post("/v1/sessions/import", json={"archive": {**GOOD, "title": title}}, headers=headers)
            for title in ("a", "a", "b")
        ]
        assert answers[0].json()["id"] == answers[1].json()["id"]
        problem(answers[2], 409, "conflict", "id")
        assert (await here.http.get("/v1/sessions")).json()["total"] == 1


async def test_an_archive_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ARCHIVE_BYTES", 1000)
    async with standing(tmp_path) as here:
        answer = await here.http.post("/v1/sessions/import", json={"archive": {**GOOD, "title": "x" * 1000}})
        problem(answer, 413, "too_large", "body")


@pytest.mark.parametrize("kind", RULES)
def test_a_secret_is_taken_out_wherever_it_is(kind: str) -> None:
    secret = SECRETS[kind]
    places = {"text": f"before {secret} after", "deep": [{"list": [secret]}], secret: 1}
    redaction = Redaction()
    text = msgspec.json.encode(redaction.document(places)).decode()
    hidden = secret.split()[-1] if kind != "private key" else "MIIabc"
    hidden = {"password in an address": "hunter2", "secret": "hunter2"}.get(kind, hidden)
    assert hidden not in text
    assert f"[redacted: {kind}]" in text
    assert redaction.count >= 3


def test_what_is_no_secret_stays() -> None:
    text = "sk-short, a token= of thanks, bearer of news, https://example.com/a:b@c, commit 0123456789abcdef"
    assert Redaction().text(text) == text


def test_blobs_are_redacted_and_still_found() -> None:
    data = b"the key is sk-proj-abcdefghijklmnop1234"
    digest = hashlib.sha256(data).hexdigest()
    binary = hashlib.sha256(b"\xff\xfe").hexdigest()
    blobs = {digest: base64.b64encode(data).decode(), binary: base64.b64encode(b"\xff\xfe").decode()}
    archive = {**GOOD, "turns": [{"parts": [{"blob": digest}, {"blob": binary}]}], "blobs": blobs}
    found = redacted(archive, Redaction(["ada"]))
    (first, second) = (each["blob"] for each in found["turns"][0]["parts"])
    assert base64.b64decode(found["blobs"][first]) == b"the key is [redacted: model key]"
    assert base64.b64decode(found["blobs"][second]) == b"[redacted: not a text]"
    assert hashlib.sha256(base64.b64decode(found["blobs"][first])).hexdigest() == first


async def test_no_card_of_an_archive_is_open_or_answers_for_another(tmp_path: Path) -> None:
    """An archive could show a card "List files" under the id of an approval that waits in a session of this host."""
    asked = [{**_approval("session-1.a3"), "answered": False, "allowed": True, "command": "ls"}, _approval("x")]
    question = {"part": "question", "id": "session-1.q4", "text": "Go on?"}
    call = {"part": "call", "id": "c1", "tool": "shell", "approvals": asked}
    turn = {"id": "t1", "message": {"text": "x"}, "by": "eve", "pos": 1, "started": 1, "outcome": "completed"}
    archive = {"portico": 1, "session": "other", "agent": "scripted", "turns": [{**turn, "parts": [call, question]}]}
    async with standing(tmp_path) as here:
        await here.start(cwd=str(tmp_path))
        command = {"command": "session.import", "arguments": {"archive": archive}}
        made = await here.http.post("/v1/commands", json=command)
        assert made.status_code == 200, made.text
        state = (await here.http.get(f"/v1/sessions/{made.json()['id']}")).json()
        shown, asking = state["turns"][0]["parts"]
        cards = [(each["id"], each["answered"], each.get("allowed", False)) for each in shown["approvals"]]
        assert cards == [("imported.a3", True, False), ("imported.x", True, False)]
        assert (asking["id"], asking["response"]) == ("imported.q4", "cancel")
