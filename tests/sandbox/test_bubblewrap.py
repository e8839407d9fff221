"""The arguments of bubblewrap, as a table of policies; and what the filter of system calls contains."""

from pathlib import Path

import pytest

from portico.sandbox import network
from portico.sandbox.bubblewrap import bubblewrap, enter, holder
from portico.sandbox.mounts import Mount, locate
from portico.sandbox.policy import Limits, Machine, Namespaces, Policy, SandboxedSession, SandboxRules, policy_for
from portico.sandbox.seccomp import filter_for
from portico.sandbox.vendors import VENDORS, Vendor

JOINS = Namespaces(user="/u", net="/n", mount="/m", scratch="/s")
ALONE = Policy(mode="project", folder="/p", home="/home/ada", limits=Limits(tmp=5))
JOINED = Policy(mode="strict", folder="/p", home="/home/ada", joins=JOINS)


def follow(options: list[str], *wanted: str) -> bool:
    return any(tuple(options[at : at + len(wanted)]) == wanted for at in range(len(options)))


@pytest.mark.parametrize(
    ("policy", "mount", "wanted"),
    [
        (ALONE, None, ("--unshare-net",)),
        (ALONE, None, ("--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session")),
        (ALONE, None, ("--size", "5", "--tmpfs", "/tmp")),
        (ALONE, Mount("home", "/home/ada"), ("--size", "5", "--tmpfs", "/home/ada")),
        (ALONE, Mount("read", "/usr"), ("--ro-bind", "/usr", "/usr")),
        (ALONE, Mount("write", "/p", "/real"), ("--bind", "/real", "/p")),
        (ALONE, Mount("link", "/bin", "usr/bin"), ("--symlink", "usr/bin", "/bin")),
        (ALONE, Mount("protect", "/p/.git/hooks"), ("--ro-bind", "/p/.git/hooks", "/p/.git/hooks")),
        (ALONE, Mount("hide_folder", "/p/x"), ("--tmpfs", "/p/x", "--remount-ro", "/p/x")),
        (ALONE, Mount("hide_file", "/p/x"), ("--ro-bind", "/dev/null", "/p/x")),
        (ALONE, None, ("--remount-ro", "/", "--chdir", "/p", "--clearenv")),
        (ALONE, None, ("--setenv", "HOME", "/home/ada")),
        (ALONE, None, ("--setenv", "PORTICO_SANDBOX", "project")),
        (JOINED, None, ("--bind", "/s/tmp", "/tmp")),
        (JOINED, Mount("home", "/home/ada"), ("--bind", "/s/home", "/home/ada")),
        (JOINED, None, ("--setenv", "https_proxy", "http://127.0.0.1:3128")),
        (JOINED, None, ("--setenv", "NO_PROXY", "127.0.0.1,localhost,::1")),
    ],
)
def test_options(policy: Policy, mount: Mount | None, wanted: tuple[str, ...]) -> None:
    options = bubblewrap(policy, [mount] if mount else [], {"PATH": "/bin"}, "/p")
    assert follow(options, *wanted), options


@pytest.mark.parametrize(
    ("options", "absent"),
    [
        (bubblewrap(JOINED, [], {}, "/p"), "--unshare-net"),
        (bubblewrap(ALONE, [], {}, "/p", tty=True), "--new-session"),
        (bubblewrap(ALONE, [], {"SSH_AUTH_SOCK": "/x"}, "/p"), "SSH_AUTH_SOCK"),
        (bubblewrap(ALONE, [], {"DBUS_SESSION_BUS_ADDRESS": "/x"}, "/p"), "DBUS_SESSION_BUS_ADDRESS"),
        (bubblewrap(ALONE, [], {}, "/p"), "HTTPS_PROXY"),
    ],
)
def test_options_that_are_absent(options: list[str], absent: str) -> None:
    assert absent not in options


def test_processes_join_the_namespaces_of_the_holder() -> None:
    assert enter(JOINS) == ["--user=/u", "--net=/n", "--mount=/m", "--preserve-credentials"]
    assert follow(holder("/s", "/r", 7), "--dev-bind", "/", "/", "--size", "7", "--tmpfs", "/s")


def test_both_spellings_of_the_proxy_are_set() -> None:
    found = network.environment()
    assert {name.lower() for name in found} == {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
    assert all(found[name] == found[name.lower()] for name in found)


SESSION = SandboxedSession("/p", hosts=("granted.example",), write=("/w",), protect=("/p/.env", "/w"))
RULES = SandboxRules(presets=("pypi",), hosts=("own.example",), ports=(11434,), read=("/data",))
OPENAI = ("api.openai.com", "auth.openai.com", "chatgpt.com")
MACHINE = Machine(home="/home/ada", private=("/home/ada/portico",), programs=("/venv",))


@pytest.mark.parametrize(
    ("mode", "hosts", "state", "asks"),
    [
        (
            "project",
            (*OPENAI, "pypi.org", "files.pythonhosted.org", "own.example", "granted.example"),
            {"/home/ada/.codex"},
            True,
        ),
        (
            "strict",
            OPENAI,
            {f"/home/ada/.codex/{name}" for name in ("auth.json", "config.toml", "sessions", "tmp")},
            False,
        ),
    ],
)
def test_the_policy_of_an_agent(mode: str, hosts: tuple[str, ...], state: set[str], asks: bool) -> None:
    found = policy_for(SESSION, VENDORS["codex"], RULES, MACHINE, mode)  # type: ignore[arg-type]
    assert (found.network.hosts, found.network.asks, found.network.ports) == (hosts, asks, (11434,))
    assert {path for path in found.write if path.startswith("/home")} == state
    assert found.protect == ("/p/.env",)  # a person granted the other one
    assert {"/data", "/venv", "/usr"} <= set(found.read)
    assert {"/home/ada/portico", "/home/ada/.ssh", "/etc/shadow"} <= set(found.hide)


def test_a_command_does_not_see_the_login_of_an_agent() -> None:
    found = policy_for(SandboxedSession("/p"), Vendor(), SandboxRules(), MACHINE, "project")
    assert (found.write, found.network.hosts) == ((), ())


def test_parents_of_protected_paths_are_mount_points(tmp_path: Path) -> None:
    """A folder that is no mount point can be renamed, and created again with other contents."""
    hooks = tmp_path / "a/b/hooks"
    hooks.mkdir(parents=True)
    mounts = locate(Policy(mode="project", folder=str(tmp_path), home="/nowhere", protect=(str(hooks),)))
    inside = [(each.kind, each.path) for each in mounts if each.path.startswith(str(tmp_path))]
    assert inside == [
        ("write", str(tmp_path)),
        ("write", str(tmp_path / "a")),
        ("write", str(tmp_path / "a/b")),
        ("protect", str(hooks)),
    ]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_a_program_that_ends_with_allow(machine: str) -> None:
    program = filter_for(machine)
    assert len(program) % 8 == 0
    assert program.endswith(b"\x06\x00\x00\x00\x00\x00\xff\x7f")
    assert filter_for("riscv64") == b""
