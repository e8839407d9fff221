"""What the scripted agent plays: script files (JSON or YAML) and directives inside a prompt.

docs/reference/script.md describes both. A script declares providers and rules; the first rule whose `match` is found
in the prompt gives the steps of the turn. A prompt with directives such as `[[say:hi]]` is its own script.
"""

import re
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from portico.kernel.agent import Model
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json


class AgentStep(Struct, tag_field="do", forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    pass


class Say(AgentStep, tag="say"):
    text: str = ""
    deltas: int = 1
    """The text is cut into this many pieces."""
    gap: float = 0
    """Milliseconds between them."""


class Reason(AgentStep, tag="reason"):
    text: str
    deltas: int = 1
    gap: float = 0


class NoticeStep(AgentStep, tag="notice"):
    text: str


class ScriptedPermission(Struct, forbid_unknown_fields=True, omit_defaults=True):
    kind: str = "other"
    path: str | None = None
    command: str | None = None
    diff: str | None = None
    title: str = ""
    editable: bool = False
    timeout: float | None = None


class ToolStep(AgentStep, tag="tool"):
    """A tool of the session when it has one of that name, else one of the agent's own with this output."""

    name: str
    input: Json = {}
    input_deltas: int = 0
    """The input comes in so many pieces before the call is ready, as a model writes it."""
    output: str = ""
    partial: list[str] = []
    title: str = ""
    kind: str = "other"
    permission: ScriptedPermission | None = None
    confirm_result: bool = False
    fail: str | None = None
    exit_code: int | None = None
    session_tool: bool | None = None
    """True: must be the session's; False: never; absent: the session's if it has one."""
    content: list[Json] = []
    structured: Json | None = None
    denied: str = "The call was refused."


class Read(AgentStep, tag="read"):
    """Really reads a file below the working directory and shows it as a tool call."""

    path: str


class Write(AgentStep, tag="write"):
    """Really writes a file below the working directory, after an approval that shows the diff."""

    path: str
    text: str
    append: bool = False
    ask: bool = True


class AskStep(AgentStep, tag="ask"):
    text: str
    fields: list[Json] = []
    echo: bool = True


class UsageStep(AgentStep, tag="usage"):
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0
    model: str = ""


class Title(AgentStep, tag="title"):
    text: str


class Fail(AgentStep, tag="fail"):
    """The turn fails with this message."""

    message: str = "stub crash"


class Crash(AgentStep, tag="crash"):
    """The turn ends with the error `stub crash`, as `[[crash]]` does."""


class Die(AgentStep, tag="die"):
    """The agent's process ends in mid-turn."""


class Hang(AgentStep, tag="hang"):
    """Never becomes idle; a cancel ends it."""


class SignOut(AgentStep, tag="sign_out"):
    """The provider's token has expired: the turn fails, and a client has to sign in again."""


class Delay(AgentStep, tag="delay"):
    ms: float


class Spawn(AgentStep, tag="spawn"):
    """A sub-agent with its own session, playing its own steps."""

    prompt: str
    title: str = ""
    agent: str = ""
    steps: "list[AnyStep]" = []
    fail: str | None = None


AnyStep = (
    Say
    | Reason
    | NoticeStep
    | ToolStep
    | Read
    | Write
    | AskStep
    | UsageStep
    | Title
    | Fail
    | Crash
    | Die
    | Hang
    | SignOut
    | Delay
    | Spawn
)


class SeedTurn(Struct, forbid_unknown_fields=True, omit_defaults=True):
    prompt: str
    answer: str = ""
    reasoning: str = ""


class SeedSession(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A session that is there, with its history, when the host starts for the first time."""

    title: str
    turns: list[SeedTurn] = []
    cwd: str | None = None
    model: str | None = None


class ScriptedSignIn(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The provider wants a token first, like a vendor's agent without a login."""

    resource: str
    name: str = ""
    servers: list[str] = []
    scopes: list[str] = []
    required: bool = True
    token: str = ""
    """The one that is good; any, when empty."""


class Provider(Struct, forbid_unknown_fields=True, omit_defaults=True):
    id: str
    name: str
    description: str = ""
    label: str = ""
    models: list[Model] = []
    config: Json = {}
    completions: dict[str, list[Json]] = {}
    sessions: list[SeedSession] = []
    steer: bool = False
    sign_in: ScriptedSignIn | None = None
    customizations: list[Json] = []
    autonomy: dict[str, dict[str, Literal["asks", "asks-less", "asks-nobody", "unknown"]]] = {}
    """What values of its options do to approvals; those that are not here ask."""


class ScriptRule(Struct, forbid_unknown_fields=True, omit_defaults=True):
    match: str
    steps: list[AnyStep]
    provider: str | None = None


class AgentScript(Struct, forbid_unknown_fields=True, omit_defaults=True):
    providers: list[Provider] = []
    rules: list[ScriptRule] = []


DEFAULT_MODELS = [
    Model("gpt-5-mini", "GPT-5 mini", 0),
    Model("gpt-4.1", "GPT-4.1", 0),
    Model("gpt-5.2", "GPT-5.2", 1),
    Model("gpt-5.4", "GPT-5.4", 1),
    Model("gpt-5.3-codex", "GPT-5.3-Codex", 1),
    Model("gpt-5.4-mini", "GPT-5.4 mini", 0.33),
    Model("claude-haiku-4.5", "Claude Haiku 4.5", 0.33),
    Model("claude-opus-4.6", "Claude Opus 4.6", 3),
    Model("claude-sonnet-4.6", "Claude Sonnet 4.6", 1),
]


def load(path: Path) -> AgentScript:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"The script {str(path)!r} cannot be read: {error}.", field="script") from error
    return parse(text, str(path))


def parse(text: str, name: str) -> AgentScript:
    try:
        script = msgspec.convert(_decode(text, name) or {}, AgentScript)
    except msgspec.ValidationError as error:
        raise _invalid(name, error) from error
    for index, rule in enumerate(script.rules):
        try:
            re.compile(rule.match)
        except re.error as error:
            where = f"rules[{index}].match"
            raise BadRequest(
                f"The script {name!r}: {where} is not a regular expression: {error}", field=where
            ) from error
    return script


def _decode(text: str, name: str) -> Any:
    """JSON first: it is not quite a part of YAML, where a tab does not indent."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        import yaml  # late: the packaged demo is JSON, and every host reads that one

        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise _invalid(name, error) from error


def _invalid(name: str, error: Exception) -> BadRequest:
    return BadRequest(f"The script {name!r} is not valid: {error}", field="script")


class Directives(Struct):
    """What `[[...]]` in a prompt asks for, in the order the design gives them."""

    delay: float = 0
    gap: float = 0
    deltas: int = 3
    reasoning: int = 2
    say: str | None = None
    stamp: bool = False
    tools: list[tuple[str, str]] = field(default_factory=list)
    crash: bool = False
    hang: bool = False
    die: bool = False


_LARGEST = 100_000_000
"""Deltas, milliseconds or times: a day, and more than any test waits for."""
_DIRECTIVE = re.compile(r"\[\[([a-z]+)(?::(.*?))?\]\](?!\])", re.DOTALL)


class Seen:
    """How often this process has seen a key: what `after`, `before` and `crashn` count."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def count(self, key: str) -> int:
        """The number of earlier times; this one is counted."""
        before = self._counts.get(key, 0)
        self._counts[key] = before + 1
        return before


def directives(prompt: str, seen: Seen) -> Directives | None:
    """None when the prompt has none."""
    found = _DIRECTIVE.findall(prompt)
    if not found:
        return None
    result = Directives()
    for name, value in found:
        _direct(result, name, value, seen)
    return result


def _direct(result: Directives, name: str, value: str, seen: Seen) -> None:
    match name:
        case "delay":
            result.delay = _number(name, value) / 1000
        case "gap":
            result.gap = _number(name, value) / 1000
        case "deltas":
            result.deltas = int(_number(name, value))
        case "reasoning":
            result.reasoning = int(_number(name, value))
        case "say":
            result.say = value
        case "stamp" | "crash" | "hang" | "die":
            setattr(result, name, True)
        case "tool":
            tool, _, argument = value.partition("|")
            result.tools.append((tool, argument))
        case "after" | "before":
            key, times, tool, argument = _fields(name, value, 4)
            late = seen.count(f"{name}:{key}") >= int(_number(name, times))
            if late is (name == "after"):
                result.tools.append((tool, argument))
        case "crashn":
            key, times = _fields(name, value, 2)
            result.crash = result.crash or seen.count(f"crashn:{key}") < int(_number(name, times))
        case _:
            pass  # two brackets in a prompt need not be ours


def _fields(name: str, value: str, count: int) -> list[str]:
    parts = value.split("|", count - 1)
    if len(parts) != count:
        raise BadRequest(f"[[{name}:...]] takes {count} fields divided by '|', got {value!r}.", field="text")
    return parts


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= _LARGEST:  # also false for nan
        raise BadRequest(f"[[{name}:...]] takes a number from 0 to {_LARGEST}, got {value!r}.", field="text")
    return number


def expand(template: str, values: dict[str, Any]) -> str:
    """Puts `{prompt}`, `{cwd}` and the groups of the rule's match (`{1}`, `{name}`) into a text."""
    return re.sub(r"\{(\w+)\}", lambda match: str(values.get(match[1], match[0])), template)


def expand_all(value: Any, values: dict[str, Any]) -> Any:
    """The same inside a structure, so that a quote in a prompt cannot break the JSON around it."""
    if isinstance(value, str):
        return expand(value, values)
    if isinstance(value, dict):
        return {key: expand_all(each, values) for key, each in value.items()}
    if isinstance(value, list):
        return [expand_all(each, values) for each in value]
    return value
