"""Where secrets are kept: systemd credentials, a private file of the home, or the keyring of the system.

The attack: another user of this machine or another process reads a value. So the file is 0600 in a folder that is 0700
and closed to agents, values are not arguments of a program, and no function here puts a value into an error.
"""

import contextlib
import importlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from portico.features.secrets.mask import SHORTEST
from portico.features.secrets.private_file import PrivateFile
from portico.kernel.errors import BadRequest, Conflict, NotFound
from portico.server.home import Home

FILE = "secrets.json"
CREDENTIALS = "CREDENTIALS_DIRECTORY"
"""systemd sets it for a service with `LoadCredential=` or `SetCredentialEncrypted=`."""
LONGEST = 64 * 1024
"""Bytes of a value: a key file; larger values do not fit into an environment of some systems."""
MOST = 500
"""Secrets of one host. Every output of a step is searched for all of them."""
_SERVICE = "portico"
_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_RESERVED = re.compile(r"PORTICO_|LD_|DYLD_|GIT_|(PATH|HOME|SHELL|USER|LOGNAME|IFS|ENV|BASH_ENV|PYTHONPATH)$")
"""Names of variables that change which programs run, or that Portico sets itself."""

Place = Literal["file", "keyring", "credential"]


class Secret(Struct):
    """A secret as it is listed: never its value."""

    name: str
    place: Place
    changed: int = 0
    """Milliseconds since the epoch; 0: not known."""


class _Entry(Struct, omit_defaults=True):
    changed: int
    value: str | None = None
    """None: it is in the keyring."""

    def __repr__(self) -> str:
        return "_Entry(...)"


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        words = f"{name!r} is no name of a secret: use up to 64 capital letters, digits and _, such as GH_TOKEN."
        raise BadRequest(words, field="name")
    if _RESERVED.match(name):
        raise BadRequest(f"{name!r} has a meaning for programs; choose another name.", field="name")
    return name


def check_value(value: str) -> str:
    if len(value.strip()) < SHORTEST:
        words = f"A secret has at least {SHORTEST} characters: a shorter one cannot be masked in outputs."
        raise BadRequest(words, field="value")
    if len(value.encode("utf-8", "surrogatepass")) > LONGEST:
        raise BadRequest(f"A secret has at most {LONGEST} bytes.", field="value")
    if "\0" in value or not _is_text(value):
        raise BadRequest(
            "A secret is text without NUL bytes; encode other data, for example with base64.", field="value"
        )
    return value


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


class SecretStore:
    def __init__(self, home: Home, environ: Mapping[str, str] | None = None) -> None:
        self._file = PrivateFile(home, FILE, dict[str, _Entry])
        folder = (os.environ if environ is None else environ).get(CREDENTIALS)
        self._credentials = Path(folder) if folder else None

    def list(self) -> list[Secret]:
        found = {name: Secret(name, "credential") for name in self._credential_names()}
        for name, each in self._file.read().items():
            place: Place = "file" if each.value is not None else "keyring"
            found.setdefault(name, Secret(name, place, each.changed))
        return sorted(found.values(), key=lambda each: each.name)

    def set(self, name: str, value: str, *, keyring: bool = False) -> Secret:
        check_name(name)
        check_value(value)
        self._refuse_credential(name)
        now = int(time.time() * 1000)
        with self._file.editing() as entries:
            if name not in entries and len(entries) >= MOST:
                raise Conflict(f"There are {MOST} secrets, which is the most; remove one first.")
            before = entries.get(name)
            if keyring:
                _keyring().set_password(_SERVICE, name, value)
            elif before is not None and before.value is None:
                _forget(name)
            entries[name] = _Entry(now, None if keyring else value)
        return Secret(name, "keyring" if keyring else "file", now)

    def remove(self, name: str) -> None:
        self._refuse_credential(name)
        with self._file.editing() as entries:
            found = entries.pop(name, None)
            if found is None:
                raise NotFound("secret", name, "See: portico secrets list")
            if found.value is None:
                _forget(name)

    def resolve(self, names: Iterable[str]) -> dict[str, str]:
        """The values of these secrets, for the environment of one step."""
        entries = self._file.read()
        found: dict[str, str] = {}
        for name in names:
            value = self._credential(check_name(name))
            if value is None and name in entries:
                value = entries[name].value or _keyring().get_password(_SERVICE, name)
            if value is None:
                raise NotFound("secret", name, f"Set it with: portico secrets set {name}")
            found[name] = check_value(value)
        return found

    def values(self) -> dict[str, str]:
        """All values that can be read now, for masking. One that cannot be read cannot be passed to a step either."""
        found: dict[str, str] = {}
        for each in self.list():
            with contextlib.suppress(BadRequest, Conflict, NotFound):
                found |= self.resolve([each.name])
        return found

    def stamp(self) -> object:
        """A value that changes with the file."""
        return self._file.stamp()

    # -- systemd credentials ---------------------------------------------------------------------------------------

    def _credential_names(self) -> Iterator[str]:
        if self._credentials is not None and self._credentials.is_dir():
            yield from (each.name for each in self._credentials.iterdir() if _NAME.fullmatch(each.name))

    def _credential(self, name: str) -> str | None:
        if self._credentials is None:
            return None
        try:
            return (self._credentials / name).read_bytes().decode().removesuffix("\n")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise BadRequest(f"The credential {name!r} cannot be read: {why}.", field=name) from None

    def _refuse_credential(self, name: str) -> None:
        if name in self._credential_names():
            raise Conflict(f"{name!r} is a credential of the service; change it there (LoadCredential=).")


# -- the keyring of the system -------------------------------------------------------------------------------------


def _keyring() -> Any:
    try:
        keyring = importlib.import_module("keyring")  # late: an extra
    except ImportError:
        words = "The keyring needs one more package: pip install 'portico[keyring]'."
        raise BadRequest(words, field="keyring") from None
    return _Guarded(keyring)


class _Guarded:
    """Errors of the keyring without their text and cause, which may contain the value."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._module, name)

        def call(*args: str) -> Any:
            try:
                return method(*args)
            except Exception as error:  # noqa: BLE001 - each backend raises its own
                words = f"The keyring of this system failed ({type(error).__name__}). Is it there, and unlocked?"
                raise Conflict(words) from None

        return call


def _forget(name: str) -> None:
    with contextlib.suppress(BadRequest, Conflict):  # the entry is removed in any case
        _keyring().delete_password(_SERVICE, name)
