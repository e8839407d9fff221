"""Authentication of requests: tokens, and the cookies that represent them.

The attack: an attacker guesses, replays or steals a token. So tokens have 256 bits and are compared in constant time;
only a hash of a named token is stored; a cookie is bound to its token by a MAC and expires with it.

A browser sends a cookie to every server on the same machine, on any port: a development server that an agent
started gets it with the first click. So a cookie alone gives access only to the pages' own files. Each login also has
a page key, which the pages keep in their storage (separate for each port) and send with every request.
"""

import contextlib
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from portico import limits
from portico.command_shapes import method_name
from portico.features.people.people import People, Person, drop_person, locked, read_people
from portico.kernel.commands import COMMANDS, SCOPES, Caller
from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, NotFound
from portico.server.home import Home, secret_key, stamp, write_private

logger = logging.getLogger("portico.identity")

OWNER = "owner"
_ALL = frozenset(SCOPES)
COOKIE_SECONDS = 30 * 24 * 3600
"""A login lasts 30 days. The token that it represents can be valid for longer."""


CODE_SECONDS = 60.0
"""From the start of a browser to its first request, on a slow machine."""
_BY_PROXY = "proxy-"
_USES = "token-uses.json"
_USE_MS = 60_000
_MOST_DAYS = 3650


class NamedToken(Struct, omit_defaults=True):
    id: str
    name: str
    hash: str
    scopes: list[str]
    created: int
    person: str = ""
    """Whose it is: it may do no more than they, and ends with them. Empty: the host's own."""
    expires: int = 0
    """Milliseconds since the epoch; 0: never."""
    tools: list[str] = []
    """The MCP tools that it was created for by name."""
    login: bool = False
    """A login of that person: the token itself is discarded, only its cookie exists."""
    device: str = ""
    """The name of the paired device whose login this is. The token itself is discarded, as above."""

    @property
    def shown(self) -> str:
        return f"{self.name} of {self.person}" if self.person else self.name

    @property
    def expired(self) -> bool:
        return bool(self.expires) and self.expires <= time.time() * 1000


class Logout(Struct):
    id: str
    """The hash of a cookie that was logged out."""
    expires: int
    """When that cookie would have ended, in seconds since the epoch."""


