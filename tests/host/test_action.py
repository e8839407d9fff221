"""What is judged is what is shown is what runs: a corpus of hostile actions, against every way to let one pass."""

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from portico.features.approvals import coverage as a
from portico.features.approvals.policy import ApprovalRules, Rules, rules_of
from portico.features.approvals.shell_syntax import commands
from portico.kernel.action import Action, command
from portico.kernel.events import Breadth, Message
from portico.kernel.session import Session
from portico.kernel.state import CallPart
from portico.kernel.turn import Turn
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import feature, host_of
from tests.grants import add_grant

# -- what always asks, wrapped up ----------------------------------------------------------------------------------

WRAPPED = [
    "sudo id",
    "X=1 sudo id",
    "$(sudo id)",
    "echo $(sudo id)",
    "echo `sudo id`",
    'echo "$(sudo id)"',
    "echo ${A:-$(sudo id)}",
    "echo hi\nsudo id",
    "echo hi # <!--\nsudo id #-->",
    "echo hi; sudo id",
    "echo hi & sudo id",
    "echo hi | sudo tee x",
    "true && sudo id",
    "(cd x && sudo id)",
    "{ sudo id; }",
    "if true; then sudo id; fi",
    "for i in 1; do sudo id; done",
    "f() { sudo id; }; f",
    "case x in x) sudo id;; esac",
    "diff <(sudo cat a) b",
    "> f sudo id",
    "2>&1 sudo id",
    "\\sudo id",
    "s'u'do id",
    's"ud"o id',
    "su\\do id",
    "/usr/bin/sudo id",
    "./sudo id",
    "nice -n 5 sudo id",
    "env X=1 sudo id",
    "xargs sudo < f",
    "timeout 5 sudo id",
    "command sudo id",
    "exec sudo id",
    "sh -c 'sudo id'",
    "bash -lc 'echo hi; sudo id'",
    "sh -c 'sh -c \"sudo id\"'",
    "eval sudo id",
    "eval 'sudo id'",
    "find . -exec sudo id {} ;",
    "python3 -c 'import os; os.system(\"sudo id\")'",
    "perl -e 'exec q(sudo), q(id)'",
    "cat <<X | sh\nsudo id\nX",
    # In an option or a variable from which a program takes the command that it runs.
    "bash -o pipefail -c 'sudo id'",
    "bash -O extglob -c 'sudo id'",
    "bash --rcfile x -c 'sudo id'",
    "docker run x sh -c 'sudo id'",
    "uv run bash -c 'sudo id'",
    "uv run python -c 'import os; os.system(\"sudo id\")'",
    "taskset 1 bash -c 's\"ud\"o id'",
    "command eval 'sudo id'",
    "git -c alias.x='!sudo id' x",
    "git config alias.x '!sudo id'",
    "git rebase -m --exec='sudo id' main",
    "git submodule foreach 'sudo id'",
    "git grep -O'sudo id' x",
    "PAGER='sudo id' git log",
    "GIT_SSH_COMMAND='sudo id' git fetch",
    "export GIT_EDITOR='sudo id'",
    "make SHELL='sudo sh'",
    "npx -c 'sudo id'",
    "tar --to-command='sudo id' -xf x",
    "rsync -e 'sudo ssh' a b:",
    "man -P 'sudo id' ls",
    "sqlite3 x '.shell sudo id'",
    "socat - EXEC:'sudo id'",
    "watch 'sudo id'",
    "su -c 'sudo id'",
    "script -c 'sudo id' x",
    "flock x -c 'sudo id'",
    "parallel 'sudo id' ::: x",
    "env -S 'sudo id'",
    "env -S'sudo id'",
    "trap 'sudo id' EXIT",
    "alias x='sudo id'",
    "tmux new 'sudo id'",
    "gawk 'BEGIN { system(\"sudo id\") }'",
    "sqlite3 <<< '.shell sudo id'",
    "rg --pre 'sudo id' x .",
    # A redirection that has no target.
    "2>&- sudo id",
    ">&- <&- sudo id",
    "SUDO id",
    "time -p sudo id",
]
UNKNOWABLE = [
    "$X id",
    "${X} id",
    '"$X" id',
    "$(printf 'su%s' do) id",
    "`echo sudo` id",
    "$'\\x73udo' id",
    "{sudo,id}",
    "/usr/bin/s?do id",
    "/usr/bin/[s]udo id",
    "eval $X",
    'bash -c "$X"',
    "echo c3VkbyBpZA== | base64 -d | sh",
    "bash < script",
    "env $X id",
    "echo 'open",
    'echo "open',
    "echo $(open",
    "echo `open",
    # What a program reads and runs.
    "echo 'os.system(chr(115) + \"udo id\")' | python3",
    "echo x | perl -",
    "python3 /dev/stdin <<< x",
    ". /dev/stdin <<< x",
    "source /dev/fd/0 < x",
    "bash /proc/self/fd/0 < x",
    "echo x | at now",
    "crontab x",
    "cat x | parallel",
    "cat x | xargs -I{} sh -c '{}'",
    "cat x | xargs -I% %",
    "cat x | xargs -d , -I % %",
    "find . -exec {} ;",
    # What is read is started by another program.
    "echo x | xargs env",
    "echo x | xargs -n1 timeout 5",
    "echo x | xargs -0 python3 -c",
    "find . -name 's?do' -exec nice {} ;",
    "fd . -x $X",
    # Behind the options of a program that starts another one.
    "env -u A $X id",
    "timeout -s KILL 5 $X id",
    "nice timeout 5 $X",
    "flock file $X",
    "find . -exec $X ;",
    "time -p $X id",
    "busybox env $X",
    # What a shell reads, whatever its options are.
    "bash <<< 'X=s; ${X}udo id'",
    "env -i bash <<< 'X=s; ${X}udo id'",
    "source <(printf x)",
    "python3 <(printf x)",
    "cat x | bash -s a",
    "bash -O extglob < x",
    "bash --rcfile y < x",
    "bash -c -- '$X'",
    "bash -c -o pipefail '$X'",
    # A line in an argument or a variable, in which the name is put together.
    "trap 'X=s; ${X}udo id' EXIT",
    'trap "$X" EXIT',
    "watch 's\"ud\"o id'",
    "script -qc '${X}udo' /dev/null",
    "env -S 's${X}udo id'",
    "git -c alias.x='!${X}udo' x",
    'git -c alias.x="!$X" x',
    "tar cf y x --checkpoint-action=exec=$X",
    "ssh -o ProxyCommand=$X box",
    "PS4='$(${X}udo)'; set -x",
    "PAGER=$X git log",
    "BASH_ENV=<(printf x) bash -c true",
    "mapfile -C $X a < x",
    "declare 'a[$(${X}udo)]=1'",
    "[[ -v 'a[$(${X}udo)]' ]]",
    "printf -v 'a[$(${X}udo)]' x",
    # Code of another language that starts programs.
    'awk \'BEGIN { system("s" "udo id") }\'',
    'python3 -c \'import os; os.system("s" + "udo id")\'',
    "node -e 'require(\"child_process\").execSync(x)'",
    "sed '1e x' f",
    "sed 's/x/y/e' f",
]
OTHERS = [
    "doas id",
    "pkexec id",
    "su",
    "rm x",
    "curl http://x",
    "wget x",
    "git push",
    "git -C sub push",
    "echo $(git push)",
    "make deploy",
    # Files that ask wherever they are edited.
    "echo x > .env",
    "cat >> sub/.env <<X\nx\nX",
    "echo x | tee -a .git/hooks/pre-commit",
    "cp x .git/config",
    "cd sub && sed -i s/a/b/ package-lock.json",
    "printf x >| .envrc",
]
HARMLESS = ["python3 x.py", "python3 --version", "bash build.sh", "docker run --rm x", "cat x | xargs -I% cp % y"]
HARMLESS += ["echo 'sudo id' > notes", "grep -rn 'rm -rf' .", "git log -m main", "apt list bash", "bash -e build.sh"]
HARMLESS += ["make test", "echo hi", 'git commit -m "rm the old sudo wrapper"', "ls -la | wc -l", "echo $HOME/*.py"]

