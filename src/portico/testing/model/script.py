"""What the model shall answer: steps, the rules that choose them, and where they are found in a prompt.

Step k answers the k-th model request of a turn. Steps ride in the prompt itself (the server stays stateless and any
number of agents can share it) or come from a file with rules.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import msgspec
import yaml
from msgspec import Meta, Struct

from portico.kernel.errors import BadRequest

Count = Annotated[int, Meta(ge=0)]
# A hundred thousand deltas keep a reader busy for a minute; more is a typing error, and each one costs memory.
Repeat = Annotated[int, Meta(ge=1, le=100_000)]
# A day: longer than any test, short enough that a wrong unit is noticed.
Milliseconds = Annotated[float, Meta(ge=0, le=86_400_000)]
Status = Annotated[int, Meta(ge=400, le=599)]
Finish = Literal["stop", "tools", "length", "refusal"]
ToolKind = Literal["execute", "read", "write", "edit"]


class ScriptedCall(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One tool call. The first declared tool that fits wins, over this call and then its alternatives in `or`."""

    name: str | list[str] = []
    match: str = ""  # a regular expression on the whole declared name
    kind: ToolKind | None = None  # what the tool does; `args` then use neutral names
    args: dict[str, Any] | str = {}  # a string is sent as it is: broken JSON, or a free-form tool's input
    alternatives: list["ScriptedCall"] = msgspec.field(default=[], name="or")
    id: str = ""

    def __post_init__(self) -> None:
        _check_pattern(self.match)
        if not (self.name or self.match or self.kind):
            raise ValueError("a call needs `name`, `match` or `kind`")


class Error(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An error status, or with `after` an error inside a stream that began well."""

    status: Status = 500
    message: str = "scripted error"
    code: str = ""
    retry_after: Annotated[float, Meta(ge=0)] | None = None
    after: Count | None = None


class ScriptedUsage(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Tokens. `cached` is a part of `input`, `reasoning` a part of `output`. `cost` is in dollars, as gateways send it
    (chat completions only)."""

    input: Count = 0
    output: Count = 0
    cached: Count = 0
    reasoning: Count = 0
    cost: Annotated[float, Meta(ge=0)] = 0.0


class First(Struct, frozen=True, forbid_unknown_fields=True):
    """`step` answers instead, the first `times` times that this server meets `key`."""

    key: str
    times: Annotated[int, Meta(ge=1)]
    step: "Step"


class Step(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One answer of the model. Numbers in `cut`, `hang`, `garbage` and `error.after` count deltas."""

    say: str | list[str] = ""  # a string is streamed word by word, a list as exactly these deltas
    reason: str | list[str] = ""
    calls: list[ScriptedCall] = []
    repeat: Repeat = 1  # how often `say` is repeated
    delay: Milliseconds = 0  # before the first byte
    gap: Milliseconds = 0  # after each delta
    error: Status | Error | None = None
    cut: Count | None = None  # close the connection after so many deltas
    hang: bool | Count | None = None  # true: never answer; a number: fall silent after so many deltas
    garbage: Count | None = None  # a frame that is not JSON after so many deltas
    finish: Finish | None = None
    usage: ScriptedUsage | None = None
    first: First | None = None

    @property
    def failure(self) -> Error | None:
        return Error(status=self.error) if isinstance(self.error, int) else self.error


class ModelRule(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The first rule that fits a request answers it; what is not given fits everything."""

    steps: Annotated[list[Step], Meta(min_length=1)]
    match: str = ""  # regular expression searched in the prompt
    model: str = ""  # regular expression on the whole model name
    tools: bool | None = None  # only requests that do (or do not) declare tools

    def __post_init__(self) -> None:
        _check_pattern(self.match)
        _check_pattern(self.model)

    def fits(self, prompt: str, model: str, has_tools: bool) -> bool:
        if self.tools is not None and self.tools != has_tools:
            return False
        if self.model and not re.fullmatch(self.model, model):
            return False
        return re.search(self.match, prompt) is not None


class Script(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A server's own script: rules come before what a prompt brings along, `default` after it."""

    rules: list[ModelRule] = []
    default: list[Step] = []
    models: list[str] = msgspec.field(default_factory=lambda: ["scripted"])

    @classmethod
    def of(cls, *steps: Step) -> Self:
        """A script that answers every turn with these steps."""
        return cls(rules=[ModelRule(steps=list(steps))])


class Found(NamedTuple):
    steps: list[Step]
    rest: str  # the prompt without its script
    problem: str  # why something that looks like steps is none


def load(path: Path) -> Script:
    """Reads a script file, YAML or JSON; a file that is a list is the steps of every turn."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        return (
            Script.of(*msgspec.convert(data, list[Step])) if isinstance(data, list) else msgspec.convert(data, Script)
        )
    except OSError as error:
        raise BadRequest(f"Cannot read the script {path.name!r}: {error.strerror}.", field="script") from error
    except (yaml.YAMLError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise BadRequest(f"The script {path.name!r} is not valid: {error}", field="script") from error


def find(prompt: str) -> Found:
    """The last JSON array of steps in the prompt, also where an agent quoted the prompt as a JSON string.

    The last: goose puts a message that was never answered (the turn was cancelled, or it died) before the next one."""
    found = _find(prompt)
    if found.steps or '\\"' not in prompt:
        return found
    quoted = _find(_ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), prompt))
    return quoted if quoted.steps else found


def _find(text: str) -> Found:
    """`{}` is no step here: too many other arrays have one."""
    found, last, problem = None, 0, ""
    for start, end, value in _arrays(text):
        if start < last or not all(value):  # what is inside of a script is none
            continue
        try:
            found, last = Found(_decode_steps(text[start:end]), text[:start] + text[end:], ""), end
        except msgspec.DecodeError as error:
            if not problem and any(isinstance(item, dict) and _FIELDS & item.keys() for item in value):
                problem = str(error)
    return found or Found([], text, problem)


# Enough for any prompt a person writes, and a bound on the work for one that is full of brackets.
_CANDIDATES = 1000
_ESCAPE = re.compile(r'\\(["\\/nrt])')
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_ARRAY = re.compile(r"\[\s*\{")


def _arrays(text: str) -> Iterator[tuple[int, int, list[Any]]]:
    decoder = json.JSONDecoder()
    for _, match in zip(range(_CANDIDATES), _ARRAY.finditer(text), strict=False):
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (json.JSONDecodeError, RecursionError):
            continue  # not JSON from here on: prose has brackets too
        yield match.start(), end, value


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error


_decode_steps = msgspec.json.Decoder(list[Step]).decode
_FIELDS = frozenset(field.name for field in msgspec.structs.fields(Step))
