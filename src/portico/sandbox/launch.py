"""Starts a command under a policy: the arguments for `subprocess.Popen` with the files that they refer to.

bubblewrap gets a fixed environment and reads its options from a file in memory.
"""

import errno
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct

from portico.sandbox import cgroup
from portico.sandbox.available import check_image, program
from portico.sandbox.bubblewrap import BWRAP, NSENTER, PRLIMIT, bounded, bubblewrap, enter, options_file
from portico.sandbox.container import container, inner_command, variables
from portico.sandbox.mounts import locate
from portico.sandbox.policy import Policy
from portico.sandbox.seccomp import FILTER

MARK = "PORTICO_PROCESS"
"""The variable by which the host finds its processes; the host sets it."""
OUTER_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Launch(Struct, frozen=True):
    command: list[str]
    env: dict[str, str]
    pass_fds: tuple[int, ...]


@contextmanager
def launch(
    command: Sequence[str], policy: Policy, env: Mapping[str, str], cwd: str, *, tty: bool = False
) -> Iterator[Launch]:
    """Return how to start the command. `tty`: it has a terminal of its own."""
    if policy.image:
        with _contained(command, policy, env, cwd, tty) as found:
            yield found
        return
    _check_program(command[0], env, cwd)
    options = bubblewrap(policy, locate(policy), env, cwd, tty=tty)
    with _memory("options", b"") as arguments, _memory("filter", FILTER) as rules:
        os.write(arguments, options_file([*options, *(("--seccomp", str(rules)) if FILTER else ())]))
        os.lseek(arguments, 0, os.SEEK_SET)
        joined: list[str] = []
        if policy.joins is not None:
            limited = [program(PRLIMIT), *bounded(policy.limits), "--"] if bounded(policy.limits) else []
            whole = cgroup.entering(policy.joins.groups) or (cgroup.scope(policy.limits) if cgroup.has_scopes() else [])
            joined = [*whole, *limited, program(NSENTER), *enter(policy.joins)]
        outer = {name: env[name] for name in (MARK,) if name in env} | {"PATH": OUTER_PATH}
        if joined[:1] == [cgroup.SYSTEMD_RUN]:  # it finds the manager of the user with this variable
            outer["XDG_RUNTIME_DIR"] = os.environ["XDG_RUNTIME_DIR"]
        yield Launch([*joined, program(BWRAP), "--args", str(arguments), "--", *command], outer, (arguments, rules))


@contextmanager
def _contained(command: Sequence[str], policy: Policy, env: Mapping[str, str], cwd: str, tty: bool) -> Iterator[Launch]:
    """Start it in a container. The engine has our own environment: it finds its images with it."""
    engine = check_image(policy.image)
    with _memory("variables", variables(policy, env)) as given:
        user = f"{os.getuid()}:{os.getgid()}"
        options = container(policy, locate(policy), engine, f"/proc/self/fd/{given}", cwd, user, tty=tty)
        kept = ("HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CONTAINERS_CONF", "DOCKER_HOST")
        outer = {name: os.environ[name] for name in kept if name in os.environ} | {"PATH": OUTER_PATH}
        outer |= {name: env[name] for name in (MARK,) if name in env}
        yield Launch([program(engine), *options, *inner_command(command)], outer, (given,))


def _check_program(name: str, env: Mapping[str, str], cwd: str) -> None:
    """Raise what `subprocess` raises for a program that does not exist; bubblewrap only prints it."""
    found = os.path.exists(os.path.join(cwd, name)) if "/" in name else shutil.which(name, path=env.get("PATH"))
    if not found:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


@contextmanager
def _memory(name: str, content: bytes) -> Iterator[int]:
    """A file in memory, readable from its start."""
    opened = os.memfd_create(f"portico-{name}", 0)
    try:
        os.write(opened, content)
        os.lseek(opened, 0, os.SEEK_SET)
        yield opened
    finally:
        os.close(opened)