HARMLESS += ["awk '{print $1}' x", "sed -n 's/a$/b/p' x", "jq '.a | $x' y", 'wc <<< "$X"', "diff <(ls a) <(ls b)"]
HARMLESS += ["timeout 5 grep $X y", "find . -name *.py", "find . -name '*.py' -exec grep x {} +", "echo x > y 2>&1"]
HARMLESS += ["xargs -0 grep $X", "python3 -c 'print(1)'", "export PATH=$HOME/bin:$PATH", "sed -i s/a/b/ x"]

settings_rules = Rules("setting", commands={"git push": False, "make deploy": False})
Grantor = Callable[[Session], Any]


async def _grant(session: Session, tool: str = "shell", pattern: str = "*") -> None:
    await add_grant(
        host_of(session),
        agent=session.state.agent,
        tool=tool,
        allow=True,
        by="ada",
        session=session.id,
        pattern=pattern,
    )


GRANTORS: dict[str, tuple[dict[str, Any], Grantor | None]] = {
    "approvals = allow": ({"approvals": "allow"}, None),
    "autoApprove": ({"autoApprove": "autoApprove"}, None),
    "permissions": ({"permissions": {"allow": ["shell"]}}, None),
    "session rules": ({"terminalAutoApproveRules": {"/./": True, "sudo": True, "git": True}}, None),
    "grant": ({}, _grant),
    "grant for every tool": ({}, lambda session: _grant(session, "*")),
}


