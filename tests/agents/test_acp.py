"""What an ACP agent says and asks, as a session shows it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from portico.agents.acp import acp
from portico.agents.acp.agent import AcpAgent
from portico.agents.acp.autonomy import KNOWN
from portico.agents.acp.program import PRESETS, programs
from portico.agents.agent import AgentContext, Autonomy, Opening
from portico.kernel import commands as c
from portico.kernel.call import Call
from portico.kernel.errors import BadRequest
from portico.kernel.events import HOST, Audited, Json, Message, ToolSpec
from portico.kernel.session import Session
from portico.kernel.state import TurnState
from portico.kernel.tool import Tool, ToolResult
from portico.testing.fixtures import HostOpener
from tests.agents.acp_agent import calls, fake_agent, said, steps, waiting_approval


async def start(open_host: HostOpener, tmp_path: Path, **env: str) -> Session:
    host = await open_host(fake_agent(tmp_path, env=env))
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    return await host.start(by="test", cwd=str(work))


async def turn_of(session: Session, prompt: str) -> TurnState:
    return await session.wait(await session.send(Message(prompt), by="test"))


async def test_text_thoughts_and_messages_become_parts(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    turn = await turn_of(
        session,
        steps(
            ["thought", "hm "],
            ["thought", "yes"],
            ["text", "one", {"messageId": "a"}],
            ["text", " two", {"messageId": "a"}],
            ["text", ""],
            ["text", "three", {"messageId": "b"}],
        ),
    )
    assert turn.outcome == "completed"
    assert [(part.kind, part.text) for part in turn.parts] == [  # type: ignore[union-attr]
        ("reasoning", "hm yes"),
        ("text", "one two"),
        ("text", "three"),
    ]


async def test_a_tool_call_accumulates_its_fields(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    content = [{"type": "content", "content": {"type": "text", "text": "line 1\n"}}]
    more = [{"type": "content", "content": {"type": "text", "text": "line 1\nline 2\n"}}]
    diff = {"type": "diff", "path": "a.txt", "oldText": "old", "newText": "new"}
    turn = await turn_of(
        session,
        steps(
            ["update", "tool_call", {"toolCallId": "x", "title": "Run", "kind": "execute", "status": "pending"}],
            ["update", "tool_call_update", {"toolCallId": "x", "rawInput": {"command": "ls"}}],
            ["update", "tool_call_update", {"toolCallId": "x", "content": content}],
            ["update", "tool_call_update", {"toolCallId": "x", "content": more}],
            ["update", "tool_call_update", {"toolCallId": "x", "status": "completed"}],
            ["update", "tool_call_update", {"toolCallId": "y", "kind": "edit", "content": [diff], "status": "failed"}],
            ["update", "tool_call", {"toolCallId": "z", "title": "left open"}],
        ),
    )
    run, edit, left = calls(turn)
    assert (run.tool, run.title, run.kind, run.input) == ("execute", "Run", "execute", '{"command":"ls"}')
    assert (run.ok, run.output, run.outcome) == (True, "line 1\nline 2\n", "completed")
    assert (edit.ok, edit.outcome, edit.content[0]["new"]) == (False, "failed", "new")
    assert (left.tool, left.done) == ("left open", True)


async def test_plans_modes_commands_titles_and_usage(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    first = [{"content": "look", "status": "in_progress"}, {"content": "do", "status": "pending"}]
    then = [{"content": "look", "status": "completed"}, {"content": "do", "status": "in_progress"}]
    turn = await turn_of(
        session,
        steps(
            ["update", "plan", {"entries": first}],
            ["update", "plan", {"entries": then}],
            ["update", "current_mode_update", {"currentModeId": "code"}],
            ["update", "available_commands_update", {"availableCommands": [{"name": "web", "description": "Look"}]}],
            ["update", "session_info_update", {"title": "A good title"}],
            ["update", "usage_update", {"used": 5, "size": 100, "cost": {"amount": 0.25, "currency": "USD"}}],
            ["update", "something_of_tomorrow", {"x": [1]}],
            ["reply", {"usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}}],
        ),
    )
    (plan,) = calls(turn)
    assert plan.content == [{"type": "text", "text": "- [x] look\n- [~] do"}]
    assert said(turn, "notice") == "The agent is now in mode 'code'."
    assert session.state.config["commands"] == [{"name": "web", "description": "Look"}]
    assert session.state.title == "A good title"
    assert turn.outcome == "completed"


async def test_files_are_served_inside_the_folder_and_writes_are_asked_for(
    open_host: HostOpener, tmp_path: Path
) -> None:
    session = await start(open_host, tmp_path)
    work = Path(session.state.cwd)
    (work / "a.txt").write_text("one\ntwo\nthree\n")
    path = str(work / "a.txt")
    turn = await turn_of(session, steps(["ask", "fs/read_text_file", {"path": path, "line": 2, "limit": 1}]))
    assert json.loads(said(turn)) == {"content": "two\n"}
    turn = await turn_of(session, steps(["ask", "fs/read_text_file", {"path": "/etc/passwd"}]))
    assert "root:" not in said(turn)
    assert json.loads(said(turn))["data"]["code"] == "forbidden"
    turn_id = await session.send(
        Message(steps(["ask", "fs/write_text_file", {"path": path, "content": "new"}])), by="test"
    )
    ident = await waiting_approval(session)
    assert (work / "a.txt").read_text() == "one\ntwo\nthree\n"
    await session.approvals.answer(ident, by="test", allow=True)
    await session.wait(turn_id)
    assert (work / "a.txt").read_text() == "new"


async def test_a_write_that_was_allowed_is_not_asked_for_twice(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    file = Path(session.state.cwd) / "a.txt"
    path = str(file)
    prompt = steps(
        ["permission", {"locations": [{"path": path}]}],
        ["ask", "fs/write_text_file", {"path": path, "content": "new"}],
    )
    turn_id = await session.send(Message(prompt), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
    await session.wait(turn_id)
    assert file.read_text() == "new"


async def test_a_terminal_runs_a_command_after_an_approval(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    turn_id = await session.send(Message(steps(["terminal", "sh", "-c", "echo hi; exit 3"])), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
    turn = await session.wait(turn_id)
    assert said(turn) == "3 hi\n"
    shown = {"type": "terminal", "terminal": "terminal-1", "title": "sh -c echo hi; exit 3", "code": 3}
    assert calls(turn)[1].content == [shown]
    turn_id = await session.send(Message(steps(["terminal", "touch", "no.txt"])), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=False)
    turn = await session.wait(turn_id)
    assert "refused" in said(turn)
    assert not (Path(session.state.cwd) / "no.txt").exists()


async def test_an_elicitation_is_a_question(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    schema = {"type": "object", "properties": {"colour": {"type": "string", "title": "Colour"}}, "required": ["colour"]}
    form = {"mode": "form", "message": "Which?", "requestedSchema": schema}
    turn_id = await session.send(Message(steps(["ask", "elicitation/create", form])), by="test")
    state = await session.wait_until(lambda state: bool(state.active and state.active.parts))
    assert state.active is not None
    question = state.active.parts[0]
    assert question.fields[0]["id"] == "colour"  # type: ignore[union-attr]
    value = {"state": "submitted", "value": {"kind": "text", "value": "red"}}
    await session.questions.answer(question.id, "accept", {"colour": value}, by="test")
    turn = await session.wait(turn_id)
    assert json.loads(said(turn)) == {"action": "accept", "content": {"colour": "red"}}


async def _shout(arguments: dict[str, object], call: Call) -> ToolResult:
    return ToolResult(True, str(arguments["what"]).upper())


async def shouting(open_host: HostOpener, tmp_path: Path) -> Session:
    session = await start(open_host, tmp_path)
    session.host.tools["shout"] = Tool(ToolSpec("shout", "Says it loud", {"type": "object"}), _shout)
    return session


SHOUT = {"what": "hello"}
REPORTED = {"toolCallId": "m", "title": "portico-shout", "kind": "other", "status": "pending", "rawInput": SHOUT}
DONE = {"toolCallId": "m", "status": "completed", "content": [{"type": "content", "content": {"type": "text"}}]}


async def test_session_tools_reach_the_agent_over_mcp_and_are_shown_once(open_host: HostOpener, tmp_path: Path) -> None:
    """A session tool stood twice in the transcript: as the agent reported it, and as it came over MCP."""
    session = await shouting(open_host, tmp_path)
    before, call, after = (
        ["update", "tool_call", REPORTED],
        ["mcp", "shout", SHOUT],
        ["update", "tool_call_update", DONE],
    )
    for order in ([call], [before, call, after], [call, before, after]):
        turn = await turn_of(session, steps(*order))
        assert said(turn) == "HELLO"
        assert [(each.tool, each.output, each.ok) for each in calls(turn)] == [("shout", "HELLO", True)]


@pytest.mark.parametrize("meant", [SHOUT, {"what": "something else"}])
async def test_a_session_tool_that_was_allowed_is_the_call_that_runs(
    open_host: HostOpener, tmp_path: Path, meant: dict[str, str]
) -> None:
    """With another input than the one that was shown it is another call."""
    session = await shouting(open_host, tmp_path)
    asked = {**REPORTED, "rawInput": meant}
    prompt = steps(["permission", asked], ["mcp", "shout", SHOUT], ["update", "tool_call_update", DONE])
    turn_id = await session.send(Message(prompt), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
    turn = await session.wait(turn_id)
    shown = [(each.tool, json.loads(each.input), bool(each.approvals), each.output) for each in calls(turn)]
    if meant == SHOUT:
        assert shown == [("shout", SHOUT, True, "HELLO")]
    else:
        assert shown == [("shout", meant, True, ""), ("shout", SHOUT, False, "HELLO")]


async def test_a_session_tool_that_failed_on_its_way_is_shown(open_host: HostOpener, tmp_path: Path) -> None:
    session = await shouting(open_host, tmp_path)
    failed = ["update", "tool_call_update", {"toolCallId": "m", "status": "failed"}]
    turn = await turn_of(session, steps(["update", "tool_call", REPORTED], failed))
    assert [(each.tool, each.outcome) for each in calls(turn)] == [("shout", "failed")]


async def _whose(arguments: dict[str, object], call: Call) -> ToolResult:
    return ToolResult(True, call.turn.session.id)


WHOSE = Tool(ToolSpec("whose", "Says in which session it runs", {"type": "object"}), _whose)


async def two_sessions(open_host: HostOpener, tmp_path: Path, **settings: object) -> tuple[Session, Session]:
    """In one folder, the second opened last: like opencode, the fake agent then has only the second one's key."""
    host = await open_host(fake_agent(tmp_path, settings=settings))
    host.tools["whose"] = WHOSE
    older, newer = [await host.start(by="test", cwd=str(tmp_path)) for _ in range(2)]
    for session in (older, newer):
        await turn_of(session, "hello")
    return older, newer


