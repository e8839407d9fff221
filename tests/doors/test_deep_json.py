"""JSON that is nested without end, from an agent, a model, a server or a client: no reader of it ends, in no door.

A call whose input was such a text broke the snapshot of its session for every editor, for ever.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from portico import mcp
from portico.agents.copilot.notice import _reason
from portico.agents.loop.refusal import _words
from portico.client.acp.content import decoded
from portico.doors.ahp.wire import uri
from portico.doors.anywhere.translate import _preview
from portico.features.jobs.check import json_of
from portico.features.jobs.items import _array
from portico.features.jobs.task_sessions import TaskCrash
from portico.features.jobs.tools import argument_of
from portico.kernel import events as e
from portico.kernel.events import Message
from tests.doors.ahp.wire_client import WireClient, opened
from tests.doors.standing import standing

DEEP = "[" * 100_000 + "]" * 100_000
OBJECT = '{"command":' * 50_000 + "1" + "}" * 50_000
TEXTS = [DEEP, OBJECT, DEEP[:50_000], '"\ud800"', "1" * 10_000, ""]
READERS: dict[str, Callable[[str], Any]] = {
    "reason of Copilot": _reason,
    "error of a model": lambda text: _words(text.encode("utf-8", "replace")),
    "call in ACP": decoded,
    "preview": _preview,
    "argument of a tool": argument_of,
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_it_for_text(name: str) -> None:
    for text in TEXTS:
        READERS[name](text)


@pytest.mark.parametrize("text", [DEEP, OBJECT])
def test_a_job_takes_it_for_an_answer_without_json(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON in the answer"):
        json_of(text)
    with pytest.raises(TaskCrash):
        _array("x", text)


async def test_it_is_a_parse_error_of_mcp() -> None:
    for body in (DEEP.encode(), OBJECT.encode(), b'"\xff"', b"\xff"):
        found = json.loads(await mcp.answer(body, None) or b"{}")  # type: ignore[arg-type]
        assert found["error"]["code"] == mcp.PARSE_ERROR


async def test_every_door_shows_a_call_with_such_an_input(tmp_path: Path) -> None:
    async with standing(tmp_path, agents=("scripted",)) as here:
        ident = await here.start(cwd=str(tmp_path))
        session = await here.server.host.get(ident)
        for number, text in enumerate([DEEP, OBJECT]):
            turn, call = f"t-{number}", f"c-{number}"
            await session.append(
                e.TurnStarted(turn, Message("go"), "token:owner"),
                e.ToolStarted(turn, call, "createFile", "Create", "edit"),
                e.ToolReady(turn, call, text, "Create"),
                e.ToolEnded(turn, call, True, "done"),
                e.TurnEnded(turn, "completed"),
            )
        for path in ("", "/events", "/archive", "/export", "/transcript"):
            answer = await here.http.get(f"/v1/sessions/{ident}{path}")
            assert answer.status_code in (200, 404), answer.text[:200]
        live = await here.http.get(f"/api/copilot/session/{ident}/live/token")
        assert live.status_code == 200
        assert "createFile" in live.text
        await _streams(here.http)
        url = f"{here.url.replace('http', 'ws')}/?tkn={here.home.token()}"
        async with opened(WireClient(url, "editor", "0.9.0")) as client:
            await client.initialize()
            await client.subscribe(uri.default_chat(f"scripted:/{ident}"))
            assert len(client.states[uri.default_chat(f"scripted:/{ident}")]["turns"]) == 2


async def _streams(http: httpx.AsyncClient) -> None:
    async with asyncio.timeout(30), http.stream("GET", "/events") as answer:
        assert answer.status_code == 200


@pytest.mark.parametrize(
    "path", ["/v1/sessions", "/v1/commands", "/mcp", "/hooks/x", "/message", "/v1/entry/check", "/v1/automations"]
)
async def test_no_route_takes_it(tmp_path: Path, path: str) -> None:
    async with standing(tmp_path, agents=("scripted",)) as here:
        for body in (DEEP, OBJECT):
            answer = await here.http.post(path, content=body, headers={"content-type": "application/json"})
            assert answer.status_code < 500, answer.text
