"""What goes through Temporal: names and numbers. Prompts, outputs and the entry stay in the log, and are read there."""

import zlib
from typing import Any, Literal

import msgspec
from msgspec import Struct
from temporalio.api.common.v1 import Payload
from temporalio.converter import CompositePayloadConverter, DataConverter, EncodingPayloadConverter

from portico.features.jobs.entry import Work
from portico.features.jobs.events import JobOutcome, WorkOutcome

VERSION = 1
"""Part of the queue's name. A change after which a running workflow could not be replayed raises it: hosts of both
versions then use separate queues, and a running job stays with hosts of its version. When the last of them is
gone, its owner starts it again from the log (`TemporalJobs._start_again`)."""
JOB = "portico-job"
WORK, SETTLE, LOAD, ITEMS, DECIDE, FINISH = "work", "settle", "load", "items", "decide", "finish"
FLOW = "flow"
HEARTBEAT_SECONDS = 4.0
"""Without a heartbeat for this long a work is lost. Another host may take over its task if its host does not renew its
lease either (`Members.suspect`)."""
OPEN_WORKS = 500
"""Activities of one job at a time. Above 2,000 open ones Temporal refuses the workflow's step, for ever."""
LABEL_SECONDS = 15.0
"""After this, a work that no host with its label has taken reports that. Longer than a lease: a takeover stays
quiet."""
HISTORY_QUIET = 4_000
"""Events after which a run of the workflow ends while no work is under way: Temporal's own suggestion."""
HISTORY_EVENTS = 20_000
"""Events after which no work begins until none is under way: the history ends at 51,200."""
INTERRUPTED = "Interrupted"
"""The type of a failed activity whose host stopped, or that another host has begun already."""


class KnownPath(Struct, omit_defaults=True):
    """The recorded state of one path."""

    outcome: WorkOutcome
    error: str = ""
    answer: str | None = None
    attempt: int = 1


class WorkPlan(Struct, omit_defaults=True):
    work: Work
    started: int
    """Milliseconds since the epoch."""
    timeout: float | None = None
    known: dict[str, KnownPath] = {}
    labels: dict[str, str] = {}
    """By task: the label that its host needs."""


class Order(Struct, omit_defaults=True):
    job: str
    path: str
    orderly: bool = False
    """For `settle`: its host was stopped normally."""


class FlowOrder(Struct, omit_defaults=True):
    """Something that the walk of a workflow asks about the work at a path."""

    job: str
    path: str
    what: Literal["lanes", "holds", "close"]
    place: str = ""
    lanes: list[bool] = []
    merged: bool = True


class Result(Struct, omit_defaults=True):
    outcome: WorkOutcome | Literal["again"]
    """`again`: it was interrupted, and is tried another time."""
    error: str = ""
    answer: str | None = None
    attempt: int = 1
    """The next one."""
    resumes: int = 0
    """How often that attempt was resumed in its middle."""


class FoundItems(Struct, omit_defaults=True):
    """The items of an Each."""

    count: int = 0
    crash: str = ""


class WorkDecision(Struct, omit_defaults=True):
    job: str
    path: str
    reason: str
    label: str = ""
    """No host with this label has taken the work: the reason names it, and the hosts that are there."""


class End(Struct, omit_defaults=True):
    job: str
    outcome: JobOutcome
    error: str = ""


def activity_of(path: str, attempt: int, resumes: int = 0) -> str:
    """The id of the activity that runs a work. A resumed attempt is another activity."""
    return f"{path}@{attempt}" + (f".{resumes}" if resumes else "")


def queue_of(queue: str, label: str) -> str:
    """Where the works with that label are, beside the queue of a place."""
    return f"{queue}-{label}" if label else queue


def pack(plan: WorkPlan) -> bytes:
    """A job of ten thousand works fits into one payload: 2 MB is Temporal's limit, and 0.5 MB warned about."""
    return zlib.compress(msgspec.json.encode(plan))


def unpack(data: bytes) -> WorkPlan:
    return msgspec.json.decode(zlib.decompress(data), type=WorkPlan)


class _Msgspec(EncodingPayloadConverter):
    @property
    def encoding(self) -> str:
        return "json/plain"

    def to_payload(self, value: Any) -> Payload | None:
        return Payload(metadata={"encoding": self.encoding.encode()}, data=msgspec.json.encode(value))

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        return msgspec.json.decode(payload.data, type=type_hint or Any)


class _Payloads(CompositePayloadConverter):
    def __init__(self) -> None:
        super().__init__(_Msgspec())


CONVERTER = DataConverter(payload_converter_class=_Payloads)
