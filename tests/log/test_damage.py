"""Hundreds of seeded damages to the files of a log: what is read afterwards is either right or named as lost.

Each case takes the files of a killed or stopped log, does one harm to them (bits, cuts, missing and swapped files,
pages of zeros), and opens it. It may refuse to open, with words that say what to do; it may name events as unreadable,
or numbers as lost. It never shows an event as something that was not written, and never gives a number twice.
"""

import itertools
import os
import random
import secrets
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from portico.kernel.errors import LogUnavailable
from portico.kernel.events import HOST, Event, LogLost, Unreadable
from portico.kernel.log.sqlite import SqliteLog
from portico.server.maintenance.repair import check
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import idle
from tests.log.events import delta, fact
from tests.log.test_identity import killed

CHANNELS = ("a", "session/session-1", "host")
EVENTS = 120
CASES = int(os.environ.get("PORTICO_DAMAGES", "60"))
"""Of each kind; a tenth of a second for ten."""


class Written(NamedTuple):
    folder: Path
    events: dict[tuple[str, int], Event]
    epoch: str


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def stopped(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A log that was closed: everything is in `log.db`."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:  # the same bytes every time, so that a red run means a change
        patch.setattr(secrets, "token_hex", lambda _: "5eed5eed")
        patch.setattr(secrets, "randbits", lambda _: 0x5EED)
        return await _write(folder)


async def _write(folder: Path) -> Written:
    log = await SqliteLog.open(folder / "log.db", clock=lambda: 1_700_000_000.0)
    events: dict[tuple[str, int], Event] = {}
    for number in range(EVENTS):
        channel = CHANNELS[number % 3]
        event = delta(f"{number} " * 40) if number % 5 == 0 else fact(f"{number} " * (number % 60))
        await log.append(channel, event)
        events[channel, log.head(channel)] = event
        log.put_kv(channel, "summary", f"of {number}".encode())
    await log.put_blob(b"a large output" * 1000)
    await log.close()
    return Written(folder, events, log.epoch)


@pytest.fixture(scope="module")
async def crashed(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A log that was killed: most of it is in the write-ahead log."""
    folder = tmp_path_factory.mktemp("crashed")
    epoch = killed(folder / "log.db", EVENTS)
    return Written(folder, {("a", number + 1): fact(number) for number in range(EVENTS)}, epoch)


def flip(path: Path, random: random.Random) -> None:
    """One to eight bits, anywhere."""
    with path.open("r+b") as file:
        for _ in range(random.choice((1, 1, 2, 8))):
            at = random.randrange(path.stat().st_size)
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << random.randrange(8)]))


def cut(path: Path, random: random.Random) -> None:
    os.truncate(path, random.randrange(path.stat().st_size))


def blank(path: Path, random: random.Random) -> None:
    """A page of zeros, as a disk that lost a write has it."""
    with path.open("r+b") as file:
        file.seek(random.randrange(max(1, path.stat().st_size // 4096)) * 4096)
        file.write(bytes(4096))


async def look(written: Written, folder: Path) -> str:
    """What is found; fails when anything is neither right nor named."""
    try:
        log = await SqliteLog.open(folder / "log.db")
    except LogUnavailable as error:
        return "refused" if error.message.count(" ") > 5 else "refused without a word"
    try:
        return await _compare(written, log)
    except LogUnavailable:
        return "named while reading"
    finally:
        await log.close()


async def _compare(written: Written, log: SqliteLog) -> str:
    found: dict[tuple[str, int], Event] = {}
    for channel in dict.fromkeys(channel for channel, _ in written.events):
        for record in await log.read(channel, limit=10_000):
            assert (channel, record.pos) not in found
            found[channel, record.pos] = record.event
    for place, event in found.items():
        assert event == written.events.get(place) or isinstance(event, Unreadable), place
    for channel, data in (await log.list_kv("summary")).items():
        assert data.startswith(b"of "), channel
    for record in await log.read_all(limit=10_000):
        assert isinstance(record.event, Unreadable) or record.event == written.events[record.channel, record.pos]
    missing = [place for place in written.events if place not in found]
    unreadable = [place for place, event in found.items() if isinstance(event, Unreadable)]
    if missing:
        # A whole channel whose row is damaged is named in the host's log; a lost tail by another epoch.
        assert log.epoch != written.epoch or {channel for channel, _ in missing}.isdisjoint(c for c, _ in found)
    before = log.seq
    assert before >= len(written.events) or log.epoch != written.epoch
    if log.epoch == written.epoch:
        assert await log.append("new", fact("next")) > len(written.events)
    return "lost" if missing else "gaps" if unreadable else "whole"


HARMS: dict[str, Callable[[Path, random.Random], None]] = {"flip": flip, "cut": cut, "blank": blank}


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("file", ["log.db", "log.db-mark", "log.db-wal"])
async def test_damaged_files(stopped: Written, crashed: Written, tmp_path: Path, harm: str, file: str) -> None:
    written = crashed if file == "log.db-wal" else stopped
    results: Counter[str] = Counter()
    for seed in range(CASES):
        chance = random.Random(f"{harm} {file} {seed}")
        folder = tmp_path / str(seed)
        shutil.copytree(written.folder, folder)
        (folder / "log.db-shm").unlink(missing_ok=True)
        path = folder / file
        if not path.exists() or path.stat().st_size == 0:
            break
        HARMS[harm](path, chance)
        try:
            found = await look(written, folder)
        except AssertionError as error:
            raise AssertionError(f"{harm} {file}, seed {seed}: {error}") from error
        results[found] += 1
        shutil.rmtree(folder)
    print(f"{file}, {harm}: {dict(results)}")
    assert set(results) <= {"whole", "gaps", "lost", "refused", "named while reading"}


@pytest.mark.parametrize("file", ["log.db", "log.db-mark", "log.db-wal", "log.db-shm"])
@pytest.mark.parametrize("way", ["missing", "swapped"])
async def test_missing_and_swapped_files(
    stopped: Written, crashed: Written, tmp_path: Path, file: str, way: str
) -> None:
    for written, other in ((stopped, crashed), (crashed, stopped)):
        folder = tmp_path / written.folder.name
        shutil.copytree(written.folder, folder)
        (folder / file).unlink(missing_ok=True)
        if way == "swapped" and (other.folder / file).exists():
            shutil.copy(other.folder / file, folder / file)
        if way == "missing" and file == "log.db" and written is stopped:
            continue  # a log that somebody moved aside to start anew
        # The write-ahead log of the killed one holds all that it ever wrote.
        content = other if way == "swapped" and file == "log.db" and written is stopped else written
        assert await look(content, folder) in ("whole", "lost", "refused")


FILES = ("log.db", "log.db-mark", "log.db-wal", "log.db-shm", "log.db-notes")


def damage_in(path: Path) -> str:
    """What `portico log check` prints."""
    try:
        return "\n".join(check(path).damage) if path.exists() else ""
    except LogUnavailable as error:
        return error.message


@pytest.mark.parametrize(("one", "two"), list(itertools.combinations(FILES, 2)))
async def test_two_missing_files(stopped: Written, crashed: Written, tmp_path: Path, one: str, two: str) -> None:
    """Bug: without the mark and the write-ahead log of a killed host, the lost tail was not reported."""
    for written in (stopped, crashed):
        folder = tmp_path / written.folder.name
        shutil.copytree(written.folder, folder)
        (folder / one).unlink(missing_ok=True)
        (folder / two).unlink(missing_ok=True)
        if one == "log.db" and two == "log.db-mark" and written is stopped:
            continue  # a log that somebody moved aside to start anew
        named = damage_in(folder / "log.db")
        found = await look(written, folder)
        assert found in ("whole", "lost", "refused")
        if found == "lost":
            log = await SqliteLog.open(folder / "log.db")
            await log.close()
            assert log.epoch != written.epoch
        if {one, two} == {"log.db-mark", "log.db-wal"} and written is crashed:
            assert (named != "", found) == (True, "lost")


async def test_a_tail_that_may_be_lost_is_reported_by_the_host(crashed: Written, open_host: HostOpener) -> None:
    for name in ("log.db", "log.db-open"):
        shutil.copy(crashed.folder / name, open_host.folder)
    host = await open_host(PlayAgent(idle))
    lost = [record.event for record in await host.log.read(HOST) if isinstance(record.event, LogLost)]
    assert [(each.count, host.log.identity.tail_lost) for each in lost] == [(0, True)]
    again = await open_host(PlayAgent(idle))
    assert not again.log.identity.tail_lost, "it was closed since"
