"""The scripted agent plays directives and scripts to the letter."""

import asyncio
import re
import time
from pathlib import Path

import pytest

from portico.agents import script as s
from portico.agents.agent import AgentContext, Call, Message
from portico.agents.scripted import ScriptedAgent, demo, scripted, seed
from portico.kernel import events as e
from portico.kernel.errors import BadRequest
from portico.kernel.events import ErrorInfo, Event, Json, ToolSpec
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import CallPart, QuestionPart, TextPart, TurnState
from portico.kernel.tool import Tool, ToolResult
from portico.testing.fixtures import HostOpener
from tests.features import host_of


async def play(session: Session, prompt: str) -> TurnState:
    return await session.wait(await session.send(Message(prompt), by="test"))


def shown(turn: TurnState) -> list[tuple[str, str]]:
    """What a reader sees, part by part."""
    found: list[tuple[str, str]] = []
    for part in turn.parts:
        if isinstance(part, TextPart):
            found.append((part.kind, part.text))
        elif isinstance(part, CallPart):
            found.append((f"tool {part.tool}", part.output if part.ok else f"! {part.error and part.error.message}"))
        else:
            found.append(("question", part.text))
    return found


THINKS = ("reasoning", "think0 think1 ")


# -- directives --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("hi", [THINKS, ("text", "Hello!.")]),
        ("[[reasoning:0]]", [("text", "Hello!.")]),
        ("[[reasoning:1]]", [("reasoning", "think0 "), ("text", "Hello!.")]),
        ("[[deltas:1]]", [THINKS, ("text", "Hello")]),
        ("[[deltas:2]]", [THINKS, ("text", "Hello.")]),
        ("[[deltas:6]]", [THINKS, ("text", "Hello!!!!.")]),
        ("[[deltas:0]] [[reasoning:0]]", []),
        ("[[say:one two]]", [THINKS, ("text", "one two")]),
        ("[[say:a[0]]] [[reasoning:0]]", [("text", "a[0]")]),
        ("[[say:x]] [[deltas:5]]", [THINKS, ("text", "x")]),
        ("[[say:a\nb]]", [THINKS, ("text", "a\nb")]),
        ("[[nonsense:1]] [[wiki]]", [THINKS, ("text", "Hello!.")]),
        ("[[tool:ls|/]]", [THINKS, ("tool ls", "! no such tool"), ("text", "Hello!.")]),
        (
            "[[tool:a|1|2]] [[tool:b]]",
            [THINKS, ("tool a", "! no such tool"), ("tool b", "! no such tool"), ("text", "Hello!.")],
        ),
    ],
)
async def test_directives(session: Session, prompt: str, expected: list[tuple[str, str]]) -> None:
    turn = await play(session, prompt)
    assert (turn.outcome, shown(turn)) == ("completed", expected)


@pytest.mark.parametrize(
    "prompt",
    [
        "[[deltas:x]]",
        "[[deltas:-1]]",
        "[[delay:nan]]",
        "[[gap:inf]]",
        "[[deltas:1e30]]",
        "[[after:k]]",
        "[[crashn:k|x]]",
    ],
)
async def test_a_wrong_directive_fails_its_turn(session: Session, prompt: str) -> None:
    turn = await play(session, prompt)
    assert (turn.outcome, turn.error and turn.error.code) == ("failed", "bad_request")


