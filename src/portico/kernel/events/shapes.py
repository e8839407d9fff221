"""The words that the events are made of."""

from functools import reduce
from operator import or_
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

S = TypeVar("S", bound=Struct)

Channel = str
"""`host`, `session/ID`, `task/ID`, `job/ID`, `terminal/ID`, `automation/ID` or `run/ID`."""

HOST: Channel = "host"


def number_of(ident: str) -> int:
    """The number at the end of an id of ours, or of its channel (`session-12`, `job/job-3`); 0 where there is none."""
    tail = ident.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else 0


def union_of(base: type, *modules: ModuleType) -> Any:
    """All structs of a base that these modules define, as one type: a new one need not be listed."""
    named = ((module.__name__, each) for module in modules for each in vars(module).values() if isinstance(each, type))
    return reduce(or_, (each for name, each in named if issubclass(each, base) and each.__module__ == name))


def like(kind: type[S], source: Struct, /, **others: Any) -> S:
    """A struct of another kind from what the source has under the same names. Its types are checked."""
    return msgspec.convert({**asdict(source), **others}, kind)


Outcome = Literal["completed", "failed", "cancelled", "interrupted"]
PartKind = Literal["text", "reasoning", "notice"]
PendingKind = Literal["queue", "steer"]
SignInReason = Literal["required", "expired", "insufficient_scope"]
QuestionResponse = Literal["accept", "decline", "cancel"]
Json = dict[str, Any]


class Message(Struct, frozen=True, omit_defaults=True):
    """What a person (or a job, or another agent) says to an agent."""

    text: str
    attachments: list[Json] = []
    model: str | None = None
    origin: str = "user"
    """user, agent, tool, system or automation: protocols tell them apart."""
    meta: Json = {}
    model_config: Json = {}
    """What was chosen with the model: how long it thinks."""


Positive = Annotated[float, Meta(gt=0, le=1e9)]
Count = Annotated[int, Meta(gt=0)]


class Budget(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is not set has no bound."""

    dollars: Positive | None = None
    """Told by the agent, else by list prices; where neither knows, this bound cannot be held, and that is said."""
    tokens: Count | None = None
    """Read and written together."""
    minutes: Positive | None = None
    """Of turns at work."""
    turns: Count | None = None
    calls: Count | None = None
    """Of tools."""


class ErrorInfo(Struct, frozen=True, omit_defaults=True):
    code: str
    message: str
    retry_after: float | None = None
    """Seconds that the vendor asks to wait."""


class ToolSpec(Struct, frozen=True, omit_defaults=True):
    """A tool as an agent sees it."""

    name: str
    description: str = ""
    schema: Json = {}
    title: str = ""


class Origin(Struct, frozen=True, omit_defaults=True):
    """Where a child session comes from."""

    kind: Literal["fork", "side", "agent"]
    session: str
    turn: str | None = None
    call: str | None = None
    selection: Json = {}
    uri: str = ""
    """What a client knows that session by: it stays true when the session is gone."""


class Option(Struct, frozen=True, omit_defaults=True):
    """One of the answers an approval offers. `grant` is what choosing it remembers."""

    id: str
    label: str
    allow: bool
    grant: Literal["once", "session", "project"] = "once"


class Event(Struct, frozen=True, omit_defaults=True, tag_field="type", gc=False):
    """Nothing in an event refers back to it, so the collector need not look at the thousands that pass."""

    piece_of: ClassVar[str] = ""
    """The field that names what this event is a piece of: it is compacted after the whole is written."""


class Delta(Event, frozen=True):
    """A piece of something that grows. Pieces of one part that wait for the same commit become one."""

    piece_of = "part"

    turn: str
    part: str
    text: str
