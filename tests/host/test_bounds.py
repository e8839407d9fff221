"""Bytes have bounds: over them everybody sees the same notice and the same cut, and the host goes on."""

import asyncio
from pathlib import Path

import pytest

from portico import limits
from portico.features.terminals import events as te
from portico.features.terminals.terminals import Terminals
from portico.kernel import disk
from portico.kernel import events as e
from portico.kernel import limits as kernel_limits
from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.log.log import DiskUse
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.session import Session
from portico.kernel.state import CallPart, TextPart
from portico.kernel.turn import Turn
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import feature, host_of
from tests.free import FREE
from tests.host.plays import idle

LEFT_OUT = "left out"
PRINTS = """
i=0
while [ $i -lt 100 ]; do head -c 20000 /dev/zero | tr '\\0' x; i=$((i+1)); done
echo; echo the end; exec cat
"""


async def test_a_turn_that_talks_for_ever_is_cut_with_a_notice(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 MB of text in one turn left 758 MB of memory."""
    monkeypatch.setattr(kernel_limits, "TURN_BYTES", 1000)

    async def play(message: Message, turn: Turn) -> None:
        for _ in range(300):
            turn.text("0123456789")
            turn.reasoning("x" * 10)
            await asyncio.sleep(0)

    session = await (await open_host(PlayAgent(play))).start(by="test", cwd="/")
    turn = await session.wait(await session.send(Message("go"), by="test"))
    texts = [part for part in turn.parts if isinstance(part, TextPart)]
    assert turn.outcome == "completed"
    assert sum(len(part.text) for part in texts if part.kind != "notice") == 1000
    assert [part.text for part in texts if part.kind == "notice"] == [
        f"This turn has said more than {1000 / kernel_limits.MIB:g} MB; the rest is left out."
    ]
    records = await session.host.log.read(session.channel, limit=10_000)
    deltas = sum(len(each.event.text) for each in records if isinstance(each.event, e.PartDelta))
    assert deltas < 1200, "the log has no more either"


@pytest.mark.parametrize("way", ["live", "at the end"])
async def test_a_tool_that_prints_for_ever_is_cut(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(kernel_limits, "CALL_BYTES", 1000)

    async def play(message: Message, turn: Turn) -> None:
        call = turn.tool("shell", "{}")
        if way == "live":
            for _ in range(300):
                call.output("0123456789")
        await call.end(output=None if way == "live" else "0123456789" * 300)

    session = await (await open_host(PlayAgent(play))).start(by="test", cwd="/")
    turn = await session.wait(await session.send(Message("go"), by="test"))
    [call] = [part for part in turn.parts if isinstance(part, CallPart)]
    assert call.output == "0123456789" * 100 + "\n... 2000 characters left out ...\n"


async def test_many_tools_share_the_bound_of_their_turn(open_host: HostOpener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_limits, "TURN_BYTES", 1000)

    async def play(message: Message, turn: Turn) -> None:
        for _ in range(3):
            call = turn.tool("shell", "{}")
            call.output("x" * 600)
            await call.end()

    session = await (await open_host(PlayAgent(play))).start(by="test", cwd="/")
    turn = await session.wait(await session.send(Message("go"), by="test"))
    calls = [part for part in turn.parts if isinstance(part, CallPart)]
    assert [part.output.count("x") for part in calls] == [600, 400, 0]
    assert [LEFT_OUT in part.output for part in calls] == [False, True, True]


async def test_a_terminal_that_prints_for_ever_does_not_fill_the_disk(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`yes` in a terminal that nobody watched wrote 354 MB in 45 seconds."""
    monkeypatch.setattr(limits, "TERMINAL_BYTES", 200_000)
    terminal = await feature(host, Terminals).start(
        policy=FREE, claim={}, cwd=str(tmp_path), by="test", command=["/bin/sh", "-c", PRINTS]
    )
    async with asyncio.timeout(60):
        async for records in host.log.follow(terminal.channel):
            if any(isinstance(each.event, te.TerminalData) and "the end" in each.event.text for each in records):
                break
    whole = await host.log.read(terminal.channel, limit=10_000)
    size = terminal.shown.size
    assert sum(len(each.data) for each in whole) < 4 * limits.TERMINAL_BYTES + 2 * size, "also of what was shown before"
    await terminal.close(by="test")
    kept = await host.log.read(terminal.channel, limit=10_000)
    pieces = [record for record in kept if isinstance(record.event, te.TerminalData)]
    assert sum(len(record.data) for record in pieces) < 3 * limits.TERMINAL_BYTES, "of 2 MB that were printed"
    shown = [record.event for record in kept if isinstance(record.event, te.TerminalShown)]
    assert "the end" in shown[-1].text


async def test_what_a_closed_terminal_has_printed_goes_at_once(host: Host, tmp_path: Path) -> None:
    """A loop that opens a terminal, prints three megabytes and closes it wrote two gigabytes in an hour."""
    terminal = await feature(host, Terminals).start(
        policy=FREE, claim={}, cwd=str(tmp_path), by="test", command=["/bin/sh", "-c", PRINTS]
    )
    async with asyncio.timeout(60):
        async for records in host.log.follow(terminal.channel):
            if any(isinstance(each.event, te.TerminalData) and "the end" in each.event.text for each in records):
                break
    await terminal.close(by="test")
    kept = await host.log.read(terminal.channel, limit=10_000)
    assert [type(each.event) for each in kept if isinstance(each.event, te.TerminalData | te.TerminalShown)] == [
        te.TerminalShown
    ]
    past = await feature(host, Terminals).past(terminal.id)
    assert past is not None
    assert "the end" in past.shown.text()


async def test_a_session_over_its_bound_takes_no_messages(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    await session.wait(await session.send(Message("[[say:one]]"), by="test"))
    monkeypatch.setattr(kernel_limits, "SESSION_BYTES", 100)
    with pytest.raises(LogUnavailable, match="Fork it, or start another one"):
        await session.send(Message("[[say:two]]"), by="test")
    assert (await host_of(session).fork(session.id, by="test")).state.turns


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (DiskUse(0, kernel_limits.DISK_RESERVE_BYTES - 1, 10**12), "Only 256 MB are free"),
        (
            DiskUse(int(kernel_limits.DISK_SHARE * 10**12) + 1, 10**11, 10**12),
            r"more than its share of the disk \(50%\)",
        ),
    ],
    ids=["no reserve", "over its share"],
)
async def test_a_full_disk_begins_no_turn(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch, use: DiskUse, words: str
) -> None:
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="test", cwd="/")
    monkeypatch.setattr(disk, "_LOOK_SECONDS", -1.0)
    monkeypatch.setattr(host.log, "disk", lambda: use)
    with pytest.raises(LogUnavailable, match=words):
        await session.send(Message("go"), by="test")
    monkeypatch.setattr(host.log, "disk", lambda: DiskUse(0, 10**12, 10**12))
    assert (await session.wait(await session.send(Message("go"), by="test"))).outcome == "completed"


async def test_the_log_knows_its_sizes(log: SqliteLog) -> None:
    await log.append("a", e.Audited(action="x" * 100, by="test"))
    first = await log.size("a")
    assert first > 100
    await log.append("a", e.Audited(action="x" * 100, by="test"))
    assert await log.size("a") == 2 * first
    used, free, total = log.disk()
    assert 0 < used < total
    assert 0 < free < total
