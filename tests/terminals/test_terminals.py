"""Terminals as things of the host: real shells, their story in the log, and their end in every case."""

import asyncio
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from portico import limits
from portico.features.terminals import events as te
from portico.features.terminals.terminals import OPEN, LiveTerminal, Terminals
from portico.kernel import events as e
from portico.kernel import limits as kernel_limits
from portico.kernel.errors import AlreadyExists, NotFound, PorticoError
from portico.kernel.host import Host
from portico.testing.fixtures import HostOpener
from portico.workspace.scrollback import ShellCommand
from tests.features import feature
from tests.free import FREE
from tests.workspace.living import gone

CLAIM = {"kind": "client", "clientId": "ada"}


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A plain bash: what the user's own start-up files do, and how long they take, is not ours to test."""
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("HOME", str(tmp_path))


async def until(host: Host, terminal: LiveTerminal, condition: Callable[[], Any]) -> Any:
    """Looks again at every batch of the terminal's events."""
    async with asyncio.timeout(30):
        async for _ in host.log.follow(terminal.channel):
            found = condition()
            if found:
                return found
    raise AssertionError("the log ended")


def _is_complete(part: object) -> bool:
    return isinstance(part, ShellCommand) and part.complete


async def events(host: Host, terminal: LiveTerminal) -> list[e.Event]:
    await host.log.flush()
    return [record.event for record in await host.log.read(terminal.channel)]


