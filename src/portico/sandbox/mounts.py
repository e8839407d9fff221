"""Finds the paths of a policy on the disk: what exists, what is a link, and what has to be protected from renaming.

Three attacks by a process that may write to its folder. A link in place of a protected path: the sandbox would show
what the link points to. So protected paths must be real. Renaming the parent of a protected path and creating it
again: a mount point cannot be renamed, so every folder between a writable folder and a protected path becomes one.
A path that is hidden under one name and visible under another: paths are compared after links are resolved.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from portico.kernel.errors import Forbidden
from portico.sandbox.policy import Policy

Kind = Literal["home", "read", "write", "link", "protect", "hide_folder", "hide_file"]
PROC_READ = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/pressure")
PROC_HIDDEN = ("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug",
               "/proc/scsi", "/proc/timer_list", "/proc/timer_stats")  # fmt: skip
"""As in containers. The kernel lets the owner root write its settings even without capabilities: a program that is set
as handler of core dumps would run outside. bubblewrap covers only what the folder's own mode makes writable."""
_ORDER: tuple[Kind, ...] = ("home", "read", "link", "write", "protect", "hide_folder", "hide_file")
"""Of mounts at the same path, the last one wins."""


class Mount(Struct, frozen=True):
    kind: Kind
    path: str
    """Where it is inside."""
    source: str = ""
    """What is shown there; of a link, where it points. Empty: the same path."""


def locate(policy: Policy) -> tuple[Mount, ...]:
    """Return the mounts of a policy, parents first."""
    found = [Mount("home", policy.home)]
    found += [Mount("protect", path) for path in PROC_READ if os.path.exists(path)]
    found += _hidden(PROC_HIDDEN, ["/proc"])
    for path in policy.read:
        found += _visible("read", path)
    for path in (policy.folder, *policy.write):
        found += _visible("write", path)
    writable = [each.path for each in found if each.kind == "write"]
    for path in policy.protect:
        found += _protected(path, writable)
    found += _hidden(policy.hide, [each.source or each.path for each in found if each.kind in ("read", "write")])
    last = {each.path: each for each in sorted(found, key=lambda each: _ORDER.index(each.kind))}
    kept = (each for each in last.values() if not _is_covered(each, last))
    return tuple(sorted(kept, key=lambda each: (each.path.rstrip("/").count("/"), each.path)))


def _is_covered(mount: Mount, mounts: Mapping[str, Mount]) -> bool:
    """Return whether a hidden folder above it covers it: nothing can be mounted there, and nothing has to be."""
    if mount.kind not in ("protect", "hide_folder", "hide_file"):
        return False
    above = os.path.dirname(mount.path)
    while above != os.path.dirname(above):
        if above in mounts:
            return mounts[above].kind == "hide_folder"
        above = os.path.dirname(above)
    return False


def _visible(kind: Literal["read", "write"], path: str) -> list[Mount]:
    real = os.path.realpath(path)
    if not os.path.exists(real):
        return []
    if kind == "read" and os.path.islink(path) and os.path.dirname(path) == "/":
        return [Mount("link", path, os.readlink(path))]  # /bin -> usr/bin
    return [Mount(kind, path, real), Mount(kind, real, real)] if real != path else [Mount(kind, path)]


def _protected(path: str, writable: Iterable[str]) -> list[Mount]:
    above = max((each for each in writable if is_below(path, each)), key=len, default=None)
    if above is None or not os.path.lexists(path):
        return []
    if os.path.realpath(path) != os.path.join(os.path.realpath(above), os.path.relpath(path, above)):
        raise Forbidden(f"The sandbox cannot protect {path!r}, because it is a symbolic link. Replace it with a file.")
    pins: list[Mount] = []
    parent = os.path.dirname(path)
    while parent != above and is_below(parent, above):
        pins.append(Mount("write", parent))
        parent = os.path.dirname(parent)
    return [*pins, Mount("protect", path)]


def _hidden(paths: Iterable[str], visible: list[str]) -> list[Mount]:
    found: list[Mount] = []
    for path in {name for each in paths for name in (each, os.path.realpath(each))}:
        if any(is_below(path, each) for each in visible) and not os.path.islink(path) and os.path.exists(path):
            folder = stat.S_ISDIR(os.stat(path).st_mode)
            found.append(Mount("hide_folder" if folder else "hide_file", path))
    return found


def is_below(path: str, folder: str) -> bool:
    """Return whether the path is the folder or inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
