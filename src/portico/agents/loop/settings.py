"""The settings of the built-in agent: `agent.*`, `models` and the table `[agents.loop]`.

Read again whenever the file changes, at the next use: an edit needs no restart. A broken edit keeps the old values;
the host says so in its log.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from portico.kernel.errors import BadRequest
from portico.server.home import stamp
from portico.server.settings import AgentSettings
from portico.server.settings_load import load

MINUTES_MAX = 10_000
"""A week: as good as never, and a number that a timer takes."""
TOOL_NAMES = (
    *("listFiles", "readFiles", "search", "createFile", "editFile", "runCommand", "plan", "askUser"),
    *("viewImage", "webFetch", "startCommand", "commandOutput", "stopCommand", "delegate", "skill"),
)
"""All tools. Here, because the settings are read before the tools are imported."""
Protocol = Literal["auto", "tools", "schema", "text"]


Wire = Literal["auto", "chat", "responses", "messages"]


class EndpointSettings(Struct, forbid_unknown_fields=True):
    base_url: str
    api_key: str = ""
    api_key_env: str = ""
    """The environment variable that holds the key, so that the file does not contain it."""
    wire: Wire = "auto"
    """Chat completions, OpenAI Responses or Anthropic Messages; auto: by the address."""

    def key(self, environ: Mapping[str, str]) -> str:
        return self.api_key or (environ.get(self.api_key_env, "") if self.api_key_env else "")


class LoopSettings(Struct, forbid_unknown_fields=True):
    """`[agents.loop]`."""

    base_url: str = ""
    api_key: str = ""
    api_key_env: str = ""
    wire: Wire = "auto"
    """The wire format of `base_url`, and of the endpoint of the environment; auto: by the address."""
    endpoints: dict[str, EndpointSettings] = {}
    """Further endpoints by name, tried for models in this order."""
    discover: bool = True
    """Look at the environment and for local servers."""
    protocol: Protocol = "auto"
    timeout: float = 120.0
    """Seconds without a byte from the model."""
    retries: int = 2
    """Further attempts with one model."""
    context_tokens: int = 0
    """The context window of the models, in tokens; 0: what the endpoint reports, or what an error has named."""
    context_chars: int = 0
    """A separate bound on what is sent of the conversation; 0: by the window, else 200,000 characters."""
    compaction: Literal["model", "cut"] = "model"
    """Who shortens a conversation that is longer: the model writes a summary, or old results and turns are left out."""
    tools: Literal["auto", "basic", "all"] = "auto"
    """basic: files, search and commands; all: also plans, questions, pictures, web pages, background commands and
    sub-agents; auto: all, but basic for models of up to 8 billion parameters."""
    tools_off: list[str] = []
    """Names of tools that are not offered."""
    temperature: float | None = None
    budget_tokens: int = 0
    """Tokens one run may spend, read and written together; 0 is no limit."""
    unload_minutes: float = 15.0
    """A model that we run ourselves leaves the memory after so long without a request; 0 is never."""


class Current(Struct, frozen=True):
    agent: AgentSettings
    models: list[str]
    loop: LoopSettings


class SettingsFile:
    """The values as they are now."""

    def __init__(self, home: Path, table: Mapping[str, Any] | None = None) -> None:
        self._path = home / "settings.toml"
        self._table = table
        self._stamp: tuple[int, int] | None = None
        self._current: Current | None = None

    def current(self) -> Current:
        now = stamp(self._path)
        if self._current is None or now != self._stamp:
            try:
                self._current = self._read()
            except BadRequest:
                if self._current is None:
                    raise
            self._stamp = now
        return self._current

    def _read(self) -> Current:
        settings = load(self._path).settings
        table = settings.agents.get("loop", self._table or {})
        try:
            loop = msgspec.convert(table, LoopSettings)
        except msgspec.ValidationError as error:
            raise BadRequest(f"[agents.loop] is not as expected: {error}.", field="agents.loop") from None
        if loop.context_tokens < 0 or loop.context_chars < 0:
            raise BadRequest("[agents.loop]: context_tokens and context_chars are 0 or more.", field="agents.loop")
        if loop.timeout <= 0 or not 0 <= loop.retries <= 10:
            raise BadRequest("[agents.loop]: timeout is more than 0, retries is 0 to 10.", field="agents.loop")
        if unknown := set(loop.tools_off) - set(TOOL_NAMES):
            names = ", ".join(sorted(unknown))
            raise BadRequest(
                f"[agents.loop]: tools_off names no tool: {names}. There are: {', '.join(TOOL_NAMES)}.",
                field="agents.loop.tools_off",
            )
        if not 0 <= loop.unload_minutes <= MINUTES_MAX:
            raise BadRequest(f"[agents.loop]: unload_minutes is 0 to {MINUTES_MAX}.", field="agents.loop")
        return Current(settings.agent, settings.models, loop)
