"""The public registry of ACP agents: a JSON file with the licence and the package of each agent.

It names code that will run here, so nothing of it is trusted further than its words: a package is a name and a version
for npm or PyPI, never an address, a path or an option.
"""

import re
from pathlib import Path
from typing import Any

import httpx
import msgspec
from msgspec import Struct

from portico.kernel.errors import BadRequest, TooLarge, Unreachable

ADDRESS = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"
SHIPPED = Path(__file__).with_name("registry.json")
"""A list of well-known agents that ships with Portico, so that a search needs no network."""
VARIABLE = "PORTICO_ACP_REGISTRY"
"""Names another address, or a file: a company's own list, or a copy where there is no network."""
BYTES = 8_000_000
_TIMEOUT = httpx.Timeout(20, connect=10)
_NPM = re.compile(r"(@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*(@[A-Za-z0-9][A-Za-z0-9.+-]*)?")
_PYPI = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?((==|@)[A-Za-z0-9][A-Za-z0-9.!+]*)?")
_ID = re.compile(r"[a-z][a-z0-9-]*")


class Package(Struct, frozen=True):
    package: str
    args: list[str] = []
    env: dict[str, str] = {}


class Distribution(Struct, frozen=True):
    npx: Package | None = None
    uvx: Package | None = None
    binary: dict[str, Any] = {}

    @property
    def kinds(self) -> str:
        found = {"npm": self.npx, "PyPI": self.uvx, "binary": self.binary}
        return ", ".join(name for name, there in found.items() if there)


class Listed(Struct, frozen=True):
    """One agent of the registry."""

    id: str
    name: str = ""
    version: str = ""
    description: str = ""
    license: str = ""
    repository: str | None = None
    distribution: Distribution = Distribution()


class AgentSource(Struct, frozen=True):
    """What is installed for an agent, and how it is started."""

    kind: str
    """`npm` or `pypi`."""
    package: str
    args: list[str] = []
    env: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The package without version and extras."""
        scope, at, rest = self.package.rpartition("/")
        return scope + at + re.split(r"[\[@=]", rest)[0]


class _Registry(Struct):
    agents: list[msgspec.Raw]


def read(where: str) -> list[Listed]:
    """The list at an address or in a file. An entry that is not understood is left out: the format still changes."""
    data = _fetch(where) if where.startswith(("https://", "http://")) else _load(Path(where))
    try:
        entries = msgspec.json.decode(data, type=_Registry).agents
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{where!r} is not a registry of ACP agents: {error}", field="registry") from None
    found = [_entry(each) for each in entries]
    return sorted((each for each in found if each is not None), key=lambda each: each.id)


def local_copy(home: Path) -> Path:
    """The list that was downloaded last, or the one that ships with Portico."""
    stored = _stored(home)
    return stored if stored.is_file() else SHIPPED


def refresh(home: Path, where: str) -> list[Listed]:
    """Download the list and store it for later searches. Only a list that can be read replaces the stored one."""
    data = _fetch(where) if where.startswith(("https://", "http://")) else _load(Path(where))
    path = _stored(home)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(".new")
    draft.write_bytes(data)
    found = read(str(draft))
    draft.replace(path)
    return found


def _stored(home: Path) -> Path:
    return home / "agents" / "acp-registry.json"


def _entry(data: msgspec.Raw) -> Listed | None:
    try:
        found = msgspec.json.decode(data, type=Listed)
    except msgspec.DecodeError:
        return None
    return found if _ID.fullmatch(found.id) else None


def _load(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadRequest(f"The registry {str(path)!r} cannot be read: {error.strerror}.", field="registry") from None


def _fetch(address: str) -> bytes:
    data = bytearray()
    try:
        with httpx.Client(timeout=_TIMEOUT, follow_redirects=True) as client, client.stream("GET", address) as answer:
            answer.raise_for_status()
            for chunk in answer.iter_bytes():
                data += chunk
                if len(data) > BYTES:
                    raise TooLarge(f"The registry at {address!r} is larger than {BYTES // 1_000_000} MB.")
    except httpx.HTTPError as error:
        why = str(error) or type(error).__name__
        raise Unreachable(f"The registry at {address!r} could not be read: {why}.") from error
    return bytes(data)


def source(agent: Listed) -> AgentSource:
    """Where it can be had from a package registry. BadRequest if nowhere."""
    npm, pypi = agent.distribution.npx, agent.distribution.uvx
    if npm is not None:
        return AgentSource("npm", _checked(agent, npm, _NPM), npm.args, npm.env)
    if pypi is not None:
        package = _checked(agent, pypi, _PYPI).removesuffix("@latest").replace("@", "==")
        return AgentSource("pypi", package, pypi.args, pypi.env)
    where = f" See {agent.repository}." if agent.repository else ""
    raise BadRequest(
        f"{agent.id!r} comes as a program to download, not as a package of npm or PyPI.{where} Once it is installed: "
        f"portico agents add {agent.id} -- COMMAND",
        field="name",
    )


def _checked(agent: Listed, found: Package, shape: re.Pattern[str]) -> str:
    if not shape.fullmatch(found.package):
        raise BadRequest(f"{agent.id!r} names a package that is none: {found.package!r}.", field="package")
    return found.package
