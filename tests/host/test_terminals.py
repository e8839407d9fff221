"""Terminals as things of the host: real shells, their story in the log, and their end in every case."""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portico import events as e
from portico.errors import AlreadyExists, NotFound
from portico.host.host import Host
from portico.host.terminals import OPEN, OpenTerminal
from portico.testing.fixtures import HostOpener
from portico.workspace.scrollback import Command
from tests.workspace.living import alive

CLAIM = {"kind": "client", "clientId": "ada"}


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A plain bash: what the user's own start-up files do, and how long they take, is not ours to test."""
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("HOME", str(tmp_path))


async def until(host: Host, terminal: OpenTerminal, condition: Callable[[], Any]) -> Any:
    """Looks again at every batch of the terminal's events."""
    async with asyncio.timeout(10):
        async for _ in host.log.follow(terminal.channel):
            found = condition()
            if found:
                return found
    raise AssertionError("the log ended")


def _is_complete(part: object) -> bool:
    return isinstance(part, Command) and part.complete


async def gone(pid: int) -> None:
    async with asyncio.timeout(10):
        while alive(pid):  # noqa: ASYNC110  (the kernel tells only the parent)
            await asyncio.sleep(0.01)


async def events(host: Host, terminal: OpenTerminal) -> list[e.Event]:
    await host.log.settled()
    return [record.event for record in await host.log.read(terminal.channel)]


async def test_a_command_and_its_end(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    terminal = await host.terminals.start(claim=CLAIM, cwd=str(tmp_path), by="ada", title="mine")
    terminal.input("echo $((40 + 2)); false\n")
    await until(host, terminal, lambda: [each for each in terminal.shown.parts if _is_complete(each)])
    assert "42" in terminal.shown.text()
    told = await events(host, terminal)
    assert isinstance(told[0], e.TerminalStarted)
    [ended] = [each for each in told if isinstance(each, e.TerminalCommandEnded)]
    assert ended.code == 1
    [command] = [each for each in told if isinstance(each, e.TerminalCommand)]
    assert "echo" in command.line
    assert "633" not in "".join(each.text for each in told if isinstance(each, e.TerminalData))


async def test_disposing_ends_all_processes(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    terminal = await host.terminals.start(claim=CLAIM, cwd=str(tmp_path), by="ada")
    terminal.input("sleep 1000 & echo pid=$!\n")
    [pid] = await until(host, terminal, lambda: re.findall(r"pid=(\d+)\r", terminal.shown.text()))
    await host.terminals.dispose(terminal.id, by="ada")
    await gone(int(pid))
    told = await events(host, terminal)
    assert [type(each) for each in told[-2:]] == [e.TerminalExited, e.TerminalRemoved]
    with pytest.raises(NotFound):
        host.terminals.get(terminal.id)


async def test_names_are_taken_once(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    await host.terminals.start(claim=CLAIM, cwd=str(tmp_path), by="ada", uri="t:/1")
    with pytest.raises(AlreadyExists):
        await host.terminals.start(claim=CLAIM, cwd=str(tmp_path), by="ada", uri="t:/1")


async def test_a_stop_of_the_host_ends_them(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    terminal = await host.terminals.start(claim=CLAIM, cwd=str(tmp_path), by="ada")
    pid = terminal.pty.pid
    await open_host.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_crash_leaves_no_terminal_open(open_host: HostOpener) -> None:
    host = await open_host()
    started = e.TerminalStarted(terminal="terminal-7", title="t", cwd="/", claim=CLAIM, by="ada")
    host.log.note("terminal/terminal-7", OPEN, b"open")
    await host.log.append("terminal/terminal-7", started)
    await open_host.close()
    again = await open_host()
    told = [record.event for record in await again.log.read("terminal/terminal-7")]
    assert [type(each) for each in told] == [e.TerminalStarted, e.TerminalExited, e.TerminalRemoved]
    assert again.terminals.list() == []
    await open_host.close()
    later = await open_host()
    assert len(await later.log.read("terminal/terminal-7")) == 3
