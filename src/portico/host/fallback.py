"""Who answers when an agent cannot: the session's setting `fallback`, a list of `agent` or `agent/model`.

The next one takes over only while the turn has said and done nothing: what was begun is never silently done again.
"""

from collections.abc import Mapping
from typing import Any

from portico.errors import BadRequest
from portico.host.state import SessionState, TextPart, TurnState

SETTING = "fallback"


def check(config: Mapping[str, Any]) -> list[str]:
    """The choices of the settings. An agent that is not there is none of the mistakes: its turn passes to the next."""
    choices = config.get(SETTING)
    if choices is None:
        return []
    if not isinstance(choices, list) or not all(isinstance(each, str) and split(each)[0] for each in choices):
        raise BadRequest(
            'config.fallback: Should be a list of agents or "agent/model", such as ["acp:goose/gpt-4.1", "loop"].',
            field="config.fallback",
        )
    return choices


def following(state: SessionState) -> str | None:
    """The choice after the one that answers now; None when there is none left."""
    choices = check(state.config)
    current = (f"{state.agent}/{state.model}", state.agent)
    at = next((index for index, choice in enumerate(choices) if choice in current), -1)
    return choices[at + 1] if at + 1 < len(choices) else None


def split(choice: str) -> tuple[str, str]:
    """Agent and model; a model's own id may contain slashes, an agent's may not."""
    agent, _, model = choice.partition("/")
    return agent, model


def untouched(turn: TurnState | None) -> bool:
    """Nothing but notices of ours so far, and what was taken back."""
    return turn is None or all(isinstance(part, TextPart) and _is_nothing(part) for part in turn.parts)


def _is_nothing(part: TextPart) -> bool:
    return part.kind == "notice" or (part.done and not part.text)
