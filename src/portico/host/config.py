"""A session's settings (`config`): those that the host itself understands, checked before they are written.

Which of them loosen approval, and so need the scope `approve`, is decided in `autonomy`.
"""

from collections.abc import Mapping
from typing import Any

from portico.errors import BadRequest
from portico.host import fallback
from portico.host.context import CONTEXT

COMMANDS = "commands"
"""What an agent announces that messages can be."""
OWN_KEYS = frozenset({CONTEXT, COMMANDS})
"""What the host and the agents keep among the settings themselves; nobody means these when replacing them all."""

_APPROVALS = ("ask", "allow", "deny")


def check(config: Mapping[str, Any]) -> None:
    """Whatever else stands in the settings is the agent's own business."""
    fallback.check(config)
    chosen = config.get("approvals", "ask")
    if chosen not in _APPROVALS:
        words = ", ".join(map(repr, _APPROVALS))
        raise BadRequest(f"config.approvals: Should be one of {words}, not {chosen!r}.", field="config.approvals")