async def test_a_very_long_stream_is_not_built_in_memory(session: Session) -> None:
    await session.send(Message("[[deltas:100000000]]"), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    await session.cancel(by="test")
    assert session.state.turns[-1].outcome == "cancelled"


async def test_stamps_tell_when_each_delta_was_made(session: Session) -> None:
    before = int(time.time() * 1000)
    turn = await play(session, "[[stamp]] [[say:x]] [[deltas:3]] [[reasoning:1]]")
    after = int(time.time() * 1000)
    (_, reasoning), (_, text) = shown(turn)
    assert re.fullmatch(r"t=\d+;think0 ", reasoning)
    match = re.fullmatch(r"t=(\d+);xt=(\d+);t=(\d+);", text)
    assert match
    stamps = [int(stamp) for stamp in match.groups()]
    assert [before, *stamps, after] == sorted([before, *stamps, after])


async def test_delay_comes_before_and_gap_between(session: Session) -> None:
    start = time.monotonic()
    turn = await play(session, "[[delay:60]] [[gap:15]] [[reasoning:1]] [[deltas:3]]")
    assert time.monotonic() - start >= 0.12
    records = await session.host.log.read(session.channel)
    first = next(r for r in records if isinstance(r.event, e.PartStarted))
    begun = next(r for r in records if isinstance(r.event, e.TurnStarted))
    assert first.time - begun.time >= 60
    assert turn.outcome == "completed"


async def test_tools_of_the_session_report_and_answer(host: Host, session: Session) -> None:
    asked: list[Json] = []

    async def echo(arguments: Json, call: Call) -> ToolResult:
        asked.append(arguments)
        return ToolResult(True, f"echo {arguments['argument']}")

    host.tools["echo"] = Tool(ToolSpec("echo"), echo)
    turn = await play(session, '[[tool:echo|say "hi"]]')
    assert shown(turn) == [THINKS, ("tool echo", 'echo say "hi"'), ("text", "Hello!.")]
    assert asked == [{"argument": 'say "hi"'}]
    events: list[Event] = [r.event for r in await host.log.read(session.channel)]
    assert [event.text for event in events if isinstance(event, e.ToolOutput)] == ["..."]


async def test_after_and_before_count_how_often_a_key_was_seen(session: Session) -> None:
    seen = []
    for _ in range(4):
        turn = await play(session, "[[after:k|2|late|x]] [[before:k|1|early|x]] [[reasoning:0]] [[deltas:0]]")
        seen.append([name for name, _ in shown(turn)])
    assert seen == [["tool early"], [], ["tool late"], ["tool late"]]


async def test_keys_are_shared_by_all_sessions_of_the_process(host: Host) -> None:
    prompt = "[[before:once|1|tool|x]] [[reasoning:0]] [[deltas:0]]"
    one, two = await host.start(by="test", cwd="/"), await host.start(by="test", cwd="/")
    assert len((await play(one, prompt)).parts) == 1
    assert len((await play(two, prompt)).parts) == 0


async def test_crash_says_stub_crash_after_the_message(session: Session) -> None:
    turn = await play(session, "[[crash]]")
    assert (turn.outcome, turn.error) == ("failed", ErrorInfo("agent_failed", "stub crash"))
    assert shown(turn) == [THINKS, ("text", "Hello!.")]


async def test_crashn_crashes_the_first_times(session: Session) -> None:
    outcomes = [(await play(session, "[[crashn:k|2]]")).outcome for _ in range(3)]
    assert outcomes == ["failed", "failed", "completed"]


async def test_die_ends_the_agent_in_mid_turn(session: Session) -> None:
    turn = await play(session, "[[die]] [[tool:ls|/]]")
    assert (turn.outcome, turn.error and turn.error.code) == ("failed", "agent_died")
    assert [name for name, _ in shown(turn)] == ["reasoning", "tool ls"]
    assert (await play(session, "again")).outcome == "completed"


async def test_hang_never_becomes_idle(session: Session) -> None:
    turn = await session.send(Message("[[hang]] [[say:here]]"), by="test")
    await session.wait_until(lambda state: bool(state.active and len(state.active.parts) == 2))
    assert session.state.active is not None
    await session.cancel(by="test")
    assert (await session.wait(turn)).outcome == "cancelled"


async def test_the_default_models() -> None:
    [agent] = scripted(AgentContext(Path("/"), {}))
    assert [(model.id, model.name, model.multiplier) for model in (await agent.describe()).models] == [
        ("gpt-5-mini", "GPT-5 mini", 0),
        ("gpt-4.1", "GPT-4.1", 0),
        ("gpt-5.2", "GPT-5.2", 1),
        ("gpt-5.4", "GPT-5.4", 1),
        ("gpt-5.3-codex", "GPT-5.3-Codex", 1),
        ("gpt-5.4-mini", "GPT-5.4 mini", 0.33),
        ("claude-haiku-4.5", "Claude Haiku 4.5", 0.33),
        ("claude-opus-4.6", "Claude Opus 4.6", 3),
        ("claude-sonnet-4.6", "Claude Sonnet 4.6", 1),
    ]


async def test_script_delay_makes_every_turn_wait(open_host: HostOpener) -> None:
    host = await open_host(*scripted(AgentContext(Path("/"), {}, script_delay=0.05)))
    session = await host.start(by="test", cwd="/")
    start = time.monotonic()
    await play(session, "[[say:x]]")
    assert time.monotonic() - start >= 0.05


# -- scripts -----------------------------------------------------------------------------------------------------

RULES = r"""
providers:
  - {id: one, name: One, steer: true, models: [{id: m, name: M, multiplier: 2}]}
  - {id: two, name: Two}
rules:
  - match: ^only two$
    provider: two
    steps: [{do: say, text: "two: {prompt}"}]
  - match: ^say (?P<what>\w+) (\d+)
    steps:
      - {do: reason, text: "in {cwd}", deltas: 3}
      - {do: say, text: "{what} {2} {unknown}", deltas: 4}
      - {do: notice, text: noted}
      - {do: usage, input: 3, output: 4, cost: 0.5, model: m}
      - {do: title, text: "About {what}"}
  - match: ^tool
    steps:
      - {do: tool, name: shell, input: {q: "{prompt}"}, partial: [a, b], output: "{prompt}", title: T, kind: execute}
      - {do: tool, name: broken, fail: no luck}
      - {do: tool, name: asked, output: fine, permission: {kind: shell, command: make, timeout: 60}, denied: refused}
      - {do: tool, name: checked, output: fine, confirm_result: true, content: [{type: text}]}
  - match: ^session tool
    steps: [{do: tool, name: absent, session_tool: true}, {do: tool, name: echo, output: own, session_tool: false}]
  - match: ^ask
    steps: [{do: ask, text: "Why, {prompt}?"}, {do: say, text: "So {answer}."}]
  - {match: ^fail, steps: [{do: fail, message: "sorry, {prompt}"}]}
  - {match: ^crash, steps: [{do: crash}]}
  - {match: ^die, steps: [{do: die}]}
  - {match: ^hang, steps: [{do: say, text: hanging}, {do: hang}]}
  - {match: ^slow, steps: [{do: delay, ms: 30}, {do: say, text: done}]}
  - match: ^spawn (ok|bad)
    steps:
      - do: spawn
        prompt: "child of {1}"
        title: Child
        steps: [{do: say, text: "I am {1}"}]
      - {do: spawn, prompt: failing, fail: "it broke"}
  - match: ^write (\S+)
    steps:
      - {do: write, path: "{1}", text: "new\n"}
      - {do: write, path: "{1}", text: "more\n", append: true, ask: false}
      - {do: read, path: "{1}"}
      - {do: say, text: "{written}: {read}"}
  - {match: ^outside, steps: [{do: read, path: ../../etc/passwd}]}
  - {match: ^missing, steps: [{do: read, path: nowhere}, {do: say, text: "{read}"}]}
"""


@pytest.fixture
async def one(open_host: HostOpener, tmp_path: Path) -> Session:
    return await (await open_host(rules=RULES)).start(by="test", cwd=str(tmp_path))


async def test_the_first_matching_rule_plays(one: Session, tmp_path: Path) -> None:
    turn = await play(one, "say hello 42")
    assert shown(turn) == [("reasoning", f"in {tmp_path}"), ("text", "hello 42 {unknown}"), ("notice", "noted")]
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.output, turn.usage.cost, turn.usage.model) == (3, 4, 0.5, "m")
    assert one.state.title == "About hello"


