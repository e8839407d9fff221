"""What an entry is made of: models, prompt variables, tasks, jobs (trees of works) and the grid of buttons.

The structs are the wire form: msgspec gives them the camelCase keys, drops absent optional parts, and writes a work
with its `kind` first. They are frozen, so validation returns a new entry and never changes an existing one.
Entries from outside are read with `load.py`, which reports the exact position of every mistake.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import field
from msgspec.structs import replace

from portico.features.jobs.part import Count, NotNegative, Part, Positive, Seconds
from portico.features.jobs.step import Flow, FlowStep, FolderKind
from portico.kernel.errors import BadRequest
from portico.kernel.events import Budget
from portico.sandbox.policy import Mode

TOOL_PREPARE_DOCUMENT = "job_prepare_document"
TOOL_TRUE = "job_boolean_true"
TOOL_FALSE = "job_boolean_false"
TOOL_PREREQUISITE_FAILED = "job_prerequisite_failed"
JOB_TOOLS = (TOOL_PREPARE_DOCUMENT, TOOL_TRUE, TOOL_FALSE, TOOL_PREREQUISITE_FAILED)

RUNTIME_VARIABLES = (
    "user-input",
    "task-model",
    "reported-document",
    "reported-true-reason",
    "reported-false-reason",
    "check-output",
)

ANSWER, ITEM = "answer", "item"
"""Variables of entries with an Ask or an Each; elsewhere these names are free."""

NAME_CHARS = 60
"""Of a question, where it is the name of its work."""

DEFAULT_CRITERIA_RETRIES = 5
RETRY_SECONDS = [2.0, 8.0, 30.0, 120.0, 480.0]
"""A vendor that is overloaded needs seconds, one that is down needs minutes."""

Prompt = list[str]
OnInterrupt = Literal["retry", "fail", "ask"]


class EntryError(BadRequest):
    """A mistake in an entry; `field` is its code path and begins the message."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(f"{path}: {text}", field=path)
        self.path = path
        self.text = text


class Model(Part, frozen=True, kw_only=True):
    """A model, by its category in `models` or by its literal id; exactly one of the two."""

    category: str | None = None
    id: str | None = None

    @property
    def label(self) -> str:
        return self.category or self.id or ""


class DrivingRetry(Part, frozen=True, kw_only=True):
    """How often a crashed driving session is tried again on this model."""

    model_id: str
    retries: Count


class Availability(Part, frozen=True, kw_only=True):
    """When the task may start at all."""

    condition: Prompt | None = None


class FailureAction(Part, frozen=True, kw_only=True):
    """What happens when the criteria are not met."""

    retry_times: Count
    additional_prompt: Prompt | None = None


class FilesCheck(Part, frozen=True, kw_only=True):
    """Globs below the working directory. What the task changed is known in a git work tree."""

    exist: list[str] = []
    absent: list[str] = []
    changed_only: list[str] = []
    """Nothing else was changed by the task."""
    max_changed_lines: Count | None = None
    """Added and removed ones, together."""


class SchemaCheck(Part, frozen=True, kw_only=True):
    """A JSON file below the working directory, or the JSON in the agent's last answer, fits the JSON Schema."""

    schema: dict[str, Any]
    file: str | None = None


class ModelCheck(Part, frozen=True, kw_only=True):
    """Judges answer a condition with the boolean tools, each in a session of its own; `quorum` of them say yes."""

    condition: Prompt
    judges: list[Model] = []
    """None: one, on another model than the worker's where the entry has one."""
    quorum: Positive | None = None
    """All of them, if absent."""


class PersonCheck(Part, frozen=True, kw_only=True):
    """A person looks at what was done and says yes."""

    question: Prompt
    people: list[str] = []
    """Names of tokens whose answers count; empty: anybody's who may answer questions."""
    expires: Seconds | None = None
    on_expiry: Literal["fail", "pass"] = "fail"


class Check(Part, frozen=True, kw_only=True):
    """One thing that must hold; exactly one of these."""

    command: str | list[str] | None = None
    files: FilesCheck | None = None
    schema: SchemaCheck | None = None
    model: ModelCheck | None = None
    person: PersonCheck | None = None


class Criteria(Part, frozen=True, kw_only=True):
    """When the task counts as done: tools that must have been called, a condition, a command that must succeed, and
    further checks. A plain list of checks means the same, with the default retries."""

    tool_executed: list[str] | None = None
    condition: Prompt | None = None
    run_condition_in_same_session: bool | None = None
    command: str | list[str] | None = None
    checks: list[Check] = []
    failure_action: FailureAction


class Output(Part, frozen=True, kw_only=True):
    """What a task leaves for later prompts: its last answer as `$name`, or the JSON in it, which has to fit."""

    name: str
    schema: dict[str, Any] | None = None


