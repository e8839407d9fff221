"""The built-in agent against the scripted model: whole turns in a real host."""

import asyncio

import pytest

from portico.agents.agent import Message
from portico.kernel.events import PartDelta
from portico.testing.model import First, Script, ScriptedCall, ScriptedUsage, Step
from tests.agents.loop.conftest import Desk, acts, calls, ends, texts


async def test_a_chat_streams_the_answer_without_tools(desk: Desk) -> None:
    desk.says(Step(say="Hello from {{model}}.", reason="thinking", usage=ScriptedUsage(input=7, output=3, cached=2)))
    turn = await desk.run("Hi", meta={"mode": "chat"})
    assert (turn.outcome, texts(turn), texts(turn, "reasoning")) == ("completed", "Hello from alpha.", "thinking")
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.output, turn.usage.cached, turn.usage.model) == (7, 3, 2, "alpha")
    body = desk.server.requests[0].body
    assert "tools" not in body
    assert desk.server.requests[0].headers["authorization"] == "Bearer canary-key"


async def test_a_run_looks_creates_edits_runs_and_ends(desk: Desk) -> None:
    desk.says(
        acts({"tool": "listFiles"}, commentary="Looking."),
        acts({"tool": "createFile", "path": "docs/a.md", "content": "one\n"}),
        acts({"tool": "editFile", "path": "docs/a.md", "diff": "@@ -1 +1 @@\n-one\n+two\n"}),
        acts({"tool": "runCommand", "command": "cat docs/a.md"}),
        ends("All done."),
    )
    turn = await desk.run()
    assert turn.outcome == "completed", turn.error
    assert [(call.tool, call.ok) for call in calls(turn)] == [
        ("listFiles", True),
        ("createFile", True),
        ("editFile", True),
        ("runCommand", True),
    ]
    assert "Looking." in texts(turn)
    assert texts(turn).endswith("All done.")
    assert (desk.project / "docs/a.md").read_text() == "two\n"
    assert "two" in calls(turn)[3].output
    diffs = [call.approvals[0].diff for call in calls(turn) if call.approvals]
    assert diffs[0] == "--- /dev/null\n+++ b/docs/a.md\n@@ -0,0 +1 @@\n+one\n"
    assert diffs[1] is not None
    assert "-one\n+two\n" in diffs[1]
    assert calls(turn)[3].approvals[0].command == "cat docs/a.md"


async def test_results_are_fed_back_to_the_model(desk: Desk) -> None:
    (desk.project / "a.txt").write_text("needle\n")
    desk.says(acts({"tool": "readFiles", "files": ["a.txt"]}, {"tool": "search", "pattern": "needle"}), ends())
    await desk.run()
    last = desk.server.requests[1].body["messages"][-1]
    assert last["role"] == "user"
    assert "=== a.txt\nneedle" in last["content"]
    assert "a.txt:1: needle" in last["content"]


async def test_native_tool_calls(desk: Desk) -> None:
    desk.settings('[agents.loop]\nprotocol = "tools"\n')
    (desk.project / "a.txt").write_text("x\n")
    desk.says(
        Step(
            say="I look.",
            calls=[ScriptedCall(name="readFiles", args={"files": ["a.txt"]}), ScriptedCall(name="listFiles")],
        ),
        Step(calls=[ScriptedCall(name="finish", args={"finalSummary": "Seen."})]),
    )
    turn = await desk.run()
    assert turn.outcome == "completed", turn.error
    assert [call.tool for call in calls(turn)] == ["readFiles", "listFiles"]
    assert texts(turn) == "I look.Seen."
    second = desk.server.requests[1].body["messages"]
    assert [message["role"] for message in second[-3:]] == ["assistant", "tool", "tool"]


