"""Callers who give up on a live call, against a real server: only there does it learn that they left."""

from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from portico.doors.portal import PortalDoor
from portico.doors.portal.live import SILENT_SECONDS
from portico.kernel.log.stored.log import StoredLog
from tests.doors.standing import standing


async def test_a_call_that_was_given_up_is_not_in_the_way_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It kept its token busy for the rest of its wait."""
    async with standing(tmp_path) as here:
        path = f"/api/copilot/session/{await here.start()}/live/k"
        monkeypatch.setattr("portico.doors.portal.live.WAIT_SECONDS", 1000.0)
        with pytest.raises(httpx.ReadTimeout):
            await here.http.get(path, timeout=httpx.Timeout(30, read=0.3))
        monkeypatch.setattr("portico.doors.portal.live.WAIT_SECONDS", 0.1)
        # The server looked for callers who had left four times a second, which is some eighty calls. One is allowed:
        # the end of the old connection and the next call may arrive in the same moment.
        answers = [(await here.http.get(path)).json() for _ in range(2)]
        assert answers[1] == {"error": "HttpRequestTimeout"}


async def test_api_without_a_slash_is_a_page_that_does_not_exist(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        answer = await here.http.get("/api")
        assert (answer.status_code, answer.text, answer.headers["content-type"][:10]) == (
            404,
            "Not Found",
            "text/plain",
        )


async def test_the_schema_of_entries_is_published(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        assert (await here.stranger.get("/entry.schema.json")).json()["title"] == "Portico entry"


async def test_a_reader_that_falls_silent_is_handed_nothing_and_comes_back_through_the_log(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        session, log = await here.start(), here.server.host.log
        assert isinstance(log, StoredLog)
        others = log.followers
        live = cast(PortalDoor, here.server.doors["portal"]).live

        async def told() -> str:
            found: list[dict[str, Any]] = []
            while not any(each.get("callback") == "onIdle" for each in found):
                found += (await here.http.get(f"/api/copilot/session/{session}/live/k")).json()["responses"]
            return str(found)

        for text, silent in (("one", False), ("two", True), ("three", False)):
            await here.say(session, f"[[say:{text}]] [[reasoning:0]]")
            assert text in await told()
            assert log.followers == others + 1
            if silent:
                for reader in live._attached:
                    reader.used -= SILENT_SECONDS
            live._detach_silent()
            assert log.followers == others + (0 if silent else 1)
