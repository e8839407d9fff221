"""What is deleted is gone: from the tables, the write-ahead logs and everything that quotes it."""

import asyncio
from pathlib import Path

import pytest

from portico.features.notices.notices import Notices
from portico.kernel.log.sqlite import log as sqlite_log
from portico.kernel.log.sqlite.database import Database
from tests.doors.standing import standing
from tests.features import feature

SECRET = "grapefruit-47-kilogram"
SETTINGS = """
[notices]
allow_private = ["127.0.0.1"]
[[notices.webhooks]]
name = "hook"
url = "http://127.0.0.1:9/"
secret = "0123456789abcdef0123456789abcdef"
"""


def quoting(folder: Path) -> list[str]:
    """The files that have the secret, also in another case: the index of the search folds it."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path.name for path in found if SECRET.encode() in path.read_bytes().lower())


@pytest.fixture
async def truncated(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when the write-ahead log was emptied."""
    done, loop, truncate = asyncio.Event(), asyncio.get_running_loop(), Database.truncate
    monkeypatch.setattr(sqlite_log, "WATCH_SECONDS", 0.05)

    def truncate_and_tell(self: Database) -> None:
        truncate(self)
        if not self.truncate_due:
            loop.call_soon_threadsafe(done.set)

    monkeypatch.setattr(Database, "truncate", truncate_and_tell)
    return done


async def test_a_deleted_session_is_in_no_file_of_the_home(tmp_path: Path, truncated: asyncio.Event) -> None:
    """Bug: prompt and command stayed in the write-ahead log, and the title in notices for a week."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "settings.toml").write_text(SETTINGS)
    async with standing(tmp_path) as here:
        other = await here.start(cwd=str(tmp_path))
        await here.say(other, "[[say:stays]]")
        session = await here.start(cwd=str(tmp_path), title=SECRET)
        await here.say(session, f"[[tool:shell|{SECRET}]] [[say:{SECRET}]]")
        await here.http.get(f"/v1/search?q={SECRET}")
        notices = feature(here.server.host, Notices)
        await here.server.host.log.flush()
        assert quoting(home) != []
        truncated.clear()
        assert (await here.http.delete(f"/v1/sessions/{session}")).is_success
        assert [each.notice.title for each in notices.deliveries.values() if each.notice.session == session] == []
        await asyncio.wait_for(truncated.wait(), 10)
        await here.http.get(f"/v1/search?q={SECRET}")
        assert quoting(home) == []
        assert (await here.http.get(f"/v1/sessions/{other}")).status_code == 200


async def test_a_reader_in_the_way_only_delays_it(tmp_path: Path, truncated: asyncio.Event) -> None:
    async with standing(tmp_path) as here:
        session = await here.start(cwd=str(tmp_path), title=SECRET)
        database = here.server.host.log._database  # type: ignore[attr-defined]
        reading = database._reading()
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM events").fetchone()
        truncated.clear()
        assert (await here.http.delete(f"/v1/sessions/{session}")).is_success
        await asyncio.to_thread(database.check)
        assert (database.truncate_due, truncated.is_set()) == (True, False)
        reading.execute("ROLLBACK")
        await asyncio.wait_for(truncated.wait(), 10)
        assert quoting(tmp_path / "home") == []
