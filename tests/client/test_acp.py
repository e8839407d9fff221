"""`portico acp`: the official SDK as the editor, the real command as its agent, a real host behind it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import RequestError
from acp.client.connection import ClientSideConnection
from acp.schema import AllowedOutcome, DeniedOutcome, McpServerStdio, PermissionOption, RequestPermissionResponse

from portico.client import Client
from portico.kernel import commands as c
from portico.kernel.events import Message, SessionConfigured
from tests.doors.standing import Standing, standing
from tests.process import PORTICO, HostProcess, environment, portico

SCRIPT = """
providers:
  - id: scripted
    name: Scripted
    config: {properties: {mode: {type: string, enum: [plan, build]}, flavour: {type: string, enum: [sweet, sour]}}}
    models: [{id: big, name: Big}, {id: small, name: Small}]
    completions: {"/": [{value: review, label: Review}]}
rules:
  - match: ^write
    steps:
      - {do: write, path: a.txt, text: "hello\\n"}
      - {do: say, text: done}
  - match: ^run
    steps:
      - do: tool
        name: shell
        kind: execute
        title: Run make
        input: {command: make}
        partial: ["one\\n", "two\\n"]
        output: "all\\n"
      - {do: say, text: built}
  - match: ^choose
    steps:
      - do: ask
        text: Which one?
        fields: [{id: which, kind: single-select, message: Which, options: [{id: a, label: A}, {id: b, label: B}]}]
        echo: true
  - match: ^ask
    steps:
      - {do: ask, text: "What now?", echo: true}
  - match: ^fail
    steps:
      - {do: fail, message: it broke}
"""


class Editor:
    """The client's side: it keeps what it is told, and answers as the test says."""

    def __init__(self) -> None:
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[tuple[Any, list[PermissionOption]]] = []
        self.choose: Callable[[list[PermissionOption]], str | None] | None = None
        self._changed = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append((session_id, update))
        self._changed.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self._changed.set()
        if self.choose is None:
            await asyncio.Event().wait()  # a person who thinks
        assert self.choose is not None
        chosen = self.choose(options)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    def on_connect(self, conn: Any) -> None:
        pass

    def forget(self) -> None:
        """Another test begins."""
        self.updates.clear()
        self.asked.clear()
        self.choose = None

    async def until(self, condition: Callable[[], Any]) -> Any:
        async with asyncio.timeout(30):
            while not (found := condition()):
                self._changed.clear()
                await self._changed.wait()
        return found

    def kinds(self) -> list[str]:
        return [update.session_update for _, update in self.updates]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update.content.text for _, update in self.updates if update.session_update == kind)

    def call(self) -> dict[str, Any]:
        """The last tool call, its updates put together."""
        found: dict[str, Any] = {}
        for _, update in self.updates:
            if update.session_update == "tool_call":
                found = update.model_dump(exclude_none=True)
            elif update.session_update == "tool_call_update":
                found |= update.model_dump(exclude_none=True)
        return found


def allow(options: list[PermissionOption]) -> str:
    return next(each.option_id for each in options if each.kind == "allow_once")


def reject(options: list[PermissionOption]) -> str:
    return next(each.option_id for each in options if each.kind == "reject_once")


@asynccontextmanager
async def editing(home: Path, *args: str) -> AsyncIterator[tuple[ClientSideConnection, Editor]]:
    editor = Editor()
    env = environment(PORTICO_HOME=str(home))
    async with acp.spawn_agent_process(
        editor,  # type: ignore[arg-type]
        PORTICO,
        "acp",
        *args,
        env=env,
        use_unstable_protocol=True,
    ) as (agent, _):
        yield agent, editor


