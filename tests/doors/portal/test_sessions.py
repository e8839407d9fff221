import asyncio
import json
from pathlib import Path

import pytest

from portico.doors.portal import repo_root
from portico.doors.portal.answer import moment
from portico.kernel.log.sqlite.journal import Journal
from portico.testing.clock import FakeClock
from tests.doors.portal.conftest import Opener, Portal

WHOLE = [
    "onAgentStart",
    "onStartReasoning",
    "onEndReasoning",
    "onStartMessage",
    "onEndMessage",
    "onAgentEnd",
    "onIdle",
]
UNKNOWN = ["", "test/", "nothing", "copilot", "copilot/session", "copilot/job/start", "copilot/job//status"]


async def test_the_small_ones(door: Portal, tmp_path: Path) -> None:
    assert await door("test") == {"message": "Hello, world!"}
    assert await door("config") == {"repoRoot": str(repo_root(tmp_path))}
    first, second = await door("token"), await door("token")
    assert len(first["token"]) == 36
    assert first != second
    models = (await door("copilot/models"))["models"]
    assert models[0] == {"name": "GPT-5 mini", "id": "gpt-5-mini", "multiplier": 0}


async def test_a_session_begins_in_one_commit_with_the_tools_of_jobs(door: Portal, tmp_path: Path) -> None:
    """The tools were lent by a second commit: a start cost twice what it should."""
    commits: list[int] = []
    door.host.log.on_commit(lambda records: commits.append(len(records)))
    session = await door.host.get(await door.session(tmp_path))
    assert len(commits) == 1
    assert "job_boolean_true" in [spec.name for spec in session.tools.specs()]