@pytest.mark.parametrize("position", [0, 1, 2])
async def test_parallel_calls_all_run_and_a_finish_among_them_is_not_final(desk: Desk, position: int) -> None:
    """Reported: `finish` in the same reply dropped the actions beside it, and the turn was reported as completed."""
    desk.settings('[agents.loop]\nprotocol = "tools"\n')
    both = [ScriptedCall(name="createFile", args={"path": name, "content": name}) for name in ("a", "b")]
    both.insert(position, ScriptedCall(name="finish", args={"finalSummary": "Too early."}))
    desk.says(Step(calls=both), Step(calls=[ScriptedCall(name="finish", args={"finalSummary": "Now it is."})]))
    turn = await desk.run()
    assert turn.outcome == "completed", turn.error
    assert [(call.tool, call.ok) for call in calls(turn)] == [("createFile", True), ("createFile", True)]
    assert [(desk.project / name).read_text() for name in ("a", "b")] == ["a", "b"]
    assert texts(turn) == "Now it is."
    *_, asked = [each for each in desk.server.requests[1].body["messages"] if each["role"] == "assistant"]
    results = [each for each in desk.server.requests[1].body["messages"] if each["role"] == "tool"]
    assert [each["tool_call_id"] for each in results] == [each["id"] for each in asked["tool_calls"]]
    assert results[position]["content"].startswith("Not finished")


@pytest.mark.parametrize(
    "answer",
    [
        "It is 42.",
        'Like this:\n```json\n{"tool": "ruff"}\n```\nDone.',
        '{"line-length": 120}',
        "[a link](http://x)\n\nYes.",
    ],
)
async def test_with_native_tools_a_text_without_a_call_is_the_answer(desk: Desk, answer: str) -> None:
    """Reported: "the answer is no step", twice, and the turn failed."""
    desk.settings('[agents.loop]\nprotocol = "tools"\n')
    desk.says(Step(say=answer))
    turn = await desk.run("What is it?")
    assert (turn.outcome, texts(turn), texts(turn, "notice")) == ("completed", answer, ""), turn.error
    assert desk.server.total == 1


@pytest.mark.parametrize(
    "written",
    [
        '{"name": "listFiles", "arguments": {}}',
        '<tool_call>\n{"name": "listFiles", "arguments": {}}\n</tool_call>',
        '```json\n[{"name": "listFiles", "arguments": {}}]\n```',
        '{"actions": [{"tool": "listFiles"}], "done": false}',
    ],
)
async def test_a_call_that_a_model_writes_as_text_is_a_call(desk: Desk, written: str) -> None:
    desk.settings('[agents.loop]\nprotocol = "tools"\n')
    desk.says(Step(say=[written]), Step(say="Done."))
    turn = await desk.run()
    assert [(call.tool, call.ok) for call in calls(turn)] == [("listFiles", True)]
    assert texts(turn).strip() == "Done."


@pytest.mark.parametrize("mode", ["chat", "agent"])
async def test_what_a_broken_attempt_said_leaves_the_answer(desk: Desk, mode: str) -> None:
    """Reported: the pieces of an attempt that broke off stayed before the answer of the next one."""
    desk.settings('[agents.loop]\nprotocol = "tools"\nretries = 1\n')
    broken = Step(say=["one ", "two ", "three"], reason="Hm", cut=3)
    desk.says(Step(say="The whole answer.", first=First("broken", 1, broken)))
    turn = await desk.run("Well?", meta={"mode": mode})
    assert (turn.outcome, texts(turn), texts(turn, "reasoning")) == ("completed", "The whole answer.", ""), turn.error
    assert "Trying again." in texts(turn, "notice")


async def test_a_run_fails_with_a_diagnosis_after_the_model_saw_its_mistake_three_times(desk: Desk) -> None:
    desk.says(Step(say=["I refuse to write JSON. " + "x" * 1000]))
    desk.server.script = Script(default=[Step(say=["prose " + "x" * 1000])] * 5, models=["alpha"])
    turn = await desk.run()
    assert turn.outcome == "failed"
    assert turn.error is not None
    quoted = "prose " + "x" * 394
    assert quoted in turn.error.message
    assert len(turn.error.message) < 600
    assert texts(turn, "notice").count(quoted) == 4
    assert desk.server.total == 4
    told = desk.server.requests[1].body["messages"][-1]["content"]
    assert '{"finalSummary": "what you did", "done": true}' in told


async def test_one_invalid_answer_is_corrected(desk: Desk) -> None:
    desk.says(Step(say=""), acts({"tool": "listFiles"}), Step(say="hm"), ends())
    assert (await desk.run()).outcome == "completed"


