"""Modes and options of a session, as ACP has them: its agent, its models, the agent's settings, how approvals are
answered."""

from collections.abc import Sequence
from typing import Any

from acp.schema import (
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from portico.features.sandboxes.shapes import SandboxChoice
from portico.kernel.agent import AgentInfo
from portico.kernel.events import Json

SessionOption = SessionConfigOptionSelect | SessionConfigOptionBoolean

APPROVALS = {
    "ask": ("Ask", "Edits and commands wait for an answer, unless a rule lets them pass"),
    "allow": ("Allow", "Nothing asks"),
    "deny": ("Deny", "What would ask is refused"),
}
AGENT, MODEL, SANDBOX = "portico.agent", "model", "sandbox"
"""The first one has a prefix: an agent may have a setting `agent`."""
_SWITCH = (("true", "On", None), ("false", "Off", None))
"""A boolean for an editor that has no switches."""


class SessionOptions:
    """The available options of one session, and their current values."""

    def __init__(
        self,
        agents: Sequence[AgentInfo],
        agent: str,
        model: str,
        config: Json,
        sandbox: SandboxChoice | None = None,
        *,
        booleans: bool = False,
    ) -> None:
        """`sandbox`: the choice of its sandbox; None: the host has none. `booleans`: the editor shows switches."""
        self._agents = {each.id: each for each in agents}
        self._sandbox = sandbox
        self._booleans = booleans
        self.agent = agent
        self.model = model
        self.config = dict(config)

    @property
    def info(self) -> AgentInfo:
        return self._agents.get(self.agent) or AgentInfo(self.agent, self.agent)

    @property
    def window(self) -> int | None:
        """The context window of the model."""
        return next((each.context for each in self.info.models if each.id == self.model), None)

    @property
    def mode_key(self) -> str:
        """Which setting ACP's mode is: the agent's own `mode`, else how approvals are answered."""
        return "mode" if self._enum("mode") else "approvals"

    def modes(self) -> SessionModeState:
        named = [
            SessionMode(id=value, name=name, description=about) for value, name, about in self._named(self.mode_key)
        ]
        return SessionModeState(current_mode_id=self._current(self.mode_key), available_modes=named)

    def options(self) -> list[SessionOption]:
        keys = [key for key in self.info.config.get("properties", {}) if self._named(key)]
        found: list[SessionOption] = [self._agent()] if len(self._ready()) > 1 else []
        found += [self._model()] if self.info.models else []
        own = ["approvals", *([SANDBOX] if self._sandbox is not None else [])]
        return [*found, *(self._option(key) for key in dict.fromkeys([*keys, *own]))]

    def value(self, key: str, value: str | bool) -> str | bool | None:
        """The value as the host stores it; None: there is no such option, or it cannot have this value."""
        if self._is_boolean(key):
            return {"true": True, "false": False}.get(str(value).lower())
        return str(value) if value in self.values(key) else None

    def values(self, key: str) -> list[str]:
        """The possible values of an option; empty: there is no such option."""
        if key == AGENT:
            return [each.id for each in self._ready()]
        if key == MODEL:
            return [each.id for each in self.info.models]
        return [each for each, _, _ in self._named(key)]

    def _ready(self) -> list[AgentInfo]:
        return [each for each in self._agents.values() if each.missing is None or each.id == self.agent]

    def _agent(self) -> SessionConfigOptionSelect:
        options = [
            SessionConfigSelectOption(value=each.id, name=each.name, description=each.description or None)
            for each in self._ready()
        ]
        return _made(AGENT, "Agent", self.agent, options, "other")

    def _model(self) -> SessionConfigOptionSelect:
        options = [SessionConfigSelectOption(value=each.id, name=each.name) for each in self.info.models]
        return _made(MODEL, "Model", self.model, options, "model")

    def _option(self, key: str) -> SessionOption:
        shape = self._shape(key)
        name = str(shape.get("title") or key.replace("_", " ").capitalize())
        about = str(shape["description"]) if shape.get("description") else None
        if self._is_boolean(key) and self._booleans:
            current = self._current(key) == "true"
            return SessionConfigOptionBoolean(
                type="boolean", id=key, name=name, description=about, current_value=current
            )
        options = [
            SessionConfigSelectOption(value=value, name=label, description=text)
            for value, label, text in self._named(key)
        ]
        return _made(key, name, self._current(key), options, "mode" if key == self.mode_key else None, about)

    def _shape(self, key: str) -> Json:
        found = self.info.config.get("properties", {}).get(key, {})
        return found if isinstance(found, dict) else {}

    def _is_boolean(self, key: str) -> bool:
        return self._shape(key).get("type") == "boolean"

    def _enum(self, key: str) -> list[str]:
        return [each for each in self._shape(key).get("enum", []) if isinstance(each, str)]

    def _named(self, key: str) -> list[tuple[str, str, str | None]]:
        if values := self._enum(key):
            return [(value, value.replace("_", " ").capitalize(), None) for value in values]
        if self._is_boolean(key):
            return list(_SWITCH)
        if key == SANDBOX and self._sandbox is not None:
            return [(each.id, each.name, each.description) for each in self._sandbox.modes]
        return [(value, name, about) for value, (name, about) in APPROVALS.items()] if key == "approvals" else []

    def _current(self, key: str) -> str:
        known = [value for value, _, _ in self._named(key)]
        default = self._sandbox.mode if key == SANDBOX and self._sandbox is not None else None
        default = self._shape(key).get("default", False if self._is_boolean(key) else default)
        chosen = self.config.get(key, default)
        text = str(chosen).lower() if isinstance(chosen, bool) else chosen
        return text if text in known else known[0]


def _made(
    key: str,
    name: str,
    current: str,
    options: list[SessionConfigSelectOption],
    category: Any,
    about: str | None = None,
) -> SessionConfigOptionSelect:
    return SessionConfigOptionSelect(
        type="select", id=key, name=name, description=about, current_value=current, options=options, category=category
    )