class Desk:
    """An editor, its agent, the host behind it, and a session."""

    def __init__(self, here: Standing, agent: ClientSideConnection, editor: Editor, folder: Path) -> None:
        self.here = here
        self.agent = agent
        self.editor = editor
        self.folder = folder
        self.session = ""

    async def say(self, text: str) -> str:
        async with asyncio.timeout(30):
            answer = await self.agent.prompt(session_id=self.session, prompt=[acp.text_block(text)])
        return answer.stop_reason

    async def state(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.here.http.get(f"/v1/sessions/{self.session}")).json()
        return found

    async def waiting(self) -> str:
        """The approval or question that waits in the host."""
        state = await self.state()
        for part in state["turns"][-1]["parts"]:
            waits = [each["id"] for each in part.get("approvals", []) if not each.get("answered")]
            if waits or (part["part"] == "question" and part.get("response") is None):
                return str(waits[0] if waits else part["id"])
        raise AssertionError(state)


Running = tuple[Standing, ClientSideConnection, Editor]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Of the module, so that the host and the editor's agent are started once."""
    return "asyncio"


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    folder = tmp_path_factory.mktemp("acp")
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    async with (
        standing(folder, script=script, agents=("scripted",)) as here,
        editing(here.home.path) as (agent, editor),
    ):
        await agent.initialize(protocol_version=1)
        yield here, agent, editor


@pytest.fixture
async def desk(running: Running, tmp_path: Path) -> Desk:
    here, agent, editor = running
    made = Desk(here, agent, editor, tmp_path)
    made.session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
    editor.forget()
    return made


async def test_what_it_can_do_is_said_at_the_beginning(desk: Desk) -> None:
    told = (await desk.agent.initialize(protocol_version=1)).model_dump(exclude_none=True)
    assert (told["protocol_version"], told["agent_info"]["name"]) == (1, "portico")
    can = told["agent_capabilities"]
    assert can["load_session"] is True
    assert sorted(can["session_capabilities"]) == [
        "additional_directories",
        "close",
        "delete",
        "fork",
        "list",
        "resume",
    ]


async def test_a_prompt_streams_and_stands_beside_the_other_doors(desk: Desk) -> None:
    assert await desk.say("[[say:Hello there]]") == "end_turn"
    assert desk.editor.text().strip() == "Hello there"
    assert "user_message_chunk" not in desk.editor.kinds(), "the editor has shown what it sent"
    state = await desk.state()
    assert (state["cwd"], [turn["outcome"] for turn in state["turns"]]) == (str(desk.folder), ["completed"])


async def test_a_tool_call_with_its_output(desk: Desk) -> None:
    desk.editor.choose = allow
    assert await desk.say("run it") == "end_turn"
    call = desk.editor.call()
    assert (call["title"], call["kind"], call["status"], call["raw_input"]) == (
        "Run make",
        "execute",
        "completed",
        {"command": "make"},
    )
    assert call["content"][-1]["content"]["text"] == "all\n"


@pytest.mark.parametrize(("choose", "status", "written"), [(allow, "completed", True), (reject, "failed", False)])
async def test_permission(desk: Desk, choose: Any, status: str, written: bool) -> None:
    desk.editor.choose = choose
    await desk.say("write it")
    ((call, options),) = desk.editor.asked
    (diff,) = call.content
    assert (diff.type, diff.path, diff.old_text, diff.new_text) == ("diff", str(desk.folder / "a.txt"), None, "hello\n")
    assert [each.path for each in call.locations] == [diff.path]
    assert {each.kind for each in options} >= {"allow_once", "allow_always", "reject_once"}
    assert (desk.editor.call()["status"], (desk.folder / "a.txt").exists()) == (status, written)


async def test_somebody_else_may_answer_first(desk: Desk) -> None:
    saying = asyncio.ensure_future(desk.say("write it"))
    await desk.editor.until(lambda: desk.editor.asked)
    answer = await desk.here.http.post(f"/v1/approvals/{await desk.waiting()}", json={"allow": True})
    assert answer.status_code == 200, answer.text
    assert await saying == "end_turn"
    assert (desk.folder / "a.txt").read_text() == "hello\n"


