"""Commands of a person to the loop itself: `/files`, `/run CMD`, `/diag`, `/clear`. No model is asked."""

import shlex
from collections.abc import Sequence

import msgspec

from portico.agents.loop.act import perform_own
from portico.agents.loop.protocol import ModelAction
from portico.agents.loop.settings import Current
from portico.agents.loop.tools import LoopToolbox
from portico.kernel.errors import NotFound
from portico.kernel.events import Json
from portico.kernel.state import CallPart, SessionState
from portico.kernel.turn import Turn
from portico.workspace.search import find

SAMPLE = 10
"""Files that a diagnosis shows."""


async def execute(name: str, argument: str, turn: Turn, toolbox: LoopToolbox, current: Current, about: Json) -> None:
    match name:
        case "files":
            turn.text(await _files(turn))
        case "run":
            answer = await perform_own(turn, ModelAction("runCommand", {"command": argument}), toolbox, current)
            turn.text(answer)
        case "diag":
            turn.text(await _diagnosis(toolbox, current, about))
        case "clear":
            turn.text("A fresh conversation has begun; the old one stays stored.")
        case _:
            raise NotFound("command", f"/{name}")


async def _files(turn: Turn) -> str:
    """By git where there is git (shell edits included), else what our own tools have changed."""
    found = await turn.session.changes()
    if found.git:
        lines = [f"{each.status} {each.path} (+{each.added} -{each.removed})" for each in found.files]
    else:
        lines = sorted(_touched(turn.session.state))
    return "\n".join(lines) or "Nothing was changed in this conversation."


def _touched(state: SessionState) -> set[str]:
    calls = [part for turn in state.turns for part in turn.parts if isinstance(part, CallPart) and part.ok]
    return {msgspec.json.decode(call.input)["path"] for call in calls if call.tool in ("createFile", "editFile")}


async def _diagnosis(toolbox: LoopToolbox, current: Current, about: Json) -> str:
    project = toolbox.roots.project
    sample: list[str] = []
    for prefix, jail in toolbox.roots.parts():
        sample += [prefix + name for name in (await find(jail, "", SAMPLE)).paths]
    lines = [
        f"Project: {project}",
        f"Projects: {_list(about.get('projects', []))}",
        f"Allowed roots: {_list(current.agent.allowed_roots)}",
        f"Approvals: {current.agent.require_approval}; steps: {current.agent.max_steps}",
        f"Agent: loop; model: {about.get('model') or 'none'}",
        f"Models: {_list(about.get('models', []))}",
        f"Files found: {_list(sample[:SAMPLE])}",
    ]
    missing = about.get("missing")
    return "\n".join(lines + ([f"Missing: {missing}"] if missing else []))


def _list(values: Sequence[str]) -> str:
    return ", ".join(shlex.quote(each) for each in values) or "none"
