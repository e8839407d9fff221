"""The two generations of the protocol, what a cancelled call leaves, progress, and the statuses of HTTP."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from portico.kernel.session import Session
from portico.mcp import CAPABILITIES_KEY, STATELESS, SUPPORTED, VERSION_KEY, VERSIONS, as_header, header_value
from portico.server.identity import new_token
from tests.doors import sharing
from tests.doors.mcp.test_mcp import connected, driving, use
from tests.doors.standing import Standing

anyio_backend, shared = sharing.anyio_backend, sharing.shared

META = {VERSION_KEY: STATELESS, CAPABILITIES_KEY: {}}
STREAM = {"Accept": "application/json, text/event-stream"}


def request(method: str, ident: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


def stateless(method: str, ident: Any = 1, **params: Any) -> dict[str, Any]:
    """What `httpx` sends for a request without handshake."""
    headers = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": method, **STREAM}
    if name := params.get("name") or params.get("uri"):
        headers["Mcp-Name"] = as_header(name)
    return {"json": request(method, ident, _meta=META, **params), "headers": headers}


# -- versions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [*VERSIONS, "1999-01-01", None])
async def test_the_handshake_agrees_on_a_version(shared: Standing, version: str | None) -> None:
    answer = await shared.http.post("/mcp", json=request("initialize", protocolVersion=version))
    result = answer.json()["result"]
    assert result["protocolVersion"] == (version if version in VERSIONS else VERSIONS[0])
    assert result["serverInfo"]["name"] == "portico"
    assert result["capabilities"].keys() == {"tools", "resources", "prompts"}
    assert "send_message" in result["instructions"]
    assert answer.headers["mcp-session-id"]


@pytest.mark.parametrize("version", [*SUPPORTED, "2031-01-01", "", "x" * 500])
async def test_the_header_names_a_version_that_is_served(shared: Standing, version: str) -> None:
    sent = stateless("tools/list") if version == STATELESS else {"json": request("tools/list"), "headers": {}}
    answer = await shared.http.post("/mcp", **{**sent, "headers": {**sent["headers"], "MCP-Protocol-Version": version}})
    assert answer.status_code == (200 if version in SUPPORTED else 400)
    if version not in SUPPORTED:
        error = answer.json()["error"]
        assert (error["code"], error["data"]) == (-32022, {"supported": list(SUPPORTED), "requested": version})


async def test_discover_without_a_handshake(shared: Standing) -> None:
    result = (await shared.http.post("/mcp", **stateless("server/discover"))).json()["result"]
    assert result["supportedVersions"] == list(SUPPORTED)
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "portico"
    assert result["capabilities"] == {
        "tools": {"listChanged": False},
        "resources": {"subscribe": False, "listChanged": False},
        "prompts": {"listChanged": False},
    }, "nothing that subscriptions/listen could report"


def _changed(
    sent: dict[str, Any], headers: dict[str, str] | None = None, meta: dict[str, Any] | None = None
) -> dict[str, Any]:
    params = {**sent["json"]["params"], "_meta": {**META, **(meta or {})}}
    params["_meta"] = {key: value for key, value in params["_meta"].items() if value is not ...}
    kept = {key: value for key, value in {**sent["headers"], **(headers or {})}.items() if value}
    return {"json": {**sent["json"], "params": params}, "headers": kept}


LIST, CALL = stateless("tools/list"), stateless("tools/call", name="list_agents", arguments={})


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (LIST, 200, None),
        (CALL, 200, None),
        (_changed(LIST, meta={VERSION_KEY: ...}), 400, -32602),
        (_changed(LIST, meta={CAPABILITIES_KEY: ...}), 400, -32602),
        (_changed(LIST, meta={VERSION_KEY: 7}), 400, -32602),
        (_changed(LIST, meta={VERSION_KEY: "2031-01-01"}), 400, -32020),
        (_changed(LIST, {"Mcp-Method": ""}), 400, -32020),
        (_changed(LIST, {"Mcp-Method": "tools/call"}), 400, -32020),
        (_changed(CALL, {"Mcp-Name": ""}), 400, -32020),
        (_changed(CALL, {"Mcp-Name": "delete_session"}), 400, -32020),
        (_changed(CALL, {"MCP-Protocol-Version": VERSIONS[0]}), 400, -32020),
        (stateless("initialize"), 404, -32601),
        (stateless("ping"), 404, -32601),
        (stateless("nope"), 404, -32601),
        (stateless("subscriptions/listen", notifications={"toolsListChanged": True}), 404, -32601),
        (stateless("tools/call", name="nope"), 400, -32602),
        (stateless("resources/read", uri="portico://nöpe"), 400, -32602),
    ],
)
async def test_a_request_without_handshake_repeats_itself_in_its_headers(
    shared: Standing, sent: dict[str, Any], status: int, code: int | None
) -> None:
    """The attack: a proxy allows a call by its headers, and the body calls another tool."""
    answer = await shared.http.post("/mcp", **sent)
    assert (answer.status_code, answer.json().get("error", {}).get("code")) == (status, code), answer.text


@pytest.mark.parametrize("value", ["plain", "nöpe", " edge", "=?base64?x", "line\nbreak", ""])
def test_a_header_carries_any_text(value: str) -> None:
    assert header_value(as_header(value)) == value
    assert as_header(value).isprintable()
    assert header_value("=?base64?###?=") is None


async def test_a_request_without_a_token_is_asked_for_one(shared: Standing) -> None:
    async with shared.client("wrong") as wrong:
        for client in (shared.stranger, wrong):
            answer = await client.post("/mcp", json=request("ping"))
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="Portico"')
    assert (await shared.http.get("/mcp")).status_code == 405


# -- cancelling --------------------------------------------------------------------------------------------------


async def _begun(here: Standing) -> tuple[str, Session]:
    ident = await here.start()
    return ident, await here.server.host.get(ident)


async def _speaks(session: Session) -> None:
    """Returns when the agent has said something in a running turn."""
    await session.wait_until(lambda state: state.active is not None and bool(state.active.parts))


async def _calls_ended() -> None:
    tasks = [task for task in asyncio.all_tasks() if task.get_name().startswith("mcp call")]
    if tasks:
        await asyncio.wait(tasks)


async def _send(http: httpx.AsyncClient, session: str, text: str = "slow", **more: Any) -> httpx.Response:
    arguments = {"session": session, "text": text, **more}
    body = request("tools/call", 7, name="send_message", arguments=arguments)
    return await http.post("/mcp", json=body, headers={"Mcp-Session-Id": "one", **STREAM})


async def _cancel(http: httpx.AsyncClient, session: str = "one", ident: Any = 7) -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ident}}
    assert (await http.post("/mcp", json=body, headers={"Mcp-Session-Id": session})).status_code == 202


def _events(answer: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


async def test_a_cancelled_call_cancels_its_turn(tmp_path: Path) -> None:
    async with driving(tmp_path) as (here, _):
        ident, session = await _begun(here)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(_send(here.http, ident))
            await _speaks(session)
            for wrong in ({"session": "two"}, {"ident": 8}, {"ident": "7"}, {"ident": None}):
                await _cancel(here.http, **wrong)
            async with here.client(new_token(here.home, "other", ["read", "drive"])) as other:
                await _cancel(other)
            assert session.state.active is not None
            await _cancel(here.http)
        assert [turn.outcome for turn in session.state.turns] == ["cancelled"]
        assert [each["error"]["code"] for each in _events(sending.result())] == [-32800]


async def test_with_keep_the_agent_continues_and_the_call_reports_it(tmp_path: Path) -> None:
    async with driving(tmp_path) as (here, _):
        ident, session = await _begun(here)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(_send(here.http, ident, keep=True))
            await _speaks(session)
            await _cancel(here.http)
        [reply] = _events(sending.result())
        assert reply["result"]["structuredContent"]["status"] == "running"
        assert reply["result"]["structuredContent"]["note"] == "The call was cancelled. The agent continues."
        assert session.state.active is not None


async def test_a_cancelled_call_removes_its_message_from_the_queue(tmp_path: Path) -> None:
    async with driving(tmp_path) as (here, _):
        ident, session = await _begun(here)
        await here.http.post(f"/v1/sessions/{ident}/messages", json={"text": "slow"})
        await _speaks(session)
        async with asyncio.TaskGroup() as group:
            group.create_task(_send(here.http, ident, "later"))
            await session.wait_until(lambda state: bool(state.queue))
            await _cancel(here.http)
        assert session.state.queue == []
        assert session.state.active is not None, "the turn of another message"


async def _first(here: Standing, ident: str, session: Session) -> None:
    """Another client's turn runs for a moment, so that the next message is queued."""
    await here.http.post(f"/v1/sessions/{ident}/messages", json={"text": "first"})
    await _speaks(session)


