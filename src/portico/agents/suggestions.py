"""Agents that Portico knows and that are not installed, each with the command that adds it."""

from collections.abc import Iterable
from importlib.util import find_spec

from msgspec import Struct

from portico.agents.acp.program import PRESETS


class KnownAgent(Struct, frozen=True):
    id: str
    name: str
    add: str
    """The command that installs and adds it."""
    install: str
    """The command that installs its program alone; Portico then finds it on the PATH. Empty: see the vendor's page."""


def not_installed(present: Iterable[str]) -> list[KnownAgent]:
    """Return the known agents whose ids are not in `present`. The SDK's Copilot replaces the one over ACP."""
    there = {*present, *(["acp:copilot"] if find_spec("copilot") is not None else [])}
    return [
        KnownAgent(f"acp:{name}", program.name, f"portico agents add {name}", program.install)
        for name, program in PRESETS.items()
        if f"acp:{name}" not in there and program.path() is None
    ]
