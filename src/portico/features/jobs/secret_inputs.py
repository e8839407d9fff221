"""Which values of a command are secrets, for hosts that forward it. Only its workflow declares that."""

from pathlib import Path

from portico.features.jobs.commands import StartJob
from portico.features.jobs.workflow.files import find_workflow, load_text, load_workflow
from portico.features.jobs.workflow.inputs import secrets_of
from portico.kernel.errors import PorticoError


def given_secrets(command: StartJob) -> list[str]:
    """The secret inputs that a command contains, if its workflow is on this host."""
    try:
        path = None if command.workflow else find_workflow(Path(command.cwd), command.job)
        if not command.inputs or not (path or command.workflow):
            return []
        entry = load_workflow(path) if path else load_text(command.workflow, f"<{command.job}>", command.job)
    except PorticoError:  # the start of the job reports it
        return []
    flow = entry.jobs[command.job].flow
    assert flow is not None
    return [name for name in sorted(secrets_of(flow.inputs)) if command.inputs.get(name)]
