"""Which settings can be changed through the host, and the form of their values.

The attack: a stolen admin token, or a page that holds one, changes who can log in, which programs start or which
addresses are trusted, and keeps that access after the token is revoked. Such settings are changed in the file only.
"""

from types import UnionType
from typing import Any, Literal, get_args, get_origin

from portico.server.settings_load import describe, type_of

EDITABLE = frozenset(
    {
        "default_agent",
        "models",
        "agent.approval_timeout",
        "agent.capture_changes",
        "agent.enabled",
        "agent.max_memory_mb",
        "agent.max_processes",
        "agent.max_steps",
        "agent.require_approval",
        "agent.turn_idle_timeout",
        "approvals.allow_commands",
        "approvals.ask_commands",
        "approvals.deny_commands",
        "approvals.edits",
        "approvals.reads",
        "budgets.automation",
        "budgets.day",
        "budgets.job",
        "budgets.month",
        "budgets.person_day",
        "budgets.person_month",
        "budgets.session",
        "budgets.turn",
        "http.inject_into_chat",
        "log.level",
        "log.retention_hours",
        "quotas.disk_mb",
        "quotas.sessions",
        "quotas.terminals",
        "quotas.turns",
        "retention.archive_days",
        "retention.delete_days",
    }
)

Form = Literal["text", "number", "boolean", "list", "choice", "table"]
"""How a page edits a value."""


def needs_restart(key: str) -> bool:
    return "Read at start" in describe(key)


def form_of(key: str) -> Form:
    kind = type_of(key)
    if isinstance(kind, UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    if get_origin(kind) is Literal:
        return "choice"
    forms: dict[Any, Form] = {bool: "boolean", int: "number", float: "number", str: "text", list: "list"}
    return forms.get(get_origin(kind) or kind, "table")


def choices_of(key: str) -> list[str]:
    kind = type_of(key)
    return [str(each) for each in get_args(kind)] if get_origin(kind) is Literal else []