async def runs(message: Message, turn: Turn) -> None:
    call = turn.tool("shell", "{}")
    decision = await call.approve("shell", command=message.text)
    await call.end(ok=decision.allowed)


async def waits(session: Session, text: str) -> bool:
    """Is a person asked?"""
    turn = await session.send(Message(text), by="test")
    async with asyncio.timeout(30):
        state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
        found = state.active is not None
        if found:
            await session.cancel(by="test")
        await session.wait(turn)
    return found


async def refused_or_asked(session: Session, text: str) -> bool:
    turn = await session.send(Message(text), by="test")
    async with asyncio.timeout(30):
        state = await session.wait_until(lambda state: state.status == "waiting" or state.active is None)
        if state.active is not None:
            await session.cancel(by="test")
        ended = await session.wait(turn)
    call = ended.parts[0]
    assert isinstance(call, CallPart)
    return not call.ok


async def granted(open_host: HostOpener, folder: Path, grantor: str) -> Session:
    host = await open_host(PlayAgent(runs))
    feature(host, ApprovalRules).policy.settings = settings_rules
    if grantor == "editor":
        editor = {"globalAutoApproveEnabled": True, "terminalAutoApproveRules": {"/./": True}}
        feature(host, ApprovalRules).policy.clients = rules_of(editor)
    config, prepare = GRANTORS.get(grantor, ({}, None))
    session = await host.start(by="test", cwd=str(folder), config=config)
    if prepare is not None:
        await prepare(session)
    return session


@pytest.mark.parametrize("grantor", [*GRANTORS, "editor"])
async def test_what_must_always_ask_is_let_pass_by_nobody(open_host: HostOpener, tmp_path: Path, grantor: str) -> None:
    session = await granted(open_host, tmp_path, grantor)
    passed = [line for line in [*WRAPPED, *UNKNOWABLE, *OTHERS] if not await waits(session, line)]
    assert passed == []


@pytest.mark.parametrize("grantor", [*GRANTORS, "editor"])
async def test_what_is_refused_is_not_wrapped_up_by_another_program(
    open_host: HostOpener, tmp_path: Path, grantor: str
) -> None:
    """With `approvals = allow` and `deny_commands = ["mkfs"]`, `nice mkfs x` ran."""
    session = await granted(open_host, tmp_path, grantor)
    rules = feature(session.host, ApprovalRules).policy
    rules.settings = Rules("setting", refused=("mkfs",))
    lines = [line.replace("sudo", "mkfs") for line in WRAPPED]
    assert [line for line in lines if not await refused_or_asked(session, line)] == []


@pytest.mark.parametrize("grantor", ["approvals = allow", "autoApprove", "grant"])
async def test_what_is_harmless_passes_where_somebody_said_so(
    open_host: HostOpener, tmp_path: Path, grantor: str
) -> None:
    session = await granted(open_host, tmp_path, grantor)
    assert [line for line in HARMLESS if await waits(session, line)] == []


async def test_protected_files_ask_whatever_the_session_allows(open_host: HostOpener, tmp_path: Path) -> None:
    async def edits(message: Message, turn: Turn) -> None:
        call = turn.tool("edit", "{}")
        decision = await call.approve(action=Action("write", files=tuple(message.text.split())))
        await call.end(ok=decision.allowed)

    host = await open_host(PlayAgent(edits))
    for config in ({"approvals": "allow"}, {"autoApprove": "autoApprove"}):
        session = await host.start(by="test", cwd=str(tmp_path), config=config)
        for files, asks in {"a.py": False, ".git/hooks/x": True, "a.py .env": True, "a.py b.py": False}.items():
            assert await waits(session, files) is asks, files


