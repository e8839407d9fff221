"""Which MCP tools a token has: those of read, drive and jobs by its scopes, all others only by their names.

The attack: a model is given the host's token, as the guide of 0.2 described, and a text that it reads makes it run a
command, delete a file, revoke a token or approve what a person denied to another agent."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from portico.command_shapes import method_name
from portico.doors.mcp.tools import WITHOUT, HostTools
from portico.features.people.people import add_person
from portico.kernel.commands import COMMANDS, SCOPES, Caller
from portico.kernel.errors import BadRequest
from portico.kernel.state import CallPart
from portico.server.home import Home
from portico.server.identity import Tokens, new_login, new_token
from tests.doors import sharing
from tests.doors.standing import TOOLS, Standing, standing

GUIDE = Path(__file__).parents[3] / "docs/guide/agents.md"
NAMED = {"answer"} | {
    method_name(kind)
    for name, kind in COMMANDS.items()
    if name not in WITHOUT and kind.as_tool is True and kind.scope in ("approve", "files", "terminal", "admin")
}
SCRIPT = """
providers:
  - {id: scripted, name: Scripted, autonomy: {mode: {yolo: asks-nobody}}}
rules:
  - match: write
    steps: [{do: write, path: a.txt, text: hello}]
"""


anyio_backend, shared = sharing.anyio_backend, sharing.shared


@pytest.fixture(scope="module")
def here(shared: Standing) -> Standing:
    add_person(shared.home, "ann", list(SCOPES))
    return shared


def _offered(here: Standing, who: Caller) -> set[str]:
    return {spec.name for spec in HostTools(here.server.app, who).specs()}


def _by_token(here: Standing, name: str, scopes: list[str], **more: Any) -> Caller:
    found = Tokens(here.home).by_token(new_token(here.home, name, scopes, **more))
    assert found is not None
    return found


def _login(home: Home) -> Caller:
    tokens = Tokens(home)
    found = tokens.by_id(new_login(home, tokens.people.all()["ann"], 1))
    assert found is not None
    return found


WITHOUT_NAMES: dict[str, Callable[[Standing], Caller]] = {
    "the owner's token": lambda here: Tokens(here.home).owner(),
    "a host without tokens": lambda here: Tokens(here.home, required=False).owner(),
    "a token with all scopes": lambda here: _by_token(here, "all", list(SCOPES)),
    "an admin's token": lambda here: _by_token(here, "anns", list(SCOPES), person="ann"),
    "an admin's login": lambda here: _login(here.home),
    "the token of the printed line": lambda here: _by_token(here, "line", ["read", "drive"]),
}


@pytest.mark.parametrize("credential", WITHOUT_NAMES)
async def test_no_credential_has_these_tools_unless_it_names_them(here: Standing, credential: str) -> None:
    offered = _offered(here, WITHOUT_NAMES[credential](here))
    assert {"send_message", "read_session"} <= offered
    assert offered & NAMED == set()


@pytest.mark.parametrize("tool", sorted(NAMED))
async def test_a_named_tool_is_the_only_one_more(here: Standing, tool: str) -> None:
    plain = _offered(here, _by_token(here, f"plain-{tool}", list(SCOPES)))
    assert _offered(here, _by_token(here, f"for-{tool}", list(SCOPES), tools=[tool])) == plain | {tool}


async def test_the_guide_lists_every_tool_with_its_scope(here: Standing) -> None:
    """19 of 70 were not in the table of 0.2."""
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (\w+)( by name)? \|", GUIDE.read_text(), re.MULTILINE)
    listed = {scope: (set(re.findall(r"\w+", tools)), bool(named)) for tools, scope, named in rows}
    assert {scope: named for scope, (_, named) in listed.items()} == {
        scope: scope not in ("read", "drive", "jobs") for scope in SCOPES
    }
    for scope, (tools, _) in listed.items():
        assert _offered(here, Caller("", "", frozenset({scope}), tools=frozenset(TOOLS))) == tools, scope


# -- by effect ---------------------------------------------------------------------------------------------------


async def _call(http: httpx.AsyncClient, name: str, arguments: dict[str, object]) -> str:
    """What the model reads."""
    params = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return (await http.post("/mcp", json=body)).text


async def test_a_misled_model_with_the_hosts_token(tmp_path: Path) -> None:
    """In 0.2 every one of these calls was carried out. A token that names the tool still can."""
    (tmp_path / "script.yaml").write_text(SCRIPT)
    (kept := tmp_path / "keep.txt").write_text("mine")
    flags = {"doors.mcp_tools": "all"}
    async with standing(tmp_path, agents=("scripted",), script=tmp_path / "script.yaml", flags=flags) as here:
        new_token(here.home, "phone", ["read"])
        session, other = await here.start(), await here.start()
        await here.http.post(f"/v1/sessions/{session}/messages", json={"text": "write"})
        found = await here.server.host.get(session)
        waiting = await found.wait_until(lambda state: state.status == "waiting")
        assert waiting.active is not None
        [call] = [part for part in waiting.active.parts if isinstance(part, CallPart)]
        assert call.approval is not None
        calls: list[tuple[str, dict[str, object]]] = [
            ("run_command", {"session": other, "line": "touch ran.txt"}),
            ("answer_approval", {"approval": call.approval.id, "allow": True}),
            ("delete_file", {"path": str(kept)}),
            ("revoke_token", {"token": "phone"}),
            ("configure_session", {"session": other, "values": {"mode": "yolo"}}),
            ("configure_session", {"session": other, "values": {"approvals": "allow"}}),
            ("start_session", {"agent": "scripted", "title": "loose", "config": {"mode": "yolo"}}),
        ]

        async def effects() -> list[bool]:
            sessions = [await here.server.host.get(each.id) for each in here.server.host.list(drafts=True)]
            return [
                (tmp_path / "ran.txt").exists(),
                (tmp_path / "a.txt").exists(),
                not kept.exists(),
                "phone" not in Tokens(here.home).known().values(),
                any(each.state.config.get("mode") == "yolo" for each in sessions if each.id == other),
                any(each.state.config.get("approvals") == "allow" for each in sessions),
                any(each.state.title == "loose" for each in sessions),
            ]

        for name, arguments in calls:
            answer = await _call(here.http, name, arguments)
            assert (f"There is no tool '{name}'" if name in NAMED else f"--tool {name}") in answer
        assert await effects() == [False] * len(calls)
        async with here.client(new_token(here.home, "chosen", list(SCOPES), tools=[name for name, _ in calls])) as http:
            for name, arguments in calls:
                answer = await _call(http, name, arguments)
                assert ('"error"' in answer, '"isError":true' in answer) == (False, False), answer
        for each in (found, await here.server.host.get(other)):
            await each.wait_until(lambda state: state.active is None)
        assert await effects() == [True] * len(calls)


@pytest.mark.parametrize(
    ("tools", "scopes", "words"),
    [
        (["no_such_tool"], list(SCOPES), "There is no tool 'no_such_tool'"),
        (["run_command"], ["read", "drive"], "needs the scope 'terminal'"),
        (["answer_approval", "delete_file"], ["read", "approve"], "needs the scope 'files'"),
        (["answer"], ["read", "drive"], "The tool 'answer' needs the scope 'approve'"),
        (["ask", "all"], ["read", "drive"], "one set of tools: ask, work or all"),
    ],
)
def test_a_token_names_tools_that_exist_and_that_it_may_use(
    tmp_path: Path, tools: list[str], scopes: list[str], words: str
) -> None:
    home = Home(tmp_path / "home")
    home.make()
    with pytest.raises(BadRequest, match=words):
        new_token(home, "helper", scopes, tools=tools)
    assert Tokens(home).named() == []
