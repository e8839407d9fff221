"""What a permission of an ACP agent is for: just that, and nothing that the agent says beside it."""

import asyncio
import json
import os.path
from pathlib import Path

import pytest

from portico.agents.acp.choice import RESERVED
from portico.features.approvals.policy import ApprovalRules, Rules
from portico.kernel.events import Message
from portico.kernel.session import Session
from portico.testing.fixtures import HostOpener
from portico.workspace.patch import NO_NEWLINE
from tests.agents.acp_agent import calls, fake_agent, said, steps, waiting_approval
from tests.agents.fake_acp import OPTIONS
from tests.agents.test_acp import start
from tests.features import feature


def _exists(path: str) -> bool:
    return os.path.exists(path)


@pytest.fixture
async def session(open_host: HostOpener, tmp_path: Path) -> Session:
    (tmp_path / "work").mkdir()
    host = await open_host(fake_agent(tmp_path))
    return await host.start(by="test", cwd=str(tmp_path / "work"))


@pytest.mark.parametrize("action", ["write", "command"])
async def test_a_permission_to_read_is_none_to_write_or_to_run(session: Session, action: str) -> None:
    """It was: reads in the folder pass without a question, and whatever the agent named beside them passed with it."""
    path = str(Path(session.state.cwd) / "a.txt")
    asking = {"kind": "read", "locations": [{"path": path}], "rawInput": {"command": f"touch {path}"}}
    write = ["ask", "fs/write_text_file", {"path": path, "content": "new"}]
    turn_id = await session.send(
        Message(steps(["permission", asking], write if action == "write" else ["terminal", "touch", path])), by="test"
    )
    state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
    assert state.active is not None, "nobody was asked"
    assert not _exists(path)
    await _refuse_all(session, turn_id)
    assert not _exists(path)


async def _refuse_all(session: Session, turn: str) -> list[str]:
    """To its end; what was asked for."""
    asked: list[str] = []
    while True:
        state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
        if state.active is None:
            await session.wait(turn)
            return asked
        ident = await waiting_approval(session)
        [approval] = [call.approval for call in calls(state.active) if call.approval is not None]
        asked.append(approval.command or approval.path or approval.title)
        await session.approvals.answer(ident, by="test", allow=False)


@pytest.mark.parametrize(("rule", "named"), [(True, "locations"), (True, "content"), (False, "locations")])
async def test_a_permission_is_for_the_file_that_was_looked_at(session: Session, rule: bool, named: str) -> None:
    """A second place that was only named beside it was written unseen, also one that always asks. A person sees all
    of a diff; a rule passes only what it knows all files of."""
    shown, hook = (str(Path(session.state.cwd) / name) for name in ("a.txt", ".git/hooks/pre-commit"))
    feature(session.host, ApprovalRules).policy.settings = Rules("setting", edits={"**": True} if rule else {})
    places = [{"type": "diff", "path": path, "oldText": None, "newText": "new"} for path in (shown, hook)]
    asking = {"kind": "edit", named: places}
    writes = [["ask", "fs/write_text_file", {"path": path, "content": "new"}] for path in (shown, hook)]
    turn_id = await session.send(Message(steps(["permission", asking], *writes)), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=not rule)
    state = await session.wait_until(lambda state: _exists(shown) and (state.status != "running"))
    assert state.active is not None, "nobody was asked"
    await session.approvals.answer(await waiting_approval(session), by="test", allow=False)
    await session.wait(turn_id)
    assert (_exists(shown), _exists(hook)) == (True, False)


async def test_a_tool_that_passes_by_its_name_brings_no_command_with_it(session: Session) -> None:
    path = str(Path(session.state.cwd) / "a.txt")
    feature(session.host, ApprovalRules).policy.settings = Rules("setting", tools={"Look": True})
    asking = {"kind": "other", "title": "Look: around", "_meta": {"toolName": "Look"}, "rawInput": {"path": path}}
    turn_id = await session.send(Message(steps(["permission", asking], ["terminal", "touch", path])), by="test")
    state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
    assert state.active is not None, "nobody was asked"
    assert [call.tool for call in calls(state.active)] == ["Look", "terminal"]
    await session.approvals.answer(await waiting_approval(session), by="test", allow=False)
    await session.wait(turn_id)
    assert not _exists(path)


async def test_a_call_that_changes_while_a_person_thinks_is_not_what_was_allowed(session: Session) -> None:
    shown, other = (str(Path(session.state.cwd) / name) for name in ("a.txt", "b.txt"))
    diff = {"type": "diff", "path": other, "oldText": None, "newText": "new"}
    change = {"toolCallId": "call", "locations": [{"path": other}], "content": [diff]}
    write = ["ask", "fs/write_text_file", {"path": other, "content": "new"}]
    prompt = steps(["permission", {"kind": "edit", "locations": [{"path": shown}]}, OPTIONS, change], write)
    turn_id = await session.send(Message(prompt), by="test")
    await session.wait_until(lambda state: any(call.content for call in calls(state.active)))
    await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
    state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
    assert state.active is not None, "nobody was asked"
    await session.approvals.answer(await waiting_approval(session), by="test", allow=False)
    await session.wait(turn_id)
    assert not _exists(other)