async def test_cancel(desk: Desk) -> None:
    """A message of this editor that waited behind its own began when the first was cancelled, and was done."""
    saying = asyncio.ensure_future(desk.say("[[hang]]"))
    await desk.editor.until(lambda: "agent_thought_chunk" in desk.editor.kinds())
    behind = asyncio.ensure_future(desk.say("[[say:later]]"))
    host = await desk.here.server.host.get(desk.session)
    await host.wait_until(lambda state: bool(state.queue))
    await desk.agent.cancel(session_id=desk.session)
    assert [await saying, await behind] == ["cancelled", "cancelled"]
    assert [turn["outcome"] for turn in (await desk.state())["turns"]] == ["cancelled"]


REFUSED: list[tuple[str, dict[str, Any], int]] = [
    ("new_session", {"cwd": "relative", "mcp_servers": []}, -32602),
    ("new_session", {"cwd": "/no/such/folder", "mcp_servers": []}, -32602),
    ("load_session", {"cwd": "/", "session_id": "none", "mcp_servers": []}, -32002),
    ("resume_session", {"cwd": "/", "session_id": "none"}, -32002),
    ("fork_session", {"cwd": "/", "session_id": "none"}, -32002),
    ("prompt", {"session_id": "none", "prompt": [acp.text_block("x")]}, -32002),
    ("prompt", {"session_id": "{session}", "prompt": []}, -32602),
    ("set_session_mode", {"session_id": "{session}", "mode_id": "none"}, -32602),
    ("set_config_option", {"session_id": "{session}", "config_id": "none", "value": "x"}, -32602),
]


@pytest.mark.parametrize(("method", "params", "code"), REFUSED)
async def test_what_is_refused_has_the_code_that_editors_know(
    desk: Desk, method: str, params: dict[str, Any], code: int
) -> None:
    """Whatever was wrong with a request came as an internal error."""
    given = {name: desk.session if value == "{session}" else value for name, value in params.items()}
    with pytest.raises(RequestError) as caught:
        await getattr(desk.agent, method)(**given)
    assert caught.value.code == code


async def test_a_prompt_waits_behind_another_door_and_can_be_taken_back(desk: Desk) -> None:
    await desk.here.http.post(f"/v1/sessions/{desk.session}/messages", json={"text": "[[hang]]"})
    await desk.editor.until(lambda: "user_message_chunk" in desk.editor.kinds())
    assert desk.editor.text("user_message_chunk") == "[[hang]]", "what others say is shown here"
    saying = asyncio.ensure_future(desk.say("[[say:later]]"))
    host = await desk.here.server.host.get(desk.session)
    await host.wait_until(lambda state: bool(state.queue))
    await desk.agent.cancel(session_id=desk.session)
    assert await saying == "cancelled"
    assert (host.state.queue, host.running is not None) == ([], True), "the other's turn goes on"
    saying = asyncio.ensure_future(desk.say("[[say:later]]"))
    await host.wait_until(lambda state: bool(state.queue))
    await host.cancel(by="test")
    await host.queue.release(by="test")
    assert await saying == "end_turn"


async def test_a_failure_is_an_error_that_says_why(desk: Desk) -> None:
    with pytest.raises(RequestError, match="it broke"):
        await desk.say("fail please")
    assert await desk.say("[[say:well]]") == "end_turn"


async def test_a_session_is_loaded_with_its_history(desk: Desk) -> None:
    host = await desk.here.server.host.start(by="test", cwd=str(desk.folder))
    await host.do(c.ConfigureSession(session=host.id, values={"approvals": "allow"}), "test")
    await host.wait(await host.send(Message("run it"), by="test"))
    await host.close(by="test")
    await desk.agent.load_session(cwd=str(desk.folder), session_id=host.id, mcp_servers=[])
    own = [update for session, update in desk.editor.updates if session == host.id]
    assert own[0].session_update == "user_message_chunk"
    assert desk.editor.text() == "built"
    assert desk.editor.call()["status"] == "completed"
    answer = await desk.agent.prompt(session_id=host.id, prompt=[acp.text_block("[[say:on]]")])
    assert (answer.stop_reason, host.state.closed) == ("end_turn", False)


