"""A feature is one class: what it lists is registered when the host opens, and nothing else is."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec import Struct

from portico.features.readiness.commands import SignIn
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.errors import Forbidden, LogUnavailable
from portico.kernel.events import HOST, Record
from portico.kernel.feature import Feature, guard, handle, receive, receive_summaries
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.state import Summary
from portico.server.compose import ROOMS, configure
from portico.server.settings import Settings
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import feature
from tests.host.plays import idle

ADA = c.Caller("token-1", "ada", frozenset(c.SCOPES))


class CountSettings(Struct):
    most: int = 2


class Count(c.Command, frozen=True, tag="test.count"):
    """Count something."""

    scope = "drive"
    lock = "feature"
    gives = c.Done


class Counting(Feature):
    name = "counting"
    commands: ClassVar[tuple[type[c.Command], ...]] = (Count,)
    settings = CountSettings

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.most = 0
        self.heard: list[str] = []
        self.calls: list[str] = []

    @property
    def broken(self) -> str:
        raise AssertionError("no property is read to find the handlers")

    def configure(self, settings: CountSettings) -> None:
        self.most = settings.most

    @handle
    async def _count(self, command: Count, caller: c.Caller) -> c.Done:
        assert self.lock.locked()
        await self.host.audit("counted", caller.by)
        return c.Done()

    @receive(e.Audited)
    def _audited(self, record: Record) -> None:
        assert isinstance(record.event, e.Audited)
        self.heard.append(record.event.action)

    async def recover(self) -> None:
        self.calls.append("recover")

    async def on_serving(self) -> None:
        self.calls.append("on_serving")

    async def close(self) -> None:
        self.calls.append("close")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    log = await SqliteLog.open(tmp_path / "log.db")
    host = await Host.open(log, [PlayAgent(idle)], parts=[Counting])
    yield host
    await host.close()
    await log.close()


async def test_it_handles_its_commands_under_its_lock_and_receives_its_events(host: Host) -> None:
    counting = feature(host, Counting)
    assert await host.do(Count(), ADA) == c.Done()
    await host.log.append(HOST, e.HostStopped(reason="of another type"))
    assert (counting.heard, counting.calls, counting.lock.locked()) == (["counted"], ["recover"], False)


async def test_it_is_closed_with_the_host(host: Host) -> None:
    await host.close()
    assert feature(host, Counting).calls == ["recover", "close"]


async def test_tasks_that_retry_a_command_end_with_the_host(host: Host) -> None:
    """Where the command ended before its caller, the cancellation of the caller counted as a busy host: it sent the
    command again, was canceled again, and so on. A host with a run that was about to start took minutes to close."""
    tries: list[int] = []

    async def retry(number: int) -> None:
        while True:
            tries.append(number)
            try:
                await host.do(Count(), ADA.asking(f"start {number}"))
            except LogUnavailable:
                await host.log.available()

    async with feature(host, Counting).lock:  # the commands wait
        tasks = [host.own(retry(number), f"run {number}") for number in range(20)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await host.close()
    assert (tries, [task.cancelled() for task in tasks]) == ([*range(20)], [True] * 20)


class Watching(Feature):
    """Has one method with each mark."""

    name = "watching"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.received: list[str] = []

    @receive(e.Audited)
    def _by_type(self, record: Record) -> None:
        self.received.append("type")

    @receive(channel="session")
    def _by_channel(self, record: Record) -> None:
        self.received.append(f"channel {record.event.__struct_config__.tag}")

    @receive(later=True)
    def _batch(self, records: Sequence[Record]) -> None:
        self.received.append(f"batch of {len(records)}")

    @receive_summaries
    def _summary(self, ident: str, summary: Summary | None) -> None:
        self.received.append(f"{ident} {summary.title if summary is not None else 'deleted'}")

    @guard((c.RenameSession,).__contains__)
    def _guard(self, command: c.Command, caller: c.Caller) -> None:
        if getattr(command, "title", "") == "no":
            raise Forbidden("Not this title.")


async def test_marked_methods_are_called(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    host = await Host.open(log, [PlayAgent(idle)], parts=[Watching])
    watching = feature(host, Watching)
    session = await host.start(by="test", cwd="/")
    assert watching.received == ["session-1 ", "channel session.started"]
    watching.received.clear()
    watching.start_receiving()
    await host.do(c.RenameSession(session=session.id, title="yes"), ADA)
    assert watching.received == ["session-1 yes", "channel session.renamed", "batch of 1"]
    with pytest.raises(Forbidden, match="Not this title"):
        await host.do(c.RenameSession(session=session.id, title="no"), ADA)
    watching.received.clear()
    await host.audit("tried", "ada")
    assert watching.received == ["type", "batch of 1"]
    watching.received.clear()
    await host.delete(session.id, by="test")
    assert "session-1 deleted" in watching.received
    await host.close()
    await log.close()


class Listed(Counting):
    """Lists a command that no method handles."""

    commands = (Count, SignIn)


class Unlisted(Counting):
    """Handles a command that it does not list."""

    commands = ()


@pytest.mark.parametrize("kind", [Listed, Unlisted])
async def test_it_lists_what_it_handles(tmp_path: Path, kind: type[Feature]) -> None:
    log = await SqliteLog.open(tmp_path / "log.db")
    with pytest.raises(TypeError, match="lists other commands than it handles"):
        await Host.open(log, [], parts=[kind])
    await log.close()


async def test_every_feature_of_ours_gets_its_table_of_the_settings(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = await open_host()
    got: dict[str, Any] = {}
    for part in host.parts:
        if isinstance(part, Feature) and part.settings is not None:
            monkeypatch.setattr(part, "configure", lambda settings, name=part.name: got.update({name: settings}))
    settings = Settings()
    configure(host, settings)
    own = {name: got[name] for name in got if name != "changes"}
    assert own == {name: getattr(settings, name) for name in own}
    assert got["changes"] == settings.agent
    assert {"approvals", "notices", "budgets", "quotas", "retention"} <= own.keys()


def test_the_names_of_features_are_theirs_alone() -> None:
    names = [kind.name for kind in ROOMS]
    assert len(names) == len({*names}) >= 8