async def test_what_was_allowed_in_a_turn_is_not_after_it(session: Session, tmp_path: Path) -> None:
    path = str(Path(session.state.cwd) / "a.txt")
    write = ["fs/write_text_file", {"path": path, "content": "first"}]
    turn_id = await session.send(Message(steps(["ask", *write], ["afterwards", *write])), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
    await session.wait(turn_id)
    (tmp_path / "store/over").touch()
    assert "Nothing runs in this session" in await _answered(tmp_path)
    turn_id = await session.send(Message(steps(["ask", *write])), by="test")
    state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
    assert state.active is not None, "nobody was asked"
    await session.approvals.answer(await waiting_approval(session), by="test", allow=False)
    await session.wait(turn_id)


async def _answered(home: Path) -> str:
    """What was answered to a request that came after the turn; only the agent's process knows."""
    async with asyncio.timeout(30):
        while not _exists(str(home / "store/afterwards")):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return (home / "store/afterwards").read_text()


async def test_what_the_agent_does_not_name_asks(session: Session) -> None:
    """An unknown kind of call is no read, wherever the file lies."""
    file = str(Path(session.state.cwd) / "a.txt")
    for kind in ("think", "switch_mode", "other", "of tomorrow"):
        turn_id = await session.send(
            Message(steps(["permission", {"kind": kind, "locations": [{"path": file}]}])), by="test"
        )
        state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
        assert state.active is not None, f"nobody was asked about {kind}"
        await session.approvals.answer(await waiting_approval(session), by="test", allow=False)
        await session.wait(turn_id)


async def test_an_agent_cannot_change_what_asks_by_reporting_it(session: Session) -> None:
    values = [{"value": "ask"}, {"value": "allow"}, {"value": "autoApprove"}]
    options = [{"id": name, "currentValue": "allow", "options": values} for name in sorted(RESERVED)]
    options += [{"id": "thought", "currentValue": "allow", "options": values}]
    report = steps(["update", "config_option_update", {"configOptions": options}])
    turn = await session.wait(await session.send(Message(report), by="test"))
    assert turn.outcome == "completed"
    assert session.state.config == {"thought": "allow"}
    turn_id = await session.send(Message(steps(["permission", {"kind": "execute"}])), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=False)
    await session.wait(turn_id)


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (None, "new\n", "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+new\n"),
        ("", "new\n", "--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1 @@\n+new\n"),
        ("old\n", "new\n", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"),
        ("old", "new", f"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n{NO_NEWLINE}\n+new\n{NO_NEWLINE}\n"),
    ],
)
async def test_a_diff_says_whether_the_file_is_new(
    open_host: HostOpener, tmp_path: Path, old: str | None, new: str, shown: str
) -> None:
    """A new file looked like a change of an empty one, and lines without an end ran together."""
    session = await start(open_host, tmp_path)
    diff = {"type": "diff", "path": "a.txt", "oldText": old, "newText": new}
    await session.send(Message(steps(["permission", {"content": [diff], "rawInput": {"path": "a.txt"}}])), by="test")
    ident = await waiting_approval(session)
    assert session.state.active is not None
    (call,) = calls(session.state.active)
    assert call.approval is not None
    assert call.approval.diff == shown
    await session.approvals.answer(ident, by="test", allow=True)


@pytest.mark.parametrize(("allow", "option"), [(True, "xx"), (False, "zz")])
async def test_a_permission_is_answered_by_kind(
    open_host: HostOpener, tmp_path: Path, allow: bool, option: str
) -> None:
    session = await start(open_host, tmp_path)
    diff = {"type": "diff", "path": "a.txt", "oldText": None, "newText": "new\n"}
    await session.send(Message(steps(["permission", {"content": [diff], "rawInput": {"path": "a.txt"}}])), by="test")
    ident = await waiting_approval(session)
    assert session.state.active is not None
    (call,) = calls(session.state.active)
    assert call.approval is not None
    assert (call.approval.kind, call.approval.path) == ("write", "a.txt")
    assert "+new" in (call.approval.diff or "")
    await session.approvals.answer(ident, by="test", allow=allow)
    turn = await session.wait(session.state.active.id)
    assert json.loads(said(turn)) == {"outcome": "selected", "optionId": option}
    assert calls(turn)[0].outcome == ("completed" if allow else "cancelled")


async def test_without_a_refusing_option_a_no_stops_the_turn(open_host: HostOpener, tmp_path: Path) -> None:
    """Answering by position would have allowed the call that a person refused."""
    session = await start(open_host, tmp_path)
    only = [{"optionId": "a", "name": "No", "kind": "allow_once"}]
    turn_id = await session.send(Message(steps(["permission", {}, only], ["text", "I did it"])), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=False)
    turn = await session.wait(turn_id)
    assert "I did it" not in said(turn)
    assert '{"outcome": "cancelled"}' in said(turn)


async def test_a_cancel_answers_the_open_permission(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    turn_id = await session.send(Message(steps(["permission", {}], ["sleep", 30])), by="test")
    await waiting_approval(session)
    await session.cancel(by="test")
    turn = await session.wait(turn_id)
    assert turn.outcome == "cancelled"
    assert "cancelled" in said(turn)