async def test_a_cancelled_call_cancels_the_turn_that_its_queued_message_has_become(tmp_path: Path) -> None:
    """The call found no queued message to remove, and the turn ran on."""
    async with driving(tmp_path) as (here, _):
        ident, session = await _begun(here)
        await _first(here, ident, session)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(_send(here.http, ident))
            await session.wait_until(lambda state: state.active is not None and state.active.message.text == "slow")
            await _cancel(here.http)
        assert [turn.outcome for turn in session.state.turns] == ["completed", "cancelled"]
        assert [each["error"]["code"] for each in _events(sending.result())] == [-32800]


async def test_a_call_with_a_queued_message_returns_the_answer_of_its_own_turn(tmp_path: Path) -> None:
    """It returned between two turns, with the answer to the message of another client."""
    async with driving(tmp_path) as (here, _):
        ident, session = await _begun(here)
        await _first(here, ident, session)
        answers = await asyncio.gather(*(_send(here.http, ident, text) for text in ("a", "b", "c")))
        shown = [_events(each)[-1]["result"]["structuredContent"] for each in answers]
        assert [(each["outcome"], each["answer"]) for each in shown] == [
            ("completed", f"You said {text}.") for text in ("a", "b", "c")
        ]


async def test_waiting_for_a_session_includes_its_queue(tmp_path: Path) -> None:
    async with driving(tmp_path) as (here, client):
        ident, session = await _begun(here)
        await _first(here, ident, session)
        await here.http.post(f"/v1/sessions/{ident}/messages", json={"text": "last"})
        found = await use(client, "wait_session", session=ident)
        assert (found["status"], found["answer"]) == ("idle", "You said last.")