class Task(Part, frozen=True, kw_only=True):
    """One prompt for one model, with what must hold before and after."""

    model: Model | None = None
    fallback: list[Model] = []
    """Who does the work when the model cannot be had or crashes, in order."""
    prompt: Prompt
    require_user_input: bool = False
    availability: Availability | None = None
    criteria: Criteria | None = None
    output: Output | None = None
    """A plain name means `{name}`."""
    on_interrupt: OnInterrupt = "retry"
    timeout: Seconds | None = None
    label: str = ""
    """Of several hosts: only one with this label does it; the job's, if absent."""
    sandbox: Mode | None = None
    """Where its processes run; the job's, if absent."""


class Ref(Part, frozen=True, kw_only=True, tag_field="kind", tag="Ref"):
    """Runs one task. The id is given by validation: -1 means not numbered yet."""

    work_id_in_job: int = -1
    task_id: str
    model_override: Model | None = None


class Seq(Part, frozen=True, kw_only=True, tag_field="kind", tag="Seq"):
    """One after the other; the first failure ends it."""

    works: list["Work"]


class Par(Part, frozen=True, kw_only=True, tag_field="kind", tag="Par"):
    """All at once, or at most `concurrency` at a time; succeeds if all do."""

    works: list["Work"]
    concurrency: Positive | None = None


class Loop(Part, frozen=True, kw_only=True, tag_field="kind", tag="Loop"):
    """Goes on while the conditions give the expected result."""

    pre_condition: tuple[bool, "Work"] | None = None
    post_condition: tuple[bool, "Work"] | None = None
    body: "Work"
    max_iterations: Positive | None = None


class Alt(Part, frozen=True, kw_only=True, tag_field="kind", tag="Alt"):
    """The condition chooses the branch; a missing branch succeeds."""

    condition: "Work"
    true_work: "Work | None" = None
    false_work: "Work | None" = None


class Choice(Part, frozen=True, kw_only=True):
    """One of the answers of an Ask, and what follows it."""

    label: str
    work: "Work | None" = None


class Ask(Part, frozen=True, kw_only=True, tag_field="kind", tag="Ask"):
    """Asks a person. The answer is `$answer` from then on, and chooses a branch where there are choices."""

    work_id_in_job: int = -1
    question: Prompt
    choices: list[Choice] = []
    """None: any text."""
    people: list[str] = []
    """Names of tokens whose answers count; empty: anybody's who may answer questions."""
    expires: Seconds | None = None
    """After so many seconds without an answer it has failed."""


class Wait(Part, frozen=True, kw_only=True, tag_field="kind", tag="Wait"):
    """Waits so long, until then, or for somebody to call the hook."""

    work_id_in_job: int = -1
    seconds: Seconds | None = None
    until: str | None = None
    """ISO 8601 with its time zone."""
    hook: str | None = None
    """Its name: `POST /v1/jobs/ID/hooks/NAME`, which may come before the wait begins."""


class Each(Part, frozen=True, kw_only=True, tag_field="kind", tag="Each"):
    """The same work for every item, which is `$item` in its prompts; succeeds if all do."""

    files: str | None = None
    """A glob below the working directory."""
    output: str | None = None
    """The name of an output that is a JSON array."""
    items: list[str] | None = None
    body: "Work"
    concurrency: Positive = 1


class If(Part, frozen=True, kw_only=True, tag_field="kind", tag="If"):
    """Of a workflow: steps that run if a template gives a true value, and others if not."""

    id: str = ""
    when: str | None = None
    """None: always."""
    then: "Work"
    otherwise: "Work | None" = None
    may_fail: bool = False


class Again(Part, frozen=True, kw_only=True, tag_field="kind", tag="Again"):
    """Of a workflow: steps that are repeated until a template gives a true value; fails if it never does."""

    id: str = ""
    most: Positive
    until: str | None = None
    """None: exactly `most` rounds."""
    body: "Work"
    may_fail: bool = False


class Over(Part, frozen=True, kw_only=True, tag_field="kind", tag="Over"):
    """Of a workflow: the same steps for every item."""

    id: str
    each: Any
    """A list, or a template that gives one."""
    item: str = ITEM
    """The name of the item in templates."""
    name: str = ""
    parallel: Positive = 1
    at_once: bool = False
    """The first failed item stops the others."""
    folder: FolderKind = "shared"
    merge: FlowStep | None = None
    body: "Work"
    may_fail: bool = False


class Branches(Part, frozen=True, kw_only=True, tag_field="kind", tag="Branches"):
    """Of a workflow: branches that run at the same time."""

    id: str
    names: list[str] = []
    at_once: bool = False
    folder: FolderKind = "shared"
    merge: FlowStep | None = None
    works: list["Work"]
    may_fail: bool = False


Work = Ref | Seq | Par | Loop | Alt | Ask | Wait | Each | FlowStep | If | Again | Over | Branches
Leaf = Ref | Ask | Wait | FlowStep
"""Works without children. Each has a number."""
Flowing = If | Again | Over | Branches
"""Control flow of workflows."""
WORKFLOW_KINDS = frozenset({"Step", "If", "Again", "Over", "Branches"})
"""Kinds that only a workflow file can make. An entry file must not contain them."""


