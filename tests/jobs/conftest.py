"""A test that is marked with `both_engines` runs its jobs on this host alone, and on Temporal."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from portico.features.jobs import Jobs
from portico.features.jobs.source import EntrySource
from portico.features.jobs.temporal import TemporalJobs
from portico.kernel.host import Host
from portico.server.settings import JobSettings
from portico.testing.fixtures import HostOpener
from portico.testing.temporal import TemporalServer


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest) -> str:
    name: str = getattr(request, "param", "local")
    if name == "temporal":
        request.getfixturevalue("jobs_on_temporal")
    return name


@pytest.fixture
async def jobs_on_temporal(
    temporal: TemporalServer, open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """`Jobs.open` opens them on Temporal."""
    settings = JobSettings(engine="temporal", address=temporal.address)
    opened: list[TemporalJobs] = []

    async def connected(host: Host, source: EntrySource | None = None) -> Jobs:
        await abandon(opened)
        opened.append(await TemporalJobs.connect(host, source, settings))
        return opened[-1]

    monkeypatch.setattr(Jobs, "open", connected)
    yield
    await abandon(opened)


async def abandon(opened: list[TemporalJobs]) -> None:
    """Those that the test has left open: no worker of theirs takes what comes next."""
    for jobs in opened:
        if not jobs.closing:
            async with asyncio.timeout(30):
                await jobs.close()
    opened.clear()
