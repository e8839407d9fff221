"""How long does it take to list and adopt sessions of agents' own programs, and to connect a phone?

Seven programs (the fake ACP agent of the tests, each a process) keep 1,000 sessions each. The adopted session has 2,000
messages; the time that its program needs for them alone is measured with a client that only reads. Pairing runs from
the start of `portico serve` to an approval that the paired device has answered.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import uvloop
from tests.agents.acp_agent import FAKE
from tests.native.programs import LISTS, write

from bench.fresh_host import serve
from bench.row import Row, ms, p50, verdict
from portico.agents import script
from portico.agents.acp import acp
from portico.agents.agent import AgentContext
from portico.agents.scripted import ScriptedAgent
from portico.features.native.commands import AdoptSession, FindSessions
from portico.features.native.listing import CACHE_SECONDS
from portico.kernel import commands as c
from portico.kernel.clock import Clock
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.server import memory
from portico.server.compose import build_host
from portico.server.home import Home

QUESTION = "sessions of agents' own programs: listing, adopting, opening; pairing a phone"

AGENTS = 7
SESSIONS = 1_000
MESSAGES = 2_000
RUNS = 5
SCRIPT = {
    "providers": [{"id": "codex", "name": "Codex"}],
    "rules": [
        {
            "match": "clean",
            "steps": [
                {"do": "tool", "name": "bash", "kind": "execute", "permission": {"kind": "shell", "command": "make"}}
            ],
        }
    ],
}
OWNER = c.Caller("owner", "owner", frozenset({"read", "drive", "approve", "admin"}))


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work").mkdir()
        for number in range(SESSIONS):
            write(folder, f"n{number:04}", f"message of session {number}", "and another")
        rows = [row for page in (100, SESSIONS) for row in uvloop.run(_listing(folder, page))]
    return [*rows, *uvloop.run(_adopting()), _pairing()]


class Later(Clock):
    """A clock that can be moved on: the cache of a list is valid for a minute."""

    passed = 0.0

    def awake(self) -> float:
        return super().awake() + self.passed


def _environment(folder: Path, page: int) -> dict[str, str]:
    store, work = str(folder / "store"), str(folder / "work")
    return {"FAKE_STORE": store, "FAKE_LIST": work, "FAKE_CAPS": LISTS, "FAKE_PAGE": str(page)}


COMMAND = [sys.executable, "-S", "-E", str(FAKE)]


@asynccontextmanager
async def _host(
    folder: Path, page: int, log: str = "log.db", agents: int = AGENTS
) -> AsyncIterator[tuple[Host, Later]]:
    table = {"command": COMMAND, "env": _environment(folder, page)}
    context = AgentContext(folder, {"acp": {f"fake{number}": table for number in range(agents)}})
    found = [each for each in acp(context) if each.id.startswith("acp:fake")]
    assert len(found) == agents
    clock, stored = Later(), await SqliteLog.open(folder / log)
    host = await build_host(stored, [*found, ScriptedAgent(script.Provider("scripted", "Scripted"))], clock)
    memory.settle()  # as `portico serve` does
    try:
        yield host, clock
    finally:
        await host.close()
        await stored.close()


async def _listing(folder: Path, page: int) -> list[Row]:
    cold, again, cached = [], [], []
    for run in range(RUNS):
        async with _host(folder, page, f"{page}-{run}.db") as (host, clock):
            cold.append(await _list(host, page))
            cached += [await _list(host, page) for _ in range(RUNS)]
            clock.passed = CACHE_SECONDS + 1
            again.append(await _list(host, page))
    bare = p50([await asyncio.to_thread(_start_bare, folder, page) for _ in range(RUNS)])
    what = f"{AGENTS} agents with {SESSIONS:,} sessions each, pages of {page:,}"
    return [
        Row(
            f"first list of {what}",
            ms(p50(cold)),
            f"the {AGENTS} programs alone {ms(bare)}",
            f"{p50(cold) / bare:.1f}x",
            verdict("1.5 s", p50(cold) <= 1.5),
        ),
        Row("the same after a minute, programs running", ms(p50(again)), "-", "-", "-"),
        Row("the same from the cache", ms(p50(cached)), "-", "-", verdict("50 ms", p50(cached) <= 0.05)),
    ]


async def _list(host: Host, page: int) -> float:
    """Until all programs have answered: a list waits three seconds for each, and a busy machine may need two lists."""
    started = time.perf_counter()
    pages = (await host.do(FindSessions(), OWNER)).agents
    while any(each.problem for each in pages):
        pages = (await host.do(FindSessions(), OWNER)).agents
    seconds = time.perf_counter() - started
    assert [(len(each.sessions), each.problem) for each in pages] == [(page, "")] * AGENTS, pages
    return seconds


def _start_bare(folder: Path, page: int) -> float:
    """The same programs, started and asked by a client that only reads."""
    started = time.perf_counter()
    programs = [_program(folder, page) for _ in range(AGENTS)]
    for each in programs:
        _request(each, 1, "initialize", {"protocolVersion": 1})
    for each in programs:
        _request(each, 2, "session/list", {})
    for each in programs:
        _answer(each, 2)
    seconds = time.perf_counter() - started
    for each in programs:
        _end(each)
    return seconds


async def _adopting() -> list[Row]:
    text = "a message of some length, as people write them " * 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work").mkdir()
        for run in range(RUNS):
            write(folder, f"n{run}", *(f"{number}: {text}" for number in range(MESSAGES // 2)))
        bare = p50([await asyncio.to_thread(_load_bare, folder, f"n{run}") for run in range(RUNS)])
        taken, adopted = [], ""
        async with _host(folder, 100, agents=1) as (host, _):
            await host.do(FindSessions(), OWNER)  # the program runs
            for run in range(RUNS):
                started = time.perf_counter()
                session = await host.do(AdoptSession(agent="acp:fake0", native=f"n{run}"), OWNER)
                taken.append(time.perf_counter() - started)
                adopted = session.id
                assert session.turns == MESSAGES // 2
            own = await host.start(by="bench", agent="scripted", cwd=str(folder / "work"))
            for number in range(MESSAGES // 2):
                await own.wait(await own.send(Message(f"[[say:replayed]] {number}: {text}"), by="bench"))
            ordinary = own.id
        both = [(await _open(folder, adopted), await _open(folder, ordinary)) for _ in range(RUNS)]
    ours = p50(taken) - bare
    opened, other = (p50(each) for each in zip(*both, strict=True))
    return [
        Row(
            f"adopting a session of {MESSAGES:,} messages, without its program's time",
            ms(ours),
            f"the program alone {ms(bare)}",
            f"{p50(taken) / bare:.1f}x",
            verdict("2 s", ours <= 2),
        ),
        Row(
            "opening it after a restart, CPU",
            ms(opened),
            f"an ordinary session of its size {ms(other)}",
            f"{opened / other:.1f}x",
            verdict("1.2x", opened / other <= 1.2),
        ),
    ]


async def _open(folder: Path, ident: str) -> float:
    async with _host(folder, 100, agents=1) as (host, _):
        started = time.process_time()
        session = await host.get(ident)
        seconds = time.process_time() - started
        assert len(session.state.turns) == MESSAGES // 2
    return seconds


def _load_bare(folder: Path, session: str) -> float:
    program = _program(folder, 100)
    _request(program, 1, "initialize", {"protocolVersion": 1})
    _answer(program, 1)
    started = time.perf_counter()
    _request(program, 2, "session/load", {"sessionId": session, "cwd": str(folder / "work"), "mcpServers": []})
    _answer(program, 2)
    seconds = time.perf_counter() - started
    _end(program)
    return seconds


def _program(folder: Path, page: int) -> "subprocess.Popen[bytes]":
    env = {**os.environ, **_environment(folder, page)}
    return subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)


def _request(program: "subprocess.Popen[bytes]", ident: int, method: str, params: dict[str, Any]) -> None:
    assert program.stdin is not None
    program.stdin.write(
        json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode() + b"\n"
    )
    program.stdin.flush()


def _answer(program: "subprocess.Popen[bytes]", ident: int) -> None:
    assert program.stdout is not None
    while json.loads(program.stdout.readline()).get("id") != ident:
        pass


def _end(program: "subprocess.Popen[bytes]") -> None:
    assert program.stdin is not None
    program.stdin.close()
    program.wait(10)


def _pairing() -> Row:
    seconds = p50([_pair() for _ in range(3)])
    return Row(
        "start of the host to an approval that a paired phone has answered",
        ms(seconds),
        "-",
        "-",
        verdict("30 s", seconds <= 30),
    )


def _pair() -> float:
    with tempfile.TemporaryDirectory() as home:
        started = time.perf_counter()
        (Path(home) / "script.json").write_text(json.dumps(SCRIPT))
        command = [*serve(home), "--script", f"{home}/script.json", "--public-url", "https://box.example"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            port = process.stdout.readline().strip().partition(":")[2]
            base = f"http://127.0.0.1:{port}"
            typed = [sys.executable, "-m", "portico", "pair"]
            env = {**os.environ, "PORTICO_HOME": home}
            printed = subprocess.run(typed, capture_output=True, text=True, check=True, env=env).stdout
            owner = {"Authorization": f"Bearer {Home(Path(home)).token()}"}
            with httpx.Client(base_url=base, headers=owner) as page, httpx.Client(base_url=base) as phone:
                login = phone.post("/pair", data={"code": printed.split()[-1], "device": "Phone"})
                key = {"X-Portico-Key": login.headers["location"].partition("#key=")[2]}
                session = page.post("/v1/sessions", json={"agent": "codex"}).json()["id"]
                page.post(f"/v1/sessions/{session}/messages", json={"text": "clean"})
                while not (waiting := phone.get("/v1/inbox", headers=key).json()["waiting"]):
                    time.sleep(0.01)
                approval = waiting[0]["id"]
                answered = phone.post(f"/v1/approvals/{approval}", json={"allow": True}, headers=key)
                answered.raise_for_status()
            seconds = time.perf_counter() - started
            process.terminate()
    return seconds
