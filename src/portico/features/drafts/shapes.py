"""What these commands and routes return."""

from msgspec import Struct

from portico.features.jobs.chart import ChartGraph
from portico.features.jobs.preview import PlannedJob
from portico.features.jobs.step import JobInput
from portico.features.jobs.workflow.problem import FileProblem


class WorkflowInfo(Struct, omit_defaults=True):
    """A workflow of a folder, or a recipe."""

    name: str
    about: str = ""
    steps: int = 0
    inputs: dict[str, JobInput] = {}
    mistake: str = ""
    """The first mistake of a file that cannot run."""


class Workflows(Struct):
    workflows: list[WorkflowInfo]


class Recipe(WorkflowInfo, kw_only=True):
    text: str


class Recipes(Struct):
    recipes: list[Recipe]


class PlannedWorkflow(Struct, omit_defaults=True):
    """The plan of a workflow, or its mistakes."""

    name: str
    text: str
    """Of the file."""
    inputs: dict[str, JobInput] = {}
    """What it takes."""
    chart: ChartGraph | None = None
    plan: PlannedJob | None = None
    missing: str = ""
    """What is wrong with the given inputs; the plan then shows those that are known."""
    mistakes: list[FileProblem] = []


class SavedWorkflow(Struct):
    name: str
    file: str


class DraftStarted(Struct):
    session: str
    """It writes the draft; `GET /v1/workflows/draft/{id}` returns what it has written."""


class WorkflowDraft(Struct, omit_defaults=True):
    """What the agent has written so far."""

    running: bool
    answers: int = 0
    found: PlannedWorkflow | None = None
    """The workflow of the last answer; absent before the first one."""
    next: str = ""
    """The message that reports the mistakes to the agent. Empty: the draft is valid, or there are no attempts left."""
    error: str = ""
    """Why the agent did not answer."""
