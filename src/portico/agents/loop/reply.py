"""One answer of a model in any wire format, and the errors of endpoints."""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from portico.kernel.errors import AgentError

ANSWER_MAX = 4 * 1024 * 1024
"""Characters of one answer: some 100 times what a model writes in one answer."""
CALLS_MAX = 100
ERROR_CHARS = 300
"""What a message quotes of an endpoint's error text."""

Feature = Literal[
    "tools", "schema", "usage", "pictures", "temperature", "max_tokens", "system", "alternation", "extras"
]
"""What an endpoint may reject: optional fields (`extras`: fields of other vendors in messages), the system role, roles
that do not alternate."""
WireName = Literal["chat", "responses", "messages"]
Report = Callable[[str, str], None]
"""Called with the new text and the new reasoning."""


class ModelError(AgentError):
    """The endpoint did not answer as asked. `again`: the same request may work later; `lacks`: what to leave out."""

    def __init__(
        self,
        message: str,
        *,
        again: bool = False,
        retry_after: float | None = None,
        lacks: Feature | None = None,
        too_long: bool = False,
        refused: bool = False,
        window: int | None = None,
        most: int | None = None,
        silent: bool = False,
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.again = again
        self.lacks = lacks
        self.too_long = too_long
        self.refused = refused
        """It does not accept the key."""
        self.window = window
        """The context window in tokens, where the error names it."""
        self.most = most
        """The longest answer in tokens, where the error names it."""
        self.silent = silent
        """It sent nothing for too long: it may be a slow model that still reads the request."""


class NoList(ModelError):
    """It answers, but does not list its models."""


class TokensSpent(Struct, frozen=True):
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0
    """In dollars, where the endpoint reports it (OpenRouter and other gateways do)."""


class NativeCall(Struct, frozen=True, omit_defaults=True):
    """A tool call as an endpoint reports it."""

    id: str
    name: str
    arguments: str


class Said(Struct, frozen=True, omit_defaults=True):
    """A model's message exactly as it came: reasoning in any field, signatures, unknown fields. Sent back to the same
    model over the same wire format; any other model gets the neutral form of the step."""

    wire: WireName
    model: str
    message: Any
    """Chat completions: the message. Responses: the output items. Messages: the content blocks."""
    native: bool = True
    """Asked with native tools: an endpoint without them would not accept the calls in it."""


class Reply(Struct, frozen=True):
    text: str
    """What is meant for a person, without reasoning."""
    calls: list[NativeCall]
    finish: str
    usage: TokensSpent | None = None
    message: Any = None
    """See `Said.message`."""
    thought: str = ""
    """The reasoning, for an answer that has nothing else."""


class Growth:
    """Bounds one answer: a model may never stop."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._size = 0

    def add(self, size: int) -> None:
        self._size += size
        if self._size > ANSWER_MAX:
            raise ModelError(f"{self._name} does not stop: its answer is over {ANSWER_MAX} characters.")

    def check_calls(self, count: int) -> None:
        if count > CALLS_MAX:
            raise ModelError(f"{self._name} calls more than {CALLS_MAX} tools at once.")


def error_words(error: Any) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error
    return str(error)[:ERROR_CHARS]
