"""Long arguments are shown while the model writes them."""

import asyncio
import json

import pytest

from portico.agents.agent import Message
from portico.kernel.events import ToolInput, ToolStarted
from portico.testing.model import First, ScriptedCall, Step
from tests.agents.loop.conftest import Desk, calls, texts

LONG = {"path": "src/long.py", "content": "x = 1\n" * 100}
FREE = '[agents.loop]\nprotocol = "tools"\nretries = 1\nwire = "{}"\n[agent]\nrequire_approval = "none"\n'


@pytest.mark.parametrize("wire", ["chat", "responses", "messages"])
async def test_name_and_path_are_shown_before_the_arguments_are_complete(desk: Desk, wire: str) -> None:
    """Reported: a long file looked like a hang, with the notice "Nothing heard"."""
    desk.settings(FREE.format(wire))
    desk.says(Step(calls=[ScriptedCall(name="createFile", args=LONG)], gap=1, hang=20))
    turn = await desk.session.send(Message("Write."), by="test")
    started, fed = None, ""
    async with asyncio.timeout(30):
        async for records in desk.host.log.follow(desk.session.channel):
            for record in records:
                if isinstance(record.event, ToolStarted):
                    started = record.event
                elif isinstance(record.event, ToolInput):
                    fed += record.event.text
            if len(fed) > 300:
                break
    assert started is not None
    assert (started.title, started.kind, started.meta) == ("createFile src/long.py", "edit", {"step": 1})
    assert json.dumps(LONG, separators=(",", ":")).startswith(fed)
    await desk.session.cancel(by="test")
    assert (await desk.session.wait(turn)).outcome == "cancelled"


async def test_a_call_that_was_shown_runs_once(desk: Desk) -> None:
    desk.settings(FREE.format("chat"))
    short = ScriptedCall(name="listFiles", args={})
    desk.says(Step(calls=[short, ScriptedCall(name="createFile", args=LONG)]), Step(say="Done."))
    turn = await desk.run("Write.")
    assert [(call.tool, call.ok) for call in calls(turn)] == [("listFiles", True), ("createFile", True)]
    assert json.loads(calls(turn)[1].input) == LONG
    assert (desk.project / "src/long.py").read_text() == LONG["content"]


async def test_a_call_of_an_answer_that_broke_off_is_not_part_of_the_step(desk: Desk) -> None:
    desk.settings(FREE.format("chat"))
    broken = Step(calls=[ScriptedCall(name="createFile", args=LONG)], cut=30)
    whole = Step(calls=[ScriptedCall(name="listFiles", args={})], first=First("k", 1, broken))
    desk.says(whole, Step(say="Done."))
    turn = await desk.run("Write.")
    assert [(call.tool, call.outcome) for call in calls(turn)] == [
        ("createFile", "cancelled"),
        ("listFiles", "completed"),
    ]
    assert texts(turn) == "Done."
    before = desk.server.requests[-1].body["messages"]
    await desk.run("Again.")
    assert desk.server.requests[-1].body["messages"][: len(before)] == before
