"""Which tools a model sees, and how they are marked.

A model chooses better among few tools. So there are three sets. The setting `doors.mcp_tools` selects one for the host,
and a token that names a set (`--tool ask`) has that one. Tools that a token names one by one are added to its set. A
set only hides tools: the scopes of the token are checked in any case.
"""

from typing import Literal, get_args

from portico.kernel.commands import Caller
from portico.kernel.events import Json

ToolSet = Literal["ask", "work", "all"]
SETS: tuple[ToolSet, ...] = get_args(ToolSet)

ASK = frozenset(
    {
        *("list_agents", "start_session", "send_message", "wait_session", "read_session"),
        *("answer", "read_changes", "cancel_turn"),
    }
)
"""To give work to other agents and to look at the result."""
WORK = ASK | {
    *("list_sessions", "change_session", "fork_session", "resume_turn", "close_session", "reopen_session"),
    *("edit_queued", "remove_queued", "steer_queued", "list_jobs", "read_job", "run_job", "stop_job", "resume_job"),
    *("retry_job", "list_automations", "read_automation", "run_automation", "answer_approval", "answer_question"),
}
"""Also to organize sessions, and to run jobs and automations."""

DESTRUCTIVE = frozenset(
    {
        *("delete_session", "truncate_session", "remove_folder", "remove_queued", "forget_project", "clear_project"),
        *("stop_job", "stop_task", "cancel_turn", "cancel_run", "delete_automation", "answer", "answer_approval"),
        *("answer_question", "answer_budget", "add_grant", "revoke_grant", "discard_changes", "write_file"),
        *("move_file", "delete_file", "copy_file", "run_command", "revoke_token", "remove_person", "erase_person"),
        *("apply_retention", "give_up_host", "drain_host", "remove_secret", "set_setting", "configure_session"),
    }
)
"""Tools whose effect can end work, lose data or grant a right. The others add something that can be removed again."""
REPEATABLE = frozenset(
    {
        *("rename_session", "change_session", "archive_session", "pin_session", "set_model", "configure_session"),
        *("close_session", "reopen_session", "delete_session", "cancel_turn", "stop_job", "stop_task", "make_folder"),
        *("pause_automation", "resume_automation", "delete_automation", "set_setting", "delete_file", "revoke_grant"),
    }
)
"""Tools that change nothing more when they are called again with the same arguments."""
AGENTS = frozenset(
    {
        *("send_message", "resume_turn", "steer_queued", "run_job", "resume_job", "retry_job", "run_automation"),
        *("start_task", "call_hook", "run_command", "test_notice", "redeliver_notice"),
    }
)
"""Tools that start an agent or a program, which reaches more than this host."""


def shown(who: Caller, setting: ToolSet) -> frozenset[str] | None:
    """The names that this caller sees besides those that its token names; None: all."""
    chosen = next((each for each in SETS if each in who.tools), setting)
    return {"ask": ASK, "work": WORK, "all": None}[chosen]


def annotations(name: str, reads: bool) -> Json:
    """The hints of MCP. Clients use them to decide when to ask a person."""
    if reads:
        return {"readOnlyHint": True, "openWorldHint": False}
    return {
        "readOnlyHint": False,
        "destructiveHint": name in DESTRUCTIVE,
        "idempotentHint": name in REPEATABLE,
        "openWorldHint": name in AGENTS,
    }