async def test_a_command_and_its_end(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    terminal = await feature(host, Terminals).start(policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada", title="mine")
    terminal.input("echo $((40 + 2)); false\n")
    await until(host, terminal, lambda: [each for each in terminal.shown.parts if _is_complete(each)])
    assert "42" in terminal.shown.text()
    told = await events(host, terminal)
    assert isinstance(told[0], te.TerminalStarted)
    [ended] = [each for each in told if isinstance(each, te.TerminalCommandEnded)]
    assert ended.code == 1
    [command] = [each for each in told if isinstance(each, te.TerminalCommand)]
    assert "echo" in command.line
    assert "633" not in "".join(each.text for each in told if isinstance(each, te.TerminalData))


async def test_disposing_ends_all_processes(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    terminal = await feature(host, Terminals).start(policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada")
    terminal.input("sleep 1000 & echo pid=$!\n")
    [pid] = await until(host, terminal, lambda: re.findall(r"pid=(\d+)\r", terminal.shown.text()))
    await feature(host, Terminals).dispose(terminal.id, by="ada")
    await gone(int(pid))
    told = await events(host, terminal)
    assert [type(each) for each in told[-3:]] == [te.TerminalExited, te.TerminalShown, te.TerminalRemoved]
    with pytest.raises(NotFound):
        feature(host, Terminals).get(terminal.id)


async def test_names_are_taken_once(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    await feature(host, Terminals).start(policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada", uri="t:/1")
    with pytest.raises(AlreadyExists):
        await feature(host, Terminals).start(policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada", uri="t:/1")


async def test_a_stop_of_the_host_ends_them(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    terminal = await feature(host, Terminals).start(policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada")
    pid = terminal.pty.pid
    await open_host.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_crash_leaves_no_terminal_open(open_host: HostOpener) -> None:
    host = await open_host()
    started = te.TerminalStarted(terminal="terminal-7", title="t", cwd="/", claim=CLAIM, by="ada")
    host.log.put_kv("terminal/terminal-7", OPEN, b"open")
    await host.log.append("terminal/terminal-7", started)
    await open_host.close()
    again = await open_host()
    told = [record.event for record in await again.log.read("terminal/terminal-7")]
    assert [type(each) for each in told] == [te.TerminalStarted, te.TerminalExited, te.TerminalRemoved]
    assert feature(again, Terminals).list() == []
    await open_host.close()
    later = await open_host()
    assert len(await later.log.read("terminal/terminal-7")) == 3


async def test_what_a_terminal_showed_outlives_the_compaction_of_its_output(
    open_host: HostOpener, tmp_path: Path
) -> None:
    """Compaction dropped the pieces, and no event had the whole: after a day the terminal's story was empty."""
    host = await open_host()
    terminal = await feature(host, Terminals).start(policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada")
    terminal.input("echo $((40 + 2))\n")
    await until(host, terminal, lambda: [each for each in terminal.shown.parts if _is_complete(each)])
    host.retention_hours = -1.0
    await host.sweep()
    told = await events(host, terminal)
    [shown] = [each for each in told if isinstance(each, te.TerminalShown)]
    assert "42" in shown.text
    terminal.input("echo $((50 + 3))\n")
    await until(host, terminal, lambda: "53" in terminal.shown.text())
    await feature(host, Terminals).dispose(terminal.id, by="ada")
    await host.sweep()
    told = await events(host, terminal)
    assert not any(isinstance(each, te.TerminalData) for each in told)
    last = [each for each in told if isinstance(each, te.TerminalShown)][-1]
    assert "42" in last.text
    assert "53" in last.text
    assert isinstance(told[-1], te.TerminalRemoved)


async def test_a_sweep_keeps_what_no_event_has_as_a_whole_yet(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    terminal = await feature(host, Terminals).start(policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada")
    terminal.input("echo $((40 + 2))\n")
    await until(host, terminal, lambda: "42" in terminal.shown.text())
    before = await events(host, terminal)
    await host.sweep()
    assert (await events(host, terminal))[: len(before)] == before
    assert await host.log.compact(2**53, {terminal.channel: terminal.kept + 1}) == 0


async def test_a_crash_leaves_what_the_terminal_showed_and_its_end(open_host: HostOpener) -> None:
    host = await open_host()
    channel = "terminal/terminal-7"
    host.log.put_kv(channel, OPEN, b"open")
    await host.log.append(
        channel,
        te.TerminalStarted(terminal="terminal-7", title="t", cwd="/", claim=CLAIM, by="ada"),
        te.TerminalData(turn="", part="terminal-7", text="old "),
        te.TerminalCleared(by="ada"),
        te.TerminalData(turn="", part="terminal-7", text="$ make\n"),
    )
    await open_host.close()
    again = await open_host()
    told = [record.event for record in await again.log.read(channel, 4)]
    assert told == [te.TerminalShown(upto=4, text="$ make\n"), te.TerminalExited(), te.TerminalRemoved(by="host")]


async def test_a_terminal_that_cannot_start_has_an_end_all_the_same(open_host: HostOpener, tmp_path: Path) -> None:
    """It left a beginning without an end."""
    host = await open_host()
    with pytest.raises((OSError, PorticoError)):
        await feature(host, Terminals).start(policy=FREE, claim=CLAIM, cwd=str(tmp_path / "gone"), by="ada")
    [channel] = host.log.channels("terminal/")
    told = [type(record.event) for record in await host.log.read(channel)]
    assert told == [te.TerminalStarted, te.TerminalExited, te.TerminalRemoved]
    assert await host.log.list_kv(OPEN) == {}


async def test_terminals_end_with_the_session_they_were_opened_from(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    session = await host.start(by="ada", agent="scripted", cwd=str(tmp_path))
    mine = await feature(host, Terminals).start(
        policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada", session=session.id
    )
    other = await feature(host, Terminals).start(policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada")
    mine.input("sleep 1000 & echo pid=$!\n")
    [pid] = await until(host, mine, lambda: re.findall(r"pid=(\d+)\r", mine.shown.text()))
    told: list[e.Event] = []

    async def watch() -> None:
        async for batch in host.log.follow(mine.channel, after=mine.pos):
            told.extend(record.event for record in batch)
            if isinstance(told[-1], te.TerminalRemoved):
                return

    async with asyncio.timeout(30), asyncio.TaskGroup() as watching:
        watching.create_task(watch())
        await asyncio.sleep(0)  # it follows
        await host.delete(session.id, by="eve")
    await gone(int(pid))
    assert feature(host, Terminals).list() == [other]
    assert told[-1] == te.TerminalRemoved(by="eve")


async def _stored(host: Host, text: str) -> list[str]:
    """The channels in which it stands."""
    records = await host.log.read_all(limit=10_000)
    return sorted({record.channel for record in records if text.encode() in record.data})


@pytest.mark.parametrize("closed", ["by hand", "with the session", "by a stop"])
async def test_what_terminals_have_shown_goes_with_their_session(
    open_host: HostOpener, tmp_path: Path, closed: str
) -> None:
    """What agents' commands had printed stayed on the disk when their session was deleted."""
    host = await open_host()
    kept, gone = [await host.start(by="test", cwd=str(tmp_path)) for _ in range(2)]
    for session in (kept, gone, gone):
        terminal = await feature(host, Terminals).start(
            policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada", session=session.id
        )
        terminal.input("echo sec''ret\n")
        await until(host, terminal, lambda: "secret" in terminal.shown.text())  # noqa: B023
        if closed == "by hand":
            await terminal.close(by="ada")
    if closed == "by a stop":
        await open_host.close()
        host = await open_host()
    await host.delete(gone.id, by="test")
    await host.log.flush()
    assert await _stored(host, "secret") == ["terminal/terminal-1"]


async def test_of_terminals_without_a_session_the_last_few_are_kept(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each left its last screen for ever: a loop that opened and closed them wrote 18 MB a minute."""
    monkeypatch.setattr(limits, "CLOSED_TERMINALS", 2)
    host = await open_host()
    for number in range(4):
        if number == 3:
            await open_host.close()
            host = await open_host()
        terminal = await feature(host, Terminals).start(
            policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada", command=["/bin/echo", "x"]
        )
        await until(host, terminal, lambda: terminal.exited)  # noqa: B023
        await terminal.close(by="ada")
    read = [bool(await host.log.read(f"terminal/terminal-{number}")) for number in (1, 2, 3, 4)]
    assert read == [False, False, True, True]


@pytest.mark.parametrize("command", [[], ["env"]])
async def test_neither_a_shell_nor_an_agents_command_gets_secrets(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    for name in ("PORTICO_TOKEN", "OPENAI_API_KEY", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "canary")
    host = await open_host()
    terminal = await feature(host, Terminals).start(
        policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada", command=command
    )
    if not command:
        terminal.input("env; exit\n")
    await until(host, terminal, lambda: terminal.exited)
    assert "PATH=" in terminal.shown.text()
    assert "canary" not in terminal.shown.text()


async def test_what_an_agents_command_prints_forges_no_commands_and_no_folder(
    open_host: HostOpener, tmp_path: Path
) -> None:
    host = await open_host()
    signs = "".join(f"\\033]{kind}\\007" for kind in ("633;E;rm", "633;C", "633;D;0", "133;C", "633;P;Cwd=/etc"))
    command = ["printf", f"{signs}plain"]
    terminal = await feature(host, Terminals).start(
        policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="agent", command=command
    )
    await until(host, terminal, lambda: terminal.exited)
    assert (terminal.shown.text(), terminal.cwd, terminal.detects) == ("plain", str(tmp_path), False)
    assert not [each for each in await events(host, terminal) if isinstance(each, te.TerminalCommand)]


def _shows(terminal: LiveTerminal, text: str) -> bool:
    return text in terminal.shown.text()


async def test_a_key_is_shown_without_waiting_for_the_cadence(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each key that followed the echo of the one before was shown 3 ms later than the shell printed it."""
    host = await open_host()
    terminal = await feature(host, Terminals).start(policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada")
    terminal.input("echo ready\n")
    await until(host, terminal, lambda: [each for each in terminal.shown.parts if _is_complete(each)])
    await host.log.flush()
    monkeypatch.setattr(kernel_limits, "COMMIT_CADENCE", 60.0)
    for number, key in enumerate("xyz", 1):
        terminal.input(key)
        await until(host, terminal, partial(_shows, terminal, "xyz"[:number]))


async def test_one_input_is_one_quick_commit(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that prints without end after one key is committed with the cadence of all deltas."""
    host = await open_host()
    terminal = await feature(host, Terminals).start(policy=FREE, claim=CLAIM, cwd=str(tmp_path), by="ada")
    posted: list[bool] = []
    post = host.log.post

    def note(channel: str, event: e.Event, *, soon: bool = False) -> None:
        if isinstance(event, te.TerminalData):
            posted.append(soon)
        post(channel, event, soon=soon)

    monkeypatch.setattr(host.log, "post", note)
    terminal.input("for i in 1 2 3 4 5; do echo $i; sleep 0.01; done; false\n")
    await until(host, terminal, lambda: [each for each in terminal.shown.parts if _is_complete(each)])
    assert sum(posted) <= 1 < len(posted)
