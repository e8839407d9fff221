"""The frames of `portico acp`, as an editor without an SDK sends and gets them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp.schema import (
    CancelRequestNotification,
    CreateFormSessionElicitationRequest,
    RequestPermissionRequest,
    SessionNotification,
)
from pydantic import BaseModel

from portico.client import Client
from portico.client.acp.agent import HostAgent
from portico.client.acp.editor import Editor
from portico.client.acp.open_session import OpenSession
from portico.client.acp.options import SessionOptions
from portico.client.acp.question import answers_of, choices, chosen, form_of
from portico.client.acp.versions import REQUIRED_2, VERSION_1, VERSIONS, Version, negotiated
from portico.features.client_servers.feature import ClientServers
from portico.kernel import events as e
from portico.kernel.events import ErrorInfo
from tests.client.test_acp import SCRIPT
from tests.doors.standing import Standing, standing
from tests.features import feature
from tests.process import PORTICO, environment

SENT: dict[str, type[BaseModel]] = {
    "session/update": SessionNotification,
    "session/request_permission": RequestPermissionRequest,
    "elicitation/create": CreateFormSessionElicitationRequest,
    "$/cancel_request": CancelRequestNotification,
}


def check(frame: dict[str, Any]) -> None:
    """What we send fits the official schema, without a field that it does not know."""
    if "method" in frame:
        model = SENT[frame["method"]].model_validate(frame["params"])
        dumped = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
        assert json.loads(json.dumps(dumped)) == frame["params"]


FORMS: dict[str, Any] = {"elicitation": {"form": {}}}


class Wire:
    """An editor that keeps every frame it gets."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.frames: list[dict[str, Any]] = []
        self.session = ""

    async def send(self, frame: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write((frame if isinstance(frame, str) else json.dumps(frame)).encode() + b"\n")
        await self._process.stdin.drain()

    async def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the first frame that fits, also an earlier one."""
        assert self._process.stdout is not None
        for frame in self.frames:
            if condition(frame):
                return frame
        async with asyncio.timeout(30):
            while line := await self._process.stdout.readline():
                self.frames.append(json.loads(line))
                check(self.frames[-1])
                if condition(self.frames[-1]):
                    return self.frames[-1]
        raise AssertionError(self.frames)

    async def ask(self, ident: Any, method: str, **params: Any) -> dict[str, Any]:
        await self.send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        return await self.until(lambda frame: "method" not in frame and frame.get("id") == ident)

    async def prompt(self, ident: Any, text: str) -> None:
        params = {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]}
        await self.send({"jsonrpc": "2.0", "id": ident, "method": "session/prompt", "params": params})

    async def asked(self, method: str) -> dict[str, Any]:
        return await self.until(lambda frame: frame.get("method") == method)

    def updates(self, *kinds: str) -> list[dict[str, Any]]:
        found = [each["params"]["update"] for each in self.frames if each.get("method") == "session/update"]
        return [each for each in found if each["sessionUpdate"] in kinds]

    def calls(self) -> dict[str, dict[str, Any]]:
        """The tool calls by their ids, their updates put together."""
        found: dict[str, dict[str, Any]] = {}
        for each in self.updates("tool_call", "tool_call_update"):
            found.setdefault(each["toolCallId"], {}).update(each)
        return found

    async def leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def answer(self, request: dict[str, Any], result: Any) -> None:
        await self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})


@asynccontextmanager
async def wire(
    folder: Path, capabilities: dict[str, Any] | None = None, script: str = SCRIPT
) -> AsyncIterator[tuple[Wire, Standing]]:
    path = folder / "script.yaml"
    path.write_text(script)
    async with standing(folder, script=path, agents=("scripted",)) as here:
        pipe, env = asyncio.subprocess.PIPE, environment(PORTICO_HOME=str(here.home.path))
        process = await asyncio.create_subprocess_exec(PORTICO, "acp", stdin=pipe, stdout=pipe, env=env)
        editor = Wire(process)
        try:
            await editor.ask("i", "initialize", protocolVersion=1, clientCapabilities=capabilities or {})
            made = await editor.ask("n", "session/new", cwd=str(folder), mcpServers=[])
            editor.session = made["result"]["sessionId"]
            yield editor, here
        finally:
            await editor.leave()


async def waiting(here: Standing, session: str, kind: str) -> str:
    """Return the id of the approval or question that waits."""
    host = await here.server.host.get(session)
    await host.wait_until(lambda state: state.status == "waiting")
    (part,) = host.state.turns[-1].open
    return part.approval.id if kind == "approval" else part.id  # type: ignore[union-attr]


async def test_a_permission_that_another_client_answers_is_withdrawn(tmp_path: Path) -> None:
    """The card of the editor stayed open for ever."""
    async with wire(tmp_path) as (editor, here):
        await editor.prompt(1, "write it")
        asked = await editor.asked("session/request_permission")
        await here.http.post(f"/v1/approvals/{await waiting(here, editor.session, 'approval')}", json={"allow": True})
        cancelled = await editor.asked("$/cancel_request")
        assert cancelled["params"] == {"requestId": asked["id"]}
        await editor.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32800, "message": "cancelled"}})
        done = await editor.until(lambda frame: frame.get("id") == 1 and "result" in frame)
        assert done["result"]["stopReason"] == "end_turn"


async def test_an_editor_withdraws_its_prompt(tmp_path: Path) -> None:
    async with wire(tmp_path) as (editor, here):
        await editor.prompt(1, "[[hang]]")
        await editor.until(lambda frame: "agent_thought_chunk" in json.dumps(frame))
        await editor.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}})
        answer = await editor.until(lambda frame: frame.get("id") == 1 and "error" in frame)
        assert answer["error"]["code"] == -32800
        host = await here.server.host.get(editor.session)
        await host.wait_until(lambda state: state.active is None)
        assert [turn.outcome for turn in host.state.turns] == ["cancelled"]


STRANGE: list[tuple[str, int]] = [
    ("7", -32600),
    ("null", -32600),
    ("[]", -32600),
    ('"text"', -32600),
    ("{}", -32600),
    ("{", -32700),
    ("[" * 100_000, -32700),
    ('{"id": 9, "method": 7}', -32600),
    ('{"id": 9, "method": "no/such"}', -32601),
    ('{"id": 9, "method": "session/new"}', -32602),
    ('{"id": 9, "method": "session/new", "params": [1]}', -32602),
]


async def test_a_strange_line_is_answered_and_ends_nothing(tmp_path: Path) -> None:
    """A line that was not an object ended the process."""
    async with wire(tmp_path) as (editor, _):
        for line, code in STRANGE:
            editor.frames.clear()
            await editor.send(line)
            answer = await editor.until(lambda frame: "error" in frame)
            assert answer["error"]["code"] == code, line[:40]
        for ignored in ('{"method": "no/such"}', '{"id": 77, "result": {}}', '{"method": "$/cancel_request"}'):
            await editor.send(ignored)
        assert "result" in await editor.ask("l", "session/list")


@pytest.mark.parametrize(
    ("reply", "response", "answers"),
    [
        ({"action": "accept", "content": {"which": "b"}}, "accept", {"which": "b"}),
        ({"action": "decline"}, "decline", {}),
    ],
)
async def test_a_question_is_a_form_where_the_editor_has_forms(
    tmp_path: Path, reply: dict[str, Any], response: str, answers: dict[str, Any]
) -> None:
    async with wire(tmp_path, FORMS) as (editor, here):
        await editor.prompt(1, "choose")
        asked = await editor.asked("elicitation/create")
        options = [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]
        assert asked["params"] == {
            "sessionId": editor.session,
            "message": "Which one?",
            "mode": "form",
            "requestedSchema": {
                "type": "object",
                "properties": {"which": {"type": "string", "title": "Which", "oneOf": options}},
            },
        }
        await editor.answer(asked, reply)
        await editor.until(lambda frame: frame.get("id") == 1)
        part: Any = (await here.server.host.get(editor.session)).state.turns[-1].parts[0]
        assert (part.response, part.answers) == (response, answers)


async def test_a_form_that_another_client_answers_is_withdrawn(tmp_path: Path) -> None:
    async with wire(tmp_path, FORMS) as (editor, here):
        await editor.prompt(1, "ask")
        asked = await editor.asked("elicitation/create")
        assert asked["params"]["requestedSchema"]["required"] == ["answer"]
        question = await waiting(here, editor.session, "question")
        await here.http.post(f"/v1/questions/{question}", json={"text": "this"})
        assert (await editor.asked("$/cancel_request"))["params"] == {"requestId": asked["id"]}


async def listed(here: Standing) -> list[str]:
    return [each["id"] for each in (await here.http.get("/v1/sessions")).json()["sessions"]]


async def test_a_session_without_a_message_is_not_listed_and_goes_with_its_editor(tmp_path: Path) -> None:
    """Every editor that was opened left an empty session in all lists."""
    async with wire(tmp_path) as (editor, here):
        assert await listed(here) == []
        await editor.ask("again", "session/load", sessionId=editor.session, cwd=str(tmp_path), mcpServers=[])
        other = (await editor.ask("n2", "session/new", cwd=str(tmp_path), mcpServers=[]))["result"]["sessionId"]
        await editor.prompt(1, "[[say:hi]]")
        await editor.until(lambda frame: frame.get("id") == 1)
        assert await listed(here) == [editor.session]
        await editor.ask("c", "session/close", sessionId=other)
        assert [each.id for each in here.server.host.list(drafts=True)] == [editor.session]
        await editor.ask("n3", "session/new", cwd=str(tmp_path), mcpServers=[])
        await editor.leave()
        assert [each.id for each in here.server.host.list(drafts=True)] == [editor.session]


async def test_a_session_is_deleted_and_deleting_it_again_is_no_error(tmp_path: Path) -> None:
    async with wire(tmp_path) as (editor, here):
        await editor.prompt(1, "[[say:hi]]")
        await editor.until(lambda frame: frame.get("id") == 1)
        for ident in ("d1", "d2"):
            assert (await editor.ask(ident, "session/delete", sessionId=editor.session))["result"] == {}
        assert await listed(here) == []


async def test_more_folders_are_those_of_the_session(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    async with wire(tmp_path) as (editor, here):
        one, two = (str(tmp_path / name) for name in ("one", "two"))
        made = await editor.ask("m", "session/new", cwd=str(tmp_path), mcpServers=[], additionalDirectories=[one])
        session = made["result"]["sessionId"]
        assert (await here.server.host.get(session)).state.folders == [one]
        folders = {"additionalDirectories": [one, two], "cwd": str(tmp_path), "mcpServers": []}
        await editor.ask("l", "session/load", sessionId=session, **folders)
        assert (await here.server.host.get(session)).state.folders == [one, two]
        wrong = await editor.ask("w", "session/new", cwd=str(tmp_path), mcpServers=[], additionalDirectories=["x"])
        assert wrong["error"]["code"] == -32602


QUESTIONS: dict[str, tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "free text": ([], {"answer": {"type": "string", "title": "Answer"}}, {"answer": "x"}, {"answer": "x"}),
    "a number": (
        [{"id": "n", "kind": "number", "title": "Port", "message": "Which port?"}],
        {"n": {"type": "number", "title": "Port", "description": "Which port?"}},
        {"n": 80},
        {"n": 80},
    ),
    "yes or no": ([{"id": "b", "kind": "boolean"}], {"b": {"type": "boolean", "title": "b"}}, {"b": True}, {"b": True}),
    "several": (
        [{"id": "m", "kind": "multi-select", "options": [{"id": "x"}]}],
        {"m": {"type": "array", "title": "m", "items": {"anyOf": [{"const": "x", "title": "x"}]}}},
        {"m": ["x"]},
        {"m": ["x"]},
    ),
    "options, or a text": (
        [{"id": "o", "kind": "single-select", "options": [{"id": "x"}], "allowFreeformInput": True, "required": True}],
        {
            "o": {"type": "string", "title": "o", "oneOf": [{"const": "x", "title": "x"}]},
            "o_other": {"type": "string", "title": "Another answer"},
        },
        {"o": "x", "o_other": "mine"},
        {"o": "mine"},
    ),
}


@pytest.mark.parametrize(("fields", "properties", "content", "answers"), QUESTIONS.values(), ids=QUESTIONS)
def test_the_form_of_a_question(
    fields: list[dict[str, Any]], properties: dict[str, Any], content: dict[str, Any], answers: dict[str, Any]
) -> None:
    form = form_of("session-1", "Well?", fields)
    CreateFormSessionElicitationRequest.model_validate(form)
    assert form["requestedSchema"]["properties"] == properties
    assert answers_of(fields, content) == answers


SELECT = {"id": "s", "kind": "single-select", "options": [{"id": "x", "label": "X"}]}


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ([SELECT], [["X"]]),
        ([{"id": "b", "kind": "boolean"}], [["Yes", "No"]]),
        ([SELECT, {"id": "b", "kind": "boolean", "required": True}], [["X", "Skip"], ["Yes", "No"]]),
        ([SELECT, {"id": "t", "kind": "text"}], None),
        ([], None),
    ],
)
def test_the_choices_of_a_question_without_forms(fields: list[dict[str, Any]], names: list[list[str]] | None) -> None:
    found = choices(fields)
    shown = None if found is None else [[option.name for option in options] for _, options in found]
    assert shown == names


@pytest.mark.parametrize(
    ("field", "option", "answer"),
    [
        (SELECT, "x", {"state": "submitted", "value": {"kind": "selected", "value": "x"}}),
        ({"kind": "boolean"}, "false", {"state": "submitted", "value": {"kind": "boolean", "value": False}}),
        (SELECT, "portico:skip", {"state": "skipped"}),
    ],
)
def test_the_answer_by_a_choice(field: dict[str, Any], option: str, answer: dict[str, Any]) -> None:
    assert chosen(field, option) == answer


async def test_a_command_is_a_terminal_where_the_editor_shows_them(tmp_path: Path) -> None:
    async with wire(tmp_path, {"_meta": {"terminal_output": True}}) as (editor, here):
        await here.http.patch(f"/v1/sessions/{editor.session}", json={"config": {"approvals": "allow"}})
        await editor.prompt(1, "run it")
        await editor.until(lambda frame: frame.get("id") == 1)
        calls = [
            frame["params"]["update"]
            for frame in editor.frames
            if frame.get("method") == "session/update" and "toolCallId" in frame["params"]["update"]
        ]
        ident = calls[0]["toolCallId"]
        assert calls[0]["content"] == [{"type": "terminal", "terminalId": ident}]
        meta = [each["_meta"] for each in calls if "_meta" in each]
        assert meta[0]["terminal_info"]["terminal_id"] == ident
        assert "".join(each["terminal_output"]["data"] for each in meta if "terminal_output" in each) == "one\ntwo\n"
        assert meta[-1]["terminal_exit"] == {"terminal_id": ident, "exit_code": 0, "signal": None}


SUB = """
rules:
  - match: ^delegate
    steps:
      - do: spawn
        prompt: count
        title: Counter
        steps:
          - {do: say, text: "One, two. "}
          - {do: write, path: b.txt, text: "hello\\n"}
          - {do: say, text: Three.}
"""


async def test_a_sub_agent_is_shown_and_asks_in_its_call(tmp_path: Path) -> None:
    """An editor saw nothing of a sub-agent, and was not asked for its approvals."""
    async with wire(tmp_path, script=SUB) as (editor, _):
        await editor.prompt(1, "delegate it")
        asked = await editor.asked("session/request_permission")
        (call,) = editor.calls()
        assert asked["params"]["toolCall"]["toolCallId"] == call
        assert asked["params"]["toolCall"]["content"][0]["newText"] == "hello\n"
        allow = next(each for each in asked["params"]["options"] if each["kind"] == "allow_once")
        await editor.answer(asked, {"outcome": {"outcome": "selected", "optionId": allow["optionId"]}})
        await editor.until(lambda frame: frame.get("id") == 1)
        live = editor.calls()[call]
        assert "One, two." in json.dumps(live)
        assert "Three." in json.dumps(live)
        editor.frames.clear()
        await editor.ask("l", "session/load", sessionId=editor.session, cwd=str(tmp_path), mcpServers=[])
        loaded = editor.calls()[call]
        assert {key: loaded[key] for key in ("status", "content")} == {key: live[key] for key in ("status", "content")}


async def test_usage_is_reported_live_and_in_the_answer(tmp_path: Path) -> None:
    script = """
providers: [{id: scripted, name: Scripted, models: [{id: big, name: Big, context: 1000}]}]
rules: [{match: ^count, steps: [{do: usage, input: 100, output: 20, cost: 0.5}, {do: say, text: done}]}]
"""
    async with wire(tmp_path, script=script) as (editor, _):
        await editor.prompt(1, "count")
        done = await editor.until(lambda frame: frame.get("id") == 1)
        used = {"totalTokens": 120, "inputTokens": 100, "outputTokens": 20}
        assert done["result"] == {"stopReason": "end_turn", "usage": used}
        (update,) = editor.updates("usage_update")
        cost = {"amount": 0.5, "currency": "USD"}
        assert update == {"sessionUpdate": "usage_update", "used": 120, "size": 1000, "cost": cost}


async def test_the_failed_turn_of_another_client_is_shown_with_its_reason(tmp_path: Path) -> None:
    async with wire(tmp_path) as (editor, here):
        body = {
            "text": "fail",
            "attachments": [{"type": "embeddedResource", "data": "aGk=", "contentType": "image/png"}],
        }
        await here.http.post(f"/v1/sessions/{editor.session}/messages", json=body)
        await editor.until(lambda frame: "it broke" in json.dumps(frame))
        assert [each["content"]["type"] for each in editor.updates("user_message_chunk")] == ["text", "image"]
        live = editor.updates("user_message_chunk", "agent_message_chunk")
        editor.frames.clear()
        await editor.ask("l", "session/load", sessionId=editor.session, cwd=str(tmp_path), mcpServers=[])
        assert editor.updates("user_message_chunk", "agent_message_chunk") == live


async def test_agent_and_model_are_chosen_in_the_editor(tmp_path: Path) -> None:
    script = """
providers:
  - {id: scripted, name: Scripted, models: [{id: big, name: Big}]}
  - {id: other, name: Other, models: [{id: small, name: Small}, {id: tiny, name: Tiny}]}
rules: [{match: "", steps: [{do: say, text: "I am {agent}"}]}]
"""
    async with wire(tmp_path, script=script) as (editor, here):
        choose = {"sessionId": editor.session, "configId": "portico.agent"}
        answer = await editor.ask("o", "session/set_config_option", **choose, value="other")
        options = {each["id"]: each["currentValue"] for each in answer["result"]["configOptions"]}
        assert (options["portico.agent"], options["model"]) == ("other", "small")
        await editor.ask("m", "session/set_config_option", sessionId=editor.session, configId="model", value="tiny")
        await editor.prompt(1, "hello")
        await editor.until(lambda frame: frame.get("id") == 1)
        state = (await here.server.host.get(editor.session)).state
        assert (state.agent, state.model, state.turns[-1].outcome) == ("other", "tiny", "completed")
        wrong = await editor.ask("w", "session/set_config_option", **choose, value="none")
        assert wrong["error"]["code"] == -32602


async def test_the_mcp_servers_of_the_editor_are_those_of_its_sessions(tmp_path: Path) -> None:
    tickets = {"name": "tickets", "command": "/bin/true", "args": ["-v"], "env": [{"name": "KEY", "value": "1"}]}
    remote = {"type": "http", "name": "remote", "url": "http://127.0.0.1:9/mcp", "headers": []}
    async with wire(tmp_path) as (editor, here):
        servers = feature(here.server.host, ClientServers)
        made = await editor.ask("s", "session/new", cwd=str(tmp_path), mcpServers=[tickets, remote])
        found = servers.of(made["result"]["sessionId"])
        assert [(name, each.command, each.env, each.url) for name, each in found.items()] == [
            ("tickets", ["/bin/true", "-v"], {"KEY": "1"}, ""),
            ("remote", [], {}, "http://127.0.0.1:9/mcp"),
        ]
        assert servers.of(editor.session) == {}
        where = {"sessionId": editor.session, "cwd": str(tmp_path)}
        await editor.ask("l", "session/load", **where, mcpServers=[remote])
        await editor.ask("r", "session/resume", **where)
        assert [*servers.of(editor.session)] == ["remote"], "an editor without servers leaves those of another"


STOPS: list[tuple[e.TurnEnded, str]] = [
    (e.TurnEnded("t", "completed"), "end_turn"),
    (e.TurnEnded("t", "completed", stop="max_tokens"), "max_tokens"),
    (e.TurnEnded("t", "completed", stop="max_turn_requests"), "max_turn_requests"),
    (e.TurnEnded("t", "completed", stop="refusal"), "refusal"),
    (e.TurnEnded("t", "failed", ErrorInfo("agent_failed", "The model refused to answer."), stop="refusal"), "refusal"),
    (e.TurnEnded("t", "cancelled", stop="max_tokens"), "cancelled"),
]


@pytest.mark.parametrize(("event", "reason"), STOPS)
async def test_why_a_prompt_ended(event: e.TurnEnded, reason: str) -> None:
    client = Client("http://127.0.0.1:9")
    session = OpenSession(Editor(Silent()), client, "s", SessionOptions([], "a", "m", {}))
    waiting = session._waiting["t"] = asyncio.get_running_loop().create_future()
    await session._take(event)
    assert (await waiting).stop_reason == reason
    await client.close()


class Silent:
    async def request(self, method: str, params: dict[str, Any]) -> Any:
        raise AssertionError(method)

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        pass


# -- versions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [-1, 0, 1, 2, 65535])
def test_the_newest_common_version_is_answered(asked: int) -> None:
    assert negotiated(asked) is VERSION_1


def test_a_second_version_is_an_entry_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    second = Version(2, VERSION_1.requests, VERSION_1.notifications, VERSION_1.capabilities, REQUIRED_2)
    monkeypatch.setitem(VERSIONS, 2, second)
    assert [negotiated(each).number for each in (0, 1, 2, 3)] == [1, 1, 2, 2]


@pytest.mark.parametrize("method", sorted(REQUIRED_2))
def test_a_version_has_what_it_requires(method: str) -> None:
    rest = {name: each for name, each in VERSION_1.requests.items() if name != method}
    with pytest.raises(TypeError, match=method):
        Version(2, rest, VERSION_1.notifications, VERSION_1.capabilities, REQUIRED_2)


@pytest.mark.parametrize("version", VERSIONS.values(), ids=lambda version: str(version.number))
def test_every_method_of_a_version_exists(version: Version) -> None:
    for method in [*version.requests.values(), *version.notifications.values()]:
        assert callable(getattr(HostAgent, method.attr))