async def test_a_job_has_a_policy_of_its_own_and_the_owners_rules(open_host: HostOpener, tmp_path: Path) -> None:
    """Nobody is there to ask: the built-in questions are not asked, those of the settings are."""
    host = await open_host(PlayAgent(runs))
    feature(host, ApprovalRules).policy.settings = settings_rules
    session = await host.start(by="task:task-1", cwd=str(tmp_path), config={"approvals": "allow"})
    for line, asks in {"rm x": False, "$X y": True, "git push": True}.items():
        assert await waits(session, line) is asks, line
    fork = await host.fork(session.id, by="ada")
    assert await waits(fork, "rm x")


# -- the finder of commands against a real shell -------------------------------------------------------------------

_SIGNS = [
    "'",
    '"',
    "$(",
    ")",
    "`",
    ";",
    "\n",
    "|",
    "&&",
    "\\",
    "$X",
    "${X}",
    "{",
    "}",
    "#",
    ">f ",
    "<(",
    "*",
    "$'",
    "!",
    ">&- ",
    "<<< ",
    ">(",
]
_WORDS = [
    "sudo",
    "s",
    "udo",
    " ",
    " ",
    "x",
    "A=1 ",
    "if ",
    "then ",
    "fi",
    "eval ",
    "sh -c ",
    "echo ",
    "env ",
    "-u A ",
    "trap ",
    "xargs ",
    " EXIT",
    "[",
    "]",
    "((",
    "))",
]
_PIECES = st.sampled_from([*_SIGNS, *_WORDS])


@settings(max_examples=150, deadline=None)
@given(st.lists(_PIECES, max_size=10).map("".join))
@example("echo ${X:-`sudo`}")
@example('echo "`echo \\"\\`sudo\\`\\"`"')
@example("A=1 $(sudo)")
@example("[ sudo ] || sudo")
def test_no_shell_starts_a_program_that_was_not_found(tmp_path_factory: pytest.TempPathFactory, line: str) -> None:
    found = commands(line)
    if found is None or any(word.rpartition("/")[2] == "sudo" for words in found for word in words):
        return
    folder = tmp_path_factory.mktemp("shell")
    (folder / "bin").mkdir()
    for name in ("sudo", "x", "s", "udo"):
        mark = f"echo ran >> {folder}/ran" if name == "sudo" else ":"
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{mark}\n")
        (folder / "bin" / name).chmod(0o755)
    (folder / "bin" / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    (folder / "work").mkdir()
    shell = [shutil.which("bash") or "bash", "--noprofile", "--norc", "-c", line]
    environment = {"PATH": str(folder / "bin"), "X": "x"}
    subprocess.run(shell, cwd=folder / "work", env=environment, capture_output=True, timeout=30, check=False, input=b"")
    assert not (folder / "ran").exists()


# -- what is shown -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        (command("make test"), "make test"),
        (command("echo hi # <!--\ntouch pwned #-->"), "echo hi # <!--\ntouch pwned #-->"),
        (command(["git", "status; rm x"]), "git 'status; rm x'"),
        (command(["git", "status"], env={"LD_PRELOAD": "./x.so"}), "LD_PRELOAD=./x.so git status"),
        (command("git status", env={"GIT_PAGER": "less;x"}), "GIT_PAGER='less;x' git status"),
        (command("git status", env={"GIT_PAGER": "cat", "TERM": "dumb"}), "git status"),
        (command("git status", env={"TERM": "../../x"}), "TERM=../../x git status"),
        (command("git status", env={"AGENT_SESSION_ID": "20261116_1"}), "git status"),
        (command("git status", env={"AGENT_SESSION_ID": "$(x)"}), "AGENT_SESSION_ID='$(x)' git status"),
        (command("ls", cwd="/home/app/sub dir"), "cd '/home/app/sub dir' && ls"),
        (command("ls", cwd="/home/app/"), "ls"),
        (Action("read", files=("a",)), None),
    ],
)
def test_a_command_is_shown_as_it_runs(action: Action, shown: str | None) -> None:
    assert action.shown("/home/app") == shown


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (command("git status"), command(["git", "status"]), True),
        (command("git  status"), command(["git", "status"]), True),
        (command(["sh", "-c", "a; b"]), command("a; b"), True),
        (command("make all"), command(["/bin/bash", "-lc", "make all"]), True),
        (command("make all"), command(["./bash", "-c", "make all"]), False),
        (command("make all"), command(["/tmp/sh", "-c", "make all"]), False),
        (command("git status"), command(["git status"]), False),
        (command("git status"), command(["git", "status"], env={"PATH": "."}), False),
        (command("git status"), command("git status", env={"AGENT_SESSION_ID": "20261116_1"}), True),
        (command("git status"), command("git status", env={"AGENT_SESSION_ID": "../x"}), False),
        (command("git status"), command("git status", cwd="/x"), False),
        (Action("write", files=("a",)), Action("read", files=("a",)), False),
    ],
)
def test_a_permission_is_for_the_same_action(first: Action, second: Action, same: bool) -> None:
    assert a.same(first, second) is same


