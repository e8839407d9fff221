"""An agent drives agents: the official MCP client against our door, with the owner's token and with a smaller one."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from portico.kernel.commands import SCOPES
from portico.kernel.state import QuestionPart
from portico.server.identity import new_token
from tests.doors.standing import Standing, standing
from tests.jobs.playing import make, ok, until_ended

ANSWERING = ("answer_approval", "answer_question")
RULES = """
rules:
  - match: write
    steps:
      - {do: write, path: a.txt, text: "hello"}
      - {do: say, text: "Wrote {written}."}
  - match: ask
    steps:
      - {do: ask, text: "Colour?"}
  - match: form
    steps:
      - {do: ask, text: "Which?", fields: [{id: colour, kind: text, message: Colour, required: true}]}
  - match: two
    steps:
      - do: ask
        text: "Which?"
        fields: [{id: a, kind: text, message: A, required: true}, {id: b, kind: text, message: B, required: true}]
  - match: first
    steps:
      - {do: say, text: "One two three four five.", deltas: 10, gap: 30}
  - match: slow
    steps:
      - {do: say, text: "wait"}
      - {do: hang}
  - match: ""
    steps:
      - {do: say, text: "You said {prompt}."}
"""


@asynccontextmanager
async def driving(folder: Path) -> AsyncIterator[tuple[Standing, Client]]:
    script = folder / "script.yaml"
    script.write_text(RULES)
    async with (
        standing(folder, agents=("scripted",), script=script) as here,
        connected(here, new_token(here.home, "helper", list(SCOPES), tools=ANSWERING)) as client,
    ):
        yield here, client


@asynccontextmanager
async def connected(here: Standing, token: str, **options: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(f"{here.url}/mcp", http_client=http), **options) as client,
    ):
        yield client


async def use(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    text = result.content[0].text  # type: ignore[union-attr]
    return text if result.is_error else json.loads(text)


async def test_start_send_and_read(tmp_path: Path) -> None:
    async with driving(tmp_path) as (_, client):
        assert [agent["id"] for agent in (await use(client, "list_agents"))["agents"]] == ["scripted"]
        session = (await use(client, "start_session", agent="scripted", title="Mine"))["session"]
        sent = await use(client, "send_message", session=session, text="hi")
        assert sent == {"session": session, "status": "idle", "outcome": "completed", "answer": "You said hi."}
        told = await use(client, "read_session", session=session)
        assert [turn["answer"] for turn in told["turns"]] == ["You said hi."]
        assert [each["title"] for each in (await use(client, "list_sessions"))["sessions"]] == ["Mine"]


async def test_a_session_with_a_fallback(tmp_path: Path) -> None:
    async with driving(tmp_path) as (_, client):
        started = await use(client, "start_session", agent="nobody", fallback=["scripted/gpt-4.1"])
        done = await use(client, "send_message", session=started["session"], text="hello")
        assert (done["outcome"], done["answer"]) == ("completed", "You said hello.")
        wrong = await use(client, "start_session", fallback=["/x"])
        assert wrong.startswith("config.fallback: Should be a list of agents")


async def test_a_job_is_run_and_read(tmp_path: Path) -> None:
    async with driving(tmp_path) as (here, client):
        assert here.server.jobs is not None
        await here.server.jobs.install(make({"it": ok()}))
        assert (await use(client, "list_jobs"))["jobs"] == ["main"]
        job = (await use(client, "run_job", job="main"))["id"]
        await until_ended(here.server.host.log, f"job/{job}")
        assert (await use(client, "read_job", id=job))["status"] == "succeeded"
        assert [each["id"] for each in (await use(client, "list_jobs"))["history"]] == [job]
        assert "There is no job 'nope'" in await use(client, "run_job", job="nope")


async def test_an_approval_comes_back_and_is_answered(tmp_path: Path) -> None:
    async with driving(tmp_path) as (_, client):
        session = (await use(client, "start_session"))["session"]
        sent = await use(client, "send_message", session=session, text="write")
        assert (sent["status"], sent["needs"][0]["tool"]) == ("waiting", "write")
        assert not (tmp_path / "a.txt").exists()
        await use(client, "answer_approval", approval=sent["needs"][0]["approval"], allow=True)
        done = await use(client, "wait_session", session=session)
        assert (done["status"], done["answer"]) == ("idle", "Wrote a.txt.")
        assert (tmp_path / "a.txt").read_text() == "hello"


async def test_a_question_is_answered_and_a_slow_turn_cancelled(tmp_path: Path) -> None:
    async with driving(tmp_path) as (_, client):
        session = (await use(client, "start_session"))["session"]
        sent = await use(client, "send_message", session=session, text="ask")
        await use(client, "answer_question", question=sent["needs"][0]["question"], text="red")
        assert (await use(client, "wait_session", session=session))["answer"].startswith("You said: red")
        slow = await use(client, "send_message", session=session, text="slow", wait=0.1)
        assert slow["status"] == "running"
        assert (await use(client, "cancel_turn", session=session))["outcome"] == "cancelled"


async def test_a_form_is_answered_field_by_field(tmp_path: Path) -> None:
    """A text went to a field that the form did not have, and the form was never answered."""
    async with driving(tmp_path) as (here, client):
        session = (await use(client, "start_session"))["session"]
        for said, given in (("form", {"text": "red"}), ("two", {"answers": {"a": 1, "b": 2}}), ("two", {})):
            sent = await use(client, "send_message", session=session, text=said)
            question = sent["needs"][0]["question"]
            if not given:
                assert "needs an answer" in await use(client, "answer_question", question=question, text="?")
                given = {"response": "decline"}
            assert await use(client, "answer_question", question=question, **given) == {"question": question}
            await use(client, "wait_session", session=session)
        state = (await here.server.host.get(session)).state
        asked = [part for turn in state.turns for part in turn.parts if isinstance(part, QuestionPart)]
        assert [(part.response, part.answers) for part in asked] == [
            ("accept", {"colour": "red"}),
            ("accept", {"a": 1, "b": 2}),
            ("decline", {}),
        ]


async def test_mistakes_are_told_in_the_result(tmp_path: Path) -> None:
    async with driving(tmp_path) as (here, client):
        assert "no session 'x'" in await use(client, "read_session", session="x")
        assert "wrong" in await use(client, "start_session", wrong=1)
        answer = await here.http.post("/mcp", content=b"{")
        assert answer.json()["error"]["code"] == -32700
        for body, code in (([], None), ({"jsonrpc": "2.0", "id": 1, "method": "nope"}, -32601), (7, -32600)):
            answer = await here.http.post("/mcp", json=body)
            assert (answer.json()["error"]["code"] if code else answer.status_code) == (code or 202)


async def test_a_token_sees_only_what_its_scopes_allow(tmp_path: Path) -> None:
    async with driving(tmp_path) as (here, client):
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"send_message", "answer_approval", "run_job"} <= names
        token = new_token(here.home, "reader", ["read"])
        async with connected(here, token) as reader:
            names = {tool.name for tool in (await reader.list_tools()).tools}
            automations = {"list_automations", "read_automation"}
            assert (
                names == {"list_agents", "list_sessions", "wait_session", "read_session", "read_changes"} | automations
            )
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "start_session"}}
        async with here.client(token) as reading:
            assert (await reading.post("/mcp", json=call)).json()["error"]["code"] == -32602
        assert (await here.stranger.post("/mcp", json={})).status_code == 401


async def test_a_workflow_is_run_with_inputs_and_its_result_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / ".portico/jobs").mkdir(parents=True)
    text = (
        "inputs: {n: {type: number}}\nsteps: [{id: a, run: 'echo {{ inputs.n + 1 }}'}]\nresult: '{{ steps.a.output }}'"
    )
    (folder / ".portico/jobs/count.yaml").write_text(text)
    async with driving(tmp_path) as (here, client):
        job = (await use(client, "run_job", job="count", cwd=str(folder), inputs={"n": 41}))["id"]
        await until_ended(here.server.host.log, f"job/{job}")
        found = await use(client, "read_job", id=job)
        assert (found["status"], found["result"]) == ("succeeded", "42")
        wrong = await use(client, "run_job", job="count", cwd=str(folder))
        assert "The input 'n' is missing." in wrong


SECRET_JOB = """
inputs: {key: {type: secret, required: REQUIRED}, n: {default: one}}
steps: [{id: a, run: "echo {{ inputs.n }}${PORTICO_INPUTS_KEY:+ with}"}]
result: "{{ steps.a.output }}"
"""


@pytest.mark.parametrize(
    ("required", "inputs", "starts"),
    [
        ("true", {"key": "c4nary-value"}, False),
        ("true", {}, False),
        ("false", {"key": "c4nary-value", "n": "two"}, False),
        ("false", {"key": "[secret]"}, False),
        ("false", {"n": "two"}, True),
        ("false", {"key": ""}, True),
    ],
)
async def test_a_model_gives_no_secret_inputs(
    tmp_path: Path, required: str, inputs: dict[str, str], starts: bool
) -> None:
    """What a model passes to a tool is in its session, in its log and at its provider."""
    folder = tmp_path / "project"
    (folder / ".portico/jobs").mkdir(parents=True)
    (folder / ".portico/jobs/deploy.yaml").write_text(SECRET_JOB.replace("REQUIRED", required))
    async with driving(tmp_path) as (here, client):
        found = await use(client, "run_job", job="deploy", cwd=str(folder), inputs=inputs)
        if starts:
            await until_ended(here.server.host.log, f"job/{found['id']}")
            assert (await use(client, "read_job", id=found["id"]))["result"] == inputs.get("n", "one")
        else:
            assert "The input 'key' is a secret" in found
            assert found.endswith("portico run deploy")
            assert here.server.jobs.history() == []
        by_model = await use(client, "run_job", job="deploy", cwd=str(folder), by_model=False)
        assert "by_model" in by_model, "a model cannot choose the field"
        stored = b"".join(path.read_bytes() for path in here.home.path.rglob("*") if path.is_file())
        assert b"c4nary" not in stored


async def test_a_session_is_listed_with_its_first_message(tmp_path: Path) -> None:
    """A model that started a session and sent nothing left an empty one in all lists."""
    async with driving(tmp_path) as (here, client):
        session = (await use(client, "start_session", agent="scripted"))["session"]
        assert here.server.host.list() == []
        await use(client, "send_message", session=session, text="hello")
        assert [each.id for each in here.server.host.list()] == [session]
