"""Shells over REST: opened in a workspace, typed into, watched live and found again by a cursor."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from websockets.asyncio.client import ClientConnection, connect

from portico.doors.rest import attachment
from portico.features.terminals.commands import ClaimTerminal
from portico.features.terminals.terminals import LiveTerminal, Terminals
from portico.kernel import commands as c
from portico.kernel import limits
from portico.server.identity import new_token
from portico.server.route import SCOPES
from portico.workspace.terminal import SIDE_MAX
from tests.doors.standing import Standing, problem, read_events, standing
from tests.features import feature

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A plain sh: what the user's own start-up files do, and how long they take, is not ours to test."""
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
async def opened(shared: Standing) -> AsyncIterator[str]:
    ident = (await shared.http.post("/v1/terminals", json={"cols": 100, "rows": 30})).json()["id"]
    yield ident
    await shared.http.delete(f"/v1/terminals/{ident}")


class Viewer:
    """A client that keeps what it was shown, and where it was then."""

    def __init__(self, socket: ClientConnection, pos: int) -> None:
        self.socket = socket
        self.shown = ""
        self.pos = pos
        self.screens = 0
        self.events: list[Json] = []

    async def next(self) -> Json:
        async with asyncio.timeout(30):
            frame: Json = json.loads(await self.socket.recv())
        if "terminal" in frame:
            self.screens += 1
            self.shown, self.pos = frame["terminal"].get("shown", ""), frame["terminal"]["pos"]
        for record in frame.get("events", []):
            assert record["pos"] == self.pos + 1, "a gap or a repetition"
            self.pos = record["pos"]
            self.events.append(record["event"])
            if record["event"]["type"] == "terminal.data":
                self.shown += record["event"]["text"]
        return frame

    async def until(self, text: str) -> None:
        while text not in self.shown:
            await self.next()

    async def type(self, text: str) -> None:
        await self.socket.send(json.dumps({"type": "input", "data": text}))

    async def error(self) -> Json:
        while "error" not in (frame := await self.next()):
            pass
        return frame


@contextlib.asynccontextmanager
async def viewing(here: Standing, ident: str, after: int | None = None, **headers: str) -> AsyncIterator[Viewer]:
    address = f"{here.url.replace('http', 'ws', 1)}/v1/terminals/{ident}/socket"
    token = {"Authorization": f"Bearer {here.home.token()}"}
    query = "" if after is None else f"?after={after}"
    async with connect(address + query, additional_headers={**token, **headers}, proxy=None) as socket:
        yield Viewer(socket, after or 0)


def terminal(here: Standing, ident: str) -> LiveTerminal:
    return feature(here.server.host, Terminals).program(ident)


async def test_a_shell_is_opened_typed_into_resized_and_closed(shared: Standing) -> None:
    made = await shared.http.post("/v1/terminals", json={"title": "mine", "cols": 100, "rows": 30})
    assert made.status_code == 201
    ident, workspace = made.json()["id"], str(shared.server.app.workspaces[0])
    facts = {"id": ident, "title": "mine", "cwd": workspace, "cols": 100, "rows": 30}
    assert facts.items() <= made.json().items()
    assert [each["id"] for each in (await shared.http.get("/v1/terminals")).json()["terminals"]] == [ident]
    async with viewing(shared, ident) as viewer:
        typed = await shared.http.post(f"/v1/terminals/{ident}/input", json={"data": "echo $((40 + 2)); stty size\n"})
        assert typed.status_code == 204
        await viewer.until("30 100")
        assert "42" in viewer.shown
        resized = await shared.http.post(f"/v1/terminals/{ident}/resize", json={"cols": 90, "rows": 20})
        assert (resized.json()["cols"], resized.json()["rows"]) == (90, 20)
        await viewer.type("stty size\n")
        await viewer.until("20 90")
        assert (await shared.http.delete(f"/v1/terminals/{ident}")).status_code == 204
        while "terminal.removed" not in [each["type"] for each in viewer.events]:
            await viewer.next()
        with pytest.raises(websockets.ConnectionClosedOK):
            await viewer.next()
        # What was shown last is kept in one event of its own, before the terminal goes.
        types = [each["type"] for each in viewer.events if each["type"] != "terminal.shown"]
        assert types[-2:] == ["terminal.exited", "terminal.removed"]
    problem(await shared.http.get(f"/v1/terminals/{ident}"), 404, "not_found")


async def test_who_comes_later_sees_the_screen_and_who_comes_back_only_what_is_new(
    shared: Standing, opened: str
) -> None:
    async with viewing(shared, opened) as first:
        await first.type("echo first$((1 + 1))\n")
        await first.until("first2")
    shown = (await shared.http.get(f"/v1/terminals/{opened}")).json()
    assert "first2" in shown["shown"]
    async with viewing(shared, opened) as later:
        await later.until("first2")
        assert later.screens == 1
        await later.type("echo second$((2 + 2))\n")
        await later.until("second4")
    async with viewing(shared, opened, after=first.pos) as back:
        await back.until("second4")
        assert (back.screens, "first2" in back.shown) == (0, False)


