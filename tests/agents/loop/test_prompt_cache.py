"""Requests of a session only grow: the endpoint's prompt cache stays valid within a turn and across turns."""

import msgspec
import pytest

from portico.agents.loop.wires import chat
from portico.agents.loop.wires.request import CompletionRequest
from portico.kernel.events import Json, Message
from portico.testing.model import ScriptedCall, Step
from tests.agents.loop.conftest import Desk, calls
from tests.agents.loop.vendor import call, stream, vendor

SHARED = 0.95
"""The share of the last request that the next one has to begin with. It was 0.01."""


def shared(first: Json, second: Json) -> float:
    before, after = (msgspec.json.encode(body["messages"]) for body in (first, second))
    same = next((at for at, (x, y) in enumerate(zip(before, after, strict=False)) if x != y), len(before))
    return same / (len(before) - 1)  # the last is the bracket that closes the list


@pytest.mark.parametrize("protocol", ["tools", "text", "schema"])
async def test_the_next_turn_begins_with_the_last_request(desk: Desk, protocol: str) -> None:
    (desk.project / "a.py").write_text("x = 1\n" * 200)
    written = [
        '{"actions": [{"tool": "readFiles", "files": ["a.py"]}], "commentary": "Reading.", "done": false}',
        '{"finalSummary": "It has x.", "done": true}',
    ]
    native = [
        stream({"reasoning_content": "Hm."}, call("readFiles", '{"files":["a.py"]}')),
        stream({"content": "It has x."}),
    ]
    answers = native if protocol == "tools" else [stream({"content": each}) for each in written]
    async with vendor(
        desk, *answers, *answers, settings=f'[agents.loop]\nretries = 0\nprotocol = "{protocol}"\n'
    ) as endpoint:
        await desk.run("What is in a.py?")
        turn = await desk.run("And now?")
        assert (turn.outcome, len(calls(turn))) == ("completed", 1), turn.error
        await desk.open()
        desk.session = await desk.host.get(desk.session.id)
        await desk.run("After a restart?")
    shares = [shared(*pair) for pair in zip(endpoint.bodies, endpoint.bodies[1:], strict=False)]
    assert all(each >= SHARED for each in shares), shares
    assert len({msgspec.json.encode(body.get("tools")) for body in endpoint.bodies}) == 1


async def test_a_turn_that_was_steered_and_attached_to_stays_the_same(desk: Desk) -> None:
    """What is in no message of a person is stored with the step: attachments, steering, corrections."""
    desk.settings('[agents.loop]\nprotocol = "tools"\n')
    write = ScriptedCall(name="createFile", args={"path": "a", "content": "x"})
    desk.says(Step(say="Writing.", calls=[write]), Step(say=""), Step(say="Done."))
    note = {"text": "a note " * 50, "label": "note.txt"}
    turn = await desk.session.send(Message("Go.", attachments=[note]), by="test")
    state = await desk.session.wait_until(lambda state: state.status == "waiting")
    assert await desk.session.queue.steer(Message("Be quick."), by="test")
    assert state.active is not None
    approval = calls(state.active)[0].approval
    assert approval is not None
    await desk.session.approvals.answer(approval.id, by="test", allow=True)
    await desk.session.wait(turn)
    before = desk.server.requests[-1].body
    await desk.run("Again.")
    assert shared(before, desk.server.requests[-1].body) == 1.0


def test_claude_behind_a_gateway_gets_cache_marks() -> None:
    sent: list[Json] = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
        {"role": "assistant", "content": "a"},
    ]
    mark = {"cache_control": {"type": "ephemeral"}}
    body = chat.body(CompletionRequest("anthropic/claude-sonnet-4.5", sent))
    assert body["messages"] == [
        {"role": "system", "content": [{"type": "text", "text": "s", **mark}]},
        {"role": "user", "content": [{"type": "text", "text": "u", **mark}]},
        {"role": "assistant", "content": "a"},
    ]
    assert chat.body(CompletionRequest("gpt-5", sent))["messages"] == sent


@pytest.mark.parametrize(("cache", "sent"), [("portico-s1", "portico-s1"), ("", None)])
def test_the_cache_key_is_sent_where_it_exists(cache: str, sent: str | None) -> None:
    assert chat.body(CompletionRequest("m", [], cache=cache)).get("prompt_cache_key") == sent