async def test_what_waits_is_asked_when_a_session_is_loaded(desk: Desk) -> None:
    host = await desk.here.server.host.start(by="test", cwd=str(desk.folder))
    turn = await host.send(Message("write it"), by="test")
    await host.wait_until(lambda state: desk.here.server.host.list()[0].status == "waiting")
    desk.editor.choose = allow
    await desk.agent.load_session(cwd=str(desk.folder), session_id=host.id, mcp_servers=[])
    assert (await host.wait(turn)).outcome == "completed"


async def test_modes_and_options(desk: Desk) -> None:
    made = await desk.agent.new_session(cwd=str(desk.folder), mcp_servers=[])
    assert made.modes is not None
    assert [each.id for each in made.modes.available_modes] == ["plan", "build"]
    options = {each.id: each.current_value for each in made.config_options or []}
    assert options == {"model": "big", "mode": "plan", "flavour": "sweet", "approvals": "ask", "sandbox": "off"}
    await desk.agent.set_session_mode(session_id=desk.session, mode_id="build")
    await desk.agent.set_config_option(config_id="model", session_id=desk.session, value="small")
    state = await desk.state()
    assert (state["config"]["mode"], state["model"]) == ("build", "small")
    with pytest.raises(RequestError, match="Should be one of 'plan', 'build', not 'none'"):
        await desk.agent.set_session_mode(session_id=desk.session, mode_id="none")
    desk.editor.updates.clear()
    await desk.here.http.patch(f"/v1/sessions/{desk.session}", json={"config": {"mode": "plan"}})
    changed = await desk.editor.until(
        lambda: [u for _, u in desk.editor.updates if u.session_update == "current_mode_update"]
    )
    assert changed[0].current_mode_id == "plan", "another door has changed it"


async def test_commands_are_offered_and_offered_anew(desk: Desk) -> None:
    """An editor knew no `/` command of the agent behind the host."""

    def offered() -> list[list[tuple[str, str]]]:
        found = [each for _, each in desk.editor.updates if each.session_update == "available_commands_update"]
        return [[(command.name, command.description) for command in each.available_commands] for each in found]

    await desk.agent.load_session(cwd=str(desk.folder), session_id=desk.session, mcp_servers=[])
    await desk.editor.until(lambda: [("review", "Review")] in offered())
    told = SessionConfigured(values={"commands": [{"name": "compact", "description": "Make it short"}]}, by="agent")
    await desk.here.server.host.log.append(f"session/{desk.session}", told)
    await desk.editor.until(lambda: offered()[-1] == [("review", "Review"), ("compact", "Make it short")])


async def test_list_fork_resume_and_close(desk: Desk) -> None:
    await desk.say("[[say:one]]")
    listed = await desk.agent.list_sessions(cwd=str(desk.folder))
    assert [(each.session_id, each.cwd) for each in listed.sessions] == [(desk.session, str(desk.folder))]
    assert (await desk.agent.list_sessions(cwd="/elsewhere")).sessions == []
    fork = await desk.agent.fork_session(session_id=desk.session, cwd=str(desk.folder), mcp_servers=[])
    answer = await desk.agent.prompt(session_id=fork.session_id, prompt=[acp.text_block("[[say:two]]")])
    assert answer.stop_reason == "end_turn"
    await desk.agent.close_session(session_id=desk.session)
    desk.editor.updates.clear()
    await desk.agent.resume_session(session_id=desk.session, cwd=str(desk.folder), mcp_servers=[])
    assert await desk.say("[[say:three]]") == "end_turn"
    assert "user_message_chunk" not in desk.editor.kinds(), "a resumed session is not told again"
    with pytest.raises(RequestError, match="no session 'nope'") as caught:
        await desk.agent.load_session(cwd=str(desk.folder), session_id="nope", mcp_servers=[])
    assert caught.value.code == -32002


