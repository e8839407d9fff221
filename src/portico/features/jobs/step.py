"""The steps of a workflow as the executor runs them. `workflow/translate.py` makes them from a file; they are stored in
the log with the job. Texts are templates (`workflow/template.py`)."""

from typing import Any, Literal

from msgspec import field

from portico.features.jobs.part import Count, NotNegative, Part, Positive, Seconds
from portico.kernel.events import Budget

Cause = Literal["agent", "check", "run"]
FolderKind = Literal["shared", "worktree"]
MergeKind = Literal["fail", "ask", "agent"]
InputType = Literal["text", "number", "boolean", "choice", "list", "file", "secret"]


class Retry(Part, frozen=True, kw_only=True):
    """How often a step is tried again, and after which wait."""

    times: Count = 0
    """Attempts after the first one."""
    wait: NotNegative = 2.0
    """Seconds before the second attempt."""
    backoff: Positive = 4
    """Each further wait is this many times longer."""
    most: Seconds = 480.0
    """The longest wait, in seconds."""
    on: list[Cause] = field(default_factory=lambda: ["agent", "check", "run"])
    """After which failures: of the agent, of a check, of a command or request."""

    def seconds(self, failures: int) -> float:
        """The wait after that many failures."""
        return float(min(self.most, self.wait * self.backoff ** (failures - 1)))


class PromptDo(Part, frozen=True, kw_only=True, tag_field="kind", tag="prompt"):
    """An agent's turn."""

    task: str
    """Its prompt and checks: the name of a task of the job."""
    session: str = ""
    """The first step of those that share a session. Empty: its session is for this step alone."""
    same: bool = False
    """It continues that session. The first step does not."""


class RunDo(Part, frozen=True, kw_only=True, tag_field="kind", tag="run"):
    """A command."""

    command: str | list[str]
    exit: list[int] = field(default_factory=lambda: [0])
    stdin: str = ""


class HttpDo(Part, frozen=True, kw_only=True, tag_field="kind", tag="http"):
    """One request."""

    method: str = "GET"
    url: str
    headers: dict[str, str] = {}
    json: Any = None
    body: str = ""


class AskDo(Part, frozen=True, kw_only=True, tag_field="kind", tag="ask"):
    """A question to a person."""

    question: str
    choices: list[str] = []
    people: list[str] = []
    expires: Seconds | None = None
    show: list[str] = []


class WaitDo(Part, frozen=True, kw_only=True, tag_field="kind", tag="wait"):
    """A wait: for a time, until a time, or for a hook."""

    seconds: float | str | None = None
    until: str | None = None
    hook: str | None = None


class CallDo(Part, frozen=True, kw_only=True, tag_field="kind", tag="call"):
    """Another job."""

    job: str
    inputs: dict[str, Any] = {}


class MergeDo(Part, frozen=True, kw_only=True, tag_field="kind", tag="merge"):
    """Merge the worktrees of the lanes at the path of this step into the folder around them, in their order."""

    how: MergeKind = "fail"
    task: str = ""
    """With `agent`: the task that resolves the conflict."""


Do = PromptDo | RunDo | HttpDo | AskDo | WaitDo | CallDo | MergeDo


class FlowStep(Part, frozen=True, kw_only=True, tag_field="kind", tag="Step"):
    """One step without children. Settings of the steps around it and of the file are already included."""

    work_id_in_job: int = -1
    id: str
    """Its result is `steps.ID`."""
    name: str
    """A template; empty where the step has none."""
    do: Do
    output: Literal["text", "json"] = "text"
    schema: dict[str, Any] | None = None
    retry: Retry | None = None
    timeout: Seconds | None = None
    budget: Budget = Budget()
    env: dict[str, str] = {}
    secrets: list[str] = []
    secret_inputs: list[str] = []
    """The secret inputs of the job that this step names."""
    label: str = ""
    sandbox: str = ""
    may_fail: bool = False
    on_interrupt: Literal["retry", "fail", "ask"] = "retry"
    at: str = ""
    """A template: the commit at which it works, in a separate folder."""


class JobInput(Part, frozen=True, kw_only=True):
    """A value that a job takes when it starts."""

    type: InputType = "text"
    about: str = ""
    default: Any = None
    """Without one the input is required, unless `required` is false."""
    required: bool | None = None
    choices: list[str] = []
    """With `type: choice`."""
    pointer: str = field(default="", name="from")
    """A JSON pointer into the payload of the hook that started the job."""

    @property
    def needed(self) -> bool:
        return self.default is None if self.required is None else self.required


class Flow(Part, frozen=True, kw_only=True):
    """What a workflow adds to its job."""

    about: str = ""
    inputs: dict[str, JobInput] = {}
    result: Any = None
    artifacts: list[str] = []
    folder: FolderKind = "shared"
    branch: str = ""
    env: dict[str, str] = {}
    on: list[dict[str, Any]] = []
    """Triggers. They are active when a person has applied them (`portico automations apply`)."""
    file: str = ""
    """The path of the file, for messages."""
    source: str = ""
    """The text of the file."""
    ids: list[str] = []
    """The ids of all steps."""
