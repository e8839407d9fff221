"""`readActiveDocument` and `applyActiveEdit` (seed 003): the unsaved text of the document that an editor has open."""

import base64
from typing import Any

import pytest

from portico.doors.ahp.wire import uri
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Json, WireClient

SESSION = "scripted:/s1"
CHAT = uri.default_chat(SESSION)
OPEN = "untitled:Untitled-1"
ATTACHED: Json = {"type": "resource", "uri": OPEN, "label": "Untitled-1"}


class Editor:
    """The client's side: buffers that are not on the disk."""

    def __init__(self, client: WireClient, **buffers: str) -> None:
        self.client = client
        self.buffers = {OPEN: "unsaved\n", **buffers}
        self.serves = True
        client.answer = self.answer

    def answer(self, message: Json) -> Json:
        params = message["params"]
        if message["method"] == "resourceWrite":
            self.buffers[params["uri"]] = params["data"]
            return {}
        if not self.serves or params["uri"] not in self.buffers:
            return {}
        if params["encoding"] == "base64":
            return {"data": base64.b64encode(self.buffers[params["uri"]].encode()).decode(), "encoding": "base64"}
        return {"data": self.buffers[params["uri"]], "encoding": "utf-8"}

    async def say(self, text: str, *attached: Json) -> Json:
        """The call that came of it, ended or waiting."""
        turn = f"t-{text}"
        said = {"message": {"text": text, "origin": {"kind": "user"}, "attachments": list(attached)}}
        await self.client.dispatch(CHAT, "chat/turnStarted", turnId=turn, **said)
        found: Json = await self.client.wait(lambda: self.call(turn))
        return found

    def call(self, turn: str) -> Json | None:
        state = self.client.states[CHAT]
        known = [each for each in [*state["turns"], state.get("activeTurn")] if each is not None and each["id"] == turn]
        calls = [part["toolCall"] for each in known for part in each["responseParts"] if part["kind"] == "toolCall"]
        settled = [each for each in calls if each["status"] in ("completed", "cancelled", "pending-confirmation")]
        return settled[-1] if settled else None

    async def allow(self, call: Json, approved: bool = True) -> Json:
        turn = self.client.states[CHAT]["activeTurn"]["id"]
        how: dict[str, Any] = {"confirmed": "user-action"} if approved else {"reason": "denied"}
        where = {"turnId": turn, "toolCallId": call["toolCallId"], "approved": approved, **how}
        await self.client.dispatch(CHAT, "chat/toolCallConfirmed", **where)
        await self.client.idle(CHAT)
        ended = self.call(turn)
        assert ended is not None
        return ended


@pytest.fixture
async def editor(connect: Connect) -> Editor:
    client = await connect("1.0.0")
    made = Editor(client)
    await client.create_session(SESSION)
    active = {"clientId": client.client_id, "tools": []}
    await client.act(SESSION, "session/activeClientSet", activeClient=active)
    return made


def output(call: Json) -> str:
    return "".join(each.get("text", "") for each in call.get("content", []))


async def test_the_unsaved_text_is_read_as_it_is_now(editor: Editor) -> None:
    assert output(await editor.say("peek", ATTACHED)) == f"{OPEN}\n\nunsaved\n"
    editor.buffers[OPEN] = "typed meanwhile\n"
    assert output(await editor.say("peek again")) == f"{OPEN}\n\ntyped meanwhile\n"


async def test_an_editor_that_serves_nothing_has_sent_it_along(editor: Editor) -> None:
    await editor.say("peek", ATTACHED)  # a foreign document is fetched when the message comes
    editor.serves = False
    assert output(await editor.say("peek again")) == f"{OPEN}\n\nunsaved\n"


async def test_without_a_document_the_agent_is_told_what_to_do(editor: Editor) -> None:
    call = await editor.say("peek")
    assert call["success"] is False
    assert "attach it to a message" in call["error"]["message"]


@pytest.mark.parametrize(("text", "left"), [("apply", "new text\n"), ("patch", "patched\n")])
async def test_an_edit_is_shown_approved_and_given_to_the_editor(editor: Editor, text: str, left: str) -> None:
    call = await editor.say(text, ATTACHED)
    assert call["status"] == "pending-confirmation"
    assert editor.buffers[OPEN] == "unsaved\n"
    assert (await editor.allow(call))["success"] is True
    assert editor.buffers[OPEN] == left


async def test_a_refused_edit_changes_nothing(editor: Editor) -> None:
    call = await editor.allow(await editor.say("apply", ATTACHED), approved=False)
    assert call["status"] == "cancelled"
    assert editor.buffers[OPEN] == "unsaved\n"


async def test_what_somebody_typed_meanwhile_is_not_overwritten(editor: Editor) -> None:
    call = await editor.say("apply", ATTACHED)
    editor.buffers[OPEN] = "typed meanwhile\n"
    ended = await editor.allow(call)
    assert (ended["success"], "has changed since" in ended["error"]["message"]) == (False, True)
    assert editor.buffers[OPEN] == "typed meanwhile\n"


async def test_only_sessions_with_an_editor_have_the_tools(editor: Editor, served: Served) -> None:
    names = {"readActiveDocument", "applyActiveEdit"}
    with_editor = await served.host.get(served.host.list(drafts=True)[0].id)
    assert names <= {each.name for each in with_editor.tools.specs()}
    without = await served.host.start(by="test", cwd=str(served.work))
    assert not names & {each.name for each in without.tools.specs()}
