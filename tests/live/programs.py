"""The real agents that the tests drive, each pointed at the scripted model server: what a user writes in the settings.

`tests/live/install.sh` puts the programs into tests/live/node_modules. Each gets its own home, so that nothing of the
machine's user is read or changed.
"""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODULES = Path(__file__).with_name("node_modules")
MODEL = "gpt-4.1"
START_SECONDS = 170.0
"""Some unpack themselves at the first start, and a busy machine of two cores takes its time."""


@dataclass(frozen=True)
class Live:
    name: str
    program: Path
    settings: Callable[[Path, str], dict[str, Any]]
    """From its home and the model server's address: the table `[agents.acp.NAME]`."""
    remembers: bool = True
    """Whether it takes up every conversation after its death; when it does not, Portico tells it what was said."""

    def table(self, home: Path, model: str) -> dict[str, Any]:
        assert self.program.exists(), f"{self.name} is not installed; run tests/live/install.sh"
        return {**self.settings(home, model), "start_timeout": START_SECONDS}


def _base(home: Path, command: list[str], **env: str) -> dict[str, Any]:
    home.mkdir(parents=True, exist_ok=True)
    folders = {"HOME": home, "XDG_CONFIG_HOME": home / ".config", "XDG_DATA_HOME": home / ".local"}
    folders |= {"XDG_CACHE_HOME": home / ".cache", "XDG_STATE_HOME": home / ".state"}
    return {"command": command, "env": {**{name: str(path) for name, path in folders.items()}, **env}}


def _copilot(home: Path, model: str) -> dict[str, Any]:
    return _base(
        home,
        [str(COPILOT), "--acp", "--no-auto-update"],
        COPILOT_PROVIDER_BASE_URL=f"{model}/v1",
        COPILOT_PROVIDER_API_KEY="k",
        COPILOT_MODEL=MODEL,
        COPILOT_OFFLINE="true",
        XDG_CACHE_HOME=str(copilot_cache()),
    )


def copilot_cache() -> Path:
    """The executable unpacks itself at its first start; once for all tests is enough."""
    return MODULES / ".cache"


def _opencode(home: Path, model: str) -> dict[str, Any]:
    table = _base(
        home,
        [str(MODULES / "opencode-linux-x64/bin/opencode"), "acp"],
        OPENCODE_DISABLE_AUTOUPDATE="1",
        OPENCODE_DISABLE_MODELS_FETCH="1",
        OPENCODE_DISABLE_DEFAULT_PLUGINS="1",
        OPENCODE_DISABLE_LSP_DOWNLOAD="1",
        npm_config_offline="true",  # it installs a package for plugins into each new home, five seconds of CPU
    )
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Local",
        "options": {"baseURL": f"{model}/v1", "apiKey": "k"},
        "models": {MODEL: {"name": MODEL}},
    }
    settings = {
        "model": f"local/{MODEL}",
        "small_model": f"local/{MODEL}",
        "provider": {"local": provider},
    }
    path = home / ".config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))
    return table


def _goose(home: Path, model: str) -> dict[str, Any]:
    return _base(
        home,
        [str(MODULES / "@aaif/goose-binary-linux-x64/bin/goose"), "acp", "--with-builtin", "developer"],
        GOOSE_PROVIDER="openai",
        GOOSE_MODEL=MODEL,
        OPENAI_HOST=model,
        OPENAI_API_KEY="k",
        GOOSE_DISABLE_KEYRING="1",
    )


def _gemini(home: Path, model: str) -> dict[str, Any]:
    settings = home / ".gemini" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    # In a folder that it does not trust it leaves out all MCP servers, ours too.
    security = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    settings.write_text(json.dumps({"security": security}))
    return _base(
        home,
        [shutil.which("node") or "node", str(MODULES / "@google/gemini-cli/bundle/gemini.js"), "--acp"],
        GEMINI_API_KEY="k",
        GOOGLE_GEMINI_BASE_URL=model,
        GEMINI_CLI_NO_RELAUNCH="true",
    )


def _claude(home: Path, model: str) -> dict[str, Any]:
    return _base(
        home,
        [NODE22, str(MODULES / ".bin/claude-agent-acp")],
        ANTHROPIC_BASE_URL=model,
        ANTHROPIC_API_KEY="k",
        ANTHROPIC_MODEL=MODEL,
        CLAUDE_CONFIG_DIR=str(home / ".claude"),
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
    )


def _codex(home: Path, model: str) -> dict[str, Any]:
    # Codex creates the alias that its own sandbox runs only outside of the temporary folder; an old bwrap needs it.
    scratch = home / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    folders = {"CODEX_HOME": str(home / ".codex"), "TMPDIR": str(scratch)}
    table = _base(home, [NODE22, str(MODULES / ".bin/codex-acp")], **folders, OPENAI_API_KEY="k")
    provider = {"name": "Local", "base_url": f"{model}/v1", "wire_api": "responses", "env_key": "OPENAI_API_KEY"}
    lines = ['model = "gpt-5.5"', 'model_provider = "local"', "[model_providers.local]"]
    path = home / ".codex" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, *(f'{name} = "{value}"' for name, value in provider.items()), ""]))
    return table


def _qwen(home: Path, model: str) -> dict[str, Any]:
    return _base(
        home,
        [NODE22, str(MODULES / ".bin/qwen"), "--acp"],
        OPENAI_BASE_URL=f"{model}/v1",
        OPENAI_API_KEY="k",
        OPENAI_MODEL=MODEL,
    )


def age_gemini(home: Path) -> None:
    """As if its sessions had been opened long ago: then it finds them."""
    for path in (home / ".gemini" / "tmp").glob("*/chats/session-*.jsonl"):
        path.rename(path.with_name(re.sub(r"\d{4}-\d\d-\d\dT\d\d-\d\d", "2020-01-01T00-00", path.name)))


NODE22 = str(MODULES / "node22/bin/node")
COPILOT = MODULES / "@github/copilot-linux-x64/copilot"
LIVE = (
    Live("copilot", COPILOT, _copilot),
    Live("opencode", MODULES / "opencode-linux-x64/bin/opencode", _opencode),
    Live("goose", MODULES / "@aaif/goose-binary-linux-x64/bin/goose", _goose),
    # Gemini 0.61 names the file of a session after the minute it was opened in. Asked to load one within that same
    # minute, it first overwrites it, and says "No previous sessions found for this project".
    Live("gemini", MODULES / "@google/gemini-cli/bundle/gemini.js", _gemini, remembers=False),
    Live("claude", MODULES / ".bin/claude-agent-acp", _claude),
    Live("codex", MODULES / ".bin/codex-acp", _codex),
)
# It connects to MCP servers while it answers, and gives up on one that needs five seconds on a busy machine: `agents
# test` tries again, a test that goes on from there cannot.
QWEN = Live("qwen", MODULES / ".bin/qwen", _qwen)