async def test_a_question_with_choices_is_put_as_one(desk: Desk) -> None:
    desk.editor.choose = lambda options: options[1].option_id
    assert await desk.say("choose") == "end_turn"
    assert [each.name for each in desk.editor.asked[0][1]] == ["A", "B"]
    question = (await desk.state())["turns"][-1]["parts"][0]
    assert question["answers"]["which"]["value"]["value"] == "b"


async def test_any_other_question_is_answered_at_another_door(desk: Desk) -> None:
    saying = asyncio.ensure_future(desk.say("ask"))
    await desk.editor.until(lambda: "session.html" in desk.editor.text())
    assert "What now?" in desk.editor.text()
    await desk.here.http.post(f"/v1/questions/{await desk.waiting()}", json={"text": "this"})
    assert await saying == "end_turn"


async def test_attachments(desk: Desk) -> None:
    blocks: list[Any] = [
        acp.text_block("[[say:seen]]"),
        acp.resource_link_block("a.txt", f"file://{desk.folder}/a.txt"),
        acp.resource_block(acp.embedded_text_resource("untitled:1", "unsaved")),
        acp.image_block("aGk=", "image/png"),
    ]
    await desk.agent.prompt(session_id=desk.session, prompt=blocks)
    sent = (await desk.state())["turns"][-1]["message"]
    assert sent["text"] == "[[say:seen]]"
    assert [each["type"] for each in sent["attachments"]] == ["resource", "embeddedResource", "embeddedResource"]


def test_without_a_host_it_says_so(tmp_path: Path) -> None:
    done = portico(tmp_path / "home", "acp")
    assert (done.returncode, done.stdout) == (69, "")
    assert "Start one with: portico serve" in done.stderr


async def test_a_killed_host_is_waited_for(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with HostProcess(home) as host:
        async with editing(home, "--agent", "scripted") as (agent, editor):
            await agent.initialize(protocol_version=1)
            session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
            saying = asyncio.ensure_future(agent.prompt(session_id=session, prompt=[acp.text_block("[[hang]]")]))
            await editor.until(lambda: "agent_thought_chunk" in editor.kinds())
            await asyncio.to_thread(host.kill)
            again = await asyncio.to_thread(HostProcess, home)
            try:
                with pytest.raises(RequestError) as caught:
                    await saying
                assert caught.value.data == {"outcome": "interrupted"}
                answer = await agent.prompt(session_id=session, prompt=[acp.text_block("[[say:back]]")])
                assert answer.stop_reason == "end_turn"
            finally:
                await asyncio.to_thread(again.stop)


async def test_the_servers_of_the_editor_survive_a_restart_of_the_host(tmp_path: Path) -> None:
    """The host keeps them in memory, as they contain secrets. They were missing until the editor opened the session."""
    home = tmp_path / "home"
    tickets = McpServerStdio(name="tickets", command="true", args=[], env=[])
    host = await asyncio.to_thread(HostProcess, home)
    try:
        async with editing(home, "--agent", "scripted") as (agent, _):
            await agent.initialize(protocol_version=1)
            session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[tickets])).session_id
            given = []
            for _ in range(2):
                for _ in range(2):
                    await agent.prompt(session_id=session, prompt=[acp.text_block("[[say:hello]]")])
                async with Client.local(home) as client:
                    given.append((await client.call("GET", "/v1/audit")).count(b'"session.servers"'))
                await asyncio.to_thread(host.kill)
                host = await asyncio.to_thread(HostProcess, home)
            assert given == [1, 2], "once per start of the host"
    finally:
        await asyncio.to_thread(host.stop)
