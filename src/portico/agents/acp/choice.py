"""What can be chosen in an ACP session: a model, a mode, and every other option with a list of values.

The attack: an agent calls an option `approvals`, and who sets it for the agent sets it for the host. So names that mean
something to the host are never an agent's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from portico.kernel.autonomy import APPROVAL_KEYS, HOST_KEYS
from portico.kernel.events import Json

RESERVED = APPROVAL_KEYS | HOST_KEYS


@dataclass(frozen=True)
class OptionChoice:
    category: str
    """`model`, `mode`, or the id of another option."""
    current: str
    values: dict[str, str]
    """Id and name."""
    option: str | None
    """The id of the option, where the agent has options; else there is a separate method."""
    name: str = ""

    @property
    def method(self) -> str:
        return "session/set_config_option" if self.option else f"session/set_{self.category}"

    def params(self, session: str, value: str) -> Json:
        if self.option:
            return {"sessionId": session, "configId": self.option, "value": value}
        return {"sessionId": session, f"{self.category}Id": value}

    @property
    def schema(self) -> Json:
        """As a setting of a session."""
        return {"type": "string", "title": self.name or self.category, "enum": list(self.values)}


def choices(answer: Json) -> Iterator[OptionChoice]:
    """Those in the answer to a new session: as options, or as models and modes in separate fields."""
    seen: set[str] = set()
    for option in _objects(answer.get("configOptions")):
        ident = str(option.get("id"))
        category = str(option.get("category") or ident)
        category = category if category in ("model", "mode") else ident
        values = _values(option)
        if values and category not in seen | RESERVED:
            seen.add(category)
            yield OptionChoice(category, str(option.get("currentValue")), values, ident, str(option.get("name") or ""))
    for category, field, many in (("model", "models", "availableModels"), ("mode", "modes", "availableModes")):
        state = answer.get(field)
        if isinstance(state, dict) and category not in seen:
            key = "modelId" if category == "model" else "id"
            values = {str(each.get(key)): str(each.get("name")) for each in _objects(state.get(many))}
            yield OptionChoice(category, str(state.get(f"current{category.title()}Id")), values, None)


def _values(option: Json) -> dict[str, str]:
    """Flat or in groups."""
    values: dict[str, str] = {}
    for each in _objects(option.get("options")):
        for value in _objects(each.get("options")) or [each]:
            values[str(value.get("value"))] = str(value.get("name") or value.get("value"))
    return values


def _objects(found: Any) -> list[Json]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
