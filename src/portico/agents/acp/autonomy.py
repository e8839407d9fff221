"""What the modes and options of the known ACP agents do to approvals, as these programs describe them themselves.

Versions: copilot 1.0.102, opencode 1.18, goose 1.52, gemini 0.61, claude-agent-acp 0.99, codex-acp 2.6, qwen 0.24 (read
from running programs); codex-acp 0.16 (from its documentation). A value that is not here is unknown, and the host takes
it for the loosest. The program decides which table counts, not the name that the settings give it.
"""

from collections.abc import Container, Mapping
from pathlib import PurePath

from portico.agents.acp.program import Program
from portico.kernel.autonomy import Autonomy

ANY = "*"
_ASKS, _LESS, _NOBODY = Autonomy.ASKS, Autonomy.ASKS_LESS, Autonomy.ASKS_NOBODY
_COPILOT_MODE = "https://agentclientprotocol.com/protocol/session-modes#"

Options = Mapping[str, Mapping[str, Autonomy]]

_ABOUT_THE_MODEL = ("model", "effort", "reasoning_effort", "thinking_effort", "thought_level")
_THINKING: Options = {name: {ANY: _ASKS} for name in _ABOUT_THE_MODEL}
"""About the model alone, whichever agent offers it."""

KNOWN: dict[str, Options] = {
    "claude": {
        "mode": {
            "default": _ASKS,
            "plan": _ASKS,
            "dontAsk": _ASKS,  # what it would ask for is refused
            "acceptEdits": _LESS,
            "auto": _NOBODY,  # a model answers in place of a person
            "bypassPermissions": _NOBODY,
        },
    },
    "codex": {
        "mode": {
            "read-only": _ASKS,
            "auto": _NOBODY,  # in its folder
            "agent": _NOBODY,
            "workspace-write": _NOBODY,
            "full-access": _NOBODY,
            "agent-full-access": _NOBODY,
            "danger-full-access": _NOBODY,
        },
        "collaboration_mode": {"default": _ASKS, "plan": _ASKS},
    },
    "copilot": {
        "mode": {
            f"{_COPILOT_MODE}agent": _ASKS,
            f"{_COPILOT_MODE}plan": _ASKS,
            f"{_COPILOT_MODE}autopilot": _NOBODY,
        },
        "allow_all": {"off": _ASKS, "on": _NOBODY},
    },
    "gemini": {
        "mode": {
            "default": _ASKS,
            "plan": _ASKS,
            "autoEdit": _LESS,
            "auto_edit": _LESS,
            "yolo": _NOBODY,
        },
    },
    # `provider` is left out on purpose: some of goose's providers are agents themselves, which never ask.
    "goose": {"mode": {"approve": _ASKS, "chat": _ASKS, "smart_approve": _LESS, "auto": _NOBODY}},
    # Further modes are agents of the user's or of the folder's: their files define what they may do.
    "opencode": {"mode": {"build": _ASKS, "plan": _ASKS}},
    "qwen": {
        "mode": {
            "default": _ASKS,
            "plan": _ASKS,
            "auto-edit": _LESS,
            "auto_edit": _LESS,
            "auto": _NOBODY,  # a model answers in place of a person
            "yolo": _NOBODY,
        },
    },
}
"""By the beginning of the program's name. The first value of an option that asks is what an agent is switched to."""

_NAMES = ("about", "compact", "compress", "context", "cost", "diff", "help", "init", "model", "plan", "review", "usage")
HARMLESS = frozenset(f"/{name}" for name in _NAMES)
"""Commands of these agents in messages that show, summarise, plan or work behind the usual approvals. `/init` and
`/review` are ordinary turns. What the folder or the user has added brings its own permissions: it is not here."""

_RUNNERS = frozenset({"node", "npx", "bun", "bunx", "deno", "pnpm", "uvx", "env"})
"""Programs that run the one named after them."""


def classify(program: Program, option: str, value: object) -> Autonomy:
    """None: what the settings choose for sessions that choose nothing, or the agent's own default, which asks."""
    if option.startswith("/"):
        return classify_command(option, program.asks)
    if value is None:
        value = program.mode if option == "mode" else ""
    if value == "":
        return _ASKS
    allowed = program.asks.get(option, [])
    if ANY in allowed or value in allowed:
        return _ASKS
    values = {**_THINKING, **KNOWN.get(kind_of(program) or "", {})}.get(option, {})
    return values.get(str(value), values.get(ANY, Autonomy.UNKNOWN))


def asking(program: Program, option: str, current: object, values: Container[str]) -> str | None:
    """The value to set where the user has chosen none and the agent's own choice asks less; None: keep it."""
    if classify(program, option, current) not in (_LESS, _NOBODY):
        return None
    known = KNOWN.get(kind_of(program) or "", {}).get(option, {})
    return next((value for value, asks in known.items() if asks is _ASKS and value in values), None)


def kind_of(program: Program) -> str | None:
    """Which of the known agents the command starts."""
    for word in program.command:
        name = PurePath(word).name
        if found := next((kind for kind in KNOWN if name.startswith(kind)), None):
            return found
        if name not in _RUNNERS and not word.startswith("-"):
            return None
    return None


def classify_command(command: str, asks: Mapping[str, list[str]]) -> Autonomy:
    """Classify a command at the beginning of a message. It may change a mode (`/yolo`, `/permissions`), or come from a
    file in the folder with separate permissions; only names that are known to be harmless ask."""
    return _ASKS if command in HARMLESS or ANY in asks.get(command, []) else Autonomy.UNKNOWN