async def test_rules_may_belong_to_one_provider(one: Session) -> None:
    assert shown(await play(one, "only two")) == [THINKS, ("text", "Hello!.")]
    two = await host_of(one).start(by="test", cwd="/", agent="two")
    assert shown(await play(two, "only two")) == [("text", "two: only two")]


async def answer(session: Session, allow: bool) -> None:
    state = await session.wait_until(lambda state: state.status == "waiting")
    assert state.active is not None
    call = state.active.parts[-1]
    assert isinstance(call, CallPart)
    assert call.approval is not None
    await session.approvals.answer(call.approval.id, allow=allow, by="ada")


@pytest.mark.parametrize("allow", [True, False])
async def test_tool_steps(one: Session, allow: bool) -> None:
    turn_id = await one.send(Message('tool "quoted"'), by="test")
    await answer(one, allow)
    await answer(one, allow)
    turn = await one.wait(turn_id)
    end = "fine" if allow else "! refused"
    result = "fine" if allow else "! The result was refused."
    assert shown(turn) == [
        ("tool shell", 'tool "quoted"'),
        ("tool broken", "! no luck"),
        ("tool asked", end),
        ("tool checked", result),
    ]
    shell = turn.parts[0]
    assert isinstance(shell, CallPart)
    assert (shell.input, shell.title, shell.kind) == ('{"q":"tool \\"quoted\\""}', "T", "execute")
    checked = turn.parts[3]
    assert isinstance(checked, CallPart)
    assert (checked.content, checked.approvals[0].result) == ([{"type": "text"}], True)


