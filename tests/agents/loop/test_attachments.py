"""What is attached to a message reaches the model, or a notice says why not."""

import base64
from pathlib import Path

import pytest

from portico.agents.agent import Message
from portico.kernel.events import Json
from portico.kernel.state import TurnState
from portico.testing.model import Error, First, Step
from tests.agents.loop.conftest import Desk, texts

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+M8AAAMBAQAY3Y2wAAAAAElFTkSuQmCC"
SECRET = "an attached secret"


async def send(desk: Desk, *attachments: Json) -> TurnState:
    desk.says(Step(say="Seen."), Step(say="Seen."))
    turn = await desk.session.send(Message("Look.", list(attachments), meta={"mode": "chat"}), by="test")
    return await desk.session.wait(turn)


def asked(desk: Desk) -> list[Json] | str:
    content: list[Json] | str = desk.server.requests[-1].body["messages"][-1]["content"]
    return content


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "attachment",
    [
        {"type": "file", "path": "note.txt"},
        {"type": "file", "uri": "{folder}/note.txt"},
        {"data": encoded(SECRET), "contentType": "text/plain", "label": "note.txt"},
        {"data": encoded(SECRET), "label": "note.txt"},
        {"text": SECRET, "label": "note.txt"},
        {"modelRepresentation": SECRET, "displayName": "note.txt"},
    ],
)
async def test_text_goes_to_the_model_as_text(desk: Desk, attachment: Json) -> None:
    (desk.project / "note.txt").write_text(SECRET)
    given = {key: value.replace("{folder}", desk.project.as_uri()) for key, value in attachment.items()}
    turn = await send(desk, given)
    assert asked(desk) == f"Look.\n\n=== attached: note.txt\n{SECRET}"
    assert texts(turn, "notice") == ""


@pytest.mark.parametrize("by", ["data", "path"])
async def test_a_picture_goes_to_the_model_as_a_picture(desk: Desk, by: str) -> None:
    (desk.project / "dot.png").write_bytes(base64.b64decode(PIXEL))
    given = {"data": PIXEL, "contentType": "image/png", "label": "dot"} if by == "data" else {"path": "dot.png"}
    turn = await send(desk, given)
    shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    assert asked(desk) == [{"type": "text", "text": "Look."}, shown]
    assert texts(turn, "notice") == ""


async def test_a_model_that_cannot_see_is_asked_again_without(desk: Desk) -> None:
    refusal = Step(error=Error(400, "image input is not supported - hint: mmproj"))
    desk.says(Step(say="Blind.", first=First("blind", 1, refusal)))
    picture = {"data": PIXEL, "contentType": "image/png", "label": "dot"}
    turn = await desk.session.send(Message("Look.", [picture], meta={"mode": "chat"}), by="test")
    ended = await desk.session.wait(turn)
    assert (ended.outcome, texts(ended)) == ("completed", "Blind."), ended.error
    assert texts(ended, "notice") == "alpha does not take pictures; they are left out."
    assert asked(desk) == "Look."


@pytest.mark.parametrize(
    ("attachment", "reason"),
    [
        ({"path": "/etc/hostname"}, "outside"),
        ({"path": "../secret.txt"}, "outside"),
        ({"path": "missing.txt"}, "missing.txt"),
        ({"path": "a.bin"}, "no text"),
        ({"data": "!!", "label": "x"}, "not base64"),
        ({"data": "AAEC/w==", "label": "x", "contentType": "application/zip"}, "no text"),
        ({"uri": "https://example.com/x.txt"}, "neither data nor a path"),
    ],
)
async def test_what_is_left_out_is_told(desk: Desk, tmp_path: Path, attachment: Json, reason: str) -> None:
    (tmp_path / "secret.txt").write_text("not yours")
    (desk.project / "a.bin").write_bytes(bytes(range(256)) * 10)
    turn = await send(desk, attachment)
    assert turn.outcome == "completed", turn.error
    assert asked(desk) == "Look."
    assert reason in texts(turn, "notice")


async def test_an_earlier_message_is_sent_again_with_its_attachment(desk: Desk) -> None:
    """Only its name was sent: the model forgot what it had read, and the prompt cache of the endpoint was lost."""
    await send(desk, {"text": SECRET, "label": "note.txt"})
    before = asked(desk)
    await desk.run("And now?", meta={"mode": "chat"})
    assert desk.server.requests[-1].body["messages"][1]["content"] == before
    assert SECRET in before