async def test_with_a_process_per_session_a_tool_runs_where_it_was_called(
    open_host: HostOpener, tmp_path: Path
) -> None:
    """The tool of the older session came with the key of the newer one."""
    older, newer = await two_sessions(open_host, tmp_path, process_per_session=True)
    for session in (older, newer):
        turn = await turn_of(session, steps(["mcp", "whose", {}]))
        assert (said(turn), [call.output for call in calls(turn)]) == (session.id, [session.id])


@pytest.mark.parametrize("running", [True, False])
async def test_a_tool_called_with_the_key_of_another_session_does_not_run_there(
    open_host: HostOpener, tmp_path: Path, running: bool
) -> None:
    older, newer = await two_sessions(open_host, tmp_path)
    busy = ""
    if running:
        busy = await newer.send(Message(steps(["text", "working"], ["sleep", 30])), by="test")
        await newer.wait_until(lambda state: bool(state.active and state.active.parts))
    reported = {"toolCallId": "m", "title": "portico-whose", "rawInput": {}}
    turn = await turn_of(older, steps(["update", "tool_call", reported], ["mcp", "whose", {}]))
    assert said(turn).startswith("Called in another session.")
    if running:
        await newer.cancel(by="test")
        assert calls(await newer.wait(busy)) == []


async def test_the_same_call_in_two_sessions_at_once_runs_in_each(open_host: HostOpener, tmp_path: Path) -> None:
    """To which session a call belongs is what the agent told of it."""
    older, newer = await two_sessions(open_host, tmp_path)
    reported = {"toolCallId": "m", "title": "portico-whose", "rawInput": {}}
    waiting = steps(["update", "tool_call", reported], ["text", "I wait"], ["sleep", 30])
    busy = await older.send(Message(waiting), by="test")
    await older.wait_until(lambda state: bool(state.active and state.active.parts))
    turn = await turn_of(newer, steps(["update", "tool_call", reported], ["mcp", "whose", {}]))
    assert said(turn) == newer.id
    await older.cancel(by="test")
    await older.wait(busy)


