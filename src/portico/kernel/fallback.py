"""Fallback agents: the session's setting `fallback`, a list of `agent` or `agent/model`.

The next agent is used only if the turn has no output and no calls yet, so that no work is silently repeated.
"""

from collections.abc import Mapping
from typing import Any

from portico.kernel.errors import BadRequest
from portico.kernel.state import SessionState, TextPart, TurnState

SETTING = "fallback"


def check(config: Mapping[str, Any]) -> list[str]:
    """Return the choices in the settings. An unknown agent is not an error: the next one is used instead."""
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
    """Return the choice after the current agent; None if there is none left."""
    choices = check(state.config)
    current = (f"{state.agent}/{state.model}", state.agent)
    at = next((index for index, choice in enumerate(choices) if choice in current), -1)
    return choices[at + 1] if at + 1 < len(choices) else None


def split(choice: str) -> tuple[str, str]:
    """Return agent and model. The id of a model may contain slashes, that of an agent may not."""
    agent, _, model = choice.partition("/")
    return agent, model


def untouched(turn: TurnState | None) -> bool:
    """Return whether the turn has only notices of the host and retracted text."""
    return turn is None or all(isinstance(part, TextPart) and _is_nothing(part) for part in turn.parts)


def _is_nothing(part: TextPart) -> bool:
    return part.kind == "notice" or (part.done and not part.text)