async def test_whose_tool_a_step_calls(one: Session) -> None:
    async def echo(arguments: Json, call: Call) -> ToolResult:
        return ToolResult(True, "the session's")

    one.host.tools["echo"] = Tool(ToolSpec("echo"), echo)
    assert shown(await play(one, "session tool")) == [("tool absent", "! no such tool"), ("tool echo", "own")]


async def test_ask_step(one: Session) -> None:
    turn_id = await one.send(Message("ask me"), by="test")
    state = await one.wait_until(lambda state: state.status == "waiting")
    assert state.active is not None
    question = state.active.parts[-1]
    assert isinstance(question, QuestionPart)
    await one.questions.answer(question.id, "accept", {"answer": "so"}, by="ada")
    assert shown(await one.wait(turn_id)) == [("question", "Why, ask me?"), ("text", "You said: so\nSo so.")]


@pytest.mark.parametrize(
    ("prompt", "error"),
    [
        ("fail now", ErrorInfo("agent_failed", "sorry, fail now")),
        ("crash", ErrorInfo("agent_failed", "stub crash")),
        ("die", ErrorInfo("agent_died", "The agent's process ended in mid-turn (exit code 1).")),
        ("outside", ErrorInfo("agent_failed", "'../../etc/passwd' is outside the working directory.")),
    ],
)
async def test_steps_that_end_the_turn(one: Session, prompt: str, error: ErrorInfo) -> None:
    assert (await play(one, prompt)).error == error


async def test_hang_and_delay_steps(one: Session) -> None:
    assert shown(await play(one, "slow")) == [("text", "done")]
    await one.send(Message("hang"), by="test")
    await one.wait_until(lambda state: bool(state.active and state.active.parts))
    await one.cancel(by="test")
    assert shown(one.state.turns[-1]) == [("text", "hanging")]


async def test_spawn_steps(one: Session) -> None:
    turn = await play(one, "spawn ok")
    assert shown(turn) == [("tool task", "done"), ("tool task", "! it broke")]
    good, bad = [await one.host.get(child) for child in one.state.children]
    assert (good.state.title, shown(good.state.turns[0])) == ("Child", [("text", "I am ok")])
    assert (bad.state.turns[0].outcome, bad.state.turns[0].error) == ("failed", ErrorInfo("agent_failed", "it broke"))


async def test_write_and_read_steps_touch_real_files(one: Session, tmp_path: Path) -> None:
    turn_id = await one.send(Message("write sub/a.txt"), by="test")
    state = await one.wait_until(lambda state: state.status == "waiting")
    assert state.active is not None
    call = state.active.parts[-1]
    assert isinstance(call, CallPart)
    assert call.approval is not None
    assert "+new" in (call.approval.diff or "")
    assert not (tmp_path / "sub/a.txt").exists()
    await one.approvals.answer(call.approval.id, allow=True, by="ada")
    turn = await one.wait(turn_id)
    assert (tmp_path / "sub/a.txt").read_text() == "new\nmore\n"
    assert shown(turn)[-1] == ("text", "a.txt: new\nmore\n")


async def test_a_file_that_cannot_be_read_or_written(one: Session, tmp_path: Path) -> None:
    assert shown(await play(one, "missing"))[-1] == ("text", "(could not read nowhere)")
    (tmp_path / "folder").mkdir()
    turn_id = await one.send(Message("write folder"), by="test")
    await answer(one, True)
    turn = await one.wait(turn_id)
    assert turn.outcome == "completed"
    assert shown(turn)[0] == ("tool write", "! folder: Is a directory")


