"""What each known agent needs inside its sandbox: its own state, its model, and the hosts of its vendor.

The state of an agent is its login, its settings and its conversations. In `strict` it is only what a
conversation needs. All paths are relative to the home folder. Hosts were recorded with the versions in
`agents/acp/autonomy.py`.
"""

from msgspec import Struct


class Vendor(Struct, frozen=True):
    state: tuple[str, ...] = ()
    strict_state: tuple[str, ...] = ()
    """Empty: the same as `state`."""
    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    """Loopback ports of its model and of our tool server."""
    homes: tuple[tuple[str, str], ...] = ()
    """Variables that move a part of its state, and which one."""
    hide: tuple[str, ...] = ()
    """Programs that it must not find."""
    mode: str = ""
    """The mode in which it does not confine its own commands a second time."""


VENDORS: dict[str, Vendor] = {
    "claude": Vendor(
        state=(".claude", ".claude.json"),
        homes=(("CLAUDE_CONFIG_DIR", ".claude"),),
        strict_state=(".claude/.credentials.json", ".claude/projects", ".claude/sessions", ".claude.json"),
        hosts=(
            "api.anthropic.com",
            "console.anthropic.com",
            "platform.claude.com",
            "claude.ai",
            "statsig.anthropic.com",
        ),
    ),
    "codex": Vendor(
        state=(".codex",),
        strict_state=(".codex/auth.json", ".codex/config.toml", ".codex/sessions", ".codex/tmp"),
        hosts=("api.openai.com", "auth.openai.com", "chatgpt.com"),
        homes=(("CODEX_HOME", ".codex"),),
        hide=("/usr/bin/bwrap", "/usr/local/bin/bwrap"),  # it starts an own sandbox with it, and fails
        mode="agent-full-access",
    ),
    "copilot": Vendor(
        homes=(("COPILOT_HOME", ".copilot"),),
        state=(".copilot", ".config/github-copilot", ".cache/copilot", ".local/state/copilot"),
        strict_state=(".copilot",),
        hosts=(
            "api.githubcopilot.com",
            "*.githubcopilot.com",
            "api.github.com",
            "github.com",
            "copilot-proxy.githubusercontent.com",
        ),
    ),
    "gemini": Vendor(
        state=(".gemini",),
        hosts=(
            "generativelanguage.googleapis.com",
            "cloudcode-pa.googleapis.com",
            "oauth2.googleapis.com",
            "accounts.google.com",
            "play.googleapis.com",
        ),
    ),
    "goose": Vendor(
        state=(".config/goose", ".local/share/goose", ".local/state/goose"),
        strict_state=(".config/goose", ".local/share/goose/sessions", ".local/state/goose"),
        hosts=("api.openai.com", "api.anthropic.com", "openrouter.ai"),
    ),
    "opencode": Vendor(
        state=(".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"),
        strict_state=(".config/opencode", ".local/share/opencode", ".local/state/opencode"),
        hosts=("opencode.ai", "models.dev", "api.opencode.ai", "api.openai.com", "api.anthropic.com", "openrouter.ai"),
    ),
    "qwen": Vendor(state=(".qwen",), hosts=("chat.qwen.ai", "portal.qwen.ai", "dashscope.aliyuncs.com")),
}
"""By the beginning of the program's name, as in `agents/acp/autonomy.py`."""
