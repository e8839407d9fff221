"""The crash rule: kill -9 at any moment, start again, and everything that anybody saw is there.

Real processes die here: a couple of dozen by default, `PORTICO_KILLS=1000` for the long run, `PORTICO_SEED` to do the
same again.
"""

import asyncio
import os
import random
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.state import CallPart
from portico.server.compose import build_host
from tests.crash.driver import agent
from tests.crash.host_process import App

KILLS = int(os.environ.get("PORTICO_KILLS", "24"))
SEED = int(os.environ.get("PORTICO_SEED", random.randrange(1_000_000)))
KILLS_PER_HOME = 24
POINTS = {
    "before-append": 150,
    "after-append": 150,
    "before-commit": 150,
    "after-commit": 150,
    "before-result": 4,
    "compaction-write": 4,
    "compaction": 4,
}
"""Where, and up to the how many-th time."""


def test_nothing_that_anybody_saw_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print(f"PORTICO_SEED={SEED} does the same again")  # shown when it fails
    rng = random.Random(SEED)
    total: Counter[str] = Counter()
    points = list(POINTS)
    for home in range(-(-KILLS // KILLS_PER_HOME)):
        app = App(tmp_path / str(home))
        app.folder.mkdir()
        for number in range(min(KILLS_PER_HOME, KILLS - home * KILLS_PER_HOME)):
            if number % 3 == 1:
                point = points[(number // 3) % len(points)]
                app.kill(rng, point=f"{point}:{rng.randint(1, POINTS[point])}")
            else:
                app.kill(rng, starting=number % 6 == 5)
            app.check()
        total += app.counts
    with capsys.disabled():
        print(f"\n{KILLS} kills, seed {SEED}: nothing lost, nothing twice, everything ended once")
        for name, count in sorted(total.items()):
            print(f"  {count:8,}  {name}")


def test_killed_between_the_effect_and_its_result(tmp_path: Path) -> None:
    """The file is written, its call has no result: it ends as interrupted, and nobody writes the file again."""
    rng = random.Random(SEED)
    app = App(tmp_path)
    for count in (1, 3):
        app.kill(rng, "write {n}", point=f"before-result:{count}")
        before = (tmp_path / "effects.txt").read_text()
        outcomes = asyncio.run(_outcomes(tmp_path))
        assert (tmp_path / "effects.txt").read_text() == before
        assert outcomes["interrupted"] >= 1
        assert outcomes["completed"] < len(before.splitlines()) <= outcomes["completed"] + outcomes["interrupted"]
    app.check_effects()


async def _outcomes(folder: Path) -> Counter[str]:
    """How the write calls ended, after a restart."""
    log = await SqliteLog.open(folder / "log.db")
    host = await build_host(log, [agent()])
    sessions = [await host.get(summary.id) for summary in host.list(children=False)]
    parts = [part for session in sessions for turn in session.state.turns for part in turn.parts]
    await host.close()
    await log.close()
    return Counter(str(part.outcome) for part in parts if isinstance(part, CallPart) and part.tool == "write")


@pytest.mark.parametrize("statement", [1, 2, 3])
def test_killed_during_a_migration(tmp_path: Path, statement: int) -> None:
    """The old version stays whole, and the next start does the step again."""
    db = sqlite3.connect(tmp_path / "log.db")
    db.executescript((Path(__file__).parents[1] / "log/fixtures/schema1.sql").read_text())
    db.close()
    app = App(tmp_path)
    app.kill(random.Random(SEED), point=f"migration:{statement}")
    db = sqlite3.connect(tmp_path / "log.db")
    assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert db.execute("SELECT count(*) FROM events").fetchone() == (20,)
    db.close()
    app.check()


@pytest.mark.parametrize("statement", [1, 4, 7])
def test_killed_while_a_new_log_is_made(tmp_path: Path, statement: int) -> None:
    app = App(tmp_path)
    app.kill(random.Random(SEED), point=f"migration:{statement}")
    app.check()
