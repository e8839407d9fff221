"""Every command × every single scope, over HTTP, from the table itself: a new command is in here by being there."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest

from portico.command_shapes import method_name
from portico.doors.mcp.tools import WITHOUT
from portico.features.readiness.commands import SignIn
from portico.kernel import commands as c
from portico.server.identity import new_token
from tests.doors.standing import Standing, standing
from tests.host.test_do import sample


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Standing]:
    async with standing(tmp_path) as here:
        yield here


def token(here: Standing, scope: str) -> str:
    return new_token(here.home, f"only-{scope}", [scope])


def arguments(kind: type[c.Command]) -> dict[str, object]:
    said = msgspec.to_builtins(sample(kind))
    return {key: value for key, value in said.items() if key != "command" and key not in kind.private}


def request(kind: type[c.Command]) -> tuple[str, str, dict[str, object]]:
    """The command's own route with ids of nothing, and its body."""
    assert kind.http is not None
    body = arguments(kind)
    path = kind.http.path.replace("{id}", "nosuch-1")
    body.pop(kind.about, None)
    for name in [name for name in body if f"{{{name}}}" in path]:
        path = path.replace(f"{{{name}}}", str(body.pop(name)))
    return kind.http.method, path, body


async def test_every_command_needs_its_scope_and_no_other(here: Standing) -> None:
    """With each single scope: what the command's scope is not is refused, whatever else would be wrong."""
    for scope in c.SCOPES:
        async with here.client(token(here, scope)) as client:
            for name, kind in c.COMMANDS.items():
                needed = "admin" if kind is SignIn else kind.scope  # it counts for all where no editor gives it
                answer = await client.post("/v1/commands", json={"command": name, "arguments": arguments(kind)})
                refused = answer.status_code == 403 and "has no scope" in answer.text
                assert refused is (needed not in (scope, "any")), (scope, name, answer.text)
                if kind.http is not None:
                    method, path, body = request(kind)
                    answer = await client.request(method, path, json=body if method != "DELETE" else None)
                    refused = answer.status_code == 403 and "has no scope" in answer.text
                assert refused is (needed not in (scope, "any")), (scope, name, answer.text)


async def test_every_tool_of_mcp_needs_the_scope_of_its_command(here: Standing) -> None:
    """One that is not offered cannot be called either: it is as unknown as one that is not there."""
    for scope in c.SCOPES:
        tools = [method_name(kind) for kind in c.COMMANDS.values() if kind.scope in (scope, "read", "any")]
        async with here.client(
            new_token(here.home, f"with-{scope}", ["read", scope], tools=tools)
        ) as client:  # the door wants `read`
            for name, kind in c.COMMANDS.items():
                params = {"name": method_name(kind), "arguments": arguments(kind)}
                call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
                answer = await client.post("/mcp", json=call)
                offered = "error" not in answer.json()
                assert offered is (
                    name not in WITHOUT and kind.as_tool is True and kind.scope in (scope, "read", "any")
                ), (
                    scope,
                    name,
                    answer.text,
                )


async def test_nobody_does_anything(here: Standing) -> None:
    for name, kind in c.COMMANDS.items():
        answers: list[httpx.Response] = [
            await here.stranger.post("/v1/commands", json={"command": name, "arguments": arguments(kind)})
        ]
        if kind.http is not None:
            method, path, body = request(kind)
            answers.append(await here.stranger.request(method, path, json=body if method != "DELETE" else None))
        assert {answer.status_code for answer in answers} == {401}, name


async def test_fields_of_protocols_are_not_for_scripts(here: Standing) -> None:
    """A message that claims to come from an agent, or a session that claims a parent."""
    ident = await here.start()
    for name, kind in c.COMMANDS.items():
        for field in kind.private:
            outer, _, inner = field.partition(".")
            said = {**arguments(kind), outer: {"text": "x", inner: {}} if inner else "x"}
            answer = await here.http.post("/v1/commands", json={"command": name, "arguments": said})
            assert (answer.status_code, answer.json()["field"]) == (400, f"arguments.{field}"), name
    answer = await here.http.post(f"/v1/sessions/{ident}/messages", json={"text": "x", "origin": "agent"})
    assert (answer.status_code, answer.json()["field"]) == (400, "origin")


async def test_the_same_key_is_done_once_over_http(here: Standing) -> None:
    body = {"agent": "scripted", "title": "once"}
    answers = [await here.http.post("/v1/sessions", json=body, headers={"Idempotency-Key": "mine"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    other = await here.http.post("/v1/sessions", json={"agent": "demo"}, headers={"Idempotency-Key": "mine"})
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    empty = await here.http.post("/v1/sessions", json=body, headers={"Idempotency-Key": ""})
    assert (empty.status_code, empty.json()["field"]) == (400, "Idempotency-Key")


async def test_a_wrong_command_names_the_field(here: Standing) -> None:
    for body, field in (
        ({"command": "nosuch"}, "command"),
        ({"command": "message.send", "arguments": {"session": "x", "text": 3}}, "arguments.text"),
        ({"command": "message.send", "arguments": {"session": "x"}}, "arguments.text"),
        ({"command": "message.send", "arguments": {"session": "x", "text": "x", "more": 1}}, "arguments.more"),
        ({"command": "message.send", "arguments": []}, "arguments"),
    ):
        answer = await here.http.post("/v1/commands", json=body)
        assert (answer.status_code, answer.json()["field"]) == (400, field), body
