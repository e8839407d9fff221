"""The settings that clients see: those of the host (`root/configChanged`) and those of a session.

Approval settings are here because editors store and send them: which edits and commands need no approval.
"""

from pathlib import Path

from portico.doors.ahp.wire.record import Json
from portico.kernel.agent import AgentInfo
from portico.kernel.errors import PorticoError
from portico.workspace.git import git, repository

ROOT_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "globalAutoApproveEnabled": {
            "type": "boolean",
            "title": "Approve everything",
            "description": "Every tool call passes unasked, in every session.",
            "default": False,
        },
        "editAutoApprovePatterns": {
            "type": "object",
            "title": "Edits that pass unasked",
            "description": "Globs below the working directory, each true or false; the last one that matches counts.",
            "additionalProperties": {"type": "boolean", "title": "Passes"},
        },
        "terminalAutoApproveRules": {
            "type": "object",
            "title": "Commands that pass unasked",
            "description": "Command names or /regular expressions/, each true (passes) or false (always asks).",
            "additionalProperties": {"type": "boolean", "title": "Passes"},
        },
    },
}


def session_schema(info: AgentInfo | None, sandbox: Json, *, is_git: bool, isolation: object = "folder") -> Json:
    """`sandbox`: the property for it (`sandboxes.offer`)."""
    properties: Json = {
        "isolation": {
            "type": "string",
            "title": "Where it works",
            "enum": ["folder", "worktree"] if is_git else ["folder"],
            "enumLabels": ["The folder itself", "A git worktree of its own"] if is_git else ["The folder itself"],
            "default": "folder",
            "sessionMutable": False,
        },
        "autoApprove": {
            "type": "string",
            "title": "Approvals",
            "enum": ["default", "autoApprove"],
            "enumLabels": ["Ask, by the rules", "Approve everything"],
            "default": "default",
            "sessionMutable": True,
        },
        **sandbox,
    }
    if is_git:
        properties["branch"] = {
            "type": "string",
            "title": "Branch",
            "description": "Where a worktree starts.",
            "enumDynamic": True,
            "sessionMutable": False,
            **({} if isolation == "worktree" else {"readOnly": True}),  # the branch of the folder is fixed
        }
    own = (info.config.get("properties") if info is not None else None) or {}
    for name, schema in own.items():
        properties[name] = {"type": "string", "title": name, "sessionMutable": True, **schema}
    return {"type": "object", "properties": properties}


def values(schema: Json, given: Json) -> Json:
    """The given values, and the defaults of the others."""
    defaults = {name: each["default"] for name, each in schema["properties"].items() if "default" in each}
    return {**defaults, **given}


async def branches(folder: Path) -> list[str]:
    found = await git(folder, "for-each-ref", "--sort=-committerdate", "--format=%(refname:short)", "refs/heads")
    return found.split()


async def is_git(folder: Path) -> bool:
    try:
        await repository(folder)
    except PorticoError:  # no repository, not its own, or no git at all: then there is nothing to branch from
        return False
    return True
