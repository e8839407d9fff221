"""Who is it? Tokens, and the cookies that stand for them.

The attack: somebody guesses, replays or steals a token. So tokens have 256 bits and are compared in constant time;
of a named token only a hash is kept; a cookie is bound to its token by a MAC and dies with it.

A browser sends a cookie to every server on the same machine, whatever its port: a development server that an agent
started gets it with the first click. So a cookie alone opens nothing but the pages' own files. Each login also has a
page key, which the pages keep in their storage (that belongs to one port) and send with everything they ask for.
"""

import contextlib
import fcntl
import hashlib
import hmac
import logging
import os
import secrets
import time
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from portico.doors.route import SCOPES, Caller
from portico.errors import AlreadyExists, BadRequest, NotFound
from portico.home import Home, stamp, write_private

logger = logging.getLogger("portico.identity")

OWNER = "owner"
_ALL = frozenset(SCOPES)
COOKIE_SECONDS = 30 * 24 * 3600
"""A login lasts a month; the token it stands for lives as long as its owner wants."""


CODE_SECONDS = 60.0
"""From the start of a browser to its first request, on a slow machine."""
_MOST_DAYS = 3650


class NamedToken(Struct, omit_defaults=True):
    id: str
    name: str
    hash: str
    scopes: list[str]
    created: int
    expires: int = 0
    """Milliseconds since the epoch; 0: never."""

    @property
    def expired(self) -> bool:
        return bool(self.expires) and self.expires <= time.time() * 1000


