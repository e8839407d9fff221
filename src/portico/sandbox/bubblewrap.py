"""The arguments of bubblewrap for a policy, as pure functions.

`bubblewrap` confines one command. `holder` starts the process that keeps the network and the temporary files of a
sandbox, in which the commands then join: that takes 4 ms for each, and commands of one session share `/tmp` and their
loopback. Nothing that an agent chooses is part of the environment of bubblewrap itself: LD_PRELOAD would run outside.
"""

from collections.abc import Iterable, Mapping, Sequence

from portico.sandbox import network
from portico.sandbox.mounts import Mount
from portico.sandbox.policy import Limits, Namespaces, Policy

BWRAP, NSENTER, PRLIMIT = "bwrap", "nsenter", "prlimit"
_SHM = 64 * 1024 * 1024
"""Bytes of /dev/shm, as in containers."""


def bubblewrap(
    policy: Policy, mounts: Iterable[Mount], env: Mapping[str, str], cwd: str, *, tty: bool = False
) -> list[str]:
    """Return the options that confine a command. `tty`: it has a terminal of its own, whose session it must keep."""
    return [
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if policy.joins else ("--unshare-net",)),
        *("--disable-userns", "--cap-drop", "ALL", "--die-with-parent"),
        *(() if tty else ("--new-session",)),
        *_system(policy),
        *(option for each in mounts for option in _mount(each, policy.joins, policy.limits.tmp)),
        *("--remount-ro", "/"),
        *("--chdir", cwd, "--clearenv"),
        *(
            option
            for name, value in sorted(inner_environment(policy, env).items())
            for option in ("--setenv", name, value)
        ),
    ]


def enter(joins: Namespaces) -> list[str]:
    """Return the options of nsenter that join a running sandbox."""
    return [f"--user={joins.user}", f"--net={joins.net}", f"--mount={joins.mount}", "--preserve-credentials"]


def bounded(limits: Limits) -> list[str]:
    """Return the options of prlimit for processes that join a sandbox. The kernel counts processes for each user
    namespace, so those of the session count together; memory counts for each process. The number of processes of root
    is not limited by the kernel."""
    found = [f"--nofile={limits.files}"] if limits.files else []
    found += [f"--data={limits.memory}"] if limits.memory else []
    return found + ([f"--nproc={limits.processes}"] if limits.processes else [])


def holder(scratch: str, folder: str, size: int) -> list[str]:
    """Return the options for the process that keeps a sandbox: the whole file system, so that paths can be granted
    later, with `scratch` in memory; no network except its own loopback, and no capabilities."""
    return [
        *("--unshare-user", "--unshare-net", "--unshare-ipc", "--cap-drop", "ALL", "--die-with-parent"),
        *("--new-session", "--dev-bind", "/", "/", "--size", str(size), "--tmpfs", scratch),
        *("--dir", f"{scratch}/tmp", "--dir", f"{scratch}/home"),
        *("--chdir", folder, "--clearenv"),
    ]


def _system(policy: Policy) -> list[str]:
    tmp = _scratch("tmp", "/tmp", policy.joins, policy.limits.tmp)
    shm = ("--size", str(_SHM), "--tmpfs", "/dev/shm")
    return [*("--proc", "/proc", "--dev", "/dev"), *shm, "--remount-ro", "/dev", *tmp, "--symlink", "/tmp", "/var/tmp"]


def _scratch(name: str, path: str, joins: Namespaces | None, size: int) -> list[str]:
    if joins is None:
        return ["--size", str(size), "--tmpfs", path]
    return ["--bind", f"{joins.scratch}/{name}", path]


def _mount(mount: Mount, joins: Namespaces | None, size: int) -> list[str]:
    source = mount.source or mount.path
    match mount.kind:
        case "home":
            return _scratch("home", mount.path, joins, size)
        case "read" | "protect":
            return ["--ro-bind", source, mount.path]
        case "write":
            return ["--bind", source, mount.path]
        case "link":
            return ["--symlink", source, mount.path]
        case "hide_folder":
            return ["--tmpfs", mount.path, "--remount-ro", mount.path]
        case "hide_file":
            return ["--ro-bind", "/dev/null", mount.path]


def inner_environment(policy: Policy, env: Mapping[str, str]) -> dict[str, str]:
    """The variables of a confined process: without sockets of the machine, with the proxy."""
    hidden = {"TMPDIR", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "DISPLAY", "WAYLAND_DISPLAY"}
    kept = {name: value for name, value in env.items() if name not in hidden}
    proxy = network.environment() if policy.joins else {}
    return {**kept, "HOME": policy.home, "PORTICO_SANDBOX": policy.mode, **proxy}


def options_file(options: Sequence[str]) -> bytes:
    """The options as `--args` reads them: other users see the arguments of a process, and these have secrets."""
    return b"".join(option.encode("utf-8", "surrogateescape") + b"\0" for option in options)
