"""A host is killed around a due time; the next one finds exactly one run, and one session or job that it started.

PORTICO_KILLS above the default tries every point with both actions.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from portico.kernel.log.sqlite import SqliteLog
from portico.server.compose import build_host
from portico.testing.clock import FakeClock
from tests.automation.playing import opened, pass_time, settle
from tests.crash.automation_process import START, agent

POINTS = ["automation-due", "automation-claimed", "run-before-start", "run-session", "run-before-started"]
POINTS += ["run-started", "run-before-end", "run-ended"]
CASES = [("prompt", point) for point in POINTS] + [("job", "run-before-start"), ("job", "run-before-started")]
if int(os.environ.get("PORTICO_KILLS", "3")) > 3:
    CASES += [("job", point) for point in POINTS if point != "run-session" and ("job", point) not in CASES]


@pytest.mark.parametrize(("action", "point"), CASES)
async def test_a_kill_around_a_due_time_gives_one_run(tmp_path: Path, action: str, point: str) -> None:
    command = [sys.executable, "-m", "tests.crash.automation_process", str(tmp_path), action]
    killed = subprocess.run(  # noqa: ASYNC221 - a test has the time
        command, env={**os.environ, "PORTICO_KILL_AT": point}, capture_output=True, text=True, timeout=120
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    clock = FakeClock(START + 3600 + 5)
    log = await SqliteLog.open(tmp_path / "log.db", clock=clock.time)
    try:
        host = await build_host(log, [agent()], clock)
        automations = await opened(host, tmp_path, jobs=action == "job", start=False)
        assert automations.jobs is not None
        await automations.jobs.recover()
        await automations.start()
        await pass_time(clock, 0.01)
        (run,) = await settle(automations, 1)
        assert (run.due, run.cause) == (int((START + 3600) * 1000), "schedule")
        assert run.status in ("succeeded", "interrupted")
        if action == "job":
            assert [job.id for job in automations.jobs.history()] == [run.job]
        else:
            assert [session.id for session in host.list()] == [run.session]
            assert len((await host.get(run.session)).state.turns) == 1
        await pass_time(clock, 1800)
        assert list(automations.store.runs) == [run.id]
        await automations.close()
        await host.close()
    finally:
        await log.close()
