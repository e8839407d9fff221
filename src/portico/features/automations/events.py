"""Automations and their runs: what starts automatically, when, and its outcome."""

from typing import Any, Literal

from msgspec import Struct

from portico.kernel.events import Budget, Event, Json, register_events

Missed = Literal["skip", "last", "all"]
Overlap = Literal["skip", "queue", "cancel", "parallel"]
Cause = Literal["schedule", "hook", "files", "after", "person"]
RunOutcome = Literal["succeeded", "failed", "canceled", "interrupted", "skipped"]
EndOutcome = Literal["succeeded", "failed", "canceled", "interrupted"]


class Schedule(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """When: exactly one of `cron`, `every` and `at`."""

    cron: str = ""
    """Five fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`."""
    every: str = ""
    """A number and a unit: `90s`, `15m`, `2h`, `1d`; counted from when the schedule was set."""
    at: str = ""
    """Once: `2027-01-31T09:00`, in the zone, or with an explicit offset."""
    zone: str = "UTC"
    """An IANA time zone such as `Europe/Berlin`."""


class Match(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A condition on a hook's payload: exactly one of `equals` and `matches`."""

    pointer: str
    """A JSON Pointer, such as `/pull_request/base/ref`."""
    equals: str | int | float | bool | None = None
    matches: str = ""
    """A regular expression that the whole text at that place matches."""


class Hook(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Another system calls `POST /hooks/NAME`, signed with the hook's secret."""

    filter: list[Match] = []
    """All of them hold, or nothing runs."""
    per_minute: int = 60
    """Deliveries that are accepted in a minute; the others are refused with a time to retry."""


class FilesTrigger(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Files in a folder change."""

    folder: str
    globs: list[str] = []
    """Relative to the folder; empty: all files."""
    excludes: list[str] = []
    quiet: float = 5.0
    """Seconds without a further change before it starts."""


class After(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An automation's run or a job ends: exactly one of `automation` and `job`."""

    automation: str = ""
    job: str = ""
    outcomes: list[EndOutcome] = []
    """Empty: however it ends."""


class Trigger(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One of several triggers: exactly one of these."""

    schedule: Schedule | None = None
    hook: Hook | None = None
    files: FilesTrigger | None = None
    after: After | None = None


class JobAction(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A job of the host's entry."""

    job: str
    cwd: str = ""
    """The first workspace, when none is named."""
    input: str = ""
    inputs: Json = {}
    """Of a workflow, by name. Those with `from` are filled from the payload of a hook."""
    place: str = ""
    label: str = ""
    """Of several hosts: where it is to run, as for a job that a person starts."""


class PromptAction(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A message to an agent, in a separate session."""

    text: str
    agent: str = ""
    model: str = ""
    cwd: str = ""
    """The first workspace, when none is named."""
    title: str = ""
    config: Json = {}
    """Settings of the session, such as its `mode`."""
    worktree: bool = False
    """A separate git worktree."""
    base: str = "HEAD"
    """Where that worktree starts."""
    model_config: Json = {}
    """How the model is to work, such as how long it thinks."""
    place: str = ""
    label: str = ""
    """Of several hosts: where it is to run, as for a session that a person starts."""


class AutomationPlan(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A trigger, or several in `on` (without any it starts by hand), what to start (exactly one) and the rules."""

    title: str = ""
    on: list[Trigger] = []
    """Several triggers, in place of the four that follow."""
    schedule: Schedule | None = None
    hook: Hook | None = None
    files: FilesTrigger | None = None
    after: After | None = None
    job: JobAction | None = None
    prompt: PromptAction | None = None
    missed: Missed = "last"
    """What becomes of the times at which no host ran."""
    missed_limit: int = 10
    """With `all`: so many at most, the last ones."""
    overlap: Overlap | None = None
    """What happens when the run before is not over. Absent: `queue` for `hook` and `after`, else `skip`."""
    parallel: int = 2
    """With `parallel`: so many concurrently."""
    stop_after_failures: int = 5
    """Failures in a row; 0: never."""
    stop_after_runs: int = 0
    """Runs since it was last switched on, those by hand not counted; 0: never."""
    stop_at: str = ""
    """It starts nothing any more from then on; as `at` of a schedule, in its zone."""
    budget: Budget = Budget()
    """What each of its runs may use; when it is spent, the agent waits and a person is asked."""
    keep_days: int = 30
    """How long its runs stay in the history."""
    keep_runs: int = 200
    """How many at most."""


class AutomationCreated(Event, frozen=True, tag="automation.created"):
    automation: str
    name: str
    """Unique among those that are there; a hook's address has it."""
    plan: AutomationPlan
    by: str
    scopes: list[str]
    """What its runs may do: the scopes that what it starts needs, and that its author had."""
    source: Literal["door", "file"] = "door"
    uri: str = ""
    """What its client calls it."""
    meta: Json = {}
    enabled: bool = True


class AutomationEdited(Event, frozen=True, tag="automation.edited"):
    name: str
    plan: AutomationPlan
    by: str
    scopes: list[str]
    meta: Json = {}


class AutomationPaused(Event, frozen=True, tag="automation.paused"):
    by: str
    """`host`: automatically."""
    reason: str = ""
    failed: bool = False
    """Automatically, because too many runs failed."""


class AutomationResumed(Event, frozen=True, tag="automation.resumed"):
    """Missed times are not repeated."""

    by: str


class HookRotated(Event, frozen=True, tag="automation.hook.rotated"):
    """The hook has another secret; the old one is void."""

    by: str


class RunReserved(Event, frozen=True, tag="automation.run.claimed"):
    """Together with `run.claimed`, in one commit: this due time, delivery or cause has its run."""

    piece_of = "run"

    run: str
    cause: Cause
    due: int
    """Milliseconds since the epoch. For a schedule the time that it names, else when it was caused."""
    ref: str = ""
    """The run or job that it comes after."""


class RunsMissed(Event, frozen=True, tag="automation.missed"):
    """Due times that got no run."""

    count: int
    first: int
    last: int
    reason: str
    more: bool = False
    """There were more than were counted."""


class RunSettled(Event, frozen=True, tag="automation.run.ended"):
    """Together with `run.ended` or `run.skipped`."""

    piece_of = "run"

    run: str
    outcome: RunOutcome


class AutomationDeleted(Event, frozen=True, tag="automation.deleted"):
    by: str


class RunClaimed(Event, frozen=True, tag="run.claimed"):
    """On `run/ID`, before anything starts. Carries what is started: the plan may change later."""

    run: str
    automation: str
    name: str
    """Of the automation."""
    cause: Cause
    due: int
    by: str
    """Who started it: `automation:ID` by its trigger."""
    job: JobAction | None = None
    prompt: PromptAction | None = None
    scopes: list[str] = []
    late: bool = False
    """It makes up for a time that was missed."""
    depth: int = 0
    """How many automations started one another before this one."""
    ref: str = ""
    delivery: str = ""
    """The id of a hook's delivery."""
    author: str = ""
    """Who wrote the automation last: its runs count to them."""
    budget: Budget = Budget()
    payload: Any = None
    """Of the delivery, for the inputs of a job."""


class RunSkipped(Event, frozen=True, tag="run.skipped"):
    reason: str


class RunStarted(Event, frozen=True, tag="run.started"):
    session: str = ""
    turn: str = ""
    job: str = ""


class RunEnded(Event, frozen=True, tag="run.ended"):
    outcome: EndOutcome
    error: str = ""
    input: int = 0
    """Tokens, as far as the agents reported them."""
    output: int = 0
    cost: float | None = None
    """In dollars, as the agents reported it or by list prices; null: unknown."""
    estimated: bool = False
    """Some of it is by list prices."""
    by: str = ""
    """Who ended it, if a person did."""


EVENTS: tuple[type[Event], ...] = (
    AutomationCreated,
    AutomationEdited,
    AutomationPaused,
    AutomationResumed,
    HookRotated,
    RunReserved,
    RunsMissed,
    RunSettled,
    AutomationDeleted,
    RunClaimed,
    RunSkipped,
    RunStarted,
    RunEnded,
)
register_events(*EVENTS)
