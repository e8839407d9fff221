"""Who answers when an agent cannot: the session's setting `fallback`, a list of `agent` or `agent/model`.

The next one takes over only while the turn has said and done nothing: what was begun is never silently done again.
"""

from portico.host.state import SessionState, TextPart, TurnState

SETTING = "fallback"


def following(state: SessionState) -> str | None:
    """The choice after the one that answers now; None when there is none left."""
    wanted = state.config.get(SETTING)
    choices = [each for each in wanted if isinstance(each, str)] if isinstance(wanted, list) else []
    current = (f"{state.agent}/{state.model}", state.agent)
    at = next((index for index, choice in enumerate(choices) if choice in current), -1)
    return choices[at + 1] if at + 1 < len(choices) else None


def split(choice: str) -> tuple[str, str]:
    """Agent and model; a model's own id may contain slashes, an agent's may not."""
    agent, _, model = choice.partition("/")
    return agent, model


def untouched(turn: TurnState | None) -> bool:
    """Nothing but notices of ours so far."""
    return turn is None or all(isinstance(part, TextPart) and part.kind == "notice" for part in turn.parts)
