"""Failures that an agent sends as if they were its answer: the turn would look completed, and nothing was done.

How each program marks them (goose 1.52, Copilot 1.0.102, codex-acp 2.6, each with a model that fails):

- goose: one chunk with a fixed sentence.
- Copilot: one chunk `Error: ...` as the last words, and no `usage` in the reply. After an earlier successful request of
  the turn the reply has `usage`; then only the known sentences count.
- Codex: the thread gets the status `systemError`, then one chunk without `messageId`. Chunks of its model have one.

Such a chunk is held back until the turn ends, so that it does not count as output: the next agent of `fallback` takes
over. If it was an answer, it is shown. Retries of Copilot and Codex are shown as notices.
"""

import re
from typing import Any

import msgspec

from portico.kernel.errors import AgentError, SignInRequired
from portico.kernel.events import Json

RETRYING = "Info: Request failed due to a transient API error. Retrying..."
"""Copilot's own chunk before each retry."""
OPENINGS = ("Error: ", "Info: Request failed", "Ran into this error: ")
"""How the own chunks of programs begin. Such a chunk is not merged with its neighbors."""
_GOOSE = re.compile(
    r"\s*Ran into this error: (.+?)\.?\s+Please retry if you think this is a transient or recoverable error\.\s*",
    re.DOTALL,
)
_COPILOT = re.compile(
    r"Authentication failed with provider at \S+ \(HTTP \d+\)|[45]\d\d \S|"
    r"Failed to get response from the AI model; retried \d+ times|Model '[^']*' not found on provider at \S+",
)

_SIGN_IN = re.compile(
    r"\b401\b|unauthori[sz]ed|not (?:logged|signed) in|(?:log|sign) in (?:first|to)|authentication (?:required|failed)|"
    r"(?:invalid|incorrect|missing) (?:api )?key|api key (?:is )?(?:missing|not valid|invalid)|re-?authenticate|"
    r"failed to resolve provider|configuration value not found",  # goose, before it is configured
    re.IGNORECASE,
)
"""Error texts of agents that have no error code for a missing sign-in."""


class ErrorText:
    """Finds the texts of the program itself among the chunks of one turn."""

    def __init__(self, kind: str | None) -> None:
        """`kind`: which of the known agents answers."""
        self.kind = kind
        self._held = ""
        self._broken = False
        """Codex has reported that the thread failed."""

    def take(self, text: str, key: str | None) -> bool:
        """Return whether the chunk is held back. Release an earlier one first."""
        match self.kind:
            case "goose":
                mine = text.startswith("Ran into this error: ")
            case "copilot":
                mine = text.startswith("Error: ")
            case "codex":
                mine = self._broken and key is None
            case _:
                return False
        if mine:
            self._held += text
        return mine

    def release(self) -> str:
        """Return what was held back: it is part of the answer, because more follows."""
        held, self._held = self._held, ""
        return held

    def is_retry(self, text: str) -> bool:
        return self.kind == "copilot" and text.strip() == RETRYING

    def status(self, meta: Any) -> str:
        """Read the metadata of a `session_info_update`. Return why Codex retries its request; empty: it does not."""
        codex = meta.get("codex") if self.kind == "codex" and isinstance(meta, dict) else None
        if not isinstance(codex, dict):
            return ""
        if isinstance(thread := codex.get("threadStatus"), dict):
            self._broken = thread.get("type") == "systemError"
        error = codex.get("error")
        if not isinstance(error, dict) or error.get("willRetry") is not True:
            return ""
        words = [str(error[name]).strip() for name in ("additionalDetails", "message") if error.get(name)]
        return " ".join(words) or "The request to the model failed and is retried."

    def failure(self, name: str, reply: Json) -> AgentError | None:
        """Return the failure that the turn ended with; None if its last words are an answer."""
        words = self._reason(reply)
        if words is None:
            return None
        self._held = ""
        problem = SignInRequired if wants_sign_in(words) else AgentError
        return problem(f"{name}: {words}.")

    def _reason(self, reply: Json) -> str | None:
        held, words = self._held, self._held.strip().rstrip(".")
        match self.kind:
            case "goose":
                found = _GOOSE.fullmatch(held)
                return found[1] if found is not None else None
            case "copilot" if held:
                words = words.removeprefix("Error: ")
                return words if not reply.get("usage") or _COPILOT.match(words) else None
            case "codex" if self._broken:
                return _message(words) or "its model did not answer"
        return None


def wants_sign_in(text: str) -> bool:
    return _SIGN_IN.search(text) is not None


def _message(words: str) -> str:
    """Codex passes on the body of some errors as JSON."""
    try:
        found: Any = msgspec.json.decode(words)
    except msgspec.DecodeError:
        return words
    error = found.get("error") if isinstance(found, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return message.rstrip(".") if isinstance(message, str) and message else words
