"""A session's settings (`config`): those that the host itself understands, checked before they are written.

The attack: a token that may drive but not approve starts a session, or changes one, so that nothing asks any more. So
the settings that decide over calls are named here, and a door takes them only from a caller who may approve. To leave
them out when all settings are replaced is a change, too.
"""

from collections.abc import Mapping
from typing import Any

from portico.errors import BadRequest
from portico.host import fallback
from portico.host.context import CONTEXT

APPROVAL_KEYS = frozenset(
    {
        "approvals",
        "autoApprove",
        "permissions",
        "globalAutoApproveEnabled",
        "editAutoApprovePatterns",
        "terminalAutoApproveRules",
    }
)
"""What `approval.session_policy` and `policy.session_rules` read: changing one is as good as approving."""

OWN_KEYS = frozenset({CONTEXT, "commands"})
"""What the host and the agents keep among the settings themselves; nobody means these when replacing them all."""

_APPROVALS = ("ask", "allow", "deny")


def check(config: Mapping[str, Any]) -> None:
    """Whatever else stands in the settings is the agent's own business."""
    fallback.check(config)
    chosen = config.get("approvals", "ask")
    if chosen not in _APPROVALS:
        words = ", ".join(map(repr, _APPROVALS))
        raise BadRequest(f"config.approvals: Should be one of {words}, not {chosen!r}.", field="config.approvals")


def decides_calls(config: Mapping[str, Any]) -> bool:
    return not APPROVAL_KEYS.isdisjoint(config)
