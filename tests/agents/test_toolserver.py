"""The session's tools over loopback: for the one conversation that has the key, and for nobody else."""

from collections.abc import AsyncIterator

import httpx
import pytest

from portico import limits
from portico.agents.toolserver import ToolServer
from portico.kernel.events import Json, ToolSpec
from portico.kernel.tool import ToolResult

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


class Box:
    def __init__(self, name: str) -> None:
        self.name = name

    def specs(self) -> list[ToolSpec]:
        return [ToolSpec(self.name)]

    async def call(self, name: str, arguments: Json) -> ToolResult:
        return ToolResult(True, f"{name} {arguments}")


@pytest.fixture
async def server() -> AsyncIterator[ToolServer]:
    server = ToolServer()
    yield server
    await server.close()


async def post(url: str, key: str | None, body: object = LIST, **headers: str) -> httpx.Response:
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.post(url, json=body, headers=headers)


async def test_each_key_opens_its_own_tools_until_it_is_withdrawn(server: ToolServer) -> None:
    (url, one), (same, two) = await server.offer(Box("one")), await server.offer(Box("two"))
    assert url == same
    for key, name in ((one, "one"), (two, "two")):
        tools = (await post(url, key)).json()["result"]["tools"]
        assert [tool["name"] for tool in tools] == [name]
        assert tools[0]["_meta"] == {"anthropic/alwaysLoad": True}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "two", "arguments": {}}}
    assert (await post(url, one, call)).json()["error"]["code"] == -32602
    assert (await post(url, two, call)).json()["result"]["content"][0]["text"] == "two {}"
    server.withdraw(one)
    assert (await post(url, one)).status_code == 401


async def test_strangers_and_web_pages_get_nothing(server: ToolServer) -> None:
    url, key = await server.offer(Box("one"))
    assert (await post(url, None)).status_code == 401
    assert (await post(url, "x" * 43)).status_code == 401
    assert (await post(url, key, Origin="http://evil.example")).status_code == 401
    assert (await post(url, key, Host="evil.example:80")).status_code == 401
    async with httpx.AsyncClient(trust_env=False, headers={"Authorization": f"Bearer {key}"}) as client:
        assert (await client.get(url)).status_code == 405
        assert (await client.post(url, content=b"x" * (limits.BODY_BYTES + 1))).status_code == 413