def test_the_root_is_where_git_is(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/.git").mkdir()
    assert repo_root(tmp_path / "a/b") == tmp_path / "a"


async def test_get_and_post_are_the_same(door: Portal) -> None:
    assert (await door.client.get("/api/test")).json() == {"message": "Hello, world!"}


@pytest.mark.parametrize("path", [*UNKNOWN, "copilot/job/start/x/"])
async def test_an_unknown_path(door: Portal, path: str) -> None:
    answer = await door.client.get(f"/api/{path}")
    assert (answer.status_code, answer.json()) == (404, {"error": "Unknown API endpoint"})


@pytest.mark.parametrize(
    ("model", "body", "error"),
    [
        ("gpt-0", "", "ModelIdNotFound"),
        ("a/b/c", "relative", "ModelIdNotFound"),
        ("gpt-5.2", "relative", "WorkingDirectoryNotAbsolutePath"),
        ("gpt-5.2", "/no/such/folder", "WorkingDirectoryNotExists"),
        ("gpt-5.2", "C:\\Code\\X", "WorkingDirectoryNotExists"),
        ("gpt-5.2", b"/\xff\xfe", "WorkingDirectoryNotExists"),
        ("gpt-5.2", "/" + "x" * 5000, "WorkingDirectoryNotExists"),
        ("gpt-5.2", "/a\0b", "WorkingDirectoryNotAbsolutePath"),
        ("gpt-5.2", __file__, "WorkingDirectoryNotExists"),
    ],
)
async def test_what_cannot_start(door: Portal, model: str, body: str | bytes, error: str) -> None:
    assert await door(f"copilot/session/start/{model}", body) == {"error": error}


async def test_a_windows_path_is_absolute_only_in_tests(open_portal: Opener) -> None:
    door = await open_portal(test=False)
    assert await door("copilot/session/start/gpt-5.2", "C:\\Code") == {"error": "WorkingDirectoryNotAbsolutePath"}


async def test_a_windows_path_names_a_folder_of_the_current_one_in_tests(
    door: Portal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The door let it pass, and the host refused it: a 400 instead of a session."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "C:\\Code\\x").mkdir()
    assert "sessionId" in await door("copilot/session/start/gpt-5.2", "C:\\Code\\x")
    assert door.host.list()[0].cwd == str(tmp_path / "C:\\Code\\x")
    assert await door("copilot/session/start/gpt-5.2", "C:\\Code\\y") == {"error": "WorkingDirectoryNotExists"}


async def test_a_tool_that_is_not_there_is_a_failure(door: Portal, tmp_path: Path) -> None:
    session = await door.session(tmp_path)
    await door(f"copilot/session/{session}/query", "[[tool:ls|/]]")
    ends = [each for each in await door.until("session", session, "onIdle") if "EndTool" in each["callback"]]
    assert [each["error"] for each in ends] == [{"message": "no such tool", "code": "failure"}]


async def test_elements_with_their_place_in_the_log(door: Portal, tmp_path: Path) -> None:
    """So that a page can put what two streams say into one order."""
    session = await door.session(tmp_path)
    await door(f"copilot/session/{session}/query", "[[say:hi]]")
    await door.until("session", session, "onIdle", "first")
    live = (await door(f"copilot/session/{session}/live/second?seq=1"))["responses"]
    stored = (await door(f"copilot/session/{session}/history?seq=1"))["responses"]
    assert live == stored
    places = [element["seq"] for element in live]
    assert places == sorted(places)
    assert places[0] > 0
    plain = (await door(f"copilot/session/{session}/history"))["responses"]
    assert [{**element, "seq": 0} for element in plain] == [{**element, "seq": 0} for element in stored]


async def test_a_model_by_its_agent(door: Portal, tmp_path: Path) -> None:
    await door("copilot/session/start/demo%2Fdemo", f"  {tmp_path}\r\n")
    assert door.host.list()[0].agent == "demo"


async def test_a_query_and_its_callbacks(door: Portal, tmp_path: Path) -> None:
    session = await door.session(tmp_path)
    assert await door(f"copilot/session/{session}/query", "[[say:hi]]") == {}
    elements = await door.until("session", session, "onIdle")
    deltas = ("onReasoning", "onMessage")
    assert [element["callback"] for element in elements if element["callback"] not in deltas] == WHOLE


async def test_a_late_token_reads_the_whole_history_at_once(door: Portal, tmp_path: Path) -> None:
    session = await door.session(tmp_path)
    await door(f"copilot/session/{session}/query", "[[say:hi]] [[deltas:50]]")
    await door.until("session", session, "onIdle")
    late = (await door(f"copilot/session/{session}/live/other"))["responses"]
    assert [element["callback"] for element in late] == WHOLE


async def test_a_fork_shows_what_it_was_forked_from(door: Portal, tmp_path: Path) -> None:
    ident = await door.session(tmp_path)
    await door(f"copilot/session/{ident}/query", "[[say:one]] [[tool:view|a.txt]]")
    await door.until("session", ident, "onIdle")
    original = (await door(f"copilot/session/{ident}/live/late"))["responses"]
    assert "onEndToolExecution" in [element["callback"] for element in original]
    fork = await door.host.fork(ident, by="test")
    assert (await door(f"copilot/session/{fork.id}/live/k"))["responses"] == original
    told = (await door(f"copilot/session/{fork.id}/live/p?prompts=1"))["responses"]
    assert told == [{"callback": "onUserPrompt", "prompt": "[[say:one]] [[tool:view|a.txt]]"}, *original]


async def test_a_waiting_call_is_answered_as_soon_as_there_is_data(door: Portal, tmp_path: Path) -> None:
    """The original answered in lumps of five seconds."""
    session = await door.session(tmp_path)
    waiting = asyncio.ensure_future(door(f"copilot/session/{session}/live/k"))
    await asyncio.sleep(0)
    await door(f"copilot/session/{session}/query", "[[say:hi]]")
    elements = (await waiting)["responses"]
    if {"callback": "onIdle"} not in elements:
        elements += await door.until("session", session, "onIdle")
    assert elements[0]["callback"] == "onAgentStart"


async def test_without_a_token_one_element_at_a_time(door: Portal, tmp_path: Path) -> None:
    session = await door.session(tmp_path)
    await door(f"copilot/session/query/{session}", "[[say:hi]] [[reasoning:0]] [[deltas:1]]")
    names: list[str] = []
    while "onIdle" not in names:
        path = f"copilot/session/live/{session}" if len(names) % 2 else f"copilot/session/{session}/live"
        names.append((await door(path))["callback"])
    assert names == ["onAgentStart", "onStartMessage", "onMessage", "onEndMessage", "onAgentEnd", "onIdle"]
    assert await door(f"copilot/session/stop/{session}") == {"result": "Closed"}
    assert await door(f"copilot/session/live/{session}") == {"error": "SessionNotFound"}


@pytest.mark.parametrize("path", ["copilot/session/{}/query", "copilot/session/query/{}"])
@pytest.mark.parametrize(("method", "body"), [("GET", ""), ("POST", ""), ("POST", " \n")])
async def test_a_query_without_a_prompt_is_a_query(
    door: Portal, tmp_path: Path, path: str, method: str, body: str
) -> None:
    """It was a 400, which this API has no word for."""
    session = await door.session(tmp_path)
    answer = await door.client.request(method, f"/api/{path.format(session)}", content=body)
    assert (answer.status_code, answer.json()) == (200, {})
    assert (await door.until("session", session, "onIdle"))[-1] == {"callback": "onIdle"}


async def test_what_was_stopped_is_gone_at_once_for_calls_without_a_token(door: Portal, tmp_path: Path) -> None:
    session = await door.session(tmp_path)
    await door(f"copilot/session/query/{session}", "[[say:hi]]")
    await door.until("session", session, "onIdle")
    assert await door(f"copilot/session/live/{session}") == {"callback": "onAgentStart", "turnId": "t1"}
    await door(f"copilot/session/stop/{session}")
    assert await door(f"copilot/session/live/{session}") == {"error": "SessionNotFound"}
    assert (await door(f"copilot/session/{session}/live/late"))["responses"][0]["callback"] == "onAgentStart"


async def test_a_failed_query(door: Portal, tmp_path: Path) -> None:
    session = await door.session(tmp_path)
    await door(f"copilot/session/{session}/query", "[[crash]]")
    elements = await door.until("session", session, "onIdle")
    assert {"sessionError": "Error: stub crash"} in elements


@pytest.mark.parametrize("path", ["copilot/session/S/stop", "copilot/session/S/query", "copilot/session/S/live/k"])
async def test_an_unknown_session(door: Portal, path: str) -> None:
    assert await door(path, "x") == {"error": "SessionNotFound"}


async def test_parallel_calls_of_one_token_are_refused(door: Portal, tmp_path: Path) -> None:
    session = await door.session(tmp_path)
    two = {asyncio.ensure_future(door(f"copilot/session/{session}/live/k")) for _ in range(2)}
    other = asyncio.ensure_future(door(f"copilot/session/{session}/live/other"))
    [refused], [waiting] = await asyncio.wait(two, return_when=asyncio.FIRST_COMPLETED)
    assert await refused == {"error": "ParallelCallNotSupported"}
    await door(f"copilot/session/{session}/query", "[[say:x]]")
    assert (await waiting)["responses"]
    assert (await other)["responses"]


async def test_closing(open_portal: Opener, tmp_path: Path, clock: FakeClock) -> None:
    """Drained readers are told at once and once; the others read on until the countdown ends."""
    door = await open_portal(clock=clock)
    session = await door.session(tmp_path)
    await door(f"copilot/session/{session}/query", "[[say:x]]")
    await door.until("session", session, "onIdle")
    waiting = asyncio.ensure_future(door(f"copilot/session/{session}/live/k"))
    await asyncio.sleep(0.01)
    assert await door(f"copilot/session/{session}/stop") == {"result": "Closed"}
    assert await waiting == {"error": "SessionClosed"}
    assert await door(f"copilot/session/{session}/live/k") == {"error": "SessionNotFound"}
    assert (await door(f"copilot/session/{session}/live/late"))["responses"]
    clock.advance(4)
    assert await door(f"copilot/session/{session}/stop") == {"result": "Closed"}
    assert await door(f"copilot/session/{session}/query", "x") == {"error": "SessionNotFound"}
    clock.advance(4)
    assert (await door(f"copilot/session/{session}/live/later"))["responses"]
    clock.advance(2)
    assert await door(f"copilot/session/{session}/live/too-late") == {"error": "SessionNotFound"}
    assert await door(f"copilot/session/{session}/stop") == {"error": "SessionNotFound"}
    assert await door(f"copilot/session/{session}/live/late") == {"error": "SessionClosed"}


async def test_a_reader_goes_on_after_a_restart(open_portal: Opener, tmp_path: Path) -> None:
    door = await open_portal()
    session = await door.session(tmp_path)
    await door(f"copilot/session/{session}/query", "[[say:one]]")
    await door.until("session", session, "onIdle")
    door = await open_portal()
    await door(f"copilot/session/{session}/query", "[[say:two]]")
    elements = await door.until("session", session, "onIdle")
    assert [e["completeContent"] for e in elements if e["callback"] == "onEndMessage"] == ["two"]
    assert len([e for e in elements if e["callback"] == "onAgentStart"]) == 1


async def test_a_restart_between_any_two_elements(open_portal: Opener, tmp_path: Path) -> None:
    """Without a token, where one event is several elements; a restart gave the first of them again."""
    door = await open_portal()
    session = await door.session(tmp_path)
    await door(f"copilot/session/{session}/query", "[[say:hi]] [[reasoning:1]] [[deltas:1]] [[tool:none|x]] [[crash]]")
    await door.until("session", session, "onIdle")
    elements: list[str] = []
    while "onIdle" not in elements:
        element = await door(f"copilot/session/{session}/live")
        elements.append(element.get("callback", "sessionError"))
        door = await open_portal()
    assert elements == [
        "onAgentStart",
        *("onStartReasoning", "onReasoning", "onEndReasoning"),
        *("onStartToolExecution", "onEndToolExecution"),
        *("onStartMessage", "onMessage", "onEndMessage"),
        *("onAgentEnd", "sessionError", "onIdle"),
    ]


async def test_an_answer_leaves_only_when_its_position_is_durable(door: Portal, tmp_path: Path) -> None:
    """Whoever had an answer and killed the host got the same again from the next one."""
    session = await door.session(tmp_path)
    await door(f"copilot/session/{session}/query", "[[say:hi]]")
    seen = 0
    while seen < door.host.log.head(f"session/{session}") or not seen:
        await door(f"copilot/session/{session}/live/k")
        note = await door.host.log.get_kv(f"session/{session}", "live:k")
        assert note is not None
        assert json.loads(note)["pos"] > seen
        journal = Journal(tmp_path / "log.db")
        assert journal.read()[f"session/{session}", "live:k"] == note, "it survives a kill"
        journal.close()
        seen = json.loads(note)["pos"]


async def test_stop_answers_first(door: Portal, tmp_path: Path) -> None:
    session = await door.session(tmp_path)
    waiting = asyncio.ensure_future(door(f"copilot/session/{session}/live/k"))
    await asyncio.sleep(0.01)
    assert await door("stop") == {}
    assert await waiting == {"error": "HttpRequestTimeout"}
    await asyncio.wait_for(door.stopped.wait(), 60)


async def test_an_idle_session_has_nothing_to_say(
    door: Portal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portico.doors.portal.live.WAIT_SECONDS", 0.02)
    session = await door.session(tmp_path)
    assert await door(f"copilot/session/{session}/live/k") == {"error": "HttpRequestTimeout"}


def test_a_moment_as_javascript_writes_it() -> None:
    assert moment(1_700_000_000_007) == "2023-11-14T22:13:20.007Z"