@pytest.mark.parametrize(
    ("shown", "covered", "not_covered"),
    [
        (
            command("npm test -- --watch"),
            [command("npm test"), command("npm test a && npm test b"), command(["npm", "test"])],
            [
                *map(command, ["npm publish", "npm", "npm test; make", "npm test $(x)", "npx test", "X=1 npm test"]),
                command("npm test", env={"NODE_OPTIONS": "--require ./x"}),
            ],
        ),
        (command("make"), [command("make")], [command("make deploy"), command("make -f x")]),
        (command("git -C x log"), [command("git -C x log")], [command("git -C x push"), command("git log")]),
        (
            command("find . -name x"),
            [command("find . -type f")],
            [command("find . -delete"), command("find . -exec x ;")],
        ),
        (
            command("npm run lint"),
            [command("npm run lint -- --fix")],
            [command("npm run evil"), command("npm run lint --script-shell=./x"), command("npm run")],
        ),
        (command("uv run pytest"), [], [command("uv run python -c x"), command("uv run pytest -p x")]),
        (command("timeout 5 make"), [], [command("timeout 5 ./x")]),
        (command("cp a b"), [], [command("cp a .git/config"), command("cp a b c")]),
        (command("./deploy staging"), [], [command("./deploy staging --production")]),
        (command("make test"), [], [command("make test deploy")]),
        (command("git config user.name x"), [], [command("git config core.fsmonitor ./x")]),
        (command("git log"), [command("git log -3")], [command("git log --output=x"), command("git log --outp x")]),
        (command("git fetch"), [], [command("git fetch --upload-pac=./x"), command("git --exec-path=x fetch")]),
        (
            command("git rebase a"),
            [command("git rebase b")],
            [command("git rebase -xmake"), command("git rebase --exe x")],
        ),
        (command("docker exec box ls"), [], [command("docker exec box sh")]),
        (command("ssh box ls"), [], [command("ssh box reboot")]),
        (
            command("git rebase main"),
            [command("git rebase other")],
            [command("git rebase -x make main"), command("git rebase --exec=make")],
        ),
        (command("git rebase -x make main"), [], [command("git rebase -x x main"), command("git rebase main")]),
        (
            command("for i in *; do x $i; done"),
            [command("for i in *; do x $i; done")],
            [command("for i in *; do y $i; done")],
        ),
        (
            command("a b", env={"K": "v"}),
            [command("a b", env={"K": "v"})],
            [command("a b"), command("a b", env={"K": "w"})],
        ),
        (Action("write", files=("a",)), [Action("write", files=("./a",))], [Action("write", files=("b",))]),
        (Action("write", files=("a", "b")), [Action("write", files=("b",))], [Action("write", files=("a", "c"))]),
    ],
)
def test_a_grant_covers_what_was_shown(
    tmp_path: Path, shown: Action, covered: list[Action], not_covered: list[Action]
) -> None:
    def paths(action: Action) -> list[str]:
        return [str((tmp_path / path).resolve()) for path in action.files]

    covers = a.coverage(shown, paths(shown), "{}", str(tmp_path))
    for action in [shown, *covered]:
        assert a.covered(covers, action, paths(action), "{}", str(tmp_path)), action
    for action in not_covered:
        assert not a.covered(covers, action, paths(action), "{}", str(tmp_path)), action


