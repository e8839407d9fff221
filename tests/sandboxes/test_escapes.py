"""The table of escapes, from each place in which an agent's work runs. The number of escapes is 0."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portico.kernel import commands as c
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import CallPart, TurnState
from portico.sandbox import attempts
from portico.testing.fixtures import HostOpener
from tests.agents.acp_agent import fake_agent, said, steps
from tests.jobs.playing import make, opened, play, story, task
from tests.sandboxes.attack import PYTHON, Attacked, attacked
from tests.sandboxes.later import Planted

EVERYTHING = c.Caller.inside("test")
modes = pytest.mark.parametrize("mode", ["project", "strict"])


@pytest.fixture
def attack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attacked]:
    with attacked(tmp_path) as found:
        monkeypatch.setenv("HOME", str(found.home))
        yield found


def output_of(turn: TurnState) -> str:
    return "".join(part.output for part in turn.parts if isinstance(part, CallPart))


def test_the_attempts_succeed_without_a_sandbox(attack: Attacked) -> None:
    """Otherwise the table proves nothing. Only those that touch what this test has created."""
    facts = {**attack.facts, "folder": str(attack.other)}
    (attack.other / ".git/hooks").mkdir(parents=True)
    only = [*(f"read {path}" for path in facts["secrets"]), "signal the host", "write a git hook"]
    only += ["read the environment of the host", f"connect to port {facts['ports'][0]}"]
    only += [f"connect to {facts['sockets'][0]}", f"connect to @{facts['abstract'][0]}"]
    source = Path(attempts.__file__).read_text()
    command = [PYTHON, "-I", "-c", source, json.dumps({**facts, "only": only})]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert json.loads(done.stdout) == dict.fromkeys(only, attempts.ESCAPED)


@modes
async def test_from_a_command_of_a_person(open_host: HostOpener, attack: Attacked, mode: str) -> None:
    host = await open_host()
    session = await host.start(by="test", cwd=str(attack.work), config={"sandbox": mode})
    turn = await host.do(c.RunCommand(session=session.id, line=attack.line), EVERYTHING)
    attack.check(output_of(await session.wait(turn.turn)))


@modes
async def test_from_a_command_of_an_agent(open_host: HostOpener, attack: Attacked, tmp_path: Path, mode: str) -> None:
    """An agent that uses terminal/create: its commands ran outside when only its own process was confined."""
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(attack.work), config={"sandbox": mode})
    (attack.work / "attack.sh").write_text(attack.line)  # as a line it would ask: it names protected files
    create: list[Any] = ["ask", "terminal/create", {"command": "sh", "args": ["attack.sh"]}]
    first = {"terminalId": "terminal-1"}
    turn = await _played(session, create, ["ask", "terminal/wait_for_exit", first], ["ask", "terminal/output", first])
    answers = [json.loads(each) for each in _objects(said(turn))]
    attack.check(next(each["output"] for each in answers if "output" in each))


@modes
async def test_from_the_process_of_an_agent(open_host: HostOpener, attack: Attacked, tmp_path: Path, mode: str) -> None:
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(attack.work), config={"sandbox": mode})
    turn = await _played(session, ["shell", attack.line])
    attack.check(said(turn))


async def test_from_a_check_of_a_job(open_host: HostOpener, attack: Attacked) -> None:
    host = await open_host()
    result = attack.work / "result.json"
    planted = Planted(attack.work)
    line = f"{attack.line} > {result}; sh later.sh"
    entry = make({"main": task(criteria={"checks": [{"command": line}], "failureAction": {"retryTimes": 0}})})
    jobs = await opened(host, entry)
    async with asyncio.timeout(60):
        await play(jobs, attack.work)
    words = await story(host.log, "task-1")
    assert any("Command passed" in word for word in words), words
    attack.check(result.read_text())
    planted.check()
    await _ended(host)


async def _played(session: Session, *wanted: list[Any]) -> TurnState:
    turn = await session.wait(await session.send(Message(steps(*wanted)), by="test"))
    assert turn.outcome == "completed", turn.error
    return turn


def _objects(text: str) -> list[str]:
    decoder, found = json.JSONDecoder(), list[str]()
    while "{" in text:
        text = text[text.index("{") :]
        value, end = decoder.raw_decode(text)
        found.append(json.dumps(value))
        text = text[end:]
    return found


async def _ended(host: Host) -> None:
    await host.close()
    assert not [name for name in os.listdir("/tmp") if name.startswith(f"portico-sandbox-{os.getpid()}-")]
