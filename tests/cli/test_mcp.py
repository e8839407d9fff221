"""`portico mcp`: the real program on pipes, driven by the official client and by hand."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from portico.mcp import CAPABILITIES_KEY, STATELESS, VERSION_KEY, VERSIONS
from portico.server.identity import new_token
from tests.doors.mcp.test_mcp import RULES, use
from tests.doors.mcp.test_versions import META, request
from tests.doors.standing import Standing, standing

COMMAND = [sys.executable, "-m", "portico", "mcp"]


@asynccontextmanager
async def hosting(folder: Path) -> AsyncIterator[Standing]:
    (folder / "script.yaml").write_text(RULES)
    async with standing(folder, agents=("scripted",), script=folder / "script.yaml") as here:
        yield here


def _environment(here: Standing, **more: str) -> dict[str, str]:
    return {"PORTICO_HOME": str(here.home.path), "PATH": "/usr/bin:/bin", "HOME": str(here.home.path), **more}


@pytest.mark.parametrize(("mode", "version"), [("auto", STATELESS), ("legacy", VERSIONS[0])])
async def test_the_official_client_drives_an_agent_on_stdio(tmp_path: Path, mode: Any, version: str) -> None:
    async with hosting(tmp_path) as here:
        token = new_token(here.home, "asker", ["read", "drive"], tools=["ask"])
        environment = _environment(here, PORTICO_TOKEN=token)
        server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=environment)
        async with Client(stdio_client(server), mode=mode) as client:
            assert client.protocol_version == version
            assert len((await client.list_tools()).tools) == 7, "the set ask, without the tool that is by name"
            session = (await use(client, "start_session"))["session"]
            sent = await use(client, "send_message", session=session, text="hi")
            assert sent["answer"] == "You said hi."
            assert len((await client.list_prompts()).prompts) > 5


class Piped:
    """The program with its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._in, self._out = process, process.stdin, process.stdout

    async def send(self, *messages: Any) -> None:
        self._in.write(b"".join((m if isinstance(m, bytes) else json.dumps(m).encode()) + b"\n" for m in messages))
        await self._in.drain()

    async def read(self) -> Any:
        return json.loads(await self._out.readline())

    async def end(self) -> int:
        self._in.close()
        return await self.process.wait()


@asynccontextmanager
async def piped(here: Standing, **environment: str) -> AsyncIterator[Piped]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=pipe, stdout=pipe, stderr=pipe, env=_environment(here, **environment)
    )
    try:
        yield Piped(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_lines_that_are_wrong_do_not_end_it(tmp_path: Path) -> None:
    async with hosting(tmp_path) as here, piped(here) as program:
        await program.send(b"{", b"", b"[]", 7, {"jsonrpc": "2.0", "id": 3, "method": "nope"})
        codes = {(await program.read())["error"]["code"] for _ in range(3)}
        assert codes == {-32700, -32600, -32601}
        unknown = request("tools/list", 4, _meta={VERSION_KEY: "2031-01-01", CAPABILITIES_KEY: {}})
        await program.send(unknown)
        reply = await program.read()
        assert (reply["id"], reply["error"]["code"]) == (4, -32022)
        assert await program.end() == 0


@pytest.mark.parametrize("meta", [{}, {"_meta": META}])
async def test_a_cancelled_call_on_stdio_cancels_its_turn(tmp_path: Path, meta: dict[str, Any]) -> None:
    async with hosting(tmp_path) as here, piped(here) as program:
        ident = await here.start()
        session = await here.server.host.get(ident)
        await program.send(request("initialize", 1, protocolVersion=VERSIONS[0]))
        assert (await program.read())["id"] == 1
        arguments = {"session": ident, "text": "slow"}
        await program.send(request("tools/call", 2, name="send_message", arguments=arguments, **meta))
        await session.wait_until(lambda state: state.active is not None and bool(state.active.parts))
        params = {"requestId": 2, **meta}
        await program.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        await session.wait_until(lambda state: state.active is None)
        assert session.state.turns[-1].outcome == "cancelled"


async def test_a_wrong_token_and_a_host_that_is_gone_are_reported(tmp_path: Path) -> None:
    async with hosting(tmp_path) as here, piped(here, PORTICO_TOKEN="wrong") as program:
        _, errors = await program.process.communicate(b"")
        assert b"not valid" in errors
    async with AsyncExitStack() as stack:
        async with hosting(tmp_path) as here:
            program = await stack.enter_async_context(piped(here))
            await program.send(request("tools/list", 1))
            assert (await program.read())["id"] == 1
        await program.send(request("tools/list", 2))
        reply = await program.read()
        assert (reply["id"], reply["error"]["code"]) == (2, -32000)
        assert "does not answer" in reply["error"]["message"]
    async with piped(here) as program:
        _, errors = await program.process.communicate(b"")
        assert b"portico serve" in errors
