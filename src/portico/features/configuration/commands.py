"""Commands that change the settings file."""

from typing import Any

from msgspec import Struct

from portico.kernel.agent import Check as Check
from portico.kernel.commands import Command, Http, register


class SettingSaved(Struct):
    key: str
    value: Any
    origin: str
    """`default`, or the settings file."""
    restart: bool
    """The host reads this setting only when it starts."""


class SetSetting(Command, frozen=True, tag="setting.set"):
    """Change one setting in the settings file, or remove it from the file. Comments and all other lines stay."""

    scope = "admin"
    lock = "feature"
    gives = SettingSaved
    http = Http("PATCH", "/v1/settings")
    errors = ("conflict", "not_found")

    key: str
    """Such as `agent.max_steps`. `GET /v1/settings` lists the keys that can be changed here (`editable`)."""
    value: Any = None
    """None: removes it from the file, and the default applies."""


class ConnectModel(Command, frozen=True, tag="model.connect"):
    """Connect the built-in agent to a model: write address and key to the settings file, and check the agent."""

    scope = "admin"
    lock = "feature"
    gives = Check
    http = Http("POST", "/v1/agents/loop/model")
    secret = True
    errors = ("conflict",)

    base_url: str
    """The address of an OpenAI-compatible or Anthropic endpoint, such as `https://models.example.org/v1`."""
    api_key: str = ""

    def __repr__(self) -> str:
        return f"ConnectModel(base_url={self.base_url!r})"


register(SetSetting, ConnectModel)
