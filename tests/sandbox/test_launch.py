"""Commands under a policy, started for real: what they see, write and reach."""

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from portico.kernel.errors import Forbidden, SandboxUnavailable
from portico.sandbox import available
from portico.sandbox.launch import launch
from portico.sandbox.policy import Machine, Policy, SandboxedSession, SandboxRules, policy_for
from portico.sandbox.vendors import Vendor

ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    home, folder = tmp_path / "home", tmp_path / "home/project"
    folder.mkdir(parents=True)
    for secret in (home / ".ssh/id_ed25519", home / "portico/token", folder / ".git/config", folder / ".git/hooks/old"):
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text("secret")
    session = SandboxedSession(str(folder), protect=(str(folder / ".git/config"), str(folder / ".git/hooks")))
    machine = Machine(home=str(home), private=(str(home / "portico"),))
    return policy_for(session, Vendor(), SandboxRules(), machine, "project")


def run(policy: Policy, line: str, env: dict[str, str] = ENV) -> tuple[int, str]:
    with launch(["/bin/sh", "-c", line], policy, env, policy.folder) as started:
        done = subprocess.run(
            started.command, env=started.env, pass_fds=started.pass_fds, capture_output=True, text=True, check=False
        )
    return done.returncode, done.stdout + done.stderr


def test_a_command_works_in_its_folder(policy: Policy) -> None:
    code, output = run(policy, "echo hello > new; cat new; pwd; echo $PORTICO_SANDBOX")
    assert (code, output) == (0, f"hello\n{policy.folder}\nproject\n")
    assert Path(policy.folder, "new").read_text() == "hello\n"


@pytest.mark.parametrize(
    "line",
    [
        "cat ~/.ssh/id_ed25519",
        "cat ~/portico/token",
        "ls /root /home/* | grep .",
        "touch /usr/bin/portico-sandbox-test",
        "touch /portico-sandbox-test",
        "echo x > .git/hooks/post-commit",
        "echo x >> .git/config",
        "mv .git .old",
        "mv .git/hooks .git/old",
        "rm -rf .git/hooks",
        "mount -t tmpfs none /tmp",
        "umount .git/hooks",
        "unshare -U true",
        "unshare -m true",
        "ls /run/dbus /var/run/docker.sock",
        "cat /etc/shadow | grep .",
        "python3 -c 'import socket; socket.socket(40, 1)'",
        "python3 -c 'import fcntl; fcntl.ioctl(0, 0x5412, b\"x\")'",
        "test $(ls /proc | grep -c ^[0-9]) -gt 20",
        "grep -v lo: /proc/net/dev | grep :",
        "grep -v Iface /proc/net/route | grep .",
        "dd if=/dev/zero of=/tmp/x bs=1M count=2000",
    ],
)
def test_an_escape_fails(policy: Policy, line: str) -> None:
    code, output = run(policy, line)
    assert code != 0, output
    assert Path(policy.folder, ".git/config").read_text() == "secret"
    assert os.listdir(Path(policy.folder, ".git/hooks")) == ["old"]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/hostname",
        "/usr/bin/env",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/vm/drop_caches",
        "/proc/sysrq-trigger",
        "/proc/irq/default_smp_affinity",
    ],
)
def test_a_file_of_the_machine_cannot_be_opened_for_writing(policy: Policy, path: str) -> None:
    """Root could set the handler of core dumps, which runs outside. Only opened: a hole must not change the machine."""
    code, output = run(policy, f"python3 -c 'import os; os.open(\"{path}\", os.O_WRONLY)'")
    assert code != 0, output


def test_no_setting_of_the_kernel_can_be_opened_for_writing(policy: Policy) -> None:
    walk = """
import os
for here, folders, names in os.walk("/proc"):
    folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
    for name in names:
        if not os.path.islink(path := os.path.join(here, name)):
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                print(path)
            except OSError:
                pass
"""
    Path(policy.folder, "walk.py").write_text(walk)
    assert run(policy, "python3 walk.py") == (0, "")


def test_a_variable_of_the_command_does_not_reach_bubblewrap(policy: Policy) -> None:
    """LD_PRELOAD would run code of the agent in bubblewrap, before the sandbox exists."""
    with launch(["/bin/true"], policy, {**ENV, "LD_PRELOAD": "/x.so"}, policy.folder) as started:
        assert started.env == {"PATH": started.env["PATH"]}
        assert not any("LD_PRELOAD" in each for each in started.command)


def test_a_link_in_place_of_a_protected_path_is_refused(policy: Policy) -> None:
    hooks = Path(policy.folder, ".git/hooks")
    (hooks / "old").unlink()
    hooks.rmdir()
    hooks.symlink_to(Path(policy.home, ".ssh"))
    with pytest.raises(Forbidden, match="symbolic link"):
        run(policy, "true")


def test_a_folder_that_is_the_home_hides_its_secrets(tmp_path: Path, policy: Policy) -> None:
    whole = Policy(mode="project", folder=policy.home, home=policy.home, read=policy.read, hide=policy.hide)
    code, output = run(whole, "ls -A ~ ~/.ssh ~/portico; touch ~/.ssh/x")
    assert code != 0
    assert "id_ed25519" not in output
    assert "token" not in output


@pytest.mark.parametrize("field", ["hide", "protect"])
def test_what_is_inside_a_hidden_folder_needs_no_mount(policy: Policy, field: str) -> None:
    """The host's home inside the project: nothing can be mounted below it, and the sandbox did not start."""
    private = Path(policy.folder, "portico-home")
    private.mkdir()
    (private / "token").write_text("secret")
    more = {field: (*getattr(policy, field), str(private / "token"))}
    inner = replace(policy, **{"hide": (*policy.hide, str(private)), **more})
    if field == "hide":
        inner = replace(inner, hide=(*inner.hide, str(private)))
    code, output = run(inner, "touch made; ls portico-home; cat portico-home/token")
    assert (code, Path(policy.folder, "made").exists()) == (1, True), output
    assert "secret" not in output


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    available.problem.cache_clear()
    with pytest.raises(SandboxUnavailable, match=r"'bwrap' is not installed\. To fix it: sudo apt install bubblewrap"):
        available.check()
