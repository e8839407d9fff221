"""Limits of memory and processes for a whole sandbox, where the system offers control groups.

Root creates a control group for each sandbox (version 1 or 2), and its processes enter it before they are confined. For
an ordinary user each command runs in a scope of systemd, if the user has a manager of services. Otherwise only the
limits of single processes apply (`bubblewrap.bounded`).
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from portico.sandbox.policy import Limits

ROOT = Path("/sys/fs/cgroup")
SYSTEMD_RUN = "systemd-run"
_SECONDS = 10.0
"""For the test of systemd; it takes 30 ms."""
_TRIES, _WAIT = 20, 0.005
"""A killed process leaves its control group within milliseconds."""
_ENTER = 'for each in $0; do echo 0 > "$each" || exit 125; done; exec "$@"'


def files(limits: Limits, *, version: int) -> dict[str, dict[str, int]]:
    """Return the limits as control files have them, by the folder of the controller; version 2 has one folder."""
    memory, processes = limits.memory, limits.processes
    if version == 2:
        of_memory = {"memory.max": memory, "memory.swap.max": 0} if memory else {}
        return {"": of_memory | ({"pids.max": processes} if processes else {})}
    found = {"memory": {"memory.limit_in_bytes": memory}, "pids": {"pids.max": processes}}
    return {name: values for name, values in found.items() if all(values.values())}


def create(name: str, limits: Limits, root: Path = ROOT) -> tuple[str, ...]:
    """Create the control groups of a sandbox; return the files through which a process enters them. Empty: not here."""
    version = 2 if (root / "cgroup.controllers").exists() else 1
    made: list[Path] = []
    try:
        for controller, values in files(limits, version=version).items():
            if not values:
                continue
            folder = root / controller / name
            folder.mkdir()
            made.append(folder)
            for file, value in values.items():
                if (folder / file).exists():
                    (folder / file).write_text(str(value))
                elif not file.endswith("swap.max"):
                    raise FileNotFoundError(file)
    except OSError:
        remove(name, root)
        return ()
    return tuple(str(folder / "cgroup.procs") for folder in made)


def remove(name: str, root: Path = ROOT) -> None:
    """Remove the control groups of a sandbox, and end all processes in them."""
    for folder in (root / name, root / "memory" / name, root / "pids" / name):
        for _ in range(_TRIES):
            try:
                folder.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:  # it has processes
                _kill(folder)
                time.sleep(_WAIT)


def _kill(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def left(prefix: str, root: Path = ROOT) -> list[str]:
    """Return the names of all control groups of sandboxes."""
    folders = (root, root / "memory", root / "pids")
    return sorted({each.name for folder in folders if folder.is_dir() for each in folder.glob(f"{prefix}*")})


def entering(procs: Sequence[str]) -> list[str]:
    """Return the beginning of a command line that enters control groups."""
    return ["/bin/sh", "-c", _ENTER, " ".join(procs)] if procs else []


def scope(limits: Limits) -> list[str]:
    """Return the beginning of a command line that runs a command in a scope of systemd."""
    values: Iterable[str] = [
        *([f"MemoryMax={limits.memory}", "MemorySwapMax=0"] if limits.memory else []),
        *([f"TasksMax={limits.processes}"] if limits.processes else []),
    ]
    found = [option for value in values for option in ("--property", value)]
    return [SYSTEMD_RUN, "--user", "--scope", "--quiet", "--collect", *found, "--"] if found else []


@lru_cache(maxsize=1)
def has_scopes() -> bool:
    """Return whether this user can start scopes of systemd."""
    if os.getuid() == 0 or shutil.which(SYSTEMD_RUN) is None or not os.environ.get("XDG_RUNTIME_DIR"):
        return False
    test = [SYSTEMD_RUN, "--user", "--scope", "--quiet", "--collect", "--property", "TasksMax=100", "--", "/bin/true"]
    try:
        return subprocess.run(test, capture_output=True, timeout=_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def described() -> str:
    """Return how limits are enforced here, for the doctor."""
    name = f"portico-test-{os.getpid()}"
    works = bool(create(name, Limits(memory=1 << 30, processes=100)))
    remove(name)
    if works:
        return "limits of a session by control groups"
    if has_scopes():
        return "limits of a command by scopes of systemd"
    return "limits of each process only" + (", not of the number of processes of root" if os.getuid() == 0 else "")