class Tokens:
    """The owner's token and the named ones, read again whenever the file changes: `portico token` edits it."""

    def __init__(self, home: Home, required: bool = True) -> None:
        self._home = home
        self._paths = (str(home.token_path), str(home.tokens_path))
        self.required = required
        self._stamp: tuple[int, int] | None = None
        self._named: list[NamedToken] = []
        self._owner_stamp: tuple[int, int] | None = None
        self._owner_hash = ""
        self._key = self._secret()
        self._codes: dict[str, tuple[str, float]] = {}
        """Whose login each open code is, and until when; by the code's hash."""

    def _secret(self) -> bytes:
        """What cookies are signed with; survives restarts, so a page stays logged in."""
        path = self._home.path / "cookie-key"
        with contextlib.suppress(FileNotFoundError):
            key = path.read_bytes()
            if len(key) == 32:
                return key
        key = secrets.token_bytes(32)
        write_private(path, key)
        return key

    def version(self) -> object:
        """Another one whenever who somebody is may have changed."""
        return stamp(self._paths[0]), stamp(self._paths[1])

    # -- recognising -------------------------------------------------------------------------------------------

    def by_token(self, token: str) -> Caller | None:
        digest = _hash(token)
        found = None
        if hmac.compare_digest(digest, self._owner):
            found = self.owner()
        for named in self.named():  # no early exit: the time does not tell which one matched
            if hmac.compare_digest(digest, named.hash) and not named.expired:
                found = Caller(named.id, named.name, frozenset(named.scopes))
        return found

    def by_cookie(self, cookie: str) -> Caller | None:
        ident, _, rest = cookie.partition(".")
        expires, _, mac = rest.partition(".")
        if not expires.isdecimal() or len(expires) > 18 or int(expires) < time.time():
            return None
        caller = self.by_id(ident)
        if caller is None or not _same(mac, self._mac(ident, expires)):
            return None
        return caller

    @staticmethod
    def cookie_until(cookie: str) -> float:
        """When a valid one ends, in seconds since the epoch."""
        return float(cookie.split(".")[1])

    def by_id(self, ident: str) -> Caller | None:
        owner = self.owner()
        if ident == owner.id:
            return owner
        named = next((each for each in self.named() if each.id == ident), None)
        return Caller(named.id, named.name, frozenset(named.scopes)) if named and not named.expired else None

    def code(self, caller: Caller) -> str:
        """For one login within a minute. A link that another program opens stands in the list of processes, where
        everybody on the machine reads it: it must not have the token."""
        code = secrets.token_urlsafe(32)
        self._codes = {each: until for each, until in self._codes.items() if until[1] > time.monotonic()}
        self._codes[_hash(code)] = (caller.id, time.monotonic() + CODE_SECONDS)
        return code

    def by_code(self, code: str) -> Caller | None:
        ident, until = self._codes.pop(_hash(code), ("", 0.0))
        return self.by_id(ident) if until > time.monotonic() else None

    def cookie(self, caller: Caller) -> str:
        expires = str(int(time.time()) + COOKIE_SECONDS)
        return f"{caller.id}.{expires}.{self._mac(caller.id, expires)}"

    def page_key(self, cookie: str) -> str:
        """What a page must know besides its cookie."""
        return hmac.new(self._key, f"page.{cookie}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def is_page_key(self, key: str, cookie: str) -> bool:
        return _same(key, self.page_key(cookie))

    def _mac(self, ident: str, expires: str) -> str:
        # The token's own hash goes in: a new token of the same name does not inherit old cookies.
        token = next((each.hash for each in self.named() if each.id == ident), self._owner)
        return hmac.new(self._key, f"{ident}.{expires}.{token}".encode(), hashlib.sha256).hexdigest()

    def owner(self) -> Caller:
        """A new token of the owner's is a new identity: cookies and sockets of the old one end."""
        return Caller(f"{OWNER}-{self._owner[:8]}", OWNER, _ALL)

    @property
    def _owner(self) -> str:
        now = stamp(self._home.token_path)
        if now is None or now != self._owner_stamp:
            self._owner_hash = _hash(self._home.token())
            self._owner_stamp = stamp(self._home.token_path)
        return self._owner_hash

    def known(self) -> dict[str, str]:
        """The name of every valid token by its id."""
        owner = self.owner()
        return {owner.id: owner.name, **{each.id: each.name for each in self.named()}}

    # -- named tokens ------------------------------------------------------------------------------------------

    def named(self) -> list[NamedToken]:
        now = stamp(self._home.tokens_path)
        if now != self._stamp:
            self._stamp = now
            self._named = self._read() if now else []
        return self._named

    def _read(self) -> list[NamedToken]:
        """A damaged file lets nobody in but the owner, who can repair it."""
        try:
            return read_tokens(self._home)
        except BadRequest as error:
            logger.error("no named token is valid: %s", error.message)
            return []


def read_tokens(home: Home) -> list[NamedToken]:
    try:
        return msgspec.json.decode(home.tokens_path.read_bytes(), type=list[NamedToken])
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise BadRequest(f"{str(home.tokens_path)!r} is not valid: {error}. Remove it to start anew.") from error


def new_token(home: Home, name: str, scopes: list[str], *, days: float | None = None) -> str:
    """Makes a named token and returns it; this is the only time it can be seen."""
    if not name or len(name) > 64 or not name.replace("-", "").replace("_", "").isalnum():
        raise BadRequest("A token's name has 1 to 64 letters, digits, '-' or '_'.", field="name")
    for scope in scopes:
        if scope not in SCOPES:
            raise BadRequest(f"There is no scope {scope!r}; choose from {', '.join(SCOPES)}.", field="scopes")
    if days is not None and not 0 < days <= _MOST_DAYS:
        raise BadRequest(f"A token lasts more than 0 and at most {_MOST_DAYS} days.", field="days")
    with _editing(home) as tokens:
        if name == OWNER or any(each.name == name for each in tokens):
            raise AlreadyExists(f"There is a token {name!r} already; revoke it first.")
        token = secrets.token_urlsafe(32)
        now = int(time.time() * 1000)
        expires = now + int(days * 86_400_000) if days is not None else 0
        tokens.append(NamedToken(secrets.token_hex(8), name, _hash(token), scopes, now, expires=expires))
    return token


def revoke_token(home: Home, name: str) -> None:
    """Ends the token, its cookies and (within a second) its open connections."""
    if name == OWNER:
        write_private(home.token_path, secrets.token_urlsafe(32).encode())
        return
    with _editing(home) as tokens:
        keep = [each for each in tokens if each.name != name]
        if len(keep) == len(tokens):
            raise NotFound("token", name)
        tokens[:] = keep


@contextlib.contextmanager
def _editing(home: Home) -> Iterator[list[NamedToken]]:
    """One at a time: of two that read the same list, the later would drop what the earlier has added."""
    home.make()
    with open(home.path / "tokens.lock", "a", encoding="utf-8") as lock:
        os.chmod(lock.name, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        tokens = read_tokens(home)
        yield tokens
        write_private(home.tokens_path, msgspec.json.encode(tokens))


def _same(given: str, right: str) -> bool:
    """In constant time, for any text that a stranger sends."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), right.encode())


def _hash(token: str) -> str:
    # A plain hash is enough: there is nothing to guess in 256 random bits.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
