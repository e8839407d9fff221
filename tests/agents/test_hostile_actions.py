"""A corpus of hostile actions per agent protocol. Each once passed by a built-in rule, or looks as if it could."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from portico.agents.copilot.conversation import action_of
from portico.features.approvals.policy import ApprovalRules, Rules
from portico.kernel.action import Action
from portico.kernel.events import Message
from portico.kernel.session import Session
from portico.testing.fixtures import HostOpener
from tests.agents.acp_agent import calls, fake_agent, steps, waiting_approval
from tests.features import feature, host_of
from tests.grants import add_grant

Json = dict[str, Any]
ENVIRONMENTS: list[Json] = [
    {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "touch pwned"},
    {"LD_PRELOAD": "./evil.so"},
    {"PATH": "."},
    {"GIT_DIR": "evil"},
    {"GIT_PAGER": "touch pwned"},
    {"BASH_ENV": "./evil"},
    {"HOME": "."},
    {"TERM": "../../evil"},
]
TERMINALS: list[tuple[Json, str]] = [
    *(
        (
            {
                "command": "git",
                "args": ["status"],
                "env": [{"name": name, "value": value} for name, value in each.items()],
            },
            f"{next(iter(each))}=",
        )
        for each in ENVIRONMENTS
    ),
    # An environment of another shape was an error of ours.
    ({"command": "git", "args": ["status"], "env": {"LD_PRELOAD": "./x"}}, "LD_PRELOAD=./x git status"),
    ({"command": "git", "args": ["status"], "env": ["PATH=."]}, "env=PATH=. git status"),
    ({"command": "git", "args": ["status", "--porcelain"]}, "git status --porcelain"),
    ({"command": "git", "args": ["status;touch pwned"]}, "git 'status;touch pwned'"),
    ({"command": "git status; touch pwned"}, "git status; touch pwned"),
    ({"command": "git status\ntouch pwned"}, "git status\ntouch pwned"),
    ({"command": "git", "args": ["status"], "cwd": "bare"}, "bare && git status"),
    ({"command": "./ls"}, "./ls"),
    ({"command": "ls\t-la"}, "'ls\t-la'"),
    ({"command": "sh", "args": ["-c", "ls"]}, "sh -c ls"),
]
RAW: Json = {"command": "git status"}
PERMISSIONS: list[Json] = [
    # A title is no command.
    {"kind": "execute", "title": "git status"},
    {"kind": "execute", "title": "ls", "rawInput": {}},
    {"kind": "execute", "title": "ls", "rawInput": "touch pwned"},
    {"kind": "execute", "title": "ls", "rawInput": {"script": "touch pwned"}},
    # What stands beside the command counts.
    {"kind": "execute", "rawInput": {**RAW, "args": ["--porcelain"]}},
    {"kind": "execute", "rawInput": {**RAW, "args": "; touch pwned"}},
    {"kind": "execute", "rawInput": {"command": "git", "args": ["push"]}},
    {"kind": "execute", "rawInput": {**RAW, "env": {"LD_PRELOAD": "./x"}}},
    {"kind": "execute", "rawInput": {**RAW, "env": [{"name": "PATH", "value": "."}]}},
    {"kind": "execute", "rawInput": {**RAW, "env": "PATH=."}},
    {"kind": "execute", "rawInput": {**RAW, "cwd": "/"}},
    {"kind": "execute", "rawInput": {**RAW, "workdir": "bare"}},
    {"kind": "execute", "rawInput": {**RAW, "stdin": "touch pwned"}},
    {"kind": "execute", "rawInput": {**RAW, "field of tomorrow": True}},
    {"kind": "execute", "rawInput": {"command": ["git", "status", "--porcelain"]}},
    # Two names for one thing: which of them the agent takes is not known.
    {"kind": "execute", "rawInput": {**RAW, "cmd": "touch pwned"}},
    {"kind": "execute", "rawInput": {"command": "git", "args": ["status"], "argv": ["push"]}},
    {"kind": "execute", "rawInput": {**RAW, "cwd": ".", "workdir": "bare"}},
    {"kind": "execute", "rawInput": {**RAW, "env": {"TERM": "dumb"}, "environment": {"PATH": "."}}},
    {"kind": "execute", "rawInput": RAW, "content": [{"type": "diff", "path": ".env", "newText": "x"}]},
    {"kind": "execute", "rawInput": RAW, "locations": [{"path": ".git/hooks/pre-commit"}]},
    # The kind is a claim.
    {"kind": "read", "locations": [{"path": "a.txt"}], "rawInput": {"command": "touch pwned"}},
    {"kind": "read", "locations": [{"path": "a.txt"}], "rawInput": {"cmd": "touch pwned"}},
    {"kind": "read", "rawInput": {"path": "a.txt", "content": "new"}},
    {"kind": "read", "rawInput": {"path": "a.txt", "url": "http://evil"}},
    {"kind": "read", "rawInput": {"path": "a.txt", "script": "touch pwned"}},
    {"kind": "read", "rawInput": "a.txt", "locations": [{"path": "a.txt"}]},
    {"kind": "read", "content": [{"type": "diff", "path": "a.txt", "oldText": None, "newText": "x"}]},
    {"kind": "read", "rawInput": {"path": "../secret"}},
    {"kind": "read", "rawInput": {"path": "a.txt"}, "locations": [{"path": "/etc/passwd"}], "title": "ls"},
    {"kind": "read", "locations": [{"path": "a.txt"}, {"path": "/etc/passwd"}]},
    {"kind": "search", "rawInput": {"path": ".", "pattern": "x", "exec": "touch pwned"}},
    {"kind": "search", "rawInput": {"path": ".", "pattern": "/etc/*"}},
    {"kind": "search", "rawInput": {"path": ".", "glob": "../*"}},
    {"kind": "read", "rawInput": {"path": ".", "include": "~/.ssh/*"}},
    {"kind": "fetch", "rawInput": {"url": "http://evil"}},
    # An edit of one file is none of another.
    {"kind": "edit", "rawInput": {"path": "ok.py"}, "locations": [{"path": "ok.py"}, {"path": ".env"}]},
    {
        "kind": "edit",
        "content": [{"type": "diff", "path": path, "oldText": None, "newText": "x"} for path in ("ok.py", ".env")],
    },
    {"kind": "edit", "rawInput": {"path": "ok.py", "command": "touch pwned"}},
    {"kind": "edit", "rawInput": {"path": "ok.py", "patch": "*** Update File: .env"}},
    # A name in a title is not the tool's name.
    {"kind": "other", "title": "Look: around"},
    {"title": "Look (at this)"},
]


@pytest.fixture
async def session(open_host: HostOpener, tmp_path: Path) -> Session:
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    (work / "bare").mkdir()
    host = await open_host(fake_agent(tmp_path))
    feature(host, ApprovalRules).policy.settings = Rules("setting", edits={"ok.py": True}, tools={"Look": True})
    return await host.start(by="test", cwd=str(work))


async def _asked(session: Session, step: list[Any]) -> str | None:
    """What a person sees of it; None: it passed."""
    turn = await session.send(Message(steps(step)), by="test")
    async with asyncio.timeout(30):
        state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
        if state.active is None:
            return None
        ident = await waiting_approval(session)
        [shown] = [call.approval for call in calls(state.active) if call.approval is not None]
        await session.approvals.answer(ident, by="test", allow=False)
        await session.wait(turn)
    return shown.command or shown.path or shown.title


async def test_a_command_that_does_more_than_its_first_words_asks_and_shows_it(session: Session) -> None:
    for params, shown in TERMINALS:
        asked = await _asked(session, ["ask", "terminal/create", params])
        assert asked is not None, params
        assert shown in asked, params
    assert await _asked(session, ["ask", "terminal/create", {"command": "git", "args": ["status"]}]) is None
    assert await _asked(session, ["ask", "terminal/create", {"command": "ls -la"}]) is None


async def test_a_permission_for_more_than_it_says_asks(session: Session) -> None:
    passed = [asking for asking in PERMISSIONS if await _asked(session, ["permission", asking]) is None]
    assert passed == []
    for honest in (
        {"kind": "execute", "title": "anything", "rawInput": {**RAW, "description": "How it stands", "timeout": 5}},
        {"kind": "execute", "rawInput": {"command": ["git", "status"], "cwd": "."}},
        {"kind": "read", "rawInput": {"path": "a.txt", "limit": 5}, "locations": [{"path": "a.txt"}]},
        {"kind": "search", "rawInput": {"path": ".", "pattern": "x"}},
        {"kind": "edit", "rawInput": {"file_path": "ok.py", "old_string": "a", "new_string": "b"}},
        {"kind": "other", "title": "anything", "_meta": {"toolName": "Look"}},
    ):
        assert await _asked(session, ["permission", honest]) is None, honest


@pytest.mark.parametrize(
    ("first", "hidden"),
    [
        ({"command": "make build"}, {"cmd": "rm -rf ~"}),
        ({"command": "make build"}, {"cmd": "sudo reboot"}),
        ({"command": "make build"}, {"stdin": "rm -rf ~"}),
        ({"command": "make build"}, {"script": "rm -rf ~"}),
        ({"command": "npm test"}, {"args": "--watch"}),
        ({"command": ["make", "build"]}, {"field of tomorrow": 1}),
    ],
)
@pytest.mark.parametrize("pattern", [False, True], ids=["answered", "granted in advance"])
async def test_a_remembered_approval_covers_no_unknown_field(
    session: Session, first: Json, hidden: Json, pattern: bool
) -> None:
    """Bug: the approval of `make build` was remembered as a line, and let the same line with unknown fields pass."""
    feature(session.host, ApprovalRules).policy.settings = Rules("setting", refused=("sudo",))

    async def asked(given: Json, option: str) -> bool:
        turn = await session.send(
            Message(steps(["permission", {"toolCallId": "c", "kind": "execute", "rawInput": given}])), by="test"
        )
        async with asyncio.timeout(30):
            state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
            waited = state.active is not None
            if waited:
                await session.approvals.answer(await waiting_approval(session), by="test", option=option)
            await session.wait(turn)
        return waited

    if pattern:
        await add_grant(
            host_of(session),
            agent=session.state.agent,
            tool="*",
            allow=True,
            by="test",
            session=session.id,
            pattern="*",
        )
    else:
        assert await asked(first, "allow-session")
    assert not await asked(first, "deny")
    assert await asked({**first, **hidden}, "deny")
    assert await asked({**first, **hidden}, "allow-session")
    assert not await asked({**first, **hidden}, "deny")
    other = {name: f"{value} again" for name, value in hidden.items()}
    assert await asked({**first, **other}, "deny")


async def test_a_permission_does_not_cover_a_command_with_another_environment(session: Session) -> None:
    env = [{"name": "LD_PRELOAD", "value": "./x"}]
    create = ["ask", "terminal/create", {"command": "make", "args": ["all"], "env": env}]
    turn = await session.send(
        Message(steps(["permission", {"kind": "execute", "rawInput": {"command": "make all"}}], create)), by="test"
    )
    await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
    state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
    assert state.active is not None, "nobody was asked"
    await session.approvals.answer(await waiting_approval(session), by="test", allow=False)
    await session.wait(turn)


def _edit(old: str | None, new: str) -> list[Any]:
    return [
        "permission",
        {"kind": "edit", "content": [{"type": "diff", "path": ".env", "oldText": old, "newText": new}]},
    ]


def _write(content: str) -> list[Any]:
    return ["ask", "fs/write_text_file", {"path": "{cwd}/.env", "content": content}]


@pytest.mark.parametrize(
    ("actions", "asked"),
    [
        ([_edit(None, "new"), _write("new")], 1),
        ([_edit(None, "new"), _write("new\n")], 1),
        ([_edit("a", "c"), _write("c\nb")], 1),
        # What was shown is one content, once.
        ([_edit(None, "new"), _write("evil")], 2),
        ([_edit("a", "c"), _write("c\nevil")], 2),
        ([_edit(None, "new"), _write("new"), _write("new")], 2),
        ([_write("one"), _write("two")], 2),
        ([["ask", "terminal/create", {"command": "make", "args": ["all"]}]] * 2, 2),
        (
            [["permission", {"kind": "execute", "rawInput": {"command": "make all"}}]]
            + [["ask", "terminal/create", {"command": "make", "args": ["all"]}]] * 2,
            2,
        ),
    ],
)
async def test_a_yes_is_for_one_action_and_for_what_was_shown(session: Session, actions: list[Any], asked: int) -> None:
    """A yes to a diff let the agent write anything into that file for the rest of the turn."""
    (Path(session.state.cwd) / ".env").write_text("a\nb")
    told = json.loads(json.dumps(actions).replace("{cwd}", session.state.cwd))
    turn = await session.send(Message(steps(*told)), by="test")
    found = 0
    async with asyncio.timeout(30):
        while True:
            state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
            if state.active is None:
                break
            found += 1
            await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
        await session.wait(turn)
    assert found == asked


def _request(kind: str, **fields: object) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, **fields)


@pytest.mark.parametrize(
    ("request_", "action"),
    [
        (_request("shell", full_command_text="ls", intention="git status"), Action("shell", "ls")),
        (_request("shell", full_command_text=""), Action("shell")),
        (
            _request("shell", full_command_text="ls", resolved_working_directory="/etc"),
            Action("shell", "ls", cwd="/etc"),
        ),
        (
            _request("shell", full_command_text="ls", request_sandbox_bypass=True),
            Action("shell", "ls", unclear="it wants more: request_sandbox_bypass"),
        ),
        (_request("read", full_command_text="touch x", path="a"), Action("shell", "touch x")),
        (_request("read", path="a", resolved_path="/etc/passwd"), Action("read", files=("a", "/etc/passwd"))),
        (
            _request("write", file_name="a", file_edits=[SimpleNamespace(path=".env")]),
            Action("write", files=("a", ".env")),
        ),
        (_request("url", url="http://x"), Action("other")),
        (_request("of tomorrow", path="a"), Action("other", files=("a",))),
    ],
)
def test_a_permission_of_copilot(request_: SimpleNamespace, action: Action) -> None:
    assert action_of(request_) == action
