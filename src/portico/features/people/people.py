"""The people of a host: a file next to the tokens, changed by `portico people`, by admins, and by every login.

The attack: an account takes over another person's name. So a name belongs to the account (issuer and subject) that
first used it. Scopes are looked up on every request, so removing a scope or a person takes effect immediately, also for
tokens that the person created earlier.
"""

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from portico.kernel.commands import SCOPES
from portico.kernel.errors import AlreadyExists, BadRequest, Forbidden, NotFound
from portico.kernel.people import HOST_OWNER
from portico.server.home import Home, stamp, write_private
from portico.server.settings import Settings

PROXY = "proxy"
"""The issuer of people who were authenticated by a trusted proxy."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,63}")


class Person(Struct, omit_defaults=True):
    name: str
    scopes: list[str]
    created: int
    """Milliseconds since the epoch."""
    local: bool = False
    """Added by hand: a login does not change what they may do."""
    issuer: str = ""
    subject: str = ""
    """The account that they log in with; empty: none yet."""
    appointed: bool = False
    """They have the scope `admin` because the settings name them, and no longer than that."""


class Account(Struct, frozen=True):
    """The identity of a person, according to a provider or a proxy."""

    name: str
    issuer: str
    subject: str
    email: str = ""
    """Only a verified one."""
    groups: tuple[str, ...] = ()


class People:
    """People by name, reloaded when the file changes. If it is damaged, only the owner can log in and repair it."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._path = str(people_path(home))
        self._stamp: tuple[int, int] | None = None
        self._all: dict[str, Person] = {}

    def version(self) -> object:
        return stamp(self._path)

    def all(self) -> dict[str, Person]:
        now = stamp(self._path)
        if now != self._stamp:
            self._stamp = now
            with contextlib.suppress(BadRequest):
                self._all = {}
                self._all = {each.name: each for each in read_people(self._home)}
        return self._all

    def get(self, name: str) -> Person | None:
        return self.all().get(name)

    def appoint(self, admins: Collection[str]) -> None:
        """Make the people named by the settings admins; people who are no longer named lose that."""
        if any(_appointed(each, admins) != each for each in self.all().values()):
            with _editing(self._home) as people:
                people.update({name: _appointed(each, admins) for name, each in people.items()})


def people_path(home: Home) -> Path:
    return home.path / "people.json"


def read_people(home: Home) -> list[Person]:
    try:
        return msgspec.json.decode(people_path(home).read_bytes(), type=list[Person])
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise BadRequest(f"{str(people_path(home))!r} is not valid: {error}. Repair or remove it.") from error


def add_person(home: Home, name: str, scopes: Iterable[str], admins: Collection[str] = ()) -> Person:
    """Add a person manually. They can have tokens immediately, and log in if their provider uses the same name."""
    person = Person(_checked(name), check_scopes(scopes), int(time.time() * 1000), local=True)
    person = _appointed(person, admins)
    with _editing(home) as people:
        if person.name in people:
            raise AlreadyExists(f"There is a person {person.name!r} already.")
        people[person.name] = person
    return person


def drop_person(home: Home, name: str) -> None:
    """Remove a person, but not their tokens: see `identity.remove_person`."""
    with _editing(home) as people:
        if people.pop(name, None) is None:
            raise NotFound("person", name)


def check_scopes(scopes: Iterable[str]) -> list[str]:
    wanted = list(dict.fromkeys(scopes))
    for scope in wanted:
        if scope not in SCOPES:
            raise BadRequest(f"There is no scope {scope!r}; choose from {', '.join(SCOPES)}.", field="scopes")
    if not wanted:
        raise BadRequest(f"Choose at least one scope of {', '.join(SCOPES)}.", field="scopes")
    return wanted


def check_person(name: str, also: str = "") -> str:
    if name == also and also:
        return name
    if not _NAME.fullmatch(name):
        words = "A person's name has 1 to 64 small letters, digits, '.', '_', '@', '+' or '-'."
        raise BadRequest(words, field="person")
    return name


def _checked(name: str) -> str:
    found = check_person(name.strip().lower())
    if found == HOST_OWNER:
        raise BadRequest(f"{HOST_OWNER!r} is the name of the host's own token.", field="person")
    return found


# -- logins ----------------------------------------------------------------------------------------------------


def admit(people: People, home: Home, settings: Settings, account: Account) -> Person:
    """Return the person of an account: a known one, or a new one whom the settings admit."""
    name = _checked(account.name)
    scopes, admins = _scopes(settings, account, name), settings.people.admins
    person = _admitted(people.get(name), name, scopes, account, admins)
    if person != people.get(name):
        with _editing(home) as stored:  # checked again: two logins may be concurrent
            stored[name] = person = _admitted(stored.get(name), name, scopes, account, admins)
    return person


def _admitted(known: Person | None, name: str, scopes: list[str], account: Account, admins: Collection[str]) -> Person:
    if known is not None and known.subject and (known.issuer, known.subject) != (account.issuer, account.subject):
        raise Forbidden(f"The name {name!r} belongs to another account; an admin can remove that person.")
    if known is None or not known.local:
        if not scopes and name not in admins:
            raise Forbidden(f"{name!r} may not come in here: ask an admin of this host for access.")
        known = Person(name, scopes, known.created if known is not None else int(time.time() * 1000))
    return _appointed(msgspec.structs.replace(known, issuer=account.issuer, subject=account.subject), admins)


def _appointed(person: Person, admins: Collection[str]) -> Person:
    """Apply `admins` of the settings. They never remove a scope that was granted manually or by a group."""
    named = person.name in admins
    if named == person.appointed or (named and "admin" in person.scopes):
        return person
    scopes = [*person.scopes, "admin"] if named else [each for each in person.scopes if each != "admin"]
    return msgspec.structs.replace(person, scopes=scopes, appointed=named)


def _scopes(settings: Settings, account: Account, name: str) -> list[str]:
    """None: nothing lets them in. A proxy lets in whom it names, and a name among the admins is let in."""
    oidc, usual = settings.login.oidc, settings.people.scopes
    given = {scope for group in account.groups for scope in oidc.groups.get(group, ())}
    admin, domain = name in settings.people.admins, account.email.rpartition("@")[2].lower()
    known = bool(domain) and domain in [each.lower() for each in oidc.domains]
    if not given and (admin or known or "*" in oidc.domains or account.issuer == PROXY):
        given = set(usual)
    return [scope for scope in SCOPES if scope in given]


@contextlib.contextmanager
def _editing(home: Home) -> Iterator[dict[str, Person]]:
    with locked(home):
        people = {each.name: each for each in read_people(home)}
        yield people
        write_private(people_path(home), msgspec.json.encode(list(people.values())))


@contextlib.contextmanager
def locked(home: Home) -> Iterator[None]:
    """Hold the lock for editing: of two concurrent edits, the later would drop what the earlier has added."""
    home.make()
    with open(home.path / "tokens.lock", "a", encoding="utf-8") as lock:
        os.chmod(lock.name, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
