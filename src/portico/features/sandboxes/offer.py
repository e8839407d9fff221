"""The choice of a sandbox as clients offer it: REST and the page, AHP, ACP. Every door uses these texts."""

from collections.abc import Sequence
from typing import Any

from portico.features.sandboxes.choice import KEY
from portico.features.sandboxes.shapes import SandboxChoice, SandboxMode
from portico.kernel.events import Json
from portico.kernel.host import Host
from portico.sandbox.policy import MODES, Mode

TITLE = "Sandbox"
_TEXTS: dict[Mode, tuple[str, str]] = {
    "off": ("No sandbox", "Programs of the session can do what you can do. Portico asks as the rules require."),
    "project": (
        "Project",
        "Programs see the working folder and the system. Calls inside need no approval; other hosts are asked about.",
    ),
    "strict": ("Strict", "As 'project', but the network is the model only, and nothing else is asked about."),
}


def modes_for(*, required: bool, works: bool) -> list[SandboxMode]:
    """Return the modes that are possible."""
    possible: Sequence[Mode] = MODES if works else ("off",)
    return [SandboxMode(mode, *_TEXTS[mode]) for mode in possible if mode != "off" or not required]


def session_property(choice: SandboxChoice) -> Json:
    """The choice as a property of a JSON Schema, for session settings of AHP."""
    modes = choice.modes
    about = f"Where its processes run. {choice.problem}".strip()
    found: dict[str, Any] = {
        "type": "string",
        "title": TITLE,
        "description": about,
        "enum": [each.id for each in modes],
        "enumLabels": [each.name for each in modes],
        "enumDescriptions": [each.description for each in modes],
        "sessionMutable": True,
    }
    return found | ({"default": choice.mode} if any(each.id == choice.mode for each in modes) else {})


def choice_in(host: Host, folder: str, agent: str) -> SandboxChoice | None:
    """Return the choice for a new conversation; None: this host has no sandboxes."""
    from portico.features.sandboxes.feature import Sandboxes  # late: the feature uses this module

    feature = next((part for part in host.parts if isinstance(part, Sandboxes)), None)
    return feature.choice(folder, agent) if feature is not None else None


def properties_in(host: Host, folder: str, agent: str) -> Json:
    """Return the property of the session settings, by its key; empty on a host without sandboxes."""
    choice = choice_in(host, folder, agent)
    return {KEY: session_property(choice)} if choice is not None else {}
