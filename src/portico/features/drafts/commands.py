"""Commands about workflows that have not started."""

from typing import Any

from portico.features.drafts.shapes import DraftStarted as DraftStarted
from portico.features.drafts.shapes import PlannedWorkflow as PlannedWorkflow
from portico.features.drafts.shapes import SavedWorkflow as SavedWorkflow
from portico.kernel.commands import Command, Http, NoLock, NoTool, register

_FILE = NoTool("A model writes a workflow as a file.")


class PlanWorkflow(Command, frozen=True, tag="workflow.plan"):
    """Check a workflow and return its chart and its plan. Nothing starts."""

    scope = "read"
    lock = NoLock("It reads a file or a text and writes nothing.")
    gives = PlannedWorkflow
    http = Http("POST", "/v1/workflows/plan")
    as_tool = _FILE
    errors = ("not_found",)

    name: str
    cwd: str = ""
    """The folder of the workflow; not needed with `text`."""
    text: str = ""
    """The text of a workflow; absent: the file `.portico/jobs/NAME` of the folder."""
    inputs: dict[str, Any] = {}


class SaveWorkflow(Command, frozen=True, tag="workflow.save"):
    """Write a valid workflow into `.portico/jobs` of a folder. Nothing starts."""

    scope = "files"
    lock = "feature"
    gives = SavedWorkflow
    http = Http("POST", "/v1/workflows", 201)
    as_tool = _FILE
    errors = ("already_exists",)

    cwd: str
    name: str
    text: str
    replace: bool = False
    """Replace a file of this name."""


class DraftWorkflow(Command, frozen=True, tag="workflow.draft"):
    """Let an agent write a workflow from a description, in a session that changes no files."""

    scope = "drive"
    lock = NoLock("It starts a session, which has its own id.")
    gives = DraftStarted
    http = Http("POST", "/v1/workflows/draft", 201)
    as_tool = _FILE
    errors = ("not_found", "conflict", "agent_failed", "agent_unavailable", "quota_exceeded")

    description: str
    cwd: str
    agent: str | None = None
    """The first one that is ready, when none is named."""
    model: str | None = None


register(PlanWorkflow, SaveWorkflow, DraftWorkflow)
