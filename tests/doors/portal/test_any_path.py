"""Whatever the path and the body are, the door answers in its own form and stays there."""

from pathlib import Path
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from portico.features.jobs import to_json
from portico.testing.fixtures import HostOpener
from tests.doors.portal.conftest import Opener
from tests.jobs.playing import make, ok
from tests.property.scene import quick, run

WORDS = (
    "copilot session task job start stop query live history status running test installJobsEntry models token config"
    " session-1 task-1 job-1 main ok gpt-5.2 k .. ."
)
words = st.sampled_from(WORDS.split())
segments = st.one_of(words, st.binary(max_size=6), st.text(max_size=6)).map(lambda segment: quote(segment, safe=""))
paths = st.lists(segments, max_size=7).map("/".join)
known = st.sampled_from(
    [
        "copilot/session/{}/query",
        "copilot/session/start/{}",
        "copilot/job/start/{}",
        "copilot/job/{}/live/{}",
        "copilot/task/start/{}/session/{}",
        "copilot/session/live/{}",
        "copilot/test/installJobsEntry",
    ]
)
filled = st.tuples(known, segments, segments).map(lambda drawn: drawn[0].format(*drawn[1:]))
calls = st.lists(st.tuples(st.sampled_from(["GET", "POST"]), paths | filled, st.binary(max_size=20)), max_size=25)


@settings(quick, max_examples=12)
@given(calls)
def test_every_path_gets_an_answer(calls: list[tuple[str, str, bytes]]) -> None:
    async def story(folder: Path) -> None:
        hosts = HostOpener(folder)
        portals = Opener(hosts, folder)
        door = await portals()
        (folder / "test").mkdir()
        entry = folder / "test/entry.json"
        entry.write_bytes(to_json(make({"ok": ok()})))
        assert await door("copilot/test/installJobsEntry", str(entry)) == {"result": "OK"}
        await door.session(folder)
        assert await door("stop") == {}  # a host that stops lets nobody wait, and answers all the same
        for method, path, body in calls:
            answer = await door.client.request(method, f"/api/{path}", content=body)
            assert answer.status_code in (200, 400, 404), (path, answer.text)
            if answer.headers["content-type"] == "application/json":
                assert isinstance(answer.json(), dict)
        assert await door("test") == {"message": "Hello, world!"}
        await portals.close()
        for client in portals.clients:
            await client.aclose()
        await hosts.close()

    run(story)