class Job(Part, frozen=True, kw_only=True):
    """A tree of works. `requireUserInput` follows from its tasks and is filled in by validation."""

    require_user_input: bool | None = None
    work: Work
    timeout: Seconds | None = None
    retry_seconds: list[NotNegative] | None = None
    """The waits between the attempts of an agent that failed; the last one counts for all further attempts. Absent:
    2 s, 8 s, 30 s, 2 min, 8 min."""
    budget: Budget = Budget()
    """What all its tasks may use together; when it is spent, they wait and a person is asked."""
    place: str = ""
    """Of several hosts: where it runs; where its folder is, if absent."""
    label: str = ""
    """Of the hosts that do its works, where their tasks name none."""
    sandbox: Mode | None = None
    """Where the processes of its tasks run; the host's default, if absent."""
    flow: Flow | None = None
    """Of a workflow; an entry file must not contain it."""


class GridColumn(Part, frozen=True, kw_only=True):
    """A button: its text and the job it starts."""

    name: str
    job_name: str


class GridRow(Part, frozen=True, kw_only=True):
    """A row of buttons; null leaves a gap."""

    keyword: str
    jobs: list[GridColumn | None]


class Entry(Part, frozen=True, kw_only=True):
    """Everything a host can run for its users."""

    schema: str | None = field(name="$schema", default=None)
    models: dict[str, str] = {}
    driving_session_retries: list[DrivingRetry] = []
    prompt_variables: dict[str, Prompt] = {}
    tasks: dict[str, Task]
    jobs: dict[str, Job] = {}
    grid: list[GridRow]


_CHILDREN: dict[type, tuple[str, ...]] = {
    Seq: ("works",),
    Par: ("works",),
    Loop: ("pre_condition", "post_condition", "body"),
    Alt: ("condition", "true_work", "false_work"),
    Ask: ("choices",),
    Each: ("body",),
    If: ("then", "otherwise"),
    Again: ("body",),
    Over: ("body", "merge"),
    Branches: ("works", "merge"),
}
"""Where works lie in a work, in the order of ids and checks: the conditions of a Loop come before its body."""


def rebuilt(work: Work, change: Callable[[Work, str], Work]) -> Work:
    """The work with its direct children changed; `change` gets each child and the key that leads to it."""
    keys = dict(zip(work.__struct_fields__, work.__struct_encode_fields__, strict=True))
    names = _CHILDREN.get(type(work), ())
    return replace(work, **{name: _changed(getattr(work, name), f".{keys[name]}", change) for name in names})


def _changed(found: Any, key: str, change: Callable[[Work, str], Work]) -> Any:
    match found:
        case None:
            return None
        case list():
            return [_changed(each, f"{key}[{index}]", change) for index, each in enumerate(found)]
        case bool() as expected, condition:
            return expected, change(condition, f"{key}[1]")
        case Choice():
            return replace(found, work=_changed(found.work, f"{key}.work", change))
    return change(found, key)


def parts_of(work: Work) -> list[tuple[str, Work]]:
    """The direct children of a work with the key that leads to each."""
    found: list[tuple[str, Work]] = []

    def note(child: Work, key: str) -> Work:
        found.append((key, child))
        return child

    rebuilt(work, note)
    return found


def leaves_of(work: Work) -> Iterator[Leaf]:
    """Every work with a number, in the order of numbers."""
    if isinstance(work, Leaf):
        yield work
    for _, child in parts_of(work):
        yield from leaves_of(child)


def name_of(leaf: Leaf) -> str:
    """What lists call it: its task, its question, or how long it waits."""
    match leaf:
        case Ref():
            return leaf.task_id
        case Ask():
            line = leaf.question[0].partition("\n")[0]
            return line if len(line) <= NAME_CHARS else line[: NAME_CHARS - 1] + "…"
        case Wait():
            if leaf.hook is not None:
                return f"wait for {leaf.hook}"
            return f"wait until {leaf.until}" if leaf.until is not None else f"wait {leaf.seconds:g} s"
        case FlowStep():
            return leaf.name


def refs_of(work: Work) -> Iterator[Ref]:
    """Every task of a work, in the order of ids."""
    return (leaf for leaf in leaves_of(work) if isinstance(leaf, Ref))


def labels_of(entry: Entry, name: str) -> dict[str, str]:
    """By task or step: the label that a host needs to run it, where it needs one."""
    job = entry.jobs[name]
    found = {ref.task_id: entry.tasks[ref.task_id].label or job.label for ref in refs_of(job.work)}
    found |= {leaf.id: leaf.label or job.label for leaf in leaves_of(job.work) if isinstance(leaf, FlowStep)}
    return {task: needed for task, needed in found.items() if needed}


def sandboxes_of(entry: Entry, name: str) -> set[str]:
    """The sandboxes that its tasks and steps name."""
    job = entry.jobs[name]
    found: set[str | None] = {entry.tasks[ref.task_id].sandbox or job.sandbox for ref in refs_of(job.work)}
    found |= {leaf.sandbox for leaf in leaves_of(job.work) if isinstance(leaf, FlowStep)}
    return {mode for mode in found if mode}


def to_json(entry: Entry) -> bytes:
    """The entry as a JSON file that loads to the same entry."""
    return msgspec.json.format(msgspec.json.encode(entry), indent=2)
