"""What a model sees: three sets of tools, and every tool with all that helps a model to use it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from portico.doors.mcp.sets import AGENTS, ASK, DESTRUCTIVE, REPEATABLE, WORK
from portico.doors.mcp.tools import HostTools
from portico.kernel.commands import SCOPES, Caller
from portico.mcp import ServedTool
from portico.server.identity import Tokens, new_token
from tests.doors import sharing
from tests.doors.mcp.test_mcp import connected, driving, use
from tests.doors.standing import TOOLS, Standing, standing

anyio_backend, shared = sharing.anyio_backend, sharing.shared


def _specs(here: Standing, *tools: str, scopes: Any = SCOPES) -> dict[str, ServedTool]:
    who = Caller("", "", frozenset(scopes), tools=frozenset(tools))
    return {spec.name: spec for spec in HostTools(here.server.app, who).specs()}


@pytest.mark.parametrize(
    ("setting", "named", "seen"),
    [
        ("work", (), WORK - {"answer", "answer_approval", "answer_question"}),
        ("ask", (), ASK - {"answer"}),
        ("all", ("ask",), ASK - {"answer"}),
        ("ask", ("work",), WORK - {"answer", "answer_approval", "answer_question"}),
        ("work", ("ask", "answer"), ASK),
        ("ask", ("delete_session",), (ASK - {"answer"}) | {"delete_session"}),
    ],
)
async def test_a_set_is_selected_by_setting_and_by_token(
    tmp_path: Path, setting: str, named: tuple[str, ...], seen: frozenset[str]
) -> None:
    async with standing(tmp_path, agents=("scripted",), flags={"doors.mcp_tools": setting}) as here:
        token = new_token(here.home, "helper", list(SCOPES), tools=named)
        who = Tokens(here.home).by_token(token)
        assert who is not None
        assert {spec.name for spec in HostTools(here.server.app, who).specs()} == seen


def test_the_ask_set_has_eight_tools(shared: Standing) -> None:
    assert len(ASK) == 8
    assert _specs(shared, "ask", "answer").keys() == ASK


def test_a_set_allows_nothing_that_the_scopes_do_not(shared: Standing) -> None:
    reading = {"list_agents", "list_sessions", "read_session", "read_changes", "wait_session"}
    assert _specs(shared, "all", scopes=["read"]).keys() == reading | {"list_automations", "read_automation"}
    assert "answer" not in _specs(shared, "all", "ask")


def test_the_tables_name_tools_that_exist(shared: Standing) -> None:
    known = _specs(shared, *TOOLS).keys()
    assert (WORK | DESTRUCTIVE | REPEATABLE | AGENTS) - known == set()


@pytest.fixture(scope="module")
def every(shared: Standing) -> dict[str, ServedTool]:
    return _specs(shared, *TOOLS)


def test_every_parameter_is_described(every: dict[str, ServedTool]) -> None:
    """In 0.2 it was 1 of 159."""
    without = [
        f"{name}.{key}"
        for name, spec in every.items()
        for key, each in spec.schema.get("properties", {}).items()
        if not each.get("description")
    ]
    assert without == []


def test_every_tool_has_a_title_hints_and_an_object_as_result(every: dict[str, ServedTool]) -> None:
    for name, spec in every.items():
        assert spec.title, name
        assert spec.description.endswith("."), name
        assert spec.output["type"] == "object", name
        assert "$ref" not in str((spec.schema, spec.output)), name
        Draft202012Validator.check_schema(spec.schema)
        Draft202012Validator.check_schema(spec.output)
    reads = {name for name, spec in every.items() if spec.annotations["readOnlyHint"]}
    assert reads >= {"list_agents", "read_changes", "wait_session", "read_job"}
    destructive = {name for name, spec in every.items() if spec.annotations.get("destructiveHint")}
    assert destructive == DESTRUCTIVE
    assert destructive & reads == set()


def test_the_ask_set_is_small(shared: Standing) -> None:
    """All tools of 0.2 had 35 KB. A model reads the list at every step."""
    shown = [(spec.name, spec.description, spec.schema) for spec in _specs(shared, "ask", "answer").values()]
    assert len(str(shown)) < 8_000


async def test_changes_are_read_and_an_approval_is_answered_with_one_tool(tmp_path: Path) -> None:
    async with driving(tmp_path) as (here, _):
        await git(tmp_path, "init", "-q")
        token = new_token(here.home, "asker", list(SCOPES), tools=["ask", "answer"])
        async with connected(here, token) as client:
            session = (await use(client, "start_session"))["session"]
            sent = await use(client, "send_message", session=session, text="write")
            decided = await use(client, "answer", approval=sent["needs"][0]["approval"], allow=True)
            assert decided["allowed"] is True
            await use(client, "wait_session", session=session)
            found = await use(client, "read_changes", session=session, diff=True)
            assert [(each["path"], each["status"]) for each in found["files"]] == [("a.txt", "added")]
            assert "+hello" in found["diff"]
            assert (await use(client, "read_changes", session=session, path="none.txt"))["files"] == []
            asked = await use(client, "send_message", session=session, text="ask")
            question = asked["needs"][0]["question"]
            assert await use(client, "answer", question=question, text="red") == {"question": question}
            assert "either approval or question" in await use(client, "answer", text="red")
            assert "either approval or question" in await use(client, "answer", approval="a", question="b")


async def git(folder: Path, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec("git", *arguments, cwd=folder)
    assert await process.wait() == 0


async def test_structured_content_matches_its_schema(tmp_path: Path) -> None:
    """The official client checks it too; a bare list was rejected by some models."""
    async with driving(tmp_path) as (_, client):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        started = await client.call_tool("start_session", {"title": "Mine"})
        assert started.structured_content is not None
        session = started.structured_content["session"]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("list_agents", {}),
            ("send_message", {"session": session, "text": "hi"}),
            ("send_message", {"session": session, "text": "slow", "wait": 0}),
            ("send_message", {"session": session, "text": "later", "wait": 0}),
            ("read_session", {"session": session}),
            ("cancel_turn", {"session": session}),
            ("list_sessions", {}),
            ("list_automations", {}),
            ("list_jobs", {}),
            ("read_changes", {"session": session, "diff": True}),
            ("change_session", {"session": session, "title": "Yours"}),
            ("close_session", {"session": session}),
        ]
        for name, arguments in calls:
            result = await client.call_tool(name, arguments)
            assert not result.is_error, (name, result.content)
            Draft202012Validator(tools[name].output_schema or {}).validate(result.structured_content)