async def test_one_announced_call_lets_one_call_through(open_host: HostOpener, tmp_path: Path) -> None:
    """The same call of both sessions came at once with the key of one, and ran there twice."""
    older, newer = await two_sessions(open_host, tmp_path)
    reported = {"toolCallId": "m", "title": "portico-whose", "rawInput": {}}
    busy = await older.send(
        Message(steps(["update", "tool_call", reported], ["text", "I wait"], ["sleep", 30])), by="test"
    )
    await older.wait_until(lambda state: bool(state.active and state.active.parts))
    turn = await turn_of(newer, steps(["update", "tool_call", reported], ["twice", "whose", {}]))
    refused, ran = said(turn).split("|")
    assert (refused.startswith("Called in another session."), ran) == (True, newer.id)
    assert [call.output for call in calls(turn)] == [newer.id]
    await older.cancel(by="test")
    await older.wait(busy)


async def test_servers_of_tools_from_the_settings_are_passed_on(open_host: HostOpener, tmp_path: Path) -> None:
    opening = Opening("s", str(tmp_path), "", {}, [], known_as=lambda _: None)
    servers = {
        "one": {"command": ["false", "-x"], "env": {"A": "b"}},
        "two": {"url": "http://x", "headers": {"K": "v"}},
        "typo": {"command": ["fals"]},
    }
    context = AgentContext(tmp_path, {"mcp": servers, "acp": {"fake": {"command": ["fake"]}}})
    agent = next(each for each in acp(context) if isinstance(each, AcpAgent) and each.name == "fake")
    notes: list[str] = []

    async def offered(agent: AcpAgent, *, http: bool, stdio: bool = True) -> list[Json]:
        made = agent.servers(opening)
        found = await made.offer(None, http=http, stdio=stdio, serving=_unasked, note=notes.append)
        await made.close()
        return found

    assert await offered(fake_agent(tmp_path), http=True) == []
    assert await offered(agent, http=True) == [
        {"name": "one", "command": "false", "args": ["-x"], "env": [{"name": "A", "value": "b"}]},
        {"type": "http", "name": "two", "url": "http://x", "headers": [{"name": "K", "value": "v"}]},
    ]
    assert [each["name"] for each in await offered(agent, http=False)] == ["one"]
    assert set(notes) == {"The MCP server 'typo' is left out: there is no program 'fals'."}
    notes.clear()
    assert [each["name"] for each in await offered(agent, http=True, stdio=False)] == ["two"]
    assert sorted(note[:30] for note in notes) == ["The MCP server 'one' is left o", "The MCP server 'typo' is left "]
    await agent.close()


