"""The arguments of podman or docker for a policy, as pure functions: the second backend, for another toolchain.

The image provides the system; the folders, the agent's state and what is protected are mounted as with bubblewrap.
podman of root joins the network of the sandbox, whose relay is the only way out. Otherwise there is no network.
"""

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from portico.sandbox.bubblewrap import inner_environment
from portico.sandbox.mounts import Mount, is_below
from portico.sandbox.policy import SYSTEM, Limits, Policy

Engine = Literal["podman", "docker"]
ENGINES: tuple[Engine, ...] = ("podman", "docker")
_SHELL = 'command -v bash >/dev/null && exec bash "$@"; exec sh "$@"'
LABEL = "portico.sandbox"
"""The label by which the containers of a sandbox are found and removed at its end."""


def container(
    policy: Policy, mounts: Iterable[Mount], engine: Engine, env_file: str, cwd: str, user: str, *, tty: bool = False
) -> list[str]:
    """Return the arguments of the engine, up to the image. `env_file`: the variables, which other users must not see in
    the arguments. `user`: as which the processes run, `UID:GID`."""
    return [
        *("run", "--rm", "--interactive", *(("--tty",) if tty else ()), "--pull", "never"),
        *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
        *("--user", user, "--ipc", "private", "--hostname", "sandbox", "--entrypoint", ""),
        *("--network", _network(policy, engine, user)),
        *("--label", f"{LABEL}={label_of(policy)}"),
        *_limits(policy.limits),
        *("--tmpfs", f"/tmp:rw,nosuid,nodev,size={policy.limits.tmp}"),
        *(option for each in mounts for option in _mount(each, policy.limits.tmp)),
        *("--env-file", env_file, "--workdir", cwd, policy.image),
    ]


def inner_command(command: Sequence[str]) -> list[str]:
    """Return the command as the image has it: programs of the system are found on its PATH, and where it has no bash,
    sh is used."""
    program, *arguments = command
    if not any(is_below(program, each) for each in SYSTEM):
        return [program, *arguments]
    name = posixpath.basename(program)
    return ["sh", "-c", _SHELL, "sh", *arguments] if name == "bash" else [name, *arguments]


def variables(policy: Policy, env: Mapping[str, str]) -> bytes:
    """Return the content of the file with the variables. The PATH is that of the image."""
    found = {name: value for name, value in inner_environment(policy, env).items() if name != "PATH"}
    lines = (f"{name}={value}\n" for name, value in sorted(found.items()) if "\n" not in value and name.isidentifier())
    return "".join(lines).encode("utf-8", "surrogateescape")


def label_of(policy: Policy) -> str:
    return policy.joins.scratch if policy.joins is not None else "alone"


def removal(engine: str, label: str) -> str:
    """Return the shell line that removes the containers of a sandbox."""
    return f"{engine} ps --all --quiet --filter label={LABEL}={label} | xargs --no-run-if-empty {engine} rm --force"


def _network(policy: Policy, engine: Engine, user: str) -> str:
    """Only root may join the network namespace of another user namespace."""
    joins = policy.joins is not None and engine == "podman" and user.startswith("0:")
    return f"ns:{policy.joins.net}" if joins and policy.joins is not None else "none"


def _limits(limits: Limits) -> list[str]:
    found = ["--ulimit", f"nofile={limits.files}:{limits.files}"] if limits.files else []
    if limits.processes:
        found += ["--pids-limit", str(limits.processes), "--ulimit", f"nproc={limits.processes}:{limits.processes}"]
    return found + (["--memory", str(limits.memory)] if limits.memory else [])


def _mount(mount: Mount, size: int) -> list[str]:
    if _is_of_the_image(mount):
        return []
    source = mount.source or mount.path
    match mount.kind:
        case "home" | "hide_folder":
            return ["--tmpfs", f"{mount.path}:rw,nosuid,nodev,size={size if mount.kind == 'home' else 4096}"]
        case "read" | "protect":
            return ["--mount", f"type=bind,source={source},target={mount.path},readonly"]
        case "write":
            return ["--mount", f"type=bind,source={source},target={mount.path}"]
        case "hide_file":
            return ["--mount", f"type=bind,source=/dev/null,target={mount.path},readonly"]
        case "link":
            return []


def _is_of_the_image(mount: Mount) -> bool:
    """The system is that of the image, and /proc is that of the container."""
    return any(is_below(mount.path, each) for each in (*SYSTEM, "/proc"))
