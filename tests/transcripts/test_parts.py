"""An archive of another host: its ids become ours, nothing in it is open, and a blob is what its name says."""

import base64
import hashlib
from typing import Any

import pytest

from portico.features.transcripts.archive import FORMAT, Archive, _settle, export_archive, import_archive, rename
from portico.kernel.errors import BadRequest
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.state import Approval, CallPart, QuestionPart, TurnState
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import idle


@pytest.mark.parametrize(
    ("value", "renamed"),
    [
        ("session-1.a3", "imported.a3"),
        ("session-1.", "imported."),
        ("session-12.a3", "session-12.a3"),
        ("session-1", "session-1"),
        ("see session-1.a3", "see session-1.a3"),
        ("session-1.a3 is done", "session-1.a3 is done"),
        ("session-1." + "x" * 20, "session-1." + "x" * 20),
        ("session-1." + "x" * 19, "imported." + "x" * 19),
        (7, 7),
        (None, None),
        ({"id": "session-1.a3", "n": 1}, {"id": "imported.a3", "n": 1}),
        ([["session-1.a3"]], [["imported.a3"]]),
        ({"session-1.a3": 1}, {"session-1.a3": 1}),
    ],
    ids=repr,
)
def test_ids_of_the_other_host_become_ours(value: Any, renamed: Any) -> None:
    """A longer text is nobody's id."""
    assert rename(value, "session-1.", "imported.") == renamed


def approval(ident: str, **fields: Any) -> Approval:
    return Approval(ident, "other", "", "", 0, [], **fields)


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        (approval("session-9.a1"), False),
        (approval("session-9.a1", allowed=True), False),
        (approval("session-9.a1", answered=True, allowed=True), True),
        (approval("session-9.a1", answered=True), False),
    ],
    ids=["open", "open and said to be allowed", "allowed", "denied"],
)
def test_no_card_of_an_archive_is_open(given: Approval, allowed: bool) -> None:
    """The attack: an open card with the id of an approval of this host, and other words."""
    turn = TurnState("t", Message("hi"), "me", 0, 1, [CallPart("c", "look", approvals=[given])])
    _settle(turn)
    (part,) = turn.parts
    assert isinstance(part, CallPart)
    (settled,) = part.approvals
    assert (settled.id, settled.answered, settled.allowed) == ("imported.a1", True, allowed)


@pytest.mark.parametrize(("response", "after"), [(None, "cancel"), ("accept", "accept")])
def test_no_question_of_an_archive_is_open(response: Any, after: str) -> None:
    turn = TurnState("t", Message("hi"), "me", 0, 1, [QuestionPart("session-9.q1", "Which?", response=response)])
    _settle(turn)
    (part,) = turn.parts
    assert isinstance(part, QuestionPart)
    assert (part.id, part.response) == ("imported.q1", after)


@pytest.fixture
async def host(open_host: HostOpener) -> Host:
    return await open_host(PlayAgent(idle), PlayAgent(idle, "other"))


TURN = {"id": "t1", "message": {"text": "hi"}, "by": "me", "started": 1, "pos": 1, "outcome": "completed"}


def archive(**fields: Any) -> Archive:
    given = {"portico": FORMAT, "session": "session-9", "agent": "other", "model": "", "title": "T", "cwd": "/"}
    return Archive(**{**given, "turns": [TURN], "blobs": {}, **fields})


BLOB = b"a long output"
DIGEST = hashlib.sha256(BLOB).hexdigest()


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"portico": FORMAT + 1}, "portico", f"this Portico knows {FORMAT}"),
        ({"turns": [{"id": 7}]}, "turns", "not valid"),
        ({"turns": [{**TURN, "outcome": None}]}, "turns", "has no end"),
        ({"blobs": {DIGEST: "%"}}, "blobs", "is not base64"),
        ({"blobs": {DIGEST: base64.b64encode(b"other").decode()}}, "blobs", "is not what its name says"),
    ],
    ids=["of a newer form", "no turns", "a turn that runs", "no blob", "another blob"],
)
async def test_what_is_wrong_in_an_archive_is_said(host: Host, fields: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words) as refused:
        await import_archive(host, archive(**fields), by="me")
    assert refused.value.field == field
    assert len(host.catalogue) == 0


@pytest.mark.parametrize(
    ("agent", "of", "chosen"),
    [(None, "other", "other"), ("play", "other", "play"), (None, "nobody", "play"), ("other", "nobody", "other")],
    ids=["as it was", "another one", "one that is not here", "chosen for it"],
)
async def test_who_goes_on_with_it(host: Host, agent: str | None, of: str, chosen: str) -> None:
    session = await import_archive(host, archive(agent=of), by="me", agent=agent, cwd="/")
    assert (session.summary.agent, session.summary.title) == (chosen, "T")
    assert [turn.outcome for turn in session.state.turns] == ["completed"]


async def test_blobs_come_along_and_go_out_again(host: Host) -> None:
    call = {"part": "call", "id": "c1", "tool": "look", "done": True, "ok": True, "blob": DIGEST}
    given = archive(turns=[{**TURN, "parts": [call]}], blobs={DIGEST: base64.b64encode(BLOB).decode()})
    session = await import_archive(host, given, by="me", cwd="/")
    assert await host.log.blob(DIGEST) == BLOB
    told = await export_archive(host, session)
    assert told.blobs == given.blobs
    assert (told.portico, told.session, told.title) == (FORMAT, session.id, "T")
