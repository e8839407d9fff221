"""Which sandbox a session has: what was chosen for it, or a default. Pure functions."""

from collections.abc import Mapping
from typing import Any

from portico.kernel.autonomy import SANDBOX
from portico.kernel.errors import BadRequest, Forbidden
from portico.sandbox.policy import MODES, Mode
from portico.server.settings import SandboxSettings

KEY = SANDBOX
"""The field in the settings of a session."""
REQUIRED = "This host requires a sandbox (sandbox.require). Choose 'project' or 'strict'."


def chosen(config: Mapping[str, Any], field: str = f"config.{KEY}") -> Mode | None:
    """Return what the session's settings choose; None if they choose nothing. Raises BadRequest for other values."""
    value = config.get(KEY)
    if value is None or value == "":
        return None
    for mode in MODES:
        if value == mode:
            return mode
    words = ", ".join(map(repr, MODES))
    raise BadRequest(f"{field}: Should be one of {words}, not {value!r}.", field=field)


def mode_of(
    config: Mapping[str, Any],
    agent: str,
    settings: SandboxSettings,
    *,
    unattended: bool,
    works: bool,
    remembered: Mode | None = None,
) -> Mode:
    """Return the sandbox of a session. Raises Forbidden if the settings require one and the session has none.

    `unattended`: it belongs to a job or an automation. `works`: whether a sandbox can be started on this machine; a
    default does not apply where it cannot, but a choice does, and is then refused. `remembered`: what was chosen for
    its folder before it was started."""
    default = default_of(agent, settings, unattended=unattended, works=works)
    mode = chosen(config) or (remembered if remembered is not None and not unattended else default)
    if mode == "off" and settings.require:
        if chosen(config) == "off":
            raise Forbidden(REQUIRED)
        return "project"
    return mode


def default_of(agent: str, settings: SandboxSettings, *, unattended: bool, works: bool) -> Mode:
    own = settings.agents.get(agent)
    named = (own.default if own is not None else "") or settings.default
    if named:
        return named
    return "project" if unattended and works else "off"


def is_unattended(by: str) -> bool:
    """Return whether no person waits for the session: it was started by a task of a job or by an automation."""
    return by.startswith(("task:", "run:"))
