"""Installs an agent's package into a separate folder below the home folder: no other program sees it, and deleting
the folder undoes it. npm and pip use their own settings, so a company's mirror is theirs to configure."""

import json
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct

from portico.agents.acp.catalogue import AgentSource
from portico.kernel.errors import AgentUnavailable, BadRequest, Unreachable

SECONDS = 900
"""For one command of npm or pip: an agent is up to some hundred megabytes."""


class Offer(Struct, frozen=True):
    """What a person should know before an installation."""

    licence: str
    size: str
    """As text; empty: the registry does not contain it."""


def offer(source: AgentSource) -> Offer:
    return _offer_npm(source) if source.kind == "npm" else _offer_pypi(source)


def install(source: AgentSource, folder: Path) -> list[str]:
    """Return the command that starts it, with the program's full path. A failure restores the previous version."""
    before = folder.with_name(f".{folder.name}.before")
    shutil.rmtree(before, ignore_errors=True)
    if folder.exists():
        folder.rename(before)
    folder.mkdir(parents=True, mode=0o700)
    try:
        program = _npm(source, folder) if source.kind == "npm" else _pypi(source, folder)
    except BaseException:  # also Ctrl-C: the previous version is restored
        shutil.rmtree(folder, ignore_errors=True)
        if before.exists():
            before.rename(folder)
        raise
    shutil.rmtree(before, ignore_errors=True)
    return [str(program), *source.args]


def megabytes(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"


def size(folder: Path) -> int:
    """Bytes on the disk."""
    return sum(each.lstat().st_size for each in folder.rglob("*") if not each.is_dir())


def _run(command: list[str], doing: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Unreachable(f"{doing} took longer than {SECONDS} s and was ended.") from None
    if done.returncode != 0:
        raise Unreachable(f"{doing} failed: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


# -- npm -------------------------------------------------------------------------------------------------------


def _npm_program() -> str:
    found = shutil.which("npm")
    if found is None:
        raise AgentUnavailable("The agent is an npm package, and npm is not on the PATH: install Node, then try again.")
    return found


def _offer_npm(source: AgentSource) -> Offer:
    fields = ["license", "dist.unpackedSize"]
    text = _run([_npm_program(), "view", source.package, *fields, "--json"], f"npm view {source.package}")
    found: Any = json.loads(text or "{}")
    if isinstance(found, list):  # a range names several versions: the last one is installed
        found = found[-1] if found else {}
    if isinstance(found, str):  # npm leaves the name out where there is one field only
        found = {"license": found}
    addresses = _npm_addresses(source)
    sizes = {"unpacked": found.get("dist.unpackedSize"), "to download with what it needs": _downloads(addresses)}
    words = [f"{megabytes(size)} {what}" for what, size in sizes.items() if isinstance(size, int)]
    return Offer(str(found.get("license") or ""), ", ".join(words))


def _npm_addresses(source: AgentSource) -> list[str]:
    """Of all that would be installed here: the package itself may be small, and what it depends on an agent (Codex)."""
    with tempfile.TemporaryDirectory(prefix="portico-offer-") as folder:
        command = [_npm_program(), "install", "--prefix", folder, "--package-lock-only", "--ignore-scripts"]
        command += ["--no-omit-lockfile-registry-resolved", "--no-audit", "--no-fund", "--loglevel=error"]
        _run([*command, source.package], f"npm install {source.package}")
        lock = json.loads((Path(folder) / "package-lock.json").read_text("utf-8"))
    found = [each for each in lock["packages"].values() if "resolved" in each and _fits(each)]
    return sorted({str(each["resolved"]) for each in found})


def _fits(package: dict[str, Any]) -> bool:
    """Whether npm installs it on this system."""
    cpu = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    here = {"os": sys.platform, "cpu": cpu, "libc": "glibc" if platform.libc_ver()[0] == "glibc" else "musl"}
    return all(name in package[field] for field, name in here.items() if field in package)


def _npm(source: AgentSource, folder: Path) -> Path:
    command = [_npm_program(), "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--loglevel=error"]
    _run([*command, source.package], f"npm install {source.package}")
    package = json.loads((folder / "node_modules" / source.name / "package.json").read_text("utf-8"))
    programs = package.get("bin") or {}
    names = [source.name.rpartition("/")[2]] if isinstance(programs, str) else list(programs)
    return folder / "node_modules" / ".bin" / _choose(names, source)


def _choose(names: list[str], source: AgentSource) -> str:
    """As npx and uvx do: the only program, or the one that is called like its package."""
    own = source.name.rpartition("/")[2]
    if own in names or len(names) == 1:
        return own if own in names else names[0]
    there = f"it has {', '.join(sorted(names))}" if names else "it has none"
    raise BadRequest(f"{source.package!r} does not say which of its programs is the agent: {there}.", field="package")


# -- PyPI ------------------------------------------------------------------------------------------------------

_PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]


def _offer_pypi(source: AgentSource) -> Offer:
    command = [sys.executable, *_PIP, "--dry-run", "--ignore-installed", "--report", "-", source.package]
    found = json.loads(_run(command, f"pip install --dry-run {source.package}"))["install"]
    first: Any = next((each["metadata"] for each in found if each.get("requested")), {})
    licence = first.get("license_expression") or first.get("license") or ""
    total = _downloads([each["download_info"]["url"] for each in found])
    return Offer(licence.partition("\n")[0], f"{megabytes(total)} to download" if total is not None else "")


def _downloads(addresses: list[str]) -> int | None:
    """Total size; None if a registry does not report the size of all of them."""
    with httpx.Client(timeout=20, follow_redirects=True) as client, ThreadPoolExecutor(8) as pool:

        def length(address: str) -> int:
            return int(client.head(address).headers["content-length"])

        try:
            return sum(pool.map(length, addresses)) or None
        except (httpx.HTTPError, httpx.UnsupportedProtocol, KeyError, ValueError):
            return None


def _pypi(source: AgentSource, folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    _run([str(folder / "bin" / "python"), *_PIP, source.package], f"pip install {source.package}")
    return folder / "bin" / _choose(_scripts(folder, source), source)


def _scripts(folder: Path, source: AgentSource) -> list[str]:
    places = [str(each) for each in folder.glob("lib/python*/site-packages")]
    wanted = _plain(source.name)
    found = next((each for each in distributions(path=places) if _plain(_name(each)) == wanted), None)
    if found is None:
        raise BadRequest(f"pip installed no package {source.name!r}.", field="package")
    return [each.name for each in found.entry_points if each.group == "console_scripts"]


def _name(found: Distribution) -> str:
    return str(found.metadata["Name"])


def _plain(name: str) -> str:
    """PyPI's own rule for names that are the same."""
    return name.lower().replace("_", "-").replace(".", "-")
