"""Whether the sandbox works on this machine; otherwise the reason and the command that fixes it."""

import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from portico.kernel.errors import SandboxUnavailable
from portico.sandbox.bubblewrap import BWRAP, NSENTER, PRLIMIT
from portico.sandbox.container import ENGINES, Engine

_PACKAGES = {BWRAP: "bubblewrap", NSENTER: "util-linux", PRLIMIT: "util-linux"}
_SECONDS = 10.0
"""For the test; it takes 5 ms."""
_TEST = (
    "--unshare-user",
    "--unshare-net",
    "--unshare-pid",
    "--disable-userns",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
)
_USERNS = Path("/proc/sys/user/max_user_namespaces")
_CLONE = Path("/proc/sys/kernel/unprivileged_userns_clone")
_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


def program(name: str) -> str:
    """Return the path of a program that the sandbox needs."""
    found = shutil.which(name)
    if found is None:
        raise unavailable(*_missing(name))
    return found


def check() -> None:
    """Raise SandboxUnavailable unless a sandbox can be started here. The result is remembered while it works."""
    if (found := problem()) is not None:
        problem.cache_clear()  # the user may fix it while the host runs
        raise unavailable(*found)


@lru_cache(maxsize=1)
def problem() -> tuple[str, str] | None:
    """Return the reason and the command that fixes it; None if the sandbox works."""
    if sys.platform != "linux":
        return "the sandbox needs Linux", "run Portico on Linux, in a virtual machine or in its container image"
    for name in (BWRAP, NSENTER, PRLIMIT):
        if shutil.which(name) is None:
            return _missing(name)
    done = subprocess.run(
        [program(BWRAP), *_TEST, "--", "/bin/true"], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    return None if done.returncode == 0 else _refused(done.stderr.strip())


def check_image(image: str) -> Engine:
    """Return the engine that runs containers here. Raises SandboxUnavailable if there is none, or not this image."""
    engine = next((each for each in ENGINES if shutil.which(each) is not None), None)
    if engine is None:
        raise unavailable("neither podman nor docker is installed", "sudo apt install podman")
    if not _has_image(engine, image):
        _has_image.cache_clear()  # the user may get it while the host runs
        raise unavailable(f"{engine} has no image {image!r}, and none is downloaded", f"{engine} pull {image}")
    return engine


@lru_cache(maxsize=16)
def _has_image(engine: str, image: str) -> bool:
    done = subprocess.run(
        [engine, "image", "inspect", image], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    return done.returncode == 0


def unavailable(reason: str, fix: str) -> SandboxUnavailable:
    return SandboxUnavailable(f"The sandbox does not work here: {reason}. To fix it: {fix}.")


def _missing(name: str) -> tuple[str, str]:
    return f"{name!r} is not installed", f"sudo apt install {_PACKAGES[name]}"


def _refused(words: str) -> tuple[str, str]:
    """The usual reasons why the kernel refuses a user namespace."""
    if _read(_USERNS) == "0":
        return (
            "user namespaces are disabled (user.max_user_namespaces is 0)",
            "sudo sysctl user.max_user_namespaces=10000",
        )
    if _read(_CLONE) == "0":
        return (
            "user namespaces are disabled for ordinary users (kernel.unprivileged_userns_clone is 0)",
            "sudo sysctl kernel.unprivileged_userns_clone=1",
        )
    if _read(_APPARMOR) == "1":
        return (
            "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
            "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
        )
    fix = "portico doctor shows more; in a container, start it with --security-opt seccomp=unconfined"
    return f"bubblewrap cannot create a sandbox here ({words or 'no reason given'})", fix


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
