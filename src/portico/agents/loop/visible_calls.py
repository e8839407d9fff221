"""Calls that a person sees while the model still writes their arguments: the name and the path first, then their size.

A file of some hundred lines takes a model a minute to write. Without this, that looks like a hang.
"""

import re

from portico.agents.loop.act import begin
from portico.agents.loop.arguments import canonical
from portico.agents.loop.protocol import ModelAction
from portico.agents.loop.record import VOID
from portico.kernel.call import Call
from portico.kernel.events import ErrorInfo
from portico.kernel.turn import Turn

SHOWN_CHARS = 200
"""Of arguments after which a call is shown, also without a path."""
_SUBJECT = re.compile(r'"(?:path|file_path|command)"\s*:\s*"((?:[^"\\]|\\.)+)"')


class VisibleCalls:
    """Of one step. Calls are shown in their order; after one that cannot be shown early, the others wait too."""

    def __init__(self, turn: Turn, step: int, tools: tuple[str, ...]) -> None:
        self._turn = turn
        self._step = step
        self._tools = tools
        self._written: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._open: dict[str, Call] = {}
        self._void: list[Call] = []

    def grow(self, ident: str, name: str, piece: str) -> None:
        """More arguments of the call with this id."""
        if not ident or not name:
            return
        self._names.setdefault(ident, canonical(name, self._tools))
        self._written[ident] = self._written.get(ident, "") + piece
        if ident in self._open:
            self._open[ident].feed(piece)
        elif self._is_long(ident):
            self._show(ident)

    def _is_long(self, ident: str) -> bool:
        text = self._written[ident]
        return len(text) >= SHOWN_CHARS and all(name in self._tools for name in self._names.values())

    def _show(self, last: str) -> None:
        for ident, name in self._names.items():
            if ident not in self._open:
                written = self._written[ident]
                subject = _SUBJECT.search(written)
                call = begin(self._turn, ModelAction(name, {}, ident), self._step, title=_title(name, subject))
                self._open[ident] = call
                call.feed(written)
            if ident == last:
                return

    def void(self) -> None:
        """The attempt broke off: what it wrote does not count."""
        self._void += self._open.values()
        self._open, self._names, self._written = {}, {}, {}

    async def end_void(self) -> None:
        """Ends the calls of attempts that broke off."""
        for call in self._void:
            problem = ErrorInfo(VOID, "The answer of the model broke off; it was asked again.")
            await call.end(ok=False, error=problem, outcome="cancelled")
        self._void.clear()

    def take(self, action: ModelAction) -> Call | None:
        """The call of an action, where it is shown already."""
        return self._open.pop(action.id, None) if action.id else None


def _title(name: str, subject: "re.Match[str] | None") -> str:
    return f"{name} {subject[1]}"[:200] if subject is not None else name
