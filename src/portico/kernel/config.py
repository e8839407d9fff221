"""Checks the settings of a session (`config`) that the host uses, before they are written.

Which of them loosen approval, and so need the scope `approve`, is decided in `autonomy`.
"""

from collections.abc import Mapping
from typing import Any

from portico.kernel import fallback
from portico.kernel.context import CONTEXT
from portico.kernel.errors import BadRequest

COMMANDS = "commands"
"""Key of the commands that an agent announces."""
OWN_KEYS = frozenset({CONTEXT, COMMANDS})
"""Keys that the host and the agents set. They are kept when a client replaces all settings."""

_APPROVALS = ("ask", "allow", "deny")


def check(config: Mapping[str, Any]) -> None:
    """Check the settings of the host. All other settings belong to the agent."""
    fallback.check(config)
    chosen = config.get("approvals", "ask")
    if chosen not in _APPROVALS:
        words = ", ".join(map(repr, _APPROVALS))
        raise BadRequest(f"config.approvals: Should be one of {words}, not {chosen!r}.", field="config.approvals")