async def _unasked(method: str, params: Json) -> Json:
    raise AssertionError(method)


async def test_attachments_become_content_blocks(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    attachments = [
        {"type": "file", "uri": "file:///a/b.py", "displayName": "b.py"},
        {"data": "aGk=", "contentType": "image/png", "label": "picture"},
        {"data": "aGk=", "contentType": "text/plain", "label": "note"},
    ]
    message = Message(steps(["blocks"]), attachments)
    turn = await session.wait(await session.send(message, by="test"))
    assert [block["type"] for block in json.loads(said(turn))] == ["text", "resource_link", "image", "resource"]


async def test_models_and_modes_are_learned_and_set(open_host: HostOpener, tmp_path: Path) -> None:
    agent = fake_agent(tmp_path)
    assert (await agent.describe()).models == []
    host = await open_host(agent)
    session = await host.start(by="test", cwd=str(tmp_path))
    await turn_of(session, "hello")
    info = await agent.describe()
    assert [model.id for model in info.models] == ["fast", "slow"]
    assert info.config["properties"]["mode"]["enum"] == ["ask", "code"]
    assert info.description == "fake over ACP, version 1.2."
    assert [model.id for model in (await fake_agent(tmp_path).describe()).models] == ["fast", "slow"]
    other = await host.start(by="test", cwd=str(tmp_path), model="slow", config={"mode": "code"})
    turn = await turn_of(other, steps(["settings"]))
    assert json.loads(said(turn)) == {"session/set_model": "slow", "session/set_mode": "code"}


async def test_the_settings_choose_a_mode_for_sessions_that_name_none(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(fake_agent(tmp_path, settings={"mode": "code"}))
    session = await host.start(by="test", cwd=str(tmp_path))
    assert json.loads(said(await turn_of(session, steps(["settings"])))) == {"session/set_mode": "code"}
    other = await host.start(by="test", cwd=str(tmp_path), config={"mode": "ask"})
    assert json.loads(said(await turn_of(other, steps(["settings"])))) == {}


OPTIONS = [
    {
        "id": "thought",
        "name": "Thinking",
        "category": "thought_level",
        "currentValue": "low",
        "options": [{"value": "low", "name": "Low"}, {"group": "more", "options": [{"value": "high", "name": "High"}]}],
    },
    {"id": "approvals", "currentValue": "ask", "options": [{"value": "ask"}, {"value": "allow"}]},
]


async def test_options_of_the_agent_are_settings_of_the_session(open_host: HostOpener, tmp_path: Path) -> None:
    """But none that means something to the host: `approvals` is ours."""
    agent = fake_agent(tmp_path, env={"FAKE_OPTIONS": json.dumps(OPTIONS)})
    host = await open_host(agent)
    session = await host.start(by="test", cwd=str(tmp_path), config={"thought": "high"})
    assert json.loads(said(await turn_of(session, steps(["settings"])))) == {"thought": "high"}
    schema = (await agent.describe()).config["properties"]
    assert schema["thought"] == {"type": "string", "title": "Thinking", "enum": ["low", "high"]}
    assert "approvals" not in schema


async def test_a_setting_that_is_changed_reaches_the_agent_with_the_next_message(
    open_host: HostOpener, tmp_path: Path
) -> None:
    """A mode that was chosen in the middle of a session was known to everybody but the agent."""
    session = await start(open_host, tmp_path)
    assert json.loads(said(await turn_of(session, steps(["settings"])))) == {}
    await session.do(c.ConfigureSession(session=session.id, values={"mode": "code"}), "test")
    assert json.loads(said(await turn_of(session, steps(["settings"])))) == {"session/set_mode": "code"}
    await session.do(c.ConfigureSession(session=session.id, values={"mode": "dance"}), "test")
    turn = await turn_of(session, steps(["settings"]))
    assert said(turn, "notice") == "The agent has no mode 'dance'. It has: ask, code."
    # What the agent does by itself is not undone by what was wanted before.
    back = steps(["update", "current_mode_update", {"currentModeId": "ask"}])
    assert said(await turn_of(session, back), "notice") == "The agent is now in mode 'ask'."
    assert session.state.config["mode"] == "ask"
    assert json.loads(said(await turn_of(session, steps(["settings"])))) == {"session/set_mode": "code"}


async def test_a_locked_agent_is_signed_in_as_the_settings_say(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path, FAKE_LOCKED="1")
    turn = await turn_of(session, "hello")
    assert turn.error is not None
    assert (turn.outcome, turn.error.code) == ("failed", "sign_in_required")
    assert "'auth' in [agents.acp.fake] of the settings to one of: key" in turn.error.message
    host = await open_host(fake_agent(tmp_path, settings={"auth": "key"}, env={"FAKE_LOCKED": "1"}))
    session = await host.get(session.id)
    assert (await turn_of(session, "hello")).outcome == "completed"


async def test_an_error_of_the_model_fails_the_turn_with_its_text(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    turn = await turn_of(session, steps(["error", -32603, "Internal error", {"details": "500 no such model"}]))
    assert turn.error is not None
    assert (turn.outcome, turn.error.code) == ("failed", "agent_failed")
    assert "500 no such model" in turn.error.message
    assert (await turn_of(session, "hello")).outcome == "completed"


@pytest.mark.parametrize(
    "refusal",
    [
        [-32000, "Authentication required"],
        [-32603, "Internal error", {"details": "401 no such key"}],
        [-32603, "You are not logged in"],
        [-32603, "Internal error", {"message": "Invalid API key"}],
    ],
)
async def test_a_missing_sign_in_has_one_code_and_is_remembered_until_it_works(
    open_host: HostOpener, tmp_path: Path, refusal: list[Any]
) -> None:
    agent = fake_agent(tmp_path, settings={"login": "fake login"})
    host = await open_host(agent)
    session = await host.start(by="test", cwd=str(tmp_path))
    turn = await turn_of(session, steps(["error", *refusal]))
    assert turn.error is not None
    assert (turn.error.code, turn.error.message.endswith("To sign in, run `fake login`.")) == (
        "sign_in_required",
        True,
    ), turn.error
    for known in (agent, fake_agent(tmp_path, settings={"login": "fake login"})):
        assert (await known.describe()).missing == turn.error.message
    assert (await turn_of(session, "hello")).outcome == "completed"
    assert (await agent.describe()).missing is None


async def test_the_end_of_a_turn_may_come_after_the_reply(open_host: HostOpener, tmp_path: Path) -> None:
    """As in the draft of version 2, where the reply is a mere acknowledgement."""
    session = await start(open_host, tmp_path)
    assert (await turn_of(session, steps(["text", "hi"], ["later"]))).outcome == "completed"


async def test_half_frames_noise_and_ten_megabytes_in_a_line(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    prompt = steps(["half", "whole "], ["raw", "Debugger attached.\n\n[1,2]\n"], ["big", 10_000_000], ["text", " end"])
    turn = await turn_of(session, prompt)
    text = said(turn)
    assert turn.outcome == "completed"
    assert (len(text), text[:7], text[-4:]) == (10_000_010, "whole x", " end")


async def test_a_flood_of_updates_arrives_whole_and_in_order(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    turn = await turn_of(session, steps(["flood", 5000]))
    assert said(turn).split() == [str(number) for number in range(5000)]


async def test_a_missing_program_is_told_with_what_to_do(open_host: HostOpener, tmp_path: Path) -> None:
    agent = fake_agent(tmp_path, settings={"command": ["no-such-agent"], "install": "get it"})
    info = await agent.describe()
    assert info.missing == "The program 'no-such-agent' is not on the PATH. Install it: get it."
    host = await open_host(agent)
    session = await host.start(by="test", agent="acp:fake", cwd=str(tmp_path))
    turn = await turn_of(session, "hello")
    assert turn.error is not None
    assert turn.error.code == "agent_unavailable"


def test_settings_are_checked_and_presets_filled_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs({}) == {}
    (tmp_path / "opencode").write_text("#!/bin/sh\n")
    (tmp_path / "opencode").chmod(0o755)
    assert list(programs({})) == ["opencode"]
    goose = programs({"acp": {"goose": {"env": {"A": "b"}}}})["goose"]
    assert (goose.command[0], goose.env) == ("goose", {"GOOSE_MODE": "approve", "A": "b"})
    assert "opencode" not in programs({"acp": {"opencode": {"enabled": False}}})
    # Those that would ask nobody of their own accord are told to.
    assert (PRESETS["codex"].mode, PRESETS["goose"].env["GOOSE_MODE"]) == ("read-only", "approve")
    asked = json.loads(PRESETS["opencode"].env["OPENCODE_PERMISSION"])
    assert (asked["*"], asked["external_directory"]) == ("ask", "ask")
    assert {"edit", "bash", "webfetch"}.isdisjoint(name for name, rule in asked.items() if rule == "allow")


def test_no_preset_passes_a_login_on() -> None:
    """Keys of a model's maker are passed on by name, to the programs that ask for just these; logins never."""
    vendors = {
        "claude": {"ANTHROPIC_API_KEY"},
        "codex": {"OPENAI_API_KEY", "CODEX_API_KEY"},
        "copilot": set(),
        "gemini": {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
        "goose": {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"},
        "opencode": {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"},
        "qwen": {"OPENAI_API_KEY", "DASHSCOPE_API_KEY"},
        "auggie": set(),
        "cline": set(),
        "cursor-agent": {"CURSOR_API_KEY"},
        "droid": {"FACTORY_API_KEY"},
        "junie": {"JUNIE_API_KEY"},
        "kilo": {"KILO_API_KEY"},
        "kimi": {"KIMI_API_KEY"},
        "qoder": set(),
        "vibe": {"MISTRAL_API_KEY"},
    }
    secret = re.compile("KEY|TOKEN|SECRET|AUTH|PASSWORD|CREDENTIAL")
    assert vendors == {name: set(filter(secret.search, each.pass_env)) for name, each in PRESETS.items()}


def test_wrong_settings_are_refused() -> None:
    wrong: dict[str, Any]
    for wrong in ({"acp": {"mine": {}}}, {"acp": {"mine": {"comand": ["x"]}}}, {"acp": 3}, {"acp": {"mine": 3}}):
        with pytest.raises(BadRequest):
            programs(wrong)


async def test_an_agent_that_switches_itself_to_asking_less_is_switched_back(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an agent reports decides over no approval: nor does the mode it says it is in now."""
    monkeypatch.setitem(KNOWN, "python", {"mode": {"ask": Autonomy.ASKS, "code": Autonomy.ASKS_NOBODY}})
    session = await start(open_host, tmp_path)
    turn = await turn_of(session, steps(["update", "current_mode_update", {"currentModeId": "code"}]))
    words = "The agent switched itself to mode 'code', which asks less; it was switched back to 'ask'."
    assert (said(turn, "notice"), session.state.config.get("mode")) == (words, None)
    assert json.loads(said(await turn_of(session, steps(["settings"])))) == {"session/set_mode": "ask"}
    audit = [record.event for record in await session.host.log.read(HOST) if isinstance(record.event, Audited)]
    assert [(each.action, each.detail["value"]) for each in audit] == [("approval.restored", "code")]


async def test_a_line_nested_without_end_is_no_end_of_the_connection(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    for deep in ("[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"method":' * 100_000):
        turn = await turn_of(session, steps(["raw", deep + "\n"], ["text", "still here"]))
        assert (turn.outcome, said(turn)) == ("completed", "still here")
