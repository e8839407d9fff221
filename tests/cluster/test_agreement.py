"""Settings that must be equal on all hosts: the log records them, and rejects a host with others."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from portico.cluster.open import open_log
from portico.cluster.postgres.log import PostgresLog
from portico.features.jobs import events as je
from portico.kernel.errors import BadRequest
from portico.server.settings import ClusterSettings, JobSettings, LogSettings, Settings
from tests.cluster.test_doors import flags
from tests.doors.standing import standing
from tests.postgres import Databases

LOCAL, TEMPORAL = JobSettings(), JobSettings(engine="temporal", namespace="portico")
OTHER_SPACE = JobSettings(engine="temporal", namespace="other")
OTHER_ADDRESS = JobSettings(engine="temporal", namespace="portico", address="temporal.internal:7233")
PLAIN: dict[str, str] = {}
TLS = {"tls_cert": "c.pem", "tls_key": "k.pem", "tls_ca": "a.pem"}


class Log:
    """Opens the log as hosts of these settings do."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder

    async def __call__(self, name: str, jobs: JobSettings, tls: dict[str, Any] | None = None) -> PostgresLog:
        (self.folder / name).mkdir(exist_ok=True)
        cluster = ClusterSettings(host=name, place="here", **(tls or {}))
        return await open_log(Settings(log=LogSettings(url=self.url), jobs=jobs, cluster=cluster), self.folder / name)


@pytest.mark.parametrize(
    ("first", "second", "field"),
    [
        ((LOCAL, PLAIN), (LOCAL, PLAIN), None),
        ((TEMPORAL, PLAIN), (TEMPORAL, PLAIN), None),
        ((TEMPORAL, PLAIN), (OTHER_ADDRESS, PLAIN), None),
        ((TEMPORAL, PLAIN), (LOCAL, PLAIN), "jobs.engine"),
        ((LOCAL, PLAIN), (TEMPORAL, PLAIN), "jobs.engine"),
        ((TEMPORAL, PLAIN), (OTHER_SPACE, PLAIN), "jobs.namespace"),
        ((LOCAL, TLS), (LOCAL, TLS), None),
        ((LOCAL, PLAIN), (LOCAL, TLS), "cluster.tls_cert"),
        ((LOCAL, TLS), (LOCAL, PLAIN), "cluster.tls_cert"),
    ],
)
async def test_a_host_with_other_settings_does_not_start(
    databases: Databases, tmp_path: Path, first: Any, second: Any, field: str | None
) -> None:
    """One host without the setting for Temporal took over the jobs of the next host that died, and destroyed them."""
    url = await databases.new()
    opened = Log(url, tmp_path)
    a = await opened("a", *first)
    if field is None:
        await (await opened("b", *second)).close()
    else:
        with pytest.raises(BadRequest, match=r"to change it, first stop the other hosts \(1\)") as rejected:
            await opened("b", *second)
        assert rejected.value.field == field
        running = await a.run(lambda db: db.fetch("SELECT name FROM hosts WHERE expires > clock_timestamp()"))
        assert [name for (name,) in running] == ["a"]  # the rejected host has given its lease back
    await a.close()
    databases.give_back(url)


async def test_the_engine_changes_when_no_host_and_no_job_runs(databases: Databases, tmp_path: Path) -> None:
    url = await databases.new()
    opened = Log(url, tmp_path)
    a = await opened("a", TEMPORAL)
    started = je.JobStarted(job="job-1", name="main", entry={}, cwd="/", by="test")
    await a.append("job/job-1", started)
    await a.close()
    with pytest.raises(BadRequest, match=r"jobs.engine is 'local' here, and 'temporal' .* let the jobs end \(1\)"):
        await opened("a", LOCAL)
    a = await opened("a", TEMPORAL)
    await a.append("job/job-1", je.JobEnded(job="job-1", outcome="succeeded", by="host"))
    await a.close()
    await (await opened("a", LOCAL)).close()
    b = await opened("b", LOCAL)
    with pytest.raises(BadRequest, match=r"jobs\.engine is 'temporal' here, and 'local'"):
        await opened("a", TEMPORAL)
    await b.close()
    databases.give_back(url)


async def test_two_first_hosts_with_different_settings_are_not_both_there(databases: Databases, tmp_path: Path) -> None:
    url = await databases.new()
    opened = Log(url, tmp_path)
    found = await asyncio.gather(opened("a", LOCAL), opened("b", TEMPORAL), return_exceptions=True)
    assert sorted(type(each).__name__ for each in found) in (
        ["BadRequest", "PostgresLog"],
        ["BadRequest", "BadRequest"],  # each saw the lease of the other
    )
    for each in found:
        if isinstance(each, PostgresLog):
            await each.close()
    databases.give_back(url)


async def test_two_live_hosts_do_not_share_one_number(databases: Databases, tmp_path: Path) -> None:
    """Each host gives every thousandth number to new sessions: the thousand and first name had those of the first."""
    url = await databases.new()
    opened = Log(url, tmp_path)
    a = await opened("a", LOCAL)
    gone = "INSERT INTO hosts (id, expires, seen, started, name, folder, place, state, info) SELECT id + 1000,"
    gone += " to_timestamp(0), to_timestamp(0), to_timestamp(0), 'b', '', 'here', 'stopped', '{}' FROM hosts"
    await a.run(lambda db: db.execute(gone))
    with pytest.raises(BadRequest, match="The hosts 'b' and 'a' would give the same numbers") as rejected:
        await opened("b", LOCAL)
    assert rejected.value.field == "cluster.host"
    await (await opened("other", LOCAL)).close()
    await a.close()
    await (await opened("b", LOCAL)).close()
    databases.give_back(url)


async def test_a_server_says_which_setting_is_different(databases: Databases, tmp_path: Path) -> None:
    url = await databases.new()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    async with standing(tmp_path / "a", flags=flags(url, "a")):
        with pytest.raises(BadRequest, match=r"jobs\.engine is 'temporal' here"):
            async with standing(tmp_path / "b", flags={**flags(url, "b"), "jobs.engine": "temporal"}):
                pass
    databases.give_back(url)