async def test_the_conversation_goes_on_after_a_restart(desk: Desk) -> None:
    desk.says(Step(say="Your name is Ada."))
    await desk.run("I am Ada.", meta={"mode": "chat"})
    await desk.open()
    await desk.run("Who am I?", meta={"mode": "chat"})
    messages = desk.server.requests[-1].body["messages"]
    assert [(message["role"], message["content"]) for message in messages[1:]] == [
        ("user", "I am Ada."),
        ("assistant", "Your name is Ada."),
        ("user", "Who am I?"),
    ]


async def test_a_failed_run_is_resumed_with_what_it_knows(desk: Desk) -> None:
    (desk.project / "a.txt").write_text("needle\n")
    desk.says(acts({"tool": "readFiles", "files": ["a.txt"]}), Step(error=400))
    turn = await desk.run()
    assert turn.outcome == "failed"
    desk.says(ends("Resumed."))
    await desk.session.resume(by="test")
    ended = await desk.session.wait(turn.id)
    assert ended.outcome == "completed"
    messages = desk.server.requests[-1].body["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[1]["content"] == "go"
    assert "needle" in messages[3]["content"]
    assert "Go on where you stopped" in messages[3]["content"]


async def test_a_run_can_be_steered(desk: Desk) -> None:
    desk.says(acts({"tool": "createFile", "path": "a", "content": "x"}), ends("First."))
    turn = await desk.session.send(Message("agent: go"), by="test")
    state = await desk.session.wait_until(lambda state: state.status == "waiting")
    assert await desk.session.queue.steer(Message("Also say bye."), by="test")
    assert state.active is not None
    approval = calls(state.active)[0].approval
    assert approval is not None
    await desk.session.approvals.answer(approval.id, by="test", allow=True)
    await desk.session.wait(turn)
    last = desk.server.requests[1].body["messages"][-1]["content"]
    assert last.startswith("<results>\n[createFile]\n")
    assert last.endswith("</results>\n\nAlso say bye.")  # one message: chat templates reject two in a row


async def test_broken_native_arguments_are_corrected(desk: Desk) -> None:
    desk.settings('[agents.loop]\nprotocol = "tools"\n')
    broken = Step(calls=[ScriptedCall(name="readFiles", args='{"files": [')])
    desk.says(broken, Step(calls=[ScriptedCall(name="finish", args={"finalSummary": "Well."})]))
    turn = await desk.run()
    assert (turn.outcome, texts(turn)) == ("completed", "Well.")
    assert "not JSON" in desk.server.requests[1].body["messages"][-1]["content"]


@pytest.mark.parametrize(
    "hostile", ["{" * 200_000, '{"actions":' * 5_000, "\x00\x1b[2J", '{"actions": null, "done": 0}']
)
async def test_hostile_answers_end_the_run(desk: Desk, hostile: str) -> None:
    desk.server.script = Script(default=[Step(say=[hostile])] * 5, models=["alpha"])
    turn = await desk.run()
    assert turn.outcome == "failed"
    assert desk.server.total == 4


async def test_a_person_reads_along_while_the_model_still_writes(desk: Desk) -> None:
    desk.says(Step(say=['{"commentary": "Hello', ' there", ', '"actions": []}'], gap=1, hang=2))
    turn = await desk.session.send(Message("agent: go"), by="test")
    seen = ""
    async with asyncio.timeout(30):
        async for records in desk.host.log.follow(desk.session.channel):
            seen += "".join(record.event.text for record in records if isinstance(record.event, PartDelta))
            if seen == "Hello there":
                break
    await desk.session.cancel(by="test")
    assert (await desk.session.wait(turn)).outcome == "cancelled"


async def test_a_finished_run_goes_on_when_it_was_steered_meanwhile(desk: Desk) -> None:
    desk.settings('[agents.loop]\nprotocol = "tools"\n')
    desk.says(Step(calls=[ScriptedCall(name="finish", args={"finalSummary": "Done."})], delay=200))
    turn = await desk.session.send(Message("agent: go"), by="test")
    await desk.server.received(1)
    assert await desk.session.queue.steer(Message("And then?"), by="test")
    assert texts(await desk.session.wait(turn)) == "Done.Done."
    messages = desk.server.requests[1].body["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