async def test_steering_is_answered(one: Session) -> None:
    turn_id = await one.send(Message("[[gap:20]] [[deltas:3]] [[reasoning:0]]"), by="test")
    await one.wait_until(lambda state: bool(state.active and state.active.parts))
    assert await one.queue.steer(Message("faster"), by="ada")
    answer = ("text", "Hello!.\n\nSteered: faster")
    assert shown(await one.wait(turn_id)) == [answer, ("notice", "Added during the turn: faster")]


async def test_seeded_sessions_are_there_once(open_host: HostOpener, tmp_path: Path) -> None:
    script = s.parse(
        f"""
providers:
  - id: seeded
    name: Seeded
    completions: {{file: [{{value: a.py}}]}}
    config: {{type: object}}
    sessions:
      - {{title: Old work, cwd: {tmp_path}, turns: [{{prompt: hi, answer: hello, reasoning: hm}}, {{prompt: bye}}]}}
      - {{title: Empty, cwd: {tmp_path}, model: gpt-4.1}}
""",
        "seeds",
    )
    for _ in range(2):
        host = await open_host(ScriptedAgent(script.providers[0]))
        await seed(host)
        assert sorted(summary.title for summary in host.list()) == ["Empty", "Old work"]
    session = await host.get("session-1")
    first, second = session.state.turns
    assert (first.message.text, shown(first), first.outcome) == (
        "hi",
        [("reasoning", "hm"), ("text", "hello")],
        "completed",
    )
    assert second.parts == []
    assert (await play(session, "[[say:more]]")).outcome == "completed"


@pytest.mark.parametrize(
    "text",
    [
        "rules: [{match: '(', steps: []}]",
        "rules: [{match: x, steps: [{do: sing}]}]",
        "rules: [{match: x, steps: [{do: say, tune: y}]}]",
        "rules: [{match: x}]",
        "rules: 5",
        "unknown: []",
        "- a list",
        "{not json",
        "a: [b",
        '{"rules": [{"match": 5, "steps": []}]}',
    ],
)
def test_a_wrong_script_says_where(text: str) -> None:
    with pytest.raises(BadRequest, match=r"'x\.yaml'"):
        s.parse(text, "x.yaml")


def test_scripts_are_json_or_yaml(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('{\n\t"rules": [\n\t\t{"match": "x", "steps": [{"do": "say", "text": "y"}]}\n\t]\n}')
    assert s.load(path).rules == [s.ScriptRule("x", [s.Say(text="y")])]
    assert s.parse("", "empty") == s.AgentScript()
    with pytest.raises(BadRequest, match="cannot be read"):
        s.load(tmp_path / "nowhere")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadRequest, match="cannot be read"):
        s.load(path)


@pytest.mark.parametrize(
    ("prompt", "part"),
    [
        ("hello", ("text", "Hello! I am the **demo agent**")),
        ("please fail", ("text", "You asked me to fail")),
        ("read a.txt", ("text", "Here is what I found in `a.txt`:\n\n```\ncontent")),
        ("delegate", ("text", "My helper has counted to three.")),
    ],
)
async def test_the_demo(open_host: HostOpener, tmp_path: Path, prompt: str, part: tuple[str, str]) -> None:
    (tmp_path / "a.txt").write_text("content")
    [agent] = demo(AgentContext(tmp_path, {}))
    assert (await agent.describe()).label == "demo"
    assert isinstance(agent, ScriptedAgent)
    for rule in agent.rules:
        _hurry(rule.steps)
    session = await (await open_host(agent)).start(by="test", cwd=str(tmp_path))
    turn = await asyncio.wait_for(play(session, prompt), 60)
    kind, text = shown(turn)[-1]
    assert (kind, text[: len(part[1])]) == part
    assert turn.outcome == ("failed" if "fail" in prompt else "completed")


def _hurry(steps: list[s.AnyStep]) -> None:
    for step in steps:
        if isinstance(step, s.Say | s.Reason):
            step.gap = 0
        if isinstance(step, s.Spawn):
            _hurry(step.steps)
