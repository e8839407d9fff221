"""The table `[agents.copilot]` of the settings."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from portico.agents.supervisor import IDLE_SECONDS, START_SECONDS
from portico.kernel.errors import AgentUnavailable, BadRequest
from portico.kernel.events import Json

EFFORT = "reasoning_effort"
"""The session setting for how long its model thinks."""
EFFORTS = ("low", "medium", "high", "xhigh", "max")


THINKING = "reasoningEffort"
"""The same among what is chosen with a model, in the word that editors know."""


def thinking(efforts: Sequence[str]) -> Json:
    """What can be chosen with a model that thinks."""
    if not efforts:
        return {}
    return {"type": "object", "properties": {THINKING: {"type": "string", "title": "Thinking", "enum": list(efforts)}}}


class KeyProvider(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """`[agents.copilot.provider]`: bring your own key. Models answer there, and no GitHub login is needed."""

    base_url: str
    type: str = "openai"
    wire_api: str = "completions"
    api_key_env: str = ""
    """The name of the variable in Portico's environment that holds the key; the settings hold no secret."""
    headers: dict[str, str] = {}

    def config(self) -> Json:
        """In the SDK's words."""
        config: Json = {"type": self.type, "base_url": self.base_url}
        if self.type != "anthropic":
            config["wire_api"] = self.wire_api
        if self.headers:
            config["headers"] = self.headers
        if self.api_key_env:
            if self.api_key_env not in os.environ:
                raise AgentUnavailable(f"The key of Copilot's provider is missing: set {self.api_key_env!r}.")
            config["api_key"] = os.environ[self.api_key_env]
        return config


class CopilotOptions(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    program: str = "copilot"
    """The Copilot CLI, or its runtime; looked for on the PATH."""
    arguments: list[str] = []
    env: dict[str, str] = {}
    pass_env: list[str] = []
    home: str | None = None
    """Copilot's own folder; `~/.copilot` when absent."""
    models: list[str] = []
    """With a provider: its models. The first is the default."""
    provider: KeyProvider | None = None
    start_timeout: float = START_SECONDS
    idle_timeout: Annotated[float, Meta(ge=0)] = IDLE_SECONDS
    """Seconds without a turn after which its process is ended; 0: never."""
    enabled: bool = True

    def path(self) -> str | None:
        return shutil.which(self.program)

    def version(self) -> str:
        """Of the npm package that the program belongs to; empty where it comes from elsewhere."""
        found = self.path()
        try:
            about = msgspec.json.decode((Path(found or "").resolve().parent / "package.json").read_bytes())
        except (OSError, msgspec.DecodeError):
            return ""
        version = about.get("version") if isinstance(about, dict) else None
        return version if isinstance(version, str) else ""


def read(settings: Json) -> CopilotOptions:
    try:
        options = msgspec.convert(settings.get("copilot", {}), CopilotOptions)
    except msgspec.ValidationError as error:
        raise BadRequest(f"[agents.copilot]: {error}", field="agents.copilot") from None
    if options.provider is not None and not options.models:
        raise BadRequest(
            '[agents.copilot] needs models = ["..."] with a provider of your own.', field="agents.copilot.models"
        )
    return options
