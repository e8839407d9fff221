"""Records that are handed to readers together: one list for all who read them, with the wire forms that doors made of
it. A thousand readers that stand still at the same place then cost what one costs."""

from collections.abc import Callable
from typing import Any, TypeVar

from portico.events import Record

T = TypeVar("T")


class Page(list[Record]):
    _forms: dict[str, Any] | None = None

    def form(self, name: str, make: "Callable[[Page], T]") -> T:
        """What a door makes of the whole page, made once."""
        if self._forms is None:
            self._forms = {}
        if name not in self._forms:
            self._forms[name] = make(self)
        form: T = self._forms[name]
        return form
