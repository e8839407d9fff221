"""The keys of a workflow file. The reference (`docs/reference/workflow.md`) is generated from these structs. `KEY`
names the key that makes a step one of its kind."""

from typing import Any, ClassVar, Literal

from msgspec import Struct, field

from portico.features.jobs.part import Count, Positive, Seconds
from portico.features.jobs.step import FolderKind, InputType, JobInput, MergeKind, Retry
from portico.kernel.events import Budget

__all__ = ["InputType", "JobInput", "Retry"]


class Keys(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A group of keys in a file."""


class FilesKeys(Keys, frozen=True, kw_only=True):
    """Globs below the folder. Only files that this step changed count as changed."""

    exist: list[str] = []
    absent: list[str] = []
    changed_only: list[str] = []
    """The step changed nothing else."""
    max_changed_lines: Count | None = None
    """Added and removed lines together."""


class SchemaKeys(Keys, frozen=True, kw_only=True):
    """A JSON file, or the JSON in the agent's answer, fits a JSON Schema."""

    schema: dict[str, Any]
    file: str | None = None


class ModelKeys(Keys, frozen=True, kw_only=True):
    """Models judge the work, each in a separate session."""

    prompt: str
    """What must be true. The judge sees the folder."""
    judges: list[str] = []
    """Agents or models; one, if empty."""
    quorum: Positive | None = None
    """How many must agree; all, if absent."""


class PersonKeys(Keys, frozen=True, kw_only=True):
    """A person looks at the work and answers yes or no."""

    question: str
    people: list[str] = []
    expires: Seconds | None = None
    on_expiry: Literal["fail", "pass"] = "fail"


class CheckKeys(Keys, frozen=True, kw_only=True):
    """One check; exactly one of these keys."""

    run: str | None = None
    """A command that must exit with 0."""
    files: FilesKeys | None = None
    schema: SchemaKeys | None = None
    model: str | ModelKeys | None = None
    """A text is the prompt of one judge."""
    person: str | PersonKeys | None = None
    """A text is the question."""


class OutputSchema(Keys, frozen=True, kw_only=True):
    """The output is JSON that fits this schema. `{name: string, tags: [string]}` is short for a JSON Schema."""

    schema: dict[str, Any]


class SettingKeys(Keys, frozen=True, kw_only=True):
    """Settings of the file and of every step. The nearest one applies; `env` is merged by name."""

    agent: str = ""
    model: str = ""
    timeout: Seconds | None = None
    """Seconds. On the file: the whole run. On a step: that step. On a step with steps: each of them."""
    budget: Budget | None = None
    """On the file: the whole run. On a step: its session. On a step with steps: each of them."""
    env: dict[str, str] = {}
    """Environment variables of commands; the values are templates."""
    label: str = ""
    """With several hosts: only a host with this label runs it."""
    sandbox: Literal["off", "project", "strict"] | None = None
    """Of agents; the default of the host, if absent."""


class StepKeys(SettingKeys, frozen=True, kw_only=True, tag_field="kind"):
    """Keys of every step."""

    KEY: ClassVar[str] = ""

    id: str = ""
    """Letters, digits and _. Its result is `steps.ID`."""
    name: str = ""
    """Shown in lists; a template. On `each`: the name of each item."""
    when: str | bool | None = field(default=None, name="if")
    """The step runs if this template gives a true value."""
    may_fail: bool = False
    """A failure does not end the job; later steps can read `steps.ID.outcome`."""


class LeafKeys(StepKeys, frozen=True, kw_only=True, tag_field="kind"):
    """Keys of every step without steps of its own."""

    retry: Retry | None = None
    secrets: list[str] = []
    """Names of secrets, as environment variables of this step only."""
    on_interrupt: Literal["retry", "fail", "ask"] = "retry"
    """After the host stopped in the middle of the step."""


class PromptKeys(LeafKeys, frozen=True, kw_only=True, tag="prompt"):
    """An agent's turn. Succeeds if the turn completes and the checks pass."""

    KEY: ClassVar[str] = "prompt"

    prompt: str
    session: str = "new"
    """`same`: the session of the nearest prompt before it that has the same agent. The id of a prompt before it: the
    session of that one."""
    at: str = ""
    """A commit, such as `{{ steps.ID.commit }}`: the step works on exactly that, in a separate folder. What it changes
    there is not kept."""
    check: list[CheckKeys] = []
    output: Literal["text", "json"] | OutputSchema = "text"
    fallback: list[str] = []
    """Agents or models that take over if the first one fails."""


class RunKeys(LeafKeys, frozen=True, kw_only=True, tag="run"):
    """A command. Its standard output is the output. Succeeds if it exits with 0."""

    KEY: ClassVar[str] = "run"

    run: str | list[str]
    """A shell line, or a list of arguments without a shell. Values are quoted automatically."""
    exit: list[int] = field(default_factory=lambda: [0])
    """Exit codes that count as success."""
    stdin: str = ""
    at: str = ""
    """A commit: the command runs on exactly that, in a separate folder. What it changes there is not kept."""
    output: Literal["text", "json"] | OutputSchema = "text"


class HttpRequest(Keys, frozen=True, kw_only=True):
    """One HTTP request."""

    url: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "GET"
    headers: dict[str, str] = {}
    json: Any = None
    """Sent as JSON; texts in it are templates."""
    body: str = ""


class HttpKeys(LeafKeys, frozen=True, kw_only=True, tag="http"):
    """One HTTP request. Its response is the output. Succeeds if the status is 2xx."""

    KEY: ClassVar[str] = "http"

    http: HttpRequest
    output: Literal["text", "json"] | OutputSchema = "text"


class AskKeys(LeafKeys, frozen=True, kw_only=True, tag="ask"):
    """A question to a person. The answer is `steps.ID.answer`. Succeeds if it is answered."""

    KEY: ClassVar[str] = "ask"

    ask: str
    choices: list[str] = []
    """Any text, if empty."""
    people: list[str] = []
    """Names of people or tokens whose answers count; anyone who may answer, if empty."""
    expires: Seconds | None = None
    """Seconds until the question fails without an answer."""
    show: list[str] = []
    """What the person sees: `changes`, `file:PATH` (also a picture), or any template."""


class WaitTime(Keys, frozen=True, kw_only=True):
    """Exactly one of these keys."""

    seconds: float | str | None = None
    until: str | None = None
    """ISO 8601 with a time zone."""
    hook: str | None = None
    """`POST /v1/jobs/ID/hooks/NAME`, which may be called before the step starts. In a loop, once for each round."""


class WaitKeys(LeafKeys, frozen=True, kw_only=True, tag="wait"):
    """A wait. A number is short for `{seconds: …}`."""

    KEY: ClassVar[str] = "wait"

    wait: float | str | WaitTime


class CallKeys(LeafKeys, frozen=True, kw_only=True, tag="call"):
    """Another job of this folder. Its result is the output."""

    KEY: ClassVar[str] = "call"

    call: str
    inputs: dict[str, Any] = {}


class LaneKeys(StepKeys, frozen=True, kw_only=True, tag_field="kind"):
    """Keys of steps that run lanes."""

    fail: Literal["at_end", "at_once"] = "at_end"
    """`at_end`: all lanes run to their end, then the step fails if one did. `at_once`: the first failure stops all."""
    folder: FolderKind = "shared"
    """`worktree`: a separate branch and folder for each lane, merged in order when all have ended."""
    merge: MergeKind = "fail"
    """A conflict fails the step, asks a person, or is given to an agent."""


class EachKeys(LaneKeys, frozen=True, kw_only=True, tag="each"):
    """The same steps for every item. `steps.ID.output` lists the outputs, `.failed` the items that failed."""

    KEY: ClassVar[str] = "each"

    each: str | list[Any]
    """A list, or a template that gives one. `files:GLOB` lists files."""
    item: str = field(default="item", name="as")
    """The name of the item in templates."""
    parallel: Positive = 1
    steps: list["AnyStep"]


class ParallelKeys(LaneKeys, frozen=True, kw_only=True, tag="parallel"):
    """Branches that run at the same time. A branch is a step, or a step with `steps`."""

    KEY: ClassVar[str] = "parallel"

    parallel: list["AnyStep"]


class Repeat(Keys, frozen=True, kw_only=True):
    """The end of a loop."""

    most: Positive
    """The most rounds."""
    until: str | None = None
    """A template. The loop ends when it gives a true value after a round, and fails if it never does."""


class LoopKeys(StepKeys, frozen=True, kw_only=True, tag="loop"):
    """Steps that are repeated."""

    KEY: ClassVar[str] = "loop"

    loop: Repeat
    steps: list["AnyStep"]


class StepsKeys(StepKeys, frozen=True, kw_only=True, tag="steps"):
    """A group of steps, usually with `if`."""

    KEY: ClassVar[str] = "steps"

    steps: list["AnyStep"]
    otherwise: list["AnyStep"] = field(default_factory=list, name="else")
    """Steps that run if the condition of `if` does not hold."""


AnyStep = (
    EachKeys | ParallelKeys | LoopKeys | PromptKeys | RunKeys | HttpKeys | AskKeys | WaitKeys | CallKeys | StepsKeys
)
KINDS: dict[str, type[StepKeys]] = {
    kind.KEY: kind
    for kind in (
        *(EachKeys, LoopKeys, PromptKeys, RunKeys, HttpKeys, AskKeys, WaitKeys, CallKeys),
        *(ParallelKeys, StepsKeys),
    )
}
"""By the key that decides, in the order in which they are looked for: `each` and `loop` also have `steps`."""


class Workflow(SettingKeys, frozen=True, kw_only=True):
    """One file, one job."""

    job: str = ""
    """Its name: that of the file, if absent."""
    about: str = ""
    inputs: dict[str, JobInput] = {}
    on: list[dict[str, Any]] | dict[str, Any] = []
    """Triggers of the automation that starts the job."""
    folder: FolderKind = "shared"
    """`worktree`: every run has a separate branch and folder."""
    branch: str = ""
    """The name of that branch, a template; `portico/JOB/ID`, if absent."""
    steps: list[AnyStep]
    result: Any = None
    """What the job is for: a template, or data with templates."""
    artifacts: list[str] = []
    """Globs of files to keep."""


class MarkdownKeys(SettingKeys, frozen=True, kw_only=True):
    """The front matter of a Markdown file. The text below it is the prompt of the only step."""

    job: str = ""
    about: str = ""
    inputs: dict[str, JobInput] = {}
    on: list[dict[str, Any]] | dict[str, Any] = []
    folder: FolderKind = "shared"
    branch: str = ""
    check: list[CheckKeys] = []
    retry: Retry | None = None
    output: Literal["text", "json"] | OutputSchema = "text"
    result: Any = None
    """The agent's answer, if absent."""
    artifacts: list[str] = []
