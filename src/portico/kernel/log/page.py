"""Records that are delivered to readers together: one list shared by all readers, with the wire forms that doors encode
from it. A thousand readers stalled at the same position then cost as much as one."""

from collections.abc import Callable
from typing import Any, TypeVar

from portico.kernel.events import Record

T = TypeVar("T")


class Page(list[Record]):
    _forms: dict[str, Any] | None = None

    def form(self, name: str, make: "Callable[[Page], T]") -> T:
        """Return a door's encoding of the whole page, computed once."""
        if self._forms is None:
            self._forms = {}
        if name not in self._forms:
            self._forms[name] = make(self)
        form: T = self._forms[name]
        return form
