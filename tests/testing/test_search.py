"""Tools behind a search, as Codex, Claude Code and Qwen hide those of MCP servers."""

from typing import Any

import httpx
import pytest

from tests.testing.test_turns import history
from tests.testing.wire import WIRES, Body, Wire

PROMPT = '[{"calls": [{"match": ".*portico[^a-z].*note", "args": {"argument": "x"}}]}, {"say": "It was {{result}}"}]'
NOTE = {"type": "function", "name": "note", "parameters": {}}
BY_NAME = {wire.name: wire for wire in WIRES}
chat, responses = BY_NAME["chat"], BY_NAME["responses"]
# Not Gemini's: its agents drop the ids by which a search is known, and have none.
searching = pytest.mark.parametrize("wire", [chat, BY_NAME["anthropic"]], ids=lambda wire: wire.name)


@searching
async def test_a_tool_that_is_not_declared_is_looked_for_before_it_is_called(
    wire: Wire, client: httpx.AsyncClient
) -> None:
    body = wire.ask(PROMPT, ["bash", "ToolSearch"])
    first = await wire.post(client, body)
    assert wire.read(first).calls == [("ToolSearch", {"query": "portico note"})]

    body = history(wire, {**body, "tools": wire.ask("", ["bash", "portico-note"])["tools"]}, first.json(), "found")
    second = await wire.post(client, body)
    assert wire.read(second).calls == [("portico-note", {"argument": "x"})]

    assert wire.read(await wire.post(client, history(wire, body, second.json(), "noted"))).text == "It was noted"


@searching
async def test_what_a_search_does_not_find_is_not_looked_for_again(wire: Wire, client: httpx.AsyncClient) -> None:
    body = wire.ask(PROMPT, ["tool_search"])
    body = history(wire, body, (await wire.post(client, body)).json(), "nothing found")

    said = wire.read(await wire.post(client, body))

    assert (said.calls, said.text.startswith("\nNo declared tool fits")) == ([], True)


async def test_what_was_found_is_called_through_the_tool_that_calls_others(client: httpx.AsyncClient) -> None:
    """Qwen: what a search has found stays undeclared."""
    body = chat.ask(PROMPT, ["tool_search", "tool_call"])
    found = '<function>{"name": "mcp__other"}</function><function>{"name":"mcp__portico__note"}</function>'
    body = history(chat, body, (await chat.post(client, body)).json(), found)

    said = chat.read(await chat.post(client, body))

    assert said.calls == [("tool_call", {"name": "mcp__portico__note", "arguments": {"argument": "x"}})]


async def _output(client: httpx.AsyncClient, body: Body) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = (await responses.post(client, body)).json()["output"]
    return output


async def test_responses_call_a_tool_of_a_namespace_by_both_names(client: httpx.AsyncClient) -> None:
    body = responses.ask(PROMPT) | {"tools": [{"type": "namespace", "name": "mcp__portico", "tools": [NOTE]}]}
    (item,) = await _output(client, body)
    assert (item["type"], item["namespace"], item["name"]) == ("function_call", "mcp__portico", "note")


async def test_responses_have_a_search_of_their_own(client: httpx.AsyncClient) -> None:
    """Codex with the models it knows: the tools come with the result of the search, and are declared nowhere else."""
    body = responses.ask(PROMPT) | {"tools": [{"type": "tool_search", "parameters": {}}]}
    (search,) = await _output(client, body)
    assert (search["type"], search["execution"]) == ("tool_search_call", "client")
    assert search["arguments"] == {"query": "portico note"}

    namespace = {"type": "namespace", "name": "mcp__portico", "tools": [NOTE]}
    result = {"type": "tool_search_output", "call_id": search["call_id"], "tools": [namespace]}
    body["input"] = [*body["input"], search, result]
    (call,) = await _output(client, body)
    assert (call["name"], call["arguments"]) == ("note", '{"argument":"x"}')

    done = {"type": "function_call_output", "call_id": call["call_id"], "output": "noted"}
    body["input"] = [*body["input"], call, done]
    (message,) = await _output(client, body)
    assert message["content"][0]["text"] == "It was noted"
