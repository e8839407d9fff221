"""Modes and options of a session, as ACP has them: its agent's settings, its models, how approvals are answered."""

from typing import Any

from acp.schema import (
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from portico.events import Json
from portico.host.agent import AgentInfo
from portico.sandboxes.shapes import SandboxChoice

Option = SessionConfigOptionSelect | SessionConfigOptionBoolean

APPROVALS = {
    "ask": ("Ask", "Edits and commands wait for an answer, unless a rule lets them pass"),
    "allow": ("Allow", "Nothing asks"),
    "deny": ("Deny", "What would ask is refused"),
}
MODEL = "model"
SANDBOX = "sandbox"


class SessionOptions:
    """The available options of one session, and their current values."""

    def __init__(self, info: AgentInfo, model: str, config: Json, sandbox: SandboxChoice | None = None) -> None:
        """`sandbox`: the choice of its sandbox; None: the host has none."""
        self.info = info
        self.model = model
        self.config = dict(config)
        self._sandbox = sandbox

    @property
    def mode_key(self) -> str:
        """Which setting ACP's mode is: the agent's own `mode`, else how approvals are answered."""
        return "mode" if self._values("mode") else "approvals"

    def modes(self) -> SessionModeState:
        named = [
            SessionMode(id=value, name=name, description=about) for value, name, about in self._named(self.mode_key)
        ]
        return SessionModeState(current_mode_id=self._current(self.mode_key), available_modes=named)

    def options(self) -> list[Option]:
        keys = [key for key in self.info.config.get("properties", {}) if self._values(key)]
        found: list[Option] = [self._model()] if self.info.models else []
        own = ["approvals", *([SANDBOX] if self._sandbox is not None else [])]
        found += [self._select(key) for key in dict.fromkeys([*keys, *own])]
        return found

    def has(self, key: str, value: str) -> bool:
        return value in self.values(key)

    def values(self, key: str) -> list[str]:
        """The possible values of an option; empty: there is no such option."""
        if key == MODEL:
            return [model.id for model in self.info.models]
        return [each for each, _, _ in self._named(key)]

    def _model(self) -> SessionConfigOptionSelect:
        options = [SessionConfigSelectOption(value=each.id, name=each.name) for each in self.info.models]
        return _made(MODEL, "Model", self.model, options, "model")

    def _select(self, key: str) -> SessionConfigOptionSelect:
        options = [
            SessionConfigSelectOption(value=value, name=name, description=about)
            for value, name, about in self._named(key)
        ]
        shape = self.info.config.get("properties", {}).get(key, {})
        name = str(shape.get("title") or key.replace("_", " ").capitalize())
        return _made(key, name, self._current(key), options, "mode" if key == self.mode_key else None)

    def _values(self, key: str) -> list[str]:
        shape = self.info.config.get("properties", {}).get(key, {})
        return [each for each in shape.get("enum", []) if isinstance(each, str)]

    def _named(self, key: str) -> list[tuple[str, str, str | None]]:
        if values := self._values(key):
            return [(value, value.replace("_", " ").capitalize(), None) for value in values]
        if key == SANDBOX and self._sandbox is not None:
            return [(each.id, each.name, each.description) for each in self._sandbox.modes]
        return [(value, name, about) for value, (name, about) in APPROVALS.items()] if key == "approvals" else []

    def _current(self, key: str) -> str:
        shape = self.info.config.get("properties", {}).get(key, {})
        known = [value for value, _, _ in self._named(key)]
        default = self._sandbox.mode if key == SANDBOX and self._sandbox is not None else shape.get("default")
        chosen = self.config.get(key, default)
        return chosen if chosen in known else known[0]


def _made(
    key: str, name: str, current: str, options: list[SessionConfigSelectOption], category: Any
) -> SessionConfigOptionSelect:
    return SessionConfigOptionSelect(
        type="select", id=key, name=name, current_value=current, options=options, category=category
    )