async def test_a_reader_too_far_behind_gets_the_screen(
    shared: Standing, opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with viewing(shared, opened) as viewer:
        await viewer.type("echo far$((1 + 1))\n")
        await viewer.until("far2")
    monkeypatch.setattr(attachment, "CATCH_UP", 0)
    async with viewing(shared, opened, after=0) as back:
        await back.next()
        assert (back.screens, "far2" in back.shown) == (1, True)


async def test_a_reader_whose_events_were_compacted_gets_the_screen(shared: Standing, opened: str) -> None:
    async with viewing(shared, opened) as viewer:
        await viewer.type("echo old$((1 + 1))\n")
        await viewer.until("old2")
    host = shared.server.host
    assert await host.log.compact(host.now() + 1) > 0
    async with viewing(shared, opened, after=0) as back:
        await back.until("old2")
        assert back.screens == 1
        await back.type("echo new$((1 + 2))\n")
        await back.until("new3")


async def test_the_end_of_the_shell_is_told_and_stays_to_be_seen(shared: Standing, opened: str) -> None:
    async with viewing(shared, opened) as viewer:
        await viewer.type("exit 3\n")
        while "terminal.exited" not in [each["type"] for each in viewer.events]:
            await viewer.next()
        await viewer.type("too late\n")
        assert (await viewer.error())["code"] == "conflict"
    found = (await shared.http.get(f"/v1/terminals/{opened}")).json()
    assert (found["exited"], found["code"]) == (True, 3)
    problem(await shared.http.post(f"/v1/terminals/{opened}/input", json={"data": "x"}), 409, "conflict")


async def test_a_shell_of_a_session_begins_in_its_folder(shared: Standing, tmp_path: Path) -> None:
    session = await shared.start(cwd=str(tmp_path))
    made = (await shared.http.post("/v1/terminals", json={"session": session})).json()
    assert (made["cwd"], made["session"]) == (str(tmp_path), session)
    found = (await shared.http.get("/v1/terminals", params={"session": session})).json()["terminals"]
    assert [each["id"] for each in found] == [made["id"]]
    assert (await shared.http.get("/v1/terminals?session=session-0")).json()["terminals"] == []
    problem(await shared.http.post("/v1/terminals", json={"session": "nosuch"}), 404, "not_found")
    await shared.http.delete(f"/v1/terminals/{made['id']}")


async def test_wrong_openings_name_their_field(shared: Standing, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    inside = shared.server.app.workspaces[0] / "nosuch"
    for body, status, code, field in (
        ({"cwd": str(tmp_path)}, 403, "forbidden", "cwd"),
        ({"cwd": "../.."}, 403, "forbidden", "cwd"),
        ({"cwd": str(inside)}, 400, "bad_request", "cwd"),
        ({"cwd": "a\0b"}, 400, "bad_request", "cwd"),
        ({"cols": 0}, 400, "bad_request", "cols"),
        ({"rows": SIDE_MAX + 1}, 400, "bad_request", "rows"),
        ({"cols": "wide"}, 400, "bad_request", "cols"),
        ({"title": "x" * 201}, 400, "bad_request", "title"),
        ({"command": "rm"}, 400, "bad_request", "command"),
    ):
        problem(await shared.http.post("/v1/terminals", json=body), status, code, field)
    assert (await shared.http.get("/v1/terminals")).json()["terminals"] == []


async def test_wrong_messages_are_answered_and_the_socket_stays(shared: Standing, opened: str) -> None:
    path = f"/v1/terminals/{opened}"
    problem(await shared.http.post(f"{path}/resize", json={"cols": 80}), 400, "bad_request", "rows")
    problem(await shared.http.post(f"{path}/resize", json={"cols": 80, "rows": 0}), 400, "bad_request", "rows")
    problem(await shared.http.post(f"{path}/input", json={}), 400, "bad_request", "data")
    async with viewing(shared, opened) as viewer:
        for message, field in (
            ("{", "body"),
            (b"{}", "body"),
            ('{"type": "nosuch"}', "type"),
            ('{"type": "input"}', "data"),
            ('{"type": "resize", "cols": 0, "rows": 5}', "cols"),
        ):
            await viewer.socket.send(message)
            assert (await viewer.error())["field"] == field
        await viewer.type("echo still$((1 + 1))\n")
        await viewer.until("still2")


async def test_what_an_editor_holds_is_only_watched(shared: Standing, opened: str) -> None:
    claim = {"kind": "client", "clientId": "editor"}
    await shared.server.host.do(ClaimTerminal(terminal=opened, claim=claim), c.Caller.inside("client:editor"))
    path = f"/v1/terminals/{opened}"
    assert (await shared.http.get(path)).json()["held"] is True
    problem(await shared.http.post(f"{path}/input", json={"data": "x"}), 403, "forbidden")
    problem(await shared.http.post(f"{path}/resize", json={"cols": 9, "rows": 9}), 403, "forbidden")


async def test_the_gate_stands_before_the_socket(shared: Standing, opened: str) -> None:
    address = f"{shared.url.replace('http', 'ws', 1)}/v1/terminals/{opened}/socket"
    weak = new_token(shared.home, "no-shell", ["read", "drive"])
    strong = f"Bearer {shared.home.token()}"
    for headers in (
        {},
        {"Authorization": f"Bearer {weak}"},
        {"Authorization": strong, "Origin": "http://evil.example"},
        {"Authorization": strong, "Origin": "null"},
    ):
        with pytest.raises(websockets.InvalidStatus) as refused:
            await connect(address, additional_headers=headers, proxy=None)
        assert refused.value.response.status_code == 403
    for path, status in ((address.replace(opened, "nosuch"), 404), (f"{address}?after=x", 400)):
        with pytest.raises(websockets.InvalidStatus) as refused:
            await connect(path, additional_headers={"Authorization": strong}, proxy=None)
        assert refused.value.response.status_code == status


async def test_without_the_terminal_scope_there_is_no_terminal(shared: Standing, opened: str) -> None:
    others: list[str] = [scope for scope in SCOPES if scope != "terminal"]
    one = f"/v1/terminals/{opened}"
    async with shared.client(new_token(shared.home, "all-but-shells", others)) as http:
        for method, path, body in (
            ("GET", "/v1/terminals", None),
            ("POST", "/v1/terminals", {}),
            ("GET", one, None),
            ("POST", f"{one}/input", {"data": "x"}),
            ("POST", f"{one}/resize", {"cols": 80, "rows": 24}),
            ("DELETE", one, None),
        ):
            problem(await http.request(method, path, json=body), 403, "forbidden")
    assert "exited" not in (await shared.http.get(one)).json()  # nobody closed it


async def test_what_a_terminal_shows_is_in_no_event_of_who_has_not_its_scope(
    shared: Standing, opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was: `/v1/events` needs `read`, and followed every channel."""
    since = (await shared.http.get("/v1")).json()["log"]["seq"]
    async with viewing(shared, opened) as viewer:
        await viewer.type("echo key$((1 + 1))\n")
        await viewer.until("key2")
    assert "key2" in (await shared.http.get(f"/v1/events?after={since}")).text
    assert "key2" in (await shared.http.get(f"/v1/events?channel=terminal/{opened}")).text
    session = await shared.start()
    weak = new_token(shared.home, "reader", ["read"])
    async with shared.client(weak) as http:
        for path in (f"/v1/events?channel=terminal/{opened}", f"/v1/events?channel=host&channel=terminal/{opened}"):
            problem(await http.get(path), 403, "forbidden")
        # What lies between is passed over, and no page is empty before the end, however little is read at once.
        monkeypatch.setattr(limits, "READ_EVENTS", 1)
        page = (await http.get(f"/v1/events?after={since}&limit=1")).json()["events"]
        assert [each["channel"].partition("/")[0] for each in page] in (["host"], ["session"])
        told = await _all(http, since)
        assert f"session/{session}" in [each["channel"] for each in told]
        assert not [each for each in told if each["channel"].startswith("terminal/")]
        async with http.stream("GET", f"/v1/events?after={since}", headers={"Accept": "text/event-stream"}) as stream:
            streamed = [data for _, data in await read_events(stream, len(told))]
        assert streamed[: len(told)] == told  # more may have happened since


async def _all(http: httpx.AsyncClient, after: int) -> list[Json]:
    """Every event behind a cursor, page by page."""
    found: list[Json] = []
    while page := (await http.get("/v1/events", params={"after": after, "limit": 1})).json()["events"]:
        found += page
        after = page[-1]["seq"]
    return found


async def test_the_start_is_in_the_audit_record(shared: Standing, opened: str) -> None:
    audit = (await shared.http.get("/v1/audit")).json()
    assert [each for each in audit["audit"] if each["action"] == "terminal.started"][-1]["by"] == "token:owner"


async def test_a_restart_ends_shells_and_the_next_one_has_a_new_name(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        before = (await here.http.post("/v1/terminals")).json()["id"]
    async with standing(tmp_path) as here:
        problem(await here.http.get(f"/v1/terminals/{before}"), 404, "not_found")
        assert (await here.http.post("/v1/terminals")).json()["id"] != before
