"""Which ACP agents there are: those of the settings, and the well-known ones that are installed.

[agents.acp.opencode]
command = ["opencode", "acp"]
"""

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from portico.agents.supervisor import IDLE_SECONDS, START_SECONDS
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json


class Program(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The table `[agents.acp.NAME]`. A preset is the same thing, written by us."""

    command: list[str] = []
    """Program and arguments; the program is looked for on the PATH."""
    name: str = ""
    """What people see."""
    env: dict[str, str] = {}
    """Set for its process."""
    pass_env: list[str] = []
    """Names of variables of Portico's own environment that it gets as well, for example its vendor's key."""
    models: list[str] = []
    """Offered before the agent itself was asked."""
    mode: str = ""
    """The agent's mode for sessions that name none."""
    login: str = ""
    """The command with which a person signs in: shown when it is needed."""
    asks: dict[str, list[str]] = {}
    """Values of its options, by the option's name, that ask as much as its default does; `"*"`: all of them."""
    auth: str | None = None
    """The id of the authentication method to use when it demands one."""
    mcp: bool = True
    """Gives it the MCP servers of the settings and the session's tools."""
    mcp_stdio: bool = True
    """Whether it starts MCP servers itself; where it cannot, Portico does and passes them on over HTTP."""
    embeds: bool = True
    """Whether texts that are embedded in a prompt reach its model; where they do not, they are part of its words."""
    files: bool = True
    terminals: bool = True
    """Whether it may read and write files and run commands through Portico, where they are asked for and recorded."""
    process_per_session: bool | None = None
    """Whether every session gets a separate process; None: where the program mixes up what belongs to which."""
    process_in_folder: bool | None = None
    """Whether its process runs in the session's folder, one for each folder; unsaid: where it looks at its own."""
    start_timeout: float = START_SECONDS
    idle_timeout: Annotated[float, Meta(ge=0)] = IDLE_SECONDS
    """Seconds without a turn after which its process is ended; 0: never."""
    install: str = ""
    """How to get it: shown when the program is missing."""
    enabled: bool = True

    @property
    def separate(self) -> bool:
        """opencode keeps MCP servers by name for a whole folder: a tool called in one session ran with the key of the
        session that was opened last."""
        if self.process_per_session is not None:
            return self.process_per_session
        return any(Path(word).name.startswith("opencode") for word in self.command)

    @property
    def in_folder(self) -> bool:
        """Gemini shows its model the folder of its process, and works there."""
        if self.process_in_folder is not None:
            return self.process_in_folder
        return any(Path(word).name.startswith("gemini") for word in self.command)

    def path(self) -> str | None:
        """The program's file, or None when it is not there."""
        return shutil.which(self.command[0]) if self.command else None

    def sign_in(self) -> str:
        """`login` as it can be typed here. An agent below the home folder has that program beside its own."""
        word, space, rest = self.login.partition(" ")
        beside = Path(self.path() or os.curdir).parent / word
        return f"{beside}{space}{rest}" if word and shutil.which(word) is None and beside.is_file() else self.login


_OPENCODE_ASKS = json.dumps(
    {
        "*": "ask",
        "read": {"*": "allow", "*.env": "ask", "*.env.*": "ask"},
        **dict.fromkeys(("glob", "grep", "list", "todoread", "todowrite", "question"), "allow"),
        "external_directory": "ask",
    }
)
"""Everything but reads in the folder: tools of MCP servers, `webfetch` and plugins' tools are covered by `*`. The last
rule that matches counts. Its list of things to do and its questions change nothing outside of the conversation."""

# Agents that do not ask by default are configured to ask.
PRESETS: dict[str, Program] = {
    "claude": Program(
        name="Claude Code",
        command=["claude-agent-acp"],
        login="claude /login",
        pass_env=["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR"],
        install="npm install -g @agentclientprotocol/claude-agent-acp",
    ),
    "codex": Program(
        name="Codex",
        command=["codex-acp"],
        login="codex login",
        mode="read-only",  # its other modes write and run without asking
        pass_env=["OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"],
        install="npm install -g @agentclientprotocol/codex-acp",
    ),
    "copilot": Program(
        name="Copilot (ACP)",
        command=["copilot", "--acp", "--no-auto-update"],
        login="copilot login",
        mcp_stdio=False,  # it leaves them out without a word
        embeds=False,  # its model sees the name alone
        pass_env=["COPILOT_HOME", "COPILOT_MODEL"],
        install="npm install -g @github/copilot",
    ),
    "gemini": Program(
        name="Gemini CLI",
        command=["gemini", "--acp"],
        login="gemini",
        files=False,  # it cannot create a file through a client: no answer means "does not exist yet" to it
        pass_env=["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT"],
        install="npm install -g @google/gemini-cli",
    ),
    "goose": Program(
        name="goose",
        command=["goose", "acp", "--with-builtin", "developer"],
        login="goose configure",
        env={"GOOSE_MODE": "approve"},
        pass_env=["GOOSE_PROVIDER", "GOOSE_MODEL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"],
        install="npm install -g @aaif/goose-acp",
    ),
    "opencode": Program(
        name="opencode",
        command=["opencode", "acp"],
        login="opencode auth login",
        env={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_PERMISSION": _OPENCODE_ASKS},
        pass_env=["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"],
        install="npm install -g opencode-ai",
    ),
    "qwen": Program(
        name="Qwen Code",
        command=["qwen", "--acp"],
        login="qwen",
        pass_env=["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DASHSCOPE_API_KEY"],
        install="npm install -g @qwen-code/qwen-code",
    ),
    # The following ones as the registry of ACP agents describes them. All but cursor-agent and junie were started and
    # asked for `initialize` and a session; their sign-in commands exist.
    "auggie": Program(
        name="Auggie",
        command=["auggie", "--acp"],
        login="auggie login",
        env={"AUGMENT_DISABLE_AUTO_UPDATE": "1"},
        install="npm install -g @augmentcode/auggie",
    ),
    "cline": Program(
        name="Cline",
        command=["cline", "--acp"],
        login="cline auth",
        install="npm install -g cline",
    ),
    "cursor-agent": Program(
        name="Cursor",
        command=["cursor-agent", "acp"],
        login="cursor-agent login",
        pass_env=["CURSOR_API_KEY"],
        install="see https://cursor.com/docs/cli",
    ),
    "droid": Program(
        name="Factory Droid",
        command=["droid", "exec", "--output-format", "acp"],
        login="droid",
        env={"DROID_DISABLE_AUTO_UPDATE": "true"},
        pass_env=["FACTORY_API_KEY"],
        install="npm install -g droid",
    ),
    "junie": Program(
        name="Junie",
        command=["junie", "--acp=true"],
        login="junie",
        pass_env=["JUNIE_API_KEY"],
        install="npm install -g @jetbrains/junie",
    ),
    "kilo": Program(
        name="Kilo",
        command=["kilo", "acp"],
        login="kilo auth login",
        pass_env=["KILO_API_KEY"],
        install="npm install -g @kilocode/cli",
    ),
    "kimi": Program(
        name="Kimi Code CLI",
        command=["kimi", "acp"],
        login="kimi login",
        pass_env=["KIMI_API_KEY"],
        install="npm install -g @moonshot-ai/kimi-code",  # kimi-cli of PyPI has ended and only prints this
    ),
    "qoder": Program(
        name="Qoder CLI",
        command=["qodercli", "--acp"],
        login="qodercli login",
        install="npm install -g @qoder-ai/qodercli",
    ),
    "vibe": Program(
        name="Mistral Vibe",
        command=["vibe-acp"],
        login="vibe --setup",
        pass_env=["MISTRAL_API_KEY"],
        install="pip install mistral-vibe",
    ),
}


def programs(settings: Json) -> dict[str, Program]:
    """By name: everything the settings name, then every preset that is installed."""
    tables = settings.get("acp", {})
    if not isinstance(tables, dict):
        raise BadRequest("[agents.acp] holds one table per agent, such as [agents.acp.opencode].", field="agents.acp")
    found = {name: _read(name, table) for name, table in tables.items()}
    for name, preset in PRESETS.items():
        # One Copilot is enough: the SDK's is the better one where it is installed.
        spare = name == "copilot" and find_spec("copilot") is not None
        if name not in found and not spare and preset.path() is not None:
            found[name] = preset
    return {name: program for name, program in found.items() if program.enabled}


def _read(name: str, table: Any) -> Program:
    where = f"agents.acp.{name}"
    preset = PRESETS.get(name)
    known = msgspec.to_builtins(preset) if preset is not None else {}
    try:
        program = msgspec.convert({**known, **table} if isinstance(table, dict) else table, Program)
        # Variables that make an agent ask are kept, unless the settings override them by name.
        program.env = {**(preset.env if preset is not None else {}), **program.env}
    except msgspec.ValidationError as error:
        raise BadRequest(f"[{where}]: {error}", field=where) from None
    if not program.command:
        raise BadRequest(f'[{where}] needs a command, such as command = ["{name}", "acp"].', field=f"{where}.command")
    return program


def folder(home: Path, name: str) -> Path:
    """Where an agent's process starts and where we keep what we learned about it."""
    return home / "agents" / "acp" / os.path.basename(name)
