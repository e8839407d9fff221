"""Commands that an ACP agent runs: terminals of the host, for everybody to watch and for nobody to type into."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from portico.doors.ahp.wire.uri import default_chat
from portico.features.terminals.terminals import Terminals
from portico.kernel.events import Message
from portico.kernel.session import Session
from portico.kernel.state import TurnState
from portico.testing.fixtures import HostOpener
from tests.agents.acp_agent import FAKE, calls, fake_agent, said, steps, waiting_approval
from tests.doors.ahp.wire_client import WireClient, opened
from tests.doors.standing import Standing, problem, standing
from tests.features import feature
from tests.free import FREE
from tests.workspace.living import gone, pids_in

Json = dict[str, Any]
FIRST = {"terminalId": "terminal-1"}
STAYS = "exec sleep 1000"
"""In the place of the shell: one that sees its child die first ends by itself, and not by a signal."""


def create(script: str, **more: Any) -> list[Any]:
    return ["ask", "terminal/create", {"command": "sh", "args": ["-c", script], **more}]


def tell(name: str) -> list[Any]:
    return ["ask", f"terminal/{name}", FIRST]


def shows(**more: Any) -> list[Any]:
    content = [{"type": "terminal", **FIRST}]
    return ["update", "tool_call", {"toolCallId": "t", "title": "Build", "kind": "execute", "content": content, **more}]


async def allowed(session: Session, *wanted: list[Any]) -> str:
    turn = await session.send(Message(steps(*wanted)), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
    return turn


async def played(open_host: HostOpener, tmp_path: Path, *wanted: list[Any]) -> tuple[TurnState, list[Json]]:
    """The turn, and what the agent was answered."""
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(tmp_path))
    turn = await session.wait(await allowed(session, *wanted))
    assert turn.outcome == "completed", turn.error
    assert [each.title for each in feature(host, Terminals).list()] == []
    return turn, answers(turn)


def answers(turn: TurnState) -> list[Json]:
    decoder, text, found = json.JSONDecoder(), said(turn), list[Json]()
    while text:
        each, end = decoder.raw_decode(text)
        found.append(each)
        text = text[end:]
    return found


async def test_a_program_finds_the_end_of_its_input_and_nobody_to_ask(open_host: HostOpener, tmp_path: Path) -> None:
    """A pipe made it so before; on a terminal it would wait for a person for ever."""
    script = "cat; read line; echo input $?; (read line </dev/tty) 2>&1 || echo nobody; test -t 1 && echo terminal"
    _, answered = await played(
        open_host, tmp_path, create(script), tell("wait_for_exit"), tell("output"), tell("release")
    )
    assert answered[1] == {"exitCode": 0, "signal": None}
    lines = answered[2]["output"].splitlines()
    assert (lines[0], lines[-2:]) == ("input 1", ["nobody", "terminal"])
    assert (answered[2]["truncated"], answered[3]) == (False, {})


async def test_the_end_of_long_output_is_kept_and_what_is_cut_is_said(open_host: HostOpener, tmp_path: Path) -> None:
    script = "seq 1000; printf '\\033[31mred\\033[0m \\303\\244\\303\\244'"
    _, answered = await played(
        open_host, tmp_path, create(script, outputByteLimit=3), tell("wait_for_exit"), tell("output"), tell("release")
    )
    # Bytes, but never half a letter; and no escapes, which are for the watchers.
    assert answered[2] == {"output": "ä", "truncated": True, "exitStatus": {"exitCode": 0, "signal": None}}


async def test_a_kill_ends_all_processes_and_leaves_the_output(open_host: HostOpener, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"echo began; sleep 1000 & echo $! $$ > {pids}; {STAYS}"
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(tmp_path))
    turn = await allowed(session, create(script), shows(), ["sleep", 1000])
    found = await pids_in(pids, 2)
    await session.wait_until(lambda state: bool(state.active and len(calls(state.active)) == 2))
    await session.cancel(by="test")
    assert (await session.wait(turn)).outcome == "cancelled"
    assert [each.title for each in feature(host, Terminals).list()] == [f"sh -c {script}"]
    then = await session.wait(
        await session.send(Message(steps(tell("kill"), tell("output"), tell("wait_for_exit"))), by="test")
    )
    for pid in found:
        await gone(pid)
    killed, output, status = answers(then)
    assert (killed, output["output"], status["exitCode"]) == ({}, "began\n", None)
    assert status["signal"] in ("SIGHUP", "SIGKILL")
    assert [each.exited for each in feature(host, Terminals).list()] == [True]
    await host.delete(session.id, by="test")
    assert feature(host, Terminals).list() == []


async def test_what_a_command_showed_stays_with_the_call(open_host: HostOpener, tmp_path: Path) -> None:
    """The terminal is gone as soon as the agent releases it."""
    ended = ["update", "tool_call_update", {"toolCallId": "t", "status": "failed"}]
    turn, answered = await played(
        open_host,
        tmp_path,
        create("echo one; exit 3"),
        shows(),
        tell("wait_for_exit"),
        tell("release"),
        ended,
        tell("output"),
    )
    asked, call = calls(turn)
    shown = {"type": "terminal", "terminal": "terminal-1", "title": "sh -c echo one; exit 3", "code": 3}
    assert (asked.content, asked.outcome, asked.exit_code) == ([shown], "completed", 3)
    assert (call.content, call.output, call.outcome) == ([shown], "one\n", "failed")
    assert call.exit_code == 3
    assert answered[-1]["code"] == -32002  # it has released it


@pytest.mark.parametrize(
    ("params", "field"),
    [({"command": ""}, "command"), ({"command": "make", "outputByteLimit": "many"}, "outputByteLimit")],
)
async def test_a_command_that_cannot_run_is_refused_and_its_call_has_failed(
    open_host: HostOpener, tmp_path: Path, params: Json, field: str
) -> None:
    turn, (answered,) = await played(open_host, tmp_path, ["ask", "terminal/create", params])
    assert answered["data"]["code"] == "bad_request", field
    (call,) = calls(turn)
    assert (call.outcome, call.error.code if call.error else "") == ("failed", "bad_request")


async def test_a_terminal_of_somebody_else_is_not_shown_as_the_agents(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(fake_agent(tmp_path))
    await feature(host, Terminals).start(
        policy=FREE, claim={"kind": "client", "clientId": "ada"}, cwd=str(tmp_path), by="ada"
    )
    session = await host.start(by="test", cwd=str(tmp_path))
    turn = await session.wait(await session.send(Message(steps(shows(status="completed"), tell("output"))), by="test"))
    assert [call.content for call in calls(turn)] == [[]]
    assert answers(turn)[0]["code"] == -32002


# -- as people see it ------------------------------------------------------------------------------------------


@asynccontextmanager
async def app(tmp_path: Path) -> AsyncIterator[Standing]:
    (tmp_path / "home").mkdir()
    command = json.dumps([sys.executable, "-S", "-E", str(FAKE)])
    (tmp_path / "home" / "settings.toml").write_text(f"[agents.acp.fake]\ncommand = {command}\n")
    async with standing(tmp_path, agents=("acp:fake",)) as here:
        yield here


async def until(here: Standing, ident: str, condition: Callable[[Json], Any]) -> Json:
    """Looks at the terminal again after each of its events."""
    async with asyncio.timeout(30):
        async for _ in here.server.host.log.follow(f"terminal/{ident}"):
            shown: Json = (await here.http.get(f"/v1/terminals/{ident}")).json()
            if condition(shown):
                return shown
    raise AssertionError("the log ended")


async def test_a_running_command_is_watched_and_closed_but_not_typed_into(tmp_path: Path) -> None:
    async with app(tmp_path) as here:
        ident = await here.start(agent="acp:fake", cwd=str(tmp_path))
        session = await here.server.host.get(ident)
        script = f"echo ready; {STAYS}"
        turn = await allowed(session, create(script), shows(), tell("wait_for_exit"), tell("release"))
        await until(here, "terminal-1", lambda shown: "ready\r\n" in shown.get("shown", ""))
        (found,) = (await here.http.get(f"/v1/terminals?session={ident}")).json()["terminals"]
        assert (found["title"], found["held"], found["cwd"]) == (f"sh -c {script}", True, str(tmp_path))

        said_no = problem(await here.http.post("/v1/terminals/terminal-1/input", json={"data": "x"}), 403, "forbidden")
        assert said_no.startswith("An agent holds the terminal 'terminal-1'")
        problem(await here.http.post("/v1/terminals/terminal-1/resize", json={"cols": 9, "rows": 9}), 403, "forbidden")

        assert (await here.http.delete("/v1/terminals/terminal-1")).status_code == 204
        ended = await session.wait(turn)
        _, status, released = answers(ended)
        assert (status["signal"] in ("SIGHUP", "SIGKILL"), released) == (True, {})
        assert calls(ended)[1].output == "ready\n"
        assert (await here.http.get("/v1/terminals")).json()["terminals"] == []


@pytest.mark.parametrize("version", ["1", "0.7.0", "1.0.0"])
async def test_an_editor_sees_the_command_and_whose_it_is(tmp_path: Path, version: str) -> None:
    async with app(tmp_path) as here:
        ident = await here.start(agent="acp:fake", cwd=str(tmp_path))
        session = await here.server.host.get(ident)
        turn = await allowed(
            session, create(f"echo ready; {STAYS}"), shows(status="in_progress"), tell("wait_for_exit")
        )
        await session.wait_until(
            lambda state: any(call.title == "Build" and call.content for call in calls(state.active))
        )
        address = f"{here.url}/ahp?tkn={here.home.token()}".replace("http", "ws")
        async with opened(WireClient(address, "editor", version)) as client:
            await client.initialize(client.root)
            await client.wait(lambda: client.states[client.root]["terminals"])
            (found,) = client.states[client.root]["terminals"]
            name = found["resource"]
            assert (name, found["claim"]["kind"]) == ("ahp-terminal:/terminal-1", "session")
            assert found["claim"]["session"] == f"acp-fake:/{ident}"
            await client.subscribe(name)
            await client.wait(lambda: any("ready" in part["value"] for part in client.states[name]["content"]))
            actions: dict[str, Json] = {"input": {"data": "x"}, "cleared": {}, "resized": {"cols": 9, "rows": 9}}
            for kind, fields in actions.items():
                echo = await client.act(name, f"terminal/{kind}", **fields)
                assert "An agent runs a command" in echo["rejectionReason"]
            talk = f"acp-fake:/{ident}" if client.seed else default_chat(f"acp-fake:/{ident}")
            await client.subscribe(talk)
            shown = client.states[talk]["activeTurn"]["responseParts"][-1]["toolCall"]["content"][0]
            assert {"type": "terminal", "resource": name}.items() <= shown.items()
            await client.request("disposeTerminal", **{"terminal" if client.seed else "channel": name})
            await client.wait(lambda: client.states[client.root]["terminals"] == [])
        assert (await session.wait(turn)).outcome == "completed"
