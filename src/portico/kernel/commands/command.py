"""What a command is: data, and what every door needs to know of it.

The columns are class attributes, so a door builds its table from the classes alone. `check_table` rejects a command
without a scope, a subject, a sentence or a lock: such a command does not import.
"""

from collections.abc import Iterable
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from msgspec import NODEFAULT, Struct

from portico.kernel.commands.caller import Scope
from portico.kernel.commands.reads import Readable

About = Literal[
    "host",
    "session",
    "approval",
    "question",
    "terminal",
    "job",
    "task",
    "grant",
    "automation",
    "run",
    "project",
    "token",
]
"""What a command is about: the kind of thing whose id it names. `host`: none, and the default."""


Shown = Literal["session", "queue", "terminal"]

Lock = Literal["session", "at_rest", "family", "session_and_host", "host", "feature"]
"""What `host.do` locks while a command runs: its session; its session after the running turn was cancelled; its session
and all below; its session and what all sessions share; only that; or the lock that its feature has registered."""


class NoLock(str):
    """In place of a lock: the reason why none is needed."""


class NoTool(str):
    """In place of a tool: the reason why models are not offered one."""


class Http(NamedTuple):
    """The route of `/v1` that takes the command. `{id}` is the thing it is about; other names are its fields."""

    method: str
    path: str
    status: int = 200


class Command(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="command"):
    scope: ClassVar[Scope]
    about: ClassVar[About] = "host"
    http: ClassVar[Http | None] = None
    method: ClassVar[str] = ""
    """What the client's method and the tool are called, where it is not after the class."""
    gives: ClassVar[Any] = None
    """The shape of the answer; several in a tuple are alternatives. None: what it shows."""
    shows: ClassVar[Shown] = "session"
    """What answers that have no shape of their own show: a session as lists do, its queue, or a terminal."""
    private: ClassVar[frozenset[str]] = frozenset()
    """Fields that only protocols with their own ids fill: `/v1`, tools and the command line do not take them. With a
    dot, fields of what a field holds."""
    lock: ClassVar[Lock | NoLock]
    ask: ClassVar[Any] = None
    """Looks up external facts before the decision: `await ask(session, command)` becomes `context.found`."""
    decide: ClassVar[Any] = None
    """A pure rule, `decide(state, command, context)`, which returns an `Outcome`. None: a feature has a handler."""
    as_tool: ClassVar[Literal[True] | NoTool] = True
    """Offered to models over MCP."""
    plain: ClassVar[bool] = False
    """A fact that holds in any order with others: it needs no lock, and many of them share one append."""
    waits: ClassVar[bool] = False
    """It is answered when the effects of its events are done."""
    owner_only: ClassVar[bool] = False
    """Of a session with an owner: a right that shares do not give."""
    names: ClassVar[tuple[str, ...]] = ()
    """Fields with the ids of further sessions that it changes or reads; the caller needs the same right in them."""
    shared_by_all: ClassVar[Readable | None] = None
    """What all people of the host share, and only admins change; see `EVERYBODYS`."""
    limited: ClassVar[bool] = False
    """Counts against the caller's rate."""
    secret: ClassVar[bool] = False
    """Its fields or its answer must not be stored, so it has no idempotency key."""
    errors: ClassVar[tuple[str, ...]] = ("conflict",)
    """The codes it may be refused with, beyond those of every command."""

    @property
    def subject(self) -> str:
        """The id of what it is about."""
        found: str = getattr(self, self.about) if self.about != "host" else ""
        return found


class AboutSession(Command, frozen=True):
    about = "session"
    lock: ClassVar[Lock | NoLock] = "session"

    session: str


class AboutJob(Command, frozen=True):
    about = "job"

    job: str


class AboutAutomation(Command, frozen=True):
    about = "automation"
    lock: ClassVar[Lock | NoLock] = "feature"
    shared_by_all = "automations"

    automation: str


def check_table(commands: Iterable[type[Command]]) -> dict[str, type[Command]]:
    """Commands by their tag."""
    found: dict[str, type[Command]] = {}
    for each in commands:
        if not hasattr(each, "scope") or not each.__doc__:
            raise TypeError(f"{each.__name__} needs a scope and a docstring.")
        if each.about != "host" and each.about not in each.__struct_fields__:
            raise TypeError(f"{each.__name__} is about a {each.about} and has no field of that name.")
        defaults = zip(reversed(each.__struct_fields__), reversed(each.__struct_defaults__), strict=False)
        optional = {name for name, default in defaults if default is not NODEFAULT}
        named = set(get_args(About)).intersection(each.__struct_fields__).difference(optional)
        if named and not any("about" in vars(kind) for kind in each.__mro__[: each.__mro__.index(Command)]):
            raise TypeError(f"{each.__name__} names a {min(named)} and does not say what it is about.")
        if not getattr(each, "lock", ""):
            raise TypeError(f"{each.__name__} needs a lock, or `NoLock` with the reason why it needs none.")
        if each.plain and not isinstance(each.lock, NoLock):
            raise TypeError(f"{each.__name__} is plain: many share one append, so it takes no lock.")
        tag = each.__struct_config__.tag
        assert isinstance(tag, str)
        if tag in found:
            raise TypeError(f"{each.__name__} and {found[tag].__name__} are both called {tag!r}.")
        found[tag] = each
    return found


def sentence(command: type[Command]) -> str:
    """One sentence for help texts: the first line of the docstring."""
    return (command.__doc__ or "").strip().partition("\n")[0]
