"""What is known of a job while it runs, and what is stored of it."""

from pathlib import Path

import pytest

from portico.features.jobs import events as je
from portico.features.jobs.engine import SUMMARY
from portico.features.jobs.entry import ITEM
from portico.features.jobs.state import HOOKS, ITEMS, begin, fold, plan_of
from portico.kernel.host import Host
from tests.jobs.playing import make, ok, opened, task, until_ended, until_started

VALUES = [
    ("r.0", "name", "early"),
    ("r.1#0", ITEM, "apple"),
    ("r.1#1", ITEM, "pear"),
    ("r.1#0.0", "name", "of the apple"),
    ("r.1#1.0", "name", "of the pear"),
    ("r.1", ITEMS, "[]"),
    (HOOKS, "hook", "called"),
    ("r.2", "late", "first"),
    ("r.3", "late", "second"),
]


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("r.1#0.1", {ITEM: "apple", "name": "of the apple", "late": "second"}),
        ("r.1#1.1", {ITEM: "pear", "name": "of the pear", "late": "second"}),
        ("r.1#2.0", {"name": "of the pear", "late": "second"}),
        ("r.2", {"name": "of the pear", "late": "first"}),
        ("r.10", {"name": "of the pear", "late": "second"}),
        ("r", {"name": "of the pear", "late": "second"}),
    ],
)
def test_a_work_sees_the_nearest_value_and_of_equally_near_ones_the_latest(path: str, wanted: dict[str, str]) -> None:
    entry = make({"ok": ok()})
    state = begin(je.JobStarted(job="job-1", name="main", entry=plan_of(entry, "main"), cwd="/", by="test"), 0)
    for place, name, value in VALUES:
        fold(state, je.JobValue(path=place, name=name, value=value), 0)
    assert state.seen_from(path) == wanted


async def test_a_job_is_stored_as_a_whole_when_it_has_ended(host: Host, tmp_path: Path) -> None:
    """Its summary, of thousands of works a megabyte, was written with every event."""
    jobs = await opened(host, make({"slow": task("[[hang]]")}))
    job = await jobs.start_job("main", cwd=str(tmp_path), by="test")
    await until_started(host.log, job)
    assert await host.log.get_kv(f"job/{job}", SUMMARY) is None
    await jobs.stop_job(job, by="test")
    await until_ended(host.log, f"job/{job}")
    assert await host.log.get_kv(f"job/{job}", SUMMARY) is not None
    await jobs.close()
