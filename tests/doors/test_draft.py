"""A draft (seed 003, `http.injectIntoChat`): the text stands in every input; nothing is sent before a person does."""

from pathlib import Path
from typing import Any

import pytest

from portico.doors.ahp.wire import uri
from portico.kernel.commands import Caller, QueueMessage
from portico.kernel.events import Message
from tests.doors.ahp.wire_client import WireClient, opened
from tests.doors.standing import Standing, problem, read_events, standing

TEXT = "Please look at the failing test."
OFFERED = {"text": TEXT, "origin": {"kind": "user"}, "_meta": {"portico.offered": True}}


async def post(here: Standing, **body: Any) -> dict[str, Any]:
    answer = await here.http.post("/message", json={"text": TEXT, "agent": "scripted", **body})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def elements(here: Standing, session: str, path: str = "history?prompts=1") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await here.http.get(f"/api/copilot/session/{session}/{path}")).json()["responses"]
    return found


async def test_a_draft_stands_in_every_input_and_nothing_is_sent(tmp_path: Path) -> None:
    async with standing(tmp_path) as here, here.http.stream("GET", "/events") as events:
        sent = await post(here, mode="draft")
        (project,) = (await here.http.get("/sessions")).json()
        assert sent == {"accepted": True, "id": "session-1.draft", "sessionId": project["id"], "draft": True}
        state = (await here.http.get("/v1/sessions/session-1")).json()
        assert (state["kept"]["draft"], state.get("turns", [])) == (OFFERED, [])
        assert await elements(here, "session-1") == [{"callback": "onDraft", "text": TEXT}]
        ((_, told),) = await read_events(events, 1)
        assert told == {"id": sent["id"], "text": TEXT, "source": "token:owner", "sessionId": project["id"]}


@pytest.mark.parametrize("version", ["0.5.1", "1.0.0"])
async def test_an_editor_shows_it_and_takes_it_away(tmp_path: Path, version: str) -> None:
    async with standing(tmp_path) as here:
        await post(here, mode="draft")
        address = f"{here.url.replace('http', 'ws')}/ahp?tkn={here.home.token()}"
        async with opened(WireClient(address, "editor", version)) as editor:
            await editor.initialize()
            (listed,) = (await editor.request("listSessions", channel=editor.root))["items"]
            chat = uri.default_chat(listed["resource"])
            await editor.subscribe(chat)
            assert editor.states[chat]["draft"] == OFFERED
            await editor.act(chat, "chat/draftChanged")
            assert "draft" not in editor.states[chat]
            await post(here, mode="draft")
            await editor.wait(lambda: editor.states[chat].get("draft") == OFFERED)
        assert (await elements(here, "session-1"))[-2:] == [
            {"callback": "onDraft", "text": ""},
            {"callback": "onDraft", "text": TEXT},
        ]


async def test_the_setting_makes_a_draft_of_every_message(tmp_path: Path) -> None:
    async with standing(tmp_path, flags={"http.inject_into_chat": True}) as here:
        assert (await post(here))["draft"] is True
        assert (await here.http.get("/v1/sessions/session-1")).json().get("turns", []) == []


async def test_a_page_or_a_script_puts_a_draft_and_takes_it_away(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        path = f"/v1/sessions/{await here.start()}/draft"
        assert (await here.http.put(path, json={"text": TEXT})).json() == {"text": TEXT}
        assert (await here.http.put(path, json={"text": ""})).json() == {"text": ""}
        assert "draft" not in (await here.http.get(path.removesuffix("/draft"))).json().get("kept", {})
        problem(await here.http.put(path, json={}), 400, "bad_request", "text")
        problem(await here.http.put("/v1/sessions/none/draft", json={"text": "x"}), 404, "not_found")
        problem(await here.http.post("/message", json={"text": " ", "mode": "draft"}), 400, "bad_request", "text")
        await here.http.post(f"{path.removesuffix('/draft')}/close")
        problem(await here.http.put(path, json={"text": "x"}), 409, "session_closed")


@pytest.mark.parametrize(
    ("drafts", "left"),
    [
        ([("mine", True), (TEXT, False)], f"mine\n{TEXT}"),
        ([("mine", True), ("first", False), (TEXT, False)], f"mine\n{TEXT}"),
        ([(f"mine, {TEXT}", True), (TEXT, False)], f"mine, {TEXT}"),
        ([("first", False), (TEXT, False)], TEXT),
        ([("first", False), ("first, edited", True), (TEXT, False)], f"first, edited\n{TEXT}"),
        ([(TEXT, False), ("mine", True)], "mine"),
        ([("mine", True), ("", False)], ""),
    ],
)
async def test_an_offer_follows_what_somebody_has_typed(
    tmp_path: Path, drafts: list[tuple[str, bool]], left: str
) -> None:
    """A text that a program offered took the place of the words that somebody was writing."""
    async with standing(tmp_path) as here:
        session = f"/v1/sessions/{await here.start()}"
        for text, typed in drafts:
            answer = await here.http.put(f"{session}/draft", json={"text": text, "typed": typed})
        assert answer.json() == {"text": left}
        assert (await here.http.get(session)).json().get("kept", {}).get("draft", {}).get("text", "") == left


@pytest.mark.parametrize(
    ("sent", "left"), [(TEXT, ""), (f" {TEXT}\n", ""), (f"{TEXT} Now.", TEXT), ("Something else", TEXT)]
)
@pytest.mark.parametrize("way", ["begins", "waits", "is queued"])
async def test_a_draft_goes_with_its_message(tmp_path: Path, way: str, sent: str, left: str) -> None:
    """Where the client that sent it knows no drafts, the text stood in all inputs again, to be sent a second time."""
    async with standing(tmp_path) as here:
        session = f"/v1/sessions/{(ident := await here.start())}"
        if way != "begins":
            await here.http.post(f"{session}/messages", json={"text": "[[hang]]"})
        await here.http.put(f"{session}/draft", json={"text": TEXT})
        if way == "is queued":
            await here.server.host.do(QueueMessage(session=ident, message=Message(sent)), Caller.inside("tester"))
        else:
            assert (await here.http.post(f"{session}/messages", json={"text": sent})).status_code == 202
        assert (await here.http.get(session)).json().get("kept", {}).get("draft", {}).get("text", "") == left
