"""Attempts to leave a sandbox, as one program that runs inside: `python -I -c SOURCE FACTS`. Standard library only.

Prints a JSON object: the name of each attempt with the reason why it failed, or `escaped`. An attempt that succeeds
must not do harm: files of the machine are opened and never written, mounts are made in a private namespace on a new
folder, signals have the number 0, and no address outside of this machine is used. FACTS is JSON: `folder`, `secrets`
(paths that must not be readable), `pid` of the host, `ports` that listen outside on loopback, `sockets` and `abstract`
names of Unix sockets outside, and perhaps `only`, the names of the attempts to make.
"""

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys
from typing import Any

ESCAPED = "escaped"
_VSOCK = 40
_TIOCSTI = 0x5412


def opens(path: str, flags: int = os.O_RDONLY) -> None:
    os.close(os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC))


def creates(path: str) -> None:
    opens(path, os.O_WRONLY | os.O_CREAT)
    os.unlink(path)


def lists(path: str) -> None:
    if not os.listdir(path):
        raise OSError("it is empty")


def reads(path: str) -> None:
    if os.path.isdir(path):
        lists(path)
    elif not os.access(path, os.R_OK) or os.path.getsize(path) == 0:
        raise OSError("it does not exist or is empty")


def through_a_link(folder: str, target: str) -> None:
    link = os.path.join(folder, "portico-sandbox-link")
    with contextlib.suppress(OSError):
        os.unlink(link)
    os.symlink(target, link)
    try:
        opens(link, os.O_WRONLY)
    finally:
        os.unlink(link)


def hard_link(folder: str, target: str) -> None:
    link = os.path.join(folder, "portico-sandbox-link")
    os.link(target, link)
    os.unlink(link)


def writable(path: str) -> None:
    """Ask the kernel without writing."""
    if not os.access(path, os.W_OK):
        raise OSError("it is read-only")


def mounts(folder: str) -> None:
    """On a new folder, in a mount namespace from which nothing propagates."""
    place = os.path.join(folder, "portico-sandbox-mount")
    os.makedirs(place, exist_ok=True)
    try:
        run("unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "none", place)
    finally:
        os.rmdir(place)


def types() -> None:
    """Into a new terminal of its own."""
    ours, theirs = os.openpty()
    try:
        fcntl.ioctl(theirs, _TIOCSTI, b"x")
    finally:
        os.close(ours)
        os.close(theirs)


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(done.stderr.strip()[-100:] or f"exit code {done.returncode}")


def renames(path: str) -> None:
    os.rename(path, f"{path}-portico-sandbox")
    os.rename(f"{path}-portico-sandbox", path)


def configures(folder: str) -> None:
    run("git", "-C", folder, "config", "portico.sandbox", "test")
    run("git", "-C", folder, "config", "--remove-section", "portico")


def connects(family: int, address: Any) -> None:
    with socket.socket(family) as trying:
        trying.settimeout(2)
        trying.connect(address)


def creates_socket(family: int, kind: int, protocol: int) -> None:
    """It is not connected."""
    socket.socket(family, kind, protocol).close()


def has_interface() -> None:
    names = [name for _, name in socket.if_nameindex()]
    if names == ["lo"]:
        raise OSError("there is only lo")


def has_route() -> None:
    with open("/proc/net/route") as routes:
        if len(routes.read().splitlines()) <= 1:
            raise OSError("there is no route")


def gains_privileges() -> None:
    with open("/proc/self/status") as status:
        found = dict(line.split(":\t", 1) for line in status.read().splitlines() if ":\t" in line)
    if found["NoNewPrivs"].strip() == "1" and int(found["CapBnd"], 16) == 0:
        raise OSError("set-user-ID programs have no effect")


def sees_processes(pid: int) -> None:
    with open(f"/proc/{pid}/environ", "rb") as environ:
        environ.read(1)


def attempts(facts: dict[str, Any]) -> dict[str, Any]:
    folder, pid = facts["folder"], facts["pid"]
    git = os.path.join(folder, ".git")
    found: dict[str, Any] = {f"read {path}": (reads, path) for path in facts["secrets"]}
    found |= {
        "read the environment of the host": (sees_processes, pid),
        "read the memory of the host": (opens, f"/proc/{pid}/mem"),
        "read the root of the machine": (reads, f"/proc/1/root{facts['secrets'][0]}" if facts["secrets"] else "/x"),
        "signal the host": (os.kill, pid, 0),
        "write to /etc": (writable, "/etc"),
        "write to /usr": (writable, "/usr/bin"),
        "write through a link": (through_a_link, folder, "/etc/hostname"),
        "hard link of a system file": (hard_link, folder, "/etc/passwd"),
        "set the handler of core dumps": (opens, "/proc/sys/kernel/core_pattern", os.O_WRONLY),
        "use magic keys": (opens, "/proc/sysrq-trigger", os.O_WRONLY),
        "type into a terminal": (types,),
        "become another user": (gains_privileges,),
        "new user namespace": (run, "unshare", "--user", "true"),
        "mount": (mounts, folder),
        "send ICMP": (creates_socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        "network interface": (has_interface,),
        "route": (has_route,),
        "virtual machine socket": (creates_socket, _VSOCK, socket.SOCK_STREAM, 0),
    }
    if os.path.isdir(git):  # elsewhere they fail for another reason
        found |= {
            "write a git hook": (creates, os.path.join(git, "hooks/post-commit")),
            "replace the git folder": (renames, git),
            "set a program in git": (configures, folder),
            "unmount a protected path": (run, "umount", os.path.join(git, "hooks")),
        }
    found |= {f"connect to port {port}": (connects, socket.AF_INET, ("127.0.0.1", port)) for port in facts["ports"]}
    found |= {f"connect to {path}": (connects, socket.AF_UNIX, path) for path in facts["sockets"]}
    found |= {f"connect to @{name}": (connects, socket.AF_UNIX, f"\0{name}") for name in facts["abstract"]}
    only = facts.get("only")
    return {name: each for name, each in found.items() if only is None or name in only}


def main(facts: dict[str, Any]) -> dict[str, str]:
    results: dict[str, str] = {}
    for name, (attempt, *arguments) in attempts(facts).items():
        try:
            attempt(*arguments)
            results[name] = ESCAPED
        except (OSError, ValueError) as error:
            results[name] = str(error)
    return results


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
