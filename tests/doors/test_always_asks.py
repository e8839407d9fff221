"""Rule × grantor × door: what must always ask asks, whoever has let everything pass, and through whichever door."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from portico.command_shapes import method_name
from portico.doors.mcp.tools import WITHOUT
from portico.kernel.commands import COMMANDS, SCOPES
from portico.kernel.events import Message
from portico.kernel.session import Session
from portico.kernel.state import CallPart
from portico.server.identity import new_token
from tests.doors.ahp.wire_client import WireClient, opened
from tests.doors.standing import TOOLS, Standing, standing

SCRIPT = """
providers: [{id: scripted, name: Scripted}]
rules:
  - match: "^run (?P<line>[\\\\s\\\\S]+)"
    steps: [{do: tool, name: shell, input: {}, output: ran, permission: {kind: shell, command: "{line}"}}]
  - match: "^edit (?P<file>\\\\S+)"
    steps: [{do: tool, name: shell, input: {}, output: ran, permission: {kind: write, path: "{file}"}}]
"""
SETTINGS = '[approvals]\nask_commands = ["git push"]\ndeny_commands = ["mkfs"]\n'
ASKS = [
    "run sudo id",
    "run X=1 sudo id",
    "run $(sudo id)",
    "run echo hi\nsudo id",
    "run rm x",
    "run git push",
    "edit .env",
]
REFUSED = ["run mkfs /dev/x", "run echo $(mkfs x)", "run true\nmkfs x"]
PASSES = ["run npm test", "run npm test --watch"]
NAME = "scripted:/s1"
EVERYTHING: dict[str, dict[str, Any]] = {
    "approvals": {"approvals": "allow"},
    "autoApprove": {"autoApprove": "autoApprove"},
    "permissions": {"permissions": {"allow": ["shell"]}},
    "terminal rules": {"terminalAutoApproveRules": {"/./": True}, "editAutoApprovePatterns": {"**": True}},
}


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Standing]:
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    (folder / "home").mkdir()
    (folder / "home" / "settings.toml").write_text(SETTINGS)
    async with standing(folder, agents=("scripted",), script=script) as here:
        yield here


@asynccontextmanager
async def editor(here: Standing) -> AsyncIterator[WireClient]:
    url = f"{here.url.replace('http', 'ws')}/?tkn={here.home.token()}"
    async with opened(WireClient(url, "editor", "0.9.0")) as client:
        await client.initialize()
        yield client


async def said(session: Session, text: str, answer: Callable[[str, str], Awaitable[None]] | None = None) -> str:
    """`asked`, `passed` or `refused`."""
    turn = await session.send(Message(text), by="token:owner")
    async with asyncio.timeout(30):
        state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
        if state.active is not None:
            call = next(part for part in state.active.parts if isinstance(part, CallPart))
            assert call.approval is not None
            if answer is None:
                await session.cancel(by="test")
            else:
                await answer(call.approval.id, call.id)
            await session.wait(turn)
            return "asked"
        ended = await session.wait(turn)
    call = next(part for part in ended.parts if isinstance(part, CallPart))
    return "passed" if call.ok else "refused"


async def holds(session: Session) -> None:
    found = {text: await said(session, text) for text in [*ASKS, *REFUSED]}
    assert found == {**dict.fromkeys(ASKS, "asked"), **dict.fromkeys(REFUSED, "refused")}


@pytest.mark.parametrize("door", ["rest", "ahp"])
@pytest.mark.parametrize("grantor", EVERYTHING)
async def test_a_session_that_lets_everything_pass(tmp_path: Path, door: str, grantor: str) -> None:
    config = EVERYTHING[grantor]
    async with served(tmp_path) as here:
        if door == "rest":
            ident = await here.start(cwd=str(tmp_path), config=config)
        else:
            async with editor(here) as client:
                await client.create_session(NAME, config=config)
            ident = NAME
        session = await here.server.host.get(ident)
        await holds(session)
        assert [await said(session, text) for text in PASSES] == ["passed", "passed"]


@pytest.mark.parametrize("door", ["rest", "ahp"])
async def test_a_yes_for_the_whole_session(tmp_path: Path, door: str) -> None:
    async with served(tmp_path) as here, editor(here) as client:
        chat = await client.create_session(NAME)
        session = await here.server.host.get(NAME)

        async def answer(approval: str, call: str) -> None:
            if door == "rest":
                done = await here.http.post(f"/v1/approvals/{approval}", json={"option": "allow-session"})
                assert done.status_code == 200, done.text
                return
            assert session.state.active is not None
            yes = {"turnId": session.state.active.id, "toolCallId": call, "approved": True, "confirmed": "user-action"}
            echo = await client.act(chat, "chat/toolCallConfirmed", **yes, selectedOptionId="allow-session")
            assert "rejectionReason" not in echo

        assert await said(session, "run npm test", answer) == "asked"
        await holds(session)
        assert [await said(session, text) for text in PASSES] == ["passed", "passed"]
        assert await said(session, "run npm publish") == "asked"


async def test_an_editor_that_approves_everything(tmp_path: Path) -> None:
    async with served(tmp_path) as here, editor(here) as client:
        await client.create_session(NAME)
        await client.act("ahp-root://", "root/configChanged", config={"globalAutoApproveEnabled": True})
        session = await here.server.host.get(NAME)
        await holds(session)
        assert [await said(session, text) for text in PASSES] == ["passed", "passed"]


WHOLE: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "the session's settings": [("session.configure", {"session": "{s}", "values": EVERYTHING["approvals"]})],
    "the host's settings": [("host.configure", {"values": {"globalAutoApproveEnabled": True}})],
    "a grant for all tools in the session": [
        ("grant.add", {"agent": "scripted", "tool": "*", "allow": True, "session": "{s}"})
    ],
    "a grant for a tool in the folder": [
        ("grant.add", {"agent": "scripted", "tool": "shell", "allow": True, "project": "{cwd}"})
    ],
    "an answer for all calls of the tool": [
        ("approval.answer", {"approval": "{a}", "option": "allow-session", "covers": "all"})
    ],
    "an answer for what was shown": [
        ("approval.answer", {"approval": "{a}", "option": "allow-session", "covers": "shown"})
    ],
}
"""Whoever says more than yes, in words of the host: `/v1` and the tools of MCP take the same. Portal and Anywhere know
a single yes and no settings of approval."""


async def _told(here: Standing, door: str, name: str, said: dict[str, Any]) -> None:
    if door == "rest" or name in WITHOUT:
        answer = await here.http.post("/v1/commands", json={"command": name, "arguments": said})
        assert answer.status_code == 200, answer.text
        return
    params = {"name": method_name(COMMANDS[name]), "arguments": said}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with here.client(new_token(here.home, secrets.token_hex(8), list(SCOPES), tools=TOOLS)) as named:
        answer = await named.post("/mcp", json=body)
    assert "result" in answer.json(), answer.text
    assert not answer.json()["result"].get("isError"), answer.text


@pytest.mark.parametrize("door", ["rest", "mcp"])
async def test_whoever_says_more_than_yes(tmp_path: Path, door: str) -> None:
    async with served(tmp_path) as here:
        for number, (grantor, commands) in enumerate(WHOLE.items()):
            folder = tmp_path / f"folder-{number}"
            folder.mkdir()
            session = await here.server.host.get(await here.start(cwd=str(folder)))

            async def grant(approval: str, call: str) -> None:
                for name, said in commands:  # noqa: B023 - called at once
                    text = json.dumps(said).replace("{s}", session.id)  # noqa: B023
                    text = text.replace("{a}", approval).replace("{cwd}", session.state.cwd)  # noqa: B023
                    await _told(here, door, name, json.loads(text))
                if name != "approval.answer":
                    await here.http.post(f"/v1/approvals/{approval}", json={"allow": True})

            assert await said(session, PASSES[0], grant) == "asked", grantor
            await holds(session)
            assert [await said(session, text) for text in PASSES] == ["passed", "passed"], grantor
            if grantor == "the host's settings":
                await _told(here, "rest", "host.configure", {"values": {"globalAutoApproveEnabled": False}})
