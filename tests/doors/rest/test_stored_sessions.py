"""Lists read the summaries of stored sessions: none of them makes a session object for each."""

import pytest

from portico.kernel import session as sessions
from tests.doors.standing import Standing

LISTS = (
    *("/v1/sessions", "/v1/board", "/v1/inbox", "/v1/usage", "/v1/runs", "/v1/grants", "/metrics"),
    *("/v1/search?q=none", "/v1/jobs", "/v1/sessions?archived=true"),
)


@pytest.mark.parametrize("path", LISTS)
async def test_a_list_reads_summaries(shared: Standing, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "IDLE_SECONDS", -1.0)
    for title in ("a", "b"):
        await shared.http.post("/v1/sessions", json={"agent": "demo", "title": title})
    host = shared.server.host
    host.catalogue.release()
    before = {each.id for each in host.catalogue.live()}
    assert (await shared.http.get(path)).status_code == 200
    assert {each.id for each in host.catalogue.live()} == before