def test_a_call_that_cannot_be_judged_is_remembered_as_itself() -> None:
    unclear = Action("other", unclear="unknown fields")
    covers = a.coverage(unclear, [], '{"a":1}', "/")
    assert a.covered(covers, unclear, [], '{"a":1}', "/")
    assert not a.covered(covers, unclear, [], '{"a":2}', "/")
    assert a.coverage(Action("other"), [], "{}", "/") == []


UNCLEAR = [
    Action("shell", "make build", unclear="cmd"),
    Action("shell", argv=("make", "build"), unclear="stdin"),
    Action("shell", unclear="only its title"),
    Action("write", files=("a",), unclear="patch"),
    Action("read", files=("a",), unclear="url"),
    Action("other", unclear="fields"),
]


def _kind_and_text(action: Action) -> str:
    return f"{action.kind} {action.text or ''}".strip()


@pytest.mark.parametrize("unclear", UNCLEAR, ids=_kind_and_text)
def test_an_unclear_call_is_covered_by_a_grant_for_the_identical_call_only(tmp_path: Path, unclear: Action) -> None:
    """Bug: "Allow in this session" for `make build` also allowed `make build` with unknown fields next to it."""
    home, paths = str(tmp_path), [str(tmp_path / path) for path in unclear.files]
    clear = structs.replace(unclear, unclear="")
    identical = a.coverage(unclear, paths, '{"a":1}', home)
    [only] = identical
    assert only.startswith("call:")
    assert a.covered(identical, unclear, paths, '{"a":1}', home)
    elsewhere = structs.replace(unclear, files=("b",)), structs.replace(unclear, line="make deploy", argv=())
    assert [each for each in (unclear, *elsewhere) if a.covered(identical, each, paths, '{"a":2}', home)] == []
    assert [each for each in elsewhere if a.covered(identical, each, paths, '{"a":1}', home)] == []
    shown = a.coverage(clear, paths, '{"a":1}', home)
    for covers in (shown, ["command:make build", "line:make build", f"folder:{home}", *(f"path:{p}" for p in paths)]):
        assert not a.covered(covers, unclear, paths, '{"a":1}', home)
    assert [a.widened(unclear, identical, breadth, home) for breadth in ("folder", "all")] == [None, None]


@pytest.mark.parametrize("unclear", UNCLEAR[:2] + UNCLEAR[3:5], ids=_kind_and_text)
def test_a_refusal_also_covers_unknown_fields(tmp_path: Path, unclear: Action) -> None:
    home, paths = str(tmp_path), [str(tmp_path / path) for path in unclear.files]
    refused = a.coverage(structs.replace(unclear, unclear=""), paths, "{}", home)
    assert a.covered(refused, unclear, paths, '{"a":1}', home, allow=False)


@pytest.mark.parametrize(
    ("shown", "breadth", "covered", "not_covered"),
    [
        ("src/a.py", "folder", ["src/b.py", "src/deep/c.py"], ["a.py", "src2/a.py", "../a.py"]),
        ("src/a.py", "all", ["b.py", "deep/c.py"], ["../a.py"]),
        ("../a.py", "folder", None, []),
        ("../a.py", "all", None, []),
    ],
)
def test_a_yes_for_more_files_stays_inside_the_folder(
    tmp_path: Path, shown: str, breadth: Breadth, covered: list[str] | None, not_covered: list[str]
) -> None:
    def paths(name: str) -> list[str]:
        return [str((tmp_path / "p" / name).resolve())]

    home = str(tmp_path / "p")
    action = Action("write", files=(shown,))
    covers = a.widened(action, a.coverage(action, paths(shown), "{}", home), breadth, home)
    assert (covers is None) is (covered is None)
    for name in [*(covered or []), *not_covered]:
        allowed = a.covered(covers or [], Action("write", files=(name,)), paths(name), "{}", home)
        assert allowed is (name not in not_covered), name


@pytest.mark.parametrize(
    ("action", "folder", "everything"),
    [(command("npm test"), None, []), (Action("other", unclear="x"), None, None), (Action("other"), None, None)],
)
def test_a_yes_for_more_than_a_command(action: Action, folder: None, everything: list[str] | None) -> None:
    covers = a.coverage(action, [], "{}", "/p")
    assert (
        a.widened(action, covers, "folder", "/p"),
        a.widened(action, covers, "all", "/p"),
    ) == (folder, everything)
