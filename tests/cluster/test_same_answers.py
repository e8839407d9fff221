"""Whatever host is asked: the owner of a session, one beside it, one of another place, and one that starts late."""

import asyncio
import subprocess
from contextlib import AsyncExitStack
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico.features.board.activity import waiting_of
from portico.kernel import limits
from portico.kernel import session as session_module
from tests.doors.standing import Standing, standing
from tests.postgres import Databases

_PATHS = """
    /v1/agents /v1/sessions /v1/sessions?archived=true /v1/board /v1/inbox /v1/inbox/answered /v1/search?q=quagga
    /v1/usage /v1/usage?by=session /v1/audit?limit=1000 /v1/events?limit=1000 /v1/grants /v1/terminals /v1/people
    /v1/people/me /v1/tokens /v1/push /v1/notices /v1/automations /v1/runs /v1/jobs /v1/entry /sessions
    /login/ways /api/copilot/models /api/copilot/job/running /api/copilot/task
"""
_OF_SESSION = """
    {} {}/events {}/queue {}/export {}/export?format=markdown {}/archive {}/changes {}/changes/diff {}/uncommitted
    {}/uncommitted/diff {}/uncommitted/file?path=new.txt {}/suggestions?q=@ne {}/suggestions?q=/
"""
_OWN = ("created", "version", "since")
"""What each host counts for itself: since when a workspace of the settings is a project, the changes of its board, and
the commit in which it heard of an activity, which may be several in one."""


def _shared(answer: Any) -> Any:
    match answer:
        case dict():
            return {key: _shared(value) for key, value in answer.items() if key not in _OWN}
        case [{"path": _, "count": _}, *_]:  # projects: each host has its own workspaces first
            return sorted((_shared(each) for each in answer), key=itemgetter("id"))
        case list():
            return [_shared(each) for each in answer]
    return answer


async def _answers(host: Standing, paths: list[str]) -> dict[str, tuple[int, Any]]:
    found = {}
    for path in paths:
        answer = await host.http.get(path)
        is_json = "json" in answer.headers.get("content-type", "")
        found[path] = answer.status_code, _shared(msgspec.json.decode(answer.content)) if is_json else answer.text
    return found


async def _fill(host: Standing, folder: Path) -> list[str]:
    """A session at rest, one that waits for an approval, and one that runs; with all that hangs on them."""
    for command in ("init -q", "commit -q --allow-empty -m first"):
        given = ["-c", "user.name=n", "-c", "user.email=e@example.com", *command.split()]
        subprocess.run(["git", "-C", str(folder), *given], check=True)  # noqa: ASYNC221 - a test has the time
    rests = await host.start(title="rests", cwd=str(folder))
    await host.say(rests, "[[say:a quagga]]")
    waits = await host.start(title="waits", cwd=str(folder), agent="demo")
    await host.http.post(f"/v1/sessions/{waits}/messages", json={"text": "write something"})
    runs = await host.start(title="runs", cwd=str(folder))
    await host.http.post(f"/v1/sessions/{runs}/messages", json={"text": "[[say:begun]] [[hang]]"})
    await host.http.post(f"/v1/sessions/{runs}/messages", json={"text": "queued"})
    async with asyncio.timeout(30):
        await (await host.server.host.get(waits)).wait_until(lambda state: bool(waiting_of(state)))
        await (await host.server.host.get(runs)).wait_until(lambda state: bool(state.queue))
    (folder / "new.txt").write_text("new\n", "utf-8")
    bodies = {
        f"/v1/sessions/{rests}/draft": {"text": "half a word"},
        "/v1/people": {"name": "ann", "scopes": ["read"]},
        "/v1/tokens": {"name": "phone", "scopes": ["read"]},
        "/v1/terminals": {"session": rests, "title": "shell"},
    }
    for path, body in bodies.items():
        answer = await host.http.request("PUT" if path.endswith("draft") else "POST", path, json=body)
        assert answer.status_code < 300, answer.text
    return [f"/v1/sessions/{each}" for each in (rests, waits, runs)]


async def test_every_host_gives_the_same_answers(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its owner had a turn in its inbox, on its board and in its changes: hosts beside it forgot what waited after
    a minute, and those that started later never knew of it."""
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setattr(limits, "SILENCE_SECONDS", (3600.0,))  # nothing is written while hosts are compared
    url = await databases.new()
    async with AsyncExitStack() as stack:

        async def start(name: str, place: str) -> Standing:
            (tmp_path / place).mkdir(exist_ok=True)
            flags = {"log.url": url, "cluster.host": name, "cluster.place": place, "cluster.lease_seconds": 60.0}
            (tmp_path / name).mkdir()
            flags["workspaces"] = [str(tmp_path / place)]
            return await stack.enter_async_context(standing(tmp_path / name, flags=flags))

        owner, beside, far = await start("owner", "A"), await start("beside", "A"), await start("far", "B")
        sessions = await _fill(owner, tmp_path / "A")
        monkeypatch.setattr(session_module, "IDLE_SECONDS", -1.0)
        for host in (owner, beside, far):
            await host.server.host.members.hear()
            await host.server.host.sweep()
        late = await start("late", "A")
        for host in (owner, beside, far, late):
            await host.server.gate.share()  # type: ignore[misc]
            await host.server.host.members.look()  # type: ignore[attr-defined]
        paths = [*_PATHS.split(), *(path.format(each) for each in sessions for path in _OF_SESSION.split())]
        wanted = await _answers(owner, paths)
        assert [each["text"] for each in wanted["/v1/inbox"][1]["waiting"]] == ["Wants to change portico-demo.md"]
        for host in (beside, far, late):
            found = await _answers(host, paths)
            name = host.server.host.members.name
            for path in paths:
                assert (name, path, found[path]) == (name, path, wanted[path])
    databases.give_back(url)