class Tokens:
    """The owner's token and the named tokens, reloaded when the file changes: `portico token` edits it."""

    def __init__(self, home: Home, required: bool = True) -> None:
        self._home = home
        self._paths = (str(home.token_path), str(home.tokens_path), str(home.logouts_path))
        self._logouts_stamp: tuple[int, int] | None = None
        self._logouts: set[str] | None = set()
        """Hashes of cookies that were logged out. None: the file is damaged, and no cookie is valid."""
        self.required = required
        self._stamp: tuple[int, int] | None = None
        self._named: list[NamedToken] = []
        self._owner_stamp: tuple[int, int] | None = None
        self._owner_hash = ""
        self._key = secret_key(home.path / "cookie-key")  # survives restarts, so a page stays logged in
        self.people = People(home)
        self.used: dict[str, int] = read_uses(home)
        """When each token was last seen, by its id."""
        self._saved = dict(self.used)
        self._codes: dict[str, tuple[str, float]] = {}
        """Whose login each open code is, and until when; by the code's hash."""

    def version(self, owner: Literal["", "token", "cookie"] = "") -> tuple[object, ...]:
        """Changes whenever the identity of a request may have changed. `owner`: of the owner's token, or of a cookie
        for it, which depend on fewer files: a request waits for each stat while the log is being written."""
        own = stamp(self._paths[0])
        match owner:
            case "token":
                return (own,)
            case "cookie":
                return own, stamp(self._paths[2])
        return own, stamp(self._paths[1]), stamp(self._paths[2]), self.people.version()

    def until(self, caller: Caller | None) -> float:
        """When this token ends, in seconds since the epoch."""
        named = next((each for each in self.named() if caller is not None and each.id == caller.id), None)
        return named.expires / 1000 if named is not None and named.expires else float("inf")

    # -- recognising -------------------------------------------------------------------------------------------

    def by_token(self, token: str) -> Caller | None:
        digest = _hash(token)
        found = None
        if hmac.compare_digest(digest, self._owner):
            found = self.owner()
        for named in self.named():  # no early exit: the time must not reveal which one matched
            if hmac.compare_digest(digest, named.hash):
                found = self._caller(named)
        return found

    def by_cookie(self, cookie: str) -> Caller | None:
        ident, _, rest = cookie.partition(".")
        signed, _, mac = rest.rpartition(".")
        expires = signed.partition(".")[0]
        if not expires.isdecimal() or len(expires) > 18 or int(expires) < time.time():
            return None
        caller = self.by_id(ident)
        if caller is None or not _same(mac, self._mac(ident, signed)) or self.is_logged_out(cookie):
            return None
        return caller

    def is_logged_out(self, cookie: str) -> bool:
        now = stamp(self._paths[2])
        if now != self._logouts_stamp:
            self._logouts_stamp = now
            try:
                self._logouts = {each.id for each in read_logouts(self._home)}
            except BadRequest as error:
                logger.error("no login is valid: %s", error.message)
                self._logouts = None
        return self._logouts is None or _hash(cookie) in self._logouts

    def log_out(self, cookie: str) -> None:
        """End this login at every host. A login from an OpenID provider is a separate token, which is revoked."""
        ident = cookie.partition(".")[0]
        named = next((each for each in self.named() if each.id == ident and each.login), None)
        if named is not None:
            revoke_token(self._home, named.name, named.person)
            return
        with locked(self._home):
            now = int(time.time())
            logouts = [each for each in read_logouts(self._home) if each.expires > now]
            logouts.append(Logout(_hash(cookie), int(self.cookie_until(cookie))))
            write_private(self._home.logouts_path, msgspec.json.encode(logouts))

    @staticmethod
    def cookie_until(cookie: str) -> float:
        """Return when a valid cookie expires, in seconds since the epoch."""
        return float(cookie.split(".")[1])

    def by_id(self, ident: str) -> Caller | None:
        owner = self.owner()
        if ident == owner.id:
            return owner
        if ident.startswith(_BY_PROXY):
            person = self.people.get(ident.removeprefix(_BY_PROXY))
            return by_proxy(person) if person is not None else None
        named = next((each for each in self.named() if each.id == ident), None)
        return self._caller(named) if named else None

    def _caller(self, named: NamedToken) -> Caller | None:
        """Return the caller of a token. A person's token has at most their scopes, and none after they are removed."""
        if named.expired:
            return None
        if not named.person:
            return Caller(named.id, named.name, frozenset(named.scopes), tools=frozenset(named.tools))
        person = self.people.get(named.person)
        if person is None:
            return None
        scopes = frozenset(named.scopes) & frozenset(person.scopes)
        tools = frozenset(named.tools)
        return Caller(named.id, named.name, scopes, person=person.name, tools=tools) if scopes else None

    def save_uses(self) -> None:
        """Save when tokens were last used, at most once a minute. People use it to find tokens that are not needed."""
        valid = {each.id for each in self.named()}
        self.used = uses = {ident: used for ident, used in self.used.items() if ident in valid}
        if any(used - self._saved.get(ident, 0) >= _USE_MS for ident, used in uses.items()):
            write_private(self._home.path / _USES, msgspec.json.encode(uses))
            self._saved = dict(uses)

    def code(self, caller: Caller) -> str:
        """Create a code for one login within a minute. A link that another program opens is visible in the process
        list to every user of the machine, so it must not contain the token."""
        code = secrets.token_urlsafe(32)
        self._codes = {each: until for each, until in self._codes.items() if until[1] > time.monotonic()}
        self._codes[_hash(code)] = (caller.id, time.monotonic() + CODE_SECONDS)
        return code

    def by_code(self, code: str) -> Caller | None:
        ident, until = self._codes.pop(_hash(code), ("", 0.0))
        return self.by_id(ident) if until > time.monotonic() else None

    def cookie(self, caller: Caller) -> str:
        signed = f"{int(time.time()) + COOKIE_SECONDS}.{secrets.token_hex(8)}"  # no two logins have the same cookie
        return f"{caller.id}.{signed}.{self._mac(caller.id, signed)}"

    def page_key(self, cookie: str) -> str:
        """Return the key that a page must send in addition to its cookie."""
        return self.derive("page", cookie)

    def derive(self, purpose: str, text: str) -> str:
        """Return a MAC of the text, which only hosts with the same key can compute."""
        return hmac.new(self._key, f"{purpose}.{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def is_page_key(self, key: str, cookie: str) -> bool:
        return _same(key, self.page_key(cookie))

    def _mac(self, ident: str, signed: str) -> str:
        # The MAC includes the token's hash: a new token of the same name does not inherit old cookies.
        token = next((each.hash for each in self.named() if each.id == ident), self._owner)
        return hmac.new(self._key, f"{ident}.{signed}.{token}".encode(), hashlib.sha256).hexdigest()

    def owner(self) -> Caller:
        """Return the owner as a caller. A new owner token is a new identity: cookies and sockets of the old one end."""
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
        return {owner.id: owner.name, **{each.id: each.shown for each in self.named()}}

    # -- named tokens ------------------------------------------------------------------------------------------

    def named(self) -> list[NamedToken]:
        now = stamp(self._home.tokens_path)
        if now != self._stamp:
            self._stamp = now
            self._named = self._read() if now else []
        return self._named

    def _read(self) -> list[NamedToken]:
        """Read the named tokens. If the file is damaged, only the owner can log in and repair it."""
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


def effective_tokens(home: Home) -> list[NamedToken]:
    """Return the tokens with their effective scopes: a person's token has at most the scopes of the person."""
    people, found = {each.name: each.scopes for each in read_people(home)}, read_tokens(home)
    for each in found:
        if each.person:
            each.scopes = [scope for scope in each.scopes if scope in people.get(each.person, ())]
    return found


def new_token(
    home: Home,
    name: str,
    scopes: list[str],
    person: str = "",
    *,
    days: float | None = None,
    tools: Sequence[str] = (),
) -> str:
    """Creates a named token and returns it; it cannot be shown again."""
    if not name or len(name) > 64 or not name.replace("-", "").replace("_", "").isalnum():
        raise BadRequest("A token's name has 1 to 64 letters, digits, '-' or '_'.", field="name")
    for scope in scopes:
        if scope not in SCOPES:
            raise BadRequest(f"There is no scope {scope!r}; choose from {', '.join(SCOPES)}.", field="scopes")
    check_tools(tools, scopes)
    if days is not None and not 0 < days <= _MOST_DAYS:
        raise BadRequest(f"A token lasts more than 0 and at most {_MOST_DAYS} days.", field="days")
    if person and all(each.name != person for each in read_people(home)):
        raise NotFound("person", person, "Add them first: portico people add NAME")
    token, now = secrets.token_urlsafe(32), int(time.time() * 1000)
    expires = now + int(days * 86_400_000) if days is not None else 0
    with _editing(home) as tokens:
        if name == OWNER or any((each.name, each.person) == (name, person) for each in tokens if not each.login):
            raise AlreadyExists(f"There is a token {name!r} already; revoke it first.")
        if (
            person
            and sum(each.person == person and not each.login and not each.expired for each in tokens) >= limits.TOKENS
        ):
            raise Conflict(
                f"{person!r} has {limits.TOKENS} tokens, which are the most; revoke some first.", field="name"
            )
        made = NamedToken(secrets.token_hex(8), name, _hash(token), scopes, now, person, expires, sorted(set(tools)))
        tokens.append(made)
    return token


TOOL_SETS = frozenset({"ask", "work", "all"})
"""Sets of MCP tools that a token can name like a tool. A set selects what is listed and allows nothing more."""


def check_tools(tools: Sequence[str], scopes: Collection[str]) -> None:
    known = {method_name(kind): kind.scope for kind in COMMANDS.values()} | {
        "answer": COMMANDS["approval.answer"].scope
    }
    if len(TOOL_SETS.intersection(tools)) > 1:
        raise BadRequest("A token has one set of tools: ask, work or all.", field="tools")
    for tool in (each for each in tools if each not in TOOL_SETS):
        if tool not in known:
            raise BadRequest(f"There is no tool {tool!r}; the guide to agents lists them under MCP.", field="tools")
        if known[tool] != "any" and known[tool] not in scopes:
            raise BadRequest(f"The tool {tool!r} needs the scope {known[tool]!r}: add it.", field="scopes")


def new_login(home: Home, person: Person, hours: float) -> str:
    """Create a login of a person and return its id: a token that is discarded, and that a cookie represents."""
    now, ident = int(time.time() * 1000), secrets.token_hex(8)
    made = NamedToken(ident, f"login-{ident}", _hash(secrets.token_urlsafe(32)), list(SCOPES), now, person.name)
    made.expires, made.login = now + int(hours * 3_600_000), True
    with _editing(home) as tokens:
        before = [each for each in tokens if each.login and each.person == person.name]
        for each in before[: max(0, len(before) - limits.LOGINS + 1)]:
            tokens.remove(each)
        tokens.append(made)
    return ident


def new_device(home: Home, device: str, scopes: list[str], person: str) -> str:
    """Create the token of a paired device and return its id. A cookie represents it; the token itself is discarded."""
    now, ident = int(time.time() * 1000), secrets.token_hex(8)
    made = NamedToken(ident, f"device-{ident}", _hash(secrets.token_urlsafe(32)), scopes, now, person, device=device)
    with _editing(home) as tokens:
        if sum(bool(each.device) for each in tokens) >= limits.TOKENS:
            raise Conflict(f"There are {limits.TOKENS} devices, which are the most; revoke some first.")
        tokens.append(made)
    return ident


def by_proxy(person: Person) -> Caller:
    """Return the caller that a trusted proxy has authenticated. This is valid for one request."""
    return Caller(f"{_BY_PROXY}{person.name}", person.name, frozenset(person.scopes), person=person.name)


def revoke_token(home: Home, name: str, person: str = "") -> None:
    """Ends the token, its cookies and (within a second) its open connections."""
    if name == OWNER and not person:
        write_private(home.token_path, secrets.token_urlsafe(32).encode())
        return
    with _editing(home) as tokens:
        keep = [each for each in tokens if (each.name, each.person) != (name, person)]
        if len(keep) == len(tokens):
            raise NotFound("token", name)
        tokens[:] = keep


def remove_person(home: Home, name: str) -> None:
    """Remove a person with their tokens and logins, which another person of that name does not inherit. Their sessions
    stay available to admins and to the people they are shared with."""
    drop_person(home, name)
    with _editing(home) as tokens:
        tokens[:] = [each for each in tokens if each.person != name]


@contextlib.contextmanager
def _editing(home: Home) -> Iterator[list[NamedToken]]:
    """What has expired goes with the next change."""
    with locked(home):
        tokens = [each for each in read_tokens(home) if not each.expired]
        yield tokens
        write_private(home.tokens_path, msgspec.json.encode(tokens))


def read_logouts(home: Home) -> list[Logout]:
    """BadRequest: it is damaged. Then no cookie is valid."""
    try:
        return msgspec.json.decode(home.logouts_path.read_bytes(), type=list[Logout])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        words = "cannot be read; delete it, and revoke the tokens of logins that have ended"
        raise BadRequest(f"{str(home.logouts_path)!r} {words}: {error}.") from error


def read_uses(home: Home) -> dict[str, int]:
    try:
        return msgspec.json.decode((home.path / _USES).read_bytes(), type=dict[str, int])
    except (OSError, msgspec.DecodeError):
        return {}


def _same(given: str, right: str) -> bool:
    """In constant time, for any text that a stranger sends."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), right.encode())


def _hash(token: str) -> str:
    # A plain hash is enough: there is nothing to guess in 256 random bits.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
