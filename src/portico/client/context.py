"""Hosts on other machines, by name: where they are and with which token. Kept in a file that only its owner can read.

A token is sent only to the address it was saved for.
"""

import os
from pathlib import Path

import msgspec
import platformdirs
from msgspec import Struct

from portico.kernel.errors import BadRequest, NotFound
from portico.server.home import write_private


class HostContext(Struct, omit_defaults=True):
    url: str
    token: str = ""
    cacert: str = ""
    """A file with the authorities to trust for this host; empty: the usual ones."""


class Contexts(Struct):
    current: str = ""
    hosts: dict[str, HostContext] = {}


def file() -> Path:
    return Path(platformdirs.user_config_dir("portico", appauthor=False)) / "contexts.json"


def read() -> Contexts:
    try:
        return msgspec.json.decode(file().read_bytes(), type=Contexts)
    except (FileNotFoundError, RuntimeError):  # RuntimeError: this user has no home folder, as in a container
        return Contexts()
    except (OSError, msgspec.DecodeError) as error:
        raise BadRequest(f"{str(file())!r} is not valid: {error}. Remove it to start anew.") from error


def write(contexts: Contexts) -> None:
    try:
        path = file()
    except RuntimeError as error:
        raise BadRequest("This user has no home folder to save hosts in. Set HOME or XDG_CONFIG_HOME.") from error
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, msgspec.json.encode(contexts))


def chosen() -> HostContext | None:
    """Return the host to use: `--url`, `--context`, the saved choice; None: the host of this machine."""
    if url := os.environ.get("PORTICO_URL"):
        return HostContext(url.rstrip("/"), named_token(), named_cacert())
    contexts = read()
    name = os.environ.get("PORTICO_CONTEXT", contexts.current)
    if not name or name == "local":
        return None
    found = contexts.hosts.get(name)
    if found is None:
        raise NotFound("context", name, f"There are: {', '.join(['local', *contexts.hosts])}.")
    return HostContext(found.url, named_token() or found.token, named_cacert() or found.cacert)


def named_token() -> str:
    """`--token`: who names one wants its scopes, not those of the token that is saved or lies in the home folder."""
    return os.environ.get("PORTICO_TOKEN", "")


def named_cacert() -> str:
    """`--cacert`: the file with the authorities to trust, as an absolute path."""
    named = os.environ.get("PORTICO_CACERT", "")
    return os.path.abspath(named) if named else ""
