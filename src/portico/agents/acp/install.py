"""Installs an agent's package into a folder of its own below the home folder: no other program sees it, and deleting
the folder undoes it. npm and pip use their own settings, so a company's mirror is theirs to configure."""

import json
import shutil
import subprocess
import sys
import venv
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct

from portico.agents.acp.catalogue import AgentSource
from portico.errors import AgentUnavailable, BadRequest, Unreachable

SECONDS = 900
"""For one command of npm or pip: an agent is up to some hundred megabytes."""


class Offer(Struct, frozen=True):
    """What a person should know before an installation."""

    licence: str
    bytes: int | None
    """None: the registry does not say."""
    counted: str
    """What the bytes are."""


def offer(source: AgentSource) -> Offer:
    return _offer_npm(source) if source.kind == "npm" else _offer_pypi(source)


def install(source: AgentSource, folder: Path) -> list[str]:
    """The command that starts it, with the program's whole path. If it fails, what was there before is there again."""
    before = folder.with_name(f".{folder.name}.before")
    shutil.rmtree(before, ignore_errors=True)
    if folder.exists():
        folder.rename(before)
    folder.mkdir(parents=True, mode=0o700)
    try:
        program = _npm(source, folder) if source.kind == "npm" else _pypi(source, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if before.exists():
            before.rename(folder)
        raise
    shutil.rmtree(before, ignore_errors=True)
    return [str(program), *source.args]


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
    licence = found.get("license") or ""
    return Offer(str(licence), found.get("dist.unpackedSize"), "unpacked, without what it depends on")


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
    return Offer(licence.partition("\n")[0], total, "to download")


def _downloads(addresses: list[str]) -> int | None:
    total = 0
    with httpx.Client(timeout=20, follow_redirects=True) as client:
        for address in addresses:
            try:
                length = client.head(address).headers.get("content-length")
            except (httpx.HTTPError, httpx.UnsupportedProtocol):
                return None
            if length is None:
                return None
            total += int(length)
    return total


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