@pytest.mark.parametrize("verb", ["removed", "cancelled"])
async def test_a_call_ends_if_its_queued_message_gets_no_turn(tmp_path: Path, verb: str) -> None:
    async with driving(tmp_path) as (here, _):
        ident, session = await _begun(here)
        await here.http.post(f"/v1/sessions/{ident}/messages", json={"text": "slow"})
        await _speaks(session)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(_send(here.http, ident, "later"))
            await session.wait_until(lambda state: bool(state.queue))
            if verb == "removed":
                await here.http.delete(f"/v1/sessions/{ident}/queue/{session.state.queue[0].id}")
                await sending
            await here.http.post(f"/v1/sessions/{ident}/cancel")
        shown = _events(sending.result())[-1]["result"]["structuredContent"]
        assert shown["status"] == ("running" if verb == "removed" else "idle")


@pytest.mark.parametrize(("keep", "runs"), [(False, False), (True, True)])
async def test_without_handshake_a_closed_stream_cancels(tmp_path: Path, keep: bool, runs: bool) -> None:
    async with driving(tmp_path) as (here, _):
        ident, session = await _begun(here)
        arguments = {"session": ident, "text": "slow", "keep": keep}
        async with here.http.stream(
            "POST", "/mcp", **stateless("tools/call", name="send_message", arguments=arguments)
        ):
            await _speaks(session)
        if not runs:
            await session.wait_until(lambda state: state.active is None)
            assert session.state.turns[-1].outcome == "cancelled"
            return
        await _calls_ended()
        assert session.state.active is not None


async def test_a_closed_stream_with_handshake_is_only_a_lost_connection(tmp_path: Path) -> None:
    async with driving(tmp_path) as (here, _):
        ident, session = await _begun(here)
        body = request("tools/call", name="send_message", arguments={"session": ident, "text": "slow", "wait": 0.2})
        async with here.http.stream("POST", "/mcp", json=body, headers=STREAM):
            await _speaks(session)
        await _calls_ended()
        assert session.state.active is not None


# -- progress ----------------------------------------------------------------------------------------------------


async def test_a_waiting_call_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portico.doors.mcp.tools.REPORT_SECONDS", 0.05)
    async with driving(tmp_path) as (_, client):
        session = (await use(client, "start_session"))["session"]
        seen: list[tuple[float, str | None]] = []
        enough = asyncio.Event()

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, message))
            if len(seen) >= 3:
                enough.set()

        arguments = {"session": session, "text": "slow", "wait": 20}
        async with asyncio.TaskGroup() as group:
            call = group.create_task(client.call_tool("send_message", arguments, progress_callback=progress))
            await enough.wait()
            await use(client, "cancel_turn", session=session)
        assert call.result().structured_content["outcome"] == "cancelled"
        values = [value for value, _ in seen]
        assert values == sorted(set(values)), "it only grows"
        assert any(message for _, message in seen)


async def test_without_a_stream_the_answer_is_plain_json(shared: Standing) -> None:
    ident = await shared.start()
    for headers, kind in (({}, "application/json"), (STREAM, "text/event-stream")):
        body = request("tools/call", name="wait_session", arguments={"session": ident})
        answer = await shared.http.post("/mcp", json=body, headers={"Accept": "application/json", **headers})
        assert answer.headers["content-type"].startswith(kind)


async def test_the_official_client_agrees_on_both_generations(tmp_path: Path) -> None:
    async with driving(tmp_path) as (here, client):
        assert client.protocol_version == STATELESS
        async with connected(here, here.home.token(), mode="legacy") as older:
            assert older.protocol_version == VERSIONS[0]
            assert [each["id"] for each in (await use(older, "list_agents"))["agents"]] == ["scripted"]
