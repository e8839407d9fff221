"""Detects a model that makes the same call again and again with the same result."""

import msgspec

from portico.agents.loop.protocol import ModelAction

INFORM = 3
"""Equal calls with equal results after which the model is informed."""
STOP = 6
"""And after which a person is asked."""


class Repeats:
    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[str, int]] = {}

    def note(self, action: ModelAction, result: str) -> int:
        """How often this call had this result since something was last changed."""
        key = msgspec.json.encode([action.tool, action.arguments, action.problem], order="sorted")
        before, count = self._seen.get(key, ("", 0))
        count = count + 1 if before == result else 1
        self._seen[key] = (result, count)
        return count

    def reset(self) -> None:
        """Something was changed, or a person wants to continue: the same call may have another result now."""
        self._seen.clear()


def advice(tool: str, count: int) -> str:
    """What the model reads. In tags: it is not the person who writes."""
    return (
        f"<notice>\nYou have called {tool!r} {count} times with the same arguments and got the same result each time. "
        "Do not call it again like this. Try something else, or finish and report what you found.\n</notice>"
    )
